//! Estimates the tokens of a conversation. The model's tokenizer is not available, so the
//! estimate is based on bytes and corrected by the token counts that the endpoint reports.

use serde_json::Value;

use base::limits;
use base::media::Image;
use base::message::Message;
use base::tool::{ToolDefinition, Usage};
use chat_api::is_reasoning_field;

/// The unit of ratios: tokens per 1000 bytes.
const SCALE: u64 = 1000;

/// The size of a message's role, name and id in a request, in bytes.
const MESSAGE_BYTES: u64 = 24;
/// The same for a call and for a tool definition.
const CALL_BYTES: u64 = 60;

/// The token estimate of a conversation.
#[derive(Clone, Debug, Default)]
pub struct TokenMeter {
    /// Tokens per 1000 bytes, learnt from reports.
    ratio: Option<u64>,
    /// Bytes of the tool definitions.
    tool_bytes: u64,
    /// A token count and the number of first messages, with the tools, that it covers.
    counted: Option<(u64, usize)>,
    /// The window that a refusal named, or a guess after a refusal.
    window: Option<u64>,
    /// Whether a refusal named the window.
    is_window_named: bool,
}

impl TokenMeter {
    /// Sets the tools that are sent with every request.
    pub fn set_tools(&mut self, tools: &[ToolDefinition]) {
        let bytes = |tool: &ToolDefinition| {
            let text = byte_count(&tool.name) + byte_count(&tool.description);
            CALL_BYTES + text + json_bytes(&tool.parameters)
        };
        self.tool_bytes = tools.iter().map(bytes).sum();
    }

    /// The window in tokens: the smaller of the configured one and the learnt one.
    pub fn window(&self, set: Option<u64>) -> Option<u64> {
        set.into_iter().chain(self.window).min()
    }

    /// The same, without a guess.
    pub fn known_window(&self, set: Option<u64>) -> Option<u64> {
        set.into_iter().chain(self.window.filter(|_| self.is_window_named)).min()
    }

    /// The tokens of a request with these messages.
    pub fn estimate(&self, messages: &[Message]) -> u64 {
        match self.counted {
            Some((tokens, count)) if count <= messages.len() => {
                tokens.saturating_add(self.tokens_from(messages, count))
            }
            _ => self.tokens_from(messages, 0) + self.bytes_to_tokens(self.tool_bytes),
        }
    }

    /// The tokens of the messages from `from` on.
    pub fn tokens_from(&self, messages: &[Message], from: usize) -> u64 {
        self.bytes_to_tokens(bytes_from(messages, from))
    }

    /// Converts bytes to tokens.
    pub fn bytes_to_tokens(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.ratio()).div_ceil(SCALE)
    }

    /// Converts tokens to bytes.
    pub fn tokens_to_bytes(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(SCALE) / self.ratio()
    }

    /// Most bytes of one result: a quarter of this window, unless that is of no use. It does not
    /// follow what was learnt, as the pages of a file must stay the same.
    pub fn result_bytes(window: Option<u64>) -> Option<usize> {
        let quarter = TokenMeter::default().tokens_to_bytes(window? / 4);
        Some(usize::try_from(quarter).ok()?.max(limits::SHORTENED_RESULT_BYTES))
    }

    /// Bytes of the tools' definitions.
    pub fn tool_bytes(&self) -> u64 {
        self.tool_bytes
    }

    /// Whether reports of the endpoint have corrected the estimate.
    pub fn is_corrected(&self) -> bool {
        self.ratio.is_some()
    }

    /// Drops the token count if it covers messages beyond the first `left`.
    pub fn invalidate_count(&mut self, left: usize) {
        self.counted = self.counted.filter(|(_, count)| *count <= left);
    }

    /// Records an answered request and the token usage, if it was reported. The last message
    /// is the answer.
    pub fn record_usage(&mut self, messages: &[Message], usage: Option<Usage>) {
        let is_answer = matches!(messages.last(), Some(Message::Assistant(_)));
        let sent = &messages[..messages.len() - usize::from(is_answer)];
        let is_counted = usage.is_some_and(|usage| self.learn(sent, usage.prompt_tokens));
        // A window that is smaller than an answered request is wrong. A window that a refusal
        // named is compared only with reported counts, because estimates may be wrong by half.
        if is_counted || !self.is_window_named {
            let least = self.estimate(sent);
            self.window = self.window.filter(|window| *window >= least);
        }
    }

    /// Learns from the token count of a request, if it is plausible: some gateways report only
    /// tokens that were not cached, others the sum of the whole conversation. The tokens of
    /// images do not depend on their bytes, so the ratio is learnt only from requests without.
    fn learn(&mut self, sent: &[Message], tokens: u64) -> bool {
        let images = sent.iter().flat_map(Message::images).count() as u64;
        let bytes = self.tool_bytes + bytes_from(sent, 0) - images * limits::IMAGE_AS_BYTES;
        let text_tokens = limits::TOKENS_IN_1000_BYTES_RANGE.map(|tokens| bytes * tokens / SCALE);
        let [least, most] = text_tokens;
        if tokens < least || tokens > most.saturating_add(images * limits::IMAGE_TOKENS) {
            return false;
        }
        if images == 0 {
            self.ratio = Some(tokens.saturating_mul(SCALE).div_ceil(bytes.max(1)));
        }
        self.counted = Some((tokens, sent.len()));
        true
    }

    /// Records a refused request. The window is the one that the endpoint named, or else assumed to
    /// be small, and less than the request.
    pub fn record_refusal(&mut self, messages: &[Message], limit: Option<u64>, used: Option<u64>) {
        let estimate = self.estimate(messages);
        if let Some(limit) = limit {
            self.window = Some(limit);
            self.is_window_named = true;
            // The request had more tokens than the limit, whatever the estimate is.
            let least = estimate.max(limit.saturating_add(1));
            self.learn(messages, used.unwrap_or(least));
        } else if !self.is_window_named || self.window.is_none() {
            // A window from an earlier message is better than a guess.
            self.window = self.window(Some((estimate / 5 * 4).min(limits::ASSUMED_WINDOW)));
            self.is_window_named = false;
        }
    }

    fn ratio(&self) -> u64 {
        self.ratio.unwrap_or(limits::TOKENS_IN_1000_BYTES)
    }
}

