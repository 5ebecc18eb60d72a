//! Two mechanisms that open a path below a folder and never leave it.
//!
//! With `openat2` the kernel confines the path: links are followed as long as they stay
//! inside. Where the kernel lacks it (before 5.6, qemu's user emulation), or a container's
//! filter forbids it, the path is walked name by name with `O_NOFOLLOW`, and links are refused.
//! No path is checked first and opened by name later: every decision is based on a descriptor.
//! Needs no `/proc`. Reads no content.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::ptr;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{Mode, fstatat};

use super::OpenError;
use super::path::RelativePath;
use base::limits;

/// Mechanism that opens paths below a folder. Both confine equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The kernel confines the path; links that stay inside are followed.
    Openat2,
    /// The path is opened name by name, without following any link.
    Walk,
}

/// Purpose of a descriptor.
#[derive(Clone, Copy)]
pub(super) enum OpenPurpose {
    /// To determine the kind: opens no device, never waits.
    Inspect,
    /// To read content.
    Read,
}

/// Kind of an opened descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenedKind {
    /// A regular file.
    File {
        /// In bytes.
        size: u64,
    },
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// Anything else, with its name for people, such as `a socket`.
    Other(&'static str),
}

/// Flags that open an entry only to inspect it, or as the start of a further `openat`.
pub(super) const INSPECT_FLAGS: OFlag = OFlag::O_PATH;

/// Flags that open a file for reading, and never wait for a device or another process.
const READ_FLAGS: OFlag = OFlag::O_RDONLY.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY);

/// Limits of `openat2`: nothing above the folder, and no links of `/proc` that only the kernel
/// can follow.
const BENEATH: ResolveFlag = ResolveFlag::RESOLVE_BENEATH.union(ResolveFlag::RESOLVE_NO_MAGICLINKS);

impl Mechanism {
    /// The best mechanism that this system supports.
    pub fn available() -> Mechanism {
        if kernel_has_openat2() { Mechanism::Openat2 } else { Mechanism::Walk }
    }

    /// Opens `path` below `folder`: at once if the kernel confines it, otherwise one name after
    /// the other.
    pub(super) fn open(
        self,
        folder: BorrowedFd<'_>,
        path: &RelativePath,
        purpose: OpenPurpose,
    ) -> Result<OwnedFd, OpenError> {
        let whole = [path.joined()];
        let steps: &[CString] = match self {
            Mechanism::Walk if !path.names.is_empty() => &path.names,
            Mechanism::Walk | Mechanism::Openat2 => &whole,
        };
        let last = match purpose {
            OpenPurpose::Inspect => INSPECT_FLAGS,
            OpenPurpose::Read => READ_FLAGS,
        };
        let last = if path.requires_folder { last | OFlag::O_DIRECTORY } else { last };
        let mut reached: Option<OwnedFd> = None;
        for (index, step) in steps.iter().enumerate() {
            let is_last = index + 1 == steps.len();
            let flags = if is_last { last } else { INSPECT_FLAGS | OFlag::O_DIRECTORY };
            let here = reached.as_ref().map_or(folder, AsFd::as_fd);
            reached = Some(match self {
                Mechanism::Openat2 => open_beneath(here, step, flags, BENEATH)?,
                Mechanism::Walk => open_without_link(here, step, flags)?,
            });
        }
        reached.ok_or(OpenError::NotFound)
    }

    /// Opens a regular file whose path contains no link. `None` if that is not the case, or
    /// if this mechanism does not support it.
    pub(super) fn open_plain(self, folder: BorrowedFd<'_>, path: &CStr) -> Option<OwnedFd> {
        let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
        let is_file = self == Mechanism::Openat2
            && entry_status(folder, path)?.st_mode & libc::S_IFMT == libc::S_IFREG;
        is_file.then(|| open_beneath(folder, path, READ_FLAGS, resolve).ok())?
    }
}

/// Determines the kind of `descriptor`, independently of what its name leads to by now.
pub(super) fn inspect(descriptor: OwnedFd) -> Result<(OwnedFd, OpenedKind), OpenError> {
    // `File` is used only for `metadata`, which works with `O_PATH` as well.
    let file = File::from(descriptor);
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    let found = if kind.is_file() {
        OpenedKind::File { size: metadata.len() }
    } else if kind.is_dir() {
        OpenedKind::Folder
    } else if kind.is_symlink() {
        OpenedKind::Link
    } else if kind.is_fifo() {
        OpenedKind::Other("a FIFO")
    } else if kind.is_socket() {
        OpenedKind::Other("a socket")
    } else {
        OpenedKind::Other("a device")
    };
    Ok((file.into(), found))
}

