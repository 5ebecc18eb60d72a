//! The process that stands between the runner and a script.
//!
//! It is a fork of the runner that never runs another program. As subreaper it
//! inherits whatever tries to slip away from the script; one socket ties it to
//! the runner. The socket's end, by request or by the runner's death, even by
//! `kill -9`, means: kill the script and all that it started. When nothing is
//! left it reports in a few bytes and ends.
//!
//! Most of it runs after `fork` in what may have been a program with
//! threads: no allocation, no locks, no std I/O, no panic; system calls and the
//! stack only. What a script did, and what its output was, is `process`'s concern.

mod listing;
mod mark;
mod process_tree;
mod runner_state;

use std::io;
use std::mem;
use std::ptr;
use std::time::Duration;

use crate::limits;
use libc::{c_int, c_uint, pid_t, sigset_t};

pub(super) use listing::visit_names;
pub(super) use mark::{First, stop_marked};
use process_tree::visit_children_blindly;
pub(super) use process_tree::{kill_tree, visit_tree};

use runner_state::{RunnerState, WakeTimer, look};

use super::sandbox;
use super::scratch::Folder;

/// What the guardian needs to know; plain numbers that a fork copies.
#[derive(Clone, Copy)]
pub(super) struct GuardianConfig {
    /// The guardian's end of the socket.
    pub(super) channel: c_int,
    /// The runner's process number.
    pub(super) runner: pid_t,
    /// Leave alone what outlives the script.
    pub(super) keep: bool,
    /// When to kill without being told.
    pub(super) limit: Duration,
    /// Whether to enter a domain of signals that holds the script and nothing else.
    pub(super) scopes_signals: bool,
    /// What is to go when the script is gone; its descriptors are above the
    /// streams', as the channel is.
    pub(super) scratch: Option<Folder>,
}

/// The guardian's last words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GuardianReport {
    /// The script's wait status; `None` when it could not be killed.
    pub(super) status: Option<c_int>,
    /// Processes that outlived the script.
    pub(super) left_behind: u32,
    /// The script had not ended at its limit, and was killed.
    pub(super) timed_out: bool,
}

impl GuardianReport {
    pub(super) const BYTES: usize = 8;
    /// Beside the count of processes, of which no system has so many.
    const TIMED_OUT: u32 = 1 << 31;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        // No wait status is negative or fills 32 bits.
        let status = self.status.map_or(u32::MAX, |raw| u32::try_from(raw).unwrap_or(u32::MAX));
        let timed_out = if self.timed_out { Self::TIMED_OUT } else { 0 };
        let count = self.left_behind.min(Self::TIMED_OUT - 1);
        (u64::from(status) << 32 | u64::from(count | timed_out)).to_ne_bytes()
    }

    pub(super) fn from_bytes(bytes: [u8; Self::BYTES]) -> GuardianReport {
        let both = u64::from_ne_bytes(bytes);
        let rest = u32::try_from(both & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        GuardianReport {
            status: c_int::try_from(both >> 32).ok(),
            left_behind: rest & !Self::TIMED_OUT,
            timed_out: rest & Self::TIMED_OUT != 0,
        }
    }
}

/// For a forked child, before it runs the script's program: splits it in two.
/// One half becomes the guardian and never returns; the other returns and runs
/// the program. All signals must be blocked: the script's half unblocks them.
pub(super) fn stand_between(post: GuardianConfig) -> io::Result<()> {
    // SAFETY: every call is async-signal-safe or a fork, and takes plain numbers
    // or structures of this stack.
    unsafe {
        let guardian = libc::getpid();
        if libc::setsid() < 0 || !set_attribute(libc::PR_SET_CHILD_SUBREAPER, 1) {
            return Err(io::Error::last_os_error());
        }
        // Before the fork: with SIGCHLD ignored, as a parent may have left it,
        // the script's status would be lost.
        answer_signals();
        // The socket's end tells of the runner's death; this does so too where a
        // program with threads lent the socket to another process, or the script
        // has stopped its guardian. Whoever else sends it ends a wait, no more.
        set_attribute(libc::PR_SET_PDEATHSIG, libc::SIGCONT);
        // The guardian is a copy of the runner's memory: not for the script's
        // eyes. The script's half is readable again once it runs its program.
        set_attribute(libc::PR_SET_DUMPABLE, 0);
        let alone = post.scopes_signals && scope_signals(post.runner);
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => become_script(guardian),
            script => guard(post, script, alone),
        }
    }
}

