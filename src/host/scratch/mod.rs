//! Private temporary folder. It is removed when its owner drops it, or by the guardian of
//! the script that used it, if the owner was killed.

mod clearing;

use std::ffi::{CStr, OsStr};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

pub(super) use clearing::ScratchFolder;

use super::after_fork::{above_streams, close_from};
use super::random;
use super::subreaper::adopt_orphans;
use base::limits;

/// Base folder to use if the usual one is not writable. It is in memory, so it also exists
/// on a read-only system.
const FALLBACK_BASE: &str = "/dev/shm";

const PREFIX: &[u8] = b"skills-runner-";
const NAME_BYTES: usize = PREFIX.len() + 16;

/// A text without what is random in the names of such folders, as tracebacks have them.
pub fn without_random_names(text: &str) -> String {
    let prefix = "skills-runner-";
    let mut parts = text.split(prefix);
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| {
        let letters = part.bytes().take_while(u8::is_ascii_lowercase).count();
        let random = if letters < NAME_BYTES - PREFIX.len() { 0 } else { letters };
        text + prefix + &part[random..]
    })
}

/// Folder that only this user can enter; removed with its content when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Name in `parent`, terminated by NUL.
    name: [u8; NAME_BYTES + 1],
    parent: OwnedFd,
    own: OwnedFd,
}

impl Scratch {
    /// Creates a folder below `base`, or below `/dev/shm` if that fails.
    pub fn new(base: &Path) -> io::Result<Scratch> {
        Scratch::create_below(base)
            .or_else(|error| Scratch::create_below(Path::new(FALLBACK_BASE)).map_err(|_| error))
    }

    fn create_below(base: &Path) -> io::Result<Scratch> {
        let parent = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(base)?;
        let parent = above_streams(parent.into())?;
        let mut name = [0; NAME_BYTES + 1];
        let letters = random::name()?.into_bytes();
        for (place, letter) in name.iter_mut().zip(PREFIX.iter().chain(&letters)) {
            *place = *letter;
        }
        let text = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        mkdirat(&parent, text, Mode::S_IRWXU)?;
        let own = openat(&parent, text, flags, Mode::empty());
        let own = own.map_err(io::Error::from).and_then(above_streams).inspect_err(|_| {
            let _ = unlinkat(&parent, text, UnlinkatFlags::RemoveDir);
        })?;
        let path = base.join(OsStr::from_bytes(text.to_bytes()));
        Ok(Scratch { path, name, parent, own })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a subfolder that only this user can enter.
    pub fn create_folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Writes a new file that only this user can read. Returns its path.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(bytes)?;
        Ok(path)
    }

    /// Copyable handle for a process that is forked while this value exists.
    pub(super) fn handle(&self) -> ScratchFolder {
        ScratchFolder {
            parent: self.parent.as_raw_fd(),
            own: self.own.as_raw_fd(),
            name: self.name,
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let folder = self.handle();
        if !folder.clear(limits::CLEANUP) {
            clear_in_background(folder);
        }
    }
}

/// Clears the folder in a background process, so that the program does not wait for it.
fn clear_in_background(folder: ScratchFolder) {
    // The process must not become a child of this program, which would have to reap it.
    adopt_orphans(false);
    // SAFETY: after the fork there are only system calls, with plain numbers.
    unsafe {
        match libc::fork() {
            0 => {
                libc::setsid();
                if libc::fork() == 0 {
                    let folder = folder.move_descriptors(0, 1);
                    // The reader of this program's output waits until all copies of it are
                    // closed.
                    close_from(2);
                    folder.clear(limits::CLEANUP_LAST);
                }
                libc::_exit(0)
            }
            child => {
                // A failed fork leaves no child to wait for.
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
    use crate::clock::thread_time;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, Instant};

    /// Whether the condition becomes true: on a busy machine a folder may be cleared in the
    /// background.
    fn becomes_true(condition: impl Fn() -> bool) -> bool {
        let since = Instant::now();
        while !condition() && since.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        condition()
    }

    #[test]
    fn a_scratch_folder_is_private_and_is_removed() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let file = scratch.write_file("script.py", b"x").unwrap();
        assert_eq!(fs::metadata(scratch.path()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(scratch.write_file("script.py", b"y").is_err());
        let path = scratch.path().to_path_buf();
        drop(scratch);
        assert!(becomes_true(|| !path.exists()));
        let elsewhere = Scratch::new(Path::new("/nonexistent")).unwrap();
        assert!(elsewhere.path().starts_with(FALLBACK_BASE));
    }

    #[test]
    fn all_of_its_content_is_removed_and_nothing_else() {
        let outside = Scratch::new(Path::new("/tmp")).unwrap();
        let kept = outside.write_file("kept", b"x").unwrap();
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
        assert!(becomes_true(|| !path.exists()));
        assert_eq!(fs::read(kept).unwrap(), b"x");
    }

    #[test]
    fn a_moved_or_removed_folder_is_cleared() {
        let home = Scratch::new(Path::new("/tmp")).unwrap();
        let scratch = Scratch::new(home.path()).unwrap();
        fs::remove_dir(scratch.path()).unwrap();
        drop(scratch);
        let scratch = Scratch::new(home.path()).unwrap();
        scratch.write_file("file", b"x").unwrap();
        let elsewhere = home.path().join("elsewhere");
        fs::rename(scratch.path(), &elsewhere).unwrap();
        drop(scratch);
        assert!(becomes_true(|| fs::read_dir(&elsewhere).unwrap().count() == 0));
    }

    #[test]
    fn dropping_a_large_folder_does_not_wait() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let path = scratch.path().to_path_buf();
        // Creating links to one file is faster than creating files.
        let file = scratch.write_file("0", b"").unwrap();
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
        assert!(took < limits::CLEANUP * 2, "{took:?}");
        assert!(becomes_true(|| !path.exists()));
    }
}
