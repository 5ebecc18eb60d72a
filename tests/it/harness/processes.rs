//! Running processes, read from `/proc`.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Returns the running processes whose environment or command line contains `marker`, except the
/// test itself. The folder of a [`super::Test`] is a good marker: it is in the `HOME` of all
/// processes that the program starts.
///
/// Only root can read the environment of a process that is not dumpable. Other users find such a
/// process by its command line, or with [`process_tree`].
pub(crate) fn processes_with_marker(marker: &str) -> Vec<i32> {
    let contains = |file: String| {
        let bytes = fs::read(file).unwrap_or_default();
        bytes.windows(marker.len()).any(|window| window == marker.as_bytes())
    };
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    all_pids()
        .filter(|&pid| pid != own && is_alive(pid))
        .filter(|pid| {
            contains(format!("/proc/{pid}/environ")) || contains(format!("/proc/{pid}/cmdline"))
        })
        .collect()
}

/// Returns a process and its current descendants.
pub(crate) fn process_tree(pid: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> =
        all_pids().filter_map(|child| Some((child, stat(child)?.1))).collect();
    let mut tree = vec![pid];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        tree.extend(
            parents.iter().filter(|(_, its_parent)| *its_parent == parent).map(|(child, _)| *child),
        );
        next += 1;
    }
    tree
}

/// Whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// Polls until the condition holds. Returns whether it did before the timeout.
#[must_use]
pub(crate) fn wait_until(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the highest memory use of a running process, in KiB.
pub(super) fn peak_memory_kib(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

fn all_pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the state and the parent of a process. The process name, which precedes them in the
/// file, may contain spaces and parentheses.
fn stat(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
