//! Messages in the form in which they are sent.
//!
//! A message with images is a list of parts. Tool results must be text everywhere, so
//! images that tools show follow in a user message after all results of the step. Some
//! endpoints refuse a user message right after a tool message: an assistant message is always
//! put between them, which no endpoint refuses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem;

use serde_json::Value;

use crate::constrained;
use crate::described_tools;
use crate::dialect::{Dialect, DialectChange};
use crate::quirks::is_reasoning_field;
use base::limits;
use base::media::Image;
use base::message::{AssistantMessage, Message};
use base::text::{one_line, sendable};
use base::tool::ToolCall;

/// The text of the assistant message before the images.
const IMAGES_FOLLOW: &str = "(What the tools have shown follows as images.)";

/// A message as it is sent.
#[derive(Debug, serde::Serialize)]
pub(super) struct WireMessage<'m> {
    pub role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'m str>,
    pub content: WireContent<'m>,
    /// Fields that the endpoint expects back.
    #[serde(flatten)]
    pub opaque: BTreeMap<&'m str, &'m Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<WireCall<'m>>,
}

#[derive(Debug, serde::Serialize)]
#[serde(untagged)]
pub(super) enum WireContent<'m> {
    Null,
    Text(Cow<'m, str>),
    Parts(Vec<ContentPart<'m>>),
}

#[derive(Debug, serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'m> {
    Text { text: Cow<'m, str> },
    ImageUrl { image_url: ImageUrl<'m> },
}

#[derive(Debug, serde::Serialize)]
pub(super) struct ImageUrl<'m> {
    url: &'m str,
}

#[derive(Debug, serde::Serialize)]
pub(super) struct WireCall<'m> {
    id: &'m str,
    r#type: &'static str,
    function: CalledFunction<'m>,
    /// Fields that the endpoint expects back.
    #[serde(flatten)]
    pub opaque: BTreeMap<&'m str, &'m Value>,
}

#[derive(Debug, serde::Serialize)]
struct CalledFunction<'m> {
    name: &'m str,
    arguments: &'m str,
}

/// How the calls of a conversation are sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum SentCalls<'t> {
    /// In the fields of the API.
    Native,
    /// As text; each opens with this mark.
    Marked(&'t str),
    /// As the JSON objects of constrained replies.
    Constrained,
}

impl SentCalls<'_> {
    /// A result as text, if calls are.
    fn result_text(self, name: &str, result: &str, fails_again: bool) -> Option<String> {
        match self {
            SentCalls::Native => None,
            SentCalls::Marked(_) => Some(described_tools::result_text(name, result)),
            SentCalls::Constrained => Some(constrained::result_text(name, result, fails_again)),
        }
    }
}

/// The messages of a request. Those from `question` on belong to the turn that is answered.
pub(super) fn wire_messages<'m>(
    messages: impl Iterator<Item = &'m Message>,
    question: usize,
    sent_calls: SentCalls<'_>,
    dialect: &Dialect,
) -> Vec<WireMessage<'m>> {
    let omits_images = dialect.has(&DialectChange::OmitImages);
    let sends_tool_name = dialect.has(&DialectChange::SendToolName);
    let mut list = Vec::new();
    let mut calls: &[ToolCall] = &[];
    // What the tools of a step have shown.
    let mut shown = Vec::new();
    let mut has_failed = false;
    for (position, message) in messages.enumerate() {
        let is_current_turn = position >= question;
        if !matches!(message, Message::Tool(_)) {
            add_shown(&mut list, mem::take(&mut shown));
        }
        list.push(match message {
            Message::System(text) => WireMessage::of_text("system", text.into()),
            Message::User(user) => {
                has_failed = false;
                let text = sendable_text(user.full_text());
                // The current question is not changed: the refusal is reported instead.
                if user.images.is_empty() {
                    WireMessage::of_text("user", text)
                } else if omits_images && !is_current_turn {
                    WireMessage::of_text("user", without_image(&text).into())
                } else {
                    let text = Some(text).filter(|text| !text.is_empty()).map(ContentPart::text);
                    let images = user.images.iter().map(ContentPart::image);
                    WireMessage::of_parts(text.into_iter().chain(images).collect())
                }
            }
            Message::Assistant(assistant) => {
                calls = &assistant.calls;
                assistant_message(assistant, is_current_turn, sent_calls, dialect)
            }
            Message::Tool(result) => {
                let call = calls.split_off_first();
                let mut text = sendable_text(result.full_text());
                match &result.image {
                    Some(_) if omits_images => text = without_image(&text).into(),
                    Some(image) => {
                        let arguments = call.map_or("", |call| &call.arguments);
                        let label = format!("{} {arguments}:", result.name);
                        let label = one_line(&sendable(&label), limits::SUMMARY_CHARS);
                        shown.push(ContentPart::text(label.into()));
                        shown.push(ContentPart::image(image));
                    }
                    None => {}
                }
                let fails_again =
                    mem::replace(&mut has_failed, constrained::is_failure(&text)) && has_failed;
                if let Some(text) = sent_calls.result_text(&result.name, &text, fails_again) {
                    add_result_text(&mut list, text);
                    continue;
                }
                WireMessage {
                    tool_call_id: Some(&result.call_id),
                    name: sends_tool_name.then_some(&result.name),
                    ..WireMessage::of_text("tool", text)
                }
            }
        });
    }
    add_shown(&mut list, shown);
    list
}

