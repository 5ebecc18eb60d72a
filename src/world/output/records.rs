//! The objects of `--output json` and `jsonl`: what happens, as other programs
//! read it. Their names and fields are promised in the README; a field may be
//! added, never changed.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::error;
use crate::event::Event;
use crate::secret::Secrets;
use crate::text::is_invisible;
use crate::tool::milliseconds;
use crate::world::files::user;

/// One object, masked; its field `type` is its name in small letters.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputRecord<'a> {
    /// A run or a conversation begins.
    Start {
        /// The name it is saved under.
        session: Option<&'a str>,
        /// The model's name.
        model: Option<Cow<'a, str>>,
        /// The names of the skills that can be used.
        skills: Vec<Cow<'a, str>>,
        /// In a log only.
        #[serde(flatten)]
        circumstances: Option<&'a RunEnvironment>,
        /// What is asked, unless it is a conversation; in a log only.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt: Option<&'a str>,
    },
    /// A piece of what the model says.
    Text { delta: &'a str },
    /// A piece of what the model thinks.
    Reasoning { delta: &'a str },
    /// A tool is about to run.
    ToolCall {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        /// The object, or what the model wrote instead of one.
        arguments: Value,
    },
    /// A tool has answered.
    ToolResult {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        ok: bool,
        content: Cow<'a, str>,
        duration_ms: u64,
        /// The skill's own script as it ran; in a log only.
        #[serde(skip_serializing_if = "Option::is_none")]
        script: Option<Cow<'a, str>>,
        /// What a person said about the script; in a log only.
        #[serde(skip_serializing_if = "Option::is_none")]
        allowed: Option<&'static str>,
    },
    /// A request is sent again after a pause.
    Retry {
        /// Which try comes next, from 2.
        attempt: u32,
        delay_ms: u64,
        reason: Cow<'a, str>,
    },
    /// Older messages became a summary.
    Context {
        /// How many.
        summarized: usize,
        /// About so many tokens the conversation had, and has now.
        before: u64,
        after: u64,
    },
    /// The turn fails.
    Error(ErrorRecord<'a>),
    /// The turn is over.
    Result(TurnSummary<'a>),
}

/// Who runs it, where and how.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct RunEnvironment {
    /// The user's working folder.
    pub folder: String,
    /// The program's version.
    pub version: &'static str,
    /// The effective user's number.
    pub user: u32,
    /// The process's number.
    pub pid: u32,
    /// Scripts run in the sandbox.
    pub sandbox: bool,
    /// A person is asked before a script runs.
    pub confirm: bool,
    /// The endpoint's address, without its query; none is asked otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Where skills are looked for.
    pub skills_folders: Vec<String>,
}

impl RunEnvironment {
    /// What is known without being told.
    pub(crate) fn of_process() -> RunEnvironment {
        RunEnvironment {
            version: env!("CARGO_PKG_VERSION"),
            user: user(),
            pid: std::process::id(),
            ..RunEnvironment::default()
        }
    }

    /// The same without secrets.
    #[must_use]
    pub(crate) fn masked(mut self, secrets: &Secrets) -> RunEnvironment {
        let folders = self.skills_folders.iter_mut();
        for text in folders.chain(&mut self.endpoint).chain([&mut self.folder]) {
            *text = secrets.mask(text).into_owned();
        }
        self
    }
}

/// Why a turn failed.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ErrorRecord<'a> {
    kind: &'static str,
    message: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Cow<'a, str>>,
}

/// A failure of a command that prints an object of its own.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct CommandFailure<'a> {
    /// Why it failed.
    pub error: ErrorRecord<'a>,
}

/// What became of a turn.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct TurnSummary<'a> {
    /// `ok` or `error`.
    pub status: &'static str,
    /// The program's exit status, or what it would be if this turn were the last.
    pub exit_code: u8,
    /// What was asked; in a log only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<&'a str>,
    /// What the model said after its last call; of a turn that failed, what came.
    pub answer: &'a str,
    /// The name the conversation is saved under.
    pub session: Option<&'a str>,
    /// The model's name, unless the configuration failed.
    pub model: Option<Cow<'a, str>>,
    /// Requests that brought a reply.
    pub steps: u32,
    /// Tools that ran.
    pub tool_calls: u32,
    /// Tokens, as far as the endpoint told.
    pub usage: TokenTotals,
    /// From the start of the program, in a conversation of the turn.
    pub duration_ms: u64,
    /// `ignored`: a pipe beside the prompt stayed silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<&'static str>,
    /// Only of a turn that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord<'a>>,
}

/// Tokens, added up over a turn.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct TokenTotals {
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
}

