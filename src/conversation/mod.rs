//! A conversation and its one invariant: after the system message, user and
//! assistant alternate, and every call has exactly one result, in order,
//! directly after the message that made it. Endpoints refuse everything else,
//! so nothing else can be built here, whatever is interrupted when.

use std::time::SystemTime;

use crate::error::Error;
use crate::limits;
use crate::message::{AssistantMessage, Message, UserMessage};
use crate::tool::{ToolDefinition, ToolResult, Usage};
use crate::world::random;

mod images;
mod journal;
pub(crate) mod meter;
mod repair;

use journal::note_in;
use meter::TokenMeter;

pub use journal::ConversationChange;
pub(crate) use journal::Journal;
pub use repair::repaired;

/// What closes a turn that ended without an answer.
const NO_ANSWER: &str = "(no answer: the turn was interrupted)";

/// What stands for a document that was told before.
const ALREADY_TOLD: &str = "[unchanged: the whole text is above in this conversation]";

/// In what was cut, behind the number of bytes.
const CONTEXT_IS_FULL: &str = " bytes left out: the context is full]";

/// Behind it, when there were other files and are none any more.
const NO_FILES: &str = "\n\nThis skill has no other files any more.";

/// A conversation as it was kept.
#[derive(Clone, Debug)]
pub struct SavedConversation {
    /// Its id.
    pub id: String,
    /// What was said, [`repaired`], without the instructions.
    pub messages: Vec<Message>,
    /// How many of them, from the first one, stand for older ones:
    /// `context::plan::summarized`.
    pub summarized: usize,
    /// When it began.
    pub started: SystemTime,
    /// When it last changed.
    pub last_activity: SystemTime,
}

/// Messages in their order.
#[derive(Debug)]
pub struct Conversation {
    id: String,
    messages: Vec<Message>,
    started: SystemTime,
    last_activity: SystemTime,
    journal: Option<Box<dyn Journal>>,
    fault: Option<Error>,
    meter: TokenMeter,
    /// Messages in front that stand for older ones.
    summarized: usize,
}

impl Conversation {
    /// A conversation under these instructions; none if they are empty.
    pub fn new(instructions: &str) -> Conversation {
        let system = Message::System(instructions.to_string());
        let now = SystemTime::now();
        Conversation {
            // Without random bytes it has none.
            id: random::uuid().unwrap_or_default(),
            messages: if system.is_valid() { vec![system] } else { Vec::new() },
            started: now,
            last_activity: now,
            journal: None,
            fault: None,
            meter: TokenMeter::default(),
            summarized: 0,
        }
    }

    /// A conversation that was held before.
    pub fn resumed(instructions: &str, past: SavedConversation) -> Conversation {
        let mut conversation = Conversation::new(instructions);
        conversation.summarized = past.summarized;
        conversation.messages.extend(past.messages);
        conversation.id = past.id;
        conversation.started = past.started;
        conversation.last_activity = past.last_activity;
        conversation
    }

    /// A UUID, the same for as long as the conversation lasts.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// When it began.
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// When it last changed.
    pub fn last_activity(&self) -> SystemTime {
        self.last_activity
    }

    /// What has been said.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The same without the instructions.
    pub fn said(&self) -> &[Message] {
        &self.messages[self.instructions()..]
    }

    /// How many messages of [`Conversation::said`], from the first one, stand for
    /// older ones: a summary, and documents of skills.
    pub fn summarized(&self) -> usize {
        self.summarized
    }

    /// About how many tokens the next request has.
    pub fn estimate(&self) -> u64 {
        self.meter.estimate(&self.messages)
    }

    /// How tokens are estimated.
    pub fn meter(&self) -> &TokenMeter {
        &self.meter
    }

    /// Tokens that the model reads at most: what is set, or less if it refused
    /// that; `None` where neither is known.
    pub fn window(&self, set: Option<u64>) -> Option<u64> {
        self.meter.window(set)
    }

    /// From now on these tools go with every request.
    pub fn offer(&mut self, tools: &[ToolDefinition]) {
        self.meter.offer(tools);
    }

