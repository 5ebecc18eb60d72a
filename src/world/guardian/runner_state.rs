//! What a script without a sandbox can do to the processes that watch it, undone as
//! far as that goes: it can stop them, as it may signal whatever its user may.
//!
//! Called after `fork`: no allocation, no locks, no panic.

use std::mem;
use std::ptr;
use std::time::Duration;

use crate::limits;
use libc::{c_int, pid_t};

use super::{process_tree, to_timespec};

/// A timer that continues this process whenever it was stopped.
#[derive(Clone, Copy)]
pub(super) struct WakeTimer {
    timer: Option<c_int>,
}

/// `struct itimerspec` of `timer_settime(2)`.
#[repr(C)]
struct TimerSpec {
    interval: libc::timespec,
    first: libc::timespec,
}

impl WakeTimer {
    /// Not running yet.
    pub(super) fn new() -> WakeTimer {
        let mut timer: c_int = 0;
        // SAFETY: zeroed, then filled, structures of this stack that outlive the call.
        let made = unsafe {
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
        WakeTimer { timer: (made == 0).then_some(timer) }
    }

    /// Starts it anew. Before each wait, as a stop takes a signal away that is on its way.
    pub(super) fn start(self, interval: Duration) {
        let Some(own) = self.timer else { return };
        let times = TimerSpec { interval: to_timespec(interval), first: to_timespec(interval) };
        // SAFETY: `times` outlives the call, which writes nothing.
        unsafe {
            libc::syscall(
                libc::SYS_timer_settime,
                own,
                0,
                &raw const times,
                ptr::null_mut::<TimerSpec>(),
            )
        };
    }
}

/// How the runner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunnerState {
    /// Nothing keeps it from its work.
    Lives,
    /// It is stopped, and stays so.
    Stopped,
    /// It is stopped, and a signal that ends it is pending.
    Called,
    /// It is about to be gone: its memory is given back already, which among thousands
    /// of processes that map the same libraries takes seconds.
    Ends,
}

/// Looks how the runner is, and continues it if it is to end, so that it can.
pub(super) fn look(runner: pid_t) -> RunnerState {
    let mut text = [0; limits::PROC_STATUS_BYTES];
    let Some(status) = process_tree::read_file(runner, b"/status", &mut text) else {
        return RunnerState::Lives;
    };
    let found = judge(status);
    if found == RunnerState::Called {
        // SAFETY: plain numbers; the caller vouches for the process.
        unsafe { libc::kill(runner, libc::SIGCONT) };
    }
    found
}

/// What `/proc/PID/status` says.
fn judge(status: &[u8]) -> RunnerState {
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
    match (is_stopped, has_memory) {
        (_, false) => RunnerState::Ends,
        (false, true) => RunnerState::Lives,
        (true, true) if pending & ENDING != 0 => RunnerState::Called,
        (true, true) => RunnerState::Stopped,
    }
}

const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

fn parse_hexadecimal(digits: &[u8]) -> u64 {
    let add = |number: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(16).unwrap_or(0);
        number << 4 | u64::from(digit)
    };
    digits.iter().fold(0, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_how_the_runner_is() {
        let table: &[(&str, RunnerState)] = &[
            (
                "State:\tT (stopped)\nVmSize:\t1 kB\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000002\n",
                RunnerState::Called,
            ),
            (
                "State:\tT (stopped)\nVmSize:\t1 kB\nSigPnd:\t0000000000004000\nShdPnd:\t0000000000000000\n",
                RunnerState::Called,
            ),
            (
                "State:\tT (stopped)\nVmSize:\t1 kB\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000010000\n",
                RunnerState::Stopped,
            ),
            (
                "State:\tS (sleeping)\nVmSize:\t1 kB\nShdPnd:\t0000000000000002\n",
                RunnerState::Lives,
            ),
            ("State:\tt (tracing stop)\nVmSize:\t1 kB\n", RunnerState::Lives),
            ("State:\tD (disk sleep)\nShdPnd:\t0000000000000000\n", RunnerState::Ends),
        ];
        for (status, expected) in table {
            assert_eq!(judge(status.as_bytes()), *expected, "{status}");
        }
    }
}
