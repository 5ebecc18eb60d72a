//! A conversation and its invariant: after the system message, user and assistant alternate,
//! and every call has exactly one result, in order, directly after the message with the
//! calls. Endpoints refuse anything else, so this module keeps the invariant even after an
//! interrupt.

use std::borrow::Cow;
use std::time::SystemTime;

use base::error::Error;
use base::limits;
use base::message::{AssistantMessage, AssistantMessageKind, Message, ToolMessage, UserMessage};
use base::tool::{ToolCall, ToolDefinition, ToolResult, Usage, parse_arguments};
use host::random;

mod journal;
pub mod meter;
mod repair;
pub mod repetition;
mod shorten;
mod state;
#[cfg(test)]
mod tests;

use journal::Recorder;
use meter::TokenMeter;

pub use journal::ConversationChange;
pub use journal::Journal;
pub use repair::repair_messages;
pub use state::ConversationState;

/// A saved conversation.
#[derive(Clone, Debug)]
pub struct SavedConversation {
    /// Its id.
    pub id: String,
    /// The messages without the system message, repaired by [`repair_messages`].
    pub messages: Vec<Message>,
    /// Whether the request for the last question failed.
    pub has_failed: bool,
    /// When it started.
    pub started: SystemTime,
    /// When it last changed.
    pub last_activity: SystemTime,
}

/// A mark for calls in text; empty if there are no random bytes, and then no call has it.
fn new_call_mark() -> String {
    random::mark().unwrap_or_default()
}

/// The first question in these messages, as the user typed it.
fn first_question(messages: &[Message]) -> Option<Cow<'_, str>> {
    messages.iter().find_map(|message| match message {
        Message::User(question) => Some(question.typed_text()),
        _ => None,
    })
}

impl SavedConversation {
    /// The first question, as the user typed it.
    pub fn first_question(&self) -> Option<Cow<'_, str>> {
        first_question(&self.messages)
    }

    /// An empty conversation with this id that starts now.
    pub fn new(id: String) -> SavedConversation {
        let now = SystemTime::now();
        SavedConversation {
            id,
            messages: Vec::new(),
            has_failed: false,
            started: now,
            last_activity: now,
        }
    }
}

/// A conversation: its messages, with the journal and the token estimate.
#[derive(Debug)]
pub struct Conversation {
    id: String,
    messages: Vec<Message>,
    /// Whether the request for the last question failed.
    has_failed: bool,
    started: SystemTime,
    last_activity: SystemTime,
    recorder: Recorder,
    meter: TokenMeter,
    call_mark: String,
    /// Untrusted text that the model has read and that was replaced by a summary.
    replaced_text: String,
}

impl Conversation {
    /// A conversation with this system prompt; without a system message if it is empty.
    pub fn new(instructions: &str) -> Conversation {
        // The id is empty if there are no random bytes.
        let id = random::uuid().unwrap_or_default();
        Conversation::from_saved(instructions, SavedConversation::new(id))
    }

    /// Continues a saved conversation.
    pub fn from_saved(instructions: &str, past: SavedConversation) -> Conversation {
        let system = Message::System(instructions.to_string());
        let mut messages = if system.is_valid() { vec![system] } else { Vec::new() };
        messages.extend(past.messages);
        Conversation {
            id: past.id,
            messages,
            has_failed: past.has_failed,
            started: past.started,
            last_activity: past.last_activity,
            recorder: Recorder::default(),
            meter: TokenMeter::default(),
            call_mark: new_call_mark(),
            replaced_text: String::new(),
        }
    }

    /// Replaces the mark, as a reply that was not run may be saved with it.
    pub(crate) fn renew_call_mark(&mut self) {
        self.call_mark = new_call_mark();
    }

    /// Untrusted text of messages that were replaced by a summary.
    pub(crate) fn replaced_text(&self) -> &str {
        &self.replaced_text
    }

