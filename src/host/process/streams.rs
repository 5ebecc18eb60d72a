//! Output streams of a script: pipes that never block the runner.
//!
//! Each is read once when `poll` reports it as ready; an error ends only that stream. Waiting
//! is done by `process`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::capture::{Capture, CaptureLimits};
use crate::files::is_transient;
use crate::poll::{Readiness, Watched};

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

    /// The pipe, to wait for its data.
    pub(super) fn watched(&self) -> Watched<'_> {
        self.pipe.as_ref().map(|pipe| (pipe.as_fd(), Readiness::Read))
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

fn nonblocking(pipe: OwnedFd) -> io::Result<File> {
    let flags = OFlag::from_bits_retain(fcntl(&pipe, FcntlArg::F_GETFL)?);
    fcntl(&pipe, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(File::from(pipe))
}
