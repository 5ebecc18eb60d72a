//! The body of a request, as JSON.
//!
//! It is minimal, because endpoints refuse unknown fields: it has only what the `OpenAI`
//! reference lists and all endpoints accept, what the endpoint itself expects to receive back,
//! and what the user adds. Fields that this endpoint has refused are omitted: see [`Dialect`].

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::CallForms;
use crate::ToolCalling;
use crate::constrained::{self, ResponseFormat};
use crate::described_tools::{DescribedTools, RESULT_START};
use crate::dialect::{Dialect, DialectChange, SentFeatures};
use crate::wire_messages::{SentCalls, WireContent, WireMessage, add_description, wire_messages};
use base::message::Message;
use base::tool::ToolDefinition;

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
    /// Mark of a call in text.
    pub call_mark: &'b str,
    /// For a reply that is constrained.
    pub forms: CallForms<'b>,
    /// Whether the reply is streamed.
    pub stream: bool,
    /// The user's own fields (`LLM_EXTRA_BODY`).
    pub extra_fields: &'b Map<String, Value>,
    /// Dialect of the endpoint.
    pub dialect: &'b Dialect,
}

/// The field with texts that end a reply.
const STOP: &str = "stop";

/// The field that constrains a reply.
const RESPONSE_FORMAT: &str = "response_format";

/// The field that requests token counts at the end of a stream.
pub(super) const STREAM_OPTIONS: &str = "stream_options";

impl<'b> RequestBody<'b> {
    /// The parts of this body that the endpoint may refuse.
    pub(super) fn sent_features(&self) -> SentFeatures<'b> {
        let messages = self.messages();
        let has =
            |is_of: fn(&WireContent<'b>) -> bool| messages.iter().any(|it| is_of(&it.content));
        let tool_messages = messages.iter().enumerate().filter(|(_, it)| it.role == "tool");
        SentFeatures {
            optional_fields: self.optional_fields(&messages),
            extra_fields: self.extra_fields,
            has_empty_content: has(|content| matches!(content, WireContent::Null)),
            tool_message_positions: tool_messages.map(|(position, _)| position).collect(),
            has_images: has(|content| matches!(content, WireContent::Parts(_))),
            has_tools: self.sends_tools(),
            has_response_format: self.is_constrained(),
            is_stream: self.stream,
        }
    }

    /// Names of all fields that may be omitted: the user's, those sent back to the endpoint,
    /// and our own that are not essential.
    fn optional_fields(&self, messages: &[WireMessage<'b>]) -> Vec<&'b str> {
        let accepted = self.extra_fields.keys().filter(|name| self.dialect.accepts(name));
        let mut names: Vec<&str> = accepted.map(String::as_str).collect();
        names.extend(self.dialect.demanded_fields().into_keys().map(String::as_str));
        if self.requests_usage() {
            names.push(STREAM_OPTIONS);
        }
        if self.stops_at_results() {
            names.push(STOP);
        }
        for message in messages {
            names.extend(message.opaque.keys());
            names.extend(message.tool_calls.iter().flat_map(|call| call.opaque.keys()));
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The messages as they are sent.
    fn messages(&self) -> Vec<WireMessage<'b>> {
        let messages = self.messages.iter().chain(self.temporary_messages);
        let calling = self.dialect.tool_calling();
        let sent_calls = match calling {
            Some(ToolCalling::Prompted) => SentCalls::Marked(self.call_mark),
            Some(ToolCalling::Schema) => SentCalls::Constrained,
            _ => SentCalls::Native,
        };
        let mut list = wire_messages(messages, self.question_position(), sent_calls, self.dialect);
        if self.is_constrained() {
            add_description(&mut list, constrained::description(self.forms.described), true);
        } else if self.describes_tools() && !self.tools.is_empty() {
            let tools = DescribedTools { tools: self.tools, call_mark: self.call_mark };
            add_description(&mut list, tools.description(), false);
        }
        list
    }

    /// Whether the tools are part of the system message.
    fn describes_tools(&self) -> bool {
        self.dialect.tool_calling() == Some(ToolCalling::Prompted)
    }

    /// Whether the reply is constrained to an object.
    pub(super) fn is_constrained(&self) -> bool {
        let has_forms = !self.forms.described.is_empty();
        self.dialect.tool_calling() == Some(ToolCalling::Schema) && has_forms
    }

    /// Whether tools are sent in their own field.
    fn sends_tools(&self) -> bool {
        self.dialect.tool_calling().is_none() && !self.tools.is_empty()
    }

    /// Whether the model is stopped where it begins to invent a result.
    fn stops_at_results(&self) -> bool {
        let is_free = self.dialect.accepts(STOP) && !self.extra_fields.contains_key(STOP);
        self.describes_tools() && !self.tools.is_empty() && is_free
    }

    /// Position of the question that is being answered.
    fn question_position(&self) -> usize {
        self.messages.iter().rposition(Message::is_user).unwrap_or(0)
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
        #[derive(serde::Serialize)]
        struct OfferedTool<'t> {
            r#type: &'static str,
            function: &'t ToolDefinition,
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        map.serialize_entry("messages", &self.messages())?;
        if self.sends_tools() {
            let tools = self.tools.iter();
            let tools = tools.map(|function| OfferedTool { r#type: "function", function });
            map.serialize_entry("tools", &tools.collect::<Vec<_>>())?;
        }
        if self.stream {
            map.serialize_entry("stream", &true)?;
        }
        if self.requests_usage() && !self.extra_fields.contains_key(STREAM_OPTIONS) {
            map.serialize_entry(STREAM_OPTIONS, &serde_json::json!({"include_usage": true}))?;
        }
        if self.stops_at_results() {
            map.serialize_entry(STOP, &[RESULT_START])?;
        }
        if self.is_constrained() {
            if self.dialect.has(&DialectChange::OmitSchema) {
                let format = serde_json::json!({"type": "json_object"});
                map.serialize_entry(RESPONSE_FORMAT, &format)?;
            } else {
                map.serialize_entry(RESPONSE_FORMAT, &ResponseFormat(self.forms))?;
            }
        }
        let demanded = self.dialect.demanded_fields();
        let is_ours = |name: &str| name == RESPONSE_FORMAT && self.is_constrained();
        let own = self
            .extra_fields
            .iter()
            .filter(|(name, _)| !demanded.contains_key(name) && !is_ours(name));
        for (name, value) in own.chain(demanded.clone()) {
            if let Some(name) = self.dialect.sent_name(name) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_failure::ErrorResponse;
    use base::message::{AssistantMessage, ToolMessage};
    use base::tool::ToolCall;
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
            call_mark: "",
            forms: CallForms::default(),
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
            fields.sent_features().optional_fields,
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
