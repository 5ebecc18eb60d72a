//! Where a conversation is: what its last messages allow next.

use base::message::{AssistantMessageKind, Message};
use base::tool::ToolCall;

/// Where a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversationState {
    /// There is no question yet, or none since the last summary.
    Empty,
    /// The last question has no answer yet.
    Unanswered,
    /// The request for the last question failed: the next question replaces it.
    Failed,
    /// Some calls of the model have no result yet.
    OpenCalls,
    /// All calls have their results, and the model continues.
    Called,
    /// The last turn was closed without an answer.
    Interrupted,
    /// The last question is answered.
    Answered,
}

impl ConversationState {
    /// The state after these messages. They do not show whether a request failed.
    pub(super) fn after(messages: &[Message]) -> ConversationState {
        match messages.last() {
            None | Some(Message::System(_)) => ConversationState::Empty,
            Some(Message::User(_)) => ConversationState::Unanswered,
            Some(_) if !open_calls(messages).is_empty() => ConversationState::OpenCalls,
            Some(Message::Tool(_)) => ConversationState::Called,
            Some(Message::Assistant(message)) => match message.kind {
                AssistantMessageKind::Answer => ConversationState::Answered,
                AssistantMessageKind::Interrupted => ConversationState::Interrupted,
                AssistantMessageKind::Continuation => ConversationState::Empty,
            },
        }
    }

    /// Whether the model writes the next message.
    pub fn awaits_answer(self) -> bool {
        use ConversationState::{Called, Failed, Unanswered};
        matches!(self, Unanswered | Failed | Called)
    }
}

/// The calls of the last assistant message that have no result yet.
pub(super) fn open_calls(messages: &[Message]) -> &[ToolCall] {
    let is_result = |message: &&Message| matches!(message, Message::Tool(_));
    let answered = messages.iter().rev().take_while(is_result).count();
    match messages.iter().rev().nth(answered) {
        Some(Message::Assistant(message)) => message.calls.get(answered..).unwrap_or_default(),
        _ => &[],
    }
}
