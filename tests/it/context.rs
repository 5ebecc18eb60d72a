//! A conversation that outgrows the model's context window: issue 6.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::{Reply, Request, Server, Test, seconds};

/// What the strict servers take.
const WINDOW: u64 = 8000;

const DOCUMENT: &str = "---\nname: words\ndescription: Counts words\n---\n";

/// How endpoints say that a request of so many tokens is too long.
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

/// Tokens as the scripted server counts them: its own way, not ours.
fn count(request: &Request) -> u64 {
    let messages = request.json["messages"].to_string().len();
    let tools = request
        .json
        .get("tools")
        .map_or(0, |tools| tools.to_string().len());
    tokens(messages + tools)
}

fn tokens(bytes: usize) -> u64 {
    (bytes as u64 * 10).div_ceil(36)
}

fn is_summary(request: &Request) -> bool {
    let content = request.last_message()["content"]
        .as_str()
        .unwrap_or_default();
    content.starts_with("Summarize") && request.messages().len() == 1
}

/// Answers one request: in each turn one tool, then a text.
fn answer(request: &Request) -> (Reply, usize) {
    if is_summary(request) {
        assert!(
            request.json.get("tools").is_none(),
            "a summary needs no tools"
        );
        let text = "The person asks numbered questions; all were answered. ".repeat(8);
        return (Reply::text(&text), text.len());
    }
    let last = request.last_message();
    let text = last["content"].as_str().unwrap_or_default();
    if last["role"] == "tool" {
        let text = format!("Here it is. {}", "A word about it, and an é. ".repeat(12));
        return (Reply::text(&text), text.len());
    }
    let number: usize = text
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or_default();
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

/// A server that refuses what is too long, counts the rest and keeps the counts.
fn strict(phrasing: Phrasing, tells_usage: bool) -> (Server, Arc<Mutex<Vec<(u64, bool)>>>) {
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
    let rules: String = (1..=40)
        .map(|number| {
            format!("- Rule {number}: count \"words\" as a person would; see §{number}.\n")
        })
        .collect();
    format!("{DOCUMENT}# Words\n\n{rules}")
}

fn skills() -> Test {
    Test::new()
        .skill("words", &document())
        .skill(
            "other",
            "---\nname: other\ndescription: Something else\n---\n# Other\n",
        )
        .file(
            "skills/words/data.txt",
            "12.5;33.1;\"a cell of text\";ok\n".repeat(90),
        )
}

fn questions(count: usize) -> String {
    let question =
        |number| format!("Question {number} is about words, Wörter und 言葉; tell me.\n");
    (1..=count).map(question).collect()
}

/// The estimates that `-v` shows, in order.
fn estimates(stderr: &str) -> Vec<u64> {
    let lines = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("· about "));
    lines
        .map(|line| {
            line.split(' ')
                .next()
                .unwrap()
                .replace(',', "")
                .parse()
                .unwrap()
        })
        .collect()
}

fn times(request: &Request, text: &str) -> usize {
    let contents = request
        .messages()
        .iter()
        .filter_map(|m| m["content"].as_str());
    contents.map(|content| content.matches(text).count()).sum()
}

/// Must show: 60 turns with tools in a window of 8,000 tokens.
#[test]
fn sixty_turns_fit_a_window_of_8000_tokens() {
    for (index, phrasing) in PHRASINGS.into_iter().enumerate() {
        let (server, counts) = strict(phrasing, true);
        let run = skills()
            .endpoint(&server)
            .env("LLM_CONTEXT_WINDOW", "8000")
            .args(["chat", "-v", "--output", "jsonl"])
            .stdin(questions(60))
            .timeout(seconds(120.0))
            .run()
            .success();
        let records = run.stdout_json_lines();
        let of_type = |name: &str| -> Vec<Value> {
            records
                .iter()
                .filter(|record| record["type"] == name)
                .cloned()
                .collect()
        };
        let results = of_type("result");
        assert_eq!(results.len(), 60);
        assert!(results.iter().all(|result| result["status"] == "ok"));
        assert!(
            results
                .iter()
                .all(|result| !result["answer"].as_str().unwrap().contains("numbered"))
        );
        let contexts = of_type("context");
        assert!(contexts.len() >= 4, "{contexts:?}");
        for context in &contexts {
            assert!(
                context["after"].as_u64() < context["before"].as_u64(),
                "{context}"
            );
            assert!(context["summarized"].as_u64() > Some(2), "{context}");
        }
        let requests = server.finish();
        let last = requests
            .iter()
            .rfind(|request| !is_summary(request))
            .unwrap();
        assert_eq!(
            times(last, &document()),
            1,
            "the skill is there once, word for word"
        );
        let (counts, told) = (counts.lock().unwrap().clone(), estimates(&run.stderr));
        assert_eq!(counts.len(), told.len());
        let errors: Vec<f64> = counts
            .iter()
            .zip(&told)
            .map(|((count, _), told)| (*told as f64 - *count as f64).abs() / *count as f64)
            .collect();
        let largest = errors[1..].iter().copied().fold(0.0, f64::max);
        let mean = errors[1..].iter().sum::<f64>() / errors[1..].len() as f64;
        println!(
            "phrasing {index}: {} requests, {} summaries, {} refused; error of the first {:.1} %, then mean {:.2} %, largest {:.2} %",
            counts.len(),
            contexts.len(),
            counts.iter().filter(|(_, refused)| *refused).count(),
            errors[0] * 100.0,
            mean * 100.0,
            largest * 100.0
        );
        assert!(largest < 0.1, "{largest}");
        // What the event says is what the next request has.
        for context in &contexts {
            let after = context["after"].as_u64().unwrap();
            assert!(told.contains(&after), "{context}");
        }
        assert!(counts.iter().all(|(_, refused)| !refused));
    }
}
