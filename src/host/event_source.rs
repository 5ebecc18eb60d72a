//! Event source that is served while the program waits for something else.
//!
//! There is one thread: the `poll` that waits for a script, or for the user's answer,
//! also waits for the event source, and calls it in between.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// One of a program's output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Event source that is served during a wait. Nothing else is watched while one of its
/// methods runs, so they must not block.
pub trait EventSource {
    /// Descriptor that becomes readable with the next event; `None` if none will come.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Time of the next call even if no event arrives.
    fn next_call(&self) -> Option<Instant>;

    /// Handles an event (`is_ready`), or the time of the next call. Returns whether the
    /// wait may continue.
    fn handle(&self, is_ready: bool) -> bool;
}

impl dyn EventSource + '_ {
    /// Calls [`EventSource::handle`] if an event arrived or its time has come. Returns
    /// whether the wait may continue.
    pub(super) fn handle_if_due(&self, is_ready: bool) -> bool {
        let is_due = || self.next_call().is_some_and(|time| Instant::now() >= time);
        !(is_ready || is_due()) || self.handle(is_ready)
    }
}

impl fmt::Debug for dyn EventSource + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSource")
    }
}
