//! What of a conversation stays word for word when the rest becomes a summary.
//!
//! The result is a conversation again: documents of skills stand behind the
//! calls that loaded them, then come the latest turns. Of the last turn the
//! question stays, and as many of its last steps as fit; a step is what the
//! model said with all results of its calls.

use crate::context::meter;
use crate::message::{Assistant, Message};
use crate::tool::ToolCall;

/// In front of a summary.
pub const INTRODUCTION: &str =
    "[Summary of the conversation so far. What it stands for is not here any more.]\n";

/// What the model is made to say where nothing of a turn is left, so that
/// roles alternate.
const CONTINUED: &str = "(The conversation continues.)";

/// Where a conversation is divided. Messages are those without the instructions.
#[derive(Debug)]
pub struct Plan<'m> {
    /// What the summary has to stand for.
    pub old: Vec<&'m Message>,
    /// Documents that the model loaded, each with its call.
    loaded: Vec<(&'m ToolCall, &'m Message)>,
    /// Documents that the person invoked.
    invoked: Vec<&'m Message>,
    /// What stays as it is.
    latest: Vec<&'m Message>,
}

impl<'m> Plan<'m> {
    /// Keeps so many bytes of the latest turns, and always the last question
    /// with the last step. `None`: nothing would go.
    pub fn of(said: &'m [Message], keep: u64) -> Option<Plan<'m>> {
        let question = said.iter().rposition(|m| matches!(m, Message::User(_)))?;
        let (start, step) = divide(said, question, keep);
        let latest: Vec<&Message> = match step {
            Some(step) => said[question..=question]
                .iter()
                .chain(&said[step..])
                .collect(),
            None => said[start..].iter().collect(),
        };
        let before: Vec<&Message> = match step {
            Some(step) => said[..question]
                .iter()
                .chain(&said[question + 1..step])
                .collect(),
            None => said[..start].iter().collect(),
        };
        let mut plan = Plan {
            old: Vec::new(),
            loaded: Vec::new(),
            invoked: Vec::new(),
            latest,
        };
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
    pub fn apply(&self, summary: &str) -> (Vec<Message>, usize) {
        let mut messages = vec![Message::user(format!("{INTRODUCTION}{summary}"))];
        for (call, document) in &self.loaded {
            let calls = vec![(*call).clone()];
            messages.push(Message::Assistant(Assistant {
                calls,
                ..Assistant::default()
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
pub fn document(message: &Message) -> Option<&str> {
    match message {
        Message::Tool {
            content,
            document_bytes: Some(end),
            ..
        } => content.get(..*end),
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
