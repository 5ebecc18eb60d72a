//! Confined opening of files below a folder.
//!
//! The model chooses which files of a skill are opened, and the skill itself may be
//! hostile. All code that opens something in a skill or a skills folder (the document,
//! files, scripts, MCP resources) uses a [`Root`]: `..`, absolute paths, links, and links
//! swapped during the opening cannot reach anything outside, and only regular files are
//! read.
//!
//! A file is opened twice: first for inspection (`O_PATH` calls no driver, wakes no writer
//! of a FIFO, needs no permission), then, if it is a regular file, for reading, confined in
//! the same way. The second descriptor is inspected again, so it is safe if the two differ,
//! as when an editor saves by renaming in between.
//!
//! This module must not decide what a file is for, compose whole messages, or open anything
//! by a path that was checked before.

mod list;
mod open;
mod open_error;
mod path;
mod place;
mod read;
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

use nix::fcntl::OFlag;

use crate::files::effective_user;
use base::limits;
pub(crate) use list::FolderEntries;
use list::read_entries;
pub use list::{EntryKind, FolderEntry, VENV_MARKER};
pub use open::Mechanism;
pub(crate) use open::OpenedKind;
use open::{
    INSPECT_FLAGS, OpenPurpose, entry_status, inspect, open_folder, open_name, open_noting_link,
};
pub use open_error::OpenError;
pub use open_error::PRIVATE;
use path::RelativePath;
pub use place::{FilePlace, FoundFile, real_path};
pub use read::read_head;
pub use read::read_whole;
pub use tree::FileTree;
pub use tree::WalkLimits;

/// Device and inode number: identify a folder independently of its path.
pub type Identity = (u64, u64);

/// Mode bits that let group and others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Open folder that confines everything opened through it.
pub struct Root {
    folder: OwnedFd,
    path: PathBuf,
    is_linked: bool,
    mechanism: Mechanism,
}

/// A regular file, opened for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// The file; read it with a limit: see [`read_whole`].
    pub file: File,
    /// Size in bytes when it was opened.
    pub size: u64,
}

