//! Types that tools and models share: a tool's definition, a call and its result.
//! Models and tools do not depend on each other.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bounded;
use crate::inexact_json;
use crate::media::Image;

/// Definition of a tool, as it is sent to a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolDefinition {
    /// The name; matches `^[a-z_][a-z0-9_]*$`.
    pub name: String,
    /// Its effect and when to use it; never empty.
    pub description: String,
    /// JSON Schema of the arguments, which are an object.
    pub parameters: Value,
}

/// A form of calls among which a constrained reply chooses. A tool has several if it takes either
/// these arguments or those.
#[derive(Clone, Debug, PartialEq)]
pub struct CallForm {
    /// The tool's name.
    pub tool: String,
    /// The effect of a call.
    pub description: String,
    /// JSON Schema of the arguments, which are an object.
    pub parameters: Value,
}

impl ToolDefinition {
    /// Its only form of calls.
    pub fn call_form(&self) -> CallForm {
        let ToolDefinition { name, description, parameters } = self.clone();
        CallForm { tool: name, description, parameters }
    }
}

/// Possible effects of calling a tool. Clients use them to decide about consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about a tool")]
pub struct Effects {
    /// The tool changes nothing.
    pub is_read_only: bool,
    /// The tool may change or delete existing data, not only add to it.
    pub is_destructive: bool,
    /// A second call with the same arguments has no further effect.
    pub is_idempotent: bool,
    /// The tool may access the network, or anything that a program can access.
    pub is_open_world: bool,
    /// The tool starts programs, which may run long: such calls run one at a time.
    pub starts_programs: bool,
}

impl Effects {
    /// Effects of a tool that only reads.
    pub const READ_ONLY: Effects = Effects {
        is_read_only: true,
        is_destructive: false,
        is_idempotent: true,
        is_open_world: false,
        starts_programs: false,
    };

    /// Effects of a tool about which nothing is known.
    pub const UNKNOWN: Effects = Effects {
        is_read_only: false,
        is_destructive: true,
        is_idempotent: false,
        is_open_world: true,
        starts_programs: false,
    };
}

/// Tool call, as the model wrote it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The endpoint's id, byte for byte; generated if the endpoint sent none.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text.
    pub arguments: String,
    /// Fields that the endpoint expects back with the call (`extra_content`).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub opaque: Map<String, Value>,
}

/// Result of a tool call. A failure is a result, too: the model can react to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolResult {
    /// The document of a skill, which the model reads first. It is sent once, and is the last
    /// to be removed when the context is full.
    pub document: Option<String>,
    /// The result, JSON or plain text, or what follows the document.
    pub content: String,
    /// The part of the content that is not the program's own words, such as the output of a script;
    /// `None`: all of it.
    pub untrusted: Option<String>,
    /// The result as a JSON object, for records and other programs, if `content` is a text made of
    /// it.
    pub object: Option<String>,
    /// False for `{"error": …}` and for a script whose exit status is not 0.
    pub ok: bool,
    /// The result in one line for the user, e.g. `exit 0, 2 bytes: 4`.
    pub summary: String,
    /// An image for the model, in addition to the content.
    pub image: Option<Image>,
    /// The source of the skill's script, for the log: the call contains only its path.
    pub script_source: Option<String>,
    /// The user's consent to run the script, if requested: `once` or `all`.
    pub consent: Option<&'static str>,
    /// A warning for the user, shown even with `--quiet`.
    pub warning: Option<String>,
    /// The action that the result of the run lists, if there is one.
    pub action: Option<Action>,
}

/// An action of a tool that the result of a run lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// The document of the skill with this name was read.
    ReadSkill(String),
    /// A script ran.
    RanScript(ScriptExit),
    /// A command of the model ran.
    RanCommand(CommandExit),
    /// The user's file at this path was written.
    WroteFile(String),
}

/// A script that has run, or was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptExit {
    /// The name of its skill, if it had one.
    pub skill: Option<String>,
    /// Its path in the skill's folder; `None` for source that the model wrote.
    pub file: Option<String>,
    /// Its exit status, or -N if signal N ended it.
    pub returncode: i32,
}

