//! The journal of a conversation: it receives each change before it is applied.

use std::fmt;

use crate::conversation::{Conversation, ConversationState};
use crate::error::{Error, Result};
use crate::message::Message;

/// A change of a conversation. The system message is not counted.
#[derive(Clone, Copy, Debug)]
pub enum ConversationChange<'c> {
    /// This message is added at the end.
    Added(&'c Message),
    /// Only this number of messages stays.
    Truncated(usize),
    /// These messages replace all others: a summary and the messages after it, or shortened
    /// results. The old ones are not sent any more, but remain part of the history.
    Replaced(&'c [Message]),
    /// The request for the last question has failed, and the next question replaces it.
    Failed,
}

/// Storage for the changes of a conversation. It is called before a change is applied, so that
/// answers are saved however the process ends.
pub trait Journal: fmt::Debug {
    /// Saves a change. After an error the conversation continues without this journal.
    fn record(&mut self, change: ConversationChange<'_>) -> Result<()>;
}

/// The journal of a conversation, while it works.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    journal: Option<Box<dyn Journal>>,
    error: Option<Error>,
}

impl Recorder {
    /// Records a change. A journal that fails is not used again.
    pub(super) fn record(&mut self, change: ConversationChange<'_>) {
        if let Some(Err(error)) = self.journal.as_mut().map(|journal| journal.record(change)) {
            self.error = Some(error);
            self.journal = None;
        }
    }
}

impl Conversation {
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
}
