//! Sessions: for any contents of a file the restored conversation is valid, and what is
//! written from it is read again unchanged.

use agent::conversation::{ConversationChange, repair_messages};
use agent::session::{change_line, restore};
use base::secret::Secrets;
use skills_runner::Conversation;
use skills_runner::Message;
use std::time::SystemTime;

/// See the module.
pub fn check(data: &[u8]) {
    let Ok(Some(restored)) = restore(data, SystemTime::UNIX_EPOCH) else {
        return;
    };
    let unfinished = &data[data.len() - restored.unfinished_bytes..];
    assert!(!unfinished.contains(&b'\n'), "{unfinished:?}");
    check_invariant(&restored.saved.messages);
    let again = repair_messages(restored.saved.messages.clone());
    assert_eq!(again, (restored.saved.messages.clone(), false));
    // A conversation that continues from there is read again unchanged.
    let now = SystemTime::now();
    let header = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let kept = change_line(
        ConversationChange::Replaced(&restored.saved.messages),
        now,
        &Secrets::default(),
    );
    let file = [header, b"\n", kept.as_bytes()].concat();
    let Ok(Some(same)) = restore(&file, SystemTime::UNIX_EPOCH) else {
        panic!("what was written cannot be read");
    };
    assert!(same.damage.is_none() && !same.is_repaired);
    assert_eq!(same.saved.messages, restored.saved.messages);
    let mut conversation = Conversation::from_saved("s", restored.saved);
    conversation.abandon_calls("ended");
    conversation.add_question("next");
    check_invariant(conversation.messages_without_system());
    assert!(conversation.state().awaits_answer());
}

/// Checks that users and assistants alternate and calls have their results in order.
fn check_invariant(messages: &[Message]) {
    let mut open: Vec<&str> = Vec::new();
    let mut is_asked = false;
    for message in messages {
        assert!(message.is_valid(), "{message:?}");
        match message {
            Message::System(_) => panic!("a saved conversation has no system message"),
            Message::User(_) => {
                assert!(!is_asked && open.is_empty(), "{messages:?}");
                is_asked = true;
            }
            Message::Assistant(said) => {
                assert!(is_asked && open.is_empty(), "{messages:?}");
                open = said.calls.iter().rev().map(|call| call.id.as_str()).collect();
                is_asked = false;
            }
            Message::Tool(result) => {
                assert_eq!(open.pop(), Some(result.call_id.as_str()), "{messages:?}");
                is_asked = open.is_empty();
            }
        }
    }
}
