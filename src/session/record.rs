//! The lines of a session's file: a header, then one change of the conversation
//! each. What is written by hand or by a fault is no line, never a panic.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use crate::conversation::ConversationChange;
use crate::message::{AssistantMessage, Image, Message, UserMessage};
use crate::secret::Secrets;
use crate::tool::{ToolCall, parse_arguments};
use crate::world::clock::{parse, timestamp};

/// What the first line begins with, by which a session is known.
pub(super) const MARK: &str = r#"{"format":"skills-runner session","#;

const VERSION: u64 = 1;

/// The first line: whose conversation it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHeader {
    /// The conversation's id, a UUID.
    pub id: String,
    /// The working folder it was begun in.
    pub folder: String,
    /// The model it was begun with.
    pub model: String,
    /// When it was begun.
    pub created: SystemTime,
    /// The name that the program gave it. Under another name it is a person's,
    /// who has renamed it.
    pub automatic: Option<String>,
}

impl SessionHeader {
    /// Its line.
    pub fn line(&self, secrets: &Secrets) -> String {
        let mut fields = json!({
            "version": VERSION,
            "id": self.id,
            "folder": self.folder,
            "model": self.model,
            "created": timestamp(self.created),
            "automatic": self.automatic,
        });
        secrets.mask_all(&mut fields);
        // Texts and numbers always have a JSON form.
        let fields = serde_json::to_string(&fields).unwrap_or_default();
        format!("{MARK}{}\n", fields.trim_start_matches('{'))
    }

    /// The header that a line is, or why it is none.
    pub fn of(line: &[u8]) -> Result<SessionHeader, &'static str> {
        if !line.starts_with(MARK.as_bytes()) {
            return Err("it is no session of skills-runner");
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
                created: parse(fields["created"].as_str()?)?,
                automatic: text("automatic"),
            })
        };
        header().ok_or("its first line is damaged")
    }
}

/// A change, as it is read.
#[derive(Debug, PartialEq)]
pub(super) enum SessionEntry {
    /// A message was added.
    Added(Message),
    /// So many messages are left.
    Cut(usize),
    /// These stand for all.
    Replaced(Vec<Message>),
}

/// The line of a change.
pub fn line(change: ConversationChange<'_>, now: SystemTime, secrets: &Secrets) -> String {
    let (name, what) = match change {
        ConversationChange::Added(message) => ("add", value(message, secrets)),
        ConversationChange::Cut(length) => ("cut", length.into()),
        ConversationChange::Replaced(messages) => {
            ("replace", messages.iter().map(|said| value(said, secrets)).collect())
        }
    };
    let time = timestamp(now);
    format!("{{\"time\":\"{time}\",\"{name}\":{what}}}\n")
}

/// The change that a line is; `None` if it is none.
pub(super) fn entry(line: &[u8]) -> Option<SessionEntry> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else {
        return None;
    };
    parse(fields.get("time")?.as_str()?)?;
    if let Some(message) = fields.remove("add") {
        return Some(SessionEntry::Added(message_of(message)?));
    }
    if let Some(length) = fields.get("cut") {
        return Some(SessionEntry::Cut(usize::try_from(length.as_u64()?).ok()?));
    }
    match fields.remove("replace")? {
        Value::Array(all) => {
            Some(SessionEntry::Replaced(all.into_iter().map(message_of).collect::<Option<_>>()?))
        }
        _ => None,
    }
}

