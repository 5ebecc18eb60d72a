//! The lines of a session's file: a header, then one change of the conversation per line. A
//! damaged line is skipped, never a panic.

use std::fmt;
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::conversation::ConversationChange;
use crate::session::older_formats;
use base::error::newer_version_cause;
use base::message::Message;
use base::secret::Secrets;
use base::tool::{ToolCall, sendable_arguments};
use host::clock::{parse_timestamp, timestamp};

/// The field `format` of the first line, which identifies a session.
const FORMAT: &str = "skills-runner session";
/// The start of the first line as this program writes it.
const HEADER_START: &str = r#"{"format":"skills-runner session","#;

/// The version of the format. Versions 1 and 2 are read, too: see [`older_formats`].
const VERSION: u64 = 3;

/// Why a file cannot be used as a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFileError {
    /// It does not start like a session.
    Foreign,
    /// Its first line cannot be read.
    Damaged,
    /// A newer version of this program has written it.
    Newer {
        /// The version of the program, if it is readable.
        program: Option<String>,
        /// The working folder in which the session was started, if it is readable.
        folder: Option<String>,
    },
}

impl fmt::Display for SessionFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionFileError::Foreign => write!(formatter, "it is not a session of skills-runner"),
            SessionFileError::Damaged => write!(formatter, "its first line is damaged"),
            SessionFileError::Newer { program, .. } => {
                formatter.write_str(&newer_version_cause(program.as_deref()))
            }
        }
    }
}

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
            "program": env!("CARGO_PKG_VERSION"),
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

    /// Parses a header.
    pub fn parse(line: &[u8]) -> Result<SessionHeader, SessionFileError> {
        let is_damaged = line.starts_with(HEADER_START.as_bytes());
        let error = if is_damaged { SessionFileError::Damaged } else { SessionFileError::Foreign };
        let fields: Value = serde_json::from_slice(line).map_err(|_| error)?;
        // Another program may have written the same fields in another form.
        if fields["format"] != FORMAT {
            return Err(SessionFileError::Foreign);
        }
        let text = |name: &str| fields[name].as_str().map(String::from);
        let version = fields["version"].as_u64().ok_or(SessionFileError::Damaged)?;
        // The header of an older file is updated in its place.
        if version < VERSION && !line.starts_with(HEADER_START.as_bytes()) {
            return Err(SessionFileError::Foreign);
        }
        if version > VERSION {
            return Err(SessionFileError::Newer {
                program: text("program"),
                folder: text("folder"),
            });
        }
        let header = || {
            Some(SessionHeader {
                id: text("id")?,
                folder: text("folder")?,
                model: text("model")?,
                created: parse_timestamp(fields["created"].as_str()?)?,
                automatic: text("automatic"),
            })
        };
        header().ok_or(SessionFileError::Damaged)
    }
}

/// Returns the update of an old file's header to this version: a position and the bytes there.
/// `None` if nothing has to change. A string cannot contain the name of the field, because its
/// quotes are escaped there.
pub(super) fn header_update(bytes: &[u8]) -> Option<(u64, String)> {
    const NAME: &[u8] = b"\"version\":";
    let header = bytes.split(|byte| *byte == b'\n').next()?;
    let at = header.windows(NAME.len()).position(|window| window == NAME)? + NAME.len();
    let at = at + header[at..].iter().take_while(|byte| **byte == b' ').count();
    let version = VERSION.to_string();
    let mut updated = header.to_vec();
    updated.get_mut(at..at + version.len())?.copy_from_slice(version.as_bytes());
    // Anything else than a header as this program writes it stays as it is.
    let mut expected: Map<String, Value> = serde_json::from_slice(header).ok()?;
    expected.insert("version".into(), VERSION.into());
    let is_expected = serde_json::from_slice(&updated).is_ok_and(|it: Map<_, _>| it == expected);
    let is_older = updated != header;
    Some((u64::try_from(at).ok()?, version)).filter(|_| is_expected && is_older)
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
    /// The request for the last question failed.
    Failed,
}

