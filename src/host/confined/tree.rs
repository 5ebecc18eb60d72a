//! Listing of all files below a folder.
//!
//! Depth, number and memory use are limited, and omissions are reported. Reads no file's
//! content.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::list::{VENV_MARKER, is_tool_folder, read_entries};
use super::open::{OpenedKind, entry_status};
use super::path::RelativePath;
use super::{EntryKind, FolderEntries, OpenError, PathTarget, Root};
use base::limits;

/// Limits of a walk.
#[derive(Clone, Copy, Debug)]
pub struct WalkLimits {
    /// Levels of folders; 1 lists only the files of the folder itself.
    pub depth: usize,
    /// Listed files.
    pub files: usize,
    /// Examined entries of any kind.
    pub entries: usize,
}

/// The files below a folder, sorted by path.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileTree {
    /// Paths relative to the folder.
    pub files: Vec<PathBuf>,
    /// Whether files were omitted because of a limit.
    pub is_cut: bool,
    /// Number of folders that could not be read.
    pub unreadable: usize,
}

/// Lists the files level by level, so that a limit omits the deepest ones.
pub(super) fn walk(root: &Root, limits: WalkLimits) -> Result<FileTree, OpenError> {
    let mut tree = FileTree::default();
    let mut budget = WalkBudget { entries: limits.entries, path_bytes: limits::WALK_PATH_BYTES };
    let mut folders = VecDeque::from([(PathBuf::new(), 1)]);
    while let Some((path, depth)) = folders.pop_front() {
        let listed = root.folder(&path).and_then(|folder| budget.entries(&folder));
        let entries = match listed {
            Ok(entries) => entries,
            Err(error) if depth == 1 => return Err(error),
            // The folder was deleted since its name was read.
            Err(OpenError::NotFound) => continue,
            Err(_) => {
                tree.unreadable += 1;
                continue;
            }
        };
        // A skill may be a venv itself: then its own files are in it too.
        if depth > 1 && entries.is_venv() {
            continue;
        }
        tree.is_cut |= entries.is_incomplete || entries.omitted > 0;
        for entry in entries.without_tool_folders() {
            let below = path.join(&entry.name);
            let is_folder = entry.kind == EntryKind::Folder;
            if !is_folder && !is_readable(root, &below, entry.kind) {
                continue;
            }
            let fits =
                if is_folder { depth < limits.depth } else { tree.files.len() < limits.files };
            if !fits || !budget.spend(&below) {
                tree.is_cut = true;
            } else if is_folder {
                folders.push_back((below, depth + 1));
            } else {
                tree.files.push(below);
            }
        }
    }
    tree.files.sort();
    Ok(tree)
}

/// Opens what a walk without limits would list or enter.
pub(super) fn open(root: &Root, path: &OsStr) -> Result<PathTarget, OpenError> {
    let below = RelativePath::parse(path)?;
    let mut folder = root.folder("")?;
    for (index, name) in below.names.iter().enumerate() {
        let kind = entry_status(folder.as_fd(), name).map(|status| status.st_mode & libc::S_IFMT);
        let is_last = index + 1 == below.names.len();
        let name = OsStr::from_bytes(name.as_bytes());
        if is_tool_folder(name) {
            return Err(OpenError::NotFound);
        }
        match kind {
            Some(libc::S_IFDIR) => folder = folder.folder(name)?,
            // Opened from the root: a link may leave its own folder, but not the root.
            Some(_) if is_last => {
                return match root.open_target(path)? {
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
    let mark = CString::new(VENV_MARKER).unwrap_or_default();
    entry_status(folder.as_fd(), &mark).is_some()
}

/// Remaining limits of a walk.
struct WalkBudget {
    entries: usize,
    path_bytes: usize,
}

impl WalkBudget {
    fn entries(&mut self, folder: &Root) -> Result<FolderEntries, OpenError> {
        let read = read_entries(folder, self.entries, self.entries)?;
        self.entries = self.entries.saturating_sub(read.entries.len());
        Ok(read)
    }

    /// Subtracts the length of a path. Returns false if it does not fit.
    fn spend(&mut self, path: &Path) -> bool {
        let length = path.as_os_str().len();
        let fits = length <= self.path_bytes;
        self.path_bytes = self.path_bytes.saturating_sub(length);
        fits
    }
}

/// Whether a walk lists this entry: a file, or a link to a file inside.
fn is_readable(root: &Root, path: &Path, kind: EntryKind) -> bool {
    match kind {
        EntryKind::File => true,
        EntryKind::Link => {
            matches!(root.inspect(path.as_os_str()), Ok((_, OpenedKind::File { .. })))
        }
        EntryKind::Folder | EntryKind::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CANARY, INSIDE, MECHANISMS, TempDir, content};
    use super::*;
    use crate::confined::Mechanism;

    #[test]
    fn walks_all_files_inside() {
        let dir = TempDir::new();
        dir.file("secret/x", CANARY);
        for path in ["z", "a/b/c/d", "a/b/e", "a.md", ".hidden", "venv.py"] {
            dir.file(&format!("skill/{path}"), INSIDE);
        }
        for path in [
            ".git/x",
            "a/node_modules/x",
            "__pycache__/x",
            "a/b/venv/x",
            ".venv/x",
            "env/pyvenv.cfg",
            "env/lib/x",
            "pyvenv.cfg",
        ] {
            dir.file(&format!("skill/{path}"), INSIDE);
        }
        dir.link("a.md", "skill/link-in");
        dir.link("a", "skill/folder-in");
        dir.link(".", "skill/a/circle");
        dir.link("../secret", "skill/folder-out");
        dir.link("../secret/x", "skill/link-out");
        assert!(dir.special_file("skill/fifo", libc::S_IFIFO, 0));
        let limits = WalkLimits { depth: 9, files: 99, entries: 999 };
        let paths = |tree: &FileTree| -> Vec<String> {
            tree.files.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
        };
        for mechanism in MECHANISMS {
            let root = Root::open_with(&dir.path("skill"), mechanism).unwrap();
            let walk = |limits| root.walk(limits).unwrap();
            let tree = walk(limits);
            let mut expected = vec![
                ".hidden",
                "a/b/c/d",
                "a/b/e",
                "a.md",
                "link-in",
                "pyvenv.cfg",
                "venv.py",
                "z",
            ];
            expected.retain(|path| mechanism == Mechanism::Openat2 || *path != "link-in");
            assert_eq!(paths(&tree), expected);
            assert_eq!((tree.is_cut, tree.unreadable), (false, 0));
            for path in &tree.files {
                assert_eq!(content(root.file(path).unwrap()), INSIDE);
            }
            let shallow = walk(WalkLimits { depth: 3, ..limits });
            assert!(shallow.is_cut && !paths(&shallow).contains(&"a/b/c/d".to_owned()));
            assert!(paths(&shallow).contains(&"a/b/e".to_owned()));
            let few = walk(WalkLimits { files: 2, ..limits });
            assert!(few.is_cut);
            assert_eq!(paths(&few), [".hidden", "a.md"]);
            assert!(walk(WalkLimits { entries: 3, ..limits }).is_cut);
            assert!(walk(WalkLimits { entries: 0, ..limits }).is_cut);
        }
    }
}
