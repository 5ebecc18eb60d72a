//! The body of a request, as JSON.
//!
//! It is minimal, because endpoints refuse fields they do not know: only what
//! the `OpenAI` reference lists and every dialect takes, what the endpoint
//! itself wants to see again, and what the user adds. What this endpoint has
//! refused before is left out: see [`Dialect`].

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use crate::message::{AssistantMessage, Message};
use crate::model::dialect::{Dialect, EmptyContent, SentFeatures};
use crate::model::pictures::{ContentParts, ShownPictures, without_image};
use crate::order;
use crate::text::sendable;
use crate::tool::{ToolCall, ToolDefinition};

/// The body of a request; nothing of the conversation is copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestBody<'b> {
    /// The model's name.
    pub model: &'b str,
    /// The conversation.
    pub messages: &'b [Message],
    /// More messages, for this request only.
    pub aside: &'b [Message],
    /// The tools; without any the field is left out, many refuse an empty list.
    pub tools: &'b [ToolDefinition],
    /// Whether the reply is to come piece by piece.
    pub stream: bool,
    /// The user's own fields (`LLM_EXTRA_BODY`).
    pub extra: &'b Map<String, Value>,
    /// What is known of the endpoint.
    pub dialect: &'b Dialect,
}

/// Asks for token counts at the end of a stream.
pub(super) const STREAM_OPTIONS: &str = "stream_options";

impl RequestBody<'_> {
    /// What of this body an endpoint may refuse.
    pub(super) fn sent(&self) -> SentFeatures<'_> {
        SentFeatures {
            optional: self.optional_fields(),
            extra: self.extra,
            has_empty_content: self.has_empty_content(),
            tool_messages: self.tool_messages(),
        }
    }

    /// The names of all fields that may be left out of this body: what the
    /// user added, what is echoed, what is ours but not essential.
    fn optional_fields(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.extra.keys().map(String::as_str).collect();
        if self.asks_for_usage() {
            names.push(STREAM_OPTIONS);
        }
        for message in self.messages {
            if let Message::Assistant(said) = message {
                names.extend(said.opaque.keys().map(String::as_str));
                let of_calls = said.calls.iter().flat_map(|call| call.opaque.keys());
                names.extend(of_calls.map(String::as_str));
            }
        }
        names.retain(|name| self.dialect.takes(name));
        order::sort(&mut names);
        names.dedup();
        names
    }

    /// Whether a message of calls alone is among those sent.
    fn has_empty_content(&self) -> bool {
        self.messages
            .iter()
            .any(|message| matches!(message, Message::Assistant(said) if said.content.is_empty()))
    }

    /// The places of the tools' messages, as the endpoint counts: behind those
    /// that have shown pictures stand two more (see [`ShownPictures`]).
    fn tool_messages(&self) -> Vec<usize> {
        let (mut places, mut place, mut has_shown) = (Vec::new(), 0, false);
        for message in self.messages.iter().chain(self.aside) {
            if let Message::Tool { image, .. } = message {
                has_shown |= image.is_some() && !self.dialect.is_blind();
                places.push(place);
            } else if std::mem::take(&mut has_shown) {
                place += 2;
            }
            place += 1;
        }
        places
    }

    /// Where the question stands that waits for its answer.
    fn question(&self) -> usize {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        self.messages.iter().rposition(is_user).unwrap_or(0)
    }

    /// Whether the person has just asked about pictures.
    pub(super) fn asks_about_pictures(&self) -> bool {
        let question = self.messages.get(self.question());
        matches!(question, Some(Message::User(said)) if !said.images.is_empty())
    }

    /// How many bytes of pictures there are.
    pub(super) fn picture_bytes(&self) -> usize {
        let images = self.messages.iter().flat_map(Message::images);
        images.map(|image| image.url.len()).sum()
    }

    fn asks_for_usage(&self) -> bool {
        self.stream && self.dialect.takes(STREAM_OPTIONS)
    }
}

impl Serialize for RequestBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        map.serialize_entry("messages", &WireMessages(self))?;
        if !self.tools.is_empty() {
            map.serialize_entry("tools", &OfferedTools(self.tools))?;
        }
        if self.stream {
            map.serialize_entry("stream", &true)?;
        }
        if self.asks_for_usage() && !self.extra.contains_key(STREAM_OPTIONS) {
            map.serialize_entry(STREAM_OPTIONS, &serde_json::json!({"include_usage": true}))?;
        }
        for (name, value) in self.extra {
            if let Some(name) = self.dialect.name_of(name) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

struct WireMessages<'m>(&'m RequestBody<'m>);

impl Serialize for WireMessages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RequestBody { messages, aside, dialect, .. } = *self.0;
        let turn = self.0.question();
        let mut list = serializer.serialize_seq(None)?;
        let mut shown = ShownPictures::default();
        for (place, message) in messages.iter().chain(aside).enumerate() {
            shown.end_before(message, &mut list)?;
            list.serialize_element(&WireMessage { message, dialect, is_of_turn: place >= turn })?;
            if !dialect.is_blind() {
                shown.note(message);
            }
        }
        shown.end(&mut list)?;
        list.end()
    }
}

