//! Waiting for descriptors: the one `poll` of the program. Only a guardian, which runs after a
//! fork, has its own.
//!
//! `signal` adds what ends every wait to it, and `cancellation` the deadline of the run.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use base::limits;

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
    let entry = |what: &Watched<'_>| libc::pollfd {
        // The kernel ignores negative descriptors.
        fd: what.map_or(-1, |(fd, _)| fd.as_raw_fd()),
        // Whatever is requested, the end of a pipe is reported, too.
        events: match what {
            Some((_, Readiness::Read)) => libc::POLLIN,
            Some((_, Readiness::Write)) => libc::POLLOUT,
            Some((_, Readiness::PeerClosed)) => libc::POLLRDHUP,
            Some((_, Readiness::Broken)) | None => 0,
        },
        revents: 0,
    };
    let mut fds: Vec<libc::pollfd> = watched.iter().map(entry).collect();
    // Rounded up: a limit of 0.3 ms must not become a busy loop.
    let milliseconds = limit
        .map_or(-1, |limit| i32::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
    // SAFETY: `fds` outlives the call, and its length is its own.
    let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, milliseconds) };
    if ready < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
        // If `poll` fails, the caller has to try the operation; the pause keeps that
        // from becoming a busy loop.
        thread::sleep(limits::SWEEP_ROUND);
        return watched.iter().map(Option::is_some).collect();
    }
    fds.iter().map(|fd| ready > 0 && fd.revents != 0).collect()
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
