//! `skills list`, `show` and `new`.

use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Test;

const TABLES: &str = "---\nname: table-maker\ndescription: Makes tables.\nlicense: MIT\nmetadata:\n  version: \"1.0\"\n---\n# Tables\n";

fn some_skills() -> Test {
    Test::new()
        .skill("tables", TABLES)
        .file("skills/tables/scripts/make.py", "print(1)\n")
        .skill("notes", "# Keeps notes\n\nThen more.\n")
        .file("skills/empty/readme.txt", "nothing here\n")
}

/// A line for each skill: its name, a tab, and its description or the reason why it is unusable.
#[test]
fn list_prints_one_line_for_each_skill() {
    let test = some_skills();
    let expected = "empty\t(cannot be used: it has no SKILL.md)\n\
                    notes\tKeeps notes\n\
                    tables\tMakes tables.\n";
    test.clone()
        .args(["skills", "list"])
        .run()
        .success()
        .stdout(expected)
        .stderr_has("the skill `notes` has 1 problem: `skills-runner skills show notes` shows it")
        .stderr_has("the skill `tables` has 1 problem: ");
    test.args(["skills"]).run().success().stdout(expected);
}

/// The documented fields.
#[test]
fn list_as_json_has_every_field() {
    let test = some_skills().venv("tables").args(["skills", "list", "--json"]);
    let list = test.run().success().stdout_json();
    let skills = list["skills"].as_array().unwrap();
    let names: Vec<&str> = skills.iter().map(|skill| skill["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["empty", "notes", "tables"]);
    let path = test.path("skills");
    let mut tables = skills[2].clone();
    let problems = tables["problems"].take();
    assert_eq!(problems[0]["rule"], "name-folder");
    let venv = path.join("tables/venv");
    assert_eq!(
        tables,
        json!({
            "name": "tables",
            "description": "Makes tables.",
            "path": path.join("tables"),
            "document": "SKILL.md",
            "venv": venv,
            "python": venv.join("bin/python"),
            "status": "warning",
            "problems": null,
        })
    );
    assert_eq!(skills[0]["document"], json!(null));
    assert_eq!(skills[0]["status"], "error");
    assert_eq!(skills[0]["problems"][0]["rule"], "no-document");
    let notes = &skills[1];
    assert_eq!(notes["description"], "Keeps notes");
    assert_eq!(notes["venv"], json!(null));
    let problem = &notes["problems"][0];
    assert_eq!((&problem["file"], &problem["line"]), (&json!("SKILL.md"), &json!(1)));
    assert_eq!(problem["message"], "no valid frontmatter");
}

/// Each folder of `--skills` must exist, for every command that reads it.
#[test]
fn missing_folder_of_the_option_is_an_error() {
    let test = some_skills().file("file", "").link("dangling", "gone");
    let commands: [&[&str]; 11] = [
        &["skills", "list"],
        &["skills", "check"],
        &["skills", "show", "tables"],
        &["skills", "setup", "tables"],
        &["tool", "list_skills"],
        &["tool", "get_skill", r#"{"skill_name":"tables"}"#],
        &["mcp"],
        &["demo"],
        &["doctor"],
        &["--dry-run", "hi"],
        &["chat", "hi"],
    ];
    let endpoint = |test: &Test| {
        let test = test.next_run().env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
        test.env("LLM_MODEL_NAME", "m")
    };
    for command in commands {
        for folder in ["nowhere", "file", "dangling"] {
            let folders = ["--skills", "skills", "--skills", folder];
            let folders = &folders[if folder == "nowhere" { 0 } else { 2 }..];
            let run = endpoint(&test).args(folders).args(command).run();
            // The endpoint, which is not running, is reported first.
            if command == ["doctor"] {
                run.stdout_has(&format!("{folder} ")).stdout_has("failure  skills: ");
                continue;
            }
            let run = run.status(78).stdout_is_empty();
            run.stderr_has(folder).stderr_has("hint: ");
        }
    }
    let answer = endpoint(&test).args(["-o", "json", "--skills", "nowhere", "hi"]);
    let result = answer.run().status(78).stdout_json();
    assert_eq!(result["error"]["kind"], "config", "{result}");
    for words in [&["list"][..], &["check"], &["show", "tables"]] {
        let run = test.next_run().args(["skills"]).args(words);
        let run = run.args(["--skills", "nowhere", "--json"]).run().status(78);
        let failure = run.stdout_json();
        assert_eq!(failure["error"]["kind"], "config", "{failure}");
        let message = failure["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("nowhere does not exist"), "{message}");
    }
    // These commands read no skills folder, or create it.
    for words in [&["facts", "list"][..], &["sessions", "list"], &["skills", "new", "x"]] {
        let test = test.next_run().env("MEMORY_PATH", "facts.md");
        let run = test.args(["--skills", "other/place"]).args(words).run();
        run.success();
    }
    assert!(test.exists("other/place/x/SKILL.md"));
}

/// At least one folder of `SKILLS_FOLDER_PATH` must exist; a warning names each missing one.
#[test]
fn missing_folders_of_the_variable_are_warnings_if_one_exists() {
    let test = some_skills().file("file", "");
    let some = test.next_run().env("SKILLS_FOLDER_PATH", "gone:skills:file");
    for words in [
        &["-q", "skills", "list"][..],
        &["-q", "skills", "show", "tables"],
        &["-q", "tool", "list_skills"],
        &["-q", "--dry-run", "hi"],
    ] {
        let test = some.next_run().env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
        let run = test.env("LLM_MODEL_NAME", "m").args(words).run().success();
        for line in ["/gone does not exist\n", "/file cannot be read: it is not a folder\n"] {
            let times = run.stderr.matches(line).count();
            run.check(times == 1, format_args!("once: {line}"));
        }
        run.stdout_has("tables");
    }
    let none = test.next_run().env("SKILLS_FOLDER_PATH", "gone:file");
    for words in [&["skills", "list"][..], &["tool", "list_skills"], &["mcp"]] {
        let run = none.next_run().args(words).run().status(78).stdout_is_empty();
        run.stderr_has("/gone does not exist; the skills folder ").stderr_has("hint: ");
    }
    // The option overrides the variable, and the demo needs neither.
    let typed = none.next_run().args(["--skills", "skills", "skills", "list"]);
    typed.run().success();
    none.next_run().args(["demo"]).run().success();
}

/// A skill is found by name, alias and path; the details include its document and its files.
#[test]
fn show_prints_all_details_of_a_skill() {
    let test = some_skills();
    for name in ["tables", "table-maker", "skills/tables", "./skills/tables/"] {
        let shown = test.clone().args(["skills", "show", name]).run().success();
        shown
            .stdout_has("name:         tables\n")
            .stdout_has("license:      MIT\n")
            .stdout_has("metadata:     {\"version\":\"1.0\"}\n")
            .stdout_has("files:        2\n  SKILL.md\n  scripts/make.py");
    }
    let shown = test.clone().args(["skills", "show", "tables", "--json"]);
    let shown = shown.run().success().stdout_json();
    assert_eq!(shown["files"], json!(["SKILL.md", "scripts/make.py"]));
    assert_eq!(shown["frontmatter"]["metadata"], json!({"version": "1.0"}));
    assert_eq!((&shown["name"], &shown["status"]), (&json!("tables"), &json!("warning")));
    test.args(["skills", "show", "notes"]).run().success().stdout_has(
        "problems:     1\n  error: SKILL.md line 1: no valid frontmatter\n    fix: start ",
    );
}

#[test]
fn show_suggests_existing_skills() {
    let test = some_skills();
    test.clone()
        .args(["skills", "show", "tabels"])
        .run()
        .status(1)
        .stdout("")
        .stderr_has("did you mean `tables`?");
    test.clone()
        .args(["skills", "show", "./skills"])
        .run()
        .status(1)
        .stderr_has("contains no SKILL.md: it is not a skill");
    test.args(["skills", "show", "./nowhere"])
        .run()
        .status(1)
        .stderr_has("failed to open `./nowhere`: no such file");
}

/// A broken venv is reported for its skill, whichever other interpreter could run its scripts.
#[test]
fn broken_venv_is_reported() {
    let test = some_skills().file("skills/tables/venv/pyvenv.cfg", "");
    let list = test.args(["skills", "list", "--json"]).run().success().stdout_json();
    let tables = &list["skills"][2];
    assert_eq!((&tables["status"], &tables["python"]), (&json!("error"), &json!(null)));
    let venv = &tables["problems"][1];
    assert_eq!((&venv["rule"], &venv["file"]), (&json!("broken-venv"), &json!("venv")));
}

/// A new skill works: its document is valid, and its script runs.
#[test]
fn new_creates_a_working_skill() {
    let test = Test::new();
    let created = test.clone().args(["skills", "new", "word-count"]).run().success();
    created.stdout("skills/word-count\n").stderr_has("edit skills/word-count/SKILL.md");
    let list = test.clone().args(["skills", "list", "--json"]).run().stdout_json();
    assert_eq!(list["skills"][0]["status"], "ok");
    let call = json!({
        "skill_name": "word-count",
        "file_path": "scripts/main.py",
        "args": [test.path("skills/word-count/SKILL.md")],
    });
    let run = test.clone().args(["tool", "run_python_script", &call.to_string()]);
    let result = run.run().success().stdout_json();
    let counts = result["stdout"].as_str().unwrap();
    assert!(counts.starts_with("{\"lines\": "), "{counts}");
    let created =
        test.args(["skills", "new", "place", "--skills", "other/more", "--json"]).run().success();
    let created = created.stdout_json();
    let path = created["path"].as_str().unwrap();
    assert!(path.ends_with("/other/more/place"), "{path}");
    assert_eq!(created["document"], "SKILL.md");
}

/// Names that YAML would read as a number, a date or a boolean.
#[test]
fn new_quotes_names_that_yaml_would_convert() {
    let names = [
        "3000",
        "0",
        "007",
        "0x1f",
        "0b1",
        "0o17",
        "1e3",
        "12-5",
        "2026-11-21",
        "2026-13-45",
        "99999999999999999999",
        "true",
        "false",
        "null",
        "on",
        "off",
        "yes",
        "no",
        "y",
        "n",
        "3d",
        "name",
        "title",
    ];
    let test = Test::new();
    for name in names {
        let created = test.clone().args(["skills", "new", name]).run();
        created.success().stdout(&format!("skills/{name}\n"));
    }
    let list = test.clone().args(["skills", "list", "--json"]).run();
    for skill in list.stdout_json()["skills"].as_array().unwrap() {
        assert_eq!(skill["status"], "ok", "{skill}");
    }
    let document = test.read("skills/2026-11-21/SKILL.md");
    assert!(document.starts_with("---\nname: \"2026-11-21\"\n"), "{document}");
    assert!(test.read("skills/name/SKILL.md").starts_with("---\nname: name\n"));
    let check = test.args(["skills", "check", "--json"]).run().success();
    let check = check.stdout_json();
    assert_eq!((&check["skills"], &check["problems"]), (&json!(names.len()), &json!([])));
}

/// Existing files are never changed, and a name that clients refuse is not created.
#[test]
fn new_refuses_existing_and_invalid_names() {
    let test = some_skills();
    test.clone()
        .args(["skills", "new", "tables"])
        .run()
        .status(1)
        .stderr_has("failed to write the skill `tables`: it already exists in `")
        .stderr_has("hint: nothing was changed");
    assert_eq!(test.read("skills/tables/SKILL.md"), TABLES);
    test.clone().args(["skills", "new", "My Tables"]).run().status(2).stderr_has("try `my-tables`");
    let reported = test.clone().args(["skills", "new", "файл-2"]).run();
    reported.status(2).stderr_has("only letters a-z").stderr_lacks("hint: ");
    for name in ["..", ".", "x/..", "a--b", ""] {
        test.clone().args(["skills", "new", name]).run().status(2);
    }
}

/// A name cannot lead out of the skills folder.
#[test]
fn new_refuses_paths() {
    let test = Test::new().folder("skills").folder("x");
    let absolute = test.path("y").display().to_string();
    for word in ["../out", "x/y", "./new dir/x", "/y", "y/", "/", &absolute] {
        let run = test.clone().args(["skills", "new", word]).run();
        run.status(2)
            .stdout("")
            .stderr_has(&format!("`{word}` is a path, not a skill name"))
            .stderr_has("hint: name the folder of the new skill with --skills DIR");
    }
    for path in ["../out", "x/y", "new dir", "y", "skills/y"] {
        assert!(!test.exists(path), "{path}");
    }
}

/// A problem of the folder is not attributed to the name.
#[test]
fn new_reports_problems_of_the_folder() {
    let test = Test::new().file("a-file", "").link("nowhere", "missing");
    // In `/proc` no user can create a folder, not even root.
    for (folder, reported) in [
        ("a-file", "a-file`: it is not a folder"),
        ("a-file/more", "a-file/more`: Not a directory"),
        ("nowhere", "nowhere`: it is a link whose target cannot be reached"),
        ("/proc", "failed to write in the skills folder `/proc`: "),
        ("/proc/no", "failed to create the skills folder `/proc/no`: "),
    ] {
        let words = ["skills", "new", "x", "--skills", folder];
        let run = test.clone().args(words).run().status(1);
        run.stderr_has(reported)
            .stderr_has("hint: name a folder that you may write in with --skills DIR")
            .stderr_lacks("choose another name");
    }
    let test = test.file("skills/x", "");
    let run = test.clone().args(["skills", "new", "x"]).run().status(1);
    run.stderr_has("another file has its path");
    assert_eq!(test.read("skills/x"), "");
}

#[test]
fn unknown_commands_are_reported() {
    for (words, expected) in [
        (&["skills", "lsit"][..], "did you mean `skills list`?"),
        (&["skills", "are", "nice"], "skills-runner -- skills"),
        (&["skills", "show"], "skills show needs NAME"),
        (&["skills", "list", "x"], "skills list takes no arguments"),
        (&["skills", "show", "a", "b"], "skills show takes NAME"),
    ] {
        let run = Test::new().args(words.iter().copied()).run();
        run.status(2).stdout("").stderr_has(expected);
    }
}

/// A skill name where packages are expected is refused, so that no foreign package is installed.
#[test]
fn skill_name_in_place_of_a_package_is_refused() {
    let run = some_skills().args(["skills", "setup", "notes", "tables"]);
    run.run().status(2).stderr_has("`tables` is a skill").stderr_has("`tables>=0`");
}

/// `--dry-run` promises to change nothing, so commands without it are refused.
#[test]
fn dry_run_of_a_command_is_refused() {
    let test = some_skills();
    for words in [
        &["skills", "new", "x"][..],
        &["skills", "setup", "tables"],
        &["tool", "list_skills"],
        &["demo"],
        &["doctor"],
    ] {
        let run = test.clone().args(words.iter().copied()).args(["--dry-run"]);
        run.run().status(2).stdout("").stderr_has("--dry-run");
    }
    assert!(!test.exists("skills/x"));
}

/// Problems that the linter reports are neither hidden nor contradicted by `list` and `show`.
#[test]
fn list_and_show_report_the_same_problems_as_check() {
    let test = some_skills()
        .skill("linked", "---\nname: linked\ndescription: Links.\n---\n[x](nowhere.md)\n")
        .file("skills/more/inner/SKILL.md", TABLES)
        .link("skills/empty/out", "/etc");
    let json = |words: &[&str]| {
        let words = words.iter().chain(&["--json"]);
        test.clone().args(words).run().stdout_json()
    };
    let list = json(&["skills", "list"]);
    let check = json(&["skills", "check", "--no-scripts"]);
    let reported = |name: &str| -> Vec<Value> {
        let problems = check["problems"].as_array().unwrap().iter();
        let own = problems.filter(|problem| problem["skill"] == name).cloned();
        own.map(|mut problem| {
            let fields = problem.as_object_mut().unwrap();
            fields.remove("skill");
            fields.remove("path");
            problem
        })
        .collect()
    };
    let skills = list["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 5);
    for skill in skills {
        let name = skill["name"].as_str().unwrap();
        assert_eq!(skill["problems"], json!(reported(name)), "{name}");
        assert!(!reported(name).is_empty(), "{name}");
        // A folder that is not a skill is not shown as one.
        if skill["problems"][0]["rule"] == "no-document" {
            let show = test.clone().args(["skills", "show", name]).run();
            show.status(1).stderr_has("it has no SKILL.md");
            continue;
        }
        let shown = json(&["skills", "show", name]);
        assert_eq!(shown["problems"], skill["problems"], "{name}");
        assert_eq!(shown["status"], skill["status"], "{name}");
    }
    let status = |at: usize| skills[at]["status"].as_str().unwrap();
    assert_eq!([status(0), status(1)], ["error", "warning"]);
}

/// A failure is printed as an object in addition to the lines on standard error; wrong usage is
/// not.
#[test]
fn failure_as_json_is_an_object() {
    let test = some_skills();
    let table: [(&[&str], i32, &str, &str); 5] = [
        (&["skills", "show", "tabels"], 1, "io", "did you mean `tables`?"),
        (&["skills", "check", "./gone"], 1, "io", "failed to open"),
        (&["skills", "setup", "gone"], 1, "io", "there is no skill"),
        (&["skills", "new", "tables"], 1, "io", "it already exists"),
        (&["skills", "list", "--env-file", "gone"], 78, "config", "the file does not exist"),
    ];
    for (words, status, kind, message) in table {
        let run = test.clone().args(words).args(["--json"]).run();
        let run = run.status(status).stderr_has(message);
        let failure = run.stdout_json();
        assert_eq!(failure["error"]["kind"], kind, "{failure}");
        let reported = failure["error"]["message"].as_str().unwrap();
        assert!(reported.contains(message), "{failure}");
    }
    let run = test.clone().args(["skills", "show", "tabels", "--json"]);
    assert_eq!(run.run().stdout_json()["error"]["hint"], "`skills-runner skills list` lists all");
    let text = test.clone().args(["skills", "show", "tabels"]).run();
    text.status(1).stdout_is_empty();
    let usage = test.args(["skills", "show", "--json"]).run();
    usage.status(2).stdout_is_empty();
}

/// A problem of the folders is reported instead of an unknown name.
#[test]
fn unusable_folders_are_reported_instead_of_an_unknown_name() {
    let test = some_skills();
    let parent =
        format!("hint: name the folder above it: --skills {}", test.path("skills").display());
    let table = [
        ("./nowhere", "nowhere does not exist", "hint: create the folder"),
        ("skills/tables/SKILL.md", "it is a document; name the folder", "hint: "),
        ("skills/empty/readme.txt", "it is not a folder", "hint: name a skills folder"),
        ("skills/tables", "this is a skill, not a folder of skills", parent.as_str()),
    ];
    for (folder, cause, hint) in table {
        for word in ["show", "check", "setup"] {
            let args = ["skills", word, "tables", "--skills", folder];
            let run = test.clone().args(args).run();
            let run = match folder {
                "skills/tables" => run.status(1).stderr_has("failed to find the skill: "),
                _ => run.status(78).stderr_has("failed to read the configuration: "),
            };
            run.stderr_has(cause).stderr_has(hint).stderr_lacks("/./");
        }
    }
    let args = ["skills", "show", "gone", "--skills", "skills"];
    let run = test.clone().args(args).run().status(1);
    run.stderr_has("hint: `skills-runner skills list --skills skills` lists all");
    let run = test.args(["skills", "list", "--skills", ""]).run();
    run.status(2).stderr_has("--skills needs a folder");
}

/// A remedy can be typed as printed, wherever the skill was found.
#[test]
fn remedies_can_be_typed_for_the_skill_as_found() {
    let test = some_skills();
    let tables = test.path("skills/tables").display().to_string();
    let list = test.clone().args(["skills", "list", "--skills", "./skills"]);
    list.run().success().stderr_has(&format!("`skills-runner skills show {tables}` shows it"));
    let path = test.path("other/y").display().to_string();
    let created = test.args(["skills", "new", "y", "--skills", "other"]).run();
    created.success().stderr_has(&format!("`skills-runner skills check {path}` reports"));
}

/// The values are aligned, however long a field's name is.
#[test]
fn show_aligns_its_columns() {
    let document =
        "---\nname: x\ndescription: Does x.\ndisable-model-invocation: true\n---\nDo it.\n";
    let test = Test::new().skill("x", document);
    let run = test.args(["skills", "show", "x"]).run().success();
    run.stdout_has("name:                     x\n")
        .stdout_has("disable-model-invocation: true\n")
        .stdout_has("files:                    1\n");
}

/// A missing skill name: the error shows the correct usage.
#[test]
fn missing_name_shows_the_usage() {
    let run = Test::new().args(["skills", "show"]).run().status(2);
    run.stderr_has("hint: skills-runner skills show NAME\n").stderr_lacks("--");
    let run = Test::new().args(["skills", "setup"]).run().status(2);
    run.stderr_has("hint: skills-runner skills setup NAME [PACKAGE]...\n");
}

/// Only the first of many skills have their own line on standard error, and the suggested command
/// has the same folders.
#[test]
fn problem_lines_are_limited() {
    let test = (0..23).fold(Test::new(), |test, number| {
        test.file(&format!("some/s{number:02}/SKILL.md"), "# No fields\n\nText.\n")
    });
    let args = ["skills", "list", "--skills", "some"];
    let run = test.clone().args(args).run().success();
    assert_eq!(run.stderr.lines().count(), 21, "{}", run.stderr);
    run.stderr_has(
        "… and 3 more skills have problems: `skills-runner skills check --skills some` lists them\n",
    );
    let args = ["skills", "list", "--skills", "my skills"];
    let run = test.clone().folder("my skills").args(args).run();
    run.success().stderr_has("`skills-runner skills new NAME --skills 'my skills'` creates one");
    let args = ["skills", "list", "--skills", "some/s00"];
    let run = test.args(args).run().success();
    run.stderr_has("this is a skill, not a folder of skills: name the folder above it")
        .stderr_lacks("skills new");
}

/// A folder whose name is not UTF-8 does not hide other skills.
#[test]
fn names_that_are_not_utf8_are_listed() {
    let test = some_skills();
    let odd = std::ffi::OsStr::from_bytes(b"odd-\xff");
    std::fs::create_dir(test.path("skills").join(odd)).unwrap();
    let list = test.args(["skills", "list", "--json"]).run().success();
    let list = list.stdout_json();
    assert_eq!(list["skills"].as_array().unwrap().len(), 3);
    assert_eq!(list["problems"][0]["rule"], "name-not-utf8");
}

/// The description is printed unchanged.
#[test]
fn description_keeps_its_lines() {
    let document = "---\nname: lines\ndescription: |\n  One.\n    Two.\nlicense: MIT\n---\nBody\n";
    let test = Test::new().skill("lines", document);
    let list = test.next_run().args(["skills", "list", "--json"]).run();
    let list = list.success().stdout_json();
    assert_eq!(list["skills"][0]["description"], "One.\n  Two.\n");
    let listed = test.next_run().args(["tool", "list_skills"]).run();
    let listed = listed.success().stdout_json();
    assert_eq!(listed["skills"][0]["description"], "One.\n  Two.\n");
    test.args(["skills", "list"]).run().stdout("lines\tOne. Two.\n");
}

/// Every command reports a document that is a folder in the same way, with a remedy that works.
#[test]
fn document_that_is_a_folder_is_reported_by_every_command() {
    const CAUSE: &str = "cannot be read: a folder, not a file";
    const FIX: &str = "fix: rename the folder, and write a file of this name in its place";
    let test = Test::new().folder("skills/f/SKILL.md");
    let run = |words: &[&str]| test.next_run().args(words).run();
    run(&["skills", "list"]).success().stdout(&format!("f\t(cannot be used: SKILL.md {CAUSE})\n"));
    run(&["skills", "check", "f"])
        .status(1)
        .stdout_has(&format!("SKILL.md: error[unreadable-document]: it {CAUSE}\n"))
        .stdout_has(FIX)
        .stdout_lacks("no SKILL.md");
    run(&["skills", "show", "f"])
        .success()
        .stdout_has(CAUSE)
        .stdout_has(FIX)
        .stdout_lacks("no SKILL.md");
    run(&["doctor"])
        .stdout_has(CAUSE)
        .stdout_has("fix: rename the folder, and write a file")
        .stdout_lacks("ask for one of its files")
        .stdout_lacks("no SKILL.md");
    // A file created as the remedy says, or one in another letter case, makes a skill.
    let test = test.file("skills/f/skill.md", "---\nname: f\ndescription: Works.\n---\n\nText.\n");
    let run = |words: &[&str]| test.next_run().args(words).run();
    run(&["skills", "list"]).success().stdout("f\tWorks.\n");
    run(&["tool", "get_skill", "{\"skill_name\": \"f\"}"]).success().stdout_has("Text.");
}

/// A FIFO and an invalid path, in words for users.
#[test]
fn messages_for_users_omit_advice_for_models() {
    let test = Test::new().folder("skills/p");
    let fifo = Command::new("mkfifo").arg(test.path("skills/p/SKILL.md")).status();
    assert!(fifo.unwrap().success());
    for word in ["list", "check", "show"] {
        let run = test.next_run().args(["skills", word]);
        let run = if word == "list" { run } else { run.args(["p"]) };
        let run = run.run();
        run.stdout_has("cannot be read: a FIFO, not a regular file")
            .stdout_lacks("use another file");
    }
    for word in ["show", "check"] {
        test.next_run().args(["skills", word, "./nothere"]).run().status(1).stderr(
            "skills-runner: failed to open `./nothere`: no such file or folder\n\
                 hint: an argument with a slash is the path of a skill's folder; \
                 `skills-runner skills list` lists the names\n",
        );
    }
}
