//! Finding and killing every descendant of a process.
//!
//! `/proc` tells who descends from whom; where it is missing `waitid` tells who
//! is a child. The guardian calls this after `fork` in what may have been a
//! program with threads: no allocation, no locks, no panic; system calls and the
//! stack only. When to kill is not decided here.

use std::ffi::CStr;
use std::mem;
use std::ptr;

use crate::limits;
use libc::{c_int, pid_t};

use super::listing::visit_names;

/// A process, as `/proc` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) struct Process {
    pub(in crate::world) pid: pid_t,
    pub(in crate::world) parent: pid_t,
    pub(in crate::world) group: pid_t,
    pub(in crate::world) session: pid_t,
    /// A zombie has ended; only its parent does not know yet.
    pub(in crate::world) zombie: bool,
}

/// Kills every process below `root`, but nothing at or below one of `spared`.
/// One round: what starts meanwhile is left for the next. `false` where `/proc`
/// cannot tell.
pub(in crate::world) fn kill_tree(root: pid_t, spared: &[pid_t]) -> bool {
    // A group gets its signal in one stroke, so nobody in it can fork away.
    let mut last_group = 0;
    visit_tree(root, spared, |process| {
        if process.group != last_group && kill_one(process) {
            last_group = process.group;
        }
    })
}

/// Shows every process below `root`, parents before their children as a rule.
/// `false` where `/proc` cannot tell.
pub(in crate::world) fn visit_tree(
    root: pid_t,
    spared: &[pid_t],
    mut visit: impl FnMut(&Process),
) -> bool {
    let mut tree = [0; limits::FAMILY];
    let mut size = 0;
    visit_all(|pid| {
        let Some(process) = read_process(pid) else {
            return;
        };
        // The listing is in order of numbers, and so is the tree.
        let known = tree.get(..size).unwrap_or_default();
        let below = process.parent == root || known.binary_search(&process.parent).is_ok();
        if below && !spared.contains(&pid) {
            if let Some(place) = tree.get_mut(size) {
                *place = pid;
                size += 1;
            }
            visit(&process);
        }
    })
}

/// Kills a process of the script's, and its group. The number may have passed
/// to a stranger since it was read: hold the process, look whether it lies in a
/// session of the script's, then strike. Returns whether it was there to be killed.
fn kill_one(process: &Process) -> bool {
    // SAFETY: plain numbers; the descriptor is closed here.
    unsafe {
        let held = libc::syscall(libc::SYS_pidfd_open, process.pid, 0);
        let killed = libc::getsid(process.pid) == process.session
            && if held < 0 {
                // A kernel before 5.3.
                libc::kill(process.pid, libc::SIGKILL) == 0
            } else {
                let info = ptr::null::<libc::siginfo_t>();
                libc::syscall(libc::SYS_pidfd_send_signal, held, libc::SIGKILL, info, 0) == 0
            };
        if killed {
            kill_group(process.group);
        }
        if let Ok(held @ 0..) = c_int::try_from(held) {
            libc::close(held);
        }
        killed
    }
}

/// Kills a group of the script's. All its members descend from the script:
/// a group lies in one session, and the script began its own.
pub(super) unsafe fn kill_group(group: pid_t) {
    // SAFETY: plain numbers.
    unsafe {
        if group > 1 && group != libc::getpgrp() {
            libc::kill(-group, libc::SIGKILL);
        }
    }
}

/// Lists the numbers in `/proc`, in ascending order. `false` where there is no
/// `/proc`, or one of another namespace.
pub(super) fn visit_all(mut visit: impl FnMut(pid_t)) -> bool {
    let mut target = [0u8; 16];
    // SAFETY: at most its length is written to `target`; the descriptor is closed
    // here.
    unsafe {
        let length =
            libc::readlink(c"/proc/self".as_ptr(), target.as_mut_ptr().cast(), target.len());
        let own = usize::try_from(length).ok().and_then(|length| target.get(..length));
        if own.and_then(parse) != Some(libc::getpid()) {
            return false;
        }
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let folder = libc::open(c"/proc".as_ptr(), flags);
        if folder < 0 {
            return false;
        }
        visit_names(folder, &mut |name| {
            if let Some(pid) = parse(name.to_bytes()) {
                visit(pid);
            }
        });
        libc::close(folder);
    }
    true
}

