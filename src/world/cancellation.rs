//! Waiting that ends: for a socket, for a pause, with an eye on the signals
//! and on the deadline of the whole run.
//!
//! Every place that waits uses this one `poll`, so Ctrl+C, SIGTERM,
//! `--timeout` and idle limits work the same everywhere.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::world::event_source::EventSource;
use crate::world::signal::Interrupt;

/// How long a run may still go on, and what ends it early.
#[derive(Clone, Debug)]
pub struct Cancellation {
    /// Signals that ask to stop.
    pub interrupt: Interrupt,
    /// The end of the whole run (`--timeout`).
    pub deadline: Option<Instant>,
}

/// Why waiting ended before what was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A signal, by its number.
    Interrupted(i32),
    /// The deadline of the whole run.
    Deadline,
    /// Nothing happened for this long.
    Silence(Duration),
    /// Who is served meanwhile does not let it go on.
    Dismissed,
    /// Something came all the time, but not all of it within this time.
    Dripping(Duration),
}

/// What a descriptor is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can be read, or is at its end.
    Read,
    /// It can be written.
    Write,
    /// Whoever wrote to it has gone. Something may be left to read; a file never
    /// tells.
    Abandoned,
}

/// Whether this descriptor is ready now; nobody waits.
pub(crate) fn is_ready(what: (BorrowedFd<'_>, Readiness)) -> bool {
    let [is_ready, _] = poll([Some(what), None], None, Some(Duration::ZERO));
    is_ready
}

impl Cancellation {
    /// No deadline and no signals: for library users and tests.
    pub const fn never() -> Cancellation {
        Cancellation { interrupt: Interrupt::never(), deadline: None }
    }

    /// Whether the run may go on.
    pub fn check(&self) -> Result<(), StopReason> {
        if let Some(signal) = self.interrupt.pending() {
            return Err(StopReason::Interrupted(signal.0));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(StopReason::Deadline),
            _ => Ok(()),
        }
    }

    /// What is left of `limit` before the deadline of the run.
    pub fn limited_to(&self, limit: Duration) -> Duration {
        match self.deadline {
            Some(deadline) => limit.min(deadline.saturating_duration_since(Instant::now())),
            None => limit,
        }
    }

    /// Pauses, unless something ends the run before.
    pub fn pause(&self, duration: Duration) -> Result<(), StopReason> {
        match self.wait(None, Some(duration)) {
            Ok(()) | Err(StopReason::Silence(_)) => Ok(()),
            Err(stop) => Err(stop),
        }
    }

    /// Waits until `what` is ready, at most `limit`.
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
                (Some(left), _) => Some(self.limited_to(left)),
                (None, Some(deadline)) => Some(deadline.saturating_duration_since(Instant::now())),
                (None, None) => None,
            };
            let [is_ready, _] = poll([what, None], self.interrupt.as_fd(), left);
            if is_ready {
                return Ok(());
            }
        }
    }

    /// Waits until `what` is ready, as long as that takes, and serves somebody
    /// else meanwhile.
    pub fn wait_with(
        &self,
        what: (BorrowedFd<'_>, Readiness),
        event_source: Option<&dyn EventSource>,
    ) -> Result<(), StopReason> {
        let Some(event_source) = event_source else {
            return self.wait(Some(what), None);
        };
        loop {
            self.check()?;
            let until = self.deadline.into_iter().chain(event_source.due()).min();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let theirs = event_source.descriptor().map(|fd| (fd, Readiness::Read));
            let waited = poll([Some(what), theirs], self.interrupt.as_fd(), left);
            match waited {
                [true, _] => return Ok(()),
                [false, has_come] if !event_source.serve(has_come) => {
                    return Err(StopReason::Dismissed);
                }
                [false, _] => {}
            }
        }
    }
}

/// One `poll`: which of these is ready. Returns early for a signal.
fn poll(
    what: [Option<(BorrowedFd<'_>, Readiness)>; 2],
    interrupt: Option<BorrowedFd<'_>>,
    limit: Option<Duration>,
) -> [bool; 2] {
    let signals = interrupt.map(|fd| (fd, Readiness::Read));
    let [first, second] = what;
    let mut fds = [first, second, signals].map(|what| libc::pollfd {
        // Negative descriptors are passed over by the kernel.
        fd: what.map_or(-1, |(fd, _)| fd.as_raw_fd()),
        events: match what {
            Some((_, Readiness::Write)) => libc::POLLOUT,
            // The end of a pipe is told unasked.
            Some((_, Readiness::Abandoned)) => libc::POLLRDHUP,
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
        // Where the system cannot wait, whoever asked has to try; not too often.
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
            StopReason::Deadline => f.write_str("the time for the whole run (--timeout) is over"),
            StopReason::Dismissed => f.write_str("cancelled by who asked for it"),
            StopReason::Silence(limit) => write!(f, "nothing came for {} s", limit.as_secs_f32()),
            StopReason::Dripping(limit) => {
                write!(f, "only a part came within {} s", limit.as_secs_f32())
            }
        }
    }
}

impl std::error::Error for StopReason {}

/// So that a stop travels through readers and writers, and out of them again
/// by [`StopReason::within`].
impl From<StopReason> for io::Error {
    fn from(stop: StopReason) -> io::Error {
        io::Error::other(stop)
    }
}

impl StopReason {
    /// The stop that an I/O error carries.
    pub fn within(error: &io::Error) -> Option<StopReason> {
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
            StopReason::Silence(_) | StopReason::Dripping(_) | StopReason::Dismissed => {
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
        assert_eq!(cancellation.limited_to(limit), Duration::ZERO);
        cancellation.deadline = None;
        // Not its end, which comes late while another test's child holds a copy.
        writer.write_all(b"x").unwrap();
        assert_eq!(cancellation.wait(readable, Some(limit)), Ok(()));
        assert_eq!(cancellation.pause(Duration::from_micros(100)), Ok(()));
    }

    /// Told something once, and then tired of it.
    struct Once {
        pipe: io::PipeReader,
        told: Cell<bool>,
    }

    impl EventSource for Once {
        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            Some(self.pipe.as_fd())
        }
        fn due(&self) -> Option<Instant> {
            None
        }
        fn attend(&self, is_ready: bool) -> bool {
            assert!(is_ready);
            !self.told.replace(true)
        }
        fn hear(&self, _stream: ScriptStream, _bytes: &[u8]) {}
    }

    #[test]
    fn who_is_served_meanwhile_may_end_the_waiting() {
        let (silent, mut writer) = io::pipe().unwrap();
        let (pipe, mut theirs) = io::pipe().unwrap();
        let once = Once { pipe, told: Cell::new(false) };
        theirs.write_all(b"x").unwrap();
        let cancellation = Cancellation::never();
        let what = (silent.as_fd(), Readiness::Read);
        assert_eq!(cancellation.wait_with(what, Some(&once)), Err(StopReason::Dismissed));
        writer.write_all(b"x").unwrap();
        assert_eq!(cancellation.wait_with(what, None), Ok(()));
        assert_eq!(cancellation.wait_with(what, Some(&once)), Ok(()));
    }
}
