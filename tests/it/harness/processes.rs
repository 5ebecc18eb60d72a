//! Who is still alive, as `/proc` tells it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// The living processes whose environment or command line contains `marker`,
/// but for the test itself. A [`super::Test`]'s own folder is a good marker:
/// it is the `HOME` of everything that the program starts.
///
/// A process that made itself undumpable shows its environment to root only;
/// elsewhere it is found by its command line, or with [`family_of`].
pub(crate) fn processes_with_marker(marker: &str) -> Vec<i32> {
    let contains = |file: String| {
        let bytes = fs::read(file).unwrap_or_default();
        bytes.windows(marker.len()).any(|window| window == marker.as_bytes())
    };
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    all()
        .filter(|&pid| pid != own && is_alive(pid))
        .filter(|pid| {
            contains(format!("/proc/{pid}/environ")) || contains(format!("/proc/{pid}/cmdline"))
        })
        .collect()
}

/// A process and everything that descends from it at this moment.
pub(crate) fn family_of(pid: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> =
        all().filter_map(|child| Some((child, stat(child)?.1))).collect();
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    family
}

/// Whether a process exists and is no zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// Looks every few milliseconds until the condition holds; whether it did in time.
#[must_use]
pub(crate) fn wait_until(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
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

/// The most memory that a living process ever held, in KiB.
pub(super) fn peak_memory_kib(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// State and parent. The name before them may hold spaces and brackets.
fn stat(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
