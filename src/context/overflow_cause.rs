//! What is to blame where no room can be made.

use crate::context::ContextManager;
use crate::conversation::Conversation;
use crate::error::Error;
use crate::limits;
use crate::message::Message;
use crate::text::grouped;

impl ContextManager<'_> {
    /// The error of a conversation that cannot be made shorter: it names the
    /// message that is to blame, if one is.
    pub(super) fn blamed(&self, error: Error, conversation: &Conversation) -> Error {
        let meter = conversation.meter();
        let size = |message: &Message| {
            let tools = match message {
                Message::System(_) => meter.tokens(meter.tools()),
                _ => 0,
            };
            tools + meter.size(std::slice::from_ref(message), 0)
        };
        let messages = conversation.messages();
        let Some(largest) = messages.iter().max_by_key(|message| size(message)) else {
            return error;
        };
        let (tokens, all) = (size(largest), conversation.estimate());
        // A window that was guessed from a request as short as that is none, nor
        // is a window to blame that the request is far from.
        let is_known = |window: &u64| {
            (self.window.is_some() || *window >= limits::CONTEXT_TOKENS_KNOWN) && *window / 2 < all
        };
        let window = conversation.window(self.window).filter(is_known);
        // Beside instructions that leave room something else is too large.
        let is_system = matches!(largest, Message::System(_));
        let is_to_blame = |window: &u64| {
            if is_system { tokens > window / 5 * 4 } else { tokens > all / 2 }
        };
        let is_told = error.hint().is_some();
        let Some(window) = window.filter(|window| !is_told || is_to_blame(window)) else {
            return error;
        };
        let (what, advice) = match largest {
            Message::System(_) => {
                ("the instructions, with the skills and the tools, have", "offer fewer skills")
            }
            Message::User(said) if !said.images.is_empty() => {
                ("the question with its images has", "ask in several parts")
            }
            Message::User(_) => ("the question has", "ask in several parts"),
            Message::Assistant(_) => ("one answer has", "start a new conversation"),
            Message::Tool { .. } => ("one result of a tool has", "ask for less of it at once"),
        };
        let larger = if self.window == Some(window) {
            "set LLM_CONTEXT_WINDOW higher if the model reads more"
        } else {
            "give the server a larger context window"
        };
        let alone = if is_system { "themselves" } else { "itself" };
        let (tokens, window) = (grouped(tokens), grouped(window));
        error.with_hint(format!(
            "{what} about {tokens} tokens by {alone}, and the model reads some {window}: {advice}, or {larger}"
        ))
    }
}
