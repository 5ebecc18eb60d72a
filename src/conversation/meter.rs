//! How many tokens a conversation has, as far as that can be known without
//! the model's own tokenizer: bytes, corrected by what the endpoint reports.

use serde_json::Value;

use crate::limits;
use crate::message::{Image, Message};
use crate::model::is_thought;
use crate::tool::{ToolDefinition, Usage};

/// Ratios are tokens to a thousand bytes.
const SCALE: u64 = 1000;

/// What the roles, names and ids of a message take, in bytes.
const MESSAGE_BYTES: u64 = 24;
/// The same of a call, and of a tool's definition.
const CALL_BYTES: u64 = 60;

/// What is known of the tokens of a conversation.
#[derive(Clone, Debug, Default)]
pub struct TokenMeter {
    /// Tokens to a thousand bytes, as learnt from reports.
    ratio: Option<u64>,
    /// Bytes of the tools' definitions.
    tools: u64,
    /// So many tokens had so many of the first messages, with the tools.
    counted: Option<(u64, usize)>,
    /// What a refusal told of the window, or what is guessed from it.
    window: Option<u64>,
    /// It stood in the words of the refusal.
    is_told: bool,
    /// Tokens of a picture, as learnt from reports.
    picture: Option<u64>,
}

impl TokenMeter {
    /// From now on these tools go with every request.
    pub fn offer(&mut self, tools: &[ToolDefinition]) {
        let bytes = |tool: &ToolDefinition| {
            let words = length(&tool.name) + length(&tool.description);
            CALL_BYTES + words + json(&tool.parameters)
        };
        self.tools = tools.iter().map(bytes).sum();
    }

    /// The window in tokens, the smaller of what is set and what a refusal told.
    pub fn window(&self, set: Option<u64>) -> Option<u64> {
        set.into_iter().chain(self.window).min()
    }

    /// The tokens of a request with these messages.
    pub fn estimate(&self, messages: &[Message]) -> u64 {
        match self.counted {
            Some((tokens, count)) if count <= messages.len() => {
                tokens.saturating_add(self.size(messages, count))
            }
            _ => self.size(messages, 0) + self.tokens(self.tools),
        }
    }

    /// The tokens of the messages from this one on, by what was learnt.
    pub fn size(&self, messages: &[Message], from: usize) -> u64 {
        let pictures = pictures(messages, from);
        let text = bytes(messages, from) - pictures * limits::IMAGE_AS_BYTES;
        let usual = limits::IMAGE_AS_BYTES * limits::TOKENS_IN_1000_BYTES / SCALE;
        let picture = self.picture.unwrap_or(usual);
        self.tokens(text).saturating_add(pictures.saturating_mul(picture))
    }

