//! What hangs is killed: a contender that never ends would hold up whoever waits for it, and
//! CI with them. By the alarm of this process, as that costs what is measured nothing.

use std::io;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// What no run of a contender takes, also with a debug build on a busy machine.
const SECONDS: u32 = 60;

/// Whom the alarm kills; 0: nobody.
static WATCHED: AtomicI32 = AtomicI32::new(0);
/// It has killed.
static RANG: AtomicBool = AtomicBool::new(false);

/// Watches one child, until it is dropped. There is one at a time.
pub(crate) struct Deadline;

impl Deadline {
    /// From now on.
    pub(crate) fn of(pid: i32) -> Deadline {
        RANG.store(false, Ordering::SeqCst);
        WATCHED.store(pid, Ordering::SeqCst);
        let ring: extern "C" fn(i32) = ring;
        // SAFETY: the handler only uses atomics and makes one call that is safe in handlers.
        unsafe {
            libc::signal(libc::SIGALRM, ring as libc::sighandler_t);
            libc::alarm(SECONDS);
        }
        Deadline
    }

    /// The result, unless it was killed for its time; for after it was waited for.
    pub(crate) fn kept<T>(self, result: io::Result<T>) -> io::Result<T> {
        drop(self);
        if RANG.load(Ordering::SeqCst) {
            let cause = format!("it did not end within {SECONDS} s and was killed");
            return Err(io::Error::other(cause));
        }
        result
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        // SAFETY: the call takes a number and cannot fail.
        unsafe { libc::alarm(0) };
        WATCHED.store(0, Ordering::SeqCst);
    }
}

extern "C" fn ring(_: i32) {
    let pid = WATCHED.load(Ordering::SeqCst);
    if pid > 0 {
        RANG.store(true, Ordering::SeqCst);
        // SAFETY: a child of ours that was not yet waited for.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// [`Command::output`] with that deadline.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    let child = command.spawn()?;
    let deadline = Deadline::of(i32::try_from(child.id()).map_err(io::Error::other)?);
    let output = child.wait_with_output();
    deadline.kept(output)
}
