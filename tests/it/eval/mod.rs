//! `skills eval`: the tests of skills, made with a scripted model.

mod bad_input;
mod examples;
mod judge;
mod resume;
mod runs;
mod trust;

use crate::harness::{Reply, Request, Server, Test};
use serde_json::{Value, json};

const SUMS: &str = "---\nname: sums\ndescription: Adds numbers.\n---\nAdd.\n";
const OTHER: &str = "---\nname: other\ndescription: Does other things.\n---\nOther.\n";

/// Two skills; the tests are of `sums`.
fn test_with(evals: &Value, triggers: &Value) -> Test {
    Test::new()
        .skill("sums", SUMS)
        .skill("other", OTHER)
        .file("skills/sums/evals/files/in/numbers.txt", "1 2 3\n")
        .file("skills/sums/evals/evals.json", evals.to_string())
        .file("skills/sums/evals/triggers.json", triggers.to_string())
}

/// The last question of the request, and the number of results after it.
fn question(request: &Request) -> (String, usize) {
    let messages = request.messages();
    let at = messages.iter().rposition(|message| message["role"] == "user").expect("a question");
    let text = messages[at]["content"].as_str().expect("it is text").to_string();
    let results = messages[at..].iter().filter(|message| message["role"] == "tool");
    (text, results.count())
}

/// A model that does what the question says: `read NAME`, `write FILE TEXT`, `run CODE`, one a line,
/// and then answers with the last line.
fn obedient(request: &Request) -> Reply {
    let (text, done) = question(request);
    let lines: Vec<&str> = text.lines().collect();
    let words = lines.get(done).copied().unwrap_or_default();
    let call = |name: &str, arguments: Value| Reply::call(name, &arguments);
    match words.split_once(' ').unwrap_or((words, "")) {
        ("read", name) => call("get_skill", json!({"skill_name": name})),
        ("write", rest) => {
            let (path, content) = rest.split_once(' ').expect("a path and a text");
            call("write_file", json!({"path": path, "content": content}))
        }
        ("run", code) => call("run_python_script", json!({"script": code})),
        ("file", path) => {
            call("run_python_script", json!({"skill_name": "sums", "file_path": path}))
        }
        _ => Reply::text(lines.last().copied().unwrap_or_default()),
    }
}

fn server() -> Server {
    Server::always(obedient)
}

/// The object of `-o json`.
fn results(stdout: &str) -> Value {
    serde_json::from_str(stdout).expect("one object")
}
