//! Restores the invariant message a conversation that was read from a file.

use super::NO_ANSWER;
use crate::message::{Message, UserMessage};
use crate::tool::ToolResult;

/// Replaces a user message that could not be read.
const UNREADABLE: &str = "(a message that could not be read)";

/// Replaces an answer that could not be read.
const UNREADABLE_ANSWER: &str = "(an answer that could not be read)";

/// Turns messages into a valid conversation, and returns whether anything was changed. `None`
/// is a message that could not be read. Readable messages stay, missing ones are filled in,
/// and results without a call are left out.
pub fn repair_messages(messages: Vec<Option<Message>>) -> (Vec<Message>, bool) {
    let mut whole: Vec<Message> = Vec::with_capacity(messages.len());
    let mut is_changed = false;
    let mut is_after_gap = false;
    for message in messages {
        let follows_gap = std::mem::replace(&mut is_after_gap, message.is_none());
        let Some(message) = message else {
            is_changed = true;
            continue;
        };
        let before = whole.len();
        match &message {
            Message::User(_) => {
                answer_open_calls(&mut whole);
                if awaits_answer(&whole) {
                    let reason = if follows_gap { UNREADABLE_ANSWER } else { NO_ANSWER };
                    whole.push(Message::assistant(reason));
                }
            }
            Message::Assistant(_) => {
                answer_open_calls(&mut whole);
                if !awaits_answer(&whole) {
                    whole.push(Message::User(UserMessage::from(UNREADABLE)));
                }
            }
            Message::Tool { call_id, .. } => {
                let open = open_calls(&whole);
                match open.iter().position(|(id, _)| id == call_id) {
                    Some(place) => add_failed_results(&mut whole, &open[..place]),
                    None => {
                        is_changed = true;
                        continue;
                    }
                }
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
    if is_after_gap && awaits_answer(&whole) && open_calls(&whole).is_empty() {
        whole.push(Message::assistant(UNREADABLE_ANSWER));
    }
    (whole, is_changed)
}

fn awaits_answer(messages: &[Message]) -> bool {
    matches!(messages.last(), Some(Message::User(_) | Message::Tool { .. }))
}

fn answer_open_calls(messages: &mut Vec<Message>) {
    let open = open_calls(messages);
    add_failed_results(messages, &open);
}

fn add_failed_results(messages: &mut Vec<Message>, calls: &[(String, String)]) {
    for (id, name) in calls {
        messages.push(Message::Tool {
            call_id: id.clone(),
            name: name.clone(),
            content: ToolResult::failure("the result could not be read").content,
            document_bytes: None,
            image: None,
        });
    }
}

/// The calls without a result: id and name.
fn open_calls(messages: &[Message]) -> Vec<(String, String)> {
    let is_result = |message: &Message| matches!(message, Message::Tool { .. });
    let Some(caller) = messages.iter().rposition(|message| !is_result(message)) else {
        return Vec::new();
    };
    let Message::Assistant(message) = &messages[caller] else {
        return Vec::new();
    };
    let open = message.calls.iter().skip(messages.len() - caller - 1);
    open.map(|call| (call.id.clone(), call.name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::AssistantMessage;
    use crate::tool::ToolCall;

    fn message_for(letter: char) -> Option<Message> {
        let call = |id: char| ToolCall { id: id.into(), name: "t".into(), ..ToolCall::default() };
        Some(match letter {
            's' => Message::System("s".into()),
            'u' => Message::user("u"),
            'a' => Message::assistant("a"),
            'c' => Message::Assistant(AssistantMessage {
                calls: vec![call('1'), call('2')],
                ..AssistantMessage::default()
            }),
            '1' | '2' => Message::Tool {
                call_id: letter.into(),
                name: "t".into(),
                content: "r".into(),
                document_bytes: None,
                image: None,
            },
            _ => return None,
        })
    }

    #[test]
    fn any_messages_become_a_valid_conversation() {
        let table = [
            ("", "", false),
            ("uauc12au", "uauc12au", false),
            ("uc", "uc", false),
            ("uc1", "uc1", false),
            ("uu", "uau", true),
            ("a", "ua", true),
            ("?a", "ua", true),
            ("uaa", "uaua", true),
            ("u?u", "uau", true),
            ("u?", "ua", true),
            ("uc12?", "uc12a", true),
            ("uc1?", "uc1", true),
            ("uc?2a", "uc12a", true),
            ("uc21a", "uc12a", true),
            ("uca", "uc12a", true),
            ("ucu", "uc12au", true),
            ("1uc13a", "uc12a", true),
            ("suas", "ua", true),
            ("12", "", true),
        ];
        for (given, expected, due) in table {
            let (whole, is_changed) = repair_messages(given.chars().map(message_for).collect());
            let letter = |message: &Message| match message {
                Message::System(_) => 's',
                Message::User(_) => 'u',
                Message::Assistant(message) if message.calls.is_empty() => 'a',
                Message::Assistant(_) => 'c',
                Message::Tool { call_id, .. } => call_id.chars().next().unwrap(),
            };
            let shape: String = whole.iter().map(letter).collect();
            assert_eq!((shape.as_str(), is_changed), (expected, due), "{given}");
        }
    }
}
