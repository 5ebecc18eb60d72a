//! Restores the invariant of a conversation that was read from a file.

use crate::conversation::state::{ConversationState, open_calls};
use base::message::{AssistantMessage, AssistantMessageKind, Message, ToolMessage, UserMessage};
use base::tool::ToolResult;

/// Replaces a user message that could not be read.
const UNREADABLE: &str = "(a message that could not be read)";

/// Turns messages into a valid conversation, and returns whether anything was changed. Missing
/// messages are filled in, and results without a call are left out.
pub fn repair_messages(messages: Vec<Message>) -> (Vec<Message>, bool) {
    let mut whole: Vec<Message> = Vec::with_capacity(messages.len());
    let mut is_changed = false;
    for message in messages {
        let before = whole.len();
        match &message {
            Message::User(_) => {
                answer_open_calls(&mut whole, None);
                if ConversationState::after(&whole).awaits_answer() {
                    whole.push(interrupted(""));
                }
            }
            Message::Assistant(_) => {
                answer_open_calls(&mut whole, None);
                if !ConversationState::after(&whole).awaits_answer() {
                    let text = UNREADABLE.to_string();
                    whole.push(Message::User(UserMessage { text, ..UserMessage::default() }));
                }
            }
            Message::Tool(result) => {
                if !open_calls(&whole).iter().any(|call| call.id == result.call_id) {
                    is_changed = true;
                    continue;
                }
                answer_open_calls(&mut whole, Some(&result.call_id));
            }
            // The system prompt is created again.
            Message::System(_) => {
                is_changed = true;
                continue;
            }
        }
        is_changed |= whole.len() > before;
        whole.push(message);
    }
    (whole, is_changed)
}

/// The message that closes a turn without an answer.
pub(super) fn interrupted(partial_answer: &str) -> Message {
    Message::Assistant(AssistantMessage {
        kind: AssistantMessageKind::Interrupted,
        content: partial_answer.trim_end().to_string(),
        ..AssistantMessage::default()
    })
}

/// Answers the open calls, up to the one with this id.
fn answer_open_calls(messages: &mut Vec<Message>, until: Option<&str>) {
    let open = open_calls(messages).iter();
    let missing = open.take_while(|call| Some(call.id.as_str()) != until);
    let results: Vec<Message> = missing
        .map(|call| {
            Message::Tool(ToolMessage {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: ToolResult::failure("the result could not be read").content,
                ..ToolMessage::default()
            })
        })
        .collect();
    messages.extend(results);
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::tool::ToolCall;

    fn message_for(letter: char) -> Message {
        let call = |id: char| ToolCall { id: id.into(), name: "t".into(), ..ToolCall::default() };
        match letter {
            's' => Message::System("s".into()),
            'u' => Message::user("u"),
            'a' => Message::assistant("a"),
            'c' => Message::Assistant(AssistantMessage {
                calls: vec![call('1'), call('2')],
                ..AssistantMessage::default()
            }),
            id => Message::Tool(ToolMessage {
                call_id: id.into(),
                name: "t".into(),
                content: "r".into(),
                ..ToolMessage::default()
            }),
        }
    }

    #[test]
    fn any_messages_become_a_valid_conversation() {
        for (given, expected, is_due) in [
            ("", "", false),
            ("uauc12au", "uauc12au", false),
            ("uc", "uc", false),
            ("uc1", "uc1", false),
            ("uu", "uau", true),
            ("a", "ua", true),
            ("uaa", "uaua", true),
            ("uc2a", "uc12a", true),
            ("uc21a", "uc12a", true),
            ("uca", "uc12a", true),
            ("ucu", "uc12au", true),
            ("1uc13a", "uc12a", true),
            ("suas", "ua", true),
            ("12", "", true),
        ] {
            let (whole, is_changed) = repair_messages(given.chars().map(message_for).collect());
            let letter = |message: &Message| match message {
                Message::System(_) => 's',
                Message::User(_) => 'u',
                Message::Assistant(message) if message.calls.is_empty() => 'a',
                Message::Assistant(_) => 'c',
                Message::Tool(result) => result.call_id.chars().next().unwrap(),
            };
            let shape: String = whole.iter().map(letter).collect();
            assert_eq!((shape.as_str(), is_changed), (expected, is_due), "{given}");
        }
    }
}
