//! The tools called directly: their arguments, and their answers to inexact ones.

use serde_json::{Value, json};

use crate::harness::{Outcome, Test};

fn call(test: &Test, tool: &str, arguments: &Value) -> Outcome {
    test.next_run().args(["tool", tool, &arguments.to_string()]).run()
}

fn found(test: &Test, query: &str) -> (Vec<String>, String) {
    let run = call(test, "list_skills", &json!({ "query": query })).success();
    let list = run.stdout_json();
    let skills = list["skills"].as_array().unwrap().iter();
    let name = |skill: &Value| skill["name"].as_str().unwrap().to_owned();
    let note = list["note"].as_str().unwrap_or_default().to_owned();
    (skills.map(name).collect(), note)
}

fn described(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n")
}

/// If no skill matches all words, those that match some are returned, with a note.
#[test]
fn query_without_full_match_returns_partial_matches() {
    let test = Test::new()
        .skill("weather", &described("weather", "Forecast for a city."))
        .skill("pdf", &described("pdf", "Fills forms in PDF files."))
        .skill("glass", &described("glass", "Cuts glass."));
    let table: [(&str, &[&str], &str); 8] = [
        ("city forecast", &["weather"], ""),
        ("Forecasts", &["weather"], ""),
        ("pdf forms", &["pdf"], ""),
        ("glass", &["glass"], ""),
        ("", &["glass", "pdf", "weather"], ""),
        (
            "weather forms tomorrow",
            &["pdf", "weather"],
            "no skill mentions all of these words; these mention some of them",
        ),
        (
            "music",
            &[],
            "none of the 3 skills mentions any of these words; leave `query` out to see them",
        ),
        (
            "a loud music",
            &[],
            "none of the 3 skills mentions any of these words; leave `query` out to see them",
        ),
    ];
    for (query, names, note) in table {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(found(&test, query), (names, note.to_owned()), "{query}");
    }
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
