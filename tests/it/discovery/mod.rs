//! Discovery of skills: several folders, unusual folders, and reports to the model and the user.

mod below;
mod catalogue;
mod folders;
mod reports;

use crate::harness::{Outcome, Test};
use serde_json::Value;
use std::ffi::OsStr;

/// Returns a document with this name and description.
fn document(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n")
}

/// Runs with `--dry-run`.
fn dry_run<S: AsRef<OsStr>>(test: &Test, args: impl IntoIterator<Item = S>) -> Outcome {
    let test = test.next_run().env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
    let test = test.env("LLM_MODEL_NAME", "m").args(args);
    test.args(["--dry-run", "hi"]).run().success()
}

fn body(run: &Outcome) -> Value {
    run.stdout_json()["body"].clone()
}

/// The system prompt without the folder and the date, which are its last parts.
fn system(run: &Outcome) -> String {
    let prompt = body(run)["messages"][0]["content"].as_str().unwrap().to_owned();
    let rules_and_skills = prompt.split("\nRelative paths").next().unwrap();
    rules_and_skills.split("\nToday is ").next().unwrap().to_owned()
}

fn tool_names(run: &Outcome) -> Vec<String> {
    let body = body(run);
    let tools = body["tools"].as_array().into_iter().flatten();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.map(name).collect()
}

/// Returns the result of `list_skills`: names with descriptions, and the note.
fn list<S: AsRef<OsStr>>(
    test: &Test,
    args: impl IntoIterator<Item = S>,
) -> (Vec<(String, String)>, String) {
    let run = test.next_run().args(args).args(["tool", "list_skills"]).run();
    let list = run.success().stdout_json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let skills = list["skills"].as_array().unwrap().iter();
    let row = |skill: &Value| (text(&skill["name"]), text(&skill["description"]));
    (skills.map(row).collect(), text(&list["note"]))
}

fn call(test: &Test, tool: &str, arguments: &Value) -> Outcome {
    test.next_run().args(["tool", tool, &arguments.to_string()]).run()
}