/// Enters a domain of signals that will hold this process and what it starts. Returns
/// whether a signal to all that this process may signal now reaches nothing else.
unsafe fn scope_signals(runner: pid_t) -> bool {
    // SAFETY: plain numbers; the signal 0 does nothing.
    let can_signal = || unsafe { libc::kill(runner, 0) == 0 };
    can_signal() && sandbox::scope_signals().is_ok() && !can_signal()
}

/// Sets one of this process's attributes. Returns whether the kernel agreed.
pub(super) fn set_attribute(name: c_int, value: c_int) -> bool {
    const NONE: libc::c_long = 0;
    // SAFETY: plain numbers, as wide as the kernel reads them.
    unsafe { libc::prctl(name, libc::c_long::from(value), NONE, NONE, NONE) == 0 }
}

/// The half that becomes the script. Returns for the program to be run.
unsafe fn become_script(guardian: pid_t) -> io::Result<()> {
    // SAFETY: async-signal-safe calls with plain numbers; the set is a local.
    unsafe {
        if libc::setsid() < 0 || !set_attribute(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            return Err(io::Error::last_os_error());
        }
        if libc::getppid() != guardian {
            // It died before it could be watched.
            libc::_exit(1);
        }
        mark::put_on(guardian);
        // The program gets no descriptor but its three streams.
        let first: c_uint = 3;
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, first, c_uint::MAX, flags) < 0 {
            for fd in 3..most_descriptors() {
                libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
        for signal in 1..=libc::SIGRTMAX() {
            // Refused for SIGKILL, SIGSTOP and those of the C library.
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
    Ok(())
}

/// The guardian's whole life. `alone`: it has a domain of signals to itself.
fn guard(post: GuardianConfig, script: pid_t, alone: bool) -> ! {
    // SAFETY: plain calls; the descriptors closed here belong to nobody else in
    // this process, which runs no other code than this.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"skills-guardian".as_ptr());
        libc::dup2(post.channel, 0);
    }
    let scratch = post.scratch.map(|scratch| scratch.keep_as(1, 2));
    close_from(if scratch.is_some() { 3 } else { 1 });
    set_priority(libc::SCHED_FIFO, 1);
    let guard = GuardianState { post, script, alone, waker: WakeTimer::new() };
    let report = guard.watch();
    let bytes = report.to_bytes();
    // SAFETY: sends from a local array.
    unsafe { libc::send(0, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    if let Some(scratch) = scratch {
        set_priority(libc::SCHED_OTHER, 0);
        // Not left to the runner, which may be killed at this very moment. What
        // takes longer is: it knows how not to wait.
        let mut is_clear = scratch.clear(limits::CLEARING);
        let since = now();
        while !is_clear && guard.has_lost() && now().saturating_sub(since) < limits::LAST_CLEARING {
            is_clear = scratch.clear(limits::CLEARING);
            wait_for_signal(&mut [], Some(limits::SWEEP_ROUND));
        }
    }
    // A runner that the script has stopped is to hear Ctrl+C all the same.
    while !guard.has_lost() && look(post.runner) == RunnerState::Stopped {
        guard.wait_for_news(limits::GUARDIAN_LOOK);
    }
    // SAFETY: the process ends.
    unsafe { libc::_exit(0) }
}

/// Closes every descriptor from this one on.
pub(super) fn close_from(first: c_int) {
    // SAFETY: for a process that runs no other code than its caller's.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) < 0 {
            for fd in first..most_descriptors() {
                libc::close(fd);
            }
        }
    }
}

/// A guardian at work.
struct GuardianState {
    post: GuardianConfig,
    script: pid_t,
    /// Whether a signal to everything reaches the script's processes alone.
    alone: bool,
    waker: WakeTimer,
}

impl GuardianState {
    /// Waits for the script's end, its limit or the word to kill, then clears up.
    fn watch(&self) -> GuardianReport {
        let began = now();
        let mut status = None;
        let mut told = false;
        let mut timed_out = false;
        let mut others = self.reap(&mut status);
        while status.is_none() && others && !told && !timed_out {
            let left = self.post.limit.saturating_sub(now().saturating_sub(began));
            // Should no signal tell of a child's end, a look from time to time does.
            told = self.wait_for_news(left.min(limits::GUARDIAN_LOOK));
            let is_late = now().saturating_sub(began) >= self.post.limit;
            // The clock before the child: one that ended in time is never called late.
            others = self.reap(&mut status);
            timed_out = is_late && status.is_none() && others;
        }
        told |= timed_out;
        if !told && !self.post.keep {
            let since = now();
            let left = || limits::LEFTOVER_GRACE.saturating_sub(now().saturating_sub(since));
            while others && !told && !left().is_zero() {
                told = self.wait_for_news(left());
                others = self.reap(&mut status);
            }
        }
        if others && (told || !self.post.keep) {
            self.stop_all();
        }
        let left_behind = if told || !others { 0 } else { self.count_living() };
        if told || !self.post.keep {
            let limit = if told { limits::LAST_SWEEP } else { limits::SWEEP };
            self.sweep(others, &mut status, limit);
        }
        GuardianReport { status, left_behind, timed_out }
    }

    /// Whether the runner is gone.
    fn has_lost(&self) -> bool {
        // SAFETY: always succeeds.
        unsafe { libc::getppid() != self.post.runner }
    }

    /// Kills until no child is left, within bounds.
    fn sweep(&self, mut others: bool, status: &mut Option<c_int>, limit: Duration) {
        let since = now();
        let mut round = since;
        while others && round.saturating_sub(since) < limit {
            self.kill_all(round.saturating_sub(since) > limits::SWEEP / 2);
            // The dying need a processor too: who goes before everybody else leaves
            // them half of the time.
            let pause = now().saturating_sub(round).max(limits::SWEEP_ROUND);
            let struck = now();
            round = struck;
            while others && round.saturating_sub(struck) < pause {
                wait_for_signal(&mut [], Some(pause.saturating_sub(round.saturating_sub(struck))));
                others = self.reap(status);
                round = now();
            }
        }
    }

    /// Stops all that the script started, so that nothing more is started.
    fn stop_all(&self) {
        // SAFETY: plain numbers. Only in a domain of its own does this process signal
        // whatever it may.
        unsafe {
            if self.alone {
                libc::kill(-1, libc::SIGSTOP);
            } else {
                stop_marked(libc::getpid(), First::Oldest);
            }
        }
    }

    /// One round of killing; a `thorough` one relies on nothing.
    fn kill_all(&self, thorough: bool) {
        // SAFETY: plain numbers; as above.
        unsafe {
            if self.alone {
                libc::kill(-1, libc::SIGKILL);
                if !thorough {
                    return;
                }
            }
            let own = libc::getpid();
            stop_marked(own, First::Oldest);
            // What `/proc` shows may be less than there is.
            if !kill_tree(own, &[]) || thorough {
                visit_children_blindly(self.script, |pid| {
                    process_tree::kill_group(libc::getpgid(pid));
                    libc::kill(pid, libc::SIGKILL);
                });
            }
        }
    }

    /// How many of the script's processes still live.
    fn count_living(&self) -> u32 {
        let mut count = 0;
        // SAFETY: always succeeds.
        if !visit_tree(unsafe { libc::getpid() }, &[], |process| {
            count += u32::from(!process.zombie);
        }) {
            visit_children_blindly(self.script, |_| count += 1);
        }
        count
    }

    /// Takes leave of every child that has ended. Returns whether others live on.
    fn reap(&self, status: &mut Option<c_int>) -> bool {
        loop {
            let mut raw = 0;
            // SAFETY: the status is written to a local.
            match unsafe { libc::waitpid(-1, &raw mut raw, libc::WNOHANG) } {
                0 => return true,
                -1 => return io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD),
                pid if pid == self.script => *status = Some(raw),
                _ => {}
            }
        }
    }

    /// Waits for a signal, the socket, or so long. Returns whether it is time to kill.
    fn wait_for_news(&self, limit: Duration) -> bool {
        self.waker.start(limits::GUARDIAN_LOOK);
        let mut channel = [libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 }];
        let since = now();
        wait_for_signal(&mut channel, Some(limit));
        let is_called = channel.iter().any(|fd| fd.revents != 0) || self.has_lost();
        let was_long = now().saturating_sub(since) >= limits::GUARDIAN_LOOK / 2;
        is_called || was_long && look(self.post.runner) == RunnerState::Ends
    }
}

