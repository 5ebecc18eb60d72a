//! A realistic skill, from its missing package to the finished file: scripts with options, relative
//! imports within a package, `python -m`, data relative to the user's folder, and an undeclared
//! module.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Outcome, ProgramText, Reply, Request, Server, Test, interpreter, seconds};

const DOCUMENT: &str = include_str!("SKILL.md");
const FILES: [(&str, &str); 6] = [
    ("scripts/__init__.py", ""),
    ("scripts/build_sheet.py", include_str!("build_sheet.py")),
    ("scripts/verify.py", include_str!("verify.py")),
    ("scripts/shared/__init__.py", ""),
    ("scripts/shared/hours.py", include_str!("hours.py")),
    ("references/columns.md", "# Columns\n\n`day`, `project`, `hours`: one row a piece of work.\n"),
];
const HOURS: &str =
    "day,project,hours\n2026-03-02,Bridge,6.5\n2026-03-02,Canal,1.5\n2026-03-03,Bridge,8\n";
/// The output that the script creates from them.
const SHEET: &str = "March\n\
                     | project | hours |\n\
                     | Bridge  | 14.5  |\n\
                     | Canal   | 1.5   |\n\
                     | total   | 16.0  |\n";
/// The module that the script imports, and the package that contains it.
const MODULE: &str = "gridscribe";
const PACKAGE: &str = "grid-scribe";

/// The skill, the user's folder `desk` with the data, and a folder of wheels in place of the
/// package index: no test uses the network.
fn office() -> Test {
    let mut test = Test::new().skill("hours-sheet", DOCUMENT).file("desk/march.csv", HOURS);
    for (path, content) in FILES {
        test = test.file(&format!("skills/hours-sheet/{path}"), content);
    }
    let wheels = test.path("wheels");
    fs::create_dir(&wheels).expect("the folder is new");
    let status = Command::new(interpreter()).args(["-I", "-c", MAKE_WHEEL]).arg(&wheels).status();
    assert!(status.is_ok_and(|status| status.success()), "failed to create the wheel");
    let skills = test.path("skills");
    test.env("PIP_NO_INDEX", "1")
        .env("PIP_FIND_LINKS", &wheels)
        .env("UV_NO_INDEX", "1")
        .env("UV_FIND_LINKS", &wheels)
        .env("SKILLS_FOLDER_PATH", skills)
        .cwd("desk")
        .timeout(seconds(120.0))
}

