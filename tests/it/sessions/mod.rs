//! Saved conversations: creating, continuing, listing and deleting them, and files with unexpected
//! content.

mod conversations;
mod files;
mod saving;

use crate::harness::{Reply, Request, Server, Test};
use std::fs;

const FOLDER: &str = "home/.local/state/skills-runner/sessions";

fn file(name: &str) -> String {
    format!("{FOLDER}/{name}.jsonl")
}

fn contents(request: &Request) -> Vec<String> {
    let text = |message: &serde_json::Value| message["content"].as_str().unwrap().to_string();
    request.messages().iter().skip(1).map(text).collect()
}

fn names(test: &Test) -> Vec<String> {
    let entries = fs::read_dir(test.path(FOLDER)).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A test with one saved session `s`: a question and its answer.
fn saved() -> (Test, String) {
    let server = Server::start([Reply::text("4.")]);
    let test = Test::new().endpoint(&server);
    test.next_run().args(["--session", "s", "2 + 2?"]).run().success().stdout("4.\n");
    server.finish();
    let text = test.read(&file("s"));
    (test, text)
}

const NO_ANSWER: &str = "(no answer: the turn was interrupted)";
