//! The script's streams: pipes that never block the runner.
//!
//! Each is read or written once whenever `poll` says that it is ready; whatever
//! goes wrong with one ends that stream only. When to wait is `process`'s concern.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Instant;
use std::{mem, ptr};

use crate::limits;
use libc::{c_int, sigset_t};

use super::blocked::BlockedSignals;
use crate::world::capture::{Capture, CaptureLimits};

/// The script's standard input and what it has still to get.
pub(super) struct ChildStdin<'a> {
    pub(super) pipe: Option<File>,
    unwritten: &'a [u8],
}

impl<'a> ChildStdin<'a> {
    pub(super) fn new(pipe: Option<OwnedFd>, bytes: &'a [u8]) -> io::Result<ChildStdin<'a>> {
        Ok(ChildStdin { pipe: pipe.map(nonblocking).transpose()?, unwritten: bytes })
    }

    /// Writes what the script is ready to read; at the end lets go of it.
    pub(super) fn write(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let now = &self.unwritten[..self.unwritten.len().min(limits::SCRIPT_READ_BYTES)];
        match write_quietly(pipe, now) {
            Ok(written) => self.unwritten = &self.unwritten[written..],
            Err(error) if is_passing(&error) => {}
            // It does not read on; that is its own affair.
            Err(_) => self.unwritten = &[],
        }
        if self.unwritten.is_empty() {
            self.pipe = None;
        }
    }
}

/// One of the script's output streams.
pub(super) struct ChildOutput {
    pub(super) pipe: Option<File>,
    pub(super) kept: Capture,
    /// Reading has failed, and did not come to the end.
    pub(super) is_broken: bool,
}

impl ChildOutput {
    pub(super) fn new(pipe: Option<OwnedFd>, caps: CaptureLimits) -> io::Result<ChildOutput> {
        Ok(ChildOutput {
            pipe: pipe.map(nonblocking).transpose()?,
            kept: Capture::new(caps),
            is_broken: false,
        })
    }

    /// Reads once and gives what came; at the stream's end lets go of it.
    pub(super) fn read<'c>(&mut self, chunk: &'c mut [u8]) -> &'c [u8] {
        let Some(pipe) = &mut self.pipe else {
            return &[];
        };
        match pipe.read(chunk) {
            Ok(length) if length > 0 => {
                self.kept.push(&chunk[..length]);
                return &chunk[..length];
            }
            Err(error) if is_passing(&error) => {}
            ended => {
                self.is_broken = ended.is_err();
                self.pipe = None;
            }
        }
        &[]
    }
}

/// Writes without ever dying of SIGPIPE, whatever the host does with it.
fn write_quietly(file: &mut File, bytes: &[u8]) -> io::Result<usize> {
    let blocked = BlockedSignals::new(Some(libc::SIGPIPE));
    let result = file.write(bytes);
    if matches!(&result, Err(error) if error.kind() == ErrorKind::BrokenPipe) {
        // SAFETY: structures of this stack; takes the signal if it is there.
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

/// `poll`, to the millisecond after `until` at the latest. A signal ends it as
/// if nothing had come.
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
        // What `poll` left in the results after a failure is not to be trusted.
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

/// Nothing now, maybe later.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
