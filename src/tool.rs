//! The words that tools and models share, so that neither needs to know the
//! other: what a tool looks like to a model, a call, and its result.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::bounded;
use crate::message::Image;

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Matches `^[a-z_][a-z0-9_]*$`.
    pub name: String,
    /// What it does and when to use it; never empty.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub parameters: Value,
}

/// What calling a tool may do, for whoever decides whether it may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about a tool")]
pub struct Effects {
    /// It changes nothing.
    pub reads_only: bool,
    /// What was there may be changed or lost; without it, it only adds.
    pub destroys: bool,
    /// A second call with the same arguments changes nothing more.
    pub is_idempotent: bool,
    /// It may reach what nobody has named: the network, all that a program reaches.
    pub is_open: bool,
    /// It starts programs, which take their time: one call after the other.
    pub starts_programs: bool,
}

impl Effects {
    /// It looks, and that is all.
    pub const NONE: Effects = Effects {
        reads_only: true,
        destroys: false,
        is_idempotent: true,
        is_open: false,
        starts_programs: false,
    };

    /// Nothing is known of it.
    pub const ANY: Effects = Effects {
        reads_only: false,
        destroys: true,
        is_idempotent: false,
        is_open: true,
        starts_programs: false,
    };
}

/// What a model asks to be run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCall {
    /// As the endpoint gave it, byte for byte; made up only where it gave none.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments as JSON text, as the model wrote them.
    pub arguments: String,
    /// Fields an endpoint wants to see again with the call (`extra_content`).
    pub opaque: Map<String, Value>,
}

/// What a tool answers. A failure is a result too: the model can mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The text for the model: JSON or a document as it is.
    pub content: String,
    /// False for `{"error": …}`, and for a script that did not end with 0.
    pub ok: bool,
    /// The same in one line for a person, e.g. `exit 0, 2 bytes: 4`.
    pub summary: String,
    /// How many bytes at the beginning of the content are a skill's document:
    /// they are told once, and are the last to go when room is needed.
    pub document_bytes: Option<usize>,
    /// A picture for the model, beside the content.
    pub image: Option<Image>,
    /// The skill's own script as it ran, for a log: the call has only its path.
    pub ran: Option<String>,
    /// What a person said when asked about the script: `once` or `all`.
    pub allowed: Option<&'static str>,
    /// What the person should know of it, however little is shown.
    pub warning: Option<String>,
}

impl ToolResult {
    /// A result that did what was asked.
    pub fn success(content: impl Into<String>, summary: impl Into<String>) -> ToolResult {
        ToolResult {
            content: content.into(),
            ok: true,
            summary: summary.into(),
            document_bytes: None,
            image: None,
            ran: None,
            allowed: None,
            warning: None,
        }
    }

    /// `{"error": message}`; the message says what to do next.
    pub fn failure(message: impl Into<String>) -> ToolResult {
        let message = message.into();
        let content = serde_json::json!({ "error": message }).to_string();
        ToolResult {
            content,
            ok: false,
            summary: format!("error: {message}"),
            document_bytes: None,
            image: None,
            ran: None,
            allowed: None,
            warning: None,
        }
    }

    /// The skill's document that the content begins with, and the rest of it.
    pub fn parts(&self) -> (Option<&str>, &str) {
        match self.document_bytes.and_then(|end| self.content.split_at_checked(end)) {
            Some((document, rest)) => (Some(document), rest),
            None => (None, &self.content),
        }
    }
}

/// Tokens, as the endpoint counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
    }
}

/// Whole milliseconds, as every output gives durations.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Reads the arguments of a call: an object, also one wrapped in a string once
/// more. Nothing at all is an empty object. Of so many values that they would
/// fill the memory none is read.
pub fn parse_arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let read = |text: &str| bounded::from_slice(text.as_bytes()).map_err(|error| error.to_string());
    let mut value = read(text)?;
    if let Value::String(inner) = &value {
        if inner.trim().is_empty() {
            return Ok(Map::new());
        }
        value = read(inner)?;
    }
    match value {
        Value::Object(fields) => Ok(fields),
        Value::Null => Ok(Map::new()),
        _ => Err("the arguments must be a JSON object".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_however_wrapped() {
        for text in [r#"{"a":1}"#, r#""{\"a\":1}""#] {
            assert_eq!(parse_arguments(text).unwrap()["a"], 1, "{text}");
        }
        for text in ["", "  ", "null", r#""""#] {
            assert!(parse_arguments(text).unwrap().is_empty(), "{text:?}");
        }
        for text in ["{", "[1]", "3", r#"{"a":1} x"#] {
            assert!(parse_arguments(text).is_err(), "{text}");
        }
    }
}