    /// The mark that opens a call in text, which only the model of this conversation knows.
    pub fn call_mark(&self) -> &str {
        &self.call_mark
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

    /// The names of the skills whose documents it has, as they were called, the last one last.
    pub fn skills_read(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut add = |name: &str| {
            names.retain(|known| known != name);
            names.push(name.to_string());
        };
        let mut calls: &[ToolCall] = &[];
        for message in &self.messages {
            match message {
                Message::User(user) => user.skills.iter().for_each(|skill| add(&skill.name)),
                Message::Assistant(answer) => calls = &answer.calls,
                Message::Tool(result) if result.document.is_some() => {
                    let call = calls.iter().find(|call| call.id == result.call_id);
                    let arguments = call.and_then(|call| parse_arguments(&call.arguments).ok());
                    let name = arguments.as_ref().and_then(|it| it.get("skill_name")?.as_str());
                    name.into_iter().for_each(&mut add);
                }
                _ => {}
            }
        }
        names
    }

    /// All messages except the system message.
    pub fn messages_without_system(&self) -> &[Message] {
        &self.messages[self.system_count()..]
    }

    /// The number of first messages without the system message that represent older ones: a
    /// summary and skill documents, up to the last message that takes the place of others.
    pub fn summarized(&self) -> usize {
        let is_continuation = |message: &Message| match message {
            Message::Assistant(message) => message.kind == AssistantMessageKind::Continuation,
            _ => false,
        };
        let last = self.messages_without_system().iter().rposition(is_continuation);
        last.map_or(0, |at| at + 1)
    }

    /// The first question, as the user typed it.
    pub fn first_question(&self) -> Option<Cow<'_, str>> {
        first_question(&self.messages)
    }

