//! Guardian: the process between the runner and a script.
//!
//! It is a fork of the runner that never executes another program. As subreaper it becomes
//! the parent of the script's orphans. A socket connects it to the runner: when the runner
//! closes its end, on purpose or by its death (even by `kill -9`), the guardian kills the
//! script and all its descendants. When none is left it sends a short report and ends.
//!
//! Most of this code runs after `fork` in a process that may have had threads, so it must not
//! allocate, lock, use std I/O or panic: only system calls and the stack. The script's output
//! is handled by `process`.

mod mark;
mod runner_state;

use std::io;
use std::mem;
use std::ptr;
use std::time::Duration;

use base::limits;
use libc::{c_int, c_uint, pid_t, sigset_t};

pub use mark::is_in_script;
pub(super) use mark::{ScanOrder, stop_marked};
use runner_state::{RunnerState, WakeTimer, check_runner};

use super::after_fork::{close_from, exit, kill, max_descriptors, now, set_attribute, to_timespec};
use super::process_tree::{self, kill_tree, visit_children_without_proc, visit_tree};
use super::sandbox;
use super::scratch::ScratchFolder;
use super::subreaper::own_pid;

/// Configuration of a guardian: plain numbers that a fork copies.
#[derive(Clone, Copy)]
pub(super) struct GuardianConfig {
    /// The guardian's end of the socket.
    pub(super) channel: c_int,
    /// The runner's process ID.
    pub(super) runner: pid_t,
    /// Whether processes that outlive the script are kept.
    pub(super) keep_leftovers: bool,
    /// Time limit of the script.
    pub(super) limit: Duration,
    /// Whether to enter a signal scope that contains only the script's processes.
    pub(super) scopes_signals: bool,
    /// Folder to remove after the script has ended. Its descriptors, as the channel, are
    /// not 0 to 2, which the script's streams use.
    pub(super) scratch: Option<ScratchFolder>,
}

/// Final report of a guardian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GuardianReport {
    /// The script's wait status; `None` if it could not be killed.
    pub(super) status: Option<c_int>,
    /// Number of processes that outlived the script.
    pub(super) left_behind: u32,
    /// Whether the script reached its time limit and was killed.
    pub(super) timed_out: bool,
}

impl GuardianReport {
    pub(super) const BYTES: usize = 12;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        // A wait status is never negative.
        let status = self.status.unwrap_or(-1).cast_unsigned();
        let numbers = [status, self.left_behind, u32::from(self.timed_out)];
        let mut bytes = [0; Self::BYTES];
        for (place, byte) in bytes.iter_mut().zip(numbers.map(u32::to_ne_bytes).as_flattened()) {
            *place = *byte;
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; Self::BYTES]) -> GuardianReport {
        let number = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        GuardianReport {
            status: c_int::try_from(number(0)).ok(),
            left_behind: number(4),
            timed_out: number(8) != 0,
        }
    }
}

/// Reports that the guardian could not start, on the channel; called instead of running it.
pub(super) fn report_failure(config: &GuardianConfig) {
    send(config.channel, &[0]);
}