impl<'a> OutputRecord<'a> {
    /// The record of an event that has one of its own. Pieces of text have
    /// not: where they end is decided by what they hold.
    pub(super) fn of(
        event: &Event<'a>,
        is_log: bool,
        secrets: &Secrets,
    ) -> Option<OutputRecord<'a>> {
        let mask = |text: &'a str| secrets.mask(text);
        Some(match event {
            Event::ToolCall { call, .. } => OutputRecord::ToolCall {
                id: mask(&call.id),
                name: mask(&call.name),
                arguments: arguments(&call.arguments, secrets),
            },
            Event::ToolResult { call, result, duration } => OutputRecord::ToolResult {
                id: mask(&call.id),
                name: mask(&call.name),
                ok: result.ok,
                content: mask(&result.content),
                duration_ms: milliseconds(*duration),
                script: result.ran.as_deref().filter(|_| is_log).map(mask),
                allowed: result.allowed.filter(|_| is_log),
            },
            Event::Retry { attempt, delay, reason } => OutputRecord::Retry {
                attempt: *attempt,
                delay_ms: milliseconds(*delay),
                reason: mask(reason),
            },
            Event::Context { summarized, before, after } => {
                OutputRecord::Context { summarized: *summarized, before: *before, after: *after }
            }
            _ => return None,
        })
    }

    /// The object on a line of its own. What could command a terminal, or looks
    /// like a line's end to some readers, is escaped.
    pub(super) fn line(&self) -> String {
        // Every key is a text and every value has a form in JSON: it cannot fail.
        let mut json = serde_json::to_string(self).unwrap_or_default();
        if json.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            json.push('\n');
            return json;
        }
        let mut line = String::with_capacity(json.len() + 1);
        for c in json.chars() {
            if c.is_control() || is_invisible(c) {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    line.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                line.push(c);
            }
        }
        line.push('\n');
        line
    }
}

impl<'a> ErrorRecord<'a> {
    /// The error as an object.
    pub(super) fn of(error: &'a error::Error, secrets: &Secrets) -> ErrorRecord<'a> {
        ErrorRecord {
            kind: error.kind().name(),
            message: secrets.mask(error.message()),
            hint: error.hint().map(|hint| secrets.mask(hint)),
        }
    }
}

/// The arguments as the object they are, or as the text that is none.
fn arguments(text: &str, secrets: &Secrets) -> Value {
    let mut value = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        _ => Value::from(text),
    };
    secrets.mask_all(&mut value);
    value
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::{Error, ErrorKind};
    use crate::secret::Secret;
    use crate::tool::{ToolCall, ToolResult};

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.extend(Secret::new("sk-\"canary"));
        secrets
    }

    fn call(arguments: &str) -> ToolCall {
        ToolCall {
            id: "call_1".into(),
            name: "t".into(),
            arguments: arguments.into(),
            ..ToolCall::default()
        }
    }

    #[test]
    fn calls_carry_their_arguments_as_an_object_where_they_are_one() {
        let table = [
            (r#"{"b": 1, "a": [true]}"#, r#"{"a":[true],"b":1}"#),
            ("{", r#""{""#),
            ("", r#""""#),
            ("[1]", r#""[1]""#),
            (r#""{}""#, r#""\"{}\"""#),
            (r#"{"sk-\"canary": ["x sk-\"canary"]}"#, r#"{"[secret]":["x [secret]"]}"#),
            (r#"{"a": "sk-\"canary"#, r#""{\"a\": \"[secret]""#),
        ];
        for (text, expected) in table {
            let call = call(text);
            let event = Event::ToolCall { call: &call, summary: "" };
            assert_eq!(
                OutputRecord::of(&event, true, &secrets()).unwrap().line(),
                format!(
                    "{{\"type\":\"tool_call\",\"id\":\"call_1\",\"name\":\"t\",\"arguments\":{expected}}}\n"
                )
            );
        }
    }

    #[test]
    fn results_and_retries() {
        let call = call("{}");
        let result = ToolResult::failure("no sk-\"canary");
        let event = Event::ToolResult {
            call: &call,
            result: &result,
            duration: Duration::from_micros(1900),
        };
        assert_eq!(
            OutputRecord::of(&event, true, &secrets()).unwrap().line(),
            "{\"type\":\"tool_result\",\"id\":\"call_1\",\"name\":\"t\",\"ok\":false,\
             \"content\":\"{\\\"error\\\":\\\"no [secret]\\\"}\",\"duration_ms\":1}\n"
        );
        let event = Event::Retry { attempt: 2, delay: Duration::from_millis(500), reason: "busy" };
        assert_eq!(
            OutputRecord::of(&event, true, &secrets()).unwrap().line(),
            "{\"type\":\"retry\",\"attempt\":2,\"delay_ms\":500,\"reason\":\"busy\"}\n"
        );
        assert_eq!(OutputRecord::of(&Event::Text("x"), true, &secrets()), None);
    }

    #[test]
    fn a_line_is_one_line_for_every_reader_and_harmless_on_a_terminal() {
        let delta = "a\n\r\u{1b}[1m\u{7f}\u{85}\u{9b}\u{2028}\u{202e}ä😀\"\\";
        let line = OutputRecord::Text { delta }.line();
        assert_eq!(
            line,
            "{\"type\":\"text\",\"delta\":\"a\\n\\r\\u001b[1m\\u007f\\u0085\\u009b\\u2028\\u202eä😀\\\"\\\\\"}\n"
        );
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["delta"], delta);
    }

    #[test]
    fn a_fault_has_its_hint_where_there_is_one() {
        let error = Error::new(ErrorKind::Auth, "refused sk-\"canary");
        let line = |error: &Error| OutputRecord::Error(ErrorRecord::of(error, &secrets())).line();
        assert_eq!(
            line(&error),
            "{\"type\":\"error\",\"kind\":\"auth\",\"message\":\"refused [secret]\"}\n"
        );
        assert_eq!(
            line(&error.with_hint("get one")),
            "{\"type\":\"error\",\"kind\":\"auth\",\"message\":\"refused [secret]\",\"hint\":\"get one\"}\n"
        );
    }
}
