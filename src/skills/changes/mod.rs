//! Detection of changes by a script that affect later runs: of its skill's document, its
//! venv, the requirements of a setup and git's settings in its folder; and in all skills
//! folders of every file that a program runs, or that a model reads as instructions.
//!
//! The most important small files are compared by content, the others by size, times,
//! inode and mode. Among the times is that of the last change (`ctime`), which no program
//! can set back without privileges. Folders that tools fill with files (`venv`) are
//! compared by this time only. It may miss changes on a file system of another machine,
//! with another clock, and writes through mapped memory on a `tmpfs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::Skill;
use crate::skills::skill::is_document_name;
use crate::skills::venv::SETUP_FOLDER;
use crate::world::confined::{Root, read_whole};

mod stamps;
mod startup_files;

use stamps::{FileStamps, ScanBudget, ScannedFolders};

/// Time of the last change of a file (`ctime`): seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ChangeTime(i64, i64);

impl ChangeTime {
    fn from_metadata(status: &Metadata) -> ChangeTime {
        ChangeTime(status.ctime(), status.ctime_nsec())
    }
}

/// State of all files that affect later runs, before a script runs.
#[derive(Debug)]
pub(crate) struct SkillsSnapshot {
    watched: BTreeMap<PathBuf, WatchedState>,
    stamps: FileStamps,
    taken_at: ChangeTime,
}

/// The changes since a [`SkillsSnapshot`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SkillChanges {
    /// Paths in the script's own skill.
    pub own: Vec<PathBuf>,
    /// Paths elsewhere in the skills folders.
    pub others: Vec<PathBuf>,
    /// Whether there are more files than were checked.
    pub is_cut: bool,
}

/// State of a watched entry of the skill's folder.
#[derive(Debug, PartialEq, Eq)]
enum WatchedState {
    /// A small file with these bytes.
    File(Vec<u8>),
    /// The real path of a folder, a large file, or a file that a link leads out to.
    FolderOrLarge(Option<PathBuf>),
}

/// Whether an entry of the skill's folder is compared by content.
fn is_watched(name: &str) -> bool {
    // The last two can make the folder itself a git repository.
    let others = ["venv", ".venv", SETUP_FOLDER, "pyproject.toml", ".git", "HEAD", "config"];
    is_document_name(name) || name.starts_with("requirements") || others.contains(&name)
}

impl SkillsSnapshot {
    /// Records the state of the skill and of the skills folders. `mark` is a file that was
    /// changed just before: its time is the start of the run.
    pub(crate) fn capture(
        skill: &Skill,
        folders: &[PathBuf],
        mark: &Path,
    ) -> io::Result<SkillsSnapshot> {
        let own = &skill.path;
        Ok(SkillsSnapshot {
            watched: read_watched(own),
            stamps: FileStamps::collect(ScannedFolders { own, folders }),
            taken_at: ChangeTime::from_metadata(&mark.symlink_metadata()?),
        })
    }

    /// The changes since then; of a folder that tools fill, only the first one.
    pub(crate) fn changes(&self, skill: &Skill, folders: &[PathBuf]) -> SkillChanges {
        let own = &skill.path;
        let mut budget = ScanBudget::new(limits::VENV_FILES);
        let mut changes = SkillChanges {
            own: self.watched_changes(own, &mut budget),
            is_cut: budget.is_spent,
            ..SkillChanges::default()
        };
        let mut budget = ScanBudget::new(limits::CHANGES_ENTRIES);
        let places = ScannedFolders { own, folders };
        for path in self.stamps.changed_files(places, self.taken_at, &mut budget) {
            match path.strip_prefix(own) {
                Ok(inner) => changes.own.push(inner.to_path_buf()),
                Err(_) => changes.others.push(path),
            }
        }
        changes.own.sort_unstable();
        changes.is_cut |= budget.is_spent;
        changes
    }

    /// The changes of the watched entries.
    fn watched_changes(&self, own: &Path, budget: &mut ScanBudget) -> Vec<PathBuf> {
        let after = read_watched(own);
        let names: BTreeSet<&PathBuf> = self.watched.keys().chain(after.keys()).collect();
        let found =
            names.into_iter().filter_map(|name| match (self.watched.get(name), after.get(name)) {
                (
                    Some(WatchedState::FolderOrLarge(Some(before))),
                    Some(WatchedState::FolderOrLarge(Some(now))),
                ) if before == now => {
                    let inner = first_changed(now, self.taken_at, budget)?;
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

/// Reads the watched entries, with confined opening like all files of a skill. The folder
/// is opened again each time, as a script may have replaced it.
fn read_watched(folder: &Path) -> BTreeMap<PathBuf, WatchedState> {
    let root = Root::open(folder);
    let small = |name: &str| {
        let file = root.as_ref().ok()?.file(name).ok()?;
        let piece = read_whole(&file, limits::DOCUMENT_BYTES).ok()?;
        (!piece.has_more).then_some(piece.bytes)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| is_watched(name));
    names
        .map(|name| {
            let state = match small(&name) {
                Some(bytes) => WatchedState::File(bytes),
                None => WatchedState::FolderOrLarge(folder.join(&name).canonicalize().ok()),
            };
            (PathBuf::from(name), state)
        })
        .collect()
}

/// The first path in that folder, or the folder itself, that was changed later than
/// `moment`. Adding or removing an entry changes its folder.
fn first_changed(folder: &Path, moment: ChangeTime, budget: &mut ScanBudget) -> Option<PathBuf> {
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(path) = waiting.pop().filter(|_| budget.spend_one()) {
        let Ok(status) = path.symlink_metadata() else {
            return Some(path);
        };
        if ChangeTime::from_metadata(&status) > moment {
            return Some(path);
        }
        if status.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.map(|entry| entry.path()));
        }
    }
    None
}
