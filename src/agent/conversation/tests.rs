//! The invariant of a conversation, and what is sent once.

use super::repetition::{NO_FILES, UNCHANGED_DOCUMENT};
use super::*;
use base::message::InvokedSkill;
use base::tool::ToolCall;

fn calls(ids: &[&str]) -> AssistantMessage {
    let call = |id: &&str| ToolCall { id: (*id).into(), name: "t".into(), ..ToolCall::default() };
    AssistantMessage { calls: ids.iter().map(call).collect(), ..AssistantMessage::default() }
}

/// One letter per message: s, u, a, c (with calls), t.
fn shape(conversation: &Conversation) -> String {
    let letter = |message: &Message| match message {
        Message::System(_) => 's',
        Message::User(_) => 'u',
        Message::Assistant(message) if message.calls.is_empty() => 'a',
        Message::Assistant(_) => 'c',
        Message::Tool(_) => 't',
    };
    conversation.messages().iter().map(letter).collect()
}

#[test]
fn an_unanswered_question_is_replaced() {
    let mut conversation = Conversation::new("s");
    conversation.add_question("one");
    conversation.add_question("two");
    assert_eq!(shape(&conversation), "su");
    assert_eq!(conversation.messages()[1], Message::user("two"));
}

#[test]
fn every_call_gets_one_result_in_order_also_after_an_interrupt() {
    let mut conversation = Conversation::new("");
    conversation.add_question("q");
    conversation.add_answer(calls(&["a", "b", "c"]));
    conversation.add_result(ToolResult::success("ra", ""));
    conversation.close_turn("");
    assert_eq!(shape(&conversation), "ucttta");
    let ids: Vec<&str> = conversation
        .messages()
        .iter()
        .filter_map(|m| match m {
            Message::Tool(result) => Some(result.call_id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
    conversation.add_result(ToolResult::success("too much", ""));
    assert_eq!(shape(&conversation), "ucttta");
    conversation.add_question("next");
    assert_eq!(shape(&conversation), "uctttau");
}

#[test]
fn a_question_after_results_closes_the_turn_before() {
    let mut conversation = Conversation::new("s");
    conversation.add_question("q");
    conversation.add_answer(calls(&["a"]));
    conversation.add_result(ToolResult::success("r", ""));
    assert!(conversation.state().awaits_answer());
    conversation.add_question("other");
    assert_eq!(shape(&conversation), "suctau");
    conversation.clear();
    assert_eq!(shape(&conversation), "s");
}

#[test]
fn a_turn_can_be_reopened_and_undone() {
    let mut conversation = Conversation::new("s");
    assert_eq!(conversation.undo(), None);
    conversation.add_question("one");
    conversation.add_answer(calls(&["a"]));
    conversation.close_turn("It is");
    let last = conversation.messages().last().unwrap();
    assert_eq!(last.text(), "It is\n\n(no answer: the turn was interrupted)");
    assert_eq!(shape(&conversation), "sucta");
    assert_eq!(conversation.state(), ConversationState::Interrupted);
    conversation.reopen_turn();
    assert_eq!(conversation.state(), ConversationState::Called);
    assert_eq!(shape(&conversation), "suct");
    conversation.add_answer(calls(&[]));
    conversation.close_turn("");
    conversation.add_question("two");
    conversation.record_failed_request();
    assert_eq!(conversation.state(), ConversationState::Failed);
    assert_eq!(conversation.undo(), Some(UserMessage::from("two")));
    assert_eq!(shape(&conversation), "sucta");
    assert_eq!(conversation.undo(), Some(UserMessage::from("one")));
    assert_eq!(shape(&conversation), "s");
    assert_eq!(conversation.undo(), None);
}

#[test]
fn an_empty_assistant_message_is_not_added() {
    let mut conversation = Conversation::new("");
    conversation.add_question("q");
    conversation.add_answer(AssistantMessage::default());
    assert_eq!(shape(&conversation), "u");
}

#[test]
fn long_results_are_shortened_once() {
    let mut conversation = Conversation::new("s");
    conversation.add_question("q");
    conversation.add_answer(calls(&["a", "b"]));
    conversation.add_result(ToolResult::success("é".repeat(600), ""));
    conversation.add_result(ToolResult::success("short", ""));
    assert_eq!(conversation.shorten_results(101), 1);
    let content = conversation.messages()[3].text();
    assert!(content.starts_with("éé") && content.ends_with("éé"), "{content}");
    assert!(content.contains("\n[1164 bytes left out: the context is full]\n"), "{content}");
    assert_eq!(conversation.shorten_results(101), 0);
    assert_eq!(
        conversation.messages()[4],
        Message::Tool(ToolMessage {
            call_id: "b".into(),
            name: "t".into(),
            content: "short".into(),
            ..ToolMessage::default()
        })
    );
}

fn document(text: &str, files: &str) -> ToolResult {
    ToolResult { document: Some(text.into()), ..ToolResult::success(files, "whole") }
}

/// Adds a result without repeated content to a conversation and returns what was added.
fn add(conversation: &mut Conversation, result: ToolResult) -> String {
    conversation.add_question("q");
    conversation.add_answer(calls(&["a"]));
    let result = conversation.without_repeated_content(result);
    assert!(result.ok);
    let content = result.full_text().into_owned();
    conversation.add_result(result);
    content
}

#[test]
fn a_document_is_sent_once_while_it_is_in_the_conversation() {
    let mut conversation = Conversation::new("s");
    let mut insert = |text, files| add(&mut conversation, document(text, files));
    let note = format!("Base: /s\n\n{UNCHANGED_DOCUMENT}");
    assert_eq!(insert("Base: /s\nText", "\n- a"), "Base: /s\nText\n- a");
    assert_eq!(insert("Base: /s\nText", "\n- a"), note);
    assert_eq!(insert("Base: /s\nText", "\n- b"), format!("{note}\n- b"));
    assert_eq!(insert("Base: /s\nText", ""), format!("{note}{NO_FILES}"));
    // A common start does not make two documents equal.
    assert_eq!(insert("Base: /s\nText\n", "- a"), "Base: /s\nText\n- a");
    assert_eq!(insert("Base: /s\nTex", ""), "Base: /s\nTex");
    assert_eq!(insert("Base: /t\nText", ""), "Base: /t\nText");
    // The user invoked it.
    let text = "I invoke: Base: /u\nText".to_string();
    let skills = vec![InvokedSkill { text, ..InvokedSkill::default() }];
    conversation.add_question(UserMessage { skills, ..UserMessage::from("question") });
    conversation.add_answer(calls(&["a"]));
    for (text, due) in [("Base: /u\nText", true), ("Base: /u\nTex", false)] {
        let result = conversation.without_repeated_content(document(text, ""));
        assert_eq!(result.document.is_none(), due, "{text}");
    }
    // A result without a document is repeated.
    for _ in 0..2 {
        let result = ToolResult::success("Base: /s\nText", "");
        assert_eq!(add(&mut conversation, result), "Base: /s\nText");
    }
    // A text that is older than another version is repeated.
    for text in ["Base: /v\n\n---\nA", "Base: /v\n\n---\nB", "Base: /v\n\n---\nA"] {
        assert_eq!(add(&mut conversation, document(text, "")), text);
    }
    conversation.clear();
    let again = add(&mut conversation, document("Base: /s\nText", ""));
    assert_eq!(again, "Base: /s\nText");
}

#[test]
fn documents_are_shortened_last_and_then_sent_again() {
    let mut conversation = Conversation::new("s");
    let text = "x".repeat(300);
    add(&mut conversation, document(&text, ""));
    add(&mut conversation, ToolResult::success("y".repeat(300), ""));
    assert_eq!(conversation.shorten_results(100), 1);
    assert_ne!(add(&mut conversation, document(&text, "")), text);
    assert_eq!(conversation.shorten_documents(100), 1);
    assert_eq!(add(&mut conversation, document(&text, "")), text);
}
