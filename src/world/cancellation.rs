//! Waits that a signal or the deadline of the run ends early.
//!
//! Every wait (for a socket, for a pause) uses the one `poll` of this file, so Ctrl+C,
//! SIGTERM, `--timeout` and idle limits work the same everywhere.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::world::event_source::EventSource;
use crate::world::signal::Interrupt;

/// Deadline of a run and the signals that end it early.
#[derive(Clone, Debug)]
pub struct Cancellation {
    /// Signals that request a stop.
    pub interrupt: Interrupt,
    /// Deadline of the whole run (`--timeout`).
    pub deadline: Option<Instant>,
}

/// Reason why a wait ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A signal with this number arrived.
    Interrupted(i32),
    /// The deadline of the whole run passed.
    Deadline,
    /// No event or data for this long.
    Silence(Duration),
    /// The event source ended the wait.
    Cancelled,
    /// Data kept arriving, but was not complete within this time.
    Incomplete(Duration),
}

/// Condition to wait for on a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Data, or the end, can be read.
    Read,
    /// Data can be written.
    Write,
    /// The other side has closed it. Data may still be unread. Never reported for a
    /// regular file.
    PeerClosed,
}

/// Whether this descriptor is ready, without waiting.
pub(crate) fn is_ready(what: (BorrowedFd<'_>, Readiness)) -> bool {
    let [is_ready, _] = poll([Some(what), None], None, Some(Duration::ZERO));
    is_ready
}

impl Cancellation {
    /// No deadline and no signals: for library users and tests.
    pub const fn never() -> Cancellation {
        Cancellation { interrupt: Interrupt::never(), deadline: None }
    }

    /// Returns an error if the run must stop.
    pub fn check(&self) -> Result<(), StopReason> {
        if let Some(signal) = self.interrupt.pending() {
            return Err(StopReason::Interrupted(signal.0));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(StopReason::Deadline),
            _ => Ok(()),
        }
    }

    /// The smaller of `limit` and the time left before the deadline of the run.
    pub fn capped_by_deadline(&self, limit: Duration) -> Duration {
        match self.deadline {
            Some(deadline) => limit.min(deadline.saturating_duration_since(Instant::now())),
            None => limit,
        }
    }

    /// Pauses for this time; an error if the run must stop earlier.
    pub fn pause(&self, duration: Duration) -> Result<(), StopReason> {
        match self.wait(None, Some(duration)) {
            Ok(()) | Err(StopReason::Silence(_)) => Ok(()),
            Err(stop) => Err(stop),
        }
    }

    /// Waits until `what` is ready, for at most `limit`.
    pub fn wait(
        &self,
        what: Option<(BorrowedFd<'_>, Readiness)>,
        limit: Option<Duration>,
    ) -> Result<(), StopReason> {
        let start = Instant::now();
        loop {
            self.check()?;
            let left = match limit {
                Some(limit) => match limit.checked_sub(start.elapsed()) {
                    Some(left) => Some(left),
                    None => return Err(StopReason::Silence(limit)),
                },
                None => None,
            };
            let left = match (left, self.deadline) {
                (Some(left), _) => Some(self.capped_by_deadline(left)),
                (None, Some(deadline)) => Some(deadline.saturating_duration_since(Instant::now())),
                (None, None) => None,
            };
            let [is_ready, _] = poll([what, None], self.interrupt.as_fd(), left);
            if is_ready {
                return Ok(());
            }
        }
    }

    /// Waits until `what` is ready, without a limit, and serves an event source
    /// during the wait.
    pub fn wait_serving(
        &self,
        what: (BorrowedFd<'_>, Readiness),
        event_source: Option<&dyn EventSource>,
    ) -> Result<(), StopReason> {
        let Some(event_source) = event_source else {
            return self.wait(Some(what), None);
        };
        loop {
            self.check()?;
            let until = self.deadline.into_iter().chain(event_source.next_call()).min();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let events = event_source.descriptor().map(|fd| (fd, Readiness::Read));
            let waited = poll([Some(what), events], self.interrupt.as_fd(), left);
            match waited {
                [true, _] => return Ok(()),
                [false, has_event] if !event_source.handle_if_due(has_event) => {
                    return Err(StopReason::Cancelled);
                }
                [false, _] => {}
            }
        }
    }
}

/// Calls `poll` once and returns which descriptors are ready. A signal ends it early.
fn poll(
    what: [Option<(BorrowedFd<'_>, Readiness)>; 2],
    interrupt: Option<BorrowedFd<'_>>,
    limit: Option<Duration>,
) -> [bool; 2] {
    let signals = interrupt.map(|fd| (fd, Readiness::Read));
    let [first, second] = what;
    let mut fds = [first, second, signals].map(|what| libc::pollfd {
        // The kernel ignores negative descriptors.
        fd: what.map_or(-1, |(fd, _)| fd.as_raw_fd()),
        events: match what {
            Some((_, Readiness::Write)) => libc::POLLOUT,
            // Whatever is requested, the end of a pipe is reported, too.
            Some((_, Readiness::PeerClosed)) => libc::POLLRDHUP,
            _ => libc::POLLIN,
        },
        revents: 0,
    });
    // Rounded up: a limit of 0.3 ms must not become a busy loop.
    let milliseconds = limit
        .map_or(-1, |limit| i32::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
    // SAFETY: `fds` is an array of three entries that outlives the call.
    let ready = unsafe { libc::poll(fds.as_mut_ptr(), 3, milliseconds) };
    if ready < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
        // If `poll` fails, the caller has to try the operation; the pause keeps that
        // from becoming a busy loop.
        thread::sleep(limits::SWEEP_ROUND);
        return what.map(|what| what.is_some());
    }
    let [first, second, _] = fds.map(|fd| ready > 0 && fd.revents != 0);
    [first, second]
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Interrupted(_) => f.write_str("interrupted"),
            StopReason::Deadline => f.write_str("the time limit of the run (--timeout) is reached"),
            StopReason::Cancelled => f.write_str("cancelled by the client"),
            StopReason::Silence(limit) => {
                write!(f, "no data arrived for {} s", limit.as_secs_f32())
            }
            StopReason::Incomplete(limit) => {
                write!(f, "only part of the data arrived within {} s", limit.as_secs_f32())
            }
        }
    }
}

impl std::error::Error for StopReason {}

/// Carries a stop reason through readers and writers; [`StopReason::from_io_error`] extracts
/// it.
impl From<StopReason> for io::Error {
    fn from(stop: StopReason) -> io::Error {
        io::Error::other(stop)
    }
}

impl StopReason {
    /// The stop reason that an I/O error carries, if any.
    pub fn from_io_error(error: &io::Error) -> Option<StopReason> {
        error.get_ref()?.downcast_ref::<StopReason>().copied()
    }
}

impl From<StopReason> for Error {
    fn from(stop: StopReason) -> Error {
        match stop {
            StopReason::Interrupted(signal) => Error::interrupted(signal),
            StopReason::Deadline => {
                Error::new(ErrorKind::Limit, format!("failed to finish: {stop}"))
            }
            StopReason::Silence(_) | StopReason::Incomplete(_) | StopReason::Cancelled => {
                Error::new(ErrorKind::Temporary, format!("failed to wait: {stop}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Write;
    use std::os::fd::AsFd;

    use crate::world::event_source::ScriptStream;

    #[test]
    fn waiting_ends_by_readiness_silence_or_deadline() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut cancellation = Cancellation::never();
        let limit = Duration::from_millis(20);
        let readable = Some((reader.as_fd(), Readiness::Read));
        assert_eq!(cancellation.wait(readable, Some(limit)), Err(StopReason::Silence(limit)));
        cancellation.deadline = Some(Instant::now() + Duration::from_millis(5));
        assert_eq!(cancellation.wait(readable, None), Err(StopReason::Deadline));
        assert_eq!(cancellation.pause(limit), Err(StopReason::Deadline));
        assert_eq!(cancellation.capped_by_deadline(limit), Duration::ZERO);
        cancellation.deadline = None;
        // A byte, not the end of the pipe, which is delayed while a child of another test has a
        // copy of the writer.
        writer.write_all(b"x").unwrap();
        assert_eq!(cancellation.wait(readable, Some(limit)), Ok(()));
        assert_eq!(cancellation.pause(Duration::from_micros(100)), Ok(()));
    }

    /// Allows the wait to continue after its first event and ends it at the second.
    struct EndsAtSecondEvent {
        pipe: io::PipeReader,
        had_event: Cell<bool>,
    }

    impl EventSource for EndsAtSecondEvent {
        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            Some(self.pipe.as_fd())
        }
        fn next_call(&self) -> Option<Instant> {
            None
        }
        fn handle(&self, is_ready: bool) -> bool {
            assert!(is_ready);
            !self.had_event.replace(true)
        }
        fn on_output(&self, _stream: ScriptStream, _bytes: &[u8]) {}
    }

    #[test]
    fn an_event_source_can_end_the_wait() {
        let (silent, mut writer) = io::pipe().unwrap();
        let (pipe, mut events) = io::pipe().unwrap();
        let source = EndsAtSecondEvent { pipe, had_event: Cell::new(false) };
        events.write_all(b"x").unwrap();
        let cancellation = Cancellation::never();
        let what = (silent.as_fd(), Readiness::Read);
        assert_eq!(cancellation.wait_serving(what, Some(&source)), Err(StopReason::Cancelled));
        writer.write_all(b"x").unwrap();
        assert_eq!(cancellation.wait_serving(what, None), Ok(()));
        assert_eq!(cancellation.wait_serving(what, Some(&source)), Ok(()));
    }
}
