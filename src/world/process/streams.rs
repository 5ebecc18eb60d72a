//! Standard streams of a script: pipes that never block the runner.
//!
//! Each is read or written once when `poll` reports it as ready; an error ends only that
//! stream. Waiting is done by `process`.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Instant;
use std::{mem, ptr};

use crate::limits;
use libc::{c_int, sigset_t};

use super::blocked::BlockedSignals;
use crate::world::capture::{Capture, CaptureLimits};

/// Standard input of the script and the bytes that are not written yet.
pub(super) struct ChildStdin<'a> {
    pub(super) pipe: Option<File>,
    unwritten: &'a [u8],
}

impl<'a> ChildStdin<'a> {
    pub(super) fn new(pipe: Option<OwnedFd>, bytes: &'a [u8]) -> io::Result<ChildStdin<'a>> {
        Ok(ChildStdin { pipe: pipe.map(nonblocking).transpose()?, unwritten: bytes })
    }

    /// Writes as much as the script is ready to read; closes the pipe after the last byte.
    pub(super) fn write(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let now = &self.unwritten[..self.unwritten.len().min(limits::SCRIPT_READ_BYTES)];
        match write_without_sigpipe(pipe, now) {
            Ok(written) => self.unwritten = &self.unwritten[written..],
            Err(error) if is_transient(&error) => {}
            // The script has closed its input, which is not an error.
            Err(_) => self.unwritten = &[],
        }
        if self.unwritten.is_empty() {
            self.pipe = None;
        }
    }
}

/// Output stream of the script.
pub(super) struct ChildOutput {
    pub(super) pipe: Option<File>,
    pub(super) capture: Capture,
    /// Whether reading failed before the end of the stream.
    pub(super) has_failed: bool,
}

impl ChildOutput {
    pub(super) fn new(pipe: Option<OwnedFd>, caps: CaptureLimits) -> io::Result<ChildOutput> {
        Ok(ChildOutput {
            pipe: pipe.map(nonblocking).transpose()?,
            capture: Capture::new(caps),
            has_failed: false,
        })
    }

    /// Reads once and returns the bytes; closes the pipe at the end of the stream.
    pub(super) fn read<'c>(&mut self, chunk: &'c mut [u8]) -> &'c [u8] {
        let Some(pipe) = &mut self.pipe else {
            return &[];
        };
        match pipe.read(chunk) {
            Ok(length) if length > 0 => {
                self.capture.push(&chunk[..length]);
                return &chunk[..length];
            }
            Err(error) if is_transient(&error) => {}
            ended => {
                self.has_failed = ended.is_err();
                self.pipe = None;
            }
        }
        &[]
    }
}

/// Writes without a SIGPIPE that could end the process, whatever its action in the host.
fn write_without_sigpipe(file: &mut File, bytes: &[u8]) -> io::Result<usize> {
    let blocked = BlockedSignals::new(Some(libc::SIGPIPE));
    let result = file.write(bytes);
    if matches!(&result, Err(error) if error.kind() == ErrorKind::BrokenPipe) {
        // SAFETY: structures of this stack. Removes the signal if it is pending.
        unsafe {
            let mut set: sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGPIPE);
            let now: libc::timespec = mem::zeroed();
            if libc::sigismember(&raw const blocked.before, libc::SIGPIPE) == 0 {
                libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const now);
            }
        }
    }
    result
}

/// Calls `poll`, at most until the millisecond after `until`. If a signal ends it, no
/// descriptor is ready.
pub(super) fn poll(fds: &mut [libc::pollfd], until: Option<Instant>) -> io::Result<()> {
    let milliseconds = until.map_or(-1, |until| {
        let left = until.saturating_duration_since(Instant::now());
        c_int::try_from(left.as_micros().div_ceil(1000)).unwrap_or(c_int::MAX)
    });
    // SAFETY: `fds` outlives the call, and its length is its own.
    if unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, milliseconds) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
        // After a failure the results are undefined.
        for fd in fds {
            fd.revents = 0;
        }
    }
    Ok(())
}

fn nonblocking(pipe: OwnedFd) -> io::Result<File> {
    let fd = pipe.as_fd().as_raw_fd();
    // SAFETY: an open descriptor and plain numbers.
    let done = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        flags >= 0 && libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) >= 0
    };
    if done { Ok(File::from(pipe)) } else { Err(io::Error::last_os_error()) }
}

/// Whether the call can be repeated later.
pub(super) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