/// The bytes of the messages from `from` on that are sent.
pub(crate) fn bytes_from(messages: &[Message], from: usize) -> u64 {
    let is_user = |message: &Message| matches!(message, Message::User(_));
    let turn = messages.iter().rposition(is_user).unwrap_or(0);
    let measured = messages.iter().enumerate().skip(from);
    measured.map(|(place, message)| message_bytes(message, place >= turn)).sum()
}

/// The bytes of one message. Reasoning is sent only within its turn.
pub(crate) fn message_bytes(message: &Message, is_of_turn: bool) -> u64 {
    let images = |images: &[Image]| images.len() as u64 * limits::IMAGE_AS_BYTES;
    MESSAGE_BYTES
        + match message {
            Message::System(text) => byte_count(text),
            Message::User(user) => byte_count(&user.full_text()) + images(&user.images),
            Message::Assistant(message) => {
                let opaque = message
                    .opaque
                    .iter()
                    .filter(|(name, _)| is_of_turn || !is_reasoning_field(name))
                    .map(|(_, value)| json_bytes(value));
                let calls = message.calls.iter().map(|call| {
                    CALL_BYTES
                        + byte_count(&call.id)
                        + byte_count(&call.name)
                        + byte_count(&call.arguments)
                });
                byte_count(&message.full_text()) + opaque.sum::<u64>() + calls.sum::<u64>()
            }
            Message::Tool(result) => {
                let document = result.document.as_deref().map_or(0, byte_count);
                let text = byte_count(&result.call_id) + document + byte_count(&result.content);
                text + images(result.image.as_slice())
            }
        }
}

/// The bytes of a value as JSON, without escapes. Nothing is serialized for this.
fn json_bytes(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(number) => byte_count(&number.to_string()),
        Value::String(text) => byte_count(text) + 2,
        Value::Array(items) => 1 + items.iter().map(|item| json_bytes(item) + 1).sum::<u64>(),
        Value::Object(fields) => {
            let fields = fields.iter();
            1 + fields.map(|(name, value)| byte_count(name) + 4 + json_bytes(value)).sum::<u64>()
        }
    }
}

