//! Messages of a conversation.
//!
//! Each role has the fields that it needs, so that a tool result without the id of its call,
//! for example, cannot be built by accident; [`Message::is_valid`] checks the rest. What a
//! message is, such as a summary or an interrupted answer, is a field: the text that the model
//! reads is made of the fields by [`Message::text`].

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::media::Image;
use crate::tool::ToolCall;

/// The start of a summary, for the model.
const SUMMARY_START: &str =
    "[Summary of the conversation so far. What it stands for is not here any more.]\n";

/// Comes between the documents of skills and the user's text, for the model.
const REQUEST_HEADING: &str = "\n\nMy request:\n\n";

/// The end of an interrupted turn, for the model.
const INTERRUPTED: &str = "(no answer: the turn was interrupted)";

/// The text of an assistant message that takes the place of removed messages.
const CONTINUATION: &str = "(The conversation continues.)";

/// Kind of a message of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UserMessageKind {
    /// A question.
    #[default]
    Question,
    /// A summary, which replaces older messages.
    Summary,
}

/// A skill that the user invoked, or gave with a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvokedSkill {
    /// The name; empty in sessions of older versions.
    pub name: String,
    /// The arguments, as the user typed them.
    pub arguments: String,
    /// Its document for the model. It is kept when older messages are summarized.
    pub text: String,
}

/// A text file attached to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedFile {
    /// The name, as the user gave it.
    pub name: String,
    /// The contents.
    pub text: String,
}

/// Message of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The kind.
    pub kind: UserMessageKind,
    /// The skills, which come before the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<InvokedSkill>,
    /// The text; may be empty after skills.
    pub text: String,
    /// The bytes at its start that the user has written in this run. The rest came from standard
    /// input, or from an earlier run of the session.
    #[serde(skip)]
    pub typed_bytes: usize,
    /// The text files, which follow the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<AttachedFile>,
    /// The images, which follow the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl UserMessage {
    /// The text that the model reads.
    pub fn full_text(&self) -> Cow<'_, str> {
        let request = self.request_text();
        if self.skills.is_empty() {
            return request;
        }
        let skills: Vec<&str> = self.skills.iter().map(|skill| skill.text.as_str()).collect();
        let heading = if request.is_empty() { "" } else { REQUEST_HEADING };
        Cow::Owned(format!("{}{heading}{request}", skills.join("\n\n")))
    }

    /// The text that the model reads after the documents of skills.
    pub fn request_text(&self) -> Cow<'_, str> {
        if self.kind == UserMessageKind::Summary {
            return Cow::Owned(format!("{SUMMARY_START}{}", self.text));
        }
        let mut text = Cow::Borrowed(self.text.as_str());
        for AttachedFile { name, text: contents } in &self.files {
            let name = name.replace('&', "&amp;").replace('"', "&quot;");
            let name = name.replace('<', "&lt;").replace('>', "&gt;");
            let end = if contents.ends_with('\n') { "" } else { "\n" };
            text.to_mut().push_str(&format!("\n\n<file name=\"{name}\">\n{contents}{end}</file>"));
        }
        text
    }

    /// The text as the user typed it: without one, the invocation of the last skill.
    pub fn typed_text(&self) -> Cow<'_, str> {
        match self.skills.last().filter(|_| self.text.is_empty()) {
            Some(skill) => {
                let line = format!("/{} {}", skill.name, skill.arguments);
                Cow::Owned(line.trim_end().to_string())
            }
            None => Cow::Borrowed(&self.text),
        }
    }

    /// The text that the model reads, with a line that describes each image.
    pub fn to_text(&self) -> String {
        let mut text = self.full_text().into_owned();
        for image in &self.images {
            text.push_str(&format!("\n[image: {}]", image.describe()));
        }
        text
    }
}

impl<T: Into<String>> From<T> for UserMessage {
    fn from(text: T) -> UserMessage {
        let text = text.into();
        UserMessage { typed_bytes: text.len(), text, ..UserMessage::default() }
    }
}

/// Kind of a message of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AssistantMessageKind {
    /// The model wrote it.
    #[default]
    Answer,
    /// It closes a turn that was interrupted, with the part of the answer that was received.
    Interrupted,
    /// It takes the place of messages that a summary replaced, so that roles alternate.
    Continuation,
}

