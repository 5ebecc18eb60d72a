//! A lock on a folder, without a file that would be left in it.
//!
//! It is the kernel's (`flock`), so it ends with its holders, however they end.
//! Who waits does so with an eye on the signals and on the deadline.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::limits;
use crate::world::cancellation::Cancellation;
use crate::world::process::Restrictions;

/// A folder that nobody else has locked, until this is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    folder: Arc<File>,
    held: bool,
}

impl FolderLock {
    /// Waits until the folder is free; `wait_begins` is called once if it is not.
    pub(crate) fn take(
        path: &Path,
        cancellation: &Cancellation,
        wait_begins: &mut dyn FnMut(),
    ) -> io::Result<FolderLock> {
        let folder = Arc::new(File::open(path)?);
        let mut waits = false;
        loop {
            match folder.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    if !waits {
                        wait_begins();
                        waits = true;
                    }
                    cancellation.check()?;
                    cancellation.pause(limits::LOCK_ROUND)?;
                }
                result => {
                    let held = result.is_ok();
                    return Ok(FolderLock { folder, held });
                }
            }
        }
    }

    /// Whether it keeps anybody out: some network file systems lock no folders.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// For a [`ProcessJob`](crate::world::process::ProcessJob): the program holds the lock too.
    /// So the folder is free only when a program that outlives a killed runner,
    /// if only for a moment, is gone.
    pub(crate) fn share(&self) -> Restrictions {
        let folder = Arc::clone(&self.folder);
        let enter = Arc::new(move || {
            // SAFETY: an open descriptor and plain numbers; safe after a fork.
            let done = unsafe { libc::fcntl(folder.as_raw_fd(), libc::F_SETFD, 0) };
            if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        });
        Restrictions { enter, scopes_signals: false }
    }
}

impl Drop for FolderLock {
    /// Not left to the descriptor's end: a process that another thread has just
    /// forked holds a copy of it.
    fn drop(&mut self) {
        if self.held {
            let _ = self.folder.unlock();
        }
    }
}

/// Locks a file, if its file system can, which the result tells, and waits for
/// whoever has it locked, but no longer than `most`. The lock ends with the file.
pub(crate) fn take_file(
    file: &File,
    most: Duration,
    cancellation: &Cancellation,
) -> io::Result<bool> {
    let until = Instant::now() + most;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(_)) => return Ok(false),
            Err(TryLockError::WouldBlock) if Instant::now() > until => {
                let text = "somebody else keeps it locked";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
            }
            Err(TryLockError::WouldBlock) => {
                cancellation.check()?;
                cancellation.pause(limits::LOCK_ROUND_SHORT)?;
            }
        }
    }
}

/// Locks a file, which must be open for writing, for this process: until it ends
/// or closes any descriptor of the file, so it has to be opened once. Children do
/// not hold the lock. `Err` with the holder's number, 0 where that is of another
/// world (a container, another machine), if somebody else has it.
pub(crate) fn hold(file: &File) -> io::Result<Result<(), i32>> {
    let mut lock = whole_file();
    // SAFETY: an open descriptor, and a structure that outlives the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw mut lock) } == 0 {
        return Ok(Ok(()));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EAGAIN) => Ok(Err(holder(file)?.unwrap_or(0))),
        _ => Err(error),
    }
}

/// The number of the process that has locked this file.
pub(crate) fn holder(file: &File) -> io::Result<Option<i32>> {
    let mut lock = whole_file();
    // SAFETY: as above.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_free = i32::from(lock.l_type) == libc::F_UNLCK;
    Ok((!is_free).then_some(lock.l_pid.max(0)))
}

fn whole_file() -> libc::flock {
    // SAFETY: numbers only; zero is the file's beginning, and its end whatever it is.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(libc::F_WRLCK).unwrap_or(1);
    lock
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::cancellation::StopReason;
    use crate::world::capture::CaptureLimits;
    use crate::world::process::{Leftovers, ProcessJob, run};
    use crate::world::scratch::Scratch;
    use crate::world::signal::Interrupt;

    #[test]
    fn a_locked_folder_is_waited_for_until_the_deadline() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let path = scratch.path();
        let mut waits = 0;
        let first = FolderLock::take(path, &Cancellation::never(), &mut || waits += 1).unwrap();
        assert!(first.is_held());
        let mut cancellation = Cancellation::never();
        cancellation.deadline = Some(Instant::now() + Duration::from_millis(30));
        let error = FolderLock::take(path, &cancellation, &mut || waits += 1).unwrap_err();
        assert_eq!(StopReason::within(&error), Some(StopReason::Deadline));
        drop(first);
        assert!(FolderLock::take(path, &Cancellation::never(), &mut || waits += 1).unwrap().held);
        assert_eq!(waits, 1);
    }

    /// A process that another thread has just forked, before it closes what it copied.
    #[test]
    fn a_lock_ends_while_a_forked_process_has_a_copy_of_it() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let lock = FolderLock::take(scratch.path(), &Cancellation::never(), &mut || {}).unwrap();
        // SAFETY: the child makes system calls only, and never returns.
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
        let again = FolderLock::take(scratch.path(), &cancellation, &mut || waits += 1);
        // SAFETY: ends and reaps the child, which nobody else waits for.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert!(again.unwrap().is_held() && waits == 0);
    }

    #[test]
    fn a_program_holds_the_lock_too() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let lock = FolderLock::take(scratch.path(), &Cancellation::never(), &mut || {}).unwrap();
        for (confine, is_shared) in [(None, false), (Some(lock.share()), true)] {
            let job = ProcessJob {
                program: Path::new("/bin/sh"),
                args: &["-c".into(), "readlink /proc/$$/fd/*".into()],
                folder: Path::new("/"),
                environment: &[("PATH".into(), "/usr/bin:/bin".into())],
                stdin: b"",
                limit: Duration::from_secs(20),
                leftovers: Leftovers::Kill,
                caps: CaptureLimits::halves(limits::OUTPUT_BYTES),
                interrupt: &Interrupt::never(),
                scratch: None,
                confine,
                event_source: None,
            };
            let held = run(&job).unwrap().stdout.text();
            let folder = scratch.path().to_string_lossy();
            assert_eq!(held.lines().any(|line| line == folder), is_shared, "{held}");
        }
    }
}