/// Opens a folder by a path that the user chose, following links. Also returns whether its
/// last name is a link. Does not use std: with musl, std treats `O_PATH` as a part of the
/// access mode and drops it, and then the folder must be readable, not only searchable.
pub(super) fn open_folder(path: &CStr) -> io::Result<(OwnedFd, bool)> {
    open_noting_link(AT_FDCWD, path)
}

/// Opens a folder, first without following a link, and if that fails, following it. Returns
/// whether it was a link: a folder opened by the first call certainly was not, whatever
/// replaces it later.
pub(super) fn open_noting_link(folder: BorrowedFd<'_>, path: &CStr) -> io::Result<(OwnedFd, bool)> {
    let flags = INSPECT_FLAGS | OFlag::O_DIRECTORY;
    match open_name(folder, path, flags | OFlag::O_NOFOLLOW) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
            Ok((open_name(folder, path, flags)?, true))
        }
        opened => Ok((opened?, false)),
    }
}

/// Calls `openat(2)`. `flags` decide whether a link is followed; a file that it creates may
/// only be accessed by its owner.
pub(super) fn open_name(folder: BorrowedFd<'_>, name: &CStr, flags: OFlag) -> io::Result<OwnedFd> {
    open_name_with_mode(folder, name, flags, 0o600)
}

/// Like [`open_name`], with the mode of a file that it creates, without the bits of the umask.
pub(super) fn open_name_with_mode(
    folder: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlag,
    mode: libc::c_uint,
) -> io::Result<OwnedFd> {
    let mode = Mode::from_bits_retain(mode);
    retry_open(|| openat(folder, name, flags | OFlag::O_CLOEXEC, mode))
}

/// Calls `openat2(2)`.
fn open_beneath(
    folder: BorrowedFd<'_>,
    path: &CStr,
    flags: OFlag,
    resolve: ResolveFlag,
) -> io::Result<OwnedFd> {
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(resolve);
    retry_open(|| openat2(folder, path, how))
}

/// Opens one name of a path. The error distinguishes a link from a file that is not a folder.
fn open_without_link(
    folder: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlag,
) -> Result<OwnedFd, OpenError> {
    // Used only to choose the error after a refusal.
    let is_link = || {
        let status = entry_status(folder, name);
        status.is_some_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFLNK)
    };
    open_name(folder, name, flags | OFlag::O_NOFOLLOW).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => OpenError::Link,
        Some(libc::ENOTDIR) if is_link() => OpenError::Link,
        _ => error.into(),
    })
}

/// The status of the entry itself: a link at the end of the path is not followed.
pub(super) fn entry_status(folder: BorrowedFd<'_>, path: &CStr) -> Option<libc::stat> {
    fstatat(folder, path, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
}

/// Whether the kernel supports `openat2`; determined once. A kernel with the call rejects a
/// size of 0 (EINVAL) before it checks anything else; any other result (ENOSYS, a filter's
/// EPERM) means that it is not available.
fn kernel_has_openat2() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let (path, how) = (ptr::null::<libc::c_char>(), ptr::null::<libc::open_how>());
        // SAFETY: with a size of 0 nothing is read from the null pointers.
        let answer = unsafe { libc::syscall(libc::SYS_openat2, -1, path, how, 0_usize) };
        Errno::result(answer) == Err(Errno::EINVAL)
    })
}

/// Calls `open`, again for a limited number of times if a signal or a concurrent rename
/// interrupted it.
fn retry_open(open: impl Fn() -> nix::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let mut tries = 1;
    loop {
        match open() {
            Err(Errno::EAGAIN | Errno::EINTR) if tries < limits::OPEN_TRIES => {}
            opened => return Ok(opened?),
        }
        if tries >= limits::OPEN_TRIES_WITHOUT_WAIT {
            thread::sleep(Duration::from_millis(limits::OPEN_WAIT_MILLISECONDS));
        }
        tries += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::time::Instant;

    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    use nix::unistd::Pid;

    use super::super::tests::{CANARY, INSIDE, MECHANISMS, TempDir};
    use super::super::{Root, read_whole};
    use super::*;
    use crate::after_fork::{close_from, kill};
    use crate::clock::thread_time;

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
            let state = waitpid(Pid::from_raw(self.0), Some(WaitPidFlag::WNOHANG));
            state == Ok(WaitStatus::StillAlive)
        }
    }

    impl Drop for Swapper {
        fn drop(&mut self) {
            kill(self.0, libc::SIGKILL);
            let _ = waitpid(Pid::from_raw(self.0), None);
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
}
