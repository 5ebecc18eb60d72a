//! The location of a skill's `venv`, which is always complete, marked as incomplete, or absent.
//!
//! A venv cannot be moved, so it is created in its final place. Atomic renames make that safe:
//!
//! 1. the old `venv` moves to `before` in the working folder (no script runs while only that
//!    exists), and a folder with nothing but the marker becomes `venv`;
//! 2. Python creates the venv there, and packages are installed; a venv with the marker is refused;
//! 3. the marker is deleted: this is now the skill's venv, and the old one is deleted.
//!
//! If this is interrupted, [`VenvLocation::recover`] repairs it, now or at the next setup.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ::skills::venv::{INCOMPLETE, PREVIOUS_VENV, SETUP_FOLDER};
use base::limits;
use host::cancellation::Cancellation;

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
    fn work_folder(&self) -> PathBuf {
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
        let (venv, work) = (self.venv(), self.work_folder());
        // Not through a link that the skill's author may have added.
        if exists(&work) && !is_folder(&work) {
            return Err(io::Error::other(format!("{SETUP_FOLDER} is not a folder: remove it")));
        }
        // Removing a venv takes long, so it is first renamed out of the way.
        let dead = work.join("dead");
        self.remove(&dead)?;
        if self.is_marked() {
            self.create_work_folder()?;
            fs::rename(&venv, &dead)?;
        }
        if exists(&self.previous()) {
            fs::rename(self.previous(), if exists(&venv) { &dead } else { &venv })?;
        }
        self.remove(&work)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match self.remove_entry(path, &mut None) {
            _ if !exists(path) => Ok(()),
            // For example, the tree is deeper than paths can be long.
            Err(error) if error.kind() != ErrorKind::TimedOut => fs::remove_dir_all(path),
            result => result,
        }
    }

    /// Removes a folder with its content. After a cancellation it continues only until `end`,
    /// which is set at the first check that sees the cancellation.
    fn remove_entry(&self, path: &Path, end: &mut Option<Instant>) -> io::Result<()> {
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
            self.remove_entry(&entry?.path(), end)?;
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
    fn create_work_folder(&self) -> io::Result<()> {
        match DirBuilder::new().create(self.work_folder()) {
            Err(error)
                if error.kind() == ErrorKind::AlreadyExists && is_folder(&self.work_folder()) =>
            {
                Ok(())
            }
            result => result,
        }
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
    use host::scratch::Scratch;

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
            (&[("venv/name", "new"), (".skills-runner-setup/dead/name", "old")], Some("new")),
            (
                &[
                    (&marker, ""),
                    (".skills-runner-setup/dead/name", "new"),
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
        fs::create_dir_all(location.work_folder().join("dead/lib")).unwrap();
        let mut past = Some(Instant::now());
        let error = location.remove_entry(&location.work_folder(), &mut past).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(exists(&location.work_folder().join("dead/lib")) && exists(&location.previous()));
        // Quick deletions still have time.
        location.recover().unwrap();
        assert!(exists(&location.venv()) && !exists(&location.work_folder()));
    }
}
