//! A conversation and its invariant: after the system message, user and assistant alternate,
//! and every call has exactly one result, in order, directly after the message with the
//! calls. Endpoints refuse anything else, so this module keeps the invariant even after an
//! interrupt.

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

use journal::record_in;
use meter::TokenMeter;

pub use journal::ConversationChange;
pub(crate) use journal::Journal;
pub use repair::repair_messages;

/// The assistant message that closes a turn without an answer.
const NO_ANSWER: &str = "(no answer: the turn was interrupted)";

/// The note that replaces a document which is already in the conversation.
const UNCHANGED_DOCUMENT: &str = "[unchanged: the whole text is above in this conversation]";

/// Follows the number of bytes in a shortened text.
const CONTEXT_IS_FULL: &str = " bytes left out: the context is full]";

/// Follows the note if the skill's other files were deleted.
const NO_FILES: &str = "\n\nThis skill has no other files any more.";

/// A saved conversation.
#[derive(Clone, Debug)]
pub struct SavedConversation {
    /// Its id.
    pub id: String,
    /// The messages without the system message, repaired by [`repair_messages`].
    pub messages: Vec<Message>,
    /// The number of first messages that represent older ones; see
    /// `context::plan::count_summarized`.
    pub summarized: usize,
    /// When it started.
    pub started: SystemTime,
    /// When it last changed.
    pub last_activity: SystemTime,
}

/// A conversation: its messages, with the journal and the token estimate.
#[derive(Debug)]
pub struct Conversation {
    id: String,
    messages: Vec<Message>,
    started: SystemTime,
    last_activity: SystemTime,
    journal: Option<Box<dyn Journal>>,
    journal_error: Option<Error>,
    meter: TokenMeter,
    /// The number of first messages that represent older ones.
    summarized: usize,
}

impl Conversation {
    /// A conversation with this system prompt; without a system message if it is empty.
    pub fn new(instructions: &str) -> Conversation {
        let system = Message::System(instructions.to_string());
        let now = SystemTime::now();
        Conversation {
            // Empty if there are no random bytes.
            id: random::uuid().unwrap_or_default(),
            messages: if system.is_valid() { vec![system] } else { Vec::new() },
            started: now,
            last_activity: now,
            journal: None,
            journal_error: None,
            meter: TokenMeter::default(),
            summarized: 0,
        }
    }

    /// Continues a saved conversation.
    pub fn from_saved(instructions: &str, past: SavedConversation) -> Conversation {
        let mut conversation = Conversation::new(instructions);
        conversation.summarized = past.summarized;
        conversation.messages.extend(past.messages);
        conversation.id = past.id;
        conversation.started = past.started;
        conversation.last_activity = past.last_activity;
        conversation
    }

    /// The id, a UUID that stays the same.
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

    /// All messages.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// All messages except the system message.
    pub fn messages_without_system(&self) -> &[Message] {
        &self.messages[self.system_count()..]
    }

    /// The number of first messages without the system message that represent older ones: a
    /// summary and skill documents.
    pub fn summarized(&self) -> usize {
        self.summarized
    }

    /// The estimated tokens of the next request.
    pub fn estimate(&self) -> u64 {
        self.meter.estimate(&self.messages)
    }

    /// The token estimate.
    pub fn meter(&self) -> &TokenMeter {
        &self.meter
    }

    /// The context window in tokens: the configured one, or a smaller one if the endpoint
    /// refused that; `None` if neither is known.
    pub fn window(&self, set: Option<u64>) -> Option<u64> {
        self.meter.window(set)
    }

    /// Sets the tools that are sent with every request.
    pub fn set_tools(&mut self, tools: &[ToolDefinition]) {
        self.meter.set_tools(tools);
    }

    /// Another model answers from now on: resets the token estimate.
    pub fn change_model(&mut self) {
        self.meter = TokenMeter::default();
    }

    /// Records the token usage of an answered request, if it was reported. The last message
    /// is the answer.
    pub fn record_usage(&mut self, usage: Option<Usage>) {
        self.meter.record_usage(&self.messages, usage);
    }

    /// Records that the endpoint refused the conversation as too long, with this message.
    pub fn record_refusal(&mut self, words: &str) {
        self.meter.record_refusal(&self.messages, words);
    }

    /// Replaces all messages except the system message. The first `summarized` messages
    /// represent older ones.
    pub fn replace_messages(&mut self, messages: Vec<Message>, summarized: usize) {
        self.record(ConversationChange::Replaced(&messages));
        self.messages.truncate(self.system_count());
        self.meter.invalidate_count(self.messages.len());
        self.messages.extend(messages);
        self.summarized = summarized;
    }

    /// Adds the user's next message. It replaces a question without an answer.
    pub fn add_question(&mut self, prompt: impl Into<UserMessage>) {
        match self.messages.last() {
            Some(Message::User(_)) => self.truncate(self.messages.len() - 1),
            // A user message must not follow a tool result: close the turn first.
            Some(Message::Tool { .. }) => self.close_turn(""),
            _ => {}
        }
        self.add(Message::User(prompt.into()));
    }

