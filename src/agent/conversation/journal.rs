//! The journal of a conversation: it receives each change before it is applied.

use std::fmt;

use base::error::{Error, Result};
use base::message::Message;

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
    pub(super) journal: Option<Box<dyn Journal>>,
    pub(super) error: Option<Error>,
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
