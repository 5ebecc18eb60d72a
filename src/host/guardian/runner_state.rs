//! Protection against a script that stops the processes that watch it. Without a sandbox a
//! script may signal every process of its user.
//!
//! Called after `fork`: no allocation, no locks, no panic.

use std::mem;
use std::ptr;
use std::time::Duration;

use base::limits;
use libc::{c_int, pid_t};

use crate::after_fork::{kill, to_timespec};
use crate::process_tree;

/// Timer that continues this process after it was stopped.
#[derive(Clone, Copy)]
pub(super) struct WakeTimer {
    timer: Option<c_int>,
}

impl WakeTimer {
    /// Creates the timer without starting it.
    pub(super) fn new() -> WakeTimer {
        let mut timer: c_int = 0;
        // SAFETY: a structure of this stack, zeroed and then filled, and a number; both
        // outlive the call.
        let status = unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = libc::SIGCONT;
            libc::syscall(
                libc::SYS_timer_create,
                libc::CLOCK_MONOTONIC,
                &raw mut event,
                &raw mut timer,
            )
        };
        WakeTimer { timer: (status == 0).then_some(timer) }
    }

    /// Starts or restarts the timer. Called before each wait, because stopping a process
    /// discards a pending SIGCONT.
    pub(super) fn start(self, interval: Duration) {
        let Some(own) = self.timer else { return };
        let interval = to_timespec(interval);
        let times = libc::itimerspec { it_interval: interval, it_value: interval };
        // SAFETY: `times` outlives the call, which writes nothing.
        unsafe {
            libc::syscall(
                libc::SYS_timer_settime,
                own,
                0,
                &raw const times,
                ptr::null_mut::<libc::itimerspec>(),
            )
        };
    }
}

/// State of the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunnerState {
    /// It is not stopped.
    Running,
    /// It is stopped.
    Stopped,
    /// It is stopped, and a signal that requests its end is pending.
    SignalPending,
    /// It is ending: its memory is already released. Among thousands of processes that map
    /// the same libraries the rest can take seconds.
    Ending,
}

/// Reads the runner's state. If it is stopped with a pending request to end, continues it, so
/// that it can end.
pub(super) fn check_runner(runner: pid_t) -> RunnerState {
    let mut text = [0; limits::PROC_STATUS_BYTES];
    let Some(status) = process_tree::read_file(runner, "/status", &mut text) else {
        return RunnerState::Running;
    };
    let found = parse_status(status);
    if found == RunnerState::SignalPending {
        kill(runner, libc::SIGCONT);
    }
    found
}

/// Parses `/proc/PID/status`.
fn parse_status(status: &[u8]) -> RunnerState {
    const ENDING: u64 =
        bit(libc::SIGHUP) | bit(libc::SIGINT) | bit(libc::SIGQUIT) | bit(libc::SIGTERM);
    let (mut is_stopped, mut has_memory, mut pending) = (false, false, 0);
    for line in status.split(|byte| *byte == b'\n') {
        if let Some(state) = line.strip_prefix(b"State:\t") {
            is_stopped = state.starts_with(b"T");
        }
        has_memory |= line.starts_with(b"VmSize:");
        let of_thread = line.strip_prefix(b"SigPnd:\t");
        if let Some(set) = of_thread.or(line.strip_prefix(b"ShdPnd:\t")) {
            pending |= parse_hexadecimal(set);
        }
    }
    // A process that has not run since it was stopped does not show it yet.
    is_stopped |= pending & bit(libc::SIGSTOP) != 0;
    match (is_stopped, has_memory) {
        (_, false) => RunnerState::Ending,
        (false, true) => RunnerState::Running,
        (true, true) if pending & ENDING != 0 => RunnerState::SignalPending,
        (true, true) => RunnerState::Stopped,
    }
}

const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

fn parse_hexadecimal(digits: &[u8]) -> u64 {
    let digits = str::from_utf8(digits).unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_file_gives_the_state() {
        let table: &[(&str, RunnerState)] = &[
            (
                "State:\tT (stopped)\nVmSize:\t1 kB\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000002\n",
                RunnerState::SignalPending,
            ),
            (
                "State:\tT (stopped)\nVmSize:\t1 kB\nSigPnd:\t0000000000004000\nShdPnd:\t0000000000000000\n",
                RunnerState::SignalPending,
            ),
            (
                "State:\tT (stopped)\nVmSize:\t1 kB\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000010000\n",
                RunnerState::Stopped,
            ),
            (
                "State:\tR (running)\nVmSize:\t1 kB\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000040000\n",
                RunnerState::Stopped,
            ),
            (
                "State:\tS (sleeping)\nVmSize:\t1 kB\nShdPnd:\t0000000000000002\n",
                RunnerState::Running,
            ),
            ("State:\tt (tracing stop)\nVmSize:\t1 kB\n", RunnerState::Running),
            ("State:\tD (disk sleep)\nShdPnd:\t0000000000000000\n", RunnerState::Ending),
        ];
        for (status, expected) in table {
            assert_eq!(parse_status(status.as_bytes()), *expected, "{status}");
        }
    }
}