    /// Another model answers from now on: what was learnt was the other one's.
    pub fn change_model(&mut self) {
        self.meter = TokenMeter::default();
    }

    /// The endpoint answered a request; the answer is the last message. It counted
    /// so many tokens, where it told that.
    pub fn report(&mut self, usage: Option<Usage>) {
        self.meter.report(&self.messages, usage);
    }

    /// The endpoint refused the conversation as too long, with these words.
    pub fn refuse(&mut self, words: &str) {
        self.meter.refuse(&self.messages, words);
    }

    /// From now on these messages stand for all that were said; the first
    /// `summarized` of them for older ones.
    pub fn replace(&mut self, said: Vec<Message>, summarized: usize) {
        self.note(ConversationChange::Replaced(&said));
        self.messages.truncate(self.instructions());
        self.meter.forget_count(self.messages.len());
        self.messages.extend(said);
        self.summarized = summarized;
    }

    /// Adds the person's next message. A question that got no answer is
    /// replaced by it.
    pub fn add_question(&mut self, prompt: impl Into<UserMessage>) {
        match self.messages.last() {
            Some(Message::User(_)) => self.cut(self.messages.len() - 1),
            // No user may speak right after a tool: close the turn first.
            Some(Message::Tool { .. }) => self.close(""),
            _ => {}
        }
        self.add(Message::User(prompt.into()));
    }

    /// Whether a request would have something to answer: a question, or
    /// results of tools.
    pub fn awaits_answer(&self) -> bool {
        matches!(self.messages.last(), Some(Message::User(_) | Message::Tool { .. }))
    }

    /// Whether anything was asked.
    pub fn has_question(&self) -> bool {
        let mut said = self.messages.iter();
        said.any(|message| matches!(message, Message::User(_)))
    }

    /// The text of the last message, if it is the model's.
    pub fn answer_text(&self) -> &str {
        match self.messages.last() {
            Some(Message::Assistant(said)) => &said.content,
            _ => "",
        }
    }

    /// Adds what the model said. Its calls wait for their results.
    pub fn add_answer(&mut self, said: AssistantMessage) {
        let message = Message::Assistant(said);
        if message.is_valid() {
            self.add(message);
        }
    }

    /// Adds the result of the first call that has none yet. Without such a
    /// call nothing happens.
    pub fn add_result(&mut self, result: ToolResult) {
        let Some((call_id, name)) = self.next_open_call() else {
            return;
        };
        self.add(Message::Tool {
            call_id,
            name,
            content: result.content,
            document_bytes: result.document_bytes,
            image: result.image,
        });
    }

    /// The result without what the conversation holds already: a note in place
    /// of a document that is in there whole, with the list behind it only where
    /// that has changed. What was cleared or cut is told again.
    pub fn without_repetition(&self, result: ToolResult) -> ToolResult {
        let result = self.without_repeated_image(result);
        let (Some(document), files) = result.parts() else {
            return result;
        };
        let base = document.lines().next().unwrap_or_default();
        // It was cut in this turn: there is no room for the whole of it now.
        let is_cut = |message: &Message| match message {
            Message::Tool { content, document_bytes: None, .. } => {
                content.contains(CONTEXT_IS_FULL) && content.lines().next() == Some(base)
            }
            _ => false,
        };
        if self.messages[self.latest_turn()..].iter().any(is_cut) {
            let mut content = result.content;
            shorten(&mut content, limits::SHORTENED_RESULT_BYTES);
            return ToolResult::success(content, "cut again: the context is full");
        }
        let told = self.messages.iter().rev().find_map(|message| match message {
            Message::Tool { content, document_bytes: Some(end), .. }
                if content.get(..*end) == Some(document) =>
            {
                Some(Some(&content[*end..]))
            }
            // An older version that is the same again would be read past a
            // newer one. With arguments it is another text, not another version.
            Message::Tool { content, document_bytes: Some(_), .. }
                if begins_alike(content, document) =>
            {
                Some(None)
            }
            // A person invoked the skill.
            Message::User(UserMessage { text, .. }) if text.contains(&format!("{base}\n")) => {
                Some(text.ends_with(&result.content).then_some(files))
            }
            _ => None,
        });
        let Some(Some(told)) = told else {
            return result;
        };
        let mut note = format!("{base}\n\n{ALREADY_TOLD}");
        if files != told {
            note.push_str(if files.is_empty() { NO_FILES } else { files });
        }
        ToolResult::success(note, "unchanged, already read")
    }

