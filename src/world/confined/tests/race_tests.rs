//! Files and links that another process swaps while they are opened.

use super::*;
use crate::world::after_fork::close_from;

/// Process that swaps inside entries with links to the outside, until dropped.
struct Swapper(libc::pid_t);

impl Swapper {
    fn start(pairs: &[(PathBuf, PathBuf)]) -> Swapper {
        let name = |path: &PathBuf| CString::new(path.to_str().unwrap()).unwrap();
        let pairs: Vec<_> = pairs.iter().map(|(one, other)| (name(one), name(other))).collect();
        // SAFETY: after the fork the child only makes system calls, on memory that was
        // allocated before, and never returns.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0);
            if child == 0 {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // Closes other tests' descriptors: their pipes, ports and locks would stay
                // open.
                close_from(0);
                loop {
                    for (one, other) in &pairs {
                        let exchanged = libc::syscall(
                            libc::SYS_renameat2,
                            libc::AT_FDCWD,
                            one.as_ptr(),
                            libc::AT_FDCWD,
                            other.as_ptr(),
                            libc::RENAME_EXCHANGE,
                        );
                        if exchanged != 0 {
                            libc::_exit(1);
                        }
                    }
                }
            }
            Swapper(child)
        }
    }

    fn runs(&self) -> bool {
        // SAFETY: polls the state of this test's child without waiting.
        unsafe { libc::waitpid(self.0, std::ptr::null_mut(), libc::WNOHANG) == 0 }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        // SAFETY: kills and reaps this test's child, which no other code waits for.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

/// Reads entries while they are swapped; only inside content may be returned.
fn race(mechanism: Mechanism, reads: usize) {
    let dir = TempDir::new();
    dir.file("outside/a.md", CANARY);
    for inside in ["folder/a.md", "docs/deep/b.md", "a.md"] {
        dir.file(&format!("skill/{inside}"), INSIDE);
    }
    dir.link("docs/deep/../../a.md", "skill/link");
    dir.link("../a.md", "skill/docs/up");
    dir.link("../outside", "to-outside");
    dir.link("../outside/a.md", "to-canary");
    dir.link(dir.path("outside/a.md"), "to-canary-2");
    assert!(dir.special_file("fifo", libc::S_IFIFO, 0));
    dir.file("skill/b.md", INSIDE);
    fs::create_dir(dir.path("spare")).unwrap();
    let swaps = [
        ("skill/folder", "to-outside"),
        ("skill/a.md", "to-canary"),
        ("skill/link", "to-canary-2"),
        ("skill/b.md", "fifo"),
        // The folder from which a link's `..` starts is swapped with one outside.
        ("skill/docs", "spare"),
    ];
    let swapper = Swapper::start(&swaps.map(|(one, other)| (dir.path(one), dir.path(other))));
    let root = Root::open_with(&dir.path("skill"), mechanism).unwrap();
    let paths = ["folder/a.md", "a.md", "link", "b.md", "docs/up", "docs/deep/b.md"];
    let (mut read, mut refused, mut changing, mut slowest) = (0, 0, 0, Duration::ZERO);
    let begin = Instant::now();
    // On a busy machine, continues until the swapper has run.
    let is_shown = |read, refused| read > 0 && refused > 0 || begin.elapsed().as_secs() > 20;
    let mut number = 0;
    while number < reads || !is_shown(read, refused) {
        number += 1;
        let start = thread_time();
        match root.file(paths[number % paths.len()]) {
            Ok(file) => {
                assert_eq!(read_whole(&file, 1000).unwrap().bytes, INSIDE.as_bytes());
                read += 1;
            }
            Err(OpenError::Changing) => changing += 1,
            Err(OpenError::Io(error)) => panic!("{error}"),
            Err(_) => refused += 1,
        }
        slowest = slowest.max(thread_time().saturating_sub(start));
    }
    let took = begin.elapsed();
    assert!(swapper.runs(), "nothing was swapped");
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    eprintln!(
        "{mechanism:?}: {reads} tries, {read} read, {refused} refused, {changing} changing, \
         0 leaks, {took:?}, slowest {slowest:?}"
    );
}

#[test]
fn leaks_nothing_while_links_are_swapped() {
    for mechanism in MECHANISMS {
        race(mechanism, 20_000);
    }
}
