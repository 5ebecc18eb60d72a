//! The state of all files in the skills folders, as far as their status tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::startup_files::{decides, decides_by_name};
use super::{FileMoment, first_changed, is_watched};
use crate::limits;
use crate::skills::venv::SETUP_FOLDER;

/// Folders that tools fill: they have too many files to look at them twice.
const FILLED: [&str; 5] = ["venv", ".venv", "node_modules", ".git", SETUP_FOLDER];

/// How much may still be looked at.
#[derive(Debug)]
pub(super) struct ScanBudget {
    entries: usize,
    until: Instant,
    /// There was more.
    pub(super) is_spent: bool,
}

impl ScanBudget {
    pub(super) fn of(entries: usize) -> ScanBudget {
        ScanBudget { entries, until: Instant::now() + limits::CHANGES_TIME, is_spent: false }
    }

    /// Whether one more may be looked at.
    pub(super) fn take(&mut self) -> bool {
        // The clock costs as much as a file's status.
        let is_late = self.entries.is_multiple_of(64) && Instant::now() >= self.until;
        self.is_spent |= self.entries == 0 || is_late;
        self.entries = self.entries.saturating_sub(1);
        !self.is_spent
    }
}

/// What is looked at: the skill whose script runs first, then all others.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScannedFolders<'p> {
    /// The folder of the skill.
    pub(super) own: &'p Path,
    /// The skills folders.
    pub(super) folders: &'p [PathBuf],
}

/// Files by their paths, and the folders that tools fill.
#[derive(Debug, Default)]
pub(super) struct FileStamps {
    files: BTreeMap<PathBuf, u64>,
    filled: BTreeSet<PathBuf>,
    /// Folders that cannot be listed.
    closed: BTreeSet<PathBuf>,
    /// Not all of them.
    is_cut: bool,
}

/// What lies in a skills folder.
enum ScannedEntry {
    /// A file or a link.
    File(Metadata),
    /// A folder that tools fill.
    Filled,
    /// A folder that cannot be listed: nobody can say what has changed in it.
    Closed,
}

impl FileStamps {
    /// Notes the state of all files.
    pub(super) fn of(places: ScannedFolders<'_>) -> FileStamps {
        let mut stamps = FileStamps::default();
        let mut budget = ScanBudget::of(limits::CHANGES_ENTRIES);
        walk(places, &mut budget, &mut |path, found| match found {
            ScannedEntry::File(status) => {
                let stamp = stamp(&path, &status).0;
                stamps.files.insert(path, stamp);
            }
            ScannedEntry::Filled => {
                stamps.filled.insert(path);
            }
            ScannedEntry::Closed => {
                stamps.closed.insert(path);
            }
        });
        stamps.is_cut = budget.is_spent;
        stamps
    }

    /// The files that have changed since, or are gone, and decide about later runs; and
    /// folders that cannot be listed any more. What was not seen
    /// before, as there was too much, has changed if its time says so.
    pub(super) fn changed(
        &self,
        places: ScannedFolders<'_>,
        moment: FileMoment,
        budget: &mut ScanBudget,
    ) -> Vec<PathBuf> {
        let (mut changed, mut filled) = (Vec::new(), Vec::new());
        walk(places, budget, &mut |path, found| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.parent() == Some(places.own) && is_watched(&name) {
                // Compared more closely.
                return;
            }
            let status = match found {
                ScannedEntry::File(status) => status,
                ScannedEntry::Filled => return filled.push(path),
                ScannedEntry::Closed if self.closed.contains(&path) => return,
                ScannedEntry::Closed => return changed.push(path),
            };
            let (stamp, latest) = stamp(&path, &status);
            let has_changed = match self.files.get(&path) {
                Some(known) => *known != stamp,
                None => !self.is_cut || latest > moment,
            };
            if has_changed && (status.is_symlink() || decides(&path, &status)) {
                changed.push(path);
            }
        });
        let removed = self.files.keys().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_close = path.parent() == Some(places.own) && is_watched(&name);
            let is_gone = || path.symlink_metadata().is_err();
            !is_close && decides_by_name(path) && is_gone()
        });
        changed.extend(removed.cloned());
        for folder in filled {
            let is_new = !self.is_cut && !self.filled.contains(&folder);
            let first = if is_new { Some(folder) } else { first_changed(&folder, moment, budget) };
            changed.extend(first);
        }
        changed.sort_unstable();
        changed
    }
}

/// What differs once a file was written, replaced or renamed, and the time of its last
/// change; of a link also those of the file that it leads to.
fn stamp(path: &Path, status: &Metadata) -> (u64, FileMoment) {
    let target = status.is_symlink().then(|| path.metadata().ok()).flatten();
    let mut hasher = DefaultHasher::new();
    let mut latest = FileMoment::of(status);
    for status in [Some(status), target.as_ref()].into_iter().flatten() {
        (status.dev(), status.ino(), status.mode()).hash(&mut hasher);
        // What comes and goes in a folder is found there.
        if !status.is_dir() {
            let written = (status.mtime(), status.mtime_nsec());
            let changed = (status.ctime(), status.ctime_nsec());
            (status.size(), written, changed).hash(&mut hasher);
            latest = latest.max(FileMoment::of(status));
        }
    }
    (hasher.finish(), latest)
}

/// Visits every file below these places, each real folder once, through no link but one
/// that is a skill.
fn walk(
    places: ScannedFolders<'_>,
    budget: &mut ScanBudget,
    visit: &mut dyn FnMut(PathBuf, ScannedEntry),
) {
    let mut known = BTreeSet::new();
    let mut waiting: Vec<PathBuf> = Vec::new();
    for folder in places.folders.iter().rev() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else if let Ok(status) = entry.metadata()
                && budget.take()
            {
                visit(path, ScannedEntry::File(status));
            }
        }
    }
    waiting.push(places.own.to_path_buf());
    while let Some(folder) = waiting.pop() {
        let identity = folder.metadata().map(|status| (status.dev(), status.ino()));
        if !identity.is_ok_and(|identity| known.insert(identity)) {
            continue;
        }
        let name = folder.file_name().unwrap_or_default();
        if folder != places.own && FILLED.iter().any(|filled| name == *filled) {
            visit(folder, ScannedEntry::Filled);
            continue;
        }
        let Ok(entries) = fs::read_dir(&folder) else {
            visit(folder, ScannedEntry::Closed);
            continue;
        };
        for entry in entries.flatten() {
            let Ok(status) = entry.metadata() else {
                continue;
            };
            if !budget.take() {
                return;
            }
            if status.is_dir() {
                waiting.push(entry.path());
            } else {
                visit(entry.path(), ScannedEntry::File(status));
            }
        }
    }
}
