//! Detection of what a script changes in its own skill's folder.
//!
//! The files before and after the run are compared by size, times, inode and mode. Among the
//! times is that of the last change (`ctime`), which no program can set back without privileges.
//! Folders that tools fill (`venv`) have too many files to record each: they are searched for a
//! file that was changed later than the start of the run. That may miss changes on a file system
//! of another machine, with another clock.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Skill;
use base::limits;

mod scan;

use scan::{ChangeTime, EntryState, FolderScan, ScanBudget};

/// State of a skill's folder before a script runs.
#[derive(Debug)]
pub struct SkillSnapshot<'s> {
    skill: &'s Path,
    before: FolderScan,
    taken_at: ChangeTime,
}

/// The changes since a [`SkillSnapshot`], by paths in the skill's folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SkillChanges {
    /// Entries that were changed or deleted, and new folders that tools fill.
    pub changed: Vec<PathBuf>,
    /// New files.
    pub left: Vec<PathBuf>,
    /// Whether there are more files than were checked.
    pub is_cut: bool,
}

impl SkillSnapshot<'_> {
    /// Records the state of the skill. `mark` is a file that was changed just before: its time is
    /// the start of the run.
    pub fn capture<'s>(skill: &'s Skill, mark: &Path) -> io::Result<SkillSnapshot<'s>> {
        Ok(SkillSnapshot {
            skill: &skill.path,
            before: FolderScan::collect(&skill.path),
            taken_at: ChangeTime::from_metadata(&mark.symlink_metadata()?),
        })
    }

    /// The changes since then; of a folder that tools fill, only the first one.
    pub fn changes(&self) -> SkillChanges {
        let after = FolderScan::collect(self.skill);
        let mut budget = ScanBudget::new(limits::VENV_FILES);
        let mut changes = SkillChanges::default();
        for (path, now) in &after.entries {
            match self.before.entries.get(path) {
                // If the first scan reached its limit, an unknown file may be an old one.
                None if self.before.is_cut => {}
                None if self.is_left(path, now) => changes.left.push(path.clone()),
                Some(known) if known.is_same(now) => {
                    if let EntryState::ToolFolder(_) = now {
                        changes.changed.extend(self.first_changed_in(path, &mut budget));
                    }
                }
                _ => changes.changed.push(path.clone()),
            }
        }
        let before = self.before.entries.keys();
        let is_removed = |path: &&PathBuf| {
            !after.entries.contains_key(*path) && path.symlink_metadata().is_err()
        };
        changes.changed.extend(before.filter(is_removed).cloned());
        changes.changed.sort_unstable();
        for path in changes.changed.iter_mut().chain(&mut changes.left) {
            *path = path.strip_prefix(self.skill).unwrap_or(path).to_path_buf();
        }
        changes.is_cut = after.is_cut || budget.is_spent;
        changes
    }

    /// Whether a new entry is one that the script left: no cache of Python and its tools.
    fn is_left(&self, path: &Path, state: &EntryState) -> bool {
        let inner = path.strip_prefix(self.skill).unwrap_or(path);
        match state {
            EntryState::File(_) => !inner.iter().any(is_cache),
            _ => path.ends_with("node_modules"),
        }
    }

    /// The first path in that folder, or the folder itself, that was changed since. Adding or
    /// removing an entry changes its folder.
    fn first_changed_in(&self, folder: &Path, budget: &mut ScanBudget) -> Option<PathBuf> {
        let real = folder.canonicalize().ok()?;
        let mut waiting = vec![real.clone()];
        while let Some(path) = waiting.pop().filter(|_| budget.spend_one()) {
            let is_old = |status: &fs::Metadata| ChangeTime::from_metadata(status) <= self.taken_at;
            let Some(status) = path.symlink_metadata().ok().filter(is_old) else {
                let inner = path.strip_prefix(&real).unwrap_or(&path);
                return Some(folder.join(inner));
            };
            if status.is_dir() {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                waiting.extend(entries.map(|entry| entry.path()));
            }
        }
        None
    }
}

/// Whether Python or one of its tools caches files in a folder of this name.
fn is_cache(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name == b"__pycache__" || name.starts_with(b".") && name.ends_with(b"_cache")
}
