//! What of a conversation stays word for word when the rest becomes a summary.
//!
//! The result is a conversation again: documents of skills stand behind the
//! calls that loaded them, then come the latest turns. Of the last turn the
//! question stays, and as many of its last steps as fit; a step is what the
//! model said with all results of its calls.

use crate::conversation::meter;
use crate::message::{AssistantMessage, Message};
use crate::tool::ToolCall;

/// In front of a summary.
pub(crate) const INTRODUCTION: &str =
    "[Summary of the conversation so far. What it stands for is not here any more.]\n";

/// What the model is made to say where nothing of a turn is left, so that
/// roles alternate.
const CONTINUED: &str = "(The conversation continues.)";

/// Where a conversation is divided. Messages are those without the instructions.
#[derive(Debug)]
pub(crate) struct SummaryPlan<'m> {
    /// What the summary has to stand for.
    pub old: Vec<&'m Message>,
    /// Documents that the model loaded, each with its call.
    loaded: Vec<(&'m ToolCall, &'m Message)>,
    /// Documents that the person invoked.
    invoked: Vec<&'m Message>,
    /// What stays as it is.
    latest: Vec<&'m Message>,
}

impl<'m> SummaryPlan<'m> {
    /// Keeps so many bytes of the latest turns, and always the last question
    /// with the last step. `None`: nothing would go.
    pub(crate) fn of(said: &'m [Message], keep: u64) -> Option<SummaryPlan<'m>> {
        let question = said.iter().rposition(|m| matches!(m, Message::User(_)))?;
        let (start, step) = divide(said, question, keep);
        let latest: Vec<&Message> = match step {
            Some(step) => said[question..=question].iter().chain(&said[step..]).collect(),
            None => said[start..].iter().collect(),
        };
        let before: Vec<&Message> = match step {
            Some(step) => said[..question].iter().chain(&said[question + 1..step]).collect(),
            None => said[..start].iter().collect(),
        };
        let mut plan =
            SummaryPlan { old: Vec::new(), loaded: Vec::new(), invoked: Vec::new(), latest };
        let mut calls = [].iter();
        for (place, message) in before.iter().copied().enumerate() {
            let later = || before[place + 1..].iter().chain(&plan.latest).copied();
            match message {
                Message::Assistant(made) => {
                    calls = made.calls.iter();
                    if made.content != CONTINUED && !is_loading(&before, place) {
                        plan.old.push(message);
                    }
                }
                Message::Tool { .. } => match (calls.next(), document(message)) {
                    (Some(call), Some(text)) => {
                        if !later().any(|other| is_version(other, text)) {
                            plan.loaded.push((call, message));
                        }
                    }
                    _ => plan.old.push(message),
                },
                Message::User(asked) if asked.is_document => {
                    if !later().any(|other| other == message) {
                        plan.invoked.push(message);
                    }
                }
                _ => plan.old.push(message),
            }
        }
        let is_summary = |message: &&Message| matches!(message, Message::User(said) if said.text.starts_with(INTRODUCTION));
        (!plan.old.iter().all(is_summary)).then_some(plan)
    }

    /// The conversation with this summary; how many messages stand for what
    /// was there before.
    pub(crate) fn apply(&self, summary: &str) -> (Vec<Message>, usize) {
        let mut messages = vec![Message::user(format!("{INTRODUCTION}{summary}"))];
        for (call, document) in &self.loaded {
            let calls = vec![(*call).clone()];
            messages.push(Message::Assistant(AssistantMessage {
                calls,
                ..AssistantMessage::default()
            }));
            messages.push((*document).clone());
        }
        messages.push(Message::assistant(CONTINUED));
        for document in &self.invoked {
            messages.push((*document).clone());
            messages.push(Message::assistant(CONTINUED));
        }
        let summarized = messages.len();
        messages.extend(self.latest.iter().copied().cloned());
        (messages, summarized)
    }
}

/// How many messages in front stand for older ones: a summary and the documents
/// behind it, as [`SummaryPlan::apply`] puts them there.
pub(crate) fn summarized(said: &[Message]) -> usize {
    let is_summary = |message: &Message| matches!(message, Message::User(said) if said.text.starts_with(INTRODUCTION));
    if !said.first().is_some_and(is_summary) {
        return 0;
    }
    let is_end = |message: &Message| matches!(message, Message::Assistant(said) if said.content == CONTINUED);
    let mut end = said.iter().position(is_end).map_or(1, |at| at + 1);
    // Documents that the person invoked, each with the model's line.
    while let [Message::User(asked), said, ..] = &said[end..]
        && asked.is_document
        && is_end(said)
    {
        end += 2;
    }
    end
}

/// From which message on everything stays; or, behind the question, from which
/// step on.
fn divide(said: &[Message], question: usize, keep: u64) -> (usize, Option<usize>) {
    let cost = |range: &[Message]| -> u64 {
        let plain = range.iter().filter(|message| document(message).is_none());
        plain.map(|message| meter::of_message(message, false)).sum()
    };
    let is_step = |place: &usize| matches!(said[*place], Message::Assistant(_));
    let mut steps = (question + 1..said.len()).rev().filter(is_step);
    let last = steps.next().unwrap_or(said.len());
    let asked = cost(&said[question..=question]);
    let mut from = last;
    for step in steps {
        if asked + cost(&said[step..]) > keep {
            break;
        }
        from = step;
    }
    if from > question + 1 && from < said.len() {
        return (question, Some(from));
    }
    let mut start = question;
    let is_question = |place: &usize| matches!(said[*place], Message::User(_));
    for turn in (0..question).rev().filter(is_question) {
        if cost(&said[turn..]) > keep {
            break;
        }
        start = turn;
    }
    (start, None)
}

/// The skill's document that a result begins with.
pub(crate) fn document(message: &Message) -> Option<&str> {
    match message {
        Message::Tool { content, document_bytes: Some(end), .. } => content.get(..*end),
        _ => None,
    }
}

/// Whether a message holds a document of the same skill.
fn is_version(message: &Message, text: &str) -> bool {
    const LINES: usize = 3;
    document(message).is_some_and(|other| other.lines().take(LINES).eq(text.lines().take(LINES)))
}

/// Whether a message does nothing but load documents.
fn is_loading(messages: &[&Message], place: usize) -> bool {
    let Message::Assistant(said) = messages[place] else {
        return false;
    };
    let results = messages[place + 1..].iter().take(said.calls.len());
    said.content.is_empty()
        && !said.calls.is_empty()
        && results.clone().count() == said.calls.len()
        && results.clone().all(|result| document(result).is_some())
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

    /// The first words of each message.
    fn shape(messages: &[Message]) -> Vec<String> {
        let words = |message: &Message| match message {
            Message::System(text) => text.clone(),
            Message::User(said) => format!("user {}", said.text.replace(INTRODUCTION, "S: ")),
            Message::Assistant(said) if said.calls.is_empty() => said.content.clone(),
            Message::Assistant(said) => format!("call {}", said.calls[0].name),
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
        let plan = SummaryPlan::of(conversation.said(), 0).unwrap();
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
            CONTINUED,
            "user by hand",
            CONTINUED,
            "user three",
            "call read",
            "result last",
        ];
        assert_eq!(shape(&messages), expected);
        // As it is read again from a file.
        assert_eq!(super::summarized(&messages), summarized);
        assert_eq!(super::summarized(&messages[1..]), 0);
        assert_eq!(summarized, 8);
        conversation.replace(messages, summarized);
        assert_eq!(conversation.summarized(), 8);
        // What stays is told no second time, and what is a summary is enough.
        let again = conversation.without_repetition(document("Base: /a\n\n---\nnew"));
        assert!(again.document_bytes.is_none(), "{again:?}");
        assert!(SummaryPlan::of(conversation.said(), 0).is_none());
        // With room everything of the latest turns stays.
        assert!(SummaryPlan::of(conversation.said(), u64::MAX).is_none());
        // Only what was asked since can be taken back.
        assert_eq!(conversation.undo(), Some(UserMessage::from("three")));
        assert_eq!(conversation.undo(), None);
        assert_eq!((conversation.said().len(), conversation.summarized()), (8, 8));
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
        let turn = meter::bytes(&conversation.said()[..4], 0);
        for (keep, old) in [(0, 14), (turn, 12), (turn * 2, 8), (turn * 3 - 1, 8), (turn * 3, 4)] {
            let plan = SummaryPlan::of(conversation.said(), keep).unwrap();
            assert_eq!(plan.old.len(), old, "{keep}");
        }
        assert!(SummaryPlan::of(conversation.said(), turn * 4).is_none());
    }
}