    /// Answers every open call with `reason`, as an error for the model.
    pub fn abandon_calls(&mut self, reason: &str) {
        while self.next_open_call().is_some() {
            self.add_result(ToolResult::failure(reason));
        }
    }

    /// Ends a turn that will get no answer, so that the next may begin, with what
    /// was `said` of one.
    pub fn close(&mut self, said: &str) {
        self.abandon_calls("interrupted by the user");
        if self.awaits_answer() {
            let blank = if said.is_empty() { "" } else { "\n\n" };
            let text = format!("{}{blank}{NO_ANSWER}", said.trim_end());
            self.add(Message::assistant(text));
        }
    }

    /// Takes back that a turn ended without an answer: it waits for one again,
    /// with the results that its calls had. Returns whether it ended so.
    pub fn reopen(&mut self) -> bool {
        let is_closed = self.is_closed();
        if is_closed {
            self.cut(self.messages.len() - 1);
        }
        is_closed
    }

    /// Whether the last question has no answer.
    pub fn lacks_answer(&self) -> bool {
        self.awaits_answer() || self.is_closed()
    }

    /// Whether the last turn was ended without an answer.
    fn is_closed(&self) -> bool {
        match self.messages.last() {
            Some(Message::Assistant(said)) => {
                said.content.ends_with(NO_ANSWER) && said.calls.is_empty()
            }
            _ => false,
        }
    }

    /// Takes back the last question with everything that came of it, and gives
    /// the question. `None` if nothing was asked since the last summary.
    pub fn undo(&mut self) -> Option<UserMessage> {
        let is_question = |message: &Message| matches!(message, Message::User(_));
        let first = self.instructions() + self.summarized;
        let at = first + self.messages.get(first..)?.iter().rposition(is_question)?;
        let question = match &self.messages[at] {
            Message::User(said) => said.clone(),
            _ => return None,
        };
        self.cut(at);
        Some(question)
    }

    /// Forgets everything but the instructions.
    pub fn clear(&mut self) {
        self.cut(self.instructions());
    }

    /// How many messages are instructions: one, or none.
    fn instructions(&self) -> usize {
        usize::from(matches!(self.messages.first(), Some(Message::System(_))))
    }

    /// Everything that is said goes through here.
    fn add(&mut self, message: Message) {
        self.note(ConversationChange::Added(&message));
        self.messages.push(message);
    }

    /// Everything that is taken back goes through here.
    fn cut(&mut self, length: usize) {
        self.note(ConversationChange::Cut(length - self.instructions()));
        self.messages.truncate(length);
        self.meter.forget_count(length);
        self.summarized = self.summarized.min(self.said().len());
    }

    fn note(&mut self, change: ConversationChange<'_>) {
        self.last_activity = SystemTime::now();
        note_in(&mut self.journal, &mut self.fault, change);
    }

    /// Where the latest turn begins: its question.
    pub fn latest_turn(&self) -> usize {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        self.messages.iter().rposition(is_user).unwrap_or(0)
    }

    /// Cuts the results of tools from this message on that are longer than `most`
    /// bytes down to their beginning and end, for an endpoint whose context is
    /// full. Returns how many there were. Documents of skills stay: nothing works
    /// without them.
    pub fn shorten_results(&mut self, most: usize, from: usize) -> usize {
        self.shorten_each(from, &mut |message| match message {
            Message::Tool { content, document_bytes: None, .. } => shorten(content, most),
            _ => false,
        })
    }

