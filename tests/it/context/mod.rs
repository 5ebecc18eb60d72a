//! Conversations that exceed the model's context window.

mod limits;
mod results;
mod summaries;

use crate::harness::{Reply, Request, Server, Test};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The context window of the strict servers, in tokens.
const WINDOW: u64 = 8000;

const DOCUMENT: &str = "---\nname: words\ndescription: Counts words\n---\n";

/// Tokens counted by the server and whether it refused, per request.
type Counts = Arc<Mutex<Vec<(u64, bool)>>>;

/// A refusal of a request with this many tokens.
type Phrasing = fn(u64) -> Reply;

const PHRASINGS: [Phrasing; 4] = [
    |count| {
        let message = format!(
            "This model's maximum context length is 8000 tokens. However, your messages resulted in {count} tokens. Please reduce the length of the messages."
        );
        let error = json!({"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}});
        Reply::status(400).body(error.to_string())
    },
    |count| {
        let message = format!(
            "This model's maximum context length is 8000 tokens. However, you requested {count} tokens ({count} in the messages, 0 in the completion). Please reduce the length of the messages or completion."
        );
        let error =
            json!({"object": "error", "message": message, "type": "BadRequestError", "code": 400});
        Reply::status(400).body(error.to_string())
    },
    |count| {
        let error = json!({"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": count, "n_ctx": 8000}});
        Reply::status(400).body(error.to_string())
    },
    |_| {
        let error = json!({"error": {"message": "prompt is too long; it is greater than the context length", "type": "api_error"}});
        Reply::status(400).body(error.to_string())
    },
];

/// Counts tokens differently from the program.
fn count(request: &Request) -> u64 {
    let messages = request.json["messages"].to_string().len();
    let tools = request.json.get("tools").map_or(0, |tools| tools.to_string().len());
    tokens(messages + tools)
}

fn tokens(bytes: usize) -> u64 {
    (bytes as u64 * 10).div_ceil(36)
}

fn is_summary(request: &Request) -> bool {
    let content = request.last_message()["content"].as_str().unwrap_or_default();
    content.starts_with("Summarize") && request.messages().len() == 1
}

/// Answers one request: in each turn one tool call, then a text.
fn answer(request: &Request) -> (Reply, usize) {
    if is_summary(request) {
        assert!(request.json.get("tools").is_none(), "a summary needs no tools");
        let text = "The person asks numbered questions; all were answered. ".repeat(8);
        return (Reply::text(&text), text.len());
    }
    let last = request.last_message();
    let text = last["content"].as_str().unwrap_or_default();
    if last["role"] == "tool" {
        let text = format!("Here it is. {}", "A word about it, and an é. ".repeat(12));
        return (Reply::text(&text), text.len());
    }
    let number: usize =
        text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
    let call = match number % 4 {
        1 => Reply::call("get_skill", &json!({"skill_name": "words"})),
        2 => Reply::call(
            "read_file_in_skill",
            &json!({"skill_name": "words", "file_path": "data.txt"}),
        ),
        3 => Reply::call("list_skills", &json!({})),
        _ => Reply::call(
            "run_python_script",
            &json!({"skill_name": "words", "script": "print('row; ' * 200)"}),
        ),
    };
    (call, 100)
}

/// Starts a server that refuses requests beyond the window and records the token counts.
fn strict(phrasing: Phrasing, tells_usage: bool) -> (Server, Counts) {
    let counts = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&counts);
    let server = Server::always(move |request| {
        let count = count(request);
        let refuses = count > WINDOW;
        if !is_summary(request) {
            kept.lock().unwrap().push((count, refuses));
        }
        if refuses {
            return phrasing(count);
        }
        let (reply, bytes) = answer(request);
        match tells_usage {
            true => reply.with_usage(count, tokens(bytes)),
            false => reply,
        }
    });
    (server, counts)
}

fn document() -> String {
    let rules = "- A rule: count \"words\" as a person would; see §.\n".repeat(40);
    format!("{DOCUMENT}# Words\n\n{rules}")
}

fn skills() -> Test {
    Test::new()
        .skill("words", &document())
        .skill("other", "---\nname: other\ndescription: Something else\n---\n# Other\n")
        .file("skills/words/data.txt", "12.5;33.1;\"a cell of text\";ok\n".repeat(90))
}

fn questions(count: usize) -> String {
    let question = |number| format!("Question {number} is about words, Wörter und 言葉; tell me.");
    let questions: Vec<String> = (1..=count).map(question).collect();
    questions.join("\n")
}

/// The estimates printed by `-v`, in order.
fn estimates(stderr: &str) -> Vec<u64> {
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("· about "));
    lines.map(|line| line.split(' ').next().unwrap().replace(',', "").parse().unwrap()).collect()
}

fn times(request: &Request, text: &str) -> usize {
    let contents = request.messages().iter().filter_map(|m| m["content"].as_str());
    contents.map(|content| content.matches(text).count()).sum()
}

/// The error of each estimate in thousandths, in order.
fn errors(counts: &[(u64, bool)], reported: &[u64]) -> Vec<u64> {
    let pairs = counts.iter().zip(reported);
    pairs.map(|((count, _), reported)| reported.abs_diff(*count) * 1000 / count).collect()
}

fn of_type(records: &[Value], name: &str) -> Vec<Value> {
    let meant = records.iter().filter(|record| record["type"] == name);
    meant.cloned().collect()
}

fn last_of(server: Server) -> Request {
    let mut requests = server.finish();
    requests.retain(|request| !is_summary(request));
    requests.pop().unwrap()
}
