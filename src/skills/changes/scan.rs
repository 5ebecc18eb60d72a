//! The state of all files in a skill's folder.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::skill::is_document_name;
use crate::venv::SETUP_FOLDER;
use base::limits;
use host::confined::{Root, read_whole};

/// Folders that tools fill: they have too many files to record each.
const TOOL_FOLDERS: [&str; 5] = ["venv", ".venv", "node_modules", ".git", SETUP_FOLDER];

/// Time of the last change of a file (`ctime`): seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChangeTime(i64, i64);

impl ChangeTime {
    pub(super) fn from_metadata(status: &Metadata) -> ChangeTime {
        ChangeTime(status.ctime(), status.ctime_nsec())
    }
}

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

/// State of one entry.
#[derive(Debug)]
pub(super) enum EntryState {
    /// A file or a link: a hash that differs once it was written, replaced or renamed; of a link
    /// with its target.
    File(u64),
    /// A folder that tools fill, by device and inode.
    ToolFolder((u64, u64)),
    /// A folder that cannot be listed, so its changes are unknown.
    Unlistable,
}

impl EntryState {
    /// Whether nothing has changed from this state to the other.
    pub(super) fn is_same(&self, other: &EntryState) -> bool {
        match (self, other) {
            (EntryState::File(hash), EntryState::File(other)) => hash == other,
            (EntryState::ToolFolder(id), EntryState::ToolFolder(other)) => id == other,
            (EntryState::Unlistable, EntryState::Unlistable) => true,
            _ => false,
        }
    }
}

/// All entries of the folder and those below it.
#[derive(Debug, Default)]
pub(super) struct FolderScan {
    pub(super) entries: BTreeMap<PathBuf, EntryState>,
    /// Whether entries are missing, as the limit was reached.
    pub(super) is_cut: bool,
}

impl FolderScan {
    /// Scans every file of a skill. The only links to folders that are followed are venvs.
    pub(super) fn collect(skill: &Path) -> FolderScan {
        let mut scan = FolderScan::default();
        let mut budget = ScanBudget::new(limits::CHANGES_ENTRIES);
        let mut waiting = vec![skill.to_path_buf()];
        while let Some(folder) = waiting.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                scan.entries.insert(folder, EntryState::Unlistable);
                continue;
            };
            for entry in entries.flatten() {
                if !budget.spend_one() {
                    scan.is_cut = true;
                    return scan;
                }
                let path = entry.path();
                let filled = is_tool_folder(&path).then(|| path.metadata().ok()).flatten();
                if let Some(status) = filled.filter(Metadata::is_dir) {
                    let identity = (status.dev(), status.ino());
                    scan.entries.insert(path, EntryState::ToolFolder(identity));
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push(path);
                } else {
                    scan.add_file(&entry, folder == skill);
                }
            }
        }
        scan
    }

    /// Adds a file; `is_top`: it lies directly in the skill's folder.
    fn add_file(&mut self, entry: &fs::DirEntry, is_top: bool) {
        let path = entry.path();
        let Ok(status) = entry.metadata() else {
            return;
        };
        let target = status.is_symlink().then(|| path.metadata().ok()).flatten();
        let content = is_top.then(|| instructions(&path)).flatten();
        let mut hasher = DefaultHasher::new();
        for status in [Some(&status), target.as_ref()].into_iter().flatten() {
            status.mode().hash(&mut hasher);
            // The entries of a folder are no part of a link to it.
            if status.is_dir() {
                (status.dev(), status.ino()).hash(&mut hasher);
                continue;
            }
            if content.is_none() {
                let written = (status.size(), status.mtime(), status.mtime_nsec());
                let changed = (status.ctime(), status.ctime_nsec());
                (status.dev(), status.ino(), written, changed).hash(&mut hasher);
            }
        }
        content.hash(&mut hasher);
        self.entries.insert(path, EntryState::File(hasher.finish()));
    }
}

fn is_tool_folder(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    TOOL_FOLDERS.iter().any(|filled| name == *filled)
}

/// The content of a skill's document or requirements, which alone decides whether they changed: a
/// write through mapped memory on a `tmpfs` changes no time. Other files have none.
fn instructions(path: &Path) -> Option<Vec<u8>> {
    let name = path.file_name()?.to_str()?;
    if !is_document_name(name) && !name.starts_with("requirements") && name != "pyproject.toml" {
        return None;
    }
    // Confined opening does not block on a FIFO or device that has replaced the file.
    let file = Root::open(path.parent()?).and_then(|root| root.file(name)).ok()?;
    Some(read_whole(&file, limits::DOCUMENT_BYTES).ok()?.bytes)
}