/// Goes before everybody else where the system allows it, for a script may have
/// filled every processor; or steps back.
fn set_priority(class: c_int, priority: c_int) {
    // SAFETY: plain numbers and a zeroed, then filled, structure of this stack.
    unsafe {
        let mut parameters: libc::sched_param = mem::zeroed();
        parameters.sched_priority = priority;
        // Not the C library's function, which musl does not have.
        let class = class | libc::SCHED_RESET_ON_FORK;
        libc::syscall(libc::SYS_sched_setscheduler, 0, class, &raw const parameters);
    }
}

/// Waits for a child's end, the runner's end or a descriptor. The two signals
/// are blocked but here, so none can slip in between a check and the wait.
fn wait_for_signal(fds: &mut [libc::pollfd], limit: Option<Duration>) {
    let limit = limit.map(to_timespec);
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `fds`, `limit` and `mask` outlive the call.
    unsafe {
        let mut mask: sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut mask);
        libc::sigdelset(&raw mut mask, libc::SIGCHLD);
        libc::sigdelset(&raw mut mask, libc::SIGCONT);
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, limit, &raw const mask);
    }
}

/// Blocks every signal; SIGCHLD and the runner's death only end a wait. The
/// runner's own handlers must not run in its copy.
unsafe fn answer_signals() {
    extern "C" fn wake(_: c_int) {}
    // SAFETY: zeroed, then filled, structures of this stack; the handler is empty.
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

fn most_descriptors() -> c_int {
    // SAFETY: always succeeds for this name.
    let most = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    c_int::try_from(most).map_or(limits::DESCRIPTORS, |most| most.clamp(0, limits::DESCRIPTORS))
}

/// The time since some fixed moment.
pub(super) fn now() -> Duration {
    // SAFETY: a zeroed structure of this stack, filled by the call.
    let time = unsafe {
        let mut time: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        time
    };
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
}

fn to_timespec(duration: Duration) -> libc::timespec {
    // SAFETY: a structure of plain numbers; padding differs between C libraries.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // No pause of ours is that long.
    time.tv_sec = duration.as_secs().try_into().unwrap_or(0);
    time.tv_nsec = duration.subsec_nanos().into();
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_wire() {
        for (status, left_behind) in [(None, 0), (Some(0), 1), (Some(0xff00), u32::MAX >> 1)] {
            let report = GuardianReport { status, left_behind, timed_out: left_behind == 1 };
            assert_eq!(GuardianReport::from_bytes(report.to_bytes()), report);
        }
    }
}
