//! Formats 1 and 2 of session files. In format 1 marks in the text said what a message is; its
//! messages have no field `kind`. In both the document of an invoked skill was the text of a
//! message.

use serde_json::{Map, Value, json};

const SUMMARY_START: &str =
    "[Summary of the conversation so far. What it stands for is not here any more.]\n";
const INTERRUPTED: &str = "(no answer: the turn was interrupted)";
const INVOCATION_START: &str = "I invoke the skill `";
const CONTINUATION: &str = "(The conversation continues.)";

/// Converts the fields of one message.
pub(super) fn convert_message(fields: &mut Map<String, Value>) {
    if let Some(length) = fields.remove("document_bytes") {
        split_document(fields, &length);
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("kind") == "document" || fields.get("document") == Some(&Value::Bool(true)) {
        let name = text("text").strip_prefix(INVOCATION_START).and_then(|it| it.split_once('`'));
        let name = name.map_or("", |(name, _)| name);
        let skill = json!({"name": name, "arguments": "", "text": text("text")});
        fields.insert("kind".into(), "question".into());
        fields.insert("text".into(), "".into());
        fields.insert("skills".into(), json!([skill]));
    }
    if fields.contains_key("kind") {
        return;
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, text) = match (text("role"), text("text").strip_suffix(INTERRUPTED)) {
        ("user", _) => ("question", None),
        ("assistant", Some(partial)) if !fields.contains_key("calls") => {
            ("interrupted", Some(partial.trim_end().to_string()))
        }
        ("assistant", _) => ("answer", None),
        _ => return,
    };
    fields.insert("kind".into(), kind.into());
    if let Some(text) = text {
        fields.insert("text".into(), text.into());
    }
}

/// Converts the messages of a line that replaces all others. If the first one is a summary,
/// the messages after it may take the place of others.
pub(super) fn convert_summarized(messages: &mut [Value]) {
    let Some(text) = messages.first().and_then(|first| first["text"].as_str()) else {
        return;
    };
    let Some(summary) = text.strip_prefix(SUMMARY_START).map(String::from) else {
        return;
    };
    if !messages[0]["kind"].is_null() {
        return;
    }
    messages[0]["text"] = summary.into();
    messages[0]["kind"] = "summary".into();
    for message in messages {
        if message["role"] == "assistant" && message["text"] == CONTINUATION {
            message["text"] = "".into();
            message["kind"] = "continuation".into();
        }
    }
}

/// Makes the document at the start of a tool result a field of its own.
fn split_document(fields: &mut Map<String, Value>, length: &Value) {
    let length = length.as_u64().and_then(|length| usize::try_from(length).ok());
    let text = fields.get("text").and_then(Value::as_str).unwrap_or_default();
    if let Some((document, rest)) = length.and_then(|length| text.split_at_checked(length)) {
        let (document, rest) = (Value::from(document), Value::from(rest));
        fields.insert("document".into(), document);
        fields.insert("text".into(), rest);
    }
}
