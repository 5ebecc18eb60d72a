//! Handle of a guardian and its script: starts both, orders the kill, and kills what is left
//! if the guardian itself was killed.
//!
//! Output and results are handled by `process`. Every wait here has a limit.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use base::limits;
use libc::pid_t;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use wait_timeout::ChildExt;

use super::exec::ExecCall;
use super::{Leftovers, ProcessJob};
use crate::after_fork::{above_streams, kill};
use crate::guardian::{self, GuardianConfig, ScanOrder};
use crate::poll::{Readiness, is_ready_within};
use crate::process_tree::kill_tree;
use crate::scratch::Scratch;
use crate::signal::is_ignored;
use crate::subreaper::{kill_adopted, own_pid};

/// The runner's handle of a guardian. Dropping it early, on an error, kills the script and its
/// descendants.
pub(super) struct GuardianHandle {
    pub(super) child: Child,
    pid: pid_t,
    pub(super) channel: UnixStream,
    reaped: bool,
}

impl GuardianHandle {
    pub(super) fn start(job: &ProcessJob<'_>) -> io::Result<GuardianHandle> {
        let (channel, guardian_end) = UnixStream::pair()?;
        let guardian_end = above_streams(guardian_end.into())?;
        channel.set_nonblocking(true)?;
        let config = GuardianConfig {
            channel: guardian_end.as_raw_fd(),
            runner: own_pid(),
            keep_leftovers: job.leftovers == Leftovers::Keep,
            limit: job.limit,
            scopes_signals: job.restrictions.as_ref().is_some_and(|confine| confine.scopes_signals),
            scratch: job.scratch.map(Scratch::handle),
        };
        let exec = ExecCall::new(job).map_err(|error| start_error(&error, job))?;
        // Arguments and environment are passed by `exec`.
        let mut command = Command::new(job.program);
        command
            .current_dir(job.folder)
            .stdin(input_file(job.stdin).map_err(|error| start_error(&error, job))?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // SAFETY: after the fork only system calls are made, here and, by contract, in
        // `restrictions.enter`.
        unsafe {
            command.pre_exec(move || {
                guardian::split_guardian(config).inspect_err(|_| guardian::report_failure(&config))
            });
            if let Some(confine) = job.restrictions.clone() {
                command.pre_exec(move || (confine.enter)());
            }
            command.pre_exec(move || Err(exec.run()));
        }
        let child = with_signals_blocked(|| command.spawn());
        // A guardian that could start reports the end of its script, in more bytes.
        let child = child.map_err(|error| match (&channel).read(&mut [0; 2]) {
            Ok(1) => io::Error::new(error.kind(), GuardianError(error)),
            _ => start_error(&error, job),
        })?;
        let pid = pid_t::try_from(child.id()).unwrap_or(0);
        Ok(GuardianHandle { child, pid, channel, reaped: false })
    }

    /// Orders the guardian to kill. Closing the socket is the order, since that can never
    /// block. Continues the guardian in case the script has stopped it.
    pub(super) fn order_kill(&self) {
        let _ = self.channel.shutdown(Shutdown::Write);
        // The child has not been reaped, so the ID is still its own.
        kill(self.pid, libc::SIGCONT);
    }

    /// Stops the script's processes directly: the guardian may have to wait for a processor
    /// among thousands of processes.
    pub(super) fn stop_descendants(&self) {
        guardian::stop_marked(self.pid, ScanOrder::NewestFirst);
    }

    /// Kills those descendants of the guardian that can be found, and continues the guardian in
    /// case one of them has stopped it.
    pub(super) fn kill_descendants(&self) {
        self.stop_descendants();
        kill_tree(self.pid, &[]);
        kill(self.pid, libc::SIGCONT);
    }

    /// Kills the guardian. Its descendants become children of this process or of the system's
    /// first process.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Kills and reaps the orphans of the guardian, which has been lost.
    pub(super) fn kill_adopted(&self) {
        kill_adopted(|| self.stop_descendants());
    }

    /// Reaps the guardian, which has ended or is about to.
    pub(super) fn reap(&mut self) {
        // Its end closes the socket a moment before it can be reaped. Waiting for that
        // usually avoids `wait_timeout`, which panics if it cannot set up its signal handler.
        let since = Instant::now();
        if !self.has_ended() {
            is_ready_within((self.channel.as_fd(), Readiness::Broken), limits::GUARDIAN_REAP);
        }
        let left = limits::GUARDIAN_REAP.saturating_sub(since.elapsed());
        if !self.has_ended() && can_wait_timeout() {
            self.reaped = !matches!(self.child.wait_timeout(left), Ok(None));
        }
        // `wait_timeout` cannot be used where SIGCHLD is ignored, and notices nothing where a
        // host blocks it.
        while !self.has_ended() && since.elapsed() < limits::GUARDIAN_REAP {
            thread::sleep(limits::SWEEP_ROUND);
        }
    }

    /// Whether the guardian has ended; reaps it if so.
    fn has_ended(&mut self) -> bool {
        self.reaped = self.reaped || !matches!(self.child.try_wait(), Ok(None));
        self.reaped
    }
}

impl Drop for GuardianHandle {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.order_kill();
        is_ready_within((self.channel.as_fd(), Readiness::Read), limits::GUARDIAN_REPORT);
        let _ = self.child.kill();
        self.reap();
    }
}

