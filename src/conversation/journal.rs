//! What becomes of a conversation, told as it happens to whoever keeps it.

use std::fmt;

use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::message::Message;

/// One change. Messages are counted without the instructions.
#[derive(Clone, Copy, Debug)]
pub enum ConversationChange<'c> {
    /// A message was added at the end.
    Added(&'c Message),
    /// Of the messages only so many are left. Where that is all of them, the request
    /// for the last question has failed: the next question takes its place.
    Cut(usize),
    /// These messages stand for all that were there: a summary and what goes
    /// on behind it, or results that were shortened. The old ones are not sent
    /// any more, but were said all the same.
    Replaced(&'c [Message]),
}

/// Who keeps a conversation. It is called before anything else happens, so
/// that what was answered is kept whatever ends the process next.
pub trait Journal: fmt::Debug {
    /// Keeps a change. After an error it is not called any more: the
    /// conversation goes on without.
    fn note(&mut self, change: ConversationChange<'_>) -> Result<()>;

    /// What a person has to know, once; then what is kept must be told anew.
    fn take_warning(&mut self) -> Option<String> {
        None
    }
}

impl Conversation {
    /// Whether every change is still told to a journal.
    pub fn is_kept(&self) -> bool {
        self.journal.is_some()
    }

    /// Tells the journal of all that has been said, in place of what it knows.
    pub fn note_all(&mut self) {
        let said = &self.messages[self.instructions()..];
        note_in(&mut self.journal, &mut self.fault, ConversationChange::Replaced(said));
    }

    /// From now on every change is told to this journal first.
    pub fn keep_in(&mut self, journal: Box<dyn Journal>) {
        self.journal = Some(journal);
    }

    /// Why the conversation is not kept any more; told once.
    pub fn take_fault(&mut self) -> Option<Error> {
        self.fault.take()
    }

    /// That somebody else has changed what is kept; everything is told to the
    /// journal again, so that it is whole.
    pub fn take_warning(&mut self) -> Option<String> {
        let warning = self.journal.as_mut()?.take_warning()?;
        self.note_all();
        Some(warning)
    }

    /// The request has failed: the next question takes the open one's place, also
    /// when the conversation is resumed. A cut that cuts nothing says so.
    pub fn note_failure(&mut self) {
        if matches!(self.messages.last(), Some(Message::User(_))) {
            self.note(ConversationChange::Cut(self.said().len()));
        }
    }
}

/// A journal that fails is not asked again.
pub(super) fn note_in(
    journal: &mut Option<Box<dyn Journal>>,
    fault: &mut Option<Error>,
    change: ConversationChange<'_>,
) {
    if let Some(Err(error)) = journal.as_mut().map(|journal| journal.note(change)) {
        *fault = Some(error);
        *journal = None;
    }
}
