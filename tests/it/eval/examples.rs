//! The tests of the example skills, played by a scripted model.

use super::{question, results};
use crate::harness::{Reply, Request, Server, Test};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

const SKILLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");

/// What a good model does for each task: the skill, the call of its script, and the answer.
const TASKS: [(&str, &str, &str, &str, &str); 4] = [
    (
        "A bill has",
        "calculator",
        "scripts/calc.py",
        "eval|round(1499.90 * 119/100, 2)",
        "It is 1784.88.",
    ),
    ("What is the median", "calculator", "scripts/stats.py", "", "The median is 12.5."),
    (
        "Which region",
        "data-explorer",
        "scripts/explore.py",
        "group|orders.csv|--by|region|--of|amount|--agg|sum",
        "North, with 370.5.",
    ),
    (
        "When did the first error",
        "text-analyzer",
        "scripts/analyze.py",
        "log|service.log|--level|error",
        "At 09:02:11; there are 2 errors.",
    ),
];

/// For each query of the triggers the skill that is to be read.
fn wanted_skills() -> HashMap<String, Option<String>> {
    let mut wanted = HashMap::new();
    for skill in ["calculator", "data-explorer", "table-report", "text-analyzer"] {
        let file = Path::new(SKILLS).join(skill).join("evals/triggers.json");
        let text = std::fs::read_to_string(file).expect("each example has triggers");
        let cases: Value = serde_json::from_str(&text).expect("it is JSON");
        for case in cases.as_array().expect("a list") {
            let should = case["should_trigger"] == true;
            let query = case["query"].as_str().expect("a text").to_string();
            wanted.insert(query, should.then(|| skill.to_string()));
        }
    }
    wanted
}

#[test]
fn examples_pass_with_a_good_model() {
    let wanted = wanted_skills();
    let server = Server::always(move |request: &Request| {
        let (text, done) = question(request);
        let read = |skill: &str| Reply::call("get_skill", &json!({"skill_name": skill}));
        if let Some(skill) = wanted.get(&text) {
            return skill.as_deref().filter(|_| done == 0).map_or(Reply::text("no skill"), read);
        }
        let task = TASKS.iter().find(|(start, ..)| text.starts_with(start)).expect(&text);
        let (_, skill, script, args, answer) = task;
        let args: Vec<&str> = args.split('|').filter(|word| !word.is_empty()).collect();
        match done {
            0 => read(skill),
            1 if !args.is_empty() => Reply::call(
                "run_python_script",
                &json!({"skill_name": skill, "file_path": script, "args": args}),
            ),
            _ => Reply::text(answer),
        }
    });
    let test = Test::new().endpoint(&server);
    let words =
        ["skills", "eval", "--skills", SKILLS, "--json", "--runs", "1", "--min", "1", "-j", "2"];
    let run = test.next_run().args(words).run().success();
    let found = results(&run.stdout);
    let names: Vec<&Value> =
        found["skills"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["calculator", "data-explorer", "table-report", "text-analyzer"]);
    assert_eq!(found["runs"], 19);
    server.finish();
}
