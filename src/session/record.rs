//! The lines of a session's file: a header, then one change of the conversation per line. A
//! damaged line is skipped, never a panic.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use crate::conversation::ConversationChange;
use crate::message::{AssistantMessage, Image, Message, UserMessage};
use crate::secret::Secrets;
use crate::tool::{ToolCall, parse_arguments};
use crate::world::clock::{parse_timestamp, timestamp};

/// The start of the first line, which identifies a session.
pub(super) const HEADER_START: &str = r#"{"format":"skills-runner session","#;

const VERSION: u64 = 1;

/// The first line of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHeader {
    /// The id of the conversation, a UUID.
    pub id: String,
    /// The working folder in which it was started.
    pub folder: String,
    /// The model with which it was started.
    pub model: String,
    /// When it was started.
    pub created: SystemTime,
    /// The name that the program chose. If the session has another name, the user has renamed
    /// it.
    pub automatic: Option<String>,
}

impl SessionHeader {
    /// Formats the header as a line.
    pub fn to_line(&self, secrets: &Secrets) -> String {
        let mut fields = json!({
            "version": VERSION,
            "id": self.id,
            "folder": self.folder,
            "model": self.model,
            "created": timestamp(self.created),
            "automatic": self.automatic,
        });
        secrets.mask_json(&mut fields);
        // Texts and numbers always have a JSON form.
        let fields = serde_json::to_string(&fields).unwrap_or_default();
        format!("{HEADER_START}{}\n", fields.trim_start_matches('{'))
    }

    /// Parses a header; the error is the cause.
    pub fn parse(line: &[u8]) -> Result<SessionHeader, &'static str> {
        if !line.starts_with(HEADER_START.as_bytes()) {
            return Err("it is not a session of skills-runner");
        }
        let fields: Value =
            serde_json::from_slice(line).map_err(|_| "its first line is damaged")?;
        if fields["version"].as_u64() != Some(VERSION) {
            return Err("another version of skills-runner has written it");
        }
        let text = |name: &str| fields[name].as_str().map(String::from);
        let header = || {
            Some(SessionHeader {
                id: text("id")?,
                folder: text("folder")?,
                model: text("model")?,
                created: parse_timestamp(fields["created"].as_str()?)?,
                automatic: text("automatic"),
            })
        };
        header().ok_or("its first line is damaged")
    }
}

/// A change that was read from a line.
#[derive(Debug, PartialEq)]
pub(super) enum SessionEntry {
    /// A message was added.
    Added(Message),
    /// Only this number of messages stays.
    Cut(usize),
    /// These messages replace all others.
    Replaced(Vec<Message>),
}

/// Formats a change as a line.
pub fn change_line(change: ConversationChange<'_>, now: SystemTime, secrets: &Secrets) -> String {
    let (name, what) = match change {
        ConversationChange::Added(message) => ("add", message_value(message, secrets)),
        ConversationChange::Truncated(length) => ("cut", length.into()),
        ConversationChange::Replaced(messages) => {
            ("replace", messages.iter().map(|message| message_value(message, secrets)).collect())
        }
    };
    let time = timestamp(now);
    format!("{{\"time\":\"{time}\",\"{name}\":{what}}}\n")
}

/// Parses a change; `None` if the line is not a valid one.
pub(super) fn parse_entry(line: &[u8]) -> Option<SessionEntry> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else {
        return None;
    };
    parse_timestamp(fields.get("time")?.as_str()?)?;
    if let Some(message) = fields.remove("add") {
        return Some(SessionEntry::Added(parse_message(message)?));
    }
    if let Some(length) = fields.get("cut") {
        return Some(SessionEntry::Cut(usize::try_from(length.as_u64()?).ok()?));
    }
    match fields.remove("replace")? {
        Value::Array(all) => {
            Some(SessionEntry::Replaced(all.into_iter().map(parse_message).collect::<Option<_>>()?))
        }
        _ => None,
    }
}

