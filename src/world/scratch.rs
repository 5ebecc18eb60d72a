//! A private temporary folder that goes away with its owner.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where to go when the usual place cannot be written: in memory, and there
/// also on a read-only file system.
const LAST_RESORT: &str = "/dev/shm";

/// A folder that only this user can enter; removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one below `base`, or where else it can be made.
    pub fn new(base: &Path) -> io::Result<Scratch> {
        Scratch::below(base)
            .or_else(|error| Scratch::below(Path::new(LAST_RESORT)).map_err(|_| error))
    }

    fn below(base: &Path) -> io::Result<Scratch> {
        let path = base.join(format!("skills-runner-{}", random_name()?));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Scratch { path })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it that only this user can enter.
    pub fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Writes a file that only this user can read, and gives its path.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(bytes)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Sixteen letters that nobody can guess; `create` would fail on a folder
/// that is there already, so a collision does no harm.
pub fn random_name() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    // Not /dev/urandom: an empty chroot has none.
    // SAFETY: fills at most `bytes.len()` bytes of `bytes`.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(count) != Ok(bytes.len()) {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes
        .iter()
        .map(|byte| char::from(b'a' + byte % 26))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_is_private_and_goes_away() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let file = scratch.write("script.py", b"x").unwrap();
        assert_eq!(
            fs::metadata(scratch.path()).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(scratch.write("script.py", b"y").is_err());
        drop(scratch);
        assert!(!file.exists());
        let elsewhere = Scratch::new(Path::new("/nonexistent")).unwrap();
        assert!(elsewhere.path().starts_with(LAST_RESORT));
    }
}
