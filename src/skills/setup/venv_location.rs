//! Where a skill's `venv` is made, so that it is whole, marked or not there.
//!
//! A venv cannot be moved, so it is made where it stays. What makes that safe
//! are renamings, each of which happens at once or not at all:
//!
//! 1. a folder with nothing but the marker becomes `venv`; the one that was
//!    there has gone to `before` in the working folder, and where only that is
//!    there, no script runs either;
//! 2. it is filled; whoever meets the marker refuses it;
//! 3. the marker goes: from now on it is the skill's venv, and the old one goes.
//!
//! Whatever ends this early, [`VenvLocation::recover`] puts right, now or at the next
//! setup. Nothing here knows what is installed.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::limits;
use crate::skills::venv::{BEFORE, INCOMPLETE, SETUP_FOLDER};
use crate::world::cancellation::Cancellation;

/// The skill's folder, as the place of a `venv`.
pub(super) struct VenvLocation<'s> {
    skill: &'s Path,
    cancellation: &'s Cancellation,
}

impl<'s> VenvLocation<'s> {
    /// Once `cancellation` ends, what takes long is left to the next setup.
    pub(super) fn new(skill: &'s Path, cancellation: &'s Cancellation) -> VenvLocation<'s> {
        VenvLocation { skill, cancellation }
    }

    /// The venv that is made here.
    pub(super) fn venv(&self) -> PathBuf {
        self.skill.join("venv")
    }

    /// A folder for what is not yet, or no longer, the skill's.
    pub(super) fn work(&self) -> PathBuf {
        self.skill.join(SETUP_FOLDER)
    }

    fn before(&self) -> PathBuf {
        self.work().join(BEFORE)
    }

    /// Whether an earlier setup left something to clear up.
    pub(super) fn is_unfinished(&self) -> bool {
        exists(&self.work()) || self.is_marked()
    }

    /// Whether a setup that has ended without success got the skill to what it
    /// was; at most something to remove is left.
    pub(super) fn is_as_before(&self) -> bool {
        !self.is_marked() && !exists(&self.before())
    }

    /// Whether there is a venv that a setup has begun; never through a link,
    /// which no setup makes.
    fn is_marked(&self) -> bool {
        is_folder(&self.venv()) && exists(&self.venv().join(INCOMPLETE))
    }

    /// Clears up after a setup that did not finish: a marked venv goes, the one
    /// before it comes back.
    pub(super) fn recover(&self) -> io::Result<()> {
        let venv = self.venv();
        // Not through a link that a stranger has put into the skill.
        if exists(&self.work()) && !is_folder(&self.work()) {
            return Err(io::Error::other(format!("{SETUP_FOLDER} is no folder: remove it")));
        }
        if self.is_marked() {
            self.prepare()?;
            self.put_away(&venv)?;
        }
        if !exists(&venv) && exists(&self.before()) {
            fs::rename(self.before(), &venv)?;
        }
        if exists(&self.before()) {
            self.put_away(&self.before())?;
        }
        match self.remove(&self.work(), &mut None) {
            _ if !exists(&self.work()) => Ok(()),
            // Deeper than paths reach, say.
            Err(error) if error.kind() != ErrorKind::TimedOut => fs::remove_dir_all(self.work()),
            result => result,
        }
    }

    /// Removes a folder with all that is in it. Who has asked to stop waits for
    /// that no longer than until `end`, which is set when it is first seen.
    fn remove(&self, path: &Path, end: &mut Option<Instant>) -> io::Result<()> {
        if self.cancellation.check().is_err() {
            let end = *end.get_or_insert_with(|| Instant::now() + limits::SETUP_CLEARING);
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

    /// Begins a new venv: an empty, marked one is there, and the one before is
    /// kept until [`VenvBuild::finish`]. Dropped earlier, all is as before.
    pub(super) fn begin(&self) -> io::Result<VenvBuild<'_>> {
        self.prepare()?;
        let new = self.work().join("new");
        DirBuilder::new().create(&new)?;
        File::create_new(new.join(INCOMPLETE))?;
        // Nobody wants it in their repository.
        fs::write(new.join(".gitignore"), "*\n")?;
        let making = VenvBuild { place: self };
        if exists(&self.venv()) {
            fs::rename(self.venv(), self.before())?;
        }
        fs::rename(&new, self.venv())?;
        Ok(making)
    }

    /// Makes the working folder.
    pub(super) fn prepare(&self) -> io::Result<()> {
        match DirBuilder::new().create(self.work()) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && is_folder(&self.work()) => {
                Ok(())
            }
            result => result,
        }
    }

    /// Takes a folder away at once; to remove it takes its time.
    fn put_away(&self, path: &Path) -> io::Result<()> {
        for number in 0..limits::SETUP_REMAINS {
            let dead = self.work().join(format!("dead-{number}"));
            if !exists(&dead) {
                return fs::rename(path, dead);
            }
        }
        Err(io::Error::other("too many remains of earlier setups"))
    }
}

/// A venv under way.
pub(super) struct VenvBuild<'p> {
    place: &'p VenvLocation<'p>,
}

impl VenvBuild<'_> {
    /// It is complete: from now on it is the skill's.
    pub(super) fn finish(self) -> io::Result<()> {
        fs::remove_file(self.place.venv().join(INCOMPLETE))
        // What is left to do is done by `drop`.
    }
}

impl Drop for VenvBuild<'_> {
    fn drop(&mut self) {
        // What cannot be cleared up now stays marked, for the next setup.
        let _ = self.place.recover();
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

    /// What a killed setup can leave, and which venv there is after it: `old`,
    /// `new`, or none. A path ends in what its file `name` says.
    #[test]
    fn whatever_was_left_is_put_right() {
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
            let place = VenvLocation::new(scratch.path(), &cancellation);
            for _ in 0..2 {
                place.recover().unwrap();
                let name = fs::read_to_string(place.venv().join("name")).ok();
                assert_eq!(name.as_deref(), expected, "{files:?}");
                assert_eq!(exists(&place.venv()), expected.is_some());
                assert!(!place.is_unfinished(), "{files:?}");
            }
        }
    }

    #[test]
    fn a_venv_under_way_is_marked_and_gives_way_when_dropped() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let cancellation = Cancellation::never();
        let place = VenvLocation::new(scratch.path(), &cancellation);
        for old in [false, true] {
            let making = place.begin().unwrap();
            assert!(exists(&place.venv().join(INCOMPLETE)));
            drop(making);
            assert_eq!(exists(&place.venv()), old);
            let making = place.begin().unwrap();
            making.finish().unwrap();
            assert!(exists(&place.venv()) && !place.is_unfinished());
        }
    }

    /// Who wants to stop gets the old venv at once; the rest is for the next.
    #[test]
    fn clearing_up_ends_where_somebody_waits_for_it() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let mut cancellation = Cancellation::never();
        cancellation.deadline = Some(Instant::now());
        let place = VenvLocation::new(scratch.path(), &cancellation);
        fs::create_dir_all(place.before()).unwrap();
        fs::create_dir_all(place.work().join("dead-0/lib")).unwrap();
        let mut past = Some(Instant::now());
        let error = place.remove(&place.work(), &mut past).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(exists(&place.work().join("dead-0/lib")) && exists(&place.before()));
        // There is a moment for what is quick.
        place.recover().unwrap();
        assert!(exists(&place.venv()) && !exists(&place.work()));
    }
}
