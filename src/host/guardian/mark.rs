//! Mark by which a guardian recognizes its script's processes quickly.
//!
//! The mark is a resource limit that restricts nothing (`RLIMIT_RTTIME`, the time of a
//! real-time process between two waits, set far above any real value) and contains the
//! guardian's process ID. Every process that a script starts inherits it, and one system call
//! reads it; `/proc` takes fifteen times as long. Only so can stopping processes be faster than
//! a script that starts them as fast as it can. The mark can be missing (a script may lower the
//! limit, and another user's process hides it), so it only decides which processes are stopped
//! first; which are killed is decided by `/proc`.
//!
//! Called after `fork`: no allocation, no locks, no panic.

use std::ptr;

use base::limits;
use libc::{c_long, pid_t, rlimit64};

use crate::after_fork::kill;
use crate::process_tree::{self, visit_all};

/// Marks this process and all its future children. Without effect where the limit is already
/// lower.
pub(super) fn mark_self(guardian: pid_t) {
    let limit = mark_of(guardian);
    // SAFETY: 0 means this process. `limit` outlives the call, which writes nothing.
    unsafe {
        libc::syscall(
            libc::SYS_prlimit64,
            0,
            c_long::from(libc::RLIMIT_RTTIME),
            &raw const limit,
            ptr::null_mut::<rlimit64>(),
        );
    }
}

/// Order in which process IDs are scanned. The guardian and the runner start at opposite ends,
/// so that each does half of the work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanOrder {
    /// From the smallest process ID up.
    OldestFirst,
    /// From the most recent process ID down.
    NewestFirst,
}

/// Stops every process with this guardian's mark, in passes, until a pass finds no more than
/// the one before: stopped processes start no others.
pub(crate) fn stop_marked(guardian: pid_t, first: ScanOrder) {
    let mut last = 0;
    for _ in 0..limits::STOPPING_PASSES {
        let mut count = 0;
        visit_pids_from(guardian, first, |pid| {
            count += u32::from(stop_if_marked(pid, guardian));
        });
        if count == last {
            return;
        }
        last = count;
    }
}

/// Calls `visit` with the IDs of all processes that may be younger than this one. Trying each
/// number takes a third of the time of listing `/proc`, unless there are too many numbers.
fn visit_pids_from(oldest: pid_t, first: ScanOrder, mut visit: impl FnMut(pid_t)) {
    let newest = newest_pid().unwrap_or(0);
    if !(oldest..oldest.saturating_add(limits::PIDS_WALKED)).contains(&newest) {
        visit_all(&mut visit);
    } else if first == ScanOrder::OldestFirst {
        (oldest..=newest).for_each(visit);
    } else {
        (oldest..=newest).rev().for_each(visit);
    }
}

/// The most recent process ID: the last word of `/proc/loadavg`.
fn newest_pid() -> Option<pid_t> {
    let mut text = [0; 128];
    let line = process_tree::read(c"/proc/loadavg", &mut text)?;
    process_tree::parse_number(line.trim_ascii_end().rsplit(|byte| *byte == b' ').next()?)
}

/// Stops a process if it has the mark. Returns whether it was stopped.
fn stop_if_marked(pid: pid_t, guardian: pid_t) -> bool {
    read_mark(pid) == Some(mark_of(guardian).rlim_max) && kill(pid, libc::SIGSTOP)
}

/// The limit that is the mark, of this process (0) or another.
fn read_mark(pid: pid_t) -> Option<u64> {
    let mut limit = rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads a limit into a structure of this stack and changes nothing.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_prlimit64,
            pid,
            c_long::from(libc::RLIMIT_RTTIME),
            ptr::null::<rlimit64>(),
            &raw mut limit,
        )
    };
    (answer == 0).then_some(limit.rlim_max)
}

/// Whether this process was started by a script or command of this program, at whatever distance.
pub fn is_in_script() -> bool {
    let pid = read_mark(0).and_then(|mark| mark.checked_sub(limits::MARK_MICROSECONDS));
    pid.is_some_and(|pid| u32::try_from(pid).is_ok())
}

fn mark_of(guardian: pid_t) -> rlimit64 {
    let limit = limits::MARK_MICROSECONDS + u64::from(guardian.unsigned_abs());
    rlimit64 { rlim_cur: limit, rlim_max: limit }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio, id};

    use super::*;
    use crate::after_fork::now;

    /// A process in its own session inherits the mark and is stopped; one without the mark is
    /// not.
    #[test]
    fn children_of_a_marked_process_are_stopped() {
        let own = pid_t::try_from(id()).unwrap();
        let start = |marked: bool| {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "setsid sleep 60 & echo $!; wait"]);
            // SAFETY: one system call.
            unsafe {
                shell.pre_exec(move || {
                    if marked {
                        mark_self(own);
                    }
                    Ok(())
                });
            }
            let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            let mut lines = BufReader::new(child.stdout.take().unwrap());
            lines.read_line(&mut line).unwrap();
            (child, line.trim().parse::<pid_t>().unwrap())
        };
        let is_stopped = |pid: pid_t| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            line.contains(") T ")
        };
        let (mut marked, inner) = start(true);
        let (mut other, free) = start(false);
        for first in [ScanOrder::OldestFirst, ScanOrder::NewestFirst] {
            stop_marked(own, first);
            let until = now() + limits::GUARDIAN_POLL * 20;
            while !is_stopped(inner) && now() < until {
                std::thread::yield_now();
            }
            assert!(is_stopped(inner) && !is_stopped(free));
            assert!(kill(inner, libc::SIGCONT));
        }
        for pid in [inner, free] {
            assert!(kill(pid, libc::SIGKILL));
        }
        marked.kill().unwrap();
        other.kill().unwrap();
        marked.wait().unwrap();
        other.wait().unwrap();
    }
}
