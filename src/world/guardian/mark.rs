//! The mark by which a guardian knows its script's processes at a glance.
//!
//! A limit on resources that restricts nothing (the time of a real-time process
//! between two waits, of which every system gives any amount) holds the guardian's
//! number. Every process that a script starts inherits it, and one system call reads
//! it, where `/proc` takes fifteen times as long: only so does stopping outrun a
//! script that starts processes as fast as it can. The mark can be lost (a script may
//! lower the limit, another user's process hides it), so it only ever decides whom to
//! stop first; whom to kill is read from `/proc`.
//!
//! Called after `fork`: no allocation, no locks, no panic.

use std::mem;
use std::ptr;

use crate::limits;
use libc::{c_long, pid_t, rlimit64};

use super::process_tree::{self, visit_all};

/// Marks this process and all that it will start. Without effect where the limit is
/// lower already.
pub(super) fn put_on(guardian: pid_t) {
    let limit = limit_of(guardian);
    // SAFETY: 0 is this process; `limit` outlives the call, and nothing is written.
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

/// From which end the numbers of processes are walked over. The guardian and the runner
/// begin at different ones, so that each does half of the work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::world) enum First {
    /// The smallest number.
    Oldest,
    /// The number that was given last.
    Newest,
}

/// Stops every process that bears this guardian's mark, again and again until a pass
/// finds no more than the one before: what is stopped starts no other.
pub(in crate::world) fn stop_marked(guardian: pid_t, first: First) {
    let mut last = 0;
    for _ in 0..limits::STOPPING_PASSES {
        let mut count = 0;
        visit_since(guardian, first, |pid| {
            count += u32::from(stop(pid, guardian));
        });
        if count == last {
            return;
        }
        last = count;
    }
}

/// Shows the numbers of all processes that may be younger than this one: a walk over the
/// numbers themselves takes a third of the time of a listing, unless they are many.
fn visit_since(oldest: pid_t, first: First, mut visit: impl FnMut(pid_t)) {
    let newest = newest().unwrap_or(0);
    if !(oldest..oldest.saturating_add(limits::NUMBERS_WALKED)).contains(&newest) {
        visit_all(&mut visit);
    } else if first == First::Oldest {
        (oldest..=newest).for_each(visit);
    } else {
        (oldest..=newest).rev().for_each(visit);
    }
}

/// The number that was given last, the last word of `/proc/loadavg`.
fn newest() -> Option<pid_t> {
    let mut text = [0; 128];
    let line = process_tree::read(c"/proc/loadavg", &mut text)?;
    process_tree::parse(line.trim_ascii_end().rsplit(|byte| *byte == b' ').next()?)
}

/// Stops a process if it bears the mark. Returns whether it does.
fn stop(pid: pid_t, guardian: pid_t) -> bool {
    if !is_marked(pid, guardian) {
        return false;
    }
    // SAFETY: plain numbers.
    unsafe { libc::kill(pid, libc::SIGSTOP) == 0 }
}

fn is_marked(pid: pid_t, guardian: pid_t) -> bool {
    let mark = limit_of(guardian);
    // SAFETY: nothing is changed; the answer goes to a structure of this stack.
    unsafe {
        let mut limit: rlimit64 = mem::zeroed();
        let answer = libc::syscall(
            libc::SYS_prlimit64,
            pid,
            c_long::from(libc::RLIMIT_RTTIME),
            ptr::null::<rlimit64>(),
            &raw mut limit,
        );
        answer == 0 && limit.rlim_max == mark.rlim_max
    }
}

fn limit_of(guardian: pid_t) -> rlimit64 {
    let limit = limits::MARK_MICROSECONDS + u64::from(guardian.unsigned_abs());
    rlimit64 { rlim_cur: limit, rlim_max: limit }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio, id};

    use super::*;

    /// A process in a session of its own bears the mark and is stopped; one without the
    /// mark is not.
    #[test]
    fn what_a_marked_process_starts_is_stopped() {
        let own = pid_t::try_from(id()).unwrap();
        let start = |marked: bool| {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "setsid sleep 60 & echo $!; wait"]);
            // SAFETY: one system call.
            unsafe {
                shell.pre_exec(move || {
                    if marked {
                        put_on(own);
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
        for first in [First::Oldest, First::Newest] {
            stop_marked(own, first);
            let until = super::super::now() + limits::GUARDIAN_LOOK * 20;
            while !is_stopped(inner) && super::super::now() < until {
                std::thread::yield_now();
            }
            assert!(is_stopped(inner) && !is_stopped(free));
            // SAFETY: a process of this test's.
            unsafe { libc::kill(inner, libc::SIGCONT) };
        }
        for pid in [inner, free] {
            // SAFETY: as above.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        marked.kill().unwrap();
        other.kill().unwrap();
        marked.wait().unwrap();
        other.wait().unwrap();
    }
}
