//! `doctor`: its checks, their results and remedies.

mod endpoint;
mod machine;
mod settings;

use crate::harness::{Outcome, Reply, Request, Server, Test};
use serde_json::{Value, json};

const DOCUMENT: &str = "---\nname: s\ndescription: A skill for tests.\n---\nDo it.\n";

/// The names of the checks, in order.
const NAMES: [&str; 11] = [
    "configuration",
    "address",
    "connection",
    "credentials",
    "model",
    "tool_call",
    "streaming",
    "context",
    "python",
    "sandbox",
    "skills",
];

/// A model that calls `add` as requested and reports the result.
fn working_model(request: &Request) -> Reply {
    let last = request.last_message();
    if last["role"] == "tool" {
        let id = last["tool_call_id"].as_str().unwrap();
        let sum = request.tool_json(id)["sum"].clone();
        return Reply::text(&format!("The sum is {sum}.")).with_usage(120, 9);
    }
    if request.tool_names() == ["add"] {
        return Reply::call("add", &json!({"a": 317, "b": 588})).with_usage(100, 20);
    }
    Reply::text("one two three four five six seven eight nine ten")
}

/// An endpoint that answers GET requests by path (404 for other paths), and whose model is
/// `model`.
fn endpoint(
    paths: &'static [(&'static str, &'static str)],
    model: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> Server {
    Server::always(move |request| {
        let path = request.path.as_str();
        if path == "/v1/chat/completions" {
            assert_eq!(request.method, "POST");
            return model(request);
        }
        match paths.iter().find(|(known, _)| *known == path) {
            Some((_, body)) => Reply::status(200).body(*body),
            None => Reply::status(404).body("404 page not found"),
        }
    })
}

const LISTED: &[(&str, &str)] =
    &[("/v1/models", r#"{"data":[{"id":"other"},{"id":"test-model","context_length":131072}]}"#)];

fn test(server: &Server) -> Test {
    Test::new().endpoint(server).skill("s", DOCUMENT)
}

/// Returns the checks of `doctor --json`, in the order of [`NAMES`]. Asserts the rules for every
/// report.
#[track_caller]
fn checks(run: &Outcome) -> Vec<Value> {
    let report = run.stdout_json();
    assert_eq!(report["type"], "doctor");
    let status = match run.status {
        signal if signal < 0 => 128 - signal,
        status => status,
    };
    assert_eq!(report["exit_code"], status);
    assert_eq!(report["status"], if run.status == 0 { "ok" } else { "error" });
    let checks = report["checks"].as_array().unwrap().clone();
    let names: Vec<&str> = checks.iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, NAMES);
    for check in &checks {
        let status = check["status"].as_str().unwrap();
        let is_bad = match status {
            "ok" | "skipped" => false,
            "warning" | "failure" => true,
            other => panic!("{other}"),
        };
        assert!(!check["message"].as_str().unwrap().is_empty());
        assert_eq!(check["fix"].is_string(), is_bad, "{check}");
    }
    checks
}

/// Asserts a check's status and parts of its message and fix, as JSON and as text.
#[track_caller]
fn assert_check(test: &Test, exit: i32, name: &str, status: &str, words: &str, fix: &str) {
    let run = test.next_run().args(["doctor", "--json"]).run().status(exit);
    let index = NAMES.iter().position(|known| *known == name).unwrap();
    let check = checks(&run).swap_remove(index);
    assert_eq!(check["status"], status, "{check}");
    assert!(check["message"].as_str().unwrap().contains(words), "{check}");
    assert!(check["fix"].as_str().unwrap_or_default().contains(fix), "{check}");
    let run = test.next_run().args(["doctor"]).run().status(exit);
    let run = run.stdout_has(words).stdout_has(status);
    if !fix.is_empty() {
        run.stdout_has(&format!("         fix: {}", check["fix"].as_str().unwrap()));
    }
}

const OLLAMA: &[(&str, &str)] = &[
    ("/v1/models", r#"{"object":"list","data":[{"id":"test-model:latest","owned_by":"library"}]}"#),
    ("/api/version", r#"{"version":"0.12.6"}"#),
    (
        "/api/ps",
        r#"{"models":[{"name":"test-model:latest","model":"test-model:latest","context_length":4096}]}"#,
    ),
    ("/api/show", r#"{"parameters":"temperature 1","model_info":{"qwen3.context_length":40960}}"#),
];