    /// The same for documents of skills, when nothing else is left to cut. One
    /// that is the last question stays.
    pub fn shorten_documents(&mut self, most: usize) -> usize {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        let mut later = self.messages.iter().filter(|m| is_user(m)).count();
        self.shorten_each(0, &mut |message| match message {
            Message::Tool { content, document_bytes: bytes @ Some(_), .. } => {
                shorten(content, most) && bytes.take().is_some()
            }
            Message::User(said) => {
                later -= 1;
                later > 0 && said.is_document && shorten(&mut said.text, most)
            }
            _ => false,
        })
    }

    fn shorten_each(
        &mut self,
        from: usize,
        is_shortened: &mut dyn FnMut(&mut Message) -> bool,
    ) -> usize {
        let mut shortened = Vec::new();
        for (place, message) in self.messages.iter_mut().enumerate().skip(from) {
            if is_shortened(message) {
                shortened.push(place);
            }
        }
        if let Some(first) = shortened.first() {
            self.meter.forget_count(*first);
            let said = &self.messages[self.instructions()..];
            note_in(&mut self.journal, &mut self.fault, ConversationChange::Replaced(said));
        }
        shortened.len()
    }

    fn next_open_call(&self) -> Option<(String, String)> {
        let asked = self.messages.iter().rposition(|m| !matches!(m, Message::Tool { .. }))?;
        let Message::Assistant(said) = &self.messages[asked] else {
            return None;
        };
        let answered = self.messages.len() - asked - 1;
        said.calls.get(answered).map(|call| (call.id.clone(), call.name.clone()))
    }
}

/// Cuts a text that is too long; whether it was.
fn shorten(text: &mut String, most: usize) -> bool {
    if text.len() <= most {
        return false;
    }
    // The note counts too, or what was cut would be cut again.
    let half = most.saturating_sub(limits::CUT_NOTE_BYTES) / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    let left_out = text.len() - head.len() - tail.len();
    *text = format!("{head}\n[{left_out}{CONTEXT_IS_FULL}\n{tail}");
    true
}

