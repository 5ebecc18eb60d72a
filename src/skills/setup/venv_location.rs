//! The location of a skill's `venv`, which is always complete, marked as incomplete, or absent.
//!
//! A venv cannot be moved, so it is created in its final place. Atomic renames make that safe:
//!
//! 1. the old `venv` moves to `before` in the working folder (no script runs while only that
//!    exists), and a folder with nothing but the marker becomes `venv`;
//! 2. packages are installed; a venv with the marker is refused;
//! 3. the marker is deleted: this is now the skill's venv, and the old one is deleted.
//!
//! If this is interrupted, [`VenvLocation::recover`] repairs it, now or at the next setup.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::limits;
use crate::skills::venv::{INCOMPLETE, PREVIOUS_VENV, SETUP_FOLDER};
use crate::world::cancellation::Cancellation;

/// The skill's folder as the location of a `venv`.
pub(super) struct VenvLocation<'s> {
    skill: &'s Path,
    cancellation: &'s Cancellation,
}

impl<'s> VenvLocation<'s> {
    /// After a cancellation, long deletions are left to the next setup.
    pub(super) fn new(skill: &'s Path, cancellation: &'s Cancellation) -> VenvLocation<'s> {
        VenvLocation { skill, cancellation }
    }

    /// Path of the venv.
    pub(super) fn venv(&self) -> PathBuf {
        self.skill.join("venv")
    }

    /// Folder for the new and the old venv outside their final place.
    pub(super) fn work_folder(&self) -> PathBuf {
        self.skill.join(SETUP_FOLDER)
    }

    fn previous(&self) -> PathBuf {
        self.work_folder().join(PREVIOUS_VENV)
    }

    /// Whether an earlier setup left something to remove.
    pub(super) fn is_unfinished(&self) -> bool {
        exists(&self.work_folder()) || self.is_marked()
    }

    /// Whether a failed setup restored the skill; leftovers to remove may remain.
    pub(super) fn is_restored(&self) -> bool {
        !self.is_marked() && !exists(&self.previous())
    }

    /// Whether there is an unfinished venv; never through a link, which no setup creates.
    fn is_marked(&self) -> bool {
        is_folder(&self.venv()) && exists(&self.venv().join(INCOMPLETE))
    }

    /// Cleans up after an unfinished setup: removes a marked venv, and restores the previous one.
    pub(super) fn recover(&self) -> io::Result<()> {
        let venv = self.venv();
        // Not through a link that the skill's author may have added.
        if exists(&self.work_folder()) && !is_folder(&self.work_folder()) {
            return Err(io::Error::other(format!("{SETUP_FOLDER} is not a folder: remove it")));
        }
        if self.is_marked() {
            self.create_work_folder()?;
            self.set_aside(&venv)?;
        }
        if !exists(&venv) && exists(&self.previous()) {
            fs::rename(self.previous(), &venv)?;
        }
        if exists(&self.previous()) {
            self.set_aside(&self.previous())?;
        }
        match self.remove(&self.work_folder(), &mut None) {
            _ if !exists(&self.work_folder()) => Ok(()),
            // For example, the tree is deeper than paths can be long.
            Err(error) if error.kind() != ErrorKind::TimedOut => {
                fs::remove_dir_all(self.work_folder())
            }
            result => result,
        }
    }

    /// Removes a folder with its content. After a cancellation it continues only until `end`,
    /// which is set at the first check that sees the cancellation.
    fn remove(&self, path: &Path, end: &mut Option<Instant>) -> io::Result<()> {
        if self.cancellation.check().is_err() {
            let end = *end.get_or_insert_with(|| Instant::now() + limits::SETUP_CLEANUP);
            if Instant::now() >= end {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        if !is_folder(path) {
            return fs::remove_file(path);
        }
        for entry in fs::read_dir(path)? {
            self.remove(&entry?.path(), end)?;
        }
        fs::remove_dir(path)
    }

    /// Starts a new venv: puts an empty, marked one in place, and keeps the previous one until
    /// [`VenvBuild::finish`]. Dropping the build earlier restores it.
    pub(super) fn start_build(&self) -> io::Result<VenvBuild<'_>> {
        self.create_work_folder()?;
        let new = self.work_folder().join("new");
        DirBuilder::new().create(&new)?;
        File::create_new(new.join(INCOMPLETE))?;
        // Keeps the venv out of repositories.
        fs::write(new.join(".gitignore"), "*\n")?;
        let build = VenvBuild { location: self };
        if exists(&self.venv()) {
            fs::rename(self.venv(), self.previous())?;
        }
        fs::rename(&new, self.venv())?;
        Ok(build)
    }

    /// Creates the working folder.
    pub(super) fn create_work_folder(&self) -> io::Result<()> {
        match DirBuilder::new().create(self.work_folder()) {
            Err(error)
                if error.kind() == ErrorKind::AlreadyExists && is_folder(&self.work_folder()) =>
            {
                Ok(())
            }
            result => result,
        }
    }

    /// Renames a folder out of the way; removing it takes longer.
    fn set_aside(&self, path: &Path) -> io::Result<()> {
        for number in 0..limits::SETUP_REMAINS {
            let dead = self.work_folder().join(format!("dead-{number}"));
            if !exists(&dead) {
                return fs::rename(path, dead);
            }
        }
        Err(io::Error::other("too many leftovers of earlier setups"))
    }
}