struct WireMessage<'m> {
    message: &'m Message,
    dialect: &'m Dialect,
    /// It belongs to the turn that waits for its answer.
    is_of_turn: bool,
}

/// What endpoints want to see again only within the turn that it came in.
const THOUGHTS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Whether a field of a message is sent within its own turn only.
pub(crate) fn is_thought(name: &str) -> bool {
    THOUGHTS.contains(&name)
}

impl Serialize for WireMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.message {
            Message::System(text) => {
                map.serialize_entry("role", "system")?;
                map.serialize_entry("content", text)?;
            }
            Message::User(said) => {
                map.serialize_entry("role", "user")?;
                let text = sendable(&said.text);
                // The question itself is not changed: its refusal is told.
                match said.images.as_slice() {
                    [] => map.serialize_entry("content", &text)?,
                    _ if self.dialect.is_blind() && !self.is_of_turn => {
                        map.serialize_entry("content", &without_image(&text))?;
                    }
                    images => {
                        let labelled = images.iter().map(|image| ("", image));
                        let parts = ContentParts(&text, labelled.collect());
                        map.serialize_entry("content", &parts)?;
                    }
                }
            }
            Message::Assistant(said) => self.serialize_assistant(&mut map, said)?,
            Message::Tool { call_id, name, content, image, .. } => {
                map.serialize_entry("role", "tool")?;
                map.serialize_entry("tool_call_id", call_id)?;
                if self.dialect.names_tools() {
                    map.serialize_entry("name", name)?;
                }
                let text = sendable(content);
                match image {
                    Some(_) if self.dialect.is_blind() => {
                        map.serialize_entry("content", &without_image(&text))?;
                    }
                    _ => map.serialize_entry("content", &text)?,
                }
            }
        }
        map.end()
    }
}

impl WireMessage<'_> {
    fn serialize_assistant<M: SerializeMap>(
        &self,
        map: &mut M,
        said: &AssistantMessage,
    ) -> Result<(), M::Error> {
        map.serialize_entry("role", "assistant")?;
        // Empty only beside calls: an assistant that says nothing is no message.
        match self.dialect.empty_content() {
            EmptyContent::Null if said.content.is_empty() => map.serialize_entry("content", &())?,
            _ => map.serialize_entry("content", &said.content)?,
        }
        let is_due = |name: &str| self.is_of_turn || !is_thought(name);
        for (name, value) in &said.opaque {
            if self.dialect.takes(name) && is_due(name) {
                map.serialize_entry(name, value)?;
            }
        }
        if !said.calls.is_empty() {
            let calls: Vec<WireCall<'_>> =
                said.calls.iter().map(|call| WireCall { call, dialect: self.dialect }).collect();
            map.serialize_entry("tool_calls", &calls)?;
        }
        Ok(())
    }
}

struct WireCall<'c> {
    call: &'c ToolCall,
    dialect: &'c Dialect,
}

impl Serialize for WireCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct CalledFunction<'f> {
            name: &'f str,
            arguments: &'f str,
        }
        let call = self.call;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &call.id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry(
            "function",
            &CalledFunction { name: &call.name, arguments: &call.arguments },
        )?;
        let opaque = call.opaque.iter();
        for (name, value) in opaque.filter(|(name, _)| self.dialect.takes(name)) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

struct OfferedTools<'t>(&'t [ToolDefinition]);

