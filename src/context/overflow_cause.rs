//! Hint for a conversation that cannot be shortened enough: its largest message, with advice.

use crate::context::ContextManager;
use crate::conversation::Conversation;
use crate::error::Error;
use crate::limits;
use crate::message::Message;
use crate::text::group_digits;

impl ContextManager<'_> {
    /// Adds a hint to the error of a conversation that cannot be shortened: the message that
    /// is too large, if there is one.
    pub(super) fn with_overflow_cause(&self, error: Error, conversation: &Conversation) -> Error {
        let meter = conversation.meter();
        let size = |message: &Message| {
            let tools = match message {
                Message::System(_) => meter.bytes_to_tokens(meter.tool_bytes()),
                _ => 0,
            };
            tools + meter.tokens_from(std::slice::from_ref(message), 0)
        };
        let messages = conversation.messages();
        let Some(largest) = messages.iter().max_by_key(|message| size(message)) else {
            return error;
        };
        let (tokens, total_tokens) = (size(largest), conversation.estimate());
        // A window guessed from such a short request is not reliable. A window much larger
        // than the request is not the cause.
        let is_known = |window: &u64| {
            (self.window.is_some() || *window >= limits::CONTEXT_TOKENS_MIN)
                && *window / 2 < total_tokens
        };
        let window = conversation.window(self.window).filter(is_known);
        // A system prompt below this share leaves space; something else is too large.
        let is_system = matches!(largest, Message::System(_));
        let is_too_large = |window: &u64| {
            if is_system { tokens > window / 5 * 4 } else { tokens > total_tokens / 2 }
        };
        let has_hint = error.hint().is_some();
        let Some(window) = window.filter(|window| !has_hint || is_too_large(window)) else {
            return error;
        };
        let (what, advice) = match largest {
            Message::System(_) => {
                ("the system prompt, with the skills and the tools, has", "offer fewer skills")
            }
            Message::User(message) if !message.images.is_empty() => {
                ("the question with its images has", "ask in several parts")
            }
            Message::User(_) => ("the question has", "ask in several parts"),
            Message::Assistant(_) => ("one answer has", "start a new conversation"),
            Message::Tool(_) => ("one tool result has", "ask for smaller parts"),
        };
        let remedy = if self.window == Some(window) {
            "set LLM_CONTEXT_WINDOW higher if the model's context is larger"
        } else {
            "give the server a larger context window"
        };
        let (tokens, window) = (group_digits(tokens), group_digits(window));
        error.with_hint(format!(
            "{what} about {tokens} tokens, and the model's context window has about {window}: {advice}, or {remedy}"
        ))
    }
}
