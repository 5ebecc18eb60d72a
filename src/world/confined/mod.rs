//! The one confined way to open anything below a folder.
//!
//! A skill's files are named by a language model, and a skill may come from a
//! stranger. Whoever opens something in a skill or a skills folder (the document,
//! files, a script's path, an MCP resource) goes through a [`Root`]: nothing
//! outside is reached by `..`, by absolute paths, by links or by swapping them at
//! the right moment, and nothing that is not a regular file is read.
//!
//! A file is opened twice: first only to look (`O_PATH` runs no driver, wakes no
//! writer of a FIFO, needs no permission), and when it is a regular file, to
//! read, confined as before. The second descriptor is judged by itself, so it
//! does no harm when the two differ: an editor that saves by renaming has come
//! between.
//!
//! What this must not do: decide what a file is for, word whole messages, or open
//! anything by a path that was checked before.

use crate::limits;
mod list;
mod open;
mod path;
mod read;
mod refusal;
#[cfg(test)]
mod tests;
mod tree;
mod write;

use std::ffi::{CStr, CString, OsStr};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use list::read_entries;
pub(crate) use list::{EntryKind, FolderEntries, FolderEntry, MARK_OF_VENVS};
pub use open::Mechanism;
use open::{LOOK, OpenPurpose, OpenedKind, link_told, look, open_folder, open_name, user};
use path::{RelativePath, strip};
pub use read::read_whole;
pub(crate) use read::{read_head, read_range};
pub use refusal::OpenError;
pub(crate) use tree::FileTree;
pub use tree::WalkLimits;

/// Device and inode: what a folder is, by whatever path it is reached.
pub(crate) type Identity = (u64, u64);

/// The bits of a mode by which group and others may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// An opened folder that nothing opened through it can leave.
pub struct Root {
    folder: OwnedFd,
    path: PathBuf,
    is_linked: bool,
    mechanism: Mechanism,
}

/// A regular file, opened for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// To read from, bounded: see [`read_whole`] and `read_range`.
    pub file: File,
    /// Bytes, as the system said when it was opened.
    pub size: u64,
}

/// What a path leads to.
#[derive(Debug)]
pub enum PathTarget {
    /// A regular file.
    File(OpenFile),
    /// A folder.
    Folder(Root),
}

impl Root {
    /// Opens the folder at `path`, which the user chose: it may be a link.
    pub fn open(path: &Path) -> Result<Root, OpenError> {
        Root::open_with(path, Mechanism::available())
    }