/// A message as a JSON object with masked secrets.
pub(crate) fn message_value(message: &Message, secrets: &Secrets) -> Value {
    let mut value = match message {
        Message::System(text) => json!({"role": "system", "text": text}),
        Message::User(message) => {
            let mut fields = json!({"role": "user", "text": message.text});
            if !message.images.is_empty() {
                let images = message.images.iter().map(|image| image.url.as_str());
                fields["images"] = images.collect();
            }
            if message.is_document {
                fields["document"] = true.into();
            }
            fields
        }
        Message::Assistant(message) => {
            let mut fields = json!({"role": "assistant", "text": message.content});
            if !message.calls.is_empty() {
                fields["calls"] = message.calls.iter().map(call_value).collect();
            }
            add_opaque(&mut fields, &message.opaque);
            fields
        }
        Message::Tool { call_id, name, content, document_bytes, image } => {
            let mut fields = json!({"role": "tool", "id": call_id, "name": name, "text": content});
            let document = document_bytes.and_then(|end| content.split_at_checked(end));
            if let Some((document, rest)) = document {
                // Masking may change the length of the document.
                let document = secrets.mask(document);
                fields["document_bytes"] = document.len().into();
                fields["text"] = format!("{document}{}", secrets.mask(rest)).into();
            }
            if let Some(image) = image {
                fields["image"] = image.url.as_str().into();
            }
            fields
        }
    };
    secrets.mask_json(&mut value);
    value
}

fn call_value(call: &ToolCall) -> Value {
    let mut fields = json!({"id": call.id, "name": call.name, "arguments": call.arguments});
    add_opaque(&mut fields, &call.opaque);
    fields
}

fn add_opaque(fields: &mut Value, opaque: &Map<String, Value>) {
    if !opaque.is_empty() {
        fields["opaque"] = Value::Object(opaque.clone());
    }
}

fn parse_message(value: Value) -> Option<Message> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    let content = take_text(&mut fields, "text")?;
    let message = match take_text(&mut fields, "role")?.as_str() {
        "user" => Message::User(UserMessage {
            text: content,
            images: match fields.remove("images") {
                Some(Value::Array(images)) => {
                    let images = images.into_iter().map(parse_image);
                    images.collect::<Option<_>>()?
                }
                Some(_) => return None,
                None => Vec::new(),
            },
            is_document: fields.get("document") == Some(&Value::Bool(true)),
        }),
        "assistant" => Message::Assistant(AssistantMessage {
            content,
            calls: match fields.remove("calls") {
                Some(Value::Array(calls)) => {
                    let calls = calls.into_iter().map(parse_call);
                    calls.collect::<Option<_>>()?
                }
                Some(_) => return None,
                None => Vec::new(),
            },
            opaque: take_opaque(&mut fields)?,
        }),
        "tool" => Message::Tool {
            call_id: take_text(&mut fields, "id")?,
            name: take_text(&mut fields, "name")?,
            document_bytes: match fields.get("document_bytes") {
                Some(length) => {
                    let length = usize::try_from(length.as_u64()?).ok()?;
                    content.is_char_boundary(length).then_some(Some(length))?
                }
                None => None,
            },
            content,
            image: match fields.remove("image") {
                Some(url) => Some(parse_image(url)?),
                None => None,
            },
        },
        _ => return None,
    };
    message.is_valid().then_some(message)
}

fn parse_call(value: Value) -> Option<ToolCall> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    let call = ToolCall {
        id: take_text(&mut fields, "id")?,
        name: take_text(&mut fields, "name")?,
        arguments: take_text(&mut fields, "arguments")?,
        opaque: take_opaque(&mut fields)?,
    };
    // Endpoints refuse requests with invalid calls.
    let is_sound = !call.id.is_empty() && parse_arguments(&call.arguments).is_ok();
    (is_sound && !call.name.is_empty()).then_some(call)
}

fn parse_image(value: Value) -> Option<Image> {
    match value {
        Value::String(url) => Some(Image { url }),
        _ => None,
    }
}

