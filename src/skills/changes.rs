//! What a script has changed of what decides about later runs: its skill's
//! document, and the venv that runs it.
//!
//! Told by the time of a file's last change (`ctime`), which no program can set. A
//! file system of another machine may have another clock: there it says nothing.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::{Skill, venv};

/// A moment, by the clock of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(i64, i64);

impl Moment {
    /// When this was changed last.
    pub fn of(path: &Path) -> io::Result<Moment> {
        path.symlink_metadata()
            .map(|status| Moment::in_status(&status))
    }

    fn in_status(status: &Metadata) -> Moment {
        Moment(status.ctime(), status.ctime_nsec())
    }
}

/// What decides about a skill, before a script of it runs.
#[derive(Debug)]
pub struct Before {
    document: Option<PathBuf>,
    venv: Option<PathBuf>,
    moment: Moment,
}

impl Before {
    /// What there is, at the moment when `mark`, a file, was made.
    pub fn of(skill: &Skill, mark: &Path) -> io::Result<Before> {
        let document = skill.document_name().ok();
        Ok(Before {
            document: document.map(|name| skill.path.join(name)),
            venv: venv::of_skill(&skill.path),
            moment: Moment::of(mark)?,
        })
    }

    /// What has changed since: the document, and of the venv whatever is found
    /// first, as paths in the skill.
    pub fn changed(&self, skill: &Skill) -> Vec<String> {
        let is_changed = |path: &&PathBuf| Moment::of(path).map_or(true, |at| at > self.moment);
        let document = self.document.as_ref().filter(is_changed).cloned();
        let venv = venv::of_skill(&skill.path).or(self.venv.clone());
        let venv = venv.and_then(|venv| first_changed(&venv, self.moment));
        let found = document.into_iter().chain(venv);
        let relative = |path: PathBuf| {
            let inside = path.strip_prefix(&skill.path);
            inside.unwrap_or(&path).display().to_string()
        };
        found.map(relative).collect()
    }
}

/// The first thing in that folder, or the folder itself, that was changed later or is
/// gone. A file that is added or removed changes its folder.
fn first_changed(folder: &Path, moment: Moment) -> Option<PathBuf> {
    let mut waiting = vec![folder.to_path_buf()];
    let mut left = limits::VENV_FILES;
    while let Some(path) = waiting.pop() {
        left = left.checked_sub(1)?;
        let Ok(status) = path.symlink_metadata() else {
            return Some(path);
        };
        if Moment::in_status(&status) > moment {
            return Some(path);
        }
        if status.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.map(|entry| entry.path()));
        }
    }
    None
}