fn byte_count(text: &str) -> u64 {
    text.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt_tokens: u64) -> Usage {
        Usage { prompt_tokens, completion_tokens: 5 }
    }

    fn user_message(bytes: usize) -> Message {
        Message::user("x".repeat(bytes - 24))
    }

    #[test]
    fn an_estimate_adds_new_messages_to_the_reported_count() {
        let mut meter = TokenMeter::default();
        let mut messages = vec![user_message(10_000)];
        assert_eq!(meter.estimate(&messages), 2860);
        messages.push(Message::assistant("y".repeat(976)));
        meter.record_usage(&messages, Some(usage(2000)));
        assert_eq!(meter.estimate(&messages), 2200);
        messages.push(user_message(1000));
        assert_eq!(meter.estimate(&messages), 2400);
        // The count is dropped: the estimate uses the learnt ratio.
        meter.invalidate_count(1);
        assert_eq!(meter.estimate(&messages), 2400);
    }

    #[test]
    fn implausible_reports_are_ignored() {
        let mut meter = TokenMeter::default();
        let messages = vec![user_message(10_000), Message::assistant("y".repeat(976))];
        meter.record_usage(&messages, Some(usage(2000)));
        assert_eq!(meter.estimate(&messages), 2200);
        for prompt in [0, 1, 300, 1000, 11_000, 50_000, u64::MAX] {
            meter.record_usage(&messages, Some(usage(prompt)));
            assert_eq!(meter.estimate(&messages), 2200, "{prompt}");
        }
        meter.record_usage(&messages, Some(usage(2500)));
        assert_eq!(meter.estimate(&messages), 2750);
    }

    #[test]
    fn the_size_of_an_image_file_does_not_matter() {
        let with = |url: String| {
            let images = vec![Image { url }];
            let message =
                base::message::UserMessage { images, ..base::message::UserMessage::from("look") };
            bytes_from(&[Message::User(message)], 0)
        };
        assert_eq!(with("https://h.test/a.png".into()), with("x".repeat(100_000)));
        assert_eq!(with(String::new()), 24 + 4 + limits::IMAGE_AS_BYTES);
    }

    #[test]
    fn reasoning_counts_within_its_turn() {
        let mut message = base::message::AssistantMessage::default();
        message.opaque.insert("reasoning".into(), "x".repeat(98).into());
        message.opaque.insert("signature".into(), "y".repeat(8).into());
        let mut messages = vec![Message::user("q"), Message::Assistant(message)];
        assert_eq!(bytes_from(&messages, 0), 25 + 24 + 110);
        messages.push(Message::user("r"));
        assert_eq!(bytes_from(&messages, 0), 25 + 24 + 10 + 25);
    }

    #[test]
    fn a_refusal_names_the_window() {
        let messages = [user_message(10_000)];
        for (limit, used, window, estimate) in [
            (None, None, 2288, 2860),
            (Some(2048), None, 2048, 2860),
            (Some(4000), None, 4000, 4001),
            (Some(2048), Some(2500), 2048, 2500),
            (Some(1_000_000), None, 1_000_000, 2860),
            (Some(8192), Some(99_999), 8192, 2860),
        ] {
            let mut meter = TokenMeter::default();
            meter.record_refusal(&messages, limit, used);
            let known = (meter.window(None), meter.estimate(&messages));
            assert_eq!(known, (Some(window), estimate), "{limit:?} {used:?}");
        }
    }

    #[test]
    fn an_answered_request_disproves_a_smaller_window() {
        let messages = [user_message(10_000), Message::assistant("y")];
        for (limit, counted, window) in [
            (None, None, None),
            (None, Some(2500), None),
            (None, Some(2200), Some(2288)),
            (Some(2048), None, Some(2048)),
            (Some(2048), Some(2100), None),
            (Some(2048), Some(2000), Some(2048)),
            (Some(2048), Some(99_000), Some(2048)),
        ] {
            let mut meter = TokenMeter::default();
            meter.record_refusal(&messages[..1], limit, None);
            // A guess replaces neither a named window nor a smaller guess.
            meter.record_refusal(&messages[..1], None, None);
            meter.record_usage(&messages, counted.map(usage));
            assert_eq!(meter.window(None), window, "{limit:?} {counted:?}");
        }
    }

    #[test]
    fn images_do_not_change_the_ratio() {
        for cost in [0, 85, 1200, 25_000] {
            let mut meter = TokenMeter::default();
            let mut message = base::message::UserMessage::from("x".repeat(9_976));
            message.images = vec![Image { url: "u".into() }];
            let messages = [Message::User(message), Message::assistant("y".repeat(976))];
            meter.record_usage(&messages, Some(usage(2800 + cost)));
            assert_eq!(meter.estimate(&messages), 2800 + cost + 286);
            meter.invalidate_count(0);
            assert_eq!(meter.estimate(&[user_message(10_000)]), 2860, "{cost}");
        }
    }
}
