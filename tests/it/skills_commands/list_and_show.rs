//! `skills list` and `skills show`.

use super::some_skills;
use crate::harness::Test;
use serde_json::json;

/// A line for each skill: its name, a tab, and its description or the reason why it is unusable.
#[test]
fn list_prints_one_line_for_each_skill() {
    let test = some_skills();
    let expected = "empty\t(cannot be used: it has no SKILL.md)\n\
                    notes\tKeeps notes\n\
                    tables\tMakes tables.\n";
    test.clone().args(["skills", "list"]).run().success().stdout(expected).stderr_has(
        "problems in the documents of notes: `skills-runner skills check` lists them\n",
    );
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
    let none = json!({"python": [], "npm": [], "programs": [], "mcp": []});
    assert_eq!(tables["missing"], none);
    let fields = tables.as_object_mut().unwrap();
    fields.remove("missing");
    fields.remove("needs");
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
#[ignore = "long"]
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
        "problems:     1 error, 0 warnings\n  error: SKILL.md line 1: no valid frontmatter\n    fix: start ",
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