/// Whether `wait_timeout` is safe to use. It panics if there are no descriptors left for its
/// pipe, or if it cannot set the signal's handler. If SIGCHLD is ignored, as a parent may have
/// left it, its handler would call `SIG_IGN` as if it were a function.
fn can_wait_timeout() -> bool {
    !is_ignored(Signal::SIGCHLD) && UnixStream::pair().is_ok()
}

/// Standard input of the script: `/dev/null`, or a file in memory. A pipe would have to be
/// filled while the script runs. Without the device, an empty file serves the same purpose.
fn input_file(bytes: &[u8]) -> io::Result<File> {
    if bytes.is_empty()
        && let Ok(nothing) = File::open("/dev/null")
    {
        return Ok(nothing);
    }
    let create = |flags| memfd_create(c"skills-runner-stdin", MFdFlags::MFD_CLOEXEC | flags);
    // A hardened kernel requires this flag, which others do not know (before 6.3).
    let mut file: File = create(MFdFlags::from_bits_retain(libc::MFD_NOEXEC_SEAL))
        .or_else(|_| create(MFdFlags::empty()))?
        .into();
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Calls `start` while all signals are blocked: this process's signal handlers must not run
/// in the new processes.
fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let started = start();
    let _ = before.and_then(|before| before.thread_set_mask());
    started
}

/// The guardian could not start, for this reason.
#[derive(Debug)]
struct GuardianError(io::Error);

impl Error for GuardianError {}

impl fmt::Display for GuardianError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = "the guardian, which kills all processes of a script";
        // The kernel knows the attribute since Linux 3.4; emulators of system calls may not.
        let cause = match self.0.kind() {
            ErrorKind::InvalidInput => "PR_SET_CHILD_SUBREAPER is refused: ",
            _ => "",
        };
        write!(f, "failed to start {what}: {cause}{}", self.0)
    }
}

/// Whether an error of starting a program was one of its guardian.
pub fn is_guardian_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<GuardianError>)
}

/// Adds the cause to an error of starting a program: a missing folder, interpreter or program.
fn start_error(error: &io::Error, job: &ProcessJob<'_>) -> io::Error {
    let (program, folder) = (job.program.display(), job.folder.display());
    let text = if !job.folder.is_dir() {
        format!("failed to enter folder `{folder}`: {error}")
    } else if error.kind() == ErrorKind::NotFound && job.program.exists() {
        format!("failed to start `{program}`: its interpreter is missing")
    } else {
        format!("failed to start `{program}`: {error}")
    };
    io::Error::new(error.kind(), text)
}
