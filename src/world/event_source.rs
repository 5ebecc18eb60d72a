//! Whoever has other things to do while something is waited for, in the same
//! thread: the `poll` that waits for a program, or for a person's answer, waits
//! for him, too.

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

/// Somebody who is served meanwhile. Until what he is called for returns
/// nothing else is watched, so he must not wait.
pub trait EventSource {
    /// What he waits to read; `None`: there is nothing more to come.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// When he wants to be called although nothing has come.
    fn due(&self) -> Option<Instant>;

    /// Something has come (`is_ready`), or it is time. Whether what is waited
    /// for may go on.
    fn attend(&self, is_ready: bool) -> bool;

    /// Hears a program's output as it comes, in pieces that end anywhere.
    fn hear(&self, stream: ScriptStream, bytes: &[u8]);
}

impl dyn EventSource + '_ {
    /// Serves him, if something has come or it is time; whether what is waited
    /// for may go on.
    pub(super) fn serve(&self, is_ready: bool) -> bool {
        let is_due = || self.due().is_some_and(|due| Instant::now() >= due);
        !(is_ready || is_due()) || self.attend(is_ready)
    }
}

impl fmt::Debug for dyn EventSource + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attendant")
    }
}