/// A venv that is being created.
pub(super) struct VenvBuild<'p> {
    location: &'p VenvLocation<'p>,
}

impl VenvBuild<'_> {
    /// Completes the venv: it is now the skill's.
    pub(super) fn finish(self) -> io::Result<()> {
        fs::remove_file(self.location.venv().join(INCOMPLETE))
        // `drop` does the rest.
    }
}

impl Drop for VenvBuild<'_> {
    fn drop(&mut self) {
        // What cannot be removed now stays marked, for the next setup.
        let _ = self.location.recover();
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::scratch::Scratch;

    type Files<'f> = &'f [(&'f str, &'f str)];

    /// Leftovers of a killed setup, and the venv after recovery: `old`, `new`, or none, as
    /// recorded in its file `name`.
    #[test]
    fn any_leftovers_are_recovered() {
        let marker = format!("venv/{INCOMPLETE}");
        let table: [(Files<'_>, Option<&str>); 9] = [
            (&[], None),
            (&[("venv/name", "old")], Some("old")),
            (&[("venv/name", "old"), (".skills-runner-setup/new/name", "new")], Some("old")),
            (
                &[
                    (".skills-runner-setup/before/name", "old"),
                    (".skills-runner-setup/new/name", "new"),
                ],
                Some("old"),
            ),
            (
                &[(&marker, ""), ("venv/name", "new"), (".skills-runner-setup/before/name", "old")],
                Some("old"),
            ),
            (&[(&marker, ""), ("venv/name", "new")], None),
            (&[("venv/name", "new"), (".skills-runner-setup/before/name", "old")], Some("new")),
            (&[("venv/name", "new"), (".skills-runner-setup/dead-0/name", "old")], Some("new")),
            (
                &[
                    (&marker, ""),
                    (".skills-runner-setup/dead-0/name", "new"),
                    (".skills-runner-setup/before/name", "old"),
                ],
                Some("old"),
            ),
        ];
        for (files, expected) in table {
            let scratch = Scratch::new(Path::new("/tmp")).unwrap();
            for (path, text) in files {
                let path = scratch.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let cancellation = Cancellation::never();
            let location = VenvLocation::new(scratch.path(), &cancellation);
            for _ in 0..2 {
                location.recover().unwrap();
                let name = fs::read_to_string(location.venv().join("name")).ok();
                assert_eq!(name.as_deref(), expected, "{files:?}");
                assert_eq!(exists(&location.venv()), expected.is_some());
                assert!(!location.is_unfinished(), "{files:?}");
            }
        }
    }

    #[test]
    fn an_unfinished_venv_is_marked_and_removed_on_drop() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let cancellation = Cancellation::never();
        let location = VenvLocation::new(scratch.path(), &cancellation);
        for old in [false, true] {
            let build = location.start_build().unwrap();
            assert!(exists(&location.venv().join(INCOMPLETE)));
            drop(build);
            assert_eq!(exists(&location.venv()), old);
            let build = location.start_build().unwrap();
            build.finish().unwrap();
            assert!(exists(&location.venv()) && !location.is_unfinished());
        }
    }

    /// A cancelled setup restores the old venv; the next one removes the rest.
    #[test]
    fn a_cancellation_limits_the_cleanup() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let mut cancellation = Cancellation::never();
        cancellation.deadline = Some(Instant::now());
        let location = VenvLocation::new(scratch.path(), &cancellation);
        fs::create_dir_all(location.previous()).unwrap();
        fs::create_dir_all(location.work_folder().join("dead-0/lib")).unwrap();
        let mut past = Some(Instant::now());
        let error = location.remove(&location.work_folder(), &mut past).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(exists(&location.work_folder().join("dead-0/lib")) && exists(&location.previous()));
        // Quick deletions still have time.
        location.recover().unwrap();
        assert!(exists(&location.venv()) && !exists(&location.work_folder()));
    }
}
