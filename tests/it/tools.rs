//! The tools called directly: their arguments, and their answers to inexact ones.

use serde_json::{Value, json};

use crate::harness::{Outcome, Test};

fn call(test: &Test, tool: &str, arguments: &Value) -> Outcome {
    test.next_run().args(["tool", tool, &arguments.to_string()]).run()
}

fn described(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n")
}

/// A number is the name that has its digits.
#[test]
fn number_is_the_name_with_its_digits() {
    let test =
        Test::new().skill("5", &described("5", "Five.")).skill("six", &described("6", "Six."));
    for number in [5, 6] {
        call(&test, "get_skill", &json!({ "skill_name": number }))
            .success()
            .stdout_has(&format!("# {number}"));
    }
    let calls = [
        ("get_skill", json!({"skill_name": 7})),
        ("read_file_in_skill", json!({"skill_name": 7, "file_path": "a.md"})),
        ("run_python_script", json!({"skill_name": 7, "script": "1"})),
    ];
    for (tool, arguments) in calls {
        call(&test, tool, &arguments).status(1).stdout_has("there is no skill `7`");
    }
}

/// A tool by hand without its arguments shows how they are given.
#[test]
fn tool_without_arguments_shows_an_example() {
    let test = Test::new().skill("s", "---\nname: s\ndescription: d\n---\nText.\n");
    for (name, example) in [
        ("run_command", "{\"command\":\"...\"}"),
        ("edit_file", "{\"new\":\"...\",\"old\":\"...\",\"path\":\"...\"}"),
    ] {
        let run = test.next_run().args(["tool", name]).run().status(1);
        run.stderr_has(&format!("for example: skills-runner tool {name} '{example}'\n"));
    }
    test.next_run().args(["tool", "run_command", "{}"]).run().status(1).stderr_lacks("for example");
}

/// Nothing in the place of the JSON is an unset variable or a lost file, unlike no JSON.
#[test]
fn empty_arguments_are_wrong_usage() {
    let test = Test::new().skill("s", "---\nname: s\ndescription: d\n---\n");
    test.next_run().args(["tool", "list_skills"]).run().success();
    for (json, stdin) in [("", ""), (" ", ""), ("null", ""), ("-", ""), ("-", "\n"), ("[]", "")] {
        let run = test.next_run().args(["tool", "list_skills", json]).stdin(stdin).run();
        run.status(2).stdout_is_empty().stderr_has("invalid JSON for list_skills");
    }
    test.next_run().args(["-m", " ", "hi"]).run().status(2).stderr_has("--model needs a name");
}
