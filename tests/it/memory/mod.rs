//! Facts and daily notes: saved between conversations, in files that belong to the user.

mod facts;
mod reading;
mod writers;

use crate::harness::{Outcome, Test};
use serde_json::{Value, json};

const FRONT: &str = "---\ntype: memory\ncreated: 2026-01-01\nmodified: 2026-01-01\n---\n";

fn memory() -> Test {
    Test::new().env("MEMORY_PATH", "kept/facts.md")
}

fn facts(test: &Test, words: &[&str]) -> Outcome {
    test.next_run().args(["facts"]).args(words).run()
}

fn listed(test: &Test) -> Vec<Value> {
    let run = facts(test, &["list", "--json"]).success();
    run.stdout_json()["facts"].as_array().unwrap().clone()
}

/// The local date according to `date`.
fn today(zone: &str) -> String {
    let mut date = std::process::Command::new("date");
    let reported = date.arg("+%F").env("TZ", zone).output().unwrap().stdout;
    String::from_utf8(reported).unwrap().trim().to_owned()
}

fn remember(test: &Test, content: &str, replaces: &str) -> Outcome {
    let arguments = json!({"content": content, "replaces": replaces}).to_string();
    test.next_run().args(["tool", "remember_fact", &arguments]).run()
}