/// A message as an object, without secrets.
pub(crate) fn value(message: &Message, secrets: &Secrets) -> Value {
    let mut value = match message {
        Message::System(text) => json!({"role": "system", "text": text}),
        Message::User(said) => {
            let mut fields = json!({"role": "user", "text": said.text});
            if !said.images.is_empty() {
                let images = said.images.iter().map(|image| image.url.as_str());
                fields["images"] = images.collect();
            }
            if said.is_document {
                fields["document"] = true.into();
            }
            fields
        }
        Message::Assistant(said) => {
            let mut fields = json!({"role": "assistant", "text": said.content});
            if !said.calls.is_empty() {
                fields["calls"] = said.calls.iter().map(call_value).collect();
            }
            add_opaque(&mut fields, &said.opaque);
            fields
        }
        Message::Tool { call_id, name, content, document_bytes, image } => {
            let mut fields = json!({"role": "tool", "id": call_id, "name": name, "text": content});
            let document = document_bytes.and_then(|end| content.split_at_checked(end));
            if let Some((document, rest)) = document {
                // Where it ends may change with what is masked in it.
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
    secrets.mask_all(&mut value);
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

fn message_of(value: Value) -> Option<Message> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    let content = text(&mut fields, "text")?;
    let message = match text(&mut fields, "role")?.as_str() {
        "user" => Message::User(UserMessage {
            text: content,
            images: match fields.remove("images") {
                Some(Value::Array(images)) => {
                    let images = images.into_iter().map(image);
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
                    let calls = calls.into_iter().map(call);
                    calls.collect::<Option<_>>()?
                }
                Some(_) => return None,
                None => Vec::new(),
            },
            opaque: opaque(&mut fields)?,
        }),
        "tool" => Message::Tool {
            call_id: text(&mut fields, "id")?,
            name: text(&mut fields, "name")?,
            document_bytes: match fields.get("document_bytes") {
                Some(length) => {
                    let length = usize::try_from(length.as_u64()?).ok()?;
                    content.is_char_boundary(length).then_some(Some(length))?
                }
                None => None,
            },
            content,
            image: match fields.remove("image") {
                Some(url) => Some(image(url)?),
                None => None,
            },
        },
        _ => return None,
    };
    message.is_valid().then_some(message)
}

fn call(value: Value) -> Option<ToolCall> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    let call = ToolCall {
        id: text(&mut fields, "id")?,
        name: text(&mut fields, "name")?,
        arguments: text(&mut fields, "arguments")?,
        opaque: opaque(&mut fields)?,
    };
    // Endpoints refuse every request with others.
    let is_sound = !call.id.is_empty() && parse_arguments(&call.arguments).is_ok();
    (is_sound && !call.name.is_empty()).then_some(call)
}

fn image(value: Value) -> Option<Image> {
    match value {
        Value::String(url) => Some(Image { url }),
        _ => None,
    }
}

fn opaque(fields: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    match fields.remove("opaque") {
        Some(Value::Object(opaque)) => Some(opaque),
        Some(_) => None,
        None => Some(Map::new()),
    }
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    match fields.remove(name)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn back(message: &Message, secrets: &Secrets) -> Message {
        let line = line(ConversationChange::Added(message), SystemTime::now(), secrets);
        assert!(line.ends_with("}\n") && line.matches('\n').count() == 1);
        match entry(line.trim_end().as_bytes()) {
            Some(SessionEntry::Added(message)) => message,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
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
            assert_eq!(back(message, &none), *message);
        }
        let line = line(ConversationChange::Replaced(&messages), SystemTime::now(), &none);
        assert_eq!(entry(line.as_bytes()), Some(SessionEntry::Replaced(messages.into())));
    }

    #[test]
    fn nothing_secret_goes_in_and_a_document_ends_where_it_did() {
        let mut secrets = Secrets::default();
        secrets.extend(Secret::new("sk-\"canary-key"));
        let message = Message::Tool {
            call_id: "c".into(),
            name: "t".into(),
            content: "doc sk-\"canary-key|files sk-\"canary-key".into(),
            document_bytes: Some("doc sk-\"canary-key".len()),
            image: None,
        };
        let Message::Tool { content, document_bytes, .. } = back(&message, &secrets) else {
            panic!()
        };
        assert_eq!(content, "doc [secret]|files [secret]");
        assert_eq!(document_bytes, Some("doc [secret]".len()));
    }

    #[test]
    fn what_is_no_message_is_no_line() {
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
            assert_eq!(entry(line.as_bytes()), None, "{line}");
        }
        assert_eq!(entry(br#"{"cut":1}"#), None);
        assert_eq!(entry(b"\xff"), None);
    }
}