/// Message of the model: text, tool calls, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The kind.
    pub kind: AssistantMessageKind,
    /// The text; empty if the model only called tools.
    #[serde(rename = "text")]
    pub content: String,
    /// The tool calls, in the model's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Fields that the endpoint expects back unchanged (reasoning, signatures).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub opaque: Map<String, Value>,
    /// A constrained reply as the model wrote it: sent back unchanged, so that endpoints find it in
    /// their caches. Empty for others, and for those of earlier runs.
    #[serde(skip)]
    pub written: String,
    /// Whether replies were constrained from some reply of the conversation on, because the model
    /// described a call before: another run that continues it goes on so.
    #[serde(default, rename = "constrained", skip_serializing_if = "std::ops::Not::not")]
    pub is_constrained: bool,
}

impl AssistantMessage {
    /// The text that the model reads.
    pub fn full_text(&self) -> Cow<'_, str> {
        match self.kind {
            AssistantMessageKind::Answer => Cow::Borrowed(&self.content),
            AssistantMessageKind::Continuation => Cow::Borrowed(CONTINUATION),
            AssistantMessageKind::Interrupted if self.content.is_empty() => {
                Cow::Borrowed(INTERRUPTED)
            }
            AssistantMessageKind::Interrupted => {
                Cow::Owned(format!("{}\n\n{INTERRUPTED}", self.content))
            }
        }
    }
}

/// Result of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolMessage {
    /// The id of the call.
    #[serde(rename = "id")]
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The document of a skill, which comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The result, or what follows the document.
    #[serde(rename = "text")]
    pub content: String,
    /// The part of the content that is not the program's own words, such as the output of a script.
    /// `None`: all of it, unless there is a document.
    #[serde(skip)]
    pub untrusted: Option<String>,
    /// Whether the middle of the content was removed because the context was full.
    #[serde(rename = "shortened", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shortened: bool,
    /// The image that the tool read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

impl ToolMessage {
    /// The text that the model reads.
    pub fn full_text(&self) -> Cow<'_, str> {
        match &self.document {
            Some(document) => Cow::Owned(format!("{document}{}", self.content)),
            None => Cow::Borrowed(&self.content),
        }
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
    Tool(ToolMessage),
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

    /// The text that the model reads.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Message::System(text) => Cow::Borrowed(text),
            Message::User(message) => message.full_text(),
            Message::Assistant(message) => message.full_text(),
            Message::Tool(message) => message.full_text(),
        }
    }

    /// Returns the texts written neither by the user nor by this program, except skills' documents:
    /// standard input, files, output, results of an earlier run of the session.
    pub fn untrusted_texts(&self) -> Vec<&str> {
        match self {
            Message::User(user) => {
                let is_summary = user.kind == UserMessageKind::Summary;
                let typed = if is_summary { 0 } else { user.typed_bytes };
                let text = user.text.get(typed..).unwrap_or(&user.text);
                [text]
                    .into_iter()
                    .chain(user.files.iter().flat_map(|it| [&*it.name, &*it.text]))
                    .collect()
            }
            Message::Tool(tool) => match (&tool.untrusted, &tool.document) {
                (Some(text), _) => vec![text],
                (None, Some(_)) => Vec::new(),
                (None, None) => vec![&tool.content],
            },
            Message::System(_) | Message::Assistant(_) => Vec::new(),
        }
    }

    /// The images in the message.
    pub fn images(&self) -> &[Image] {
        match self {
            Message::User(message) => &message.images,
            Message::Tool(message) => message.image.as_slice(),
            Message::System(_) | Message::Assistant(_) => &[],
        }
    }

    /// Whether the message is the user's.
    pub fn is_user(&self) -> bool {
        matches!(self, Message::User(_))
    }

    /// Whether the message is complete: system and user messages need content, an
    /// assistant's needs content or calls, a tool result the id and name of its call.
    pub fn is_valid(&self) -> bool {
        match self {
            Message::User(message) => !self.text().is_empty() || !message.images.is_empty(),
            Message::Assistant(message) => !self.text().is_empty() || !message.calls.is_empty(),
            Message::Tool(message) => !message.call_id.is_empty() && !message.name.is_empty(),
            Message::System(text) => !text.is_empty(),
        }
    }
}
