//! The JSON objects of `--output json` and `jsonl`, for other programs. The README
//! documents their names and fields; a field may be added, never changed.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use base::error;
use base::event::{Actions, Event};
use base::secret::Secrets;
use base::text::is_invisible;
use base::tool::{ToolResult, milliseconds};
use host::files::effective_user;

/// One masked object; its field `type` is the variant's name in snake case.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputRecord<'a> {
    /// A run or a conversation starts.
    Start {
        /// The session's name.
        session: Option<&'a str>,
        /// The model's name.
        model: Option<Cow<'a, str>>,
        /// Names of the usable skills.
        skills: Vec<Cow<'a, str>>,
        /// In a log only.
        #[serde(flatten)]
        run_environment: Option<&'a RunEnvironment>,
        /// The question, unless it is a conversation; in a log only.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt: Option<&'a str>,
    },
    /// A piece of the model's text.
    Text { delta: &'a str },
    /// A piece of the model's reasoning.
    Reasoning { delta: &'a str },
    /// A tool is about to run.
    ToolCall {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        /// The object, or the model's text if it is not an object.
        arguments: Value,
    },
    /// A tool has run.
    ToolResult {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        ok: bool,
        content: Cow<'a, str>,
        /// The result as an object, where there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        duration_ms: u64,
        /// Source of the skill's script; in a log only.
        #[serde(skip_serializing_if = "Option::is_none")]
        script: Option<Cow<'a, str>>,
        /// The user's consent to the script; in a log only.
        #[serde(skip_serializing_if = "Option::is_none")]
        allowed: Option<&'static str>,
    },
    /// A request is sent again after a pause.
    Retry {
        /// Number of the next try, from 2.
        attempt: u32,
        delay_ms: u64,
        reason: Cow<'a, str>,
    },
    /// Older messages were replaced by a summary.
    Context {
        /// Number of replaced messages.
        summarized: usize,
        /// Estimated tokens before and after.
        before: u64,
        after: u64,
    },
    /// The turn failed.
    Error(ErrorRecord<'a>),
    /// The turn has ended.
    Result(TurnSummary<'a>),
}

/// User, place and settings of a run, for the log.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct RunEnvironment {
    /// The user's working folder.
    pub folder: String,
    /// The program's version.
    pub version: &'static str,
    /// Number of the effective user.
    pub user: u32,
    /// Process number.
    pub pid: u32,
    /// Whether scripts run in the sandbox.
    pub sandbox: bool,
    /// Whether the user must consent before a script runs.
    pub confirm: bool,
    /// The endpoint's address without its query, if the run uses one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Folders that are searched for skills.
    pub skills_folders: Vec<String>,
}

impl RunEnvironment {
    /// Creates the part that depends only on the process.
    pub(crate) fn for_process() -> RunEnvironment {
        RunEnvironment {
            version: env!("CARGO_PKG_VERSION"),
            user: effective_user(),
            pid: std::process::id(),
            ..RunEnvironment::default()
        }
    }

    /// Masks all secrets.
    #[must_use]
    pub(crate) fn masked(mut self, secrets: &Secrets) -> RunEnvironment {
        let folders = self.skills_folders.iter_mut();
        for text in folders.chain(&mut self.endpoint).chain([&mut self.folder]) {
            *text = secrets.mask(text).into_owned();
        }
        self
    }
}

/// Error of a turn.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ErrorRecord<'a> {
    kind: &'static str,
    message: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Cow<'a, str>>,
}

/// Error object of a command that prints its own objects.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct CommandFailure<'a> {
    error: ErrorRecord<'a>,
}

/// Result of a turn.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct TurnSummary<'a> {
    /// `ok` or `error`.
    pub status: &'static str,
    /// The program's exit status, or what it would be if this turn were the last.
    pub exit_code: u8,
    /// The question; in a log only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<&'a str>,
    /// The model's text after its last tool call; for a failed turn, as much as there is.
    pub answer: &'a str,
    /// The session's name.
    pub session: Option<&'a str>,
    /// The model's name, unless the configuration failed.
    pub model: Option<Cow<'a, str>>,
    /// Requests that got a reply.
    pub steps: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Tokens, as the endpoint reported them.
    pub usage: TokenTotals,
    /// Time since the start of the program, or of the turn in a conversation.
    pub duration_ms: u64,
    /// Actions of tools.
    #[serde(flatten)]
    pub actions: ActionRecords<'a>,
    /// Calls that were written as text and run.
    pub calls_from_text: u32,
    /// How often the model was asked again because its reply was not an answer.
    pub asked_again: u32,
    /// `ignored` if a pipe stayed silent and the prompt was an argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<&'static str>,
    /// Only for a failed turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord<'a>>,
}

/// Actions of tools in a turn.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ActionRecords<'a> {
    /// Names of the skills whose documents were read, each once.
    skills_read: Vec<Cow<'a, str>>,
    /// Scripts that ran, also those that failed.
    scripts_run: Vec<ScriptRecord<'a>>,
    /// Commands that ran, also those that failed.
    commands_run: Vec<CommandRecord<'a>>,
    /// The user's files that were written, each once.
    files_written: Vec<Cow<'a, str>>,
}

