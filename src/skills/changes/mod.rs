//! What a script has changed of what decides about later runs: the document of its
//! skill, the venv that runs it, what a setup installs, what git does in its folder;
//! and in all skills folders every file that a program runs, or a model reads as
//! instructions.
//!
//! Small files that decide most are compared; of the others size, times, inode and mode
//! tell, among them the time of the last change (`ctime`), which no program can set back
//! without privileges. Of the folders that tools fill with files (`venv`), only that time
//! tells. On a file system of another machine, with another clock, and for what was
//! written through memory on a `tmpfs`, it may say nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::Skill;
use crate::skills::skill::is_document;
use crate::skills::venv::SETUP_FOLDER;
use crate::world::confined::{Root, read_whole};

mod stamps;
mod startup_files;

use stamps::{FileStamps, ScanBudget, ScannedFolders};

/// A moment, by the clock of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileMoment(i64, i64);

impl FileMoment {
    fn of(status: &Metadata) -> FileMoment {
        FileMoment(status.ctime(), status.ctime_nsec())
    }
}

/// What decides about later runs, before a script runs.
#[derive(Debug)]
pub(crate) struct SkillsSnapshot {
    watched: BTreeMap<PathBuf, WatchedState>,
    stamps: FileStamps,
    moment: FileMoment,
}

/// What has changed since.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SkillChanges {
    /// Paths in the script's own skill.
    pub own: Vec<PathBuf>,
    /// Paths of what lies elsewhere in the skills folders.
    pub others: Vec<PathBuf>,
    /// There are more files than are looked at.
    pub is_cut: bool,
}

/// What a watched name is.
#[derive(Debug, PartialEq, Eq)]
enum WatchedState {
    /// A small file with these bytes.
    File(Vec<u8>),
    /// A folder that lies here; a large file, or one behind a link that leads out.
    Other(Option<PathBuf>),
}

/// Whether this name in the skill's folder is looked at closely.
fn is_watched(name: &str) -> bool {
    // The last two make a repository of the folder itself.
    let others = ["venv", ".venv", SETUP_FOLDER, "pyproject.toml", ".git", "HEAD", "config"];
    is_document(name) || name.starts_with("requirements") || others.contains(&name)
}

impl SkillsSnapshot {
    /// What there is, at the moment when `mark` was changed last: in the skill, and in
    /// these folders of skills.
    pub(crate) fn of(
        skill: &Skill,
        folders: &[PathBuf],
        mark: &Path,
    ) -> io::Result<SkillsSnapshot> {
        let own = &skill.path;
        Ok(SkillsSnapshot {
            watched: watched(own),
            stamps: FileStamps::of(ScannedFolders { own, folders }),
            moment: FileMoment::of(&mark.symlink_metadata()?),
        })
    }

    /// What has changed since; of a folder that tools fill what is found first.
    pub(crate) fn changes(&self, skill: &Skill, folders: &[PathBuf]) -> SkillChanges {
        let own = &skill.path;
        let mut budget = ScanBudget::of(limits::VENV_FILES);
        let mut changes = SkillChanges {
            own: self.watched_changes(own, &mut budget),
            is_cut: budget.is_spent,
            ..SkillChanges::default()
        };
        let mut budget = ScanBudget::of(limits::CHANGES_ENTRIES);
        let places = ScannedFolders { own, folders };
        for path in self.stamps.changed(places, self.moment, &mut budget) {
            match path.strip_prefix(own) {
                Ok(inner) => changes.own.push(inner.to_path_buf()),
                Err(_) => changes.others.push(path),
            }
        }
        changes.own.sort_unstable();
        changes.is_cut |= budget.is_spent;
        changes
    }

    /// What has changed of what is watched closely.
    fn watched_changes(&self, own: &Path, budget: &mut ScanBudget) -> Vec<PathBuf> {
        let after = watched(own);
        let names: BTreeSet<&PathBuf> = self.watched.keys().chain(after.keys()).collect();
        let found =
            names.into_iter().filter_map(|name| match (self.watched.get(name), after.get(name)) {
                (Some(WatchedState::Other(Some(before))), Some(WatchedState::Other(Some(now))))
                    if before == now =>
                {
                    let inner = first_changed(now, self.moment, budget)?;
                    match inner.strip_prefix(now) {
                        Ok(rest) if !rest.as_os_str().is_empty() => Some(name.join(rest)),
                        _ => Some(name.clone()),
                    }
                }
                (before, now) => (before != now).then(|| name.clone()),
            });
        found.collect()
    }
}

/// Through the confined door, as everything of a skill; a folder that has taken the
/// place of another is opened anew.
fn watched(folder: &Path) -> BTreeMap<PathBuf, WatchedState> {
    let root = Root::open(folder);
    let small = |name: &str| {
        let file = root.as_ref().ok()?.file(name).ok()?;
        let piece = read_whole(&file, limits::DOCUMENT_BYTES).ok()?;
        (!piece.more).then_some(piece.bytes)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| is_watched(name));
    names
        .map(|name| {
            let state = match small(&name) {
                Some(bytes) => WatchedState::File(bytes),
                None => WatchedState::Other(folder.join(&name).canonicalize().ok()),
            };
            (PathBuf::from(name), state)
        })
        .collect()
}

/// The first thing in that folder, or the folder itself, that was changed later. What is
/// added or removed changes its folder.
fn first_changed(folder: &Path, moment: FileMoment, budget: &mut ScanBudget) -> Option<PathBuf> {
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(path) = waiting.pop().filter(|_| budget.take()) {
        let Ok(status) = path.symlink_metadata() else {
            return Some(path);
        };
        if FileMoment::of(&status) > moment {
            return Some(path);
        }
        if status.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.map(|entry| entry.path()));
        }
    }
    None
}
