//! Waits that a signal or the deadline of the run ends early.
//!
//! Every wait (for a socket, for a pause) is one of this file, so Ctrl+C, SIGTERM,
//! `--timeout` and idle limits work the same everywhere.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::event_source::EventSource;
pub use crate::poll::{Readiness, is_ready};
use crate::signal::Interrupt;
use base::error::{Error, ErrorKind};

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
    /// Data kept arriving, but nothing that counts, for this long.
    KeepAlives(Duration),
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
        self.wait_limited(what, limit, None)
    }

    /// Waits until `what` is ready, without a limit, and serves an event source
    /// during the wait.
    pub fn wait_serving(
        &self,
        what: (BorrowedFd<'_>, Readiness),
        event_source: Option<&dyn EventSource>,
    ) -> Result<(), StopReason> {
        self.wait_limited(Some(what), None, event_source)
    }

    /// Waits until data can be read from one of these, or this time has passed. Returns which are
    /// ready.
    pub fn wait_for_any(
        &self,
        pipes: &[BorrowedFd<'_>],
        limit: Duration,
    ) -> Result<Vec<bool>, StopReason> {
        self.check()?;
        let watched = pipes.iter().map(|pipe| Some((*pipe, Readiness::Read)));
        let limit = self.capped_by_deadline(limit);
        let ready = self.interrupt.poll_all(&watched.collect::<Vec<_>>(), Some(limit));
        self.check()?;
        Ok(ready)
    }

    fn wait_limited(
        &self,
        what: Option<(BorrowedFd<'_>, Readiness)>,
        limit: Option<Duration>,
        event_source: Option<&dyn EventSource>,
    ) -> Result<(), StopReason> {
        let start = Instant::now();
        // A limit beyond the clock's range is none.
        let end = limit.and_then(|limit| start.checked_add(limit).map(|end| (limit, end)));
        loop {
            self.check()?;
            let now = Instant::now();
            let next_call = event_source.and_then(EventSource::next_call);
            let ends = [end.map(|(_, end)| end), self.deadline, next_call];
            let until = ends.into_iter().flatten().min();
            let left = until.map(|until| until.saturating_duration_since(now));
            let events = event_source.and_then(EventSource::descriptor);
            let events = events.map(|fd| (fd, Readiness::Read));
            let [is_ready, has_event] = self.interrupt.poll([what, events], left);
            if is_ready {
                return Ok(());
            }
            // After the poll: what is ready counts, even if this thread was paused before it.
            if let Some((limit, end)) = end
                && now >= end
            {
                return Err(StopReason::Silence(limit));
            }
            if event_source.is_some_and(|source| !source.handle_if_due(has_event)) {
                return Err(StopReason::Cancelled);
            }
        }
    }
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
            StopReason::KeepAlives(limit) => {
                write!(f, "only keep-alives arrived for {} s", limit.as_secs_f32())
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
            _ => Error::new(ErrorKind::Temporary, format!("failed to wait: {stop}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Write;
    use std::os::fd::AsFd;

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
        assert_eq!(cancellation.wait(readable, Some(Duration::ZERO)), Ok(()));
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
