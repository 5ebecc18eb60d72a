//! Locks on folders and files.
//!
//! They are kernel locks (`flock`, `fcntl`): no lock file is left behind, and a
//! lock ends with the processes that hold it, however they end. Waiting for a lock
//! ends on a signal or at the deadline of the run.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cancellation::Cancellation;
use crate::confined::identity;
use crate::process::Restrictions;
use base::limits;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

/// Exclusive lock on a folder, released when dropped.
#[derive(Debug)]
pub struct FolderLock {
    folder: Arc<File>,
    is_locked: bool,
}

impl FolderLock {
    /// Waits until the folder is unlocked; calls `on_wait` once if it has to wait.
    pub fn acquire(
        path: &Path,
        cancellation: &Cancellation,
        on_wait: &mut dyn FnMut(),
    ) -> io::Result<FolderLock> {
        let folder = Arc::new(File::open(path)?);
        let mut is_waiting = false;
        let is_locked = lock_when_free(&folder, limits::LOCK_POLL, cancellation, || {
            if !is_waiting {
                on_wait();
                is_waiting = true;
            }
            Ok(())
        })?;
        Ok(FolderLock { folder, is_locked })
    }

    /// Whether the folder is really locked: some network file systems cannot lock
    /// folders.
    pub fn is_held(&self) -> bool {
        self.is_locked
    }

    /// Whether the locked folder is the one at this path.
    pub fn is_of(&self, path: &Path) -> bool {
        let own = self.folder.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
        own.is_some() && own == identity(path)
    }

    /// Restrictions for a [`ProcessJob`](crate::process::ProcessJob) whose program
    /// holds the lock too. If the runner is killed, the folder stays locked until
    /// the program, which may outlive the runner by a moment, has ended.
    pub fn share_with_program(&self) -> Restrictions {
        let folder = Arc::clone(&self.folder);
        let enter = Arc::new(move || {
            // SAFETY: the descriptor is open and the arguments are plain numbers; the
            // call is async-signal-safe.
            let done = unsafe { libc::fcntl(folder.as_raw_fd(), libc::F_SETFD, 0) };
            if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        });
        Restrictions { enter, scopes_signals: false }
    }
}

impl Drop for FolderLock {
    /// Unlocks explicitly. Closing the descriptor is not enough: a process that
    /// another thread has just forked holds a copy of it.
    fn drop(&mut self) {
        if self.is_locked {
            let _ = self.folder.unlock();
        }
    }
}

/// Locks a file; waits up to `max_wait` while another process holds the lock.
/// Returns false where the file system cannot lock. The lock ends when the file
/// is closed.
pub fn lock_file(file: &File, max_wait: Duration, cancellation: &Cancellation) -> io::Result<bool> {
    let until = Instant::now() + max_wait;
    lock_when_free(file, limits::LOCK_POLL_SHORT, cancellation, || {
        let text = "another process keeps it locked";
        if Instant::now() > until {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        Ok(())
    })
}

/// Waits until the file can be locked; calls `on_busy` each time that another process holds the
/// lock. Returns false where the file system cannot lock.
fn lock_when_free(
    file: &File,
    interval: Duration,
    cancellation: &Cancellation,
    mut on_busy: impl FnMut() -> io::Result<()>,
) -> io::Result<bool> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(_)) => return Ok(false),
            Err(TryLockError::WouldBlock) => {
                on_busy()?;
                cancellation.pause(interval)?;
            }
        }
    }
}

/// `F_SETSIG` of `fcntl(2)`, from the kernel's `asm-generic/fcntl.h`.
const F_SETSIG: libc::c_int = 10;

/// Waits until this process alone has the file open, at most `max_wait`: whatever others write
/// through descriptors that they opened before is then in the file. The file must be open for
/// writing and belong to the user; without leases (some file systems) there is no wait.
pub fn wait_for_other_writers(file: &File, max_wait: Duration, cancellation: &Cancellation) {
    let until = Instant::now() + max_wait;
    // The kernel grants a write lease only while no other process has the file open.
    // SAFETY: a call with plain numbers on an open descriptor.
    let control =
        |command, value: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    // Another process that opens the file meanwhile would cause SIGIO, which ends a program; SIGURG
    // is ignored.
    control(F_SETSIG, libc::SIGURG);
    while control(libc::F_SETLEASE, libc::F_WRLCK) != 0 {
        let is_open_elsewhere = io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
        let has_waited = || cancellation.pause(limits::OTHER_WRITERS_POLL).is_ok();
        if !is_open_elsewhere || Instant::now() > until || !has_waited() {
            return;
        }
    }
    control(libc::F_SETLEASE, libc::F_UNLCK);
}