/// A command that has run, or was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandExit {
    /// The command, as the model wrote it.
    pub command: String,
    /// Its exit status, or -N if signal N ended it.
    pub returncode: i32,
}

impl ToolResult {
    /// Creates the result of a successful call.
    pub fn success(content: impl Into<String>, summary: impl Into<String>) -> ToolResult {
        ToolResult {
            content: content.into(),
            ok: true,
            summary: summary.into(),
            ..ToolResult::default()
        }
    }

    /// Creates the result `{"error": message}`. The message says what to do next.
    pub fn failure(message: impl Into<String>) -> ToolResult {
        let message = message.into();
        ToolResult {
            content: serde_json::json!({ "error": message }).to_string(),
            untrusted: Some(String::new()),
            summary: format!("error: {message}"),
            ..ToolResult::default()
        }
    }

    /// Adds a line before the text, behind the first line of a program's, and to the object as
    /// `note`; an error stays as it is.
    #[must_use]
    pub fn with_note(mut self, note: Option<&str>) -> ToolResult {
        let Some(note) = note.filter(|_| self.ok || self.object.is_some()) else {
            return self;
        };
        let first_line = self.object.as_ref().and_then(|_| self.content.find('\n'));
        let at = first_line.map_or(0, |end| end + 1);
        self.content.insert_str(at, &format!("[{note}]\n"));
        let object = self.object.as_deref().and_then(|object| serde_json::from_str(object).ok());
        if let Some(Value::Object(mut fields)) = object {
            fields.insert("note".into(), note.into());
            self.object = Some(Value::Object(fields).to_string());
        }
        self
    }

    /// The text that the model reads.
    pub fn full_text(&self) -> Cow<'_, str> {
        match &self.document {
            Some(document) => Cow::Owned(format!("{document}{}", self.content)),
            None => Cow::Borrowed(&self.content),
        }
    }
}

/// Token counts, as the endpoint reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub prompt_tokens: u64,
    /// Tokens of the reply.
    pub completion_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
    }
}

/// A duration in whole milliseconds, the unit of all output.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Parses the arguments of a call: an object, or a string that contains an object.
/// Empty text and `null` are an empty object. Raw line breaks in strings and a code fence around
/// the object are taken. Arguments with too many values are refused.
pub fn parse_arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let mut value = inexact_json::read(text)?;
    if let Value::String(inner) = &value {
        if inner.trim().is_empty() {
            return Ok(Map::new());
        }
        value = inexact_json::read(inner)?;
    }
    match value {
        Value::Object(fields) => Ok(fields),
        Value::Null => Ok(Map::new()),
        _ => Err("the arguments must be a JSON object".into()),
    }
}

/// The arguments of a call as endpoints accept them in a history: as they are if they are valid
/// JSON, repaired, or `{}` if they cannot be read.
pub fn sendable_arguments(text: &str) -> Cow<'_, str> {
    match parse_arguments(text) {
        Ok(_) if bounded::from_slice(text.as_bytes()).is_ok() => Cow::Borrowed(text),
        read => Cow::Owned(Value::Object(read.unwrap_or_default()).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_a_string_with_an_object() {
        for text in [r#"{"a":1}"#, r#""{\"a\":1}""#] {
            assert_eq!(parse_arguments(text).unwrap()["a"], 1, "{text}");
        }
        for text in ["", "  ", "null", r#""""#] {
            assert!(parse_arguments(text).unwrap().is_empty(), "{text:?}");
        }
        for text in ["{", "[1]", "3", r#"{"a":1} x"#] {
            assert!(parse_arguments(text).is_err(), "{text}");
            assert_eq!(sendable_arguments(text), "{}");
        }
        for text in [r#"{"a":1 }"#, r#""{\"a\":1}""#, "null"] {
            assert_eq!(sendable_arguments(text), text);
        }
        for text in ["{\"a\":\"\n\"}", "```\n{\"a\":\"\\n\"}\n```"] {
            assert_eq!(sendable_arguments(text), r#"{"a":"\n"}"#, "{text}");
        }
        assert_eq!(sendable_arguments(" "), "{}");
    }
}