    /// What so many bytes are in tokens.
    pub fn tokens(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.ratio()).div_ceil(SCALE)
    }

    /// How many bytes so many tokens are.
    pub fn bytes(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(SCALE) / self.ratio()
    }

    /// Bytes of the tools' definitions.
    pub fn tools(&self) -> u64 {
        self.tools
    }

    /// Whether the endpoint has told anything that estimates are corrected by.
    pub fn is_corrected(&self) -> bool {
        self.ratio.is_some()
    }

    /// Messages that were counted have changed.
    pub fn forget_count(&mut self, left: usize) {
        if self.counted.is_some_and(|(_, count)| count > left) {
            self.counted = None;
        }
    }

    /// Takes that the endpoint answered a request, and what it counted for it
    /// where it told that. The last message is its answer. Counts that cannot be
    /// are left alone: some gateways report only what was not in their cache,
    /// others add up the whole conversation.
    pub fn report(&mut self, messages: &[Message], usage: Option<Usage>) {
        let is_answer = matches!(messages.last(), Some(Message::Assistant(_)));
        let sent = messages.len() - usize::from(is_answer);
        let counted = usage.filter(|usage| self.learn(&messages[..sent], usage.prompt_tokens));
        // A window that an answered request did not fit into was none. Words are
        // held against counts only, as estimates may be wrong by half.
        let least = match counted {
            Some(usage) => usage.prompt_tokens,
            None if self.is_told => 0,
            None => self.estimate(&messages[..sent]),
        };
        self.window = self.window.filter(|window| *window >= least);
        let Some(usage) = counted else { return };
        // What the model thought is written, but not sent again.
        let guess = self.size(messages, sent);
        let most = guess.saturating_mul(2);
        let written = match usage.completion_tokens {
            0 => guess,
            written if written > most => guess,
            written => written,
        };
        self.counted = Some((usage.prompt_tokens.saturating_add(written), messages.len()));
    }

    /// Learns from a request that was counted, if the count can be. Where there
    /// are pictures the ratio is taken as it is, as far as that is possible, and
    /// what is left is theirs: their tokens are no matter of bytes.
    fn learn(&mut self, sent: &[Message], tokens: u64) -> bool {
        let pictures = pictures(sent, 0);
        let ratio = self.nearest(sent, tokens);
        if !self.is_likely(ratio) {
            return false;
        }
        if pictures == 0 || ratio != self.ratio() {
            self.ratio = Some(ratio);
        }
        let text = self.tokens(self.text(sent));
        if let Some(each) = tokens.saturating_sub(text).checked_div(pictures) {
            self.picture = Some(each);
        }
        true
    }

    /// The ratio that comes of so many tokens; with pictures the nearest to what
    /// is known.
    fn nearest(&self, messages: &[Message], tokens: u64) -> u64 {
        let text = self.text(messages);
        let pictures = pictures(messages, 0).saturating_mul(limits::IMAGE_TOKENS);
        let least = ratio(tokens.saturating_sub(pictures), text);
        self.ratio().clamp(least, ratio(tokens, text))
    }

    /// Takes the refusal of a request with these messages: the window is what
    /// its words tell, or else less than was sent.
    pub fn refuse(&mut self, messages: &[Message], words: &str) {
        let estimate = self.estimate(messages);
        let (limit, count) = told(words);
        let Some(limit) = limit else {
            // What was told before is better than a guess.
            if !self.is_told || self.window.is_none() {
                self.window = self.window(Some(estimate / 5 * 4));
                self.is_told = false;
            }
            return;
        };
        self.window = Some(limit);
        self.is_told = true;
        // The request had more than the limit, whatever the estimate says.
        let least = count.unwrap_or(limit.saturating_add(1));
        if count.is_none() && estimate >= least {
            return;
        }
        let ratio = self.nearest(messages, least);
        if is_possible(ratio) {
            self.ratio = Some(ratio);
            self.counted = Some((least, messages.len()));
        }
    }

    /// Bytes of the text of a request.
    fn text(&self, messages: &[Message]) -> u64 {
        self.tools + bytes(messages, 0) - pictures(messages, 0) * limits::IMAGE_AS_BYTES
    }

    fn ratio(&self) -> u64 {
        self.ratio.unwrap_or(limits::TOKENS_IN_1000_BYTES)
    }

    /// Near to what was learnt, or to what is usual. More is believed more
    /// easily: numbers and other scripts have more tokens than English.
    fn is_likely(&self, ratio: u64) -> bool {
        let is_near = |known: u64| ratio * 5 >= known * 3 && ratio * 2 <= known * 5;
        let is_known = |learnt| is_near(learnt) || is_near(limits::TOKENS_IN_1000_BYTES);
        is_possible(ratio) && self.ratio.is_none_or(is_known)
    }
}

fn is_possible(ratio: u64) -> bool {
    (SCALE / limits::BYTES_PER_TOKEN_MOST as u64..=SCALE).contains(&ratio)
}

fn ratio(tokens: u64, bytes: u64) -> u64 {
    tokens.saturating_mul(SCALE).div_ceil(bytes.max(1))
}

/// The limit, and what was sent, by the first numbers of a refusal: every
/// endpoint tells the limit, some what was sent as well, in either order.
fn told(words: &str) -> (Option<u64>, Option<u64>) {
    // In front of it stands the address, with a number of its own.
    let words = words.split_once(": status ").map_or(words, |(_, words)| words);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ',');
    let mut numbers = words
        .split(|c| !is_part(c))
        .filter_map(|word| word.trim_end_matches(['.', ',']).replace(',', "").parse().ok())
        .filter(|number| *number >= limits::CONTEXT_TOKENS_KNOWN);
    match (numbers.next(), numbers.next()) {
        (Some(one), Some(other)) if one != other => {
            (Some(u64::min(one, other)), Some(u64::max(one, other)))
        }
        (limit, _) => (limit, None),
    }
}