fn send(channel: c_int, bytes: &[u8]) {
    // SAFETY: the kernel reads the bytes, at most their number.
    unsafe { libc::send(channel, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
}

/// Splits a forked child in two, before it executes the script's program: one process becomes
/// the guardian and never returns, the other returns and executes the program. All signals
/// must be blocked; the script's process unblocks them.
pub(super) fn split_guardian(config: GuardianConfig) -> io::Result<()> {
    // SAFETY: every call is async-signal-safe or a fork, with plain numbers or structures
    // of this stack as arguments.
    unsafe {
        let guardian = libc::getpid();
        if libc::setsid() < 0 || !set_attribute(libc::PR_SET_CHILD_SUBREAPER, 1) {
            return Err(io::Error::last_os_error());
        }
        // Before the fork: if SIGCHLD were still ignored, as a parent may have left it, the
        // script's status would be lost.
        block_signals();
        // The runner's death closes the socket. This signal also reports it, for when
        // another process holds a copy of the socket (a fork by a thread of the host), or
        // the script has stopped the guardian. From other senders it only ends a wait.
        set_attribute(libc::PR_SET_PDEATHSIG, libc::SIGCONT);
        // The guardian has a copy of the runner's memory, which the script must not read.
        // The script's process becomes readable again when it executes its program.
        set_attribute(libc::PR_SET_DUMPABLE, 0);
        let has_own_scope = config.scopes_signals && scope_signals(config.runner);
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => become_script(guardian),
            script => run_guardian(config, script, has_own_scope),
        }
    }
}

/// Enters a signal scope for this process and its future children. Returns whether a signal
/// to every process (`kill(-1)`) now reaches only them.
fn scope_signals(runner: pid_t) -> bool {
    let can_signal = || kill(runner, 0);
    can_signal() && sandbox::scope_signals().is_ok() && !can_signal()
}

/// Prepares the process that becomes the script, and returns to execute its program.
unsafe fn become_script(guardian: pid_t) -> io::Result<()> {
    // SAFETY: async-signal-safe calls with plain numbers; the set is a local variable.
    unsafe {
        if libc::setsid() < 0 || !set_attribute(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            return Err(io::Error::last_os_error());
        }
        if libc::getppid() != guardian {
            // The guardian died before the parent-death signal was set.
            exit(1);
        }
        mark::mark_self(guardian);
        // The program gets no descriptors except its three streams.
        let first: c_uint = 3;
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, first, c_uint::MAX, flags) < 0 {
            for fd in 3..max_descriptors() {
                libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
        for signal in 1..=libc::SIGRTMAX() {
            // Fails for SIGKILL, SIGSTOP and the C library's own signals.
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
    Ok(())
}

/// Runs the guardian until its end. `has_own_scope`: it has entered its own signal scope.
fn run_guardian(config: GuardianConfig, script: pid_t, has_own_scope: bool) -> ! {
    // SAFETY: calls with plain numbers. The descriptors replaced or closed here have no
    // other user: this process runs no other code.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"skills-guardian".as_ptr());
        libc::dup2(config.channel, 0);
    }
    let scratch = config.scratch.map(|scratch| scratch.move_descriptors(1, 2));
    close_from(if scratch.is_some() { 3 } else { 1 });
    set_priority(libc::SCHED_FIFO, 1);
    let guardian = GuardianState { config, script, has_own_scope, waker: WakeTimer::new() };
    let report = guardian.watch();
    send(0, &report.to_bytes());
    if let Some(scratch) = scratch {
        set_priority(libc::SCHED_OTHER, 0);
        // Cleared here, since the runner may be killed at any moment. If it takes longer,
        // the runner does it, in the background.
        let mut is_clear = scratch.clear(limits::CLEANUP);
        let since = now();
        while !is_clear
            && guardian.is_orphaned()
            && now().saturating_sub(since) < limits::CLEANUP_LAST
        {
            is_clear = scratch.clear(limits::CLEANUP);
            wait_for_signal(&mut [], limits::SWEEP_ROUND);
        }
    }
    // If the script has stopped the runner, the runner must still receive Ctrl+C:
    // `check_runner` continues it then.
    while !guardian.is_orphaned() && check_runner(config.runner) == RunnerState::Stopped {
        guardian.wait_for_event(limits::GUARDIAN_POLL);
    }
    exit(0)
}

/// Running guardian.
struct GuardianState {
    config: GuardianConfig,
    script: pid_t,
    /// Whether `kill(-1)` reaches only the script's processes.
    has_own_scope: bool,
    waker: WakeTimer,
}

impl GuardianState {
    /// Waits for the script's end, its time limit or the order to kill, then kills what is
    /// left.
    fn watch(&self) -> GuardianReport {
        let started = now();
        let mut status = None;
        let mut must_kill = false;
        let mut timed_out = false;
        let mut has_children = self.reap(&mut status);
        while status.is_none() && has_children && !must_kill && !timed_out {
            let left = self.config.limit.saturating_sub(now().saturating_sub(started));
            // The limit is a fallback for when no signal reports a child's end.
            must_kill = self.wait_for_event(left.min(limits::GUARDIAN_POLL));
            let is_late = now().saturating_sub(started) >= self.config.limit;
            // The clock is read before the child's status, so that a script that ended in
            // time is never reported as timed out.
            has_children = self.reap(&mut status);
            timed_out = is_late && status.is_none() && has_children;
        }
        must_kill |= timed_out;
        if !must_kill && !self.config.keep_leftovers {
            let since = now();
            let left = || limits::LEFTOVER_GRACE.saturating_sub(now().saturating_sub(since));
            while has_children && !must_kill && !left().is_zero() {
                must_kill = self.wait_for_event(left());
                has_children = self.reap(&mut status);
            }
        }
        if has_children && (must_kill || !self.config.keep_leftovers) {
            self.stop_all();
        }
        let left_behind = if must_kill || !has_children { 0 } else { self.count_living() };
        if must_kill || !self.config.keep_leftovers {
            let limit = if must_kill { limits::SWEEP_AFTER_KILL } else { limits::SWEEP };
            self.sweep(has_children, &mut status, limit);
        }
        GuardianReport { status, left_behind, timed_out }
    }

    /// Whether the runner has ended.
    fn is_orphaned(&self) -> bool {
        // SAFETY: no arguments, and it always succeeds.
        unsafe { libc::getppid() != self.config.runner }
    }

    /// Kills in rounds until no child is left or the limit is reached.
    fn sweep(&self, mut has_children: bool, status: &mut Option<c_int>, limit: Duration) {
        let since = now();
        let mut round = since;
        while has_children && round.saturating_sub(since) < limit {
            self.kill_all(round.saturating_sub(since) > limits::SWEEP / 2);
            // Dying processes need a processor too: a guardian with real-time priority
            // leaves them half of the time.
            let pause = now().saturating_sub(round).max(limits::SWEEP_ROUND);
            let killed = now();
            round = killed;
            while has_children && round.saturating_sub(killed) < pause {
                wait_for_signal(&mut [], pause.saturating_sub(round.saturating_sub(killed)));
                has_children = self.reap(status);
                round = now();
            }
        }
    }

    /// Stops all of the script's processes, so that they start no more.
    fn stop_all(&self) {
        // `kill(-1)` is called only in a signal scope of its own, where it reaches only the
        // script's processes.
        if self.has_own_scope {
            kill(-1, libc::SIGSTOP);
        } else {
            stop_marked(own_pid(), ScanOrder::OldestFirst);
        }
    }

    /// Kills once. With `is_thorough` every way is used, even if one has succeeded.
    fn kill_all(&self, is_thorough: bool) {
        if self.has_own_scope {
            kill(-1, libc::SIGKILL);
            if !is_thorough {
                return;
            }
        }
        let own = own_pid();
        stop_marked(own, ScanOrder::OldestFirst);
        // `/proc` may not show all processes.
        if !kill_tree(own, &[]) || is_thorough {
            visit_children_without_proc(self.script, |pid| {
                // SAFETY: a plain number.
                process_tree::kill_group(unsafe { libc::getpgid(pid) });
                kill(pid, libc::SIGKILL);
            });
        }
    }

    /// Number of the script's processes that are still alive.
    fn count_living(&self) -> u32 {
        let mut count = 0;
        if !visit_tree(own_pid(), &[], |process| count += u32::from(!process.is_zombie)) {
            visit_children_without_proc(self.script, |_| count += 1);
        }
        count
    }

    /// Reaps every child that has ended. Returns whether other children are left.
    fn reap(&self, status: &mut Option<c_int>) -> bool {
        loop {
            let mut raw = 0;
            // SAFETY: the status is written to a local variable.
            match unsafe { libc::waitpid(-1, &raw mut raw, libc::WNOHANG) } {
                0 => return true,
                -1 => return io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD),
                pid if pid == self.script => *status = Some(raw),
                _ => {}
            }
        }
    }

    /// Waits for a signal, the socket or the limit. Returns whether the script must be killed.
    fn wait_for_event(&self, limit: Duration) -> bool {
        self.waker.start(limits::GUARDIAN_POLL);
        let mut channel = [libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 }];
        let since = now();
        wait_for_signal(&mut channel, limit);
        let is_ordered = channel.iter().any(|fd| fd.revents != 0) || self.is_orphaned();
        let was_long = now().saturating_sub(since) >= limits::GUARDIAN_POLL / 2;
        is_ordered || was_long && check_runner(self.config.runner) == RunnerState::Ending
    }
}

/// Sets the scheduling class: real-time where the system allows it, since a script may keep
/// every processor busy, or back to normal.
fn set_priority(class: c_int, priority: c_int) {
    // SAFETY: plain numbers, and a structure of this stack that is zeroed and then filled.
    unsafe {
        let mut parameters: libc::sched_param = mem::zeroed();
        parameters.sched_priority = priority;
        // The system call, since musl's function only returns an error.
        let class = class | libc::SCHED_RESET_ON_FORK;
        libc::syscall(libc::SYS_sched_setscheduler, 0, class, &raw const parameters);
    }
}

/// Waits for a child's end, the runner's end or a descriptor. The two signals are unblocked
/// only during the wait, so none can arrive unnoticed between a check and the wait.
fn wait_for_signal(fds: &mut [libc::pollfd], limit: Duration) {
    let limit = to_timespec(limit);
    // SAFETY: `fds`, `limit` and `mask` outlive the call.
    unsafe {
        let mut mask: sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut mask);
        libc::sigdelset(&raw mut mask, libc::SIGCHLD);
        libc::sigdelset(&raw mut mask, libc::SIGCONT);
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &raw const limit, &raw const mask);
    }
}

/// Blocks every signal and gives SIGCHLD and SIGCONT (the runner's death) an empty handler, so
/// that they only end a wait. The runner's own handlers must not run in this copy.
unsafe fn block_signals() {
    extern "C" fn wake(_: c_int) {}
    // SAFETY: structures of this stack that are zeroed and then filled; the handler is empty.
    unsafe {
        let mut all: sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = wake as extern "C" fn(c_int) as libc::sighandler_t;
        libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut());
        libc::sigaction(libc::SIGCONT, &raw const action, ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_the_same_after_decoding() {
        for (status, left_behind) in [(None, 0), (Some(0), 1), (Some(0xff00), u32::MAX)] {
            let report = GuardianReport { status, left_behind, timed_out: left_behind == 1 };
            assert_eq!(GuardianReport::from_bytes(report.to_bytes()), report);
        }
    }
}
