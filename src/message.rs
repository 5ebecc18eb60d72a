//! What a conversation is made of.
//!
//! Roles are variants, so that a message which the protocol forbids (a tool's
//! answer without its call's id, an assistant that says nothing) cannot be
//! built by accident: see [`Message::is_valid`] for what remains to check.

use serde_json::{Map, Value};

use crate::tool::ToolCall;

/// What the model said: text, calls, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
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

impl Image {
    /// What it is, for a person: type and size, or where it is, without what
    /// an address may hold of credentials.
    pub fn shown(&self) -> String {
        if let Some((mime, data)) = self.data() {
            let padding = data.len() - data.trim_end_matches('=').len();
            return format!("{mime}, {} bytes", data.len() / 4 * 3 - padding);
        }
        let place = self.url.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) = place.split_once("://").unwrap_or(("", place));
        let end = rest.find('/').unwrap_or(rest.len());
        let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
        format!("{scheme}://{}", &rest[host..])
    }

    /// Its type and its base64, where it is not an address.
    pub fn data(&self) -> Option<(&str, &str)> {
        self.url.strip_prefix("data:")?.split_once(";base64,")
    }
}

/// What the person said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// The pictures that go with it, behind the text.
    pub images: Vec<Image>,
    /// The text is a skill's document, which the person invoked: it is kept
    /// when older messages are summarized.
    pub is_document: bool,
}

impl UserMessage {
    /// The text as records tell it, with a word for each picture.
    pub fn told(&self) -> String {
        let mut told = self.text.clone();
        for image in &self.images {
            told.push_str(&format!("\n[image: {}]", image.shown()));
        }
        told
    }
}

impl<T: Into<String>> From<T> for UserMessage {
    fn from(text: T) -> UserMessage {
        UserMessage { text: text.into(), ..UserMessage::default() }
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Instructions; the first message, and only that.
    System(String),
    /// What the person said.
    User(UserMessage),
    /// What the model said.
    Assistant(AssistantMessage),
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
        Message::User(UserMessage::from(text))
    }

    /// An assistant's message of text alone.
    pub fn assistant(content: impl Into<String>) -> Message {
        Message::Assistant(AssistantMessage {
            content: content.into(),
            ..AssistantMessage::default()
        })
    }

    /// The pictures that it holds.
    pub fn images(&self) -> &[Image] {
        match self {
            Message::User(said) => &said.images,
            Message::Tool { image, .. } => image.as_slice(),
            Message::System(_) | Message::Assistant(_) => &[],
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_told_without_its_bytes_or_its_credentials() {
        for (url, shown) in [
            ("data:image/png;base64,AAAA", "image/png, 3 bytes"),
            ("data:image/gif;base64,AAA=", "image/gif, 2 bytes"),
            ("data:image/gif;base64,", "image/gif, 0 bytes"),
            ("https://u:p@h.test:1/a@b.png?key=k#f", "https://h.test:1/a@b.png"),
            ("http://h.test?key=k", "http://h.test"),
            ("odd", "://odd"),
        ] {
            let image = Image { url: url.into() };
            assert_eq!(image.shown(), shown);
        }
    }
}
