//! What a conversation is made of.
//!
//! Roles are variants, so that a message which the protocol forbids (a tool's
//! answer without its call's id, an assistant that says nothing) cannot be
//! built by accident: see [`Message::is_valid`] for what remains to check.

use serde_json::{Map, Value};

use crate::tool::ToolCall;

/// What the model said: text, calls, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assistant {
    /// The text; empty when the model only called tools.
    pub content: String,
    /// The calls, in the order in which the model made them.
    pub calls: Vec<ToolCall>,
    /// Fields that the endpoint wants to see again (reasoning, signatures).
    pub opaque: Map<String, Value>,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Instructions; the first message, and only that.
    System(String),
    /// What the person said.
    User(String),
    /// What the model said.
    Assistant(Assistant),
    /// What a tool answered.
    Tool {
        /// The id of the call it answers.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The result, always a string.
        content: String,
        /// How many bytes at its beginning are a skill's document.
        document_bytes: Option<usize>,
    },
}

impl Message {
    /// An assistant's message of text alone.
    pub fn assistant(content: impl Into<String>) -> Message {
        Message::Assistant(Assistant {
            content: content.into(),
            ..Assistant::default()
        })
    }

    /// R-MSG-1: system and user need content; an assistant's may be empty only
    /// with calls; a tool's needs its call's id and name.
    pub fn is_valid(&self) -> bool {
        match self {
            Message::System(text) | Message::User(text) => !text.is_empty(),
            Message::Assistant(said) => !said.content.is_empty() || !said.calls.is_empty(),
            Message::Tool { call_id, name, .. } => !call_id.is_empty() && !name.is_empty(),
        }
    }
}
