//! `skills new`.

use super::{TABLES, some_skills};
use crate::harness::Test;
use serde_json::json;

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