/// Locks a file, which must be open for writing, for this process, without waiting.
///
/// The lock ends when the process ends or closes any descriptor of the file, so the
/// process must open the file only once. Children do not inherit the lock. If another
/// process holds it, the inner `Err` is that process's number, or 0 where the number
/// is not visible here (another container or machine).
pub fn try_lock_for_process(file: &File) -> io::Result<Result<(), i32>> {
    match fcntl(file, FcntlArg::F_SETLK(&whole_file())) {
        Ok(_) => Ok(Ok(())),
        Err(Errno::EACCES | Errno::EAGAIN) => Ok(Err(holder(file)?.unwrap_or(0))),
        Err(error) => Err(error.into()),
    }
}

/// The number of the process that holds the lock on this file.
pub fn holder(file: &File) -> io::Result<Option<i32>> {
    let mut lock = whole_file();
    fcntl(file, FcntlArg::F_GETLK(&mut lock))?;
    let is_free = i32::from(lock.l_type) == libc::F_UNLCK;
    Ok((!is_free).then_some(lock.l_pid.max(0)))
}

fn whole_file() -> libc::flock {
    // SAFETY: a structure of plain numbers. Zeros mean from the start of the file to
    // its end, wherever that is.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(libc::F_WRLCK).unwrap_or(1);
    lock
}

#[cfg(test)]
mod tests {
    use nix::sys::wait::waitpid;
    use nix::unistd::Pid;

    use super::*;
    use crate::after_fork::kill;
    use crate::cancellation::StopReason;
    use crate::capture::CaptureLimits;
    use crate::process::{Leftovers, ProcessJob, run};
    use crate::scratch::Scratch;
    use crate::signal::Interrupt;

    #[test]
    fn acquiring_a_locked_folder_waits_until_the_deadline() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let path = scratch.path();
        let mut waits = 0;
        let first = FolderLock::acquire(path, &Cancellation::never(), &mut || waits += 1).unwrap();
        assert!(first.is_held());
        let mut cancellation = Cancellation::never();
        cancellation.deadline = Some(Instant::now() + Duration::from_millis(30));
        let error = FolderLock::acquire(path, &cancellation, &mut || waits += 1).unwrap_err();
        assert_eq!(StopReason::from_io_error(&error), Some(StopReason::Deadline));
        drop(first);
        assert!(
            FolderLock::acquire(path, &Cancellation::never(), &mut || waits += 1)
                .unwrap()
                .is_locked
        );
        assert_eq!(waits, 1);
    }

    /// The copy is that of a process that another thread has just forked and that has
    /// not closed its descriptors yet.
    #[test]
    fn a_lock_ends_while_a_forked_process_has_a_copy_of_it() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let lock = FolderLock::acquire(scratch.path(), &Cancellation::never(), &mut || {}).unwrap();
        // SAFETY: the child only makes system calls, and never returns.
        let child = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                loop {
                    libc::pause();
                }
            }
            child
        };
        drop(lock);
        let mut waits = 0;
        let mut cancellation = Cancellation::never();
        cancellation.deadline = Some(Instant::now() + Duration::from_millis(30));
        let again = FolderLock::acquire(scratch.path(), &cancellation, &mut || waits += 1);
        assert!(kill(child, libc::SIGKILL));
        waitpid(Pid::from_raw(child), None).unwrap();
        assert!(again.unwrap().is_held() && waits == 0);
    }

    #[test]
    fn a_program_holds_the_lock_too() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let lock = FolderLock::acquire(scratch.path(), &Cancellation::never(), &mut || {}).unwrap();
        for (confine, is_shared) in [(None, false), (Some(lock.share_with_program()), true)] {
            let job = ProcessJob {
                program: Path::new("/bin/sh"),
                args: &["-c".into(), "readlink /proc/$$/fd/*".into()],
                folder: Path::new("/"),
                environment: &[("PATH".into(), "/usr/bin:/bin".into())],
                stdin: b"",
                limit: Duration::from_secs(20),
                leftovers: Leftovers::Kill,
                output_limits: CaptureLimits::halves(limits::OUTPUT_BYTES),
                interrupt: &Interrupt::never(),
                scratch: None,
                restrictions: confine,
                event_source: None,
            };
            let held = run(&job).unwrap().stdout.text();
            let folder = scratch.path().to_string_lossy();
            assert_eq!(held.lines().any(|line| line == folder), is_shared, "{held}");
        }
    }
}
