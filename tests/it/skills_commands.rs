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

/// Each skill is a line: its name, a tab, what it does or why it cannot be used.
#[test]
fn list_gives_a_line_each() {
    let test = some_skills();
    let expected = "empty\t(cannot be used: it has no SKILL.md)\n\
                    notes\tKeeps notes\n\
                    tables\tMakes tables.\n";
    test.clone()
        .args(["skills", "list"])
        .run()
        .success()
        .stdout(expected)
        .stderr_has("the skill `notes` has 1 problem: `skills-runner skills show notes` tells it")
        .stderr_has("the skill `tables` has 1 problem: ");
    test.args(["skills"]).run().success().stdout(expected);
}

/// The fields that interface.md names.
#[test]
fn list_gives_programs_every_field() {
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

/// Each folder of `--skills` must be there, for every command that looks into it.
#[test]
fn a_missing_folder_that_was_typed_is_an_error() {
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
        let test = test.again().env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
        test.env("LLM_MODEL_NAME", "m")
    };
    for command in commands {
        for folder in ["nowhere", "file", "dangling"] {
            let folders = ["--skills", "skills", "--skills", folder];
            let folders = &folders[if folder == "nowhere" { 0 } else { 2 }..];
            let run = endpoint(&test).args(folders).args(command).run();
            if command == ["demo"] && folder == "nowhere" {
                run.status(78);
                continue;
            }
            // The endpoint, which is not there, comes first.
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
        let run = test.again().args(["skills"]).args(words);
        let run = run.args(["--skills", "nowhere", "--json"]).run().status(78);
        let failure = run.stdout_json();
        assert_eq!(failure["error"]["kind"], "config", "{failure}");
        let message = failure["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("nowhere does not exist"), "{message}");
    }
    // These look into no skills folder, or make it.
    for words in [&["facts", "list"][..], &["sessions", "list"], &["skills", "new", "x"]] {
        let test = test.again().env("MEMORY_PATH", "facts.md");
        let run = test.args(["--skills", "other/place"]).args(words).run();
        run.success();
    }
    assert!(test.exists("other/place/x/SKILL.md"));
}

/// Of `SKILLS_FOLDER_PATH` one must be there; a warning names each other.
#[test]
fn missing_folders_of_the_variable_are_warnings_beside_others() {
    let test = some_skills().file("file", "");
    let some = test.again().env("SKILLS_FOLDER_PATH", "gone:skills:file");
    for words in [
        &["-q", "skills", "list"][..],
        &["-q", "skills", "show", "tables"],
        &["-q", "tool", "list_skills"],
        &["-q", "--dry-run", "hi"],
    ] {
        let test = some.again().env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
        let run = test.env("LLM_MODEL_NAME", "m").args(words).run().success();
        for line in ["/gone does not exist\n", "/file cannot be read: it is no folder\n"] {
            let times = run.stderr.matches(line).count();
            run.demand(times == 1, format_args!("once: {line}"));
        }
        run.stdout_has("tables");
    }
    let none = test.again().env("SKILLS_FOLDER_PATH", "gone:file");
    for words in [&["skills", "list"][..], &["tool", "list_skills"], &["mcp"]] {
        let run = none.again().args(words).run().status(78).stdout_is_empty();
        run.stderr_has("/gone does not exist; the skills folder ").stderr_has("hint: ");
    }
    // What was typed takes the place of the variable, and the demo needs neither.
    let typed = none.again().args(["--skills", "skills", "skills", "list"]);
    typed.run().success();
    none.again().args(["demo"]).run().success();
}

/// By name, by alias, by path; what a document says, which files there are.
#[test]
fn show_tells_everything_of_one() {
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
        "problems:     1\n  error: SKILL.md line 1: no valid frontmatter\n    fix: begin ",
    );
}

#[test]
fn show_says_what_there_is_instead() {
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
        .stderr_has("holds no SKILL.md: it is no skill");
    test.args(["skills", "show", "./nowhere"])
        .run()
        .status(1)
        .stderr_has("failed to open `./nowhere`: no such file");
}

/// A broken venv is the skill's problem, whatever else could run its scripts.
#[test]
fn a_broken_venv_is_told() {
    let test = some_skills().file("skills/tables/venv/pyvenv.cfg", "");
    let list = test.args(["skills", "list", "--json"]).run().success().stdout_json();
    let tables = &list["skills"][2];
    assert_eq!((&tables["status"], &tables["python"]), (&json!("error"), &json!(null)));
    let venv = &tables["problems"][1];
    assert_eq!((&venv["rule"], &venv["file"]), (&json!("broken-venv"), &json!("venv")));
}

/// What a new skill promises works: its document loads, its script runs.
#[test]
fn new_writes_a_skill_that_works() {
    let test = Test::new();
    let made = test.clone().args(["skills", "new", "word-count"]).run().success();
    made.stdout("skills/word-count\n").stderr_has("edit skills/word-count/SKILL.md");
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
    let made =
        test.args(["skills", "new", "place", "--skills", "other/more", "--json"]).run().success();
    let made = made.stdout_json();
    let path = made["path"].as_str().unwrap();
    assert!(path.ends_with("/other/more/place"), "{path}");
    assert_eq!(made["document"], "SKILL.md");
}

/// A name that YAML would take for a number, a date or a truth value.
#[test]
fn new_writes_every_name_as_a_text() {
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
        let made = test.clone().args(["skills", "new", name]).run();
        made.success().stdout(&format!("skills/{name}\n"));
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

/// What exists is never touched, and a name that clients refuse is not made.
#[test]
fn new_refuses_what_would_be_no_skill() {
    let test = some_skills();
    test.clone()
        .args(["skills", "new", "tables"])
        .run()
        .status(1)
        .stderr_has("failed to write the skill `tables`: it exists already, in `")
        .stderr_has("hint: nothing was changed");
    assert_eq!(test.read("skills/tables/SKILL.md"), TABLES);
    test.clone()
        .args(["skills", "new", "My Tables"])
        .run()
        .status(2)
        .stderr_has("`my-tables` would be one");
    let told = test.clone().args(["skills", "new", "Café au lait"]).run();
    told.status(2).stderr_has("hint: `cafe-au-lait` would be one");
    let told = test.clone().args(["skills", "new", "файл-2"]).run();
    told.status(2)
        .stderr_has("only lowercase letters a-z, digits and hyphens")
        .stderr_lacks("hint: ");
    for name in ["..", ".", "x/..", "a--b", ""] {
        test.clone().args(["skills", "new", name]).run().status(2);
    }
}

/// A name is no way out of the skills folder.
#[test]
fn new_takes_no_path() {
    let test = Test::new().folder("skills").folder("x");
    let absolute = test.path("y").display().to_string();
    let above = test.path("").display().to_string();
    for (word, hint) in [
        ("../out", "skills new out --skills .."),
        ("x/y", "skills new y --skills x"),
        ("./new dir/x", "skills new x --skills './new dir'"),
        ("/y", "skills new y --skills /"),
        ("y/", "skills new y"),
        ("/", "skills new NAME"),
        (&absolute, &format!("skills new y --skills {}", above.trim_end_matches('/'))),
    ] {
        for more in [&[][..], &["--skills", "skills"]] {
            let run = test.clone().args(["skills", "new", word]).args(more).run();
            run.status(2)
                .stdout("")
                .stderr_has(&format!("`{word}` is a path, not a name for a skill"))
                .stderr_has(&format!("hint: `skills-runner {hint}` writes it "));
        }
    }
    for path in ["../out", "x/y", "new dir", "y", "skills/y"] {
        assert!(!test.exists(path), "{path}");
    }
}

/// Where the folder is at fault, the name is not blamed.
#[test]
fn new_tells_what_is_wrong_with_the_folder() {
    let test = Test::new().file("a-file", "").link("nowhere", "missing");
    // In `/proc` nobody makes a folder, not even a superuser.
    for (folder, told) in [
        ("a-file", "a-file`: it is no folder"),
        ("a-file/more", "a-file/more`: Not a directory"),
        ("nowhere", "nowhere`: it is a link that leads nowhere"),
        ("/proc", "failed to write in the skills folder `/proc`: "),
        ("/proc/no", "failed to make the skills folder `/proc/no`: "),
    ] {
        let words = ["skills", "new", "x", "--skills", folder];
        let run = test.clone().args(words).run().status(1);
        run.stderr_has(told)
            .stderr_has("hint: --skills DIR or SKILLS_FOLDER_PATH names another folder")
            .stderr_lacks("choose another name");
    }
    let test = test.file("skills/x", "");
    let run = test.clone().args(["skills", "new", "x"]).run().status(1);
    run.stderr_has("something else is in its place");
    assert_eq!(test.read("skills/x"), "");
}

#[test]
fn words_that_are_no_command_are_told() {
    for (words, expected) in [
        (&["skills", "lsit"][..], "did you mean `skills list`?"),
        (&["skills", "are", "nice"], "comes after --"),
        (&["skills", "show"], "skills show needs the name of a skill"),
        (&["skills", "list", "x"], "skills list takes no names"),
        (&["skills", "show", "a", "b"], "skills show takes one name"),
    ] {
        let run = Test::new().args(words.iter().copied()).run();
        run.status(2).stdout("").stderr_has(expected);
    }
}

/// Two skills where one and packages are due: no stranger's package is installed.
#[test]
fn a_skill_is_no_package() {
    let run = some_skills().args(["skills", "setup", "notes", "tables"]);
    run.run().status(2).stderr_has("`tables` is a skill").stderr_has("`tables>=0`");
}

/// `--dry-run` promises that nothing happens; where it cannot, nothing does.
#[test]
fn a_dry_run_of_a_command_is_refused() {
    let test = some_skills();
    for words in [
        &["skills", "check", "--fix"][..],
        &["skills", "new", "x"],
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

/// Nothing that the linter calls wrong is hidden by the list, nor told
/// otherwise.
#[test]
fn list_and_show_tell_what_check_tells() {
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
    let told = |name: &str| -> Vec<Value> {
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
        assert_eq!(skill["problems"], json!(told(name)), "{name}");
        assert!(!told(name).is_empty(), "{name}");
        // What is no skill is not shown as one.
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

/// A failure is an object too, beside the lines for people; wrong usage is not.
#[test]
fn programs_get_a_failure_as_an_object() {
    let test = some_skills();
    let table: [(&[&str], i32, &str, &str); 5] = [
        (&["skills", "show", "tabels"], 1, "io", "did you mean `tables`?"),
        (&["skills", "check", "./gone"], 1, "io", "failed to open"),
        (&["skills", "setup", "gone"], 1, "io", "there is no skill"),
        (&["skills", "new", "tables"], 1, "io", "it exists already"),
        (&["skills", "list", "--env-file", "gone"], 78, "config", "there is no such file"),
    ];
    for (words, status, kind, message) in table {
        let run = test.clone().args(words).args(["--json"]).run();
        let run = run.status(status).stderr_has(message);
        let failure = run.stdout_json();
        assert_eq!(failure["error"]["kind"], kind, "{failure}");
        let told = failure["error"]["message"].as_str().unwrap();
        assert!(told.contains(message), "{failure}");
    }
    let run = test.clone().args(["skills", "show", "tabels", "--json"]);
    assert_eq!(run.run().stdout_json()["error"]["hint"], "`skills-runner skills list` gives all");
    let text = test.clone().args(["skills", "show", "tabels"]).run();
    text.status(1).stdout_is_empty();
    let usage = test.args(["skills", "show", "--json"]).run();
    usage.status(2).stdout_is_empty();
}

/// What is wrong with the folders is told, not that a name is unknown in them.
#[test]
fn a_skill_is_not_found_for_the_reason_there_is() {
    let test = some_skills();
    let above =
        format!("hint: name the folder above it: --skills {}", test.path("skills").display());
    let table = [
        ("./nowhere", "nowhere does not exist", "hint: make the folder"),
        ("skills/tables/SKILL.md", "it is a document; name the folder", "hint: "),
        ("skills/empty/readme.txt", "it is no folder", "hint: name a folder of skills"),
        ("skills/tables", "this is a skill, not a folder of skills", above.as_str()),
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
    run.stderr_has("hint: `skills-runner skills list --skills skills` gives all");
    let run = test.args(["skills", "list", "--skills", ""]).run();
    run.status(2).stderr_has("--skills takes a folder");
}

/// A remedy can be typed as it stands, wherever the skill was found.
#[test]
fn remedies_name_a_skill_as_it_is_found() {
    let test = some_skills();
    let tables = test.path("skills/tables").display().to_string();
    let list = test.clone().args(["skills", "list", "--skills", "./skills"]);
    list.run().success().stderr_has(&format!("`skills-runner skills show {tables}` tells it"));
    let path = test.path("other/y").display().to_string();
    let made = test.args(["skills", "new", "y", "--skills", "other"]).run();
    made.success().stderr_has(&format!("`skills-runner skills check {path}` tells"));
}

/// However long a field's name is, the values stand below each other.
#[test]
fn show_keeps_its_columns() {
    let document =
        "---\nname: x\ndescription: Does x.\ndisable-model-invocation: true\n---\nDo it.\n";
    let test = Test::new().skill("x", document);
    let run = test.args(["skills", "show", "x"]).run().success();
    run.stdout_has("name:                     x\n")
        .stdout_has("disable-model-invocation: true\n")
        .stdout_has("files:                    1\n");
}

/// One skill's name is missing: the line that would be right is told.
#[test]
fn a_missing_name_gives_the_usage() {
    let run = Test::new().args(["skills", "show"]).run().status(2);
    run.stderr_has("hint: skills-runner skills show NAME\n").stderr_lacks("--");
    let run = Test::new().args(["skills", "setup"]).run().status(2);
    run.stderr_has("hint: skills-runner skills setup NAME [PACKAGE]...\n");
}

/// Of many skills only the first have a line of their own on standard error,
/// and what is to be typed next has the same folders.
#[test]
fn the_lines_of_problems_are_bounded() {
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
    run.success().stderr_has("`skills-runner skills new NAME --skills 'my skills'` writes one");
    let args = ["skills", "list", "--skills", "some/s00"];
    let run = test.args(args).run().success();
    run.stderr_has("this is a skill, not a folder of skills: name the folder above it")
        .stderr_lacks("skills new");
}

/// One folder whose name is no text costs no other skill its place.
#[test]
fn names_that_are_no_text_are_listed_too() {
    let test = some_skills();
    let odd = std::ffi::OsStr::from_bytes(b"odd-\xff");
    std::fs::create_dir(test.path("skills").join(odd)).unwrap();
    let list = test.args(["skills", "list", "--json"]).run().success();
    let list = list.stdout_json();
    assert_eq!(list["skills"].as_array().unwrap().len(), 3);
    assert_eq!(list["problems"][0]["rule"], "name-not-utf8");
}

/// What the frontmatter says is given as it says it.
#[test]
fn a_description_keeps_its_lines() {
    let document = "---\nname: lines\ndescription: |\n  One.\n    Two.\nlicense: MIT\n---\nBody\n";
    let test = Test::new().skill("lines", document);
    let list = test.again().args(["skills", "list", "--json"]).run();
    let list = list.success().stdout_json();
    assert_eq!(list["skills"][0]["description"], "One.\n  Two.\n");
    let listed = test.again().args(["tool", "list_skills"]).run();
    let listed = listed.success().stdout_json();
    assert_eq!(listed["skills"][0]["description"], "One.\n  Two.\n");
    test.args(["skills", "list"]).run().stdout("lines\tOne. Two.\n");
}

/// A document that is a folder is one thing for every command, with a remedy
/// that works.
#[test]
fn a_document_that_is_a_folder_is_told_alike_by_all() {
    const CAUSE: &str = "cannot be read: a folder, not a file";
    const FIX: &str = "fix: rename the folder, and write a file of this name in its place";
    let test = Test::new().folder("skills/f/SKILL.md");
    let run = |words: &[&str]| test.again().args(words).run();
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
    // What the remedy says, and a file in another letter case, make a skill.
    let test = test.file("skills/f/skill.md", "---\nname: f\ndescription: Works.\n---\n\nText.\n");
    let run = |words: &[&str]| test.again().args(words).run();
    run(&["skills", "list"]).success().stdout("f\tWorks.\n");
    run(&["tool", "get_skill", "{\"skill_name\": \"f\"}"]).success().stdout_has("Text.");
}

/// A FIFO and a path that is none, in words for a person.
#[test]
fn people_are_not_told_what_helps_only_a_model() {
    let test = Test::new().folder("skills/p");
    let fifo = Command::new("mkfifo").arg(test.path("skills/p/SKILL.md")).status();
    assert!(fifo.unwrap().success());
    for word in ["list", "check", "show"] {
        let run = test.again().args(["skills", word]);
        let run = if word == "list" { run } else { run.args(["p"]) };
        let run = run.run();
        run.stdout_has("cannot be read: a FIFO, not a regular file")
            .stdout_lacks("use another file");
    }
    for word in ["show", "check"] {
        test.again().args(["skills", word, "./nothere"]).run().status(1).stderr(
            "skills-runner: failed to open `./nothere`: no such file or folder\n\
                 hint: a word with a slash is the path of a skill's folder; \
                 `skills-runner skills list` gives the names\n",
        );
    }
}
