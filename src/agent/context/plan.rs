//! Decides which messages stay unchanged when the others are replaced by a summary.
//!
//! The result is a valid conversation: skill documents follow the calls that loaded them,
//! then come the latest turns. Of the last turn the question stays, with as many of its last
//! steps as fit.

use crate::conversation::meter;
use crate::conversation::repetition::is_same_skill;
use base::message::{
    AssistantMessage, AssistantMessageKind, InvokedSkill, Message, UserMessage, UserMessageKind,
};
use base::tool::ToolCall;

/// A division of the conversation, without the system message.
#[derive(Debug)]
pub(crate) struct SummaryPlan<'m> {
    /// The messages that the summary replaces.
    pub old: Vec<&'m Message>,
    /// Documents that the model loaded, each with its call.
    loaded: Vec<(&'m ToolCall, &'m Message)>,
    /// Skills that the user invoked with one message.
    invoked: Vec<&'m [InvokedSkill]>,
    /// The messages that stay unchanged.
    latest: Vec<&'m Message>,
}

impl<'m> SummaryPlan<'m> {
    /// Keeps up to `max_bytes` bytes of the latest turns, and always the last question with the
    /// last step. `None`: no message would be replaced.
    pub(crate) fn new(messages: &'m [Message], max_bytes: u64) -> Option<SummaryPlan<'m>> {
        let question = messages.iter().rposition(Message::is_user)?;
        let start = first_kept(messages, question, max_bytes);
        let (mut before, mut latest) = (Vec::new(), Vec::new());
        for (index, message) in messages.iter().enumerate() {
            let is_kept = index >= start || index == question;
            if is_kept { &mut latest } else { &mut before }.push(message);
        }
        let mut plan =
            SummaryPlan { old: Vec::new(), loaded: Vec::new(), invoked: Vec::new(), latest };
        let mut calls = [].iter();
        for (index, message) in before.iter().copied().enumerate() {
            let later = || before[index + 1..].iter().chain(&plan.latest).copied();
            match message {
                Message::Assistant(answer) => {
                    calls = answer.calls.iter();
                    let is_written = answer.kind != AssistantMessageKind::Continuation;
                    if is_written && !only_loads_documents(&before, index) {
                        plan.old.push(message);
                    }
                }
                Message::Tool(_) => match (calls.next(), document_text(message)) {
                    (Some(call), Some(text)) => {
                        if !later().any(|other| is_same_document(other, text)) {
                            plan.loaded.push((call, message));
                        }
                    }
                    _ => plan.old.push(message),
                },
                Message::User(user) if !user.skills.is_empty() => {
                    if !later().any(|other| has_skills(other, &user.skills)) {
                        plan.invoked.push(&user.skills);
                    }
                    if !user.request_text().is_empty() || !user.images.is_empty() {
                        plan.old.push(message);
                    }
                }
                _ => plan.old.push(message),
            }
        }
        let is_summary = |message: &&Message| matches!(message, Message::User(message) if message.kind == UserMessageKind::Summary);
        (!plan.old.iter().all(is_summary)).then_some(plan)
    }

    /// Returns the conversation with this summary.
    pub(crate) fn apply(&self, summary: &str) -> Vec<Message> {
        let kind = UserMessageKind::Summary;
        let summary = Message::User(UserMessage { kind, ..UserMessage::from(summary) });
        let continuation = Message::Assistant(AssistantMessage {
            kind: AssistantMessageKind::Continuation,
            ..AssistantMessage::default()
        });
        let mut messages = vec![summary];
        for (call, document) in &self.loaded {
            let calls = vec![(*call).clone()];
            messages.push(Message::Assistant(AssistantMessage {
                calls,
                ..AssistantMessage::default()
            }));
            messages.push((*document).clone());
        }
        messages.push(continuation.clone());
        for skills in &self.invoked {
            let skills = skills.to_vec();
            messages.push(Message::User(UserMessage { skills, ..UserMessage::default() }));
            messages.push(continuation.clone());
        }
        messages.extend(self.latest.iter().copied().cloned());
        messages
    }
}

/// The index of the first message that stays, besides the last question: the start of a turn, or
/// of a step of the last turn. Documents are kept anyway and do not count.
fn first_kept(messages: &[Message], question: usize, max_bytes: u64) -> usize {
    let cost = |range: &[Message]| -> u64 {
        let plain = range.iter().filter(|message| document_text(message).is_none());
        plain.map(|message| meter::message_bytes(message, false)).sum()
    };
    let question_bytes = cost(&messages[question..=question]);
    let mut start = messages.len();
    for (index, message) in messages.iter().enumerate().rev() {
        let is_step = index > question && matches!(message, Message::Assistant(_));
        if !is_step && !message.is_user() {
            continue;
        }
        let extra = if is_step { question_bytes } else { 0 };
        let is_last = start == messages.len();
        if !is_last && cost(&messages[index..]) + extra > max_bytes {
            break;
        }
        start = index;
    }
    start
}

/// The skill document in a tool result.
pub(crate) fn document_text(message: &Message) -> Option<&str> {
    match message {
        Message::Tool(result) => result.document.as_deref(),
        _ => None,
    }
}

/// Whether the user invoked these skills with a message.
fn has_skills(message: &Message, skills: &[InvokedSkill]) -> bool {
    matches!(message, Message::User(user) if user.skills == skills)
}

/// Whether a message contains a document of the same skill.
fn is_same_document(message: &Message, text: &str) -> bool {
    document_text(message).is_some_and(|other| is_same_skill(other, text))
}

/// Whether a message only calls tools that load documents.
fn only_loads_documents(messages: &[&Message], index: usize) -> bool {
    let Message::Assistant(answer) = messages[index] else {
        return false;
    };
    let results = messages[index + 1..].iter().take(answer.calls.len());
    answer.content.is_empty()
        && !answer.calls.is_empty()
        && results.clone().count() == answer.calls.len()
        && results.clone().all(|result| document_text(result).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Conversation;
    use base::tool::ToolResult;

    fn result(conversation: &mut Conversation, name: &str, result: ToolResult) {
        conversation.add_answer(AssistantMessage {
            calls: vec![ToolCall { id: "same".into(), name: name.into(), ..ToolCall::default() }],
            ..AssistantMessage::default()
        });
        conversation.add_result(result);
    }

    fn document(text: &str) -> ToolResult {
        ToolResult { document: Some(text.into()), ..ToolResult::success("\n- file", "") }
    }

    /// A short form of each message.
    fn shape(messages: &[Message]) -> Vec<String> {
        let words = |message: &Message| match message {
            Message::User(message) if message.kind == UserMessageKind::Summary => {
                format!("summary {}", message.text)
            }
            Message::User(message) if message.text.is_empty() => {
                format!("user {}", message.full_text())
            }
            Message::User(message) => format!("user {}", message.text),
            Message::Assistant(message) if !message.calls.is_empty() => {
                format!("call {}", message.calls[0].name)
            }
            Message::Tool(_) => format!("result {}", message.text().replace('\n', " ")),
            Message::System(_) | Message::Assistant(_) => message.text().into_owned(),
        };
        messages.iter().map(words).collect()
    }

    #[test]
    fn documents_questions_and_the_last_steps_stay() {
        let mut conversation = Conversation::new("s");
        conversation.add_question("one");
        result(&mut conversation, "get_skill", document("Base: /a\n\n---\nold"));
        result(&mut conversation, "get_skill", document("Base: /b\n\n---\nb"));
        conversation
            .add_answer(AssistantMessage { content: "a1".into(), ..AssistantMessage::default() });
        let by_hand = InvokedSkill { text: "by hand".into(), ..InvokedSkill::default() };
        let skills = vec![by_hand];
        conversation.add_question(UserMessage { skills, ..UserMessage::from("two") });
        result(&mut conversation, "read", ToolResult::success("long", ""));
        result(&mut conversation, "get_skill", document("Base: /a\n\n---\nnew"));
        conversation
            .add_answer(AssistantMessage { content: "a2".into(), ..AssistantMessage::default() });
        conversation.add_question("three");
        result(&mut conversation, "read", ToolResult::success("first", ""));
        result(&mut conversation, "read", ToolResult::success("last", ""));
        let plan = SummaryPlan::new(conversation.messages_without_system(), 0).unwrap();
        assert_eq!(
            shape(&plan.old.iter().copied().cloned().collect::<Vec<_>>()),
            [
                "user one",
                "a1",
                "user two",
                "call read",
                "result long",
                "a2",
                "call read",
                "result first"
            ]
        );
        let messages = plan.apply("sum");
        let expected = [
            "summary sum",
            "call get_skill",
            "result Base: /b  --- b - file",
            "call get_skill",
            "result Base: /a  --- new - file",
            "(The conversation continues.)",
            "user by hand",
            "(The conversation continues.)",
            "user three",
            "call read",
            "result last",
        ];
        assert_eq!(shape(&messages), expected);
        conversation.replace_messages(messages);
        assert_eq!(conversation.summarized(), 8);
        // A document that stays is not sent again, and a summary alone is not summarized
        // again.
        let again = conversation.without_repeated_content(document("Base: /a\n\n---\nnew"));
        assert!(again.document.is_none(), "{again:?}");
        assert!(SummaryPlan::new(conversation.messages_without_system(), 0).is_none());
        // A large limit keeps all turns.
        assert!(SummaryPlan::new(conversation.messages_without_system(), u64::MAX).is_none());
        // Only questions after the summary can be undone.
        assert_eq!(conversation.undo(), Some(UserMessage::from("three")));
        assert_eq!(conversation.undo(), None);
        assert_eq!(
            (conversation.messages_without_system().len(), conversation.summarized()),
            (8, 8)
        );
        conversation.clear();
        assert_eq!(conversation.summarized(), 0);
    }

    #[test]
    fn turns_that_fit_stay_whole() {
        let mut conversation = Conversation::new("");
        for number in 1..=4 {
            conversation.add_question(format!("q{number}"));
            result(&mut conversation, "read", ToolResult::success("r".repeat(100), ""));
            conversation.add_answer(AssistantMessage {
                content: "a".into(),
                ..AssistantMessage::default()
            });
        }
        let turn = meter::bytes_from(&conversation.messages_without_system()[..4], 0);
        for (max_bytes, old) in
            [(0, 14), (turn, 12), (turn * 2, 8), (turn * 3 - 1, 8), (turn * 3, 4)]
        {
            let plan = SummaryPlan::new(conversation.messages_without_system(), max_bytes).unwrap();
            assert_eq!(plan.old.len(), old, "{max_bytes}");
        }
        assert!(SummaryPlan::new(conversation.messages_without_system(), turn * 4).is_none());
    }
}
