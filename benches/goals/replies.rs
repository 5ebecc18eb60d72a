//! What the server says: replies as hosted endpoints send them, made before anything
//! is measured.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

/// Tool calls in the run of many rounds.
pub(crate) const ROUNDS: usize = 20;
/// Tokens of the stream whose every token is a write of its own.
pub(crate) const STREAMED_TOKENS: usize = 10_000;
/// What passes between two of them: so little that the clients work all the time, and so
/// much that a client that keeps up gets each by itself, as it does from a model.
pub(crate) const TOKEN_INTERVAL: Duration = Duration::from_micros(8);
/// Tokens of the stream that arrives as fast as it can be read.
pub(crate) const BURST_TOKENS: usize = 100_000;
/// The skill that the calls use.
pub(crate) const SKILL: &str = "skill-00001";
/// A file that the calls read.
pub(crate) const READ_FILE: &str = "notes.md";

const WORDS: [&str; 12] = [
    "The",
    " quick",
    " brown",
    " fox",
    " jumps",
    " over",
    " the",
    " lazy",
    " dog",
    ",",
    " then",
    " rests.\n",
];

/// One streamed reply.
pub(crate) struct Reply {
    /// What is written at once, one after the other, head and chunks included.
    pub writes: Vec<Vec<u8>>,
    /// How they follow each other.
    pub pace: Pace,
    /// The body without the chunks' frames: what curl prints.
    pub body: String,
    /// What the model said.
    pub text: String,
}

/// How a stream comes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// In one write: a short reply, or a buffer on the way that was full.
    AtOnce,
    /// One write an event, [`TOKEN_INTERVAL`] apart.
    ByToken,
}

impl Reply {
    /// The short answer.
    pub(crate) fn short() -> Reply {
        Reply::words(3, Pace::AtOnce)
    }

    /// An answer of so many tokens.
    pub(crate) fn words(tokens: usize, pace: Pace) -> Reply {
        let words = WORDS.iter().cycle().take(tokens);
        let deltas = words.clone().map(|word| json!({"content": word}));
        let mut reply = Reply::of(deltas, "stop", pace);
        reply.text = words.copied().collect();
        reply
    }

    /// A call of the cheapest tool; each is another one, as no model repeats itself for ever.
    pub(crate) fn reading_call(round: usize) -> Reply {
        let arguments = json!({
            "skill_name": SKILL, "file_path": READ_FILE, "offset": round + 1, "limit": 1,
        });
        Reply::call("read_file_in_skill", &arguments, round)
    }

    /// A call that runs a script.
    pub(crate) fn script_call(round: usize) -> Reply {
        let arguments = json!({"skill_name": SKILL, "script": format!("print({round})")});
        Reply::call("run_python_script", &arguments, round)
    }

    fn call(name: &str, arguments: &Value, round: usize) -> Reply {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let id = format!("call_{round:024}");
        let call = json!({"index": 0, "id": id, "type": "function", "function": function});
        let delta = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        Reply::of([delta].into_iter(), "tool_calls", Pace::AtOnce)
    }

    fn of(deltas: impl Iterator<Item = Value>, finish_reason: &str, pace: Pace) -> Reply {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n";
        let mut writes = vec![head.as_bytes().to_vec()];
        let mut body = String::new();
        let mut add = |event: &str| {
            let event = format!("data: {event}\n\n");
            let mut chunk = String::new();
            let _ = write!(chunk, "{:x}\r\n{event}\r\n", event.len());
            match writes.last_mut() {
                Some(last) if pace == Pace::AtOnce => last.extend_from_slice(chunk.as_bytes()),
                _ => writes.push(chunk.into_bytes()),
            }
            body += &event;
        };
        for delta in deltas {
            add(&event(&delta, None));
        }
        add(&event(&json!({}), Some(finish_reason)));
        add("[DONE]");
        if let Some(last) = writes.last_mut() {
            last.extend_from_slice(b"0\r\n\r\n");
        }
        let text = String::new();
        Reply { writes, pace, body, text }
    }
}

/// An event with the fields that the large providers send.
fn event(delta: &Value, finish_reason: Option<&str>) -> String {
    let finish_reason = json!(finish_reason);
    format!(
        r#"{{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"bench","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish_reason}}}]}}"#
    )
}