/// Shows all children of this process without `/proc`: `waitid` knows for each
/// number whether it is a child. Numbers are given in order, so only those from
/// the script's to the newest come into question.
pub(super) fn visit_children_blindly(script: pid_t, mut visit: impl FnMut(pid_t)) {
    // SAFETY: the forked child does nothing but end; the result of `waitid` goes
    // to a local.
    unsafe {
        let newest = libc::fork();
        if newest == 0 {
            libc::_exit(0);
        }
        let ranges = match newest {
            -1 => [script..limits::PID_MAX, 1..script],
            newest if newest < script => [script..limits::PID_MAX, 1..newest],
            newest => [script..newest, 0..0],
        };
        for pid in ranges.into_iter().flatten() {
            let mut info: libc::siginfo_t = mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let known = libc::waitid(libc::P_PID, pid.unsigned_abs(), &raw mut info, flags) == 0;
            // One that has ended gives its number, one that lives gives none.
            if known && info.si_pid() == 0 {
                visit(pid);
            }
        }
    }
}

/// Reads `/proc/PID/stat`.
fn read_process(pid: pid_t) -> Option<Process> {
    let mut line = [0u8; 256];
    parse_stat(pid, read_file(pid, b"/stat", &mut line)?)
}

/// Reads the beginning of a process's file in `/proc`, `name` of at most 7 bytes.
pub(super) fn read_file<'t>(pid: pid_t, name: &[u8], text: &'t mut [u8]) -> Option<&'t [u8]> {
    // "/proc/", at most ten digits, the name, and the end.
    let mut path = *b"/proc/\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut divisor = 1;
    while pid / divisor >= 10 {
        divisor *= 10;
    }
    let mut at = 6;
    while divisor > 0 {
        *path.get_mut(at)? = b'0' + u8::try_from(pid / divisor % 10).ok()?;
        divisor /= 10;
        at += 1;
    }
    path.get_mut(at..at + name.len())?.copy_from_slice(name);
    read(CStr::from_bytes_until_nul(&path).ok()?, text)
}

/// Reads the beginning of a file.
pub(super) fn read<'t>(path: &CStr, text: &'t mut [u8]) -> Option<&'t [u8]> {
    // SAFETY: the path ends in NUL; at most its length is read into `text`; the
    // descriptor is closed here.
    let length = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        length
    };
    text.get(..usize::try_from(length).ok()?)
}

/// Reads "PID (NAME) STATE PARENT GROUP SESSION …"; the name may hold anything.
fn parse_stat(pid: pid_t, line: &[u8]) -> Option<Process> {
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let mut fields = line.get(end + 2..)?.split(|byte| *byte == b' ');
    let zombie = matches!(fields.next()?, b"Z" | b"X");
    let parent = fields.next().and_then(parse)?;
    let group = fields.next().and_then(parse)?;
    let session = fields.next().and_then(parse)?;
    Some(Process { pid, parent, group, session, zombie })
}

/// A number, if it is nothing else.
pub(super) fn parse(digits: &[u8]) -> Option<pid_t> {
    let add = |number: pid_t, digit: &u8| {
        let digit = digit.is_ascii_digit().then(|| pid_t::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_stat_line() {
        let process = |zombie| Some(Process { pid: 7, parent: 12, group: 3, session: 2, zombie });
        let table: &[(&[u8], _)] = &[
            (b"7 (cat) S 12 3 2 0 -1", process(false)),
            (b"7 (a) Z 1 1 (b) Z 12 3 2 0", process(true)),
            (b"7 () S 1 1) S 12 3 2 ", process(false)),
            (b"7 (\xff\n) R 12 3 2", process(false)),
            (b"7 (cat) S 12", None),
            (b"7 (cat)", None),
            (b"7 (cat) S -1 3 ", None),
            (b"", None),
        ];
        for (line, expected) in table {
            assert_eq!(parse_stat(7, line), *expected);
        }
        assert_eq!(parse(b"99999999999"), None);
    }

    #[test]
    fn proc_shows_this_process_below_its_parent() {
        // SAFETY: always succeed.
        let (own, parent) = unsafe { (libc::getpid(), libc::getppid()) };
        assert_eq!(read_process(own).map(|process| process.parent), Some(parent));
        let mut found = false;
        assert!(visit_tree(parent, &[], |process| found |= process.pid == own));
        assert!(found);
        assert!(visit_tree(parent, &[own], |process| assert_ne!(process.pid, own)));
    }
}
