//! The state of all files in the skills folders, as hashes of their metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::startup_files::{affects_later_runs, path_affects_later_runs};
use super::{ChangeTime, first_changed, is_watched};
use crate::limits;
use crate::skills::venv::SETUP_FOLDER;

/// Folders that tools fill: they have too many files to record each.
const TOOL_FOLDERS: [&str; 5] = ["venv", ".venv", "node_modules", ".git", SETUP_FOLDER];

/// Limit of entries and time for one scan.
#[derive(Debug)]
pub(super) struct ScanBudget {
    entries: usize,
    until: Instant,
    /// Whether the limit was reached.
    pub(super) is_spent: bool,
}

impl ScanBudget {
    pub(super) fn new(entries: usize) -> ScanBudget {
        ScanBudget { entries, until: Instant::now() + limits::CHANGES_TIME, is_spent: false }
    }

    /// Counts one entry; returns whether it is within the limit.
    pub(super) fn spend_one(&mut self) -> bool {
        // Reading the clock costs as much as a file's metadata.
        let is_late = self.entries.is_multiple_of(64) && Instant::now() >= self.until;
        self.is_spent |= self.entries == 0 || is_late;
        self.entries = self.entries.saturating_sub(1);
        !self.is_spent
    }
}

/// The folders that are scanned: first the skill whose script runs, then all others.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScannedFolders<'p> {
    /// The skill's folder.
    pub(super) own: &'p Path,
    /// The skills folders.
    pub(super) folders: &'p [PathBuf],
}

/// Stamps of files by path, and the folders whose files have none.
#[derive(Debug, Default)]
pub(super) struct FileStamps {
    files: BTreeMap<PathBuf, u64>,
    tool_folders: BTreeSet<PathBuf>,
    /// Folders that cannot be listed.
    unlistable: BTreeSet<PathBuf>,
    /// Whether files are missing, as the limit was reached.
    is_cut: bool,
}

/// An entry that a scan visits.
enum ScannedEntry {
    /// A file or a link.
    File(Metadata),
    /// A folder that tools fill.
    ToolFolder,
    /// A folder that cannot be listed, so its changes are unknown.
    Unlistable,
}

impl FileStamps {
    /// Records the state of all files.
    pub(super) fn collect(places: ScannedFolders<'_>) -> FileStamps {
        let mut stamps = FileStamps::default();
        let mut budget = ScanBudget::new(limits::CHANGES_ENTRIES);
        walk(places, &mut budget, &mut |path, found| match found {
            ScannedEntry::File(status) => {
                let stamp = stamp(&path, &status).0;
                stamps.files.insert(path, stamp);
            }
            ScannedEntry::ToolFolder => {
                stamps.tool_folders.insert(path);
            }
            ScannedEntry::Unlistable => {
                stamps.unlistable.insert(path);
            }
        });
        stamps.is_cut = budget.is_spent;
        stamps
    }

    /// The files that affect later runs and were changed or deleted since, and folders
    /// that can no longer be listed. If the first scan reached its limit, a file without a
    /// stamp counts as changed if its time is later than `moment`.
    pub(super) fn changed_files(
        &self,
        places: ScannedFolders<'_>,
        moment: ChangeTime,
        budget: &mut ScanBudget,
    ) -> Vec<PathBuf> {
        let (mut changed, mut filled) = (Vec::new(), Vec::new());
        walk(places, budget, &mut |path, found| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.parent() == Some(places.own) && is_watched(&name) {
                // Compared by content instead.
                return;
            }
            let status = match found {
                ScannedEntry::File(status) => status,
                ScannedEntry::ToolFolder => return filled.push(path),
                ScannedEntry::Unlistable if self.unlistable.contains(&path) => return,
                ScannedEntry::Unlistable => return changed.push(path),
            };
            let (stamp, latest) = stamp(&path, &status);
            let has_changed = match self.files.get(&path) {
                Some(known) => *known != stamp,
                None => !self.is_cut || latest > moment,
            };
            if has_changed && (status.is_symlink() || affects_later_runs(&path, &status)) {
                changed.push(path);
            }
        });
        let removed = self.files.keys().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_close = path.parent() == Some(places.own) && is_watched(&name);
            let is_gone = || path.symlink_metadata().is_err();
            !is_close && path_affects_later_runs(path) && is_gone()
        });
        changed.extend(removed.cloned());
        for folder in filled {
            let is_new = !self.is_cut && !self.tool_folders.contains(&folder);
            let first = if is_new { Some(folder) } else { first_changed(&folder, moment, budget) };
            changed.extend(first);
        }
        changed.sort_unstable();
        changed
    }
}

/// A hash that differs once a file was written, replaced or renamed, and the time of its
/// last change. For a link both include its target.
fn stamp(path: &Path, status: &Metadata) -> (u64, ChangeTime) {
    let target = status.is_symlink().then(|| path.metadata().ok()).flatten();
    let mut hasher = DefaultHasher::new();
    let mut latest = ChangeTime::from_metadata(status);
    for status in [Some(status), target.as_ref()].into_iter().flatten() {
        (status.dev(), status.ino(), status.mode()).hash(&mut hasher);
        // Added and removed entries of a folder are found by scanning it.
        if !status.is_dir() {
            let written = (status.mtime(), status.mtime_nsec());
            let changed = (status.ctime(), status.ctime_nsec());
            (status.size(), written, changed).hash(&mut hasher);
            latest = latest.max(ChangeTime::from_metadata(status));
        }
    }
    (hasher.finish(), latest)
}

/// Visits every file below these folders, each real folder once. The only links that are
/// followed are skills.
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
                && budget.spend_one()
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
        if folder != places.own && TOOL_FOLDERS.iter().any(|filled| name == *filled) {
            visit(folder, ScannedEntry::ToolFolder);
            continue;
        }
        let Ok(entries) = fs::read_dir(&folder) else {
            visit(folder, ScannedEntry::Unlistable);
            continue;
        };
        for entry in entries.flatten() {
            let Ok(status) = entry.metadata() else {
                continue;
            };
            if !budget.spend_one() {
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