/// Whether two documents are of one skill, and begin with the same line.
fn begins_alike(one: &str, other: &str) -> bool {
    const LINES: usize = 3;
    one.lines().take(LINES).eq(other.lines().take(LINES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolCall;

    fn calls(ids: &[&str]) -> AssistantMessage {
        let call =
            |id: &&str| ToolCall { id: (*id).into(), name: "t".into(), ..ToolCall::default() };
        AssistantMessage { calls: ids.iter().map(call).collect(), ..AssistantMessage::default() }
    }

    /// One letter a message: s, u, a, c (with calls), t.
    fn shape(conversation: &Conversation) -> String {
        let letter = |message: &Message| match message {
            Message::System(_) => 's',
            Message::User(_) => 'u',
            Message::Assistant(said) if said.calls.is_empty() => 'a',
            Message::Assistant(_) => 'c',
            Message::Tool { .. } => 't',
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
        conversation.close("");
        assert_eq!(shape(&conversation), "ucttta");
        let ids: Vec<&str> = conversation
            .messages()
            .iter()
            .filter_map(|m| match m {
                Message::Tool { call_id, .. } => Some(call_id.as_str()),
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
        assert!(conversation.awaits_answer());
        conversation.add_question("other");
        assert_eq!(shape(&conversation), "suctau");
        conversation.clear();
        assert_eq!(shape(&conversation), "s");
    }

    #[test]
    fn a_turn_can_be_opened_again_and_taken_back() {
        let mut conversation = Conversation::new("s");
        assert_eq!(conversation.undo(), None);
        conversation.add_question("one");
        conversation.add_answer(calls(&["a"]));
        conversation.close("It is");
        let said = Message::assistant(format!("It is\n\n{NO_ANSWER}"));
        assert_eq!(conversation.messages().last(), Some(&said));
        assert_eq!(shape(&conversation), "sucta");
        assert!(conversation.reopen() && conversation.awaits_answer());
        assert_eq!(shape(&conversation), "suct");
        conversation.add_answer(calls(&[]));
        assert!(!conversation.reopen());
        conversation.close("");
        conversation.add_question("two");
        assert!(!conversation.reopen());
        assert_eq!(conversation.undo(), Some(UserMessage::from("two")));
        assert_eq!(shape(&conversation), "sucta");
        assert_eq!(conversation.undo(), Some(UserMessage::from("one")));
        assert_eq!(shape(&conversation), "s");
        assert_eq!(conversation.undo(), None);
    }

    #[test]
    fn an_assistant_that_says_nothing_is_no_message() {
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
        assert_eq!(conversation.shorten_results(101, 0), 1);
        let Message::Tool { content, .. } = &conversation.messages()[3] else {
            panic!("{conversation:?}")
        };
        assert!(content.starts_with("éé") && content.ends_with("éé"), "{content}");
        assert!(content.contains("\n[1164 bytes left out: the context is full]\n"), "{content}");
        assert_eq!(conversation.shorten_results(101, 0), 0);
        assert_eq!(
            conversation.messages()[4],
            Message::Tool {
                call_id: "b".into(),
                name: "t".into(),
                content: "short".into(),
                document_bytes: None,
                image: None,
            }
        );
    }

    fn document(text: &str, files: &str) -> ToolResult {
        ToolResult {
            document_bytes: Some(text.len()),
            ..ToolResult::success(format!("{text}{files}"), "whole")
        }
    }

    /// A conversation in which each of these was told, if it had to be; what
    /// was added of it.
    fn told(conversation: &mut Conversation, result: ToolResult) -> String {
        conversation.add_question("q");
        conversation.add_answer(calls(&["a"]));
        let result = conversation.without_repetition(result);
        assert!(result.ok);
        let content = result.content.clone();
        conversation.add_result(result);
        content
    }

    #[test]
    fn a_document_is_told_once_as_long_as_it_is_there() {
        let mut conversation = Conversation::new("s");
        let mut tell = |text, files| told(&mut conversation, document(text, files));
        let note = format!("Base: /s\n\n{ALREADY_TOLD}");
        assert_eq!(tell("Base: /s\nText", "\n- a"), "Base: /s\nText\n- a");
        assert_eq!(tell("Base: /s\nText", "\n- a"), note);
        assert_eq!(tell("Base: /s\nText", "\n- b"), format!("{note}\n- b"));
        assert_eq!(tell("Base: /s\nText", ""), format!("{note}{NO_FILES}"));
        // The same beginning is not the same document.
        assert_eq!(tell("Base: /s\nText\n", "- a"), "Base: /s\nText\n- a");
        assert_eq!(tell("Base: /s\nTex", ""), "Base: /s\nTex");
        assert_eq!(tell("Base: /t\nText", ""), "Base: /t\nText");
        // A person invoked it.
        conversation.add_question("I invoke: Base: /u\nText");
        conversation.add_answer(calls(&["a"]));
        for (text, due) in [("Base: /u\nText", true), ("Base: /u\nTex", false)] {
            let result = conversation.without_repetition(document(text, ""));
            assert_eq!(result.document_bytes.is_none(), due, "{text}");
        }
        // What is no document is told as often as it is asked for.
        for _ in 0..2 {
            let result = ToolResult::success("Base: /s\nText", "");
            assert_eq!(told(&mut conversation, result), "Base: /s\nText");
        }
        // What lies behind a newer text is told again.
        for text in ["Base: /v\n\n---\nA", "Base: /v\n\n---\nB", "Base: /v\n\n---\nA"] {
            assert_eq!(told(&mut conversation, document(text, "")), text);
        }
        conversation.clear();
        let again = told(&mut conversation, document("Base: /s\nText", ""));
        assert_eq!(again, "Base: /s\nText");
    }

    #[test]
    fn documents_are_cut_last_and_then_told_again() {
        let mut conversation = Conversation::new("s");
        let text = "x".repeat(300);
        told(&mut conversation, document(&text, ""));
        told(&mut conversation, ToolResult::success("y".repeat(300), ""));
        assert_eq!(conversation.shorten_results(100, 0), 1);
        assert_ne!(told(&mut conversation, document(&text, "")), text);
        assert_eq!(conversation.shorten_documents(100), 1);
        assert_eq!(told(&mut conversation, document(&text, "")), text);
    }
}