const MAKE_WHEEL: &str = r#"
import sys, zipfile
about = "grid_scribe-1.2.dist-info/"
files = {
    "gridscribe.py": '''
def grid(rows):
    """Rows of cells as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    line = lambda row: "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |\\n"
    return "".join(map(line, rows))
''',
    about + "METADATA": "Metadata-Version: 2.1\nName: grid-scribe\nVersion: 1.2\n",
    about + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
files[about + "RECORD"] = "".join(f"{name},,\n" for name in [*files, about + "RECORD"])
with zipfile.ZipFile(sys.argv[1] + "/grid_scribe-1.2-py3-none-any.whl", "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
"#;

/// The frontmatter is large and valid.
#[test]
fn skill_is_listed_with_its_full_description() {
    let test = office();
    let list = test.next_run().args(["tool", "list_skills"]).run().success().stdout_json();
    let described = "Adds up the hours of a CSV and writes them as a sheet: one line a project, \
                     with a total. Use when somebody asks for \"hours\", a timesheet or the month's work.";
    assert_eq!(list["skills"], json!([{"name": "hours-sheet", "description": described}]));
    let listed = test.next_run().args(["skills", "list", "--json"]).run().success().stdout_json();
    // A working skill is reported as `check` reports it.
    let skill = &listed["skills"][0];
    assert_eq!(skill["status"], "warning");
    assert_eq!(skill["problems"][0]["rule"], "missing-import");
}

/// The model is told the missing module and the command that installs it, and the run continues.
#[test]
fn missing_package_is_reported_with_its_remedy() {
    let test = office();
    let arguments = json!({"skill_name": "hours-sheet", "file_path": "scripts/build_sheet.py",
                           "args": [test.path("desk/march.csv"), test.path("desk/march.txt")]});
    let run = test.args(["tool", "run_python_script", &arguments.to_string()]).run().status(1);
    let result = run.stdout_json();
    let (stderr, hint) = (text(&result["stderr"]), text(&result["hint"]));
    assert!(stderr.contains(MODULE), "{result}");
    assert!(hint.contains(MODULE) && hint.contains("skills setup"), "{result}");
}

/// `check` names the missing package, `setup` installs it, and the model then creates the user's
/// file as the document and the system message describe.
#[test]
#[ignore = "long"]
fn skill_is_checked_set_up_and_used() {
    let test = office();
    let check = ["skills", "check", "hours-sheet"];
    let here = test.next_run().args(check).args(["--here"]).run().status(1);
    here.stdout_has(
        "scripts/build_sheet.py:7: error[missing-import]: missing on this machine: `gridscribe`",
    )
    .stdout_has("skills setup hours-sheet PACKAGE");

    let setup = ["skills", "setup", "hours-sheet", PACKAGE];
    test.next_run().args(setup).run().success();
    assert!(test.exists("skills/hours-sheet/venv/bin/python"));
    assert!(!test.exists("skills/hours-sheet/requirements.txt"));

    let outcome = ask_the_model(&test);
    outcome.success().stdout("The sheet is in march.txt: 16 hours.\n");
    assert_eq!(test.read("desk/march.txt"), SHEET);
    assert_eq!(names_in(&test.path("desk")), ["march.csv", "march.txt"]);

    // The venv has the package.
    test.next_run().args(check).args(["--here"]).run().success().stdout_lacks("gridscribe");
}

/// A model that uses only what it is told: it lists the skills, reads the document, runs the script
/// with absolute paths, and verifies the file with `python -m` from Python.
fn ask_the_model(test: &Test) -> Outcome {
    let server = Server::start([
        Reply::call("list_skills", &json!({})),
        Reply::from_fn(|request| {
            assert!(text(&request.last_message()["content"]).contains("\"hours-sheet\""));
            Reply::call("get_skill", &json!({"skill_name": "hours-sheet"}))
        }),
        Reply::from_fn(|request| {
            let document = text(&request.last_message()["content"]);
            assert!(document.contains("- scripts/build_sheet.py\n"), "{document}");
            let desk = desk_of(request);
            let args = json!([desk.join("march.csv"), desk.join("march.txt"), "--title", "March"]);
            Reply::call(
                "run_python_script",
                &json!({"skill_name": "hours-sheet", "file_path": "scripts/build_sheet.py", "args": args}),
            )
        }),
        Reply::from_fn(|request| {
            assert_script_succeeded(request, "2 projects, 16.0 hours\n");
            let sheet = desk_of(request).join("march.txt");
            let script = "import os, subprocess, sys\n\
                          command = [sys.executable, '-m', 'scripts.verify', *sys.argv[1:]]\n\
                          sys.exit(subprocess.run(command, cwd=os.environ['SKILL_DIR']).returncode)\n";
            Reply::call(
                "run_python_script",
                &json!({"skill_name": "hours-sheet", "script": script, "args": [sheet]}),
            )
        }),
        Reply::from_fn(|request| {
            assert_script_succeeded(request, "the total is right: 16.0\n");
            Reply::text("The sheet is in march.txt: 16 hours.")
        }),
    ]);
    let outcome = test.next_run().endpoint(&server).args(["Make a sheet of march.csv"]).run();
    server.finish();
    outcome
}

/// The user's working folder according to the system message.
fn desk_of(request: &Request) -> PathBuf {
    let system = text(&request.messages()[0]["content"]);
    let (_, rest) = system
        .split_once("commands and scripts start in ")
        .expect("the user's folder in the system message");
    let (folder, _) = rest.split_once(". ").expect("a path after the sentence");
    PathBuf::from(folder)
}

/// Asserts that the script before this request succeeded with this output.
#[track_caller]
fn assert_script_succeeded(request: &Request, stdout: &str) {
    let content = text(&request.last_message()["content"]);
    let result = ProgramText::parse(content);
    assert!(result.head.starts_with("exit 0, "), "{content}");
    assert_eq!(result.stdout, stdout);
}

fn names_in(folder: &PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the user's folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}"))
}