/// What the messages from this one on are in bytes, as far as they are sent.
pub(crate) fn bytes(messages: &[Message], from: usize) -> u64 {
    let is_user = |message: &Message| matches!(message, Message::User(_));
    let turn = messages.iter().rposition(is_user).unwrap_or(0);
    let measured = messages.iter().enumerate().skip(from);
    measured.map(|(place, message)| of_message(message, place >= turn)).sum()
}

/// The pictures from this message on.
fn pictures(messages: &[Message], from: usize) -> u64 {
    let shown = messages.iter().skip(from);
    shown.flat_map(Message::images).count() as u64
}

/// What one message is in bytes; thoughts are sent within their turn only.
pub(crate) fn of_message(message: &Message, is_of_turn: bool) -> u64 {
    let images = |images: &[Image]| images.len() as u64 * limits::IMAGE_AS_BYTES;
    MESSAGE_BYTES
        + match message {
            Message::System(text) => length(text),
            Message::User(said) => length(&said.text) + images(&said.images),
            Message::Assistant(said) => {
                let opaque = said
                    .opaque
                    .iter()
                    .filter(|(name, _)| is_of_turn || !is_thought(name))
                    .map(|(_, value)| json(value));
                let calls = said.calls.iter().map(|call| {
                    CALL_BYTES + length(&call.id) + length(&call.name) + length(&call.arguments)
                });
                length(&said.content) + opaque.sum::<u64>() + calls.sum::<u64>()
            }
            Message::Tool { call_id, content, image, .. } => {
                length(call_id) + length(content) + images(image.as_slice())
            }
        }
}

/// What a value is as JSON, but for what is escaped in it: nothing is written to be
/// measured.
fn json(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(number) => length(&number.to_string()),
        Value::String(text) => length(text) + 2,
        Value::Array(items) => 1 + items.iter().map(|item| json(item) + 1).sum::<u64>(),
        Value::Object(fields) => {
            let fields = fields.iter();
            1 + fields.map(|(name, value)| length(name) + 4 + json(value)).sum::<u64>()
        }
    }
}

