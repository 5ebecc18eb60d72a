//! A private temporary folder that goes away with its owner, and with the script
//! that used it: the guardian removes it when the owner was killed.

mod clearing;

use std::ffi::{CStr, OsStr};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr;

pub(super) use clearing::Folder;

use super::guardian::close_from;
use super::process::{Leftovers, prepare_adoption};
use super::random;
use crate::limits;

/// Where to go when the usual place cannot be written: in memory, and there
/// also on a read-only file system.
const LAST_RESORT: &str = "/dev/shm";

const PREFIX: &[u8] = b"skills-runner-";
const NAME_BYTES: usize = PREFIX.len() + 16;

/// A folder that only this user can enter; removed when dropped, with whatever
/// is in it then.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    /// The name in `parent`, ended by NUL.
    name: [u8; NAME_BYTES + 1],
    parent: OwnedFd,
    own: OwnedFd,
}

impl Scratch {
    /// Makes one below `base`, or where else it can be made.
    pub(crate) fn new(base: &Path) -> io::Result<Scratch> {
        Scratch::below(base)
            .or_else(|error| Scratch::below(Path::new(LAST_RESORT)).map_err(|_| error))
    }

    fn below(base: &Path) -> io::Result<Scratch> {
        let parent = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(base)?;
        // Not among the first three numbers, which a script's streams take: they
        // are free in a host that has them closed. A duplicate never is.
        let mut parent = OwnedFd::from(parent);
        if parent.as_raw_fd() < 3 {
            parent = parent.try_clone()?;
        }
        let mut name = [0; NAME_BYTES + 1];
        let letters = random::name()?.into_bytes();
        for (place, letter) in name.iter_mut().zip(PREFIX.iter().chain(&letters)) {
            *place = *letter;
        }
        let text = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the name outlives the calls, and a descriptor that was opened
        // here is nobody else's.
        let own = unsafe {
            if libc::mkdirat(parent.as_raw_fd(), text.as_ptr(), 0o700) < 0 {
                return Err(io::Error::last_os_error());
            }
            let own = libc::openat(parent.as_raw_fd(), text.as_ptr(), flags);
            if own < 0 {
                let error = io::Error::last_os_error();
                libc::unlinkat(parent.as_raw_fd(), text.as_ptr(), libc::AT_REMOVEDIR);
                return Err(error);
            }
            OwnedFd::from_raw_fd(own)
        };
        let path = base.join(OsStr::from_bytes(text.to_bytes()));
        // Removes the folder even if there is no descriptor left for a duplicate.
        let mut scratch = Scratch { path, name, parent, own };
        if scratch.own.as_raw_fd() < 3 {
            scratch.own = scratch.own.try_clone()?;
        }
        Ok(scratch)
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it that only this user can enter.
    pub(crate) fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Writes a file that only this user can read, and gives its path.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(bytes)?;
        Ok(path)
    }

    /// The same for a process that is forked while this lives.
    pub(super) fn handle(&self) -> Folder {
        Folder { parent: self.parent.as_raw_fd(), own: self.own.as_raw_fd(), name: self.name }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let folder = self.handle();
        if !folder.clear(limits::CLEARING) {
            clear_behind(folder);
        }
    }
}

/// Clears what takes long in a process that nobody waits for.
fn clear_behind(folder: Folder) {
    // It is no child of this program's, which would have to bury it.
    prepare_adoption(Leftovers::Keep);
    // SAFETY: after the fork only system calls are made, with plain numbers.
    unsafe {
        match libc::fork() {
            0 => {
                libc::setsid();
                if libc::fork() == 0 {
                    let folder = folder.keep_as(0, 1);
                    // Who reads this program's output waits for its end.
                    close_from(2);
                    folder.clear(limits::LAST_CLEARING);
                }
                libc::_exit(0)
            }
            child => {
                // A fork that failed leaves nothing to wait for.
                if child > 0 {
                    libc::waitpid(child, ptr::null_mut(), 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::clock::thread_time;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, Instant};

    /// Whether it comes true: what takes longer than a moment, as on a busy machine,
    /// is cleared behind.
    fn comes_true(condition: impl Fn() -> bool) -> bool {
        let since = Instant::now();
        while !condition() && since.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        condition()
    }

    #[test]
    fn a_scratch_folder_is_private_and_goes_away() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let file = scratch.write("script.py", b"x").unwrap();
        assert_eq!(fs::metadata(scratch.path()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(scratch.write("script.py", b"y").is_err());
        let path = scratch.path().to_path_buf();
        drop(scratch);
        assert!(comes_true(|| !path.exists()));
        let elsewhere = Scratch::new(Path::new("/nonexistent")).unwrap();
        assert!(elsewhere.path().starts_with(LAST_RESORT));
    }

    #[test]
    fn whatever_is_in_it_goes_and_nothing_else() {
        let outside = Scratch::new(Path::new("/tmp")).unwrap();
        let kept = outside.write("kept", b"x").unwrap();
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let path = scratch.path().to_path_buf();
        symlink(outside.path(), path.join("link")).unwrap();
        symlink("/nonexistent", path.join("dangling")).unwrap();
        for folder in ["a/b/c/d", "empty", "closed/inner/most", "00000001/x"] {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        symlink(outside.path(), path.join("a/b/link")).unwrap();
        for file in ["a/1", "a/b/2", "a/b/c/d/3", "closed/inner/most/4"] {
            fs::write(path.join(file), "x").unwrap();
        }
        let names = std::iter::repeat_n("n".repeat(250), 12);
        fs::create_dir_all(path.join(names.collect::<PathBuf>())).unwrap();
        for closed in ["a", "closed/inner/most", "closed/inner", "closed", ""] {
            let mode = Permissions::from_mode(0o000);
            fs::set_permissions(path.join(closed), mode).unwrap();
        }
        drop(scratch);
        assert!(comes_true(|| !path.exists()));
        assert_eq!(fs::read(kept).unwrap(), b"x");
    }

    #[test]
    fn it_goes_although_it_was_moved_or_removed() {
        let home = Scratch::new(Path::new("/tmp")).unwrap();
        let scratch = Scratch::new(home.path()).unwrap();
        fs::remove_dir(scratch.path()).unwrap();
        drop(scratch);
        let scratch = Scratch::new(home.path()).unwrap();
        scratch.write("file", b"x").unwrap();
        let elsewhere = home.path().join("elsewhere");
        fs::rename(scratch.path(), &elsewhere).unwrap();
        drop(scratch);
        assert!(comes_true(|| fs::read_dir(&elsewhere).unwrap().count() == 0));
    }

    #[test]
    fn what_takes_long_is_not_waited_for() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let path = scratch.path().to_path_buf();
        // Links to one file are made faster than files.
        let file = scratch.write("0", b"").unwrap();
        for folder in 0..60 {
            let folder = path.join(format!("folder-{folder}"));
            fs::create_dir(&folder).unwrap();
            for name in 0..1000 {
                fs::hard_link(&file, folder.join(name.to_string())).unwrap();
            }
        }
        let since = thread_time();
        drop(scratch);
        let took = thread_time().saturating_sub(since);
        assert!(took < limits::CLEARING * 2, "{took:?}");
        assert!(comes_true(|| !path.exists()));
    }
}
