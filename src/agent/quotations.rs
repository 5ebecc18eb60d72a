//! Calls that a reply may only repeat from what the model has read.

use std::collections::BTreeSet;

use crate::conversation::Conversation;
use crate::message::Message;
use crate::model::{TextCall, find_calls};
use crate::text::any_decoded;
use crate::tools::Tools;

/// Whether untrusted text names an offered tool: it may show how one is called. Only letters and
/// underscores are compared, across line breaks and the marks before lines.
pub(super) fn names_tool(conversation: &Conversation, tools: &Tools<'_>) -> bool {
    let facts = tools.facts();
    let mut text = facts.clone();
    for message in conversation.messages() {
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
    any_decoded(&text, has_name).unwrap_or(true)
}

/// Whether one of these calls stands in what the model has read, or has shown as an answer: the same
/// tool with the same arguments. With `is_prompted` an answer with a call is one that failed.
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
    texts.into_iter().any(|text| any_decoded(&text, is_shown) == Some(true))
}

/// Whether two calls do the same: names of arguments may be synonyms.
fn is_same(one: &TextCall, other: &TextCall) -> bool {
    let values = |call: &TextCall| {
        let values = call.arguments.values().filter(|value| !value.is_null());
        values.map(ToString::to_string).collect::<BTreeSet<_>>()
    };
    one.name == other.name && values(one) == values(other)
}
