//! Messages of a conversation.
//!
//! Each role is a variant with the fields that it needs, so that a tool result
//! without the id of its call, for example, cannot be built by accident.
//! [`Message::is_valid`] checks the rest.

use serde_json::{Map, Value};

use crate::tool::ToolCall;

/// Message of the model: text, tool calls, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
    /// The text; empty if the model only called tools.
    pub content: String,
    /// The tool calls, in the model's order.
    pub calls: Vec<ToolCall>,
    /// Fields that the endpoint expects back unchanged (reasoning, signatures).
    pub opaque: Map<String, Value>,
}

/// Image for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// An `https:` URL that the endpoint fetches, or the image itself as
    /// `data:image/png;base64,…` (RFC 2397).
    pub url: String,
}

impl Image {
    /// Describes the image for the user: type and size, or its URL without
    /// credentials.
    pub fn describe(&self) -> String {
        if let Some((mime, data)) = self.inline_data() {
            let padding = data.len() - data.trim_end_matches('=').len();
            return format!("{mime}, {} bytes", data.len() / 4 * 3 - padding);
        }
        let place = self.url.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) = place.split_once("://").unwrap_or(("", place));
        let end = rest.find('/').unwrap_or(rest.len());
        let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
        format!("{scheme}://{}", &rest[host..])
    }

    /// MIME type and base64 text of an image in a `data:` URL.
    pub fn inline_data(&self) -> Option<(&str, &str)> {
        self.url.strip_prefix("data:")?.split_once(";base64,")
    }
}

/// Message of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// The images, which follow the text.
    pub images: Vec<Image>,
    /// Whether the text is the document of a skill that the user invoked. Such a
    /// message is kept when older messages are summarized.
    pub is_document: bool,
}

impl UserMessage {
    /// The text, with a line that describes each image.
    pub fn to_text(&self) -> String {
        let mut text = self.text.clone();
        for image in &self.images {
            text.push_str(&format!("\n[image: {}]", image.describe()));
        }
        text
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
    /// System prompt: only the first message.
    System(String),
    /// Message of the user.
    User(UserMessage),
    /// Message of the model.
    Assistant(AssistantMessage),
    /// Result of a tool call.
    Tool {
        /// The id of the call.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The result, always a string.
        content: String,
        /// Number of leading bytes that are a skill's document.
        document_bytes: Option<usize>,
        /// The image that the tool read.
        image: Option<Image>,
    },
}

impl Message {
    /// Creates a user's message of text alone.
    pub fn user(text: impl Into<String>) -> Message {
        Message::User(UserMessage::from(text))
    }

    /// Creates a model's message of text alone.
    pub fn assistant(content: impl Into<String>) -> Message {
        Message::Assistant(AssistantMessage {
            content: content.into(),
            ..AssistantMessage::default()
        })
    }

    /// The images in the message.
    pub fn images(&self) -> &[Image] {
        match self {
            Message::User(message) => &message.images,
            Message::Tool { image, .. } => image.as_slice(),
            Message::System(_) | Message::Assistant(_) => &[],
        }
    }

    /// Whether the message is complete: system and user messages need content, an
    /// assistant's needs content or calls, a tool result the id and name of its call.
    pub fn is_valid(&self) -> bool {
        match self {
            Message::System(text) => !text.is_empty(),
            Message::User(message) => !message.text.is_empty() || !message.images.is_empty(),
            Message::Assistant(message) => !message.content.is_empty() || !message.calls.is_empty(),
            Message::Tool { call_id, name, .. } => !call_id.is_empty() && !name.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_described_without_its_bytes_or_credentials() {
        for (url, shown) in [
            ("data:image/png;base64,AAAA", "image/png, 3 bytes"),
            ("data:image/gif;base64,AAA=", "image/gif, 2 bytes"),
            ("data:image/gif;base64,", "image/gif, 0 bytes"),
            ("https://u:p@h.test:1/a@b.png?key=k#f", "https://h.test:1/a@b.png"),
            ("http://h.test?key=k", "http://h.test"),
            ("odd", "://odd"),
        ] {
            let image = Image { url: url.into() };
            assert_eq!(image.describe(), shown);
        }
    }
}
