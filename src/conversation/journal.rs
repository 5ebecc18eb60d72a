//! The journal of a conversation: it receives each change before it is applied.

use std::fmt;

use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::message::Message;

/// A change of a conversation. The system message is not counted.
#[derive(Clone, Copy, Debug)]
pub enum ConversationChange<'c> {
    /// This message is added at the end.
    Added(&'c Message),
    /// Only this number of messages stays. If that is all of them, the request for the last
    /// question has failed, and the next question replaces it.
    Truncated(usize),
    /// These messages replace all others: a summary and the messages after it, or shortened
    /// results. The old ones are not sent any more, but remain part of the history.
    Replaced(&'c [Message]),
}

/// Storage for the changes of a conversation. It is called before a change is applied, so that
/// answers are saved however the process ends.
pub trait Journal: fmt::Debug {
    /// Saves a change. After an error the conversation continues without this journal.
    fn record(&mut self, change: ConversationChange<'_>) -> Result<()>;

    /// Returns a warning for the user, once. The caller then records the whole conversation
    /// again.
    fn take_warning(&mut self) -> Option<String> {
        None
    }
}

impl Conversation {
    /// Whether changes are still recorded in a journal.
    pub fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// Records all messages, which replace the journal's contents.
    pub fn record_all(&mut self) {
        let messages = &self.messages[self.system_count()..];
        record_in(
            &mut self.journal,
            &mut self.journal_error,
            ConversationChange::Replaced(messages),
        );
    }

    /// Records every change in this journal from now on.
    pub fn set_journal(&mut self, journal: Box<dyn Journal>) {
        self.journal = Some(journal);
    }

    /// Returns the error that ended the journal, once.
    pub fn take_journal_error(&mut self) -> Option<Error> {
        self.journal_error.take()
    }

    /// Returns a warning that another process has changed the saved conversation. All
    /// messages are then recorded again, so that the journal is complete.
    pub fn take_warning(&mut self) -> Option<String> {
        let warning = self.journal.as_mut()?.take_warning()?;
        self.record_all();
        Some(warning)
    }

    /// Records that the request failed: the next question replaces the open one, also when
    /// the conversation is resumed. A truncation that removes nothing has this meaning.
    pub fn record_failed_request(&mut self) {
        if matches!(self.messages.last(), Some(Message::User(_))) {
            self.record(ConversationChange::Truncated(self.messages_without_system().len()));
        }
    }
}

/// Records a change. A journal that fails is not used again.
pub(super) fn record_in(
    journal: &mut Option<Box<dyn Journal>>,
    journal_error: &mut Option<Error>,
    change: ConversationChange<'_>,
) {
    if let Some(Err(error)) = journal.as_mut().map(|journal| journal.record(change)) {
        *journal_error = Some(error);
        *journal = None;
    }
}
