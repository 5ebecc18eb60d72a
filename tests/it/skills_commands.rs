//! `skills list`, `show` and `new`.

use serde_json::json;

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
        .stderr_has("the skill `notes` has problems (1): `skills-runner skills show notes`");
    test.args(["skills"]).run().success().stdout(expected);
}

/// The fields that interface.md names.
#[test]
fn list_gives_programs_every_field() {
    let test = some_skills()
        .venv("tables")
        .args(["skills", "list", "--json"]);
    let list = test.run().success().stdout_json();
    let skills = list["skills"].as_array().unwrap();
    let names: Vec<&str> = skills
        .iter()
        .map(|skill| skill["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["empty", "notes", "tables"]);
    let path = test.path("skills");
    let tables = &skills[2];
    let venv = path.join("tables/venv");
    assert_eq!(
        *tables,
        json!({
            "name": "tables",
            "description": "Makes tables.",
            "path": path.join("tables"),
            "document": "SKILL.md",
            "venv": venv,
            "python": venv.join("bin/python"),
            "status": "ok",
            "problems": [],
        })
    );
    assert_eq!(skills[0]["document"], json!(null));
    assert_eq!(skills[0]["status"], "error");
    let notes = &skills[1];
    assert_eq!(notes["description"], "Keeps notes");
    assert_eq!(notes["venv"], json!(null));
    let problem = &notes["problems"][0];
    assert_eq!(
        (&problem["file"], &problem["line"]),
        (&json!("SKILL.md"), &json!(1))
    );
    assert_eq!(problem["message"], "no valid frontmatter");
}

#[test]
fn list_tells_a_missing_folder() {
    let test = Test::new().args(["--skills", "nowhere", "skills", "list"]);
    test.run()
        .success()
        .stdout("")
        .stderr_has("nowhere does not exist");
    let list = Test::new().args(["--skills", "nowhere", "skills", "list", "--json"]);
    let list = list.run().success().stdout_json();
    assert_eq!(list["skills"], json!([]));
    assert!(
        list["problems"][0]["message"]
            .as_str()
            .unwrap()
            .contains("does not exist")
    );
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
    assert_eq!(
        (&shown["name"], &shown["status"]),
        (&json!("tables"), &json!("ok"))
    );
    test.args(["skills", "show", "notes"])
        .run()
        .success()
        .stdout_has("problems:     1\n  error: SKILL.md line 1: no valid frontmatter");
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
        .stderr_has("failed to open `./nowhere`: No such file");
}

/// A broken venv is the skill's problem, whatever else could run its scripts.
#[test]
fn a_broken_venv_is_told() {
    let test = some_skills().file("skills/tables/venv/pyvenv.cfg", "");
    let list = test
        .args(["skills", "list", "--json"])
        .run()
        .success()
        .stdout_json();
    let tables = &list["skills"][2];
    assert_eq!(
        (&tables["status"], &tables["python"]),
        (&json!("error"), &json!(null))
    );
    assert_eq!(tables["problems"][0]["rule"], "broken-venv");
}

/// What a new skill promises works: its document loads, its script runs.
#[test]
fn new_writes_a_skill_that_works() {
    let test = Test::new();
    let made = test
        .clone()
        .args(["skills", "new", "word-count"])
        .run()
        .success();
    made.stdout("skills/word-count\n")
        .stderr_has("edit skills/word-count/SKILL.md");
    let list = test
        .clone()
        .args(["skills", "list", "--json"])
        .run()
        .stdout_json();
    assert_eq!(list["skills"][0]["status"], "ok");
    let call = json!({
        "skill_name": "word-count",
        "file_path": "scripts/main.py",
        "args": [test.path("skills/word-count/SKILL.md")],
    });
    let run = test
        .clone()
        .args(["tool", "run_python_script", &call.to_string()]);
    let result = run.run().success().stdout_json();
    let counts = result["stdout"].as_str().unwrap();
    assert!(counts.starts_with("{\"lines\": "), "{counts}");
    let made = test
        .args(["skills", "new", "other/place", "--json"])
        .run()
        .success();
    let path = made.stdout_json()["path"].clone();
    assert!(path.as_str().unwrap().ends_with("/other/place"), "{path}");
}

/// What exists is never touched, and a name that clients refuse is not made.
#[test]
fn new_refuses_what_would_be_no_skill() {
    let test = some_skills();
    test.clone()
        .args(["skills", "new", "tables"])
        .run()
        .status(1)
        .stderr_has("File exists")
        .stderr_has("nothing was changed");
    assert_eq!(test.read("skills/tables/SKILL.md"), TABLES);
    test.clone()
        .args(["skills", "new", "My Tables"])
        .run()
        .status(2)
        .stderr_has("`my-tables` would be one");
    for name in ["..", ".", "x/..", "a--b", ""] {
        test.clone().args(["skills", "new", name]).run().status(2);
    }
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
