//! The body of a request, as JSON.
//!
//! It is minimal, because endpoints refuse unknown fields: it has only what the `OpenAI`
//! reference lists and all endpoints accept, what the endpoint itself expects to receive back,
//! and what the user adds. Fields that this endpoint has refused are omitted: see [`Dialect`].

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use crate::message::{AssistantMessage, Message};
use crate::model::dialect::{Dialect, SentFeatures};
use crate::model::images::{ContentParts, ShownImages, without_image};
use crate::model::quirks::is_reasoning_field;
use crate::text::sendable;
use crate::tool::{ToolCall, ToolDefinition};

/// The body of a request. It borrows the conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestBody<'b> {
    /// The model's name.
    pub model: &'b str,
    /// The conversation.
    pub messages: &'b [Message],
    /// Further messages, for this request only.
    pub temporary_messages: &'b [Message],
    /// The tools; without any the field is omitted, since many endpoints refuse an empty
    /// list.
    pub tools: &'b [ToolDefinition],
    /// Whether the reply is streamed.
    pub stream: bool,
    /// The user's own fields (`LLM_EXTRA_BODY`).
    pub extra_fields: &'b Map<String, Value>,
    /// What the endpoint accepts.
    pub dialect: &'b Dialect,
}

/// The field that requests token counts at the end of a stream.
pub(super) const STREAM_OPTIONS: &str = "stream_options";

impl RequestBody<'_> {
    /// The parts of this body that the endpoint may refuse.
    pub(super) fn sent_features(&self) -> SentFeatures<'_> {
        SentFeatures {
            optional_fields: self.optional_fields(),
            extra_fields: self.extra_fields,
            has_empty_content: self.has_empty_content(),
            tool_message_positions: self.tool_message_positions(),
            has_images: self.question_has_images()
                || !self.dialect.omits_images && self.image_bytes() > 0,
            is_stream: self.stream,
        }
    }

    /// Names of all fields that may be omitted: the user's, those sent back to the endpoint,
    /// and our own that are not essential.
    fn optional_fields(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.extra_fields.keys().map(String::as_str).collect();
        if self.requests_usage() {
            names.push(STREAM_OPTIONS);
        }
        for message in self.messages {
            if let Message::Assistant(assistant) = message {
                names.extend(assistant.opaque.keys().map(String::as_str));
                let call_fields = assistant.calls.iter().flat_map(|call| call.opaque.keys());
                names.extend(call_fields.map(String::as_str));
            }
        }
        names.retain(|name| self.dialect.accepts(name));
        names.sort();
        names.dedup();
        names
    }

    /// Whether a message with tool calls and no text is sent.
    fn has_empty_content(&self) -> bool {
        self.messages
            .iter()
            .any(|message| matches!(message, Message::Assistant(m) if m.full_text().is_empty()))
    }

    /// Positions of the tool messages, as the endpoint counts them: two more messages follow
    /// those that have shown images (see [`ShownImages`]).
    fn tool_message_positions(&self) -> Vec<usize> {
        let (mut positions, mut position, mut has_shown) = (Vec::new(), 0, false);
        for message in self.messages.iter().chain(self.temporary_messages) {
            if let Message::Tool(result) = message {
                has_shown |= result.image.is_some() && !self.dialect.omits_images;
                positions.push(position);
            } else if std::mem::take(&mut has_shown) {
                position += 2;
            }
            position += 1;
        }
        positions
    }

    /// Position of the question that is being answered.
    fn question_position(&self) -> usize {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        self.messages.iter().rposition(is_user).unwrap_or(0)
    }

    /// Whether the current question has images.
    pub(super) fn question_has_images(&self) -> bool {
        let question = self.messages.get(self.question_position());
        matches!(question, Some(Message::User(user)) if !user.images.is_empty())
    }

    /// The size of all images.
    pub(super) fn image_bytes(&self) -> usize {
        let images = self.messages.iter().flat_map(Message::images);
        images.map(|image| image.url.len()).sum()
    }

    fn requests_usage(&self) -> bool {
        self.stream && self.dialect.accepts(STREAM_OPTIONS)
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
        if self.requests_usage() && !self.extra_fields.contains_key(STREAM_OPTIONS) {
            map.serialize_entry(STREAM_OPTIONS, &serde_json::json!({"include_usage": true}))?;
        }
        for (name, value) in self.extra_fields {
            if let Some(name) = self.dialect.sent_name(name) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

struct WireMessages<'m>(&'m RequestBody<'m>);

impl Serialize for WireMessages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RequestBody { messages, temporary_messages, dialect, .. } = *self.0;
        let question = self.0.question_position();
        let mut list = serializer.serialize_seq(None)?;
        let mut shown = ShownImages::default();
        for (position, message) in messages.iter().chain(temporary_messages).enumerate() {
            shown.flush_before(message, &mut list)?;
            list.serialize_element(&WireMessage {
                message,
                dialect,
                is_current_turn: position >= question,
            })?;
            if !dialect.omits_images {
                shown.record(message);
            }
        }
        shown.flush(&mut list)?;
        list.end()
    }
}

