//! Detection of changes by a script that affect later runs: of every file in the skills folders
//! that a program runs, that a tool reads as settings, or that a model reads as instructions.
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

use crate::limits;
use crate::skills::Skill;

mod scan;
mod startup_files;

use scan::{ChangeTime, EntryState, FolderScan, ScanBudget, ScannedFolders};
pub(crate) use startup_files::is_program;
use startup_files::{affects_later_runs, path_affects_later_runs};

/// State of all skills folders before a script runs.
#[derive(Debug)]
pub(crate) struct SkillsSnapshot {
    before: FolderScan,
    taken_at: ChangeTime,
}

/// The changes since a [`SkillsSnapshot`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SkillChanges {
    /// Paths in the script's own skill.
    pub own: Vec<PathBuf>,
    /// Paths elsewhere in the skills folders.
    pub others: Vec<PathBuf>,
    /// All new files in the script's own skill, also those that affect no later run.
    pub left: Vec<PathBuf>,
    /// Whether there are more files than were checked.
    pub is_cut: bool,
}

fn own_path(skill: Option<&Skill>) -> Option<&Path> {
    Some(&skill?.path)
}

impl SkillsSnapshot {
    /// Records the state of the skill and of the skills folders. `mark` is a file that was
    /// changed just before: its time is the start of the run.
    pub(crate) fn capture(
        skill: Option<&Skill>,
        folders: &[PathBuf],
        mark: &Path,
    ) -> io::Result<SkillsSnapshot> {
        Ok(SkillsSnapshot {
            before: FolderScan::collect(ScannedFolders { own: own_path(skill), folders }),
            taken_at: ChangeTime::from_metadata(&mark.symlink_metadata()?),
        })
    }

    /// The changes since then; of a folder that tools fill, only the first one.
    pub(crate) fn changes(&self, skill: Option<&Skill>, folders: &[PathBuf]) -> SkillChanges {
        let own = own_path(skill);
        let after = FolderScan::collect(ScannedFolders { own, folders });
        let mut budget = ScanBudget::new(limits::VENV_FILES);
        let mut found = self.changed_paths(&after, &mut budget);
        found.extend(self.removed_paths(&after));
        found.sort_unstable();
        let is_cut = after.is_cut || budget.is_spent;
        let left = own.map_or(Vec::new(), |own| self.new_paths(&after, own));
        let mut changes = SkillChanges { left, is_cut, ..SkillChanges::default() };
        for path in found {
            match own.and_then(|own| path.strip_prefix(own).ok()) {
                Some(inner) => changes.own.push(inner.to_path_buf()),
                None => changes.others.push(path),
            }
        }
        changes
    }

    /// The new files in the skill's folder, relative to it, without those that Python and its
    /// tools cache.
    fn new_paths(&self, after: &FolderScan, own: &Path) -> Vec<PathBuf> {
        let known = &self.before.entries;
        let is_new = |path: &Path| !self.before.is_cut && !known.contains_key(path);
        let is_left = |path: &Path, state: &EntryState| match state {
            EntryState::File(..) => !path.iter().any(is_cache),
            _ => path.ends_with("node_modules"),
        };
        let left = after.entries.iter().filter_map(|(path, state)| {
            let inner = path.strip_prefix(own).ok()?;
            (is_new(path) && is_left(inner, state)).then(|| inner.to_path_buf())
        });
        left.collect()
    }

    /// New and changed files that affect later runs, folders that can no longer be listed, and
    /// what was changed in the folders that tools fill.
    fn changed_paths(&self, after: &FolderScan, budget: &mut ScanBudget) -> Vec<PathBuf> {
        let mut changed = Vec::new();
        for (path, now) in &after.entries {
            let known = self.before.entries.get(path);
            let is_same = known.is_some_and(|known| known.is_same(now));
            // If the first scan reached its limit, an unknown file may be an old one.
            let is_unknown = known.is_none() && self.before.is_cut;
            match now {
                EntryState::ToolFolder(_) if is_same || is_unknown => {
                    changed.extend(self.first_changed_in(path, budget));
                }
                EntryState::File(_, latest) if is_unknown && *latest <= self.taken_at => {}
                _ if is_same => {}
                EntryState::File(..) if !affects_later_runs(path) => {}
                _ => changed.push(path.clone()),
            }
        }
        changed
    }

    fn removed_paths(&self, after: &FolderScan) -> impl Iterator<Item = PathBuf> {
        let before = self.before.entries.iter();
        let removed = before.filter(|(path, state)| {
            let is_file = matches!(state, EntryState::File(..));
            !after.entries.contains_key(*path)
                && (!is_file || path_affects_later_runs(path))
                && path.symlink_metadata().is_err()
        });
        removed.map(|(path, _)| path.clone())
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