/// File or folder that a path leads to.
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

    /// Like [`Root::open`], with this mechanism for opening paths below.
    pub fn open_with(path: &Path, mechanism: Mechanism) -> Result<Root, OpenError> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| OpenError::Nul)?;
        let (folder, is_linked) = open_folder(&name)?;
        Ok(Root { folder, path: path.to_owned(), is_linked, mechanism })
    }

    /// Opens the folder `names` below the folder `base`, following no link, if only root and
    /// this user can have created its content: they own each of the folders, and no other
    /// user may write in the last two. Others may write in the first, as a group may in
    /// `/usr/local/share`: what they create there is owned by them, or is a link.
    pub fn open_trusted(base: &Path, names: [&CStr; 3]) -> Result<Root, OpenError> {
        let mut root = Root::open(base)?;
        let flags = INSPECT_FLAGS | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
        for (place, name) in names.into_iter().enumerate() {
            let opened = open_name(root.as_fd(), name, flags).map_err(OpenError::from);
            let folder = File::from(opened.map_err(|error| match error {
                OpenError::NotAFolder | OpenError::TooManyLinks => OpenError::Foreign,
                other => other,
            })?);
            let meta = folder.metadata()?;
            let is_own = [0, effective_user()].contains(&meta.uid());
            let is_open = place > 0 && meta.mode() & WRITABLE_BY_OTHERS != 0;
            if !is_own || is_open {
                return Err(OpenError::Foreign);
            }
            let name = OsStr::from_bytes(name.to_bytes());
            root = Root { is_linked: false, ..root.subfolder(folder.into(), name) };
        }
        Ok(root)
    }

    /// Opens the direct subfolder `name`, which may be a link to anywhere: a skill in a
    /// skills folder, where the link is the user's own.
    pub fn linked_folder(&self, name: impl AsRef<OsStr>) -> Result<Root, OpenError> {
        let name = name.as_ref();
        let only = RelativePath::single_name(name)?;
        let (folder, is_linked) = open_noting_link(self.as_fd(), &only)?;
        Ok(Root { is_linked: self.is_linked || is_linked, ..self.subfolder(folder, name) })
    }

    /// Opens the subfolder `relative`; an empty path or `.` is this folder.
    pub fn folder(&self, relative: impl AsRef<OsStr>) -> Result<Root, OpenError> {
        let relative = relative.as_ref();
        match self.inspect(relative)? {
            (folder, OpenedKind::Folder) => Ok(self.subfolder(folder, relative)),
            (_, OpenedKind::Link) => Err(OpenError::Link),
            (_, OpenedKind::File { .. } | OpenedKind::Other(_)) => Err(OpenError::NotAFolder),
        }
    }

    /// Opens the regular file `relative` for reading.
    pub fn file(&self, relative: impl AsRef<OsStr>) -> Result<File, OpenError> {
        match self.open_target(relative)? {
            PathTarget::File(open) => Ok(open.file),
            PathTarget::Folder(_) => Err(OpenError::NotAFile("a folder")),
        }
    }

    /// Opens the regular file `relative` with as few system calls as possible, for callers
    /// that open thousands. Also returns `None` for a file behind a link, and where the fast
    /// way is not available: use [`Root::open_target`] then.
    pub fn open_plain_file(&self, relative: &CStr) -> Option<OpenFile> {
        let descriptor = self.mechanism.open_plain(self.as_fd(), relative)?;
        match inspect(descriptor).ok()? {
            (descriptor, OpenedKind::File { size }) => {
                Some(OpenFile { file: descriptor.into(), size })
            }
            _ => None,
        }
    }

    /// Opens the regular file or the folder `relative`.
    pub fn open_target(&self, relative: impl AsRef<OsStr>) -> Result<PathTarget, OpenError> {
        let relative = relative.as_ref();
        let below = RelativePath::parse(relative)?;
        let seen = inspect(self.mechanism.open(self.as_fd(), &below, OpenPurpose::Inspect)?)?;
        let (descriptor, found) = match seen {
            // Only a regular file is opened for reading.
            (_, OpenedKind::File { .. }) => {
                inspect(self.mechanism.open(self.as_fd(), &below, OpenPurpose::Read)?)?
            }
            other => other,
        };
        match found {
            OpenedKind::File { size } => {
                Ok(PathTarget::File(OpenFile { file: descriptor.into(), size }))
            }
            OpenedKind::Folder => Ok(PathTarget::Folder(self.subfolder(descriptor, relative))),
            OpenedKind::Link => Err(OpenError::Link),
            OpenedKind::Other(kind) => Err(OpenError::NotAFile(kind)),
        }
    }

    /// Lists the entries of the folder: the first `limit` in the byte order of their names.
    pub fn entries(&self, limit: usize) -> Result<FolderEntries, OpenError> {
        read_entries(self, limit, limits::ENTRIES_READ)
    }

    /// Lists all files below the folder, except those in folders that tools create (`.git`,
    /// `node_modules`, `__pycache__`, `venv`, `.venv`).
    pub fn walk(&self, limits: WalkLimits) -> Result<FileTree, OpenError> {
        tree::walk(self, limits)
    }

    /// Opens a file that [`Root::walk`] would list, or a folder that it would enter; an
    /// empty path is this folder.
    pub fn open_walked(&self, relative: impl AsRef<OsStr>) -> Result<PathTarget, OpenError> {
        tree::open(self, relative.as_ref())
    }

    /// Converts an absolute path inside the folder to a relative path: the rest after its
    /// shortest prefix that leads to this folder, maybe through other links than the folder's
    /// own path. A relative path is returned as it is. The result is not checked: opening it
    /// does that.
    pub fn relative_path(&self, path: &str) -> Result<String, OpenError> {
        if !path.starts_with('/') {
            return Ok(path.to_owned());
        }
        if path.len() > limits::PATH_BYTES {
            return Err(OpenError::Absolute);
        }
        let own = self.identity()?;
        let ends = path.match_indices('/').map(|(index, _)| index + 1).chain([path.len()]);
        // Prefixes after a `..` are not tried.
        let is_plain = |(folder, _): &(&str, &str)| !folder.trim_end_matches('/').ends_with("/..");
        let mut folders = ends.map(|end| path.split_at(end)).take_while(is_plain);
        let found = folders.find(|(folder, _)| identity(folder) == Some(own));
        let (_, rest) = found.ok_or(OpenError::Absolute)?;
        Ok(rest.trim_start_matches('/').to_owned())
    }

    /// The path by which the folder was opened, for display. Not for opening anything.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the last component of the opened path was a link, also that of a folder
    /// through which [`Root::linked_folder`] opened this one.
    pub fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// The identity of the open folder.
    pub fn identity(&self) -> io::Result<Identity> {
        let status = entry_status(self.as_fd(), c".").ok_or_else(io::Error::last_os_error)?;
        Ok((status.st_dev, status.st_ino))
    }

    /// Opens `relative` for inspection only and determines its kind.
    fn inspect(&self, relative: &OsStr) -> Result<(OwnedFd, OpenedKind), OpenError> {
        let below = RelativePath::parse(relative)?;
        inspect(self.mechanism.open(self.as_fd(), &below, OpenPurpose::Inspect)?)
    }

    fn subfolder(&self, folder: OwnedFd, relative: &OsStr) -> Root {
        // Rebuilt from components to normalize `a//b/.` and empty paths.
        let path = self.path.join(relative).components().collect();
        Root { folder, path, is_linked: self.is_linked, mechanism: self.mechanism }
    }
}

/// Opens an absolute path for inspection, following no link: a program that may write in one
/// of its folders could create a link there at any time. If its last name is a link, the link
/// itself is opened.
pub(crate) fn inspect_without_links(path: &Path) -> Result<(OwnedFd, OpenedKind), OpenError> {
    let below = path.strip_prefix("/").map_err(|_| OpenError::NotFound)?;
    Root::open_with(Path::new("/"), Mechanism::Walk)?.inspect(below.as_os_str())
}

/// The identity of the folder at this path.
pub fn identity(path: impl AsRef<Path>) -> Option<Identity> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

impl AsFd for Root {
    /// The folder's descriptor, for `fchdir` or `openat`. It cannot be read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Root").field(&self.path).finish()
    }
}