struct WireMessage<'m> {
    message: &'m Message,
    dialect: &'m Dialect,
    /// Whether it belongs to the turn that is being answered.
    is_current_turn: bool,
}

impl Serialize for WireMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.message {
            Message::System(text) => {
                map.serialize_entry("role", "system")?;
                map.serialize_entry("content", text)?;
            }
            Message::User(user) => {
                map.serialize_entry("role", "user")?;
                let text = user.full_text();
                let text = sendable(&text);
                // The current question is not changed: the refusal is reported instead.
                match user.images.as_slice() {
                    [] => map.serialize_entry("content", &text)?,
                    _ if self.dialect.omits_images && !self.is_current_turn => {
                        map.serialize_entry("content", &without_image(&text))?;
                    }
                    images => {
                        let labelled = images.iter().map(|image| ("", image));
                        let parts = ContentParts(&text, labelled.collect());
                        map.serialize_entry("content", &parts)?;
                    }
                }
            }
            Message::Assistant(assistant) => self.serialize_assistant(&mut map, assistant)?,
            Message::Tool(result) => {
                map.serialize_entry("role", "tool")?;
                map.serialize_entry("tool_call_id", &result.call_id)?;
                if self.dialect.sends_tool_name {
                    map.serialize_entry("name", &result.name)?;
                }
                let text = result.full_text();
                let text = sendable(&text);
                match &result.image {
                    Some(_) if self.dialect.omits_images => {
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
        assistant: &AssistantMessage,
    ) -> Result<(), M::Error> {
        map.serialize_entry("role", "assistant")?;
        // It is empty only if there are tool calls: an assistant message without both is
        // invalid.
        let text = assistant.full_text();
        if text.is_empty() && !self.dialect.sends_empty_text {
            map.serialize_entry("content", &())?;
        } else {
            map.serialize_entry("content", &text)?;
        }
        let is_sent = |name: &str| self.is_current_turn || !is_reasoning_field(name);
        for (name, value) in &assistant.opaque {
            if self.dialect.accepts(name) && is_sent(name) {
                map.serialize_entry(name, value)?;
            }
        }
        if !assistant.calls.is_empty() {
            let calls: Vec<WireCall<'_>> = assistant
                .calls
                .iter()
                .map(|call| WireCall { call, dialect: self.dialect })
                .collect();
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
        for (name, value) in opaque.filter(|(name, _)| self.dialect.accepts(name)) {
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
    use crate::message::ToolMessage;
    use crate::model::request_failure::ErrorResponse;
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
            Message::Tool(ToolMessage {
                call_id: "a".into(),
                name: "t".into(),
                content: "r\u{1b}[31m\0\r\n".into(),
                ..ToolMessage::default()
            }),
            Message::assistant("done"),
        ]
    }

    fn body<'b>(
        messages: &'b [Message],
        stream: bool,
        extra: &'b Map<String, Value>,
        dialect: &'b Dialect,
    ) -> RequestBody<'b> {
        RequestBody {
            model: "m",
            messages,
            temporary_messages: &[],
            tools: &[],
            stream,
            extra_fields: extra,
            dialect,
        }
    }

    #[test]
    fn a_request_has_only_fields_that_every_endpoint_accepts() {
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
    fn user_fields_are_sent_until_they_are_refused() {
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
            let mut learned = dialect.clone();
            let refusal = ErrorResponse::new(400, words.as_bytes());
            assert!(learned.learn(&refusal, &fields.sent_features()).is_some(), "{words}");
            dialect = learned;
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
    fn a_wrong_value_or_a_mere_mention_changes_nothing() {
        let messages = messages();
        let extra = json!({"temperature": 3, "seed": 1, "max_tokens": 5, "response_format": {}});
        let extra = extra.as_object().unwrap();
        let learned = |words: &str| {
            let dialect = Dialect::default();
            let fields = body(&messages, false, extra, &dialect);
            let refusal = ErrorResponse::new(400, words.as_bytes());
            let change = Dialect::default().learn(&refusal, &fields.sent_features());
            change.map(|change| change.to_string())
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
    fn reasoning_is_sent_back_only_within_its_turn() {
        let mut messages = messages().to_vec();
        if let Message::Assistant(assistant) = &mut messages[2] {
            assistant.opaque.insert("reasoning_details".into(), json!([1]));
        }
        messages.push(Message::user("next"));
        let (extra, dialect) = (Map::new(), Dialect::default());
        let value = serde_json::to_value(body(&messages, false, &extra, &dialect)).unwrap();
        let assistant = &value["messages"][2];
        assert_eq!(assistant["reasoning_content"], Value::Null);
        assert_eq!(assistant["reasoning_details"], json!([1]));
    }
}
