//! Listing of a folder.
//!
//! Memory use and the number of entries are limited, and omitted entries are reported. Reads
//! no file's content and follows no link.

use std::collections::BinaryHeap;
use std::ffi::{CString, OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;

use nix::fcntl::OFlag;

use super::open::{entry_status, open_name};
use super::{OpenError, Root};
use crate::listing::visit_entries;

/// Folders that tools create, with no content written for readers.
const TOOL_FOLDERS: [&str; 7] = [
    ".git",
    ".skills-runner-install",
    ".skills-runner-setup",
    ".venv",
    "__pycache__",
    "node_modules",
    "venv",
];

/// File that every venv contains (PEP 405).
pub const VENV_MARKER: &str = "pyvenv.cfg";

/// Kind of an entry. Links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Other,
}

/// Entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// Name as on the disk; it may contain invalid UTF-8 and line breaks.
    pub name: OsString,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Size of a regular file in bytes, if known.
    pub size: Option<u64>,
}

/// The entries of a folder, sorted by the bytes of their names.
#[derive(Debug, PartialEq, Eq)]
pub struct FolderEntries {
    /// The first entries, at most as many as requested.
    pub entries: Vec<FolderEntry>,
    /// Number of further entries.
    pub omitted: usize,
    /// Whether there are so many that not all names were read: then there are at
    /// least `omitted` more, and names that sort earlier may be missing.
    pub is_incomplete: bool,
}

impl FolderEntries {
    /// Whether the folder is a venv.
    pub fn is_venv(&self) -> bool {
        self.entries.iter().any(|entry| entry.name == VENV_MARKER)
    }

    /// The entries without the folders that tools create.
    pub fn without_tool_folders(self) -> impl Iterator<Item = FolderEntry> {
        let entries = self.entries.into_iter();
        entries.filter(|entry| !is_tool_folder(&entry.name))
    }
}

/// Whether a folder of this name is created by tools.
pub(super) fn is_tool_folder(name: &OsStr) -> bool {
    TOOL_FOLDERS.iter().any(|filled| name == *filled)
}

/// Reads up to `max_read` names from the system and keeps the `keep` that sort first.
pub(super) fn read_entries(
    root: &Root,
    keep: usize,
    max_read: usize,
) -> Result<FolderEntries, OpenError> {
    let folder = open_name(root.as_fd(), c".", OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
    // The name that sorts last is on top, to be replaced by one that sorts earlier.
    let mut kept: BinaryHeap<(Vec<u8>, u8)> = BinaryHeap::new();
    let mut read = 0;
    let mut is_incomplete = false;
    visit_entries(folder.as_raw_fd(), &mut |name, kind| {
        if read == max_read {
            is_incomplete = true;
            return ControlFlow::Break(());
        }
        read += 1;
        let name = name.to_bytes();
        if kept.len() < keep {
            kept.push((name.to_vec(), kind));
        } else if let Some(mut last) = kept.peek_mut().filter(|last| name < last.0.as_slice()) {
            *last = (name.to_vec(), kind);
        }
        ControlFlow::Continue(())
    })?;
    let omitted = read - kept.len() + usize::from(is_incomplete);
    let list = kept.into_sorted_vec().into_iter().map(|(name, kind)| describe(root, name, kind));
    Ok(FolderEntries { entries: list.collect(), omitted, is_incomplete })
}

fn describe(root: &Root, name: Vec<u8>, kind: u8) -> FolderEntry {
    let mut size = None;
    let kind = match kind {
        libc::DT_DIR => EntryKind::Folder,
        libc::DT_LNK => EntryKind::Link,
        // Some file systems do not report the kind; the size needs `fstatat` anyway.
        libc::DT_REG | libc::DT_UNKNOWN => {
            match CString::new(name.as_slice())
                .ok()
                .and_then(|name| entry_status(root.as_fd(), &name))
            {
                Some(status) => match status.st_mode & libc::S_IFMT {
                    libc::S_IFREG => {
                        size = u64::try_from(status.st_size).ok();
                        EntryKind::File
                    }
                    libc::S_IFDIR => EntryKind::Folder,
                    libc::S_IFLNK => EntryKind::Link,
                    _ => EntryKind::Other,
                },
                None if kind == libc::DT_REG => EntryKind::File,
                None => EntryKind::Other,
            }
        }
        _ => EntryKind::Other,
    };
    FolderEntry { name: OsString::from_vec(name), kind, size }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{INSIDE, hostile_skill};
    use super::*;

    #[test]
    fn lists_entries_sorted_and_limited() {
        let dir = hostile_skill();
        let root = Root::open(&dir.path("skill")).unwrap();
        let all = root.entries(1000).unwrap();
        assert_eq!((all.omitted, all.is_incomplete), (0, false));
        assert!(all.entries.is_sorted_by(|one, other| one.name < other.name));
        let find = |name: &str| {
            let entry = all.entries.iter().find(|entry| entry.name == name).unwrap();
            (entry.kind, entry.size)
        };
        assert_eq!(find("a.md"), (EntryKind::File, Some(INSIDE.len() as u64)));
        assert_eq!(find("docs"), (EntryKind::Folder, None));
        assert_eq!(find("link-out"), (EntryKind::Link, None));
        assert_eq!(find("fifo"), (EntryKind::Other, None));
        let some = root.entries(5).unwrap();
        assert_eq!(some.entries, all.entries[..5]);
        assert_eq!(some.omitted, all.entries.len() - 5);
        assert_eq!(root.entries(0).unwrap().omitted, all.entries.len());
        let little = read_entries(&root, 5, 7).unwrap();
        assert_eq!((little.entries.len(), little.omitted, little.is_incomplete), (5, 3, true));
    }
}