    /// Where the conversation is.
    pub fn state(&self) -> ConversationState {
        match ConversationState::after(&self.messages) {
            ConversationState::Unanswered if self.has_failed => ConversationState::Failed,
            state => state,
        }
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

    /// Records that the endpoint refused the conversation as too long. `limit` is the context
    /// window, `used` the tokens of the request, where the endpoint names them.
    pub fn record_refusal(&mut self, limit: Option<u64>, used: Option<u64>) {
        self.meter.record_refusal(&self.messages, limit, used);
    }

    /// Replaces all messages except the system message.
    pub fn replace_messages(&mut self, messages: Vec<Message>) {
        self.record(ConversationChange::Replaced(&messages));
        for message in &self.messages {
            // More is not searched.
            if self.replaced_text.len() <= limits::DECODED_BYTES {
                self.replaced_text.extend(message.untrusted_texts());
                if let Message::Assistant(answer) = message {
                    self.replaced_text.extend(answer.calls.iter().map(|it| &*it.arguments));
                }
            }
        }
        self.messages.truncate(self.system_count());
        self.meter.invalidate_count(self.messages.len());
        self.messages.extend(messages);
    }

    /// Adds the user's next message. It replaces a question without an answer.
    pub fn add_question(&mut self, prompt: impl Into<UserMessage>) {
        match self.state() {
            ConversationState::Unanswered | ConversationState::Failed => {
                self.truncate(self.messages.len() - 1);
            }
            // A user message must not follow a tool result: close the turn first.
            ConversationState::OpenCalls | ConversationState::Called => self.close_turn(""),
            ConversationState::Empty
            | ConversationState::Interrupted
            | ConversationState::Answered => {}
        }
        self.add(Message::User(prompt.into()));
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
        let Some(call) = state::open_calls(&self.messages).first() else {
            return;
        };
        self.add(Message::Tool(ToolMessage {
            call_id: call.id.clone(),
            name: call.name.clone(),
            document: result.document,
            content: result.content,
            untrusted: result.untrusted,
            is_shortened: false,
            image: result.image,
        }));
    }

    /// Answers every open call with `reason`, as an error for the model.
    pub fn abandon_calls(&mut self, reason: &str) {
        while self.state() == ConversationState::OpenCalls {
            self.add_result(ToolResult::failure(reason));
        }
    }

    /// Closes a turn without an answer, so that the next one can start. `partial_answer` is the
    /// part of the answer that was received.
    pub fn close_turn(&mut self, partial_answer: &str) {
        self.abandon_calls("interrupted by the user");
        if self.state().awaits_answer() {
            self.add(repair::interrupted(partial_answer));
        }
    }

    /// Reopens a turn that was closed without an answer; the results of its calls stay.
    pub fn reopen_turn(&mut self) {
        if self.state() == ConversationState::Interrupted {
            self.truncate(self.messages.len() - 1);
        }
    }

    /// Removes the last question and everything after it, and returns the question. `None` if
    /// there is no question after the last summary.
    pub fn undo(&mut self) -> Option<UserMessage> {
        let first = self.system_count() + self.summarized();
        let at = first + self.messages.get(first..)?.iter().rposition(Message::is_user)?;
        let question = match &self.messages[at] {
            Message::User(message) => message.clone(),
            _ => return None,
        };
        self.truncate(at);
        Some(question)
    }

    /// Replaces the system prompt. Endpoints then no longer have the conversation in their cache.
    pub fn set_instructions(&mut self, instructions: &str) {
        let system = Message::System(instructions.to_string());
        let system = Some(system).filter(Message::is_valid);
        self.messages.splice(..self.system_count(), system);
        self.meter.invalidate_count(0);
    }

    /// Removes all messages except the system message.
    pub fn clear(&mut self) {
        self.truncate(self.system_count());
        self.call_mark = new_call_mark();
    }

    /// The number of system messages: one or none.
    fn system_count(&self) -> usize {
        usize::from(matches!(self.messages.first(), Some(Message::System(_))))
    }

    /// The index of the latest question, which starts the latest turn.
    pub fn latest_turn_start(&self) -> usize {
        self.messages.iter().rposition(Message::is_user).unwrap_or(0)
    }

    /// Adds a message. All additions go through here.
    fn add(&mut self, message: Message) {
        self.record(ConversationChange::Added(&message));
        self.messages.push(message);
        self.has_failed = false;
    }

    /// Removes the messages from `length` on. All removals go through here.
    fn truncate(&mut self, length: usize) {
        self.record(ConversationChange::Truncated(length - self.system_count()));
        self.messages.truncate(length);
        self.meter.invalidate_count(length);
        self.has_failed = false;
    }

    /// Whether changes are still recorded in a journal.
    pub fn has_journal(&self) -> bool {
        self.recorder.journal.is_some()
    }

    /// Records all messages, which replace the journal's contents.
    pub fn record_all(&mut self) {
        let messages = &self.messages[self.system_count()..];
        self.recorder.record(ConversationChange::Replaced(messages));
    }

    /// Records every change in this journal from now on.
    pub fn set_journal(&mut self, journal: Box<dyn Journal>) {
        self.recorder.journal = Some(journal);
    }

    /// Returns the error that ended the journal, once.
    pub fn take_journal_error(&mut self) -> Option<Error> {
        self.recorder.error.take()
    }

    /// Records that the request for the last question failed: the next question replaces it,
    /// also when the conversation is resumed.
    pub fn record_failed_request(&mut self) {
        if self.state() == ConversationState::Unanswered {
            self.record(ConversationChange::Failed);
            self.has_failed = true;
        }
    }

    fn record(&mut self, change: ConversationChange<'_>) {
        self.last_activity = SystemTime::now();
        self.recorder.record(change);
    }

    /// Changes messages in place. Returns the number of those for which `change` is true.
    fn change_each(&mut self, change: &mut dyn FnMut(&mut Message) -> bool) -> usize {
        let mut changed = Vec::new();
        for (place, message) in self.messages.iter_mut().enumerate() {
            if change(message) {
                changed.push(place);
            }
        }
        if let Some(first) = changed.first() {
            self.meter.invalidate_count(*first);
            self.record_all();
        }
        changed.len()
    }
}
