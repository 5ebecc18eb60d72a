//! All files below a folder.
//!
//! Bounded in depth, number and memory whatever lies on the disk, and it says
//! when something was left out. Nothing here reads a file's content.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::list::{MARK_OF_VENVS, is_filled_by_tools, read_entries};
use super::open::{OpenedKind, status};
use super::path::RelativePath;
use super::{EntryKind, FolderEntries, OpenError, PathTarget, Root};
use crate::limits;
use crate::order;

/// How far a walk goes.
#[derive(Clone, Copy, Debug)]
pub struct WalkLimits {
    /// Levels of folders; 1 for the files of the folder itself.
    pub depth: usize,
    /// Files that are named.
    pub files: usize,
    /// Entries of any kind that are looked at.
    pub entries: usize,
}

/// The files below a folder, sorted by path.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileTree {
    /// Relative to the folder.
    pub files: Vec<PathBuf>,
    /// Whether a limit left something out.
    pub cut: bool,
    /// How many folders could not be read.
    pub unreadable: usize,
}

/// Level by level, so that a limit cuts what lies deepest.
pub(super) fn walk(root: &Root, limits: WalkLimits) -> Result<FileTree, OpenError> {
    let mut tree = FileTree::default();
    let mut budget = WalkBudget { entries: limits.entries, path_bytes: limits::WALK_PATH_BYTES };
    let mut folders = VecDeque::from([(PathBuf::new(), 1)]);
    while let Some((path, depth)) = folders.pop_front() {
        let listed = root.folder(&path).and_then(|folder| budget.entries(&folder));
        let entries = match listed {
            Ok(entries) => entries,
            Err(refusal) if depth == 1 => return Err(refusal),
            // Removed since its name was read.
            Err(OpenError::NotFound) => continue,
            Err(_) => {
                tree.unreadable += 1;
                continue;
            }
        };
        // A skill that is a venv itself has its own files in it, too.
        if depth > 1 && entries.are_of_venv() {
            continue;
        }
        tree.cut |= entries.unread || entries.left_out > 0;
        for entry in entries.by_people() {
            let below = path.join(&entry.name);
            let is_folder = entry.kind == EntryKind::Folder;
            if !is_folder && !is_readable(root, &below, entry.kind) {
                continue;
            }
            let fits =
                if is_folder { depth < limits.depth } else { tree.files.len() < limits.files };
            if !fits || !budget.takes(&below) {
                tree.cut = true;
            } else if is_folder {
                folders.push_back((below, depth + 1));
            } else {
                tree.files.push(below);
            }
        }
    }
    order::sort(&mut tree.files);
    Ok(tree)
}

/// Opens what a walk that has no limits comes by.
pub(super) fn open(root: &Root, path: &OsStr) -> Result<PathTarget, OpenError> {
    let below = RelativePath::parse(path)?;
    let mut folder = root.folder("")?;
    for (index, name) in below.names.iter().enumerate() {
        let kind = status(folder.as_fd(), name).map(|status| status.st_mode & libc::S_IFMT);
        let is_last = index + 1 == below.names.len();
        let name = OsStr::from_bytes(name.as_bytes());
        if is_filled_by_tools(name) {
            return Err(OpenError::NotFound);
        }
        match kind {
            Some(libc::S_IFDIR) => folder = folder.folder(name)?,
            // A link is confined to the whole, not to the folder that it lies in.
            Some(_) if is_last => {
                return match root.node(path)? {
                    PathTarget::Folder(_) => Err(OpenError::Link),
                    file @ PathTarget::File(_) => Ok(file),
                };
            }
            Some(libc::S_IFREG) => return Err(OpenError::NotAFolder),
            _ => return Err(OpenError::NotFound),
        }
        if is_venv(&folder) {
            return Err(OpenError::NotFound);
        }
    }
    Ok(PathTarget::Folder(folder))
}

fn is_venv(folder: &Root) -> bool {
    let mark = CString::new(MARK_OF_VENVS).unwrap_or_default();
    status(folder.as_fd(), &mark).is_some()
}

/// What a walk may still use up.
struct WalkBudget {
    entries: usize,
    path_bytes: usize,
}

impl WalkBudget {
    fn entries(&mut self, folder: &Root) -> Result<FolderEntries, OpenError> {
        let read = read_entries(folder, self.entries, self.entries)?;
        self.entries = self.entries.saturating_sub(read.list.len());
        Ok(read)
    }

    fn takes(&mut self, path: &Path) -> bool {
        let length = path.as_os_str().len();
        let fits = length <= self.path_bytes;
        self.path_bytes = self.path_bytes.saturating_sub(length);
        fits
    }
}

/// Whether a walk names it: a link counts where it leads to a file inside.
fn is_readable(root: &Root, path: &Path, kind: EntryKind) -> bool {
    match kind {
        EntryKind::File => true,
        EntryKind::Link => matches!(root.look(path.as_os_str()), Ok((_, OpenedKind::File { .. }))),
        EntryKind::Folder | EntryKind::Other => false,
    }
}
