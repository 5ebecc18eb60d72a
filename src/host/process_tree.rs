//! Finds and kills every descendant of a process.
//!
//! Descent is read from `/proc`; where it is missing, `waitid` shows which processes are
//! children. The guardian calls this after `fork` in a process that may have had threads, so
//! it must not allocate, lock or panic: only system calls and the stack. The caller decides
//! when to kill.

use std::ffi::CStr;
use std::io::Write as _;
use std::mem;
use std::ptr;

use base::limits;
use libc::{c_int, pid_t};

use super::after_fork::kill;
use super::listing::visit_names;

/// A process, as `/proc` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: pid_t,
    pub(super) parent: pid_t,
    pub(super) group: pid_t,
    pub(super) session: pid_t,
    /// Whether it has ended and is not reaped yet.
    pub(super) is_zombie: bool,
}

/// Kills every descendant of `root`, except the processes `spared` and their descendants, once:
/// processes that are started during the pass may survive. Returns false if `/proc` is not usable.
pub(super) fn kill_tree(root: pid_t, spared: &[pid_t]) -> bool {
    // A group is signalled atomically, so none of its processes can escape by forking.
    let mut last_group = 0;
    visit_tree(root, spared, |process| {
        if process.group != last_group && kill_one(process) {
            last_group = process.group;
        }
    })
}

/// Calls `visit` with every descendant of `root`, usually parents before their children. Returns
/// false if `/proc` is not usable.
pub(super) fn visit_tree(root: pid_t, spared: &[pid_t], mut visit: impl FnMut(&Process)) -> bool {
    let mut tree = [0; limits::PROCESSES_PER_ROUND];
    let mut size = 0;
    visit_all(|pid| {
        let Some(process) = read_process(pid) else {
            return;
        };
        // The listing is sorted by process ID, and so is the tree.
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

/// Kills a process of the script and its group. Returns whether the process still existed.
///
/// Its ID may have been reused by a foreign process since it was read. So this first opens the
/// process (pidfd), then checks that it is still in the same session, then kills it.
fn kill_one(process: &Process) -> bool {
    // SAFETY: plain numbers; the descriptor is closed here.
    unsafe {
        let held = libc::syscall(libc::SYS_pidfd_open, process.pid, 0);
        let killed = libc::getsid(process.pid) == process.session
            && if held < 0 {
                // Kernels before 5.3 have no pidfd.
                kill(process.pid, libc::SIGKILL)
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

/// Kills a process group of the script. All its members descend from the script: a group
/// belongs to one session, and the script started its own.
pub(super) fn kill_group(group: pid_t) {
    // SAFETY: no arguments, and it always succeeds.
    if group > 1 && group != unsafe { libc::getpgrp() } {
        kill(-group, libc::SIGKILL);
    }
}

/// Calls `visit` with the process IDs in `/proc`, in ascending order. Returns false if there is
/// no `/proc`, or if it belongs to another PID namespace.
pub(super) fn visit_all(mut visit: impl FnMut(pid_t)) -> bool {
    let mut target = [0u8; 16];
    // SAFETY: at most the length of `target` is written to it; the descriptor is closed
    // here.
    unsafe {
        let length =
            libc::readlink(c"/proc/self".as_ptr(), target.as_mut_ptr().cast(), target.len());
        let own = usize::try_from(length).ok().and_then(|length| target.get(..length));
        if own.and_then(parse_number) != Some(libc::getpid()) {
            return false;
        }
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let folder = libc::open(c"/proc".as_ptr(), flags);
        if folder < 0 {
            return false;
        }
        visit_names(folder, &mut |name| {
            if let Some(pid) = parse_number(name.to_bytes()) {
                visit(pid);
            }
        });
        libc::close(folder);
    }
    true
}

/// Calls `visit` with all living children of this process, without `/proc`: `waitid` reports
/// for each ID whether it is a child. IDs are assigned in order, so only those from the
/// script's to the most recent are tried.
pub(super) fn visit_children_without_proc(script: pid_t, mut visit: impl FnMut(pid_t)) {
    // SAFETY: the forked child only ends; the result of `waitid` is written to a local
    // variable.
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
            // For a child that is alive `waitid` leaves the ID 0.
            if known && info.si_pid() == 0 {
                visit(pid);
            }
        }
    }
}

/// Reads `/proc/PID/stat`.
fn read_process(pid: pid_t) -> Option<Process> {
    let mut line = [0u8; 256];
    parse_stat(pid, read_file(pid, "/stat", &mut line)?)
}

/// Reads the start of a process's file in `/proc`; `name` has at most 7 bytes.
pub(super) fn read_file<'t>(pid: pid_t, name: &str, text: &'t mut [u8]) -> Option<&'t [u8]> {
    // "/proc/", at most ten digits, the name, and NUL.
    let mut path = [0; 24];
    write!(&mut path[..], "/proc/{pid}{name}").ok()?;
    read(CStr::from_bytes_until_nul(&path).ok()?, text)
}

/// Reads the start of a file.
pub(super) fn read<'t>(path: &CStr, text: &'t mut [u8]) -> Option<&'t [u8]> {
    // SAFETY: the path ends with NUL; at most the length of `text` is read into it; the
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

/// Parses "PID (NAME) STATE PARENT GROUP SESSION …". The name may contain any byte.
fn parse_stat(pid: pid_t, line: &[u8]) -> Option<Process> {
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let mut fields = line.get(end + 2..)?.split(|byte| *byte == b' ');
    let zombie = matches!(fields.next()?, b"Z" | b"X");
    let parent = fields.next().and_then(parse_number)?;
    let group = fields.next().and_then(parse_number)?;
    let session = fields.next().and_then(parse_number)?;
    Some(Process { pid, parent, group, session, is_zombie: zombie })
}

/// Parses a number that is not negative.
pub(super) fn parse_number(digits: &[u8]) -> Option<pid_t> {
    str::from_utf8(digits).ok()?.parse().ok().filter(|number| *number >= 0)
}

#[cfg(test)]
mod tests {
    use nix::unistd::{getpid, getppid};

    use super::*;

    #[test]
    fn a_name_cannot_forge_a_stat_line() {
        let process =
            |zombie| Some(Process { pid: 7, parent: 12, group: 3, session: 2, is_zombie: zombie });
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
        assert_eq!(parse_number(b"99999999999"), None);
    }

    #[test]
    fn proc_shows_this_process_below_its_parent() {
        let (own, parent) = (getpid().as_raw(), getppid().as_raw());
        assert_eq!(read_process(own).map(|process| process.parent), Some(parent));
        let mut found = false;
        assert!(visit_tree(parent, &[], |process| found |= process.pid == own));
        assert!(found);
        assert!(visit_tree(parent, &[own], |process| assert_ne!(process.pid, own)));
    }
}