fn take_opaque(fields: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    match fields.remove("opaque") {
        Some(Value::Object(opaque)) => Some(opaque),
        Some(_) => None,
        None => Some(Map::new()),
    }
}

fn take_text(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    match fields.remove(name)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn round_trip(message: &Message, secrets: &Secrets) -> Message {
        let line = change_line(ConversationChange::Added(message), SystemTime::now(), secrets);
        assert!(line.ends_with("}\n") && line.matches('\n').count() == 1);
        match parse_entry(line.trim_end().as_bytes()) {
            Some(SessionEntry::Added(message)) => message,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let opaque = |text: &str| serde_json::from_str(text).unwrap();
        let call = ToolCall {
            id: "c1".into(),
            name: "t".into(),
            arguments: "{\"a\":\"\\n\"}".into(),
            opaque: opaque(r#"{"extra_content":{"s":[1,null]}}"#),
        };
        let messages = [
            Message::user("a\nb\u{2028}\u{1f}ü"),
            Message::User(UserMessage {
                text: String::new(),
                images: vec![Image { url: "data:image/png;base64,AA==".into() }],
                is_document: true,
            }),
            Message::assistant("x"),
            Message::Assistant(AssistantMessage {
                content: String::new(),
                calls: vec![call.clone(), call],
                opaque: opaque(r#"{"reasoning":"r"}"#),
            }),
            Message::Tool {
                call_id: "c1".into(),
                name: "t".into(),
                content: "doc and files".into(),
                document_bytes: Some(3),
                image: Some(Image { url: "https://x.test/".into() }),
            },
        ];
        let none = Secrets::default();
        for message in &messages {
            assert_eq!(round_trip(message, &none), *message);
        }
        let line = change_line(ConversationChange::Replaced(&messages), SystemTime::now(), &none);
        assert_eq!(parse_entry(line.as_bytes()), Some(SessionEntry::Replaced(messages.into())));
    }

    #[test]
    fn secrets_are_masked_and_the_end_of_a_document_is_adjusted() {
        let mut secrets = Secrets::default();
        secrets.extend(Secret::new("sk-\"canary-key"));
        let message = Message::Tool {
            call_id: "c".into(),
            name: "t".into(),
            content: "doc sk-\"canary-key|files sk-\"canary-key".into(),
            document_bytes: Some("doc sk-\"canary-key".len()),
            image: None,
        };
        let Message::Tool { content, document_bytes, .. } = round_trip(&message, &secrets) else {
            panic!()
        };
        assert_eq!(content, "doc [secret]|files [secret]");
        assert_eq!(document_bytes, Some("doc [secret]".len()));
    }

    #[test]
    fn invalid_lines_are_not_read() {
        let time = timestamp(SystemTime::now());
        for rest in [
            r#""add":{"role":"user","text":""}"#,
            r#""add":{"role":"system","text":"you are"}"#,
            r#""add":{"role":"user","text":1}"#,
            r#""add":{"role":"user","text":"x","images":["a",1]}"#,
            r#""add":{"role":"assistant","text":""}"#,
            r#""add":{"role":"assistant","text":"","calls":[{"id":"","name":"t","arguments":"{}"}]}"#,
            r#""add":{"role":"assistant","text":"","calls":[{"id":"a","name":"t","arguments":"{"}]}"#,
            r#""add":{"role":"tool","id":"a","name":"t","text":"ü","document_bytes":1}"#,
            r#""add":{"role":"tool","id":"a","name":"t","text":"ü","document_bytes":9}"#,
            r#""add":[]"#,
            r#""cut":-1"#,
            r#""replace":{}"#,
            r#""replace":[[]]"#,
            r#""other":1"#,
        ] {
            let line = format!("{{\"time\":\"{time}\",{rest}}}");
            assert_eq!(parse_entry(line.as_bytes()), None, "{line}");
        }
        assert_eq!(parse_entry(br#"{"cut":1}"#), None);
        assert_eq!(parse_entry(b"\xff"), None);
    }
}