/// Formats a change as a line.
pub fn change_line(change: ConversationChange<'_>, now: SystemTime, secrets: &Secrets) -> String {
    let (name, what) = match change {
        ConversationChange::Added(message) => ("add", message_value(message, secrets)),
        ConversationChange::Truncated(length) => ("cut", length.into()),
        ConversationChange::Replaced(messages) => {
            ("replace", messages.iter().map(|message| message_value(message, secrets)).collect())
        }
        ConversationChange::Failed => ("failed", true.into()),
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
    if fields.contains_key("failed") {
        return Some(SessionEntry::Failed);
    }
    match fields.remove("replace")? {
        Value::Array(mut all) => {
            older_formats::convert_summarized(&mut all);
            let all: Option<Vec<Message>> = all.into_iter().map(parse_message).collect();
            Some(SessionEntry::Replaced(all?))
        }
        _ => None,
    }
}

/// A message as a JSON object with masked secrets.
pub fn message_value(message: &Message, secrets: &Secrets) -> Value {
    let mut value = match message {
        Message::System(text) => json!({"role": "system", "text": text}),
        Message::User(message) => value_with_role("user", message),
        Message::Assistant(message) => value_with_role("assistant", message),
        Message::Tool(message) => value_with_role("tool", message),
    };
    secrets.mask_json(&mut value);
    value
}

fn value_with_role(role: &str, message: &impl Serialize) -> Value {
    // Texts and numbers always have a JSON form.
    let mut value = serde_json::to_value(message).unwrap_or_default();
    value["role"] = role.into();
    value
}

fn parse_message(value: Value) -> Option<Message> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    older_formats::convert_message(&mut fields);
    let message = match fields.get("role")?.as_str()? {
        "user" => Message::User(parse_fields(fields)?),
        "assistant" => Message::Assistant(parse_fields(fields)?),
        "tool" => Message::Tool(parse_fields(fields)?),
        _ => return None,
    };
    // Endpoints refuse requests with invalid calls.
    let is_sound = |call: &ToolCall| {
        let arguments = call.arguments.trim();
        let is_valid = arguments.is_empty() || sendable_arguments(arguments) == arguments;
        !call.id.is_empty() && !call.name.is_empty() && is_valid
    };
    let is_valid = match &message {
        Message::Assistant(assistant) => assistant.calls.iter().all(is_sound),
        _ => true,
    };
    (is_valid && message.is_valid()).then_some(message)
}

