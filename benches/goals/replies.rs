//! The replies of the server, as hosted endpoints send them. They are created before the
//! measurement.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

/// Tool calls in the run of many rounds.
pub(crate) const ROUNDS: usize = 20;
/// Tokens of the stream in which each token is a separate write.
pub(crate) const STREAMED_TOKENS: usize = 10_000;
/// The time between two tokens: short enough to keep the clients busy, and long enough that a
/// fast client receives each token alone, as from a model.
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

/// A streamed reply.
pub(crate) struct Reply {
    /// The writes in their order, with head and chunk frames.
    pub writes: Vec<Vec<u8>>,
    /// The pace of the writes.
    pub pace: Pace,
    /// The body without chunk frames, which curl prints.
    pub body: String,
    /// The text of the model.
    pub text: String,
}

/// The pace of a stream.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// One write: a short reply, or a full buffer of a proxy.
    AtOnce,
    /// One write per event, [`TOKEN_INTERVAL`] apart.
    ByToken,
}

impl Reply {
    /// The short answer.
    pub(crate) fn short() -> Reply {
        Reply::words(3, Pace::AtOnce)
    }

    /// An answer of `tokens` tokens.
    pub(crate) fn words(tokens: usize, pace: Pace) -> Reply {
        let words = WORDS.iter().cycle().take(tokens);
        let deltas = words.clone().map(|word| json!({"content": word}));
        let mut reply = Reply::from_deltas(deltas, "stop", pace);
        reply.text = words.copied().collect();
        reply
    }

    /// A call of the cheapest tool. Each call is different, because repeated calls would end
    /// the run.
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
        Reply::from_deltas([delta].into_iter(), "tool_calls", Pace::AtOnce)
    }

    fn from_deltas(deltas: impl Iterator<Item = Value>, finish_reason: &str, pace: Pace) -> Reply {
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
