//! The runner's hold on a guardian, and so on a script: starting both, ordering
//! the end, and clearing up where the guardian itself was killed.
//!
//! What is read and reported meanwhile is `process`'s concern. Nothing here waits
//! without a bound.

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
use crate::world::guardian::{self, First, GuardianConfig};
use crate::world::scratch::Scratch;

/// Whether this program lets [`kill_adopted`] kill all its children but these.
static SUBREAPER: AtomicBool = AtomicBool::new(false);
/// The children that this process had before it started any.
static FOREIGN: OnceLock<Vec<pid_t>> = OnceLock::new();

/// Makes this process inherit what a killed guardian leaves, so that even then
/// nothing escapes. For a program that starts children only through
/// `process::run`, once, at its start; not for a library's host, whose own
/// children it would kill.
pub fn become_subreaper() {
    SUBREAPER.store(true, Ordering::Relaxed);
}

/// Before a script starts: makes orphans come here, or, when they are to be
/// kept, pass by.
pub(in crate::world) fn prepare_adoption(leftovers: Leftovers) {
    if SUBREAPER.load(Ordering::Relaxed) {
        FOREIGN.get_or_init(|| {
            // Without a word from this file, which not every kernel has, the long way.
            match fs::read_to_string("/proc/thread-self/children") {
                Ok(list) => list.split(' ').filter_map(|pid| pid.parse().ok()).collect(),
                Err(_) => children(&[]),
            }
        });
        let adopt = c_int::from(leftovers == Leftovers::Kill);
        guardian::set_attribute(libc::PR_SET_CHILD_SUBREAPER, adopt);
    }
}

/// The guardian, seen from the runner. Dropping it on the way out of a failure
/// kills the script and its family.
pub(super) struct GuardianHandle {
    pub(super) child: Child,
    pid: pid_t,
    pub(super) channel: UnixStream,
    reaped: bool,
}