fn parse_fields<T: DeserializeOwned>(fields: Map<String, Value>) -> Option<T> {
    serde_json::from_value(Value::Object(fields)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::media::Image;
    use base::message::{
        AssistantMessage, AssistantMessageKind, AttachedFile, InvokedSkill, ToolMessage,
        UserMessage, UserMessageKind,
    };
    use base::secret::Secret;

    fn round_trip(message: &Message, secrets: &Secrets) -> Message {
        let line = change_line(ConversationChange::Added(message), SystemTime::now(), secrets);
        assert!(line.ends_with("}\n") && line.matches('\n').count() == 1);
        match parse_entry(line.trim_end().as_bytes()) {
            Some(SessionEntry::Added(message)) => message,
            other => panic!("{line}: {other:?}"),
        }
    }

    /// A message whose words no longer count as typed.
    fn of_earlier_run(text: &str) -> Message {
        Message::User(UserMessage { text: text.into(), ..UserMessage::default() })
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
            of_earlier_run("a\nb\u{2028}\u{1f}ü"),
            Message::User(UserMessage {
                kind: UserMessageKind::Question,
                skills: vec![InvokedSkill {
                    name: "pdf".into(),
                    arguments: "a b".into(),
                    text: "doc".into(),
                }],
                text: String::new(),
                typed_bytes: 0,
                files: vec![AttachedFile { name: "a.md".into(), text: "x\n".into() }],
                images: vec![Image { url: "data:image/png;base64,AA==".into() }],
            }),
            Message::User(UserMessage {
                kind: UserMessageKind::Summary,
                text: "s".into(),
                ..UserMessage::default()
            }),
            Message::assistant("x"),
            Message::Assistant(AssistantMessage {
                kind: AssistantMessageKind::Interrupted,
                ..AssistantMessage::default()
            }),
            Message::Assistant(AssistantMessage {
                kind: AssistantMessageKind::Answer,
                content: String::new(),
                calls: vec![call.clone(), call],
                opaque: opaque(r#"{"reasoning":"r"}"#),
                written: String::new(),
                is_constrained: true,
            }),
            Message::Tool(ToolMessage {
                call_id: "c1".into(),
                name: "t".into(),
                document: Some("doc".into()),
                content: " and files".into(),
                untrusted: None,
                is_shortened: true,
                image: Some(Image { url: "https://x.test/".into() }),
            }),
        ];
        let none = Secrets::default();
        for message in &messages {
            assert_eq!(round_trip(message, &none), *message);
        }
        let line = change_line(ConversationChange::Replaced(&messages), SystemTime::now(), &none);
        assert_eq!(parse_entry(line.as_bytes()), Some(SessionEntry::Replaced(messages.into())));
    }

    #[test]
    fn secrets_are_masked() {
        let mut secrets = Secrets::default();
        secrets.extend(Secret::new("sk-\"canary-key"));
        let message = Message::Tool(ToolMessage {
            call_id: "c".into(),
            name: "t".into(),
            document: Some("doc sk-\"canary-key".into()),
            content: "|files sk-\"canary-key".into(),
            ..ToolMessage::default()
        });
        let text = round_trip(&message, &secrets).text().into_owned();
        assert_eq!(text, "doc [secret]|files [secret]");
    }

    /// Only the number of the format is changed, whatever else the line contains.
    #[test]
    fn the_header_of_an_older_format_is_updated() {
        let rest = r#","id":"i","folder":"f","model":"m","created":"2026-11-22T10:00:00.000Z"}"#;
        let header = |fields: &str| format!("{HEADER_START}{fields}{rest}\n");
        let update = |fields: &str| header_update(header(fields).as_bytes());
        for (fields, prefix) in
            [("\"version\":1", "\"version\":"), ("\"version\": 2", "\"version\": ")]
        {
            let at = u64::try_from(HEADER_START.len() + prefix.len()).unwrap();
            assert_eq!(update(fields), Some((at, VERSION.to_string())));
        }
        for fields in ["\"version\":3", "\"x\":{\"version\":7},\"version\":2", "\"version\":\"2\""]
        {
            assert_eq!(update(fields), None, "{fields}");
        }
    }

    /// As version 0.1.0 wrote them.
    #[test]
    fn lines_of_older_formats_are_read() {
        let time = "2026-11-22T10:00:00.000Z";
        let parse = |rest: &str| parse_entry(format!("{{\"time\":\"{time}\",{rest}}}").as_bytes());
        let added = |rest: &str| match parse(&format!("\"add\":{rest}")) {
            Some(SessionEntry::Added(message)) => message,
            other => panic!("{rest}: {other:?}"),
        };
        assert_eq!(added(r#"{"role":"user","text":"q"}"#), of_earlier_run("q"));
        let Message::User(invoked) = added(r#"{"role":"user","text":"d","document":true}"#) else {
            panic!()
        };
        assert_eq!((invoked.skills[0].text.as_str(), invoked.text.as_str()), ("d", ""));
        assert_eq!(
            added(r#"{"role":"user","kind":"document","text":"d"}"#),
            Message::User(invoked)
        );
        for (text, partial) in [("", ""), (r"It is\n\n", "It is")] {
            let line = format!(
                r#"{{"role":"assistant","text":"{text}(no answer: the turn was interrupted)"}}"#
            );
            let expected = AssistantMessage {
                kind: AssistantMessageKind::Interrupted,
                content: partial.into(),
                ..AssistantMessage::default()
            };
            assert_eq!(added(&line), Message::Assistant(expected));
        }
        let tool =
            r#"{"role":"tool","id":"1","name":"t","text":"doc and files","document_bytes":3}"#;
        let Message::Tool(result) = added(tool) else { panic!() };
        assert_eq!(result.document.as_deref(), Some("doc"));
        assert_eq!(result.content, " and files");
        let summarized = concat!(
            r#""replace":[{"role":"user","text":"[Summary of the conversation so far. What it "#,
            r#"stands for is not here any more.]\nsum"},"#,
            r#"{"role":"assistant","text":"(The conversation continues.)"},"#,
            r#"{"role":"user","text":"q"}]"#
        );
        let Some(SessionEntry::Replaced(messages)) = parse(summarized) else { panic!() };
        let kinds: Vec<String> = messages
            .iter()
            .map(|message| match message {
                Message::User(message) => format!("{:?} {}", message.kind, message.text),
                Message::Assistant(message) => format!("{:?} {}", message.kind, message.content),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(kinds, ["Summary sum", "Continuation ", "Question q"]);
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
            r#""add":{"role":"tool","id":"","name":"t","text":"x"}"#,
            r#""add":{"role":"user","kind":"other","text":"x"}"#,
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
