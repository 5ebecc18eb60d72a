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

use crate::error::{Error, Kind};
use crate::limits;
use crate::world::attendant::Attendant;
use crate::world::signal::Interrupt;

/// How long a run may still go on, and what ends it early.
#[derive(Clone, Debug)]
pub struct Patience {
    /// Signals that ask to stop.
    pub interrupt: Interrupt,
    /// The end of the whole run (`--timeout`).
    pub deadline: Option<Instant>,
}

/// Why waiting ended before what was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
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
pub fn is_ready(what: (BorrowedFd<'_>, Readiness)) -> bool {
    let [is_ready, _] = poll([Some(what), None], None, Some(Duration::ZERO));
    is_ready
}

impl Patience {
    /// No deadline and no signals: for library users and tests.
    pub const fn endless() -> Patience {
        Patience { interrupt: Interrupt::never(), deadline: None }
    }

    /// Whether the run may go on.
    pub fn check(&self) -> Result<(), Stop> {
        if let Some(signal) = self.interrupt.pending() {
            return Err(Stop::Interrupted(signal.0));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Stop::Deadline),
            _ => Ok(()),
        }
    }

    /// What is left of `limit` before the deadline of the run.
    pub fn at_most(&self, limit: Duration) -> Duration {
        match self.deadline {
            Some(deadline) => limit.min(deadline.saturating_duration_since(Instant::now())),
            None => limit,
        }
    }

    /// Pauses, unless something ends the run before.
    pub fn pause(&self, duration: Duration) -> Result<(), Stop> {
        match self.wait(None, Some(duration)) {
            Ok(()) | Err(Stop::Silence(_)) => Ok(()),
            Err(stop) => Err(stop),
        }
    }

    /// Waits until `what` is ready, at most `limit`.
    pub fn wait(
        &self,
        what: Option<(BorrowedFd<'_>, Readiness)>,
        limit: Option<Duration>,
    ) -> Result<(), Stop> {
        let start = Instant::now();
        loop {
            self.check()?;
            let left = match limit {
                Some(limit) => match limit.checked_sub(start.elapsed()) {
                    Some(left) => Some(left),
                    None => return Err(Stop::Silence(limit)),
                },
                None => None,
            };
            let left = match (left, self.deadline) {
                (Some(left), _) => Some(self.at_most(left)),
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
        attendant: Option<&dyn Attendant>,
    ) -> Result<(), Stop> {
        let Some(attendant) = attendant else {
            return self.wait(Some(what), None);
        };
        loop {
            self.check()?;
            let until = self.deadline.into_iter().chain(attendant.due()).min();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let theirs = attendant.descriptor().map(|fd| (fd, Readiness::Read));
            let waited = poll([Some(what), theirs], self.interrupt.as_fd(), left);
            match waited {
                [true, _] => return Ok(()),
                [false, has_come] if !attendant.serve(has_come) => return Err(Stop::Dismissed),
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

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Interrupted(_) => f.write_str("interrupted"),
            Stop::Deadline => f.write_str("the time for the whole run (--timeout) is over"),
            Stop::Dismissed => f.write_str("cancelled by who asked for it"),
            Stop::Silence(limit) => write!(f, "nothing came for {} s", limit.as_secs_f32()),
            Stop::Dripping(limit) => write!(f, "only a part came within {} s", limit.as_secs_f32()),
        }
    }
}

impl std::error::Error for Stop {}

/// So that a stop travels through readers and writers, and out of them again
/// by [`Stop::within`].
impl From<Stop> for io::Error {
    fn from(stop: Stop) -> io::Error {
        io::Error::other(stop)
    }
}

impl Stop {
    /// The stop that an I/O error carries.
    pub fn within(error: &io::Error) -> Option<Stop> {
        error.get_ref()?.downcast_ref::<Stop>().copied()
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Error {
        match stop {
            Stop::Interrupted(signal) => Error::interrupted(signal),
            Stop::Deadline => Error::new(Kind::Limit, format!("failed to finish: {stop}")),
            Stop::Silence(_) | Stop::Dripping(_) | Stop::Dismissed => {
                Error::new(Kind::Temporary, format!("failed to wait: {stop}"))
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

    use crate::world::attendant::Stream;

    #[test]
    fn waiting_ends_by_readiness_silence_or_deadline() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut patience = Patience::endless();
        let limit = Duration::from_millis(20);
        let readable = Some((reader.as_fd(), Readiness::Read));
        assert_eq!(patience.wait(readable, Some(limit)), Err(Stop::Silence(limit)));
        patience.deadline = Some(Instant::now() + Duration::from_millis(5));
        assert_eq!(patience.wait(readable, None), Err(Stop::Deadline));
        assert_eq!(patience.pause(limit), Err(Stop::Deadline));
        assert_eq!(patience.at_most(limit), Duration::ZERO);
        patience.deadline = None;
        // Not its end, which comes late while another test's child holds a copy.
        writer.write_all(b"x").unwrap();
        assert_eq!(patience.wait(readable, Some(limit)), Ok(()));
        assert_eq!(patience.pause(Duration::from_micros(100)), Ok(()));
    }

    /// Told something once, and then tired of it.
    struct Once {
        pipe: io::PipeReader,
        told: Cell<bool>,
    }

    impl Attendant for Once {
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
        fn hear(&self, _stream: Stream, _bytes: &[u8]) {}
    }

    #[test]
    fn who_is_served_meanwhile_may_end_the_waiting() {
        let (silent, mut writer) = io::pipe().unwrap();
        let (pipe, mut theirs) = io::pipe().unwrap();
        let once = Once { pipe, told: Cell::new(false) };
        theirs.write_all(b"x").unwrap();
        let patience = Patience::endless();
        let what = (silent.as_fd(), Readiness::Read);
        assert_eq!(patience.wait_with(what, Some(&once)), Err(Stop::Dismissed));
        writer.write_all(b"x").unwrap();
        assert_eq!(patience.wait_with(what, None), Ok(()));
        assert_eq!(patience.wait_with(what, Some(&once)), Ok(()));
    }
}
