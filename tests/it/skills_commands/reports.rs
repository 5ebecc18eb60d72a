//! Wrong usage and unusable folders.

use super::{TABLES, some_skills};
use crate::harness::Test;
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

#[test]
fn unknown_commands_are_reported() {
    for (words, expected) in [
        (&["skills", "lsit"][..], "did you mean `skills list`?"),
        (&["skills", "are", "nice"], "skills-runner -- skills"),
        (&["skills", "show"], "skills show needs NAME"),
        (&["facts", "list", "x"], "facts list takes no arguments"),
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
    let table = [
        ("./nowhere", "nowhere does not exist", "hint: create the folder"),
        ("skills/tables/SKILL.md", "it is a document; name the folder", "hint: "),
        ("skills/empty/readme.txt", "it is not a folder", "hint: name a skills folder"),
    ];
    for (folder, cause, hint) in table {
        for word in ["show", "check", "setup"] {
            let args = ["skills", word, "tables", "--skills", folder];
            let run = test.clone().args(args).run();
            let run = run.status(78).stderr_has("failed to read the configuration: ");
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
    let test = test.file("skills/tables/a.py", "import nobody_a\n");
    let check = test.clone().args(["skills", "check", "./skills/tables"]).run();
    check.stdout_has(&format!("fix: `skills-runner skills setup {tables} PACKAGE`"));
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

/// Only the first of many skills are named on standard error, and the suggested command has the
/// same folders.
#[test]
fn names_of_skills_with_problems_are_limited() {
    let test = (0..23).fold(Test::new(), |test, number| {
        test.file(&format!("some/s{number:02}/SKILL.md"), "# No fields\n\nText.\n")
    });
    let args = ["skills", "list", "--skills", "some"];
    let run = test.clone().args(args).run().success();
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    run.stderr_has("problems in the documents of s00, s01, s02, ")
        .stderr_has(", s19 and 3 more: `skills-runner skills check --skills some` lists them\n");
    let args = ["skills", "list", "--skills", "my skills"];
    let run = test.clone().folder("my skills").args(args).run();
    run.success().stderr_has("`skills-runner skills new NAME --skills 'my skills'` creates one");
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