fn length(text: &str) -> u64 {
    text.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt_tokens: u64, completion_tokens: u64) -> Usage {
        Usage { prompt_tokens, completion_tokens }
    }

    fn said(bytes: usize) -> Message {
        Message::user("x".repeat(bytes - 24))
    }

    #[test]
    fn an_estimate_is_what_was_reported_and_what_is_new() {
        let mut meter = TokenMeter::default();
        let mut messages = vec![said(10_000)];
        assert_eq!(meter.estimate(&messages), 2860);
        messages.push(Message::assistant("y".repeat(976)));
        meter.report(&messages, Some(usage(2000, 210)));
        assert_eq!(meter.estimate(&messages), 2210);
        messages.push(said(1000));
        assert_eq!(meter.estimate(&messages), 2410);
        // What was counted is gone: by the ratio that was learnt.
        meter.forget_count(1);
        assert_eq!(meter.estimate(&messages), 2400);
    }

    #[test]
    fn reports_that_cannot_be_change_nothing() {
        let mut meter = TokenMeter::default();
        let messages = vec![said(10_000), Message::assistant("y".repeat(976))];
        meter.report(&messages, Some(usage(2000, 9_000)));
        assert_eq!(meter.estimate(&messages), 2200, "thoughts are not sent again");
        for prompt in [0, 1, 300, 1000, 9_000, 50_000, u64::MAX] {
            meter.report(&messages, Some(usage(prompt, u64::MAX)));
            assert_eq!(meter.estimate(&messages), 2200, "{prompt}");
        }
        meter.report(&messages, Some(usage(2500, 0)));
        assert_eq!(meter.estimate(&messages), 2750);
    }

    #[test]
    fn a_picture_counts_the_same_however_large_its_file_is() {
        let with = |url: String| {
            let images = vec![Image { url }];
            let said =
                crate::message::UserMessage { images, ..crate::message::UserMessage::from("look") };
            bytes(&[Message::User(said)], 0)
        };
        assert_eq!(with("https://h.test/a.png".into()), with("x".repeat(100_000)));
        assert_eq!(with(String::new()), 24 + 4 + limits::IMAGE_AS_BYTES);
    }

    #[test]
    fn thoughts_count_within_their_turn() {
        let mut said = crate::message::AssistantMessage::default();
        said.opaque.insert("reasoning".into(), "x".repeat(98).into());
        said.opaque.insert("signature".into(), "y".repeat(8).into());
        let mut messages = vec![Message::user("q"), Message::Assistant(said)];
        assert_eq!(bytes(&messages, 0), 25 + 24 + 110);
        messages.push(Message::user("r"));
        assert_eq!(bytes(&messages, 0), 25 + 24 + 10 + 25);
    }

    #[test]
    fn a_refusal_tells_the_window() {
        let told = |words: &str| super::told(words);
        for (words, limit, count) in [
            (
                "get http://h:5999/v1: status 400: maximum context length is 8192 tokens. However, you requested 9100 tokens (8588 in the messages, 512 in the completion)",
                8192,
                9100,
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000),
            (
                "the request exceeds the available context size (8192 tokens), try increasing it",
                8192,
                0,
            ),
            (
                "request (9,012 tokens) exceeds the available context size (8,192 tokens)",
                8192,
                9012,
            ),
            ("status 400 Bad Request: too long (request req_12345678)", 0, 0),
            ("model gpt-35-16384: maximum prompt length is 131072.", 131_072, 0),
        ] {
            let some = |number| Some(number).filter(|number| *number > 0);
            assert_eq!(told(words), (some(limit), some(count)), "{words}");
        }
        let messages = [said(10_000)];
        let window = |words| {
            let mut meter = TokenMeter::default();
            meter.refuse(&messages, words);
            (meter.window(None), meter.estimate(&messages))
        };
        assert_eq!(window("too long"), (Some(2288), 2860));
        assert_eq!(window("limit 2048"), (Some(2048), 2860));
        assert_eq!(window("limit 4000"), (Some(4000), 4001));
        assert_eq!(window("limit 2048, got 2500"), (Some(2048), 2500));
        assert_eq!(window("limit 1000000"), (Some(1_000_000), 2860));
        assert_eq!(window("limit 8192, got 99999"), (Some(8192), 2860));
    }

    #[test]
    fn a_window_that_an_answer_disproves_is_none() {
        let messages = [said(10_000), Message::assistant("y")];
        for (words, counted, window) in [
            ("too long", None, None),
            ("too long", Some(2500), None),
            ("too long", Some(2200), Some(2288)),
            ("limit 2048", None, Some(2048)),
            ("limit 2048", Some(2100), None),
            ("limit 2048", Some(2000), Some(2048)),
            ("limit 2048", Some(99_000), Some(2048)),
        ] {
            let mut meter = TokenMeter::default();
            meter.refuse(&messages[..1], words);
            // No guess undercuts it, nor comes after a guess that is larger.
            meter.refuse(&messages[..1], "again");
            meter.report(&messages, counted.map(|counted| usage(counted, 5)));
            assert_eq!(meter.window(None), window, "{words} {counted:?}");
        }
    }

    #[test]
    fn pictures_teach_no_ratio() {
        for cost in [0, 85, 1200, 25_000] {
            let mut meter = TokenMeter::default();
            let mut asked = crate::message::UserMessage::from("x".repeat(9_976));
            asked.images = vec![Image { url: "u".into() }];
            let messages = [Message::User(asked), Message::assistant("y".repeat(976))];
            meter.report(&messages, Some(usage(2800 + cost, 280)));
            assert_eq!(meter.estimate(&messages), 3080 + cost);
            meter.forget_count(0);
            let told = meter.estimate(&[said(10_000)]);
            assert!(told.abs_diff(2800) < 70, "{cost}: {told}");
            let told = meter.estimate(&messages[..1]);
            assert!(told.abs_diff(2800 + cost) < 70, "{cost}: {told}");
        }
    }
}
