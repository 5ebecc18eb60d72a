//! Time limit of a measured program, which would otherwise block the benchmark and CI if it did
//! not end. The alarm of this process adds nothing to the measured times.

use std::io;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The time limit of a run, also with a debug build on a busy machine.
const SECONDS: u32 = 60;

/// The process that the alarm kills; 0 if there is none.
static WATCHED: AtomicI32 = AtomicI32::new(0);
/// Whether the alarm has killed that process.
static HAS_KILLED: AtomicBool = AtomicBool::new(false);

/// The deadline of one child process. There is only one at a time; dropping it ends it.
pub(crate) struct Deadline;

impl Deadline {
    /// Starts the deadline of the process `pid`.
    pub(crate) fn start(pid: i32) -> Deadline {
        HAS_KILLED.store(false, Ordering::SeqCst);
        WATCHED.store(pid, Ordering::SeqCst);
        let on_alarm: extern "C" fn(i32) = on_alarm;
        // SAFETY: the handler only uses atomics and makes one async-signal-safe call.
        unsafe {
            libc::signal(libc::SIGALRM, on_alarm as libc::sighandler_t);
            libc::alarm(SECONDS);
        }
        Deadline
    }

    /// Ends the deadline after the child has ended. Returns an error if the alarm killed it.
    pub(crate) fn finish<T>(self, result: io::Result<T>) -> io::Result<T> {
        drop(self);
        if HAS_KILLED.load(Ordering::SeqCst) {
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

extern "C" fn on_alarm(_: i32) {
    let pid = WATCHED.load(Ordering::SeqCst);
    if pid > 0 {
        HAS_KILLED.store(true, Ordering::SeqCst);
        // SAFETY: the call takes two numbers. `pid` is a child that has not been waited for, or
        // was a moment ago; a pid is not reused that fast.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// Same as [`Command::output`], with the deadline.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    let child = command.spawn()?;
    let deadline = Deadline::start(i32::try_from(child.id()).map_err(io::Error::other)?);
    let output = child.wait_with_output();
    deadline.finish(output)
}