impl GuardianHandle {
    pub(super) fn start(job: &ProcessJob<'_>) -> io::Result<GuardianHandle> {
        let (channel, theirs) = UnixStream::pair()?;
        // Not one of the first three, which the script's streams will replace
        // in a host that has them closed. A duplicate never is.
        let theirs = if theirs.as_raw_fd() < 3 { theirs.try_clone()? } else { theirs };
        channel.set_nonblocking(true)?;
        let post = GuardianConfig {
            channel: theirs.as_raw_fd(),
            runner: own_pid(),
            keep: job.leftovers == Leftovers::Keep,
            limit: job.limit,
            scopes_signals: job.confine.as_ref().is_some_and(|confine| confine.scopes_signals),
            scratch: job.scratch.map(Scratch::handle),
        };
        let exec = ExecCall::new(job).map_err(|error| explain(&error, job))?;
        // Arguments and environment are the call's own: see `exec`.
        let mut command = Command::new(job.program);
        command
            .current_dir(job.folder)
            .stdin(match File::open("/dev/null") {
                Ok(nothing) if job.stdin.is_empty() => nothing.into(),
                // Without the device, a pipe that is at its end does.
                _ => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // SAFETY: after the fork only system calls are made, here and, by its
        // contract, in `confine`.
        unsafe {
            command.pre_exec(move || guardian::stand_between(post));
            if let Some(confine) = job.confine.clone() {
                command.pre_exec(move || (confine.enter)());
            }
            command.pre_exec(move || Err(exec.run()));
        }
        // Handlers of ours must not run in the new processes.
        let blocked = BlockedSignals::new(None);
        let child = command.spawn();
        drop(blocked);
        let child = child.map_err(|error| explain(&error, job))?;
        let pid = pid_t::try_from(child.id()).unwrap_or(0);
        Ok(GuardianHandle { child, pid, channel, reaped: false })
    }

    /// The socket's end is the order, and nothing can hold it back. Should the
    /// script have stopped its guardian, it goes on.
    pub(super) fn order_kill(&self) {
        let _ = self.channel.shutdown(Shutdown::Write);
        // SAFETY: a child that has not been reaped; the number is its own.
        unsafe { libc::kill(self.pid, libc::SIGCONT) };
    }

    /// Stops its family at once: it may have to wait for a processor among thousands.
    pub(super) fn stop_family(&self) {
        guardian::stop_marked(self.pid, First::Newest);
    }

    /// Kills its children in its place, as far as they can be found, and wakes it
    /// in case one of them has stopped it.
    pub(super) fn help(&self) {
        self.stop_family();
        guardian::kill_tree(self.pid, &[]);
        // SAFETY: as above.
        unsafe { libc::kill(self.pid, libc::SIGCONT) };
    }

    /// Kills it. What was its family's becomes this process's or the system's.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Takes leave of the guardian, which has ended or is about to.
    pub(super) fn reap(&mut self) {
        if self.has_ended() {
            return;
        }
        // Its end closes its socket, a moment before it can be reaped. So what waits
        // for a signal, and panics when the means for that fail, has to wait seldom.
        let since = Instant::now();
        let _ = poll(&mut self.channel_entry(0), since.checked_add(limits::GUARDIAN_REAP));
        if self.has_ended() {
            return;
        }
        let left = limits::GUARDIAN_REAP.saturating_sub(since.elapsed());
        if !left.is_zero() && can_wait_timeout() {
            self.reaped = !matches!(self.child.wait_timeout(left), Ok(None));
        }
        // It hears nothing where a host blocks SIGCHLD, hence other looks.
        while !self.has_ended() && since.elapsed() < limits::GUARDIAN_REAP {
            let _ = poll(&mut [], Instant::now().checked_add(limits::SWEEP_ROUND));
        }
    }

    /// Whether it has ended, and reaps it then.
    fn has_ended(&mut self) -> bool {
        self.reaped = self.reaped || !matches!(self.child.try_wait(), Ok(None));
        self.reaped
    }

    /// The socket, for a `poll` for these events; its other end's end is always told.
    fn channel_entry(&self, events: c_short) -> [libc::pollfd; 1] {
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
            &mut self.channel_entry(libc::POLLIN),
            Instant::now().checked_add(limits::GUARDIAN_REPORT),
        );
        let _ = self.child.kill();
        self.reap();
    }
}

/// Kills and buries what a lost guardian left to this process as its subreaper.
pub(super) fn kill_adopted(lost: &GuardianHandle) {
    let Some(foreign) = FOREIGN.get() else { return };
    let own = own_pid();
    let since = Instant::now();
    while since.elapsed() < limits::HUNT {
        let children = children(foreign);
        if children.is_empty() {
            return;
        }
        lost.stop_family();
        guardian::kill_tree(own, foreign);
        let _ = poll(&mut [], Instant::now().checked_add(limits::SWEEP_ROUND));
        for child in children {
            // SAFETY: one number, and no room for a status.
            unsafe { libc::waitpid(child, ptr::null_mut(), libc::WNOHANG) };
        }
    }
}

/// Whether `wait_timeout` is safe to use. It panics where it finds no descriptors for
/// its pipe, or may not handle the signal; and where this process, or the one that started it, ignores its children's
/// ends, its handler would pass the signal on to `SIG_IGN` as if it were a function.
fn can_wait_timeout() -> bool {
    // SAFETY: asks only, into a structure of this stack.
    let handled = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(libc::SIGCHLD, ptr::null(), &raw mut action) == 0
            && action.sa_sigaction != libc::SIG_IGN
    };
    handled && UnixStream::pair().is_ok()
}

/// This process's children but for those `spared`.
fn children(spared: &[pid_t]) -> Vec<pid_t> {
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

/// Says which of the things that must be there is not.
fn explain(error: &io::Error, job: &ProcessJob<'_>) -> io::Error {
    let (program, folder) = (job.program.display(), job.folder.display());
    let text = if !job.folder.is_dir() {
        format!("failed to enter folder `{folder}`: {error}")
    } else if error.kind() == ErrorKind::NotFound && job.program.exists() {
        format!("failed to start `{program}`: the interpreter that it names is missing")
    } else {
        format!("failed to start `{program}`: {error}")
    };
    io::Error::new(error.kind(), text)
}