    /// Like [`Root::open`], with a given way of opening what lies below.
    pub fn open_with(path: &Path, mechanism: Mechanism) -> Result<Root, OpenError> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| OpenError::Nul)?;
        let (folder, is_linked) = open_folder(&name)?;
        Ok(Root { folder, path: path.to_owned(), is_linked, mechanism })
    }

    /// Opens the folder `names` below the folder `base`, over no link, if nobody but
    /// root and this user can have put there what lies in it: each of the folders is
    /// theirs, and in the last two nobody else may write. In the first others may, as
    /// a group may in `/usr/local/share`: what they put there is theirs, or a link.
    pub fn open_own(base: &Path, names: [&CStr; 3]) -> Result<Root, OpenError> {
        let mut root = Root::open(base)?;
        let flags = LOOK | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        for (place, name) in names.into_iter().enumerate() {
            let opened = open_name(root.as_fd(), name, flags).map_err(OpenError::from);
            let folder = File::from(opened.map_err(|refusal| match refusal {
                OpenError::NotAFolder | OpenError::TooManyLinks => OpenError::Foreign,
                other => other,
            })?);
            let meta = folder.metadata()?;
            let is_own = [0, user()].contains(&meta.uid());
            let is_open = place > 0 && meta.mode() & WRITABLE_BY_OTHERS != 0;
            if !is_own || is_open {
                return Err(OpenError::Foreign);
            }
            let name = OsStr::from_bytes(name.to_bytes());
            root = Root { is_linked: false, ..root.below(folder.into(), name) };
        }
        Ok(root)
    }

    /// Opens the direct subfolder `name`, which may be a link to anywhere: a
    /// skill in a skills folder, where the user has put the link.
    pub fn linked_folder(&self, name: impl AsRef<OsStr>) -> Result<Root, OpenError> {
        let name = name.as_ref();
        let below = RelativePath::parse(name)?;
        let [only] = below.names.as_slice() else {
            return Err(OpenError::NotFound);
        };
        if only.as_bytes() != name.as_bytes() {
            return Err(OpenError::NotFound);
        }
        let flags = LOOK | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let (folder, is_linked) = link_told(flags, |flags| open_name(self.as_fd(), only, flags))?;
        Ok(Root { is_linked: self.is_linked || is_linked, ..self.below(folder, name) })
    }

    /// Opens the folder `relative`, confined; empty or `.` for this one again.
    pub fn folder(&self, relative: impl AsRef<OsStr>) -> Result<Root, OpenError> {
        let relative = relative.as_ref();
        match self.look(relative)? {
            (folder, OpenedKind::Folder) => Ok(self.below(folder, relative)),
            (_, OpenedKind::Link) => Err(OpenError::Link),
            (_, OpenedKind::File { .. } | OpenedKind::Other(_)) => Err(OpenError::NotAFolder),
        }
    }

    /// Opens the regular file `relative` for reading.
    pub fn file(&self, relative: impl AsRef<OsStr>) -> Result<File, OpenError> {
        match self.node(relative)? {
            PathTarget::File(open) => Ok(open.file),
            PathTarget::Folder(_) => Err(OpenError::NotAFile("a folder")),
        }
    }

    /// Opens the regular file `relative` at the least cost, for whoever opens
    /// thousands of them. `None` also for a file behind a link, or where nothing
    /// can be said: look closer then.
    pub fn plain_file(&self, relative: &CStr) -> Option<OpenFile> {
        let descriptor = self.mechanism.open_plain(self.as_fd(), relative)?;
        match look(descriptor).ok()? {
            (descriptor, OpenedKind::File { size }) => {
                Some(OpenFile { file: descriptor.into(), size })
            }
            _ => None,
        }
    }

    /// Opens the regular file or the folder `relative`.
    pub fn node(&self, relative: impl AsRef<OsStr>) -> Result<PathTarget, OpenError> {
        let relative = relative.as_ref();
        let below = RelativePath::parse(relative)?;
        let seen = look(self.mechanism.open(self.as_fd(), &below, OpenPurpose::Look)?)?;
        let (descriptor, found) = match seen {
            // Only what was seen to be a regular file is opened to be read.
            (_, OpenedKind::File { .. }) => {
                look(self.mechanism.open(self.as_fd(), &below, OpenPurpose::Read)?)?
            }
            other => other,
        };
        match found {
            OpenedKind::File { size } => {
                Ok(PathTarget::File(OpenFile { file: descriptor.into(), size }))
            }
            OpenedKind::Folder => Ok(PathTarget::Folder(self.below(descriptor, relative))),
            OpenedKind::Link => Err(OpenError::Link),
            OpenedKind::Other(kind) => Err(OpenError::NotAFile(kind)),
        }
    }

    /// The names in the folder, the first `limit` of them by their bytes.
    pub fn entries(&self, limit: usize) -> Result<FolderEntries, OpenError> {
        read_entries(self, limit, limits::ENTRIES_READ)
    }

    /// All files below the folder, but for those in folders that tools fill
    /// (`.git`, `node_modules`, `__pycache__`, `venv`, `.venv`).
    pub fn walk(&self, limits: WalkLimits) -> Result<FileTree, OpenError> {
        tree::walk(self, limits)
    }

    /// Opens a file that a [`Root::walk`] would name, or a folder that it would
    /// enter; empty for this one.
    pub fn walked(&self, relative: impl AsRef<OsStr>) -> Result<PathTarget, OpenError> {
        tree::open(self, relative.as_ref())
    }

    /// Turns an absolute path that lies in the folder into a relative one, by
    /// its text, or by where it meets the folder through other links; a
    /// relative one stays. Opening it is what confines.
    pub fn relative(&self, path: &str) -> Result<String, OpenError> {
        if !path.starts_with('/') {
            return Ok(path.to_owned());
        }
        let typed = self.path.is_absolute().then_some(&self.path);
        let rest = typed
            .and_then(|folder| strip(folder, path))
            .or_else(|| strip(&fs::canonicalize(&self.path).ok()?, path))
            .or_else(|| self.behind(path));
        rest.map(str::to_owned).ok_or(OpenError::Absolute)
    }

    /// What follows the first part of an absolute path that leads to this very
    /// folder. Nothing is looked at behind `..`.
    fn behind<'p>(&self, path: &'p str) -> Option<&'p str> {
        let own = self.identity().ok()?;
        let is_own = |folder: &str| identity(folder) == Some(own);
        if path.len() > limits::PATH_BYTES {
            return None;
        }
        let is_end = |at: &usize| path[*at..].is_empty() || path[*at..].starts_with('/');
        let ends = (1..=path.len()).filter(|at| path.is_char_boundary(*at) && is_end(at));
        let mut folders = ends.map(|end| path.split_at(end));
        let mut before = folders.by_ref().take_while(|(folder, _)| !folder.ends_with("/.."));
        let (_, rest) = before.find(|(folder, _)| is_own(folder))?;
        Some(rest.trim_start_matches('/'))
    }

    /// The path the folder was opened by; for people, not to open anything by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a link stood at the end of the path that was opened, or of the one
    /// to the folder in which [`Root::linked_folder`] found this one.
    pub fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// What the opened folder is.
    pub fn identity(&self) -> io::Result<Identity> {
        let meta = File::from(self.folder.try_clone()?).metadata()?;
        Ok((meta.dev(), meta.ino()))
    }

    /// What `relative` is, seen through a descriptor that cannot be read.
    fn look(&self, relative: &OsStr) -> Result<(OwnedFd, OpenedKind), OpenError> {
        let below = RelativePath::parse(relative)?;
        look(self.mechanism.open(self.as_fd(), &below, OpenPurpose::Look)?)
    }

    fn below(&self, folder: OwnedFd, relative: &OsStr) -> Root {
        // By components, so that `a//b/.` and an empty path leave no trace.
        let path = self.path.join(relative).components().collect();
        Root { folder, path, is_linked: self.is_linked, mechanism: self.mechanism }
    }
}

/// What the folder is to which a path leads.
pub(crate) fn identity(path: impl AsRef<Path>) -> Option<Identity> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

impl AsFd for Root {
    /// The folder itself: for `fchdir`, or as the start of another opening. It
    /// cannot be read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Root").field(&self.path).finish()
    }
}
