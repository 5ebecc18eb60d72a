//! Severities, counts and the exit status.

use crate::harness::Test;
use serde_json::{Value, json};

/// A skill without faults whose packages are not installed, a skill with a warning, and one with
/// an error.
fn some_skills() -> Test {
    let document =
        |name: &str, text: &str| format!("---\nname: {name}\ndescription: Does x.\n---\n{text}\n");
    Test::new()
        .skill("clean", &document("clean", "pip install docxtpl nobody-a"))
        .file("skills/clean/scripts/a.py", "import docxtpl, nobody_a\n")
        .skill("guess", &document("guess", "Run scripts/a.py."))
        .file("skills/guess/scripts/a.py", "import docxtpl\n")
        .skill("wrong", &document("wrong", "Run scripts/a.py."))
        .file("skills/wrong/scripts/a.py", "def f(:\n")
}

/// A clean checkout of a skill passes on a machine without its packages, unless asked.
#[test]
fn exit_status_depends_on_the_severities() {
    let test = some_skills();
    for (words, status, counts) in [
        (&["clean"][..], 0, "1 skill checked: 0 errors, 0 warnings, 1 note\n"),
        (&["clean", "--strict"], 0, "0 errors, 0 warnings, 1 note\n"),
        (&["clean", "--here"], 1, "1 error, 0 warnings\n"),
        (&["clean", "--here", "--no-scripts"], 0, "0 errors, 0 warnings\n"),
        (&["guess"], 0, "0 errors, 1 warning, 1 note\n"),
        (&["guess", "--strict"], 1, "0 errors, 1 warning, 1 note\n"),
        (&["guess", "--strict", "--here"], 1, "1 error, 1 warning\n"),
        (&["wrong"], 1, "1 error, 0 warnings\n"),
        (&[], 1, "3 skills checked: 1 error, 1 warning, 2 notes\n"),
    ] {
        let run = test.next_run().args(["skills", "check"]).args(words.iter().copied()).run();
        run.status(status).stderr_has(counts);
    }
    let note = test.next_run().args(["skills", "check", "clean"]).run();
    note.stdout_has("skills/clean/scripts/a.py:1: note[missing-import]: missing on this machine: ");
    let error = test.next_run().args(["skills", "check", "clean", "--here"]).run();
    error.status(1).stdout_has("scripts/a.py:1: error[missing-import]: missing on this machine: ");
    // Without any Python.
    let none = test.next_run().env("PATH", "/nowhere").args(["skills", "check", "clean"]);
    none.run().success().stdout_has("skills/clean: note[no-python]: no Python was found");
    let none = test.next_run().env("PATH", "/nowhere").args(["skills", "check", "--here", "clean"]);
    none.run().status(1).stdout_has("skills/clean: error[no-python]: no Python was found");
}

#[test]
fn options_of_the_linter_are_refused_elsewhere() {
    for words in [&["skills", "list", "--here"][..], &["--strict", "hi"], &["doctor", "--strict"]] {
        let run = Test::new().args(words.iter().copied()).run().status(2);
        run.stderr_has(" works only with `skills check`\n");
    }
}

/// `list`, `show`, `check` and `doctor` take the problems of a skill from the same place.
#[test]
fn all_commands_count_alike() {
    let test = some_skills();
    let json = |words: &[&str]| test.next_run().args(words).args(["--json"]).run().stdout_json();
    let check = json(&["skills", "check"]);
    let list = json(&["skills", "list"]);
    let doctor = json(&["doctor"]);
    let problems = |report: &Value| report["problems"].as_array().unwrap().len();
    let statuses = [("clean", "note", 1), ("guess", "warning", 2), ("wrong", "error", 1)];
    for (at, (name, status, count)) in statuses.into_iter().enumerate() {
        let listed = &list["skills"][at];
        assert_eq!((&listed["name"], &listed["status"]), (&json!(name), &json!(status)));
        assert_eq!(problems(listed), count, "{listed}");
        let shown = json(&["skills", "show", name]);
        assert_eq!((&shown["status"], &shown["problems"]), (&json!(status), &listed["problems"]));
        let one = json(&["skills", "check", name]);
        assert_eq!((&one["status"], problems(&one)), (&json!(status), count));
        let row = &doctor["checks"][10]["details"]["skills"][at];
        assert_eq!((&row["name"], problems(row)), (&json!(name), count), "{row}");
    }
    let counts = ["errors", "warnings", "notes"].map(|key| check[key].as_u64().unwrap());
    assert_eq!((counts, problems(&check)), ([1, 1, 2], 4));
    let counts = "1 error, 1 warning, 2 notes";
    test.next_run()
        .args(["doctor"])
        .run()
        .stdout_has(&format!("  {counts}: `skills-runner skills "));
    let show = test.next_run().args(["skills", "show", "guess"]).run();
    show.stdout_has("problems:     0 errors, 1 warning, 1 note\n");
}

/// `list` starts no Python, whatever the skills contain.
#[test]
fn list_as_text_starts_no_python() {
    let test = some_skills().executable("bin/python3", "#!/bin/sh\ntouch ../started\n");
    let path = test.path("bin").display().to_string();
    let list = test.next_run().env("PATH", &path).args(["skills", "list"]).run();
    list.success().stderr("");
    assert!(!test.exists("started"));
}

/// A skill that cannot be used has an error, whatever the cause.
#[test]
fn unusable_skill_has_an_error() {
    let test = Test::new()
        .file("elsewhere.md", "# Elsewhere\n")
        .folder("skills/led-out")
        .link("skills/led-out/SKILL.md", "../../elsewhere.md")
        .folder("skills/gone")
        .link("skills/gone/SKILL.md", "nowhere.md")
        .folder("skills/folder/SKILL.md")
        .file("skills/large/SKILL.md", vec![b'x'; (1 << 20) + 1])
        .file("skills/binary/SKILL.md", b"\xff\xfe")
        .folder("skills/empty");
    let list = test.args(["skills", "list", "--json"]).run().success().stdout_json();
    let skills = list["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 6);
    for skill in skills {
        assert_eq!(skill["status"], "error", "{skill}");
    }
}
