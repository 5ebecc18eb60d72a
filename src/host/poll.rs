//! Waiting for descriptors: the one `poll` of the program. Only a guardian, which runs after a
//! fork, has its own.
//!
//! `signal` adds what ends every wait to it, and `cancellation` the deadline of the run.

use std::os::fd::BorrowedFd;
use std::thread;
use std::time::{Duration, Instant};

use base::limits;
use nix::errno::Errno;
use nix::poll::{self, PollFd, PollFlags, PollTimeout};

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
    /// It can no longer be used: the reader of a pipe has closed it.
    Broken,
}

/// Descriptor and the condition to wait for; `None` is never ready.
pub(super) type Watched<'f> = Option<(BorrowedFd<'f>, Readiness)>;

/// Waits once, until a descriptor is ready, a signal arrives or the time is over. Returns
/// which descriptors are ready.
pub(super) fn poll(watched: &[Watched<'_>], limit: Option<Duration>) -> Vec<bool> {
    let entry = |(fd, readiness)| {
        // Whatever is requested, the end of a pipe is reported, too.
        let events = match readiness {
            Readiness::Read => libc::POLLIN,
            Readiness::Write => libc::POLLOUT,
            Readiness::PeerClosed => libc::POLLRDHUP,
            Readiness::Broken => 0,
        };
        PollFd::new(fd, PollFlags::from_bits_retain(events))
    };
    let mut fds: Vec<PollFd<'_>> = watched.iter().flatten().copied().map(entry).collect();
    // Rounded up: a limit of 0.3 ms must not become a busy loop.
    let timeout = limit.map_or(PollTimeout::NONE, |limit| {
        PollTimeout::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
    });
    let result = poll::poll(&mut fds, timeout);
    if result.is_err_and(|error| error != Errno::EINTR) {
        // If `poll` fails, the caller has to try the operation; the pause keeps that
        // from becoming a busy loop.
        thread::sleep(limits::SWEEP_ROUND);
        return watched.iter().map(Option::is_some).collect();
    }
    // `None` is an event that nix has no name for.
    let mut ready = fds.iter().map(|fd| result.is_ok() && fd.any() != Some(false));
    watched.iter().map(|what| what.is_some() && ready.next() == Some(true)).collect()
}

/// Whether this descriptor is ready, without waiting.
pub fn is_ready(what: (BorrowedFd<'_>, Readiness)) -> bool {
    is_ready_within(what, Duration::ZERO)
}

/// Whether this descriptor becomes ready within the limit. Signals do not end the wait.
pub(super) fn is_ready_within(what: (BorrowedFd<'_>, Readiness), limit: Duration) -> bool {
    let since = Instant::now();
    loop {
        let left = limit.saturating_sub(since.elapsed());
        if poll(&[Some(what)], Some(left)).contains(&true) {
            return true;
        }
        if left.is_zero() {
            return false;
        }
    }
}
