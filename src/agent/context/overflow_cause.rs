//! Hint for a conversation that cannot be shortened enough: its largest message, with advice.

use crate::context::ContextManager;
use crate::conversation::Conversation;
use base::error::Error;
use base::message::Message;
use base::text::group_digits;

impl ContextManager<'_> {
    /// Adds a hint to the error of a conversation that cannot be shortened: the message that
    /// is too large, if there is one.
    pub(super) fn with_overflow_cause(&self, error: Error, conversation: &Conversation) -> Error {
        let meter = conversation.meter();
        let Some(window) = meter.known_window(self.window) else {
            return error;
        };
        let size = |message: &Message| {
            let tools = match message {
                Message::System(_) => meter.bytes_to_tokens(meter.tool_bytes()),
                _ => 0,
            };
            tools + meter.tokens_from(std::slice::from_ref(message), 0)
        };
        let sizes = conversation.messages().iter().map(|message| (size(message), message));
        // Below half of the window, it is not this message that does not fit.
        let too_large = sizes.max_by_key(|(tokens, _)| *tokens);
        let Some((tokens, largest)) = too_large.filter(|(tokens, _)| *tokens > window / 2) else {
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
            "give the server a larger context, or set LLM_CONTEXT_WINDOW higher if it has one"
        } else {
            "give the server a larger context window"
        };
        let (tokens, window) = (group_digits(tokens), group_digits(window));
        error.with_hint(format!(
            "{what} about {tokens} tokens, and the model's context window has about {window}: {advice}, or {remedy}"
        ))
    }
}
