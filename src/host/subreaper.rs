//! Orphans of scripts: which process adopts them, and killing those that this process has
//! adopted from a guardian that was killed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{fs, process, thread};

use base::limits;
use libc::{c_int, pid_t};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use super::after_fork::set_attribute;
use super::process_tree::{kill_tree, visit_tree};

/// Whether [`kill_adopted`] may kill all children of this process except [`HOST_CHILDREN`].
static SUBREAPER: AtomicBool = AtomicBool::new(false);
/// Children that this process had before it started its first script.
static HOST_CHILDREN: OnceLock<Vec<pid_t>> = OnceLock::new();

/// Makes this process the subreaper of a killed guardian's processes, so that even they are
/// killed. To be called once at the start of a program that starts children only through
/// `process::run`; not by the host of a library, whose own children would be killed.
pub fn become_subreaper() {
    SUBREAPER.store(true, Ordering::Relaxed);
}

/// Makes this process, or otherwise the system's first process, adopt the orphans of programs
/// that are started from now on. Without effect in the host of a library.
pub(super) fn adopt_orphans(is_wanted: bool) {
    if SUBREAPER.load(Ordering::Relaxed) {
        HOST_CHILDREN.get_or_init(|| {
            // Not every kernel has this file; searching `/proc` takes longer.
            match fs::read_to_string("/proc/thread-self/children") {
                Ok(list) => list.split(' ').filter_map(|pid| pid.parse().ok()).collect(),
                Err(_) => own_children(&[]),
            }
        });
        set_attribute(libc::PR_SET_CHILD_SUBREAPER, c_int::from(is_wanted));
    }
}

/// Kills and reaps the orphans of a lost guardian, which this process has adopted. `stop`
/// stops those that can be found quickly.
pub(super) fn kill_adopted(stop: impl Fn()) {
    let Some(foreign) = HOST_CHILDREN.get() else { return };
    let since = Instant::now();
    while since.elapsed() < limits::ORPHAN_SEARCH {
        let children = own_children(foreign);
        if children.is_empty() {
            return;
        }
        stop();
        kill_tree(own_pid(), foreign);
        thread::sleep(limits::SWEEP_ROUND);
        for child in children {
            let _ = waitpid(Pid::from_raw(child), Some(WaitPidFlag::WNOHANG));
        }
    }
}

/// The children of this process except those `spared`.
fn own_children(spared: &[pid_t]) -> Vec<pid_t> {
    let own = own_pid();
    let mut children = Vec::new();
    visit_tree(own, spared, |process| {
        if process.parent == own {
            children.push(process.pid);
        }
    });
    children
}

pub(super) fn own_pid() -> pid_t {
    pid_t::try_from(process::id()).unwrap_or(0)
}