/// A script that ran.
#[derive(Debug, PartialEq, Serialize)]
struct ScriptRecord<'a> {
    /// Null for a script without a skill.
    skill: Option<Cow<'a, str>>,
    /// Path in the skill; null for source that the model wrote.
    file: Option<Cow<'a, str>>,
    returncode: i32,
}

/// A command that ran.
#[derive(Debug, PartialEq, Serialize)]
struct CommandRecord<'a> {
    command: Cow<'a, str>,
    returncode: i32,
}

/// Token totals of a turn.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct TokenTotals {
    /// Tokens of the requests.
    pub prompt_tokens: u64,
    /// Tokens of the replies.
    pub completion_tokens: u64,
}

impl<'a> OutputRecord<'a> {
    /// Record of an event, if it has one. Pieces of text have none here, because masking
    /// changes where they end.
    pub(super) fn from_event(
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
                content: Cow::Owned(secrets.mask(&result.full_text()).into_owned()),
                result: result_object(result, secrets),
                duration_ms: milliseconds(*duration),
                script: result.script_source.as_deref().filter(|_| is_log).map(mask),
                allowed: result.consent.filter(|_| is_log),
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

    /// The object on one line.
    pub(super) fn line(&self) -> String {
        json_line(self)
    }
}

impl<'a> ActionRecords<'a> {
    /// Converts the actions.
    pub(super) fn new(actions: &'a Actions, secrets: &Secrets) -> ActionRecords<'a> {
        let mask = |text: &'a String| secrets.mask(text);
        let scripts = actions.scripts_run.iter().map(|exit| ScriptRecord {
            skill: exit.skill.as_ref().map(mask),
            file: exit.file.as_ref().map(mask),
            returncode: exit.returncode,
        });
        let commands = actions.commands_run.iter().map(|exit| CommandRecord {
            command: mask(&exit.command),
            returncode: exit.returncode,
        });
        ActionRecords {
            skills_read: actions.skills_read.iter().map(mask).collect(),
            scripts_run: scripts.collect(),
            commands_run: commands.collect(),
            files_written: actions.files_written.iter().map(mask).collect(),
        }
    }
}

impl CommandFailure<'_> {
    /// The object of an error on one line.
    pub(super) fn line(error: &error::Error, secrets: &Secrets) -> String {
        json_line(&CommandFailure { error: ErrorRecord::from_error(error, secrets) })
    }
}

impl<'a> ErrorRecord<'a> {
    /// Converts an error.
    pub(super) fn from_error(error: &'a error::Error, secrets: &Secrets) -> ErrorRecord<'a> {
        ErrorRecord {
            kind: error.kind().name(),
            message: secrets.mask(error.message()),
            hint: error.hint().map(|hint| secrets.mask(hint)),
        }
    }
}

/// The object on one line. Characters that control a terminal, or that some readers treat as a
/// line end, are escaped.
fn json_line(object: &impl Serialize) -> String {
    // Cannot fail: every key is a string, and every value has a JSON form.
    let mut json = serde_json::to_string(object).unwrap_or_default();
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

/// The result as an object, if it has one.
fn result_object(result: &ToolResult, secrets: &Secrets) -> Option<Value> {
    let object = result.object.as_ref().unwrap_or(&result.content);
    let mut object = serde_json::from_str(object).ok().filter(Value::is_object)?;
    secrets.mask_json(&mut object);
    Some(object)
}

/// The arguments as an object, or as text if they are not an object.
fn arguments(text: &str, secrets: &Secrets) -> Value {
    let mut value = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        _ => Value::from(text),
    };
    secrets.mask_json(&mut value);
    value
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use base::error::{Error, ErrorKind};
    use base::secret::Secret;
    use base::tool::{ToolCall, ToolResult};

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
    fn arguments_of_calls_are_an_object_if_possible() {
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
                OutputRecord::from_event(&event, true, &secrets()).unwrap().line(),
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
            OutputRecord::from_event(&event, true, &secrets()).unwrap().line(),
            "{\"type\":\"tool_result\",\"id\":\"call_1\",\"name\":\"t\",\"ok\":false,\
             \"content\":\"{\\\"error\\\":\\\"no [secret]\\\"}\",\
             \"result\":{\"error\":\"no [secret]\"},\"duration_ms\":1}\n"
        );
        let event = Event::Retry { attempt: 2, delay: Duration::from_millis(500), reason: "busy" };
        assert_eq!(
            OutputRecord::from_event(&event, true, &secrets()).unwrap().line(),
            "{\"type\":\"retry\",\"attempt\":2,\"delay_ms\":500,\"reason\":\"busy\"}\n"
        );
        assert_eq!(OutputRecord::from_event(&Event::Text("x"), true, &secrets()), None);
    }

    #[test]
    fn a_record_is_one_line_and_harmless_on_a_terminal() {
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
    fn an_error_record_has_a_hint_if_the_error_has_one() {
        let error = Error::new(ErrorKind::Auth, "refused sk-\"canary");
        let line =
            |error: &Error| OutputRecord::Error(ErrorRecord::from_error(error, &secrets())).line();
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