/// Adds a description of the tools to the system message.
pub(super) fn add_description(
    list: &mut Vec<WireMessage<'_>>,
    description: String,
    is_first: bool,
) {
    match list.first_mut() {
        Some(WireMessage { role: "system", content: WireContent::Text(text), .. }) => {
            let parts = [text.trim_end(), description.trim_end()];
            let [text_at, other] = if is_first { [1, 0] } else { [0, 1] };
            *text = format!("{}\n\n{}\n", parts[text_at], parts[other]).into();
        }
        _ => list.insert(0, WireMessage::of_text("system", description.into())),
    }
}

/// Adds a result to the user message with the results of its step.
fn add_result_text(list: &mut Vec<WireMessage<'_>>, result: String) {
    match list.last_mut() {
        Some(WireMessage { role: "user", content: WireContent::Text(text), .. }) => {
            text.to_mut().push_str(&format!("\n{result}"));
        }
        _ => list.push(WireMessage::of_text("user", result.into())),
    }
}

/// Adds the images that tools have shown after their results.
fn add_shown<'m>(list: &mut Vec<WireMessage<'m>>, shown: Vec<ContentPart<'m>>) {
    if !shown.is_empty() {
        list.push(WireMessage::of_text("assistant", IMAGES_FOLLOW.into()));
        list.push(WireMessage::of_parts(shown));
    }
}

fn assistant_message<'m>(
    assistant: &'m AssistantMessage,
    is_current_turn: bool,
    sent_calls: SentCalls<'_>,
    dialect: &Dialect,
) -> WireMessage<'m> {
    let is_sent = |name: &str| is_current_turn || !is_reasoning_field(name);
    let fields = |fields: &'m serde_json::Map<String, Value>| {
        let accepted = fields.iter().filter(|(name, _)| dialect.accepts(name) && is_sent(name));
        accepted.map(|(name, value)| (name.as_str(), value)).collect()
    };
    let calls = assistant.calls.iter().map(|call| WireCall {
        id: &call.id,
        r#type: "function",
        function: CalledFunction { name: &call.name, arguments: &call.arguments },
        opaque: fields(&call.opaque),
    });
    let text = match sent_calls {
        SentCalls::Native => assistant.full_text(),
        SentCalls::Marked(mark) => described_tools::message_text(assistant, mark).into(),
        SentCalls::Constrained => constrained::message_text(assistant).into(),
    };
    // It is empty only if there are tool calls: an assistant message without both is invalid.
    let content = if text.is_empty() && !dialect.has(&DialectChange::SendEmptyText) {
        WireContent::Null
    } else {
        WireContent::Text(text)
    };
    WireMessage {
        content,
        opaque: fields(&assistant.opaque),
        tool_calls: match sent_calls {
            SentCalls::Native => calls.collect(),
            _ => Vec::new(),
        },
        ..WireMessage::of_text("assistant", "".into())
    }
}

impl<'m> WireMessage<'m> {
    fn of_text(role: &'static str, text: Cow<'m, str>) -> WireMessage<'m> {
        WireMessage {
            role,
            tool_call_id: None,
            name: None,
            content: WireContent::Text(text),
            opaque: BTreeMap::new(),
            tool_calls: Vec::new(),
        }
    }

    fn of_parts(parts: Vec<ContentPart<'m>>) -> WireMessage<'m> {
        let content = WireContent::Parts(parts);
        WireMessage { content, ..WireMessage::of_text("user", "".into()) }
    }
}

impl<'m> ContentPart<'m> {
    fn text(text: Cow<'m, str>) -> ContentPart<'m> {
        ContentPart::Text { text }
    }

    fn image(image: &'m Image) -> ContentPart<'m> {
        ContentPart::ImageUrl { image_url: ImageUrl { url: &image.url } }
    }
}

/// The text that replaces a message with an image where images are not sent.
fn without_image(text: &str) -> String {
    let separator = if text.is_empty() { "" } else { "\n" };
    format!("{text}{separator}[image left out: the model is shown none]")
}

fn sendable_text(text: Cow<'_, str>) -> Cow<'_, str> {
    let changed = match sendable(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(changed) => Some(changed),
    };
    changed.map_or(text, Cow::Owned)
}