impl Serialize for OfferedTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct OfferedFunction<'f> {
            name: &'f str,
            description: &'f str,
            parameters: &'f Value,
        }
        #[derive(serde::Serialize)]
        struct OfferedTool<'t> {
            r#type: &'static str,
            function: OfferedFunction<'t>,
        }
        serializer.collect_seq(self.0.iter().map(|tool| OfferedTool {
            r#type: "function",
            function: OfferedFunction {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages() -> [Message; 5] {
        let call = ToolCall {
            id: "a".into(),
            name: "t".into(),
            arguments: "{}".into(),
            ..ToolCall::default()
        };
        [
            Message::System("s".into()),
            Message::user("u"),
            Message::Assistant(AssistantMessage {
                calls: vec![call],
                opaque: Map::from_iter([("reasoning_content".to_string(), json!("r"))]),
                ..AssistantMessage::default()
            }),
            Message::Tool {
                call_id: "a".into(),
                name: "t".into(),
                content: "r\u{1b}[31m\0\r\n".into(),
                document_bytes: None,
                image: None,
            },
            Message::assistant("done"),
        ]
    }

    fn body<'b>(
        messages: &'b [Message],
        stream: bool,
        extra: &'b Map<String, Value>,
        dialect: &'b Dialect,
    ) -> RequestBody<'b> {
        RequestBody { model: "m", messages, aside: &[], tools: &[], stream, extra, dialect }
    }

    #[test]
    fn a_request_holds_what_every_dialect_takes_and_no_more() {
        let (messages, extra, dialect) = (messages(), Map::new(), Dialect::default());
        assert_eq!(
            serde_json::to_value(body(&messages, false, &extra, &dialect)).unwrap(),
            json!({"model": "m", "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "u"},
                {"role": "assistant", "content": null, "reasoning_content": "r", "tool_calls":
                    [{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "a", "content": "r\u{fffd}\r\n"},
                {"role": "assistant", "content": "done"},
            ]})
        );
    }

    #[test]
    fn what_the_user_adds_goes_along_and_what_is_refused_does_not() {
        let messages = messages();
        let extra = json!({"temperature": 0, "max_tokens": 5});
        let extra = extra.as_object().unwrap();
        let mut dialect = Dialect::default();
        let value = serde_json::to_value(body(&messages, true, extra, &dialect)).unwrap();
        assert_eq!(value["stream_options"], json!({"include_usage": true}));
        assert_eq!((&value["temperature"], &value["max_tokens"]), (&json!(0), &json!(5)));
        let fields = body(&messages, true, extra, &dialect);
        assert_eq!(
            fields.optional_fields(),
            ["max_tokens", "reasoning_content", "stream_options", "temperature"]
        );
        for words in [
            r#"{"error":{"message":"unsupported","param":"temperature"}}"#,
            "unknown field 'stream_options'",
            "use max_completion_tokens instead of max_tokens",
            "content must be a string",
            "reasoning_content is not allowed",
        ] {
            let fields = body(&messages, true, extra, &dialect);
            let learned = dialect.clone().learn(words.as_bytes(), &fields.sent());
            dialect = learned.unwrap_or_else(|| panic!("{words}")).0;
        }
        let value = serde_json::to_value(body(&messages, true, extra, &dialect)).unwrap();
        assert_eq!(value["max_completion_tokens"], 5);
        assert_eq!(value["messages"][2]["content"], "");
        for name in ["stream_options", "temperature", "max_tokens"] {
            assert_eq!(value[name], Value::Null, "{name}");
        }
        assert_eq!(value["messages"][2]["reasoning_content"], Value::Null);
    }

    #[test]
    fn a_wrong_value_and_a_word_in_passing_change_nothing() {
        let messages = messages();
        let extra = json!({"temperature": 3, "seed": 1, "max_tokens": 5, "response_format": {}});
        let extra = extra.as_object().unwrap();
        let learned = |words: &str| {
            let dialect = Dialect::default();
            let fields = body(&messages, false, extra, &dialect);
            Dialect::default().learn(words.as_bytes(), &fields.sent()).map(|(_, change)| change)
        };
        for words in [
            r#"{"error":{"message":"Invalid 'temperature': decimal above maximum value.","param":"temperature"}}"#,
            "max_tokens is too large: 200000",
            r#"{"error":{"message":"'messages' must contain the word 'json' to use 'response_format'","param":"messages"}}"#,
            "Invalid schema for response_format 'answer'",
            "triggered Azure's content management policy, see the documentation",
            r#"{"detail":[{"loc":["body","messages",0,"name"],"msg":"Field required, not permitted","input":{"temperature":3}}]}"#,
        ] {
            assert_eq!(learned(words), None, "{words}");
        }
        let words =
            "Unsupported parameter: seed. Supported parameters are: model, temperature, top_p";
        assert_eq!(learned(words).as_deref(), Some("`seed` is left out"));
    }

    #[test]
    fn thoughts_are_sent_back_within_their_turn_only() {
        let mut messages = messages().to_vec();
        if let Message::Assistant(said) = &mut messages[2] {
            said.opaque.insert("reasoning_details".into(), json!([1]));
        }
        messages.push(Message::user("next"));
        let (extra, dialect) = (Map::new(), Dialect::default());
        let value = serde_json::to_value(body(&messages, false, &extra, &dialect)).unwrap();
        let said = &value["messages"][2];
        assert_eq!(said["reasoning_content"], Value::Null);
        assert_eq!(said["reasoning_details"], json!([1]));
    }
}
