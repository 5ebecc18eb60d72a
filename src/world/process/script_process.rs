//! Handle of a guardian and its script: starts both, orders the kill, and kills what is left
//! if the guardian itself was killed.
//!
//! Output and results are handled by `process`. Every wait here has a limit.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{fs, mem, process, ptr};

use crate::limits;
use libc::{c_int, c_short, pid_t};
use wait_timeout::ChildExt;

use super::blocked::BlockedSignals;
use super::exec::ExecCall;
use super::streams::poll;
use super::{Leftovers, ProcessJob};
use crate::world::guardian::{self, GuardianConfig, ScanOrder};
use crate::world::scratch::Scratch;

/// Whether [`kill_adopted`] may kill all children of this process except [`HOST_CHILDREN`].
static SUBREAPER: AtomicBool = AtomicBool::new(false);
/// Children that this process had before it started its first script.
static HOST_CHILDREN: OnceLock<Vec<pid_t>> = OnceLock::new();

/// Makes this process the subreaper of a killed guardian's processes, so that even they are
/// killed. To be called once at the start of a program that starts children only through
/// `process::run`; not by the host of a library, whose own children would be killed.
pub fn become_subreaper() {
    SUBREAPER.store(true, Ordering::Relaxed);
}

/// Prepares for the start of a script: orphans become children of this process, or, if
/// leftovers are kept, of the system's first process.
pub(in crate::world) fn prepare_adoption(leftovers: Leftovers) {
    if SUBREAPER.load(Ordering::Relaxed) {
        HOST_CHILDREN.get_or_init(|| {
            // Not every kernel has this file; searching `/proc` takes longer.
            match fs::read_to_string("/proc/thread-self/children") {
                Ok(list) => list.split(' ').filter_map(|pid| pid.parse().ok()).collect(),
                Err(_) => own_children(&[]),
            }
        });
        let adopt = c_int::from(leftovers == Leftovers::Kill);
        guardian::set_attribute(libc::PR_SET_CHILD_SUBREAPER, adopt);
    }
}

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
        // Not one of the numbers 0 to 2, which the script's streams will get: they are free
        // in a host that has closed them. `try_clone` never returns one of them.
        let guardian_end =
            if guardian_end.as_raw_fd() < 3 { guardian_end.try_clone()? } else { guardian_end };
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
            .stdin(match File::open("/dev/null") {
                Ok(nothing) if job.stdin.is_empty() => nothing.into(),
                // Without the device, an empty pipe serves the same purpose.
                _ => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // SAFETY: after the fork only system calls are made, here and, by contract, in
        // `restrictions.enter`.
        unsafe {
            command.pre_exec(move || guardian::split_guardian(config));
            if let Some(confine) = job.restrictions.clone() {
                command.pre_exec(move || (confine.enter)());
            }
            command.pre_exec(move || Err(exec.run()));
        }
        // This process's signal handlers must not run in the new processes.
        let blocked = BlockedSignals::new(None);
        let child = command.spawn();
        drop(blocked);
        let child = child.map_err(|error| start_error(&error, job))?;
        let pid = pid_t::try_from(child.id()).unwrap_or(0);
        Ok(GuardianHandle { child, pid, channel, reaped: false })
    }

    /// Orders the guardian to kill. Closing the socket is the order, since that can never
    /// block. Continues the guardian in case the script has stopped it.
    pub(super) fn order_kill(&self) {
        let _ = self.channel.shutdown(Shutdown::Write);
        // SAFETY: the child has not been reaped, so the ID is still its own.
        unsafe { libc::kill(self.pid, libc::SIGCONT) };
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
        guardian::kill_tree(self.pid, &[]);
        // SAFETY: as above.
        unsafe { libc::kill(self.pid, libc::SIGCONT) };
    }

    /// Kills the guardian. Its descendants become children of this process or of the system's
    /// first process.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Reaps the guardian, which has ended or is about to.
    pub(super) fn reap(&mut self) {
        if self.has_ended() {
            return;
        }
        // Its end closes the socket a moment before it can be reaped. Waiting for that
        // usually avoids `wait_timeout`, which panics if it cannot set up its signal handler.
        let since = Instant::now();
        let _ = poll(&mut self.channel_poll_entry(0), since.checked_add(limits::GUARDIAN_REAP));
        if self.has_ended() {
            return;
        }
        let left = limits::GUARDIAN_REAP.saturating_sub(since.elapsed());
        if !left.is_zero() && can_wait_timeout() {
            self.reaped = !matches!(self.child.wait_timeout(left), Ok(None));
        }
        // `wait_timeout` notices nothing where a host blocks SIGCHLD, so this polls too.
        while !self.has_ended() && since.elapsed() < limits::GUARDIAN_REAP {
            let _ = poll(&mut [], Instant::now().checked_add(limits::SWEEP_ROUND));
        }
    }

    /// Whether the guardian has ended; reaps it if so.
    fn has_ended(&mut self) -> bool {
        self.reaped = self.reaped || !matches!(self.child.try_wait(), Ok(None));
        self.reaped
    }

    /// Entry for a `poll` of the socket. That the other end was closed is always reported.
    fn channel_poll_entry(&self, events: c_short) -> [libc::pollfd; 1] {
        [libc::pollfd { fd: self.channel.as_raw_fd(), events, revents: 0 }]
    }
}

impl Drop for GuardianHandle {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.order_kill();
        let _ = poll(
            &mut self.channel_poll_entry(libc::POLLIN),
            Instant::now().checked_add(limits::GUARDIAN_REPORT),
        );
        let _ = self.child.kill();
        self.reap();
    }
}

/// Kills and reaps the orphans of a lost guardian, which this process has as their subreaper.
pub(super) fn kill_adopted(lost: &GuardianHandle) {
    let Some(foreign) = HOST_CHILDREN.get() else { return };
    let own = own_pid();
    let since = Instant::now();
    while since.elapsed() < limits::ORPHAN_SEARCH {
        let children = own_children(foreign);
        if children.is_empty() {
            return;
        }
        lost.stop_descendants();
        guardian::kill_tree(own, foreign);
        let _ = poll(&mut [], Instant::now().checked_add(limits::SWEEP_ROUND));
        for child in children {
            // SAFETY: plain numbers; the status is not written.
            unsafe { libc::waitpid(child, ptr::null_mut(), libc::WNOHANG) };
        }
    }
}

/// Whether `wait_timeout` is safe to use. It panics if there are no descriptors left for its
/// pipe, or if it cannot set the signal's handler. If SIGCHLD is ignored, as a parent may have
/// left it, its handler would call `SIG_IGN` as if it were a function.
fn can_wait_timeout() -> bool {
    // SAFETY: only reads the action, into a structure of this stack.
    let handled = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(libc::SIGCHLD, ptr::null(), &raw mut action) == 0
            && action.sa_sigaction != libc::SIG_IGN
    };
    handled && UnixStream::pair().is_ok()
}

/// The children of this process except those `spared`.
fn own_children(spared: &[pid_t]) -> Vec<pid_t> {
    let own = own_pid();
    let mut children = Vec::new();
    guardian::visit_tree(own, spared, |process| {
        if process.parent == own {
            children.push(process.pid);
        }
    });
    children
}

fn own_pid() -> pid_t {
    pid_t::try_from(process::id()).unwrap_or(0)
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
