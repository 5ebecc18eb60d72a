//! What becomes of a conversation, told as it happens to whoever keeps it.

use std::fmt;

use crate::error::Result;
use crate::message::Message;

/// One change. Messages are counted without the instructions.
#[derive(Clone, Copy, Debug)]
pub enum Change<'c> {
    /// A message was added at the end.
    Added(&'c Message),
    /// Of the messages only so many are left.
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
    fn note(&mut self, change: Change<'_>) -> Result<()>;

    /// What a person has to know, once; then what is kept must be told anew.
    fn take_warning(&mut self) -> Option<String> {
        None
    }
}
