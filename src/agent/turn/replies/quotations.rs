//! Calls that a reply may only repeat from what the model has read.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::conversation::Conversation;
use crate::tools::Tools;
use base::message::Message;
use base::text::{any_decoded, sendable};
use chat_api::{TextCall, find_calls};

/// Whether untrusted text names an offered tool: it may show how one is called. Only letters and
/// underscores are compared, across line breaks and the marks before lines.
pub(super) fn names_tool(conversation: &Conversation, tools: &Tools<'_>) -> bool {
    let facts = tools.facts();
    let mut text = facts.clone() + conversation.replaced_text();
    for message in conversation.messages() {
        if !message.images().is_empty() {
            // It may show any text.
            return true;
        }
        text.extend(message.untrusted_texts());
        if let Message::Assistant(answer) = message {
            // What the model wrote into files, it may have copied.
            let calls = answer.calls.iter().filter(|call| tools.writes_text(&call.name));
            text.extend(calls.map(|call| &*call.arguments));
        }
    }
    let letters = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_ascii_alphabetic() || *c == '_');
        letters.map(|c| c.to_ascii_lowercase()).collect()
    };
    let names: Vec<String> = tools.definitions().iter().map(|tool| letters(&tool.name)).collect();
    let has_name = &mut |text: &str| {
        let text = letters(text);
        names.iter().any(|name| text.contains(name))
    };
    any_decoded(&sendable(&text), has_name).unwrap_or(true)
}

/// Whether one of these calls stands in what the model has read, or has shown as an answer: the
/// same tool with the same arguments. With `is_prompted` an answer with a call is one that failed.
pub(super) fn are_shown(
    calls: &[TextCall],
    conversation: &Conversation,
    tools: &Tools<'_>,
    is_prompted: bool,
) -> bool {
    let is_shown = &mut |text: &str| {
        let shown = find_calls(text, tools.definitions());
        shown.iter().any(|shown| calls.iter().any(|call| is_same(call, shown)))
    };
    // Without calls there is nothing to search.
    let messages = conversation.messages().iter().filter(|_| !calls.is_empty());
    let texts = messages.flat_map(|message| match message {
        Message::Assistant(_) if is_prompted => Vec::new(),
        Message::Assistant(answer) => {
            let arguments = answer.calls.iter().map(|call| call.arguments.as_str().into());
            arguments.chain([message.text()]).collect()
        }
        _ => vec![message.text()],
    });
    texts.into_iter().any(|text| any_decoded(&sendable(&text), is_shown) == Some(true))
}

/// Whether two calls do the same: one has all values of the other. Names of arguments may be
/// synonyms; a call without values could be a mere name.
fn is_same(one: &TextCall, other: &TextCall) -> bool {
    let values = |call: &TextCall| -> BTreeSet<String> {
        let values = call.arguments.values().map(|value| match value {
            Value::String(text) => text.trim().to_string(),
            Value::Null => String::new(),
            other => other.to_string(),
        });
        values.filter(|value| !value.is_empty()).collect()
    };
    let (values, others) = (values(one), values(other));
    let is_part = values.is_subset(&others) || others.is_subset(&values);
    one.name == other.name && is_part && !values.is_empty() && !others.is_empty()
}
