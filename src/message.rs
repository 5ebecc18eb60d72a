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

/// A picture for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where it is, as the protocol has it: an `https:` address that the
    /// endpoint fetches, or the picture itself as
    /// `data:image/png;base64,…` (RFC 2397).
    pub url: String,
}

/// What the person said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The text.
    pub text: String,
    /// The pictures that go with it, behind the text.
    pub images: Vec<Image>,
    /// The text is a skill's document, which the person invoked: it is kept
    /// when older messages are summarized.
    pub is_document: bool,
}

impl<T: Into<String>> From<T> for User {
    fn from(text: T) -> User {
        User {
            text: text.into(),
            ..User::default()
        }
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Instructions; the first message, and only that.
    System(String),
    /// What the person said.
    User(User),
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
        /// The picture that the tool read.
        image: Option<Image>,
    },
}

impl Message {
    /// A person's message of text alone.
    pub fn user(text: impl Into<String>) -> Message {
        Message::User(User::from(text))
    }

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
            Message::System(text) => !text.is_empty(),
            Message::User(said) => !said.text.is_empty() || !said.images.is_empty(),
            Message::Assistant(said) => !said.content.is_empty() || !said.calls.is_empty(),
            Message::Tool { call_id, name, .. } => !call_id.is_empty() && !name.is_empty(),
        }
    }
}
