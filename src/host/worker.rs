//! Child processes that run code of this program and return bytes. They are forked, so they have
//! everything that the program has read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::after_fork::{exit, kill, set_attribute};
use crate::cancellation::{Cancellation, Readiness};
use crate::poll::{is_ready, is_ready_within};
use crate::signal::Signal;
use base::limits;
use nix::errno::Errno;
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, getpid, getppid};

/// A child process. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Worker {
    pid: libc::pid_t,
    pipe: File,
    bytes: Vec<u8>,
}

impl Worker {
    /// Forks a child that returns the bytes of `work`. It gets `death_signal` if this program is
    /// killed. Its standard streams are `/dev/null`.
    pub fn start(death_signal: Signal, work: impl FnOnce() -> Vec<u8>) -> io::Result<Worker> {
        let (reader, mut writer) = io::pipe()?;
        let parent = getpid();
        // SAFETY: the program has one thread, so the child may run any code. In a host program with
        // several threads it may hang, and is killed when its time is over.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                set_attribute(libc::PR_SET_PDEATHSIG, death_signal.0);
                // The parent may already have been killed.
                if getppid() != parent {
                    exit(1);
                }
                drop(reader);
                close_streams();
                let _ = writer.write_all(&work());
                exit(0)
            }
            _ => {
                let pipe = File::from(OwnedFd::from(reader));
                Ok(Worker { pid, pipe, bytes: Vec::new() })
            }
        }
    }

    /// The pipe of the bytes, to wait for it.
    pub fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Reads what is there; blocks unless the pipe is ready. Returns all bytes when the child has
    /// closed the pipe.
    pub fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut piece = [0u8; limits::PIPE_READ_BYTES];
        loop {
            match self.pipe.read(&mut piece) {
                Ok(0) => return Ok(Some(std::mem::take(&mut self.bytes))),
                Ok(count) => self.bytes.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if !is_ready((self.pipe.as_fd(), Readiness::Read)) {
                return Ok(None);
            }
        }
    }

    /// Waits for all bytes, for at most `limit`.
    pub fn wait(&mut self, limit: Duration, cancellation: &Cancellation) -> io::Result<Vec<u8>> {
        let start = Instant::now();
        loop {
            let left = limit.saturating_sub(start.elapsed());
            cancellation.wait(Some((self.pipe(), Readiness::Read)), Some(left))?;
            if let Some(bytes) = self.read()? {
                return Ok(bytes);
            }
        }
    }

    /// Asks the child to end.
    pub fn request_end(&self) {
        kill(self.pid, libc::SIGTERM);
    }

    /// Waits until the child has ended, or this moment has come.
    pub fn wait_for_end(&mut self, until: Instant) {
        let left = || until.saturating_duration_since(Instant::now());
        while is_ready_within((self.pipe.as_fd(), Readiness::Read), left()) {
            if !matches!(self.read(), Ok(None)) {
                return;
            }
        }
    }
}

/// Replaces the standard streams by `/dev/null`: the output is the parent's.
fn close_streams() {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null");
    if let Ok(null) = null {
        let _ = (dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        kill(self.pid, libc::SIGKILL);
        while waitpid(Pid::from_raw(self.pid), None) == Err(Errno::EINTR) {}
    }
}
