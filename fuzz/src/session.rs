//! Sessions: whatever a file holds, what is read of it is a conversation that
//! endpoints take, and its torn end is known to the byte.

use skills_runner::Conversation;
use skills_runner::Message;
use skills_runner::internals::conversation::{ConversationChange, SavedConversation, repaired};
use skills_runner::internals::secret::Secrets;
use skills_runner::internals::session::{line, restore};
use std::time::SystemTime;

/// See the module.
pub fn check(data: &[u8]) {
    let Ok(Some(restored)) = restore(data) else {
        return;
    };
    let whole = data.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    assert_eq!(restored.torn_bytes, data.len() - whole);
    let lines = data[..whole].split(|byte| *byte == b'\n').count() - 2;
    assert!(restored.faults.len() + restored.more_faults <= lines);
    check_invariant(&restored.messages);
    let again = repaired(restored.messages.iter().cloned().map(Some).collect());
    assert_eq!(again, (restored.messages.clone(), false));
    // What goes on from there is read again as it is.
    let now = SystemTime::now();
    let header = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let kept = line(ConversationChange::Replaced(&restored.messages), now, &Secrets::default());
    let file = [header, b"\n", kept.as_bytes()].concat();
    let Ok(Some(same)) = restore(&file) else {
        panic!("what was written cannot be read");
    };
    assert!(same.faults.is_empty() && !same.is_mended);
    assert_eq!(same.messages, restored.messages);
    let mut conversation = Conversation::resumed(
        "s",
        SavedConversation {
            id: restored.header.id,
            messages: restored.messages,
            summarized: 0,
            started: now,
            last_activity: now,
        },
    );
    conversation.abandon_calls("gone");
    conversation.add_question("next");
    check_invariant(conversation.said());
    assert!(conversation.awaits_answer());
}

/// Users and assistants take turns; calls have their results, in order.
fn check_invariant(messages: &[Message]) {
    let mut open: Vec<&str> = Vec::new();
    let mut is_asked = false;
    for message in messages {
        assert!(message.is_valid(), "{message:?}");
        match message {
            Message::System(_) => panic!("instructions are made anew"),
            Message::User(_) => {
                assert!(!is_asked && open.is_empty(), "{messages:?}");
                is_asked = true;
            }
            Message::Assistant(said) => {
                assert!(is_asked && open.is_empty(), "{messages:?}");
                open = said.calls.iter().rev().map(|call| call.id.as_str()).collect();
                is_asked = false;
            }
            Message::Tool { call_id, .. } => {
                assert_eq!(open.pop(), Some(call_id.as_str()), "{messages:?}");
                is_asked = open.is_empty();
            }
        }
    }
}
