//! Decides which messages stay unchanged when the others are replaced by a summary.
//!
//! The result is a valid conversation: skill documents follow the calls that loaded them,
//! then come the latest turns. Of the last turn the question stays, with as many of its last
//! steps as fit.

use crate::conversation::meter;
use crate::message::{AssistantMessage, Message};
use crate::tool::ToolCall;

/// The start of each summary. It marks the message as a summary.
pub(crate) const SUMMARY_MARK: &str =
    "[Summary of the conversation so far. What it stands for is not here any more.]\n";

/// An assistant message that takes the place of a removed turn, so that roles alternate.
const CONTINUATION: &str = "(The conversation continues.)";

/// A division of the conversation, without the system message.
#[derive(Debug)]
pub(crate) struct SummaryPlan<'m> {
    /// The messages that the summary replaces.
    pub old: Vec<&'m Message>,
    /// Documents that the model loaded, each with its call.
    loaded: Vec<(&'m ToolCall, &'m Message)>,
    /// Documents that the user invoked.
    invoked: Vec<&'m Message>,
    /// The messages that stay unchanged.
    latest: Vec<&'m Message>,
}

impl<'m> SummaryPlan<'m> {
    /// Keeps up to `max_bytes` bytes of the latest turns, and always the last question with the
    /// last step. `None`: no message would be replaced.
    pub(crate) fn new(messages: &'m [Message], max_bytes: u64) -> Option<SummaryPlan<'m>> {
        let question = messages.iter().rposition(|m| matches!(m, Message::User(_)))?;
        let (start, step) = split_point(messages, question, max_bytes);
        let latest: Vec<&Message> = match step {
            Some(step) => messages[question..=question].iter().chain(&messages[step..]).collect(),
            None => messages[start..].iter().collect(),
        };
        let before: Vec<&Message> = match step {
            Some(step) => {
                messages[..question].iter().chain(&messages[question + 1..step]).collect()
            }
            None => messages[..start].iter().collect(),
        };
        let mut plan =
            SummaryPlan { old: Vec::new(), loaded: Vec::new(), invoked: Vec::new(), latest };
        let mut calls = [].iter();
        for (index, message) in before.iter().copied().enumerate() {
            let later = || before[index + 1..].iter().chain(&plan.latest).copied();
            match message {
                Message::Assistant(answer) => {
                    calls = answer.calls.iter();
                    if answer.content != CONTINUATION && !only_loads_documents(&before, index) {
                        plan.old.push(message);
                    }
                }
                Message::Tool { .. } => match (calls.next(), document_text(message)) {
                    (Some(call), Some(text)) => {
                        if !later().any(|other| is_same_document(other, text)) {
                            plan.loaded.push((call, message));
                        }
                    }
                    _ => plan.old.push(message),
                },
                Message::User(user_message) if user_message.is_document => {
                    if !later().any(|other| other == message) {
                        plan.invoked.push(message);
                    }
                }
                _ => plan.old.push(message),
            }
        }
        let is_summary = |message: &&Message| matches!(message, Message::User(message) if message.text.starts_with(SUMMARY_MARK));
        (!plan.old.iter().all(is_summary)).then_some(plan)
    }

    /// Returns the conversation with this summary, and the number of its first messages that
    /// represent older ones.
    pub(crate) fn apply(&self, summary: &str) -> (Vec<Message>, usize) {
        let mut messages = vec![Message::user(format!("{SUMMARY_MARK}{summary}"))];
        for (call, document) in &self.loaded {
            let calls = vec![(*call).clone()];
            messages.push(Message::Assistant(AssistantMessage {
                calls,
                ..AssistantMessage::default()
            }));
            messages.push((*document).clone());
        }
        messages.push(Message::assistant(CONTINUATION));
        for document in &self.invoked {
            messages.push((*document).clone());
            messages.push(Message::assistant(CONTINUATION));
        }
        let summarized = messages.len();
        messages.extend(self.latest.iter().copied().cloned());
        (messages, summarized)
    }
}

/// The number of messages at the start that represent older ones: a summary and the documents
/// after it, in the form of [`SummaryPlan::apply`].
pub(crate) fn count_summarized(messages: &[Message]) -> usize {
    let is_summary = |message: &Message| matches!(message, Message::User(message) if message.text.starts_with(SUMMARY_MARK));
    if !messages.first().is_some_and(is_summary) {
        return 0;
    }
    let is_end = |message: &Message| matches!(message, Message::Assistant(message) if message.content == CONTINUATION);
    let mut end = messages.iter().position(is_end).map_or(1, |at| at + 1);
    // Documents that the user invoked, each with the assistant message after it.
    while let [Message::User(document), answer, ..] = &messages[end..]
        && document.is_document
        && is_end(answer)
    {
        end += 2;
    }
    end
}

/// The index of the first message that stays; and if only a part of the last turn stays, the
/// index of its first step that stays.
fn split_point(messages: &[Message], question: usize, max_bytes: u64) -> (usize, Option<usize>) {
    let cost = |range: &[Message]| -> u64 {
        let plain = range.iter().filter(|message| document_text(message).is_none());
        plain.map(|message| meter::message_bytes(message, false)).sum()
    };
    let is_step = |index: &usize| matches!(messages[*index], Message::Assistant(_));
    let mut steps = (question + 1..messages.len()).rev().filter(is_step);
    let last = steps.next().unwrap_or(messages.len());
    let question_bytes = cost(&messages[question..=question]);
    let mut from = last;
    for step in steps {
        if question_bytes + cost(&messages[step..]) > max_bytes {
            break;
        }
        from = step;
    }
    if from > question + 1 && from < messages.len() {
        return (question, Some(from));
    }
    let mut start = question;
    let is_question = |index: &usize| matches!(messages[*index], Message::User(_));
    for turn in (0..question).rev().filter(is_question) {
        if cost(&messages[turn..]) > max_bytes {
            break;
        }
        start = turn;
    }
    (start, None)
}

/// The skill document at the start of a tool result.
pub(crate) fn document_text(message: &Message) -> Option<&str> {
    match message {
        Message::Tool { content, document_bytes: Some(end), .. } => content.get(..*end),
        _ => None,
    }
}

/// Whether a message contains a document of the same skill.
fn is_same_document(message: &Message, text: &str) -> bool {
    const LINES: usize = 3;
    document_text(message)
        .is_some_and(|other| other.lines().take(LINES).eq(text.lines().take(LINES)))
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
    use crate::message::UserMessage;
    use crate::tool::ToolResult;

    fn result(conversation: &mut Conversation, name: &str, result: ToolResult) {
        conversation.add_answer(AssistantMessage {
            calls: vec![ToolCall { id: "same".into(), name: name.into(), ..ToolCall::default() }],
            ..AssistantMessage::default()
        });
        conversation.add_result(result);
    }

    fn document(text: &str) -> ToolResult {
        ToolResult {
            document_bytes: Some(text.len()),
            ..ToolResult::success(format!("{text}\n- file"), "")
        }
    }

    /// A short form of each message.
    fn shape(messages: &[Message]) -> Vec<String> {
        let words = |message: &Message| match message {
            Message::System(text) => text.clone(),
            Message::User(message) => format!("user {}", message.text.replace(SUMMARY_MARK, "S: ")),
            Message::Assistant(message) if message.calls.is_empty() => message.content.clone(),
            Message::Assistant(message) => format!("call {}", message.calls[0].name),
            Message::Tool { content, .. } => format!("result {}", content.replace('\n', " ")),
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
        conversation
            .add_question(UserMessage { is_document: true, ..UserMessage::from("by hand") });
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
            ["user one", "a1", "call read", "result long", "a2", "call read", "result first"]
        );
        let (messages, summarized) = plan.apply("sum");
        let expected = [
            "user S: sum",
            "call get_skill",
            "result Base: /b  --- b - file",
            "call get_skill",
            "result Base: /a  --- new - file",
            CONTINUATION,
            "user by hand",
            CONTINUATION,
            "user three",
            "call read",
            "result last",
        ];
        assert_eq!(shape(&messages), expected);
        // As read again from a session file.
        assert_eq!(super::count_summarized(&messages), summarized);
        assert_eq!(super::count_summarized(&messages[1..]), 0);
        assert_eq!(summarized, 8);
        conversation.replace_messages(messages, summarized);
        assert_eq!(conversation.summarized(), 8);
        // A document that stays is not sent again, and a summary alone is not summarized
        // again.
        let again = conversation.without_repeated_content(document("Base: /a\n\n---\nnew"));
        assert!(again.document_bytes.is_none(), "{again:?}");
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