    /// Whether the model has to answer: after a question or tool results.
    pub fn awaits_answer(&self) -> bool {
        matches!(self.messages.last(), Some(Message::User(_) | Message::Tool { .. }))
    }

    /// Whether there is any question.
    pub fn has_question(&self) -> bool {
        let mut messages = self.messages.iter();
        messages.any(|message| matches!(message, Message::User(_)))
    }

    /// The text of the last message if it is the model's, else empty.
    pub fn answer_text(&self) -> &str {
        match self.messages.last() {
            Some(Message::Assistant(message)) => &message.content,
            _ => "",
        }
    }

    /// Adds a message of the model. Its calls need results next.
    pub fn add_answer(&mut self, message: AssistantMessage) {
        let message = Message::Assistant(message);
        if message.is_valid() {
            self.add(message);
        }
    }

    /// Adds the result of the first call without one. Does nothing if there is no such call.
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

    /// Replaces a document that the conversation already contains by a note, with the list of
    /// files after it only if that has changed. A document that was removed or shortened is
    /// sent again.
    pub fn without_repeated_content(&self, result: ToolResult) -> ToolResult {
        let result = self.without_repeated_image(result);
        let (Some(document), files) = result.split_document() else {
            return result;
        };
        let base = document.lines().next().unwrap_or_default();
        // It was shortened in this turn: the whole document would not fit now.
        let is_cut = |message: &Message| match message {
            Message::Tool { content, document_bytes: None, .. } => {
                content.contains(CONTEXT_IS_FULL) && content.lines().next() == Some(base)
            }
            _ => false,
        };
        if self.messages[self.latest_turn_start()..].iter().any(is_cut) {
            let mut content = result.content;
            shorten(&mut content, limits::SHORTENED_RESULT_BYTES);
            return ToolResult::success(content, "cut again: the context is full");
        }
        let earlier_files = self.messages.iter().rev().find_map(|message| match message {
            Message::Tool { content, document_bytes: Some(end), .. }
                if content.get(..*end) == Some(document) =>
            {
                Some(Some(&content[*end..]))
            }
            // An older version with this text comes before a newer one, so the text is sent
            // again. With arguments it is another text, not another version.
            Message::Tool { content, document_bytes: Some(_), .. }
                if has_same_beginning(content, document) =>
            {
                Some(None)
            }
            // The user invoked the skill.
            Message::User(UserMessage { text, .. }) if text.contains(&format!("{base}\n")) => {
                Some(text.ends_with(&result.content).then_some(files))
            }
            _ => None,
        });
        let Some(Some(earlier_files)) = earlier_files else {
            return result;
        };
        let mut note = format!("{base}\n\n{UNCHANGED_DOCUMENT}");
        if files != earlier_files {
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

    /// Closes a turn without an answer, so that the next one can start. `partial_answer` is the
    /// part of the answer that was received.
    pub fn close_turn(&mut self, partial_answer: &str) {
        self.abandon_calls("interrupted by the user");
        if self.awaits_answer() {
            let blank = if partial_answer.is_empty() { "" } else { "\n\n" };
            let text = format!("{}{blank}{NO_ANSWER}", partial_answer.trim_end());
            self.add(Message::assistant(text));
        }
    }

    /// Reopens a turn that was closed without an answer; the results of its calls stay.
    /// Returns whether it did.
    pub fn reopen_turn(&mut self) -> bool {
        let is_closed = self.is_closed();
        if is_closed {
            self.truncate(self.messages.len() - 1);
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
            Some(Message::Assistant(message)) => {
                message.content.ends_with(NO_ANSWER) && message.calls.is_empty()
            }
            _ => false,
        }
    }

    /// Removes the last question and everything after it, and returns the question. `None` if
    /// there is no question after the last summary.
    pub fn undo(&mut self) -> Option<UserMessage> {
        let is_question = |message: &Message| matches!(message, Message::User(_));
        let first = self.system_count() + self.summarized;
        let at = first + self.messages.get(first..)?.iter().rposition(is_question)?;
        let question = match &self.messages[at] {
            Message::User(message) => message.clone(),
            _ => return None,
        };
        self.truncate(at);
        Some(question)
    }

    /// Removes all messages except the system message.
    pub fn clear(&mut self) {
        self.truncate(self.system_count());
    }

    /// The number of system messages: one or none.
    fn system_count(&self) -> usize {
        usize::from(matches!(self.messages.first(), Some(Message::System(_))))
    }

    /// Adds a message. All additions go through here.
    fn add(&mut self, message: Message) {
        self.record(ConversationChange::Added(&message));
        self.messages.push(message);
    }

    /// Removes the messages from `length` on. All removals go through here.
    fn truncate(&mut self, length: usize) {
        self.record(ConversationChange::Truncated(length - self.system_count()));
        self.messages.truncate(length);
        self.meter.invalidate_count(length);
        self.summarized = self.summarized.min(self.messages_without_system().len());
    }

    fn record(&mut self, change: ConversationChange<'_>) {
        self.last_activity = SystemTime::now();
        record_in(&mut self.journal, &mut self.journal_error, change);
    }

    /// The index of the latest question, which starts the latest turn.
    pub fn latest_turn_start(&self) -> usize {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        self.messages.iter().rposition(is_user).unwrap_or(0)
    }

    /// Shortens tool results of more than `most` bytes to their beginning and end, from
    /// message `from` on, because the context is full. Returns their number. Skill documents
    /// stay: the model needs them to use a skill.
    pub fn shorten_results(&mut self, most: usize, from: usize) -> usize {
        self.shorten_each(from, &mut |message| match message {
            Message::Tool { content, document_bytes: None, .. } => shorten(content, most),
            _ => false,
        })
    }

    /// Shortens skill documents, when nothing else is left to shorten. A document in the last
    /// question stays.
    pub fn shorten_documents(&mut self, most: usize) -> usize {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        let mut later = self.messages.iter().filter(|m| is_user(m)).count();
        self.shorten_each(0, &mut |message| match message {
            Message::Tool { content, document_bytes: bytes @ Some(_), .. } => {
                shorten(content, most) && bytes.take().is_some()
            }
            Message::User(message) => {
                later -= 1;
                later > 0 && message.is_document && shorten(&mut message.text, most)
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
            self.meter.invalidate_count(*first);
            let messages = &self.messages[self.system_count()..];
            record_in(
                &mut self.journal,
                &mut self.journal_error,
                ConversationChange::Replaced(messages),
            );
        }
        shortened.len()
    }

    fn next_open_call(&self) -> Option<(String, String)> {
        let caller = self.messages.iter().rposition(|m| !matches!(m, Message::Tool { .. }))?;
        let Message::Assistant(message) = &self.messages[caller] else {
            return None;
        };
        let answered = self.messages.len() - caller - 1;
        message.calls.get(answered).map(|call| (call.id.clone(), call.name.clone()))
    }
}

/// Shortens a text of more than `most` bytes. Returns whether it did.
fn shorten(text: &mut String, most: usize) -> bool {
    if text.len() <= most {
        return false;
    }
    // The note counts too; otherwise the text would be shortened again.
    let half = most.saturating_sub(limits::CUT_NOTE_BYTES) / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    let left_out = text.len() - head.len() - tail.len();
    *text = format!("{head}\n[{left_out}{CONTEXT_IS_FULL}\n{tail}");
    true
}

/// Whether the first lines are the same: the same skill and the same start of the document.
fn has_same_beginning(one: &str, other: &str) -> bool {
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

    /// One letter per message: s, u, a, c (with calls), t.
    fn shape(conversation: &Conversation) -> String {
        let letter = |message: &Message| match message {
            Message::System(_) => 's',
            Message::User(_) => 'u',
            Message::Assistant(message) if message.calls.is_empty() => 'a',
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
        conversation.close_turn("");
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
    fn a_turn_can_be_reopened_and_undone() {
        let mut conversation = Conversation::new("s");
        assert_eq!(conversation.undo(), None);
        conversation.add_question("one");
        conversation.add_answer(calls(&["a"]));
        conversation.close_turn("It is");
        let answer = Message::assistant(format!("It is\n\n{NO_ANSWER}"));
        assert_eq!(conversation.messages().last(), Some(&answer));
        assert_eq!(shape(&conversation), "sucta");
        assert!(conversation.reopen_turn() && conversation.awaits_answer());
        assert_eq!(shape(&conversation), "suct");
        conversation.add_answer(calls(&[]));
        assert!(!conversation.reopen_turn());
        conversation.close_turn("");
        conversation.add_question("two");
        assert!(!conversation.reopen_turn());
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

    /// Adds a result without repeated content to a conversation and returns what was added.
    fn add(conversation: &mut Conversation, result: ToolResult) -> String {
        conversation.add_question("q");
        conversation.add_answer(calls(&["a"]));
        let result = conversation.without_repeated_content(result);
        assert!(result.ok);
        let content = result.content.clone();
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
        conversation.add_question("I invoke: Base: /u\nText");
        conversation.add_answer(calls(&["a"]));
        for (text, due) in [("Base: /u\nText", true), ("Base: /u\nTex", false)] {
            let result = conversation.without_repeated_content(document(text, ""));
            assert_eq!(result.document_bytes.is_none(), due, "{text}");
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
        assert_eq!(conversation.shorten_results(100, 0), 1);
        assert_ne!(add(&mut conversation, document(&text, "")), text);
        assert_eq!(conversation.shorten_documents(100), 1);
        assert_eq!(add(&mut conversation, document(&text, "")), text);
    }
}
