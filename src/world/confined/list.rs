//! The names in a folder.
//!
//! Bounded in memory and in number whatever lies on the disk, and it says what
//! was left out. Nothing here reads a file's content or follows a link.

use std::collections::BinaryHeap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::ptr::NonNull;

use super::open::{open_name, status};
use super::{OpenError, Root};

/// Folders that tools fill: nobody wrote what is in them for a reader.
const FILLED_BY_TOOLS: [&str; 6] =
    [".git", ".skills-runner-setup", ".venv", "__pycache__", "node_modules", "venv"];

/// What every venv holds, whatever its name (PEP 405).
pub(crate) const MARK_OF_VENVS: &str = "pyvenv.cfg";

/// What kind of thing an entry is. A link is not followed to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, wherever it leads.
    Link,
    /// A FIFO, a socket or a device.
    Other,
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// As it is on the disk; not always UTF-8, and it may hold line breaks.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
    /// The size of a regular file in bytes, where it may be seen.
    pub size: Option<u64>,
}

/// The entries of a folder, sorted by the bytes of their names.
#[derive(Debug, PartialEq, Eq)]
pub struct FolderEntries {
    /// The first ones, at most as many as were asked for.
    pub list: Vec<FolderEntry>,
    /// How many more there are.
    pub left_out: usize,
    /// Whether there are so many that not even all names were read: then
    /// `left_out` is a least number, and earlier names may be missing.
    pub unread: bool,
}

impl FolderEntries {
    /// Whether the folder is a venv, of whatever name.
    pub fn are_of_venv(&self) -> bool {
        self.list.iter().any(|entry| entry.name == MARK_OF_VENVS)
    }

    /// Without the folders that tools fill.
    pub fn by_people(self) -> impl Iterator<Item = FolderEntry> {
        let entries = self.list.into_iter();
        entries.filter(|entry| !is_filled_by_tools(&entry.name))
    }
}

/// Whether a folder of this name holds what nobody wrote for a reader.
pub(super) fn is_filled_by_tools(name: &OsStr) -> bool {
    FILLED_BY_TOOLS.iter().any(|filled| name == *filled)
}

/// The first `keep` names of the first `read_max` that the system gives.
pub(super) fn read_entries(
    root: &Root,
    keep: usize,
    read_max: usize,
) -> Result<FolderEntries, OpenError> {
    let mut stream = FolderStream::open(root)?;
    // The greatest name kept is on top, to make room for a lesser one.
    let mut kept: BinaryHeap<(Vec<u8>, u8)> = BinaryHeap::new();
    let mut read = 0;
    let mut unread = false;
    while let Some((name, kind)) = stream.next()? {
        if read == read_max {
            unread = true;
            break;
        }
        read += 1;
        if kept.len() < keep {
            kept.push((name.to_vec(), kind));
        } else if let Some(mut last) = kept.peek_mut().filter(|last| name < last.0.as_slice()) {
            *last = (name.to_vec(), kind);
        }
    }
    let left_out = read - kept.len() + usize::from(unread);
    let list = kept.into_sorted_vec().into_iter().map(|(name, kind)| describe(root, name, kind));
    Ok(FolderEntries { list: list.collect(), left_out, unread })
}

fn describe(root: &Root, name: Vec<u8>, kind: u8) -> FolderEntry {
    let mut size = None;
    let kind = match kind {
        libc::DT_DIR => EntryKind::Folder,
        libc::DT_LNK => EntryKind::Link,
        // Some file systems do not say what an entry is; a file's size is asked for.
        libc::DT_REG | libc::DT_UNKNOWN => {
            match CString::new(name.as_slice()).ok().and_then(|name| status(root.as_fd(), &name)) {
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

/// A folder being read. Std's own reader would need a path.
struct FolderStream(NonNull<libc::DIR>);

impl FolderStream {
    fn open(root: &Root) -> Result<FolderStream, OpenError> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let descriptor: OwnedFd = open_name(root.as_fd(), c".", flags)?;
        let number = descriptor.into_raw_fd();
        // SAFETY: an open descriptor of a folder, which the stream owns from now on.
        let stream = NonNull::new(unsafe { libc::fdopendir(number) });
        stream.map(FolderStream).ok_or_else(|| {
            let error = io::Error::last_os_error();
            // SAFETY: `fdopendir` has failed, so the descriptor is still ours.
            unsafe { libc::close(number) };
            error.into()
        })
    }

    /// The next name and its `d_type`; `.` and `..` are left out.
    fn next(&mut self) -> Result<Option<(&[u8], u8)>, OpenError> {
        loop {
            clear_errno();
            // SAFETY: the stream is open, and only this value uses it.
            let entry = unsafe { libc::readdir(self.0.as_ptr()) };
            if entry.is_null() {
                let error = io::Error::last_os_error();
                return match error.raw_os_error() {
                    Some(0) | None => Ok(None),
                    _ => Err(error.into()),
                };
            }
            // SAFETY: the entry stays valid until the next `readdir`, which needs
            // `&mut self`; its name ends with NUL. It may be shorter than the
            // declared array, so no reference to the whole entry is made.
            let (name, kind) = unsafe {
                let name = CStr::from_ptr((&raw const (*entry).d_name).cast());
                (name.to_bytes(), (*entry).d_type)
            };
            if !matches!(name, b"." | b"..") {
                return Ok(Some((name, kind)));
            }
        }
    }
}

impl Drop for FolderStream {
    fn drop(&mut self) {
        // SAFETY: the stream is open and nobody uses it after this.
        unsafe { libc::closedir(self.0.as_ptr()) };
    }
}

/// `readdir` tells its end from a failure by errno alone.
fn clear_errno() {
    // SAFETY: the address of this thread's errno.
    unsafe {
        #[cfg(target_os = "linux")]
        libc::__errno_location().write(0);
        #[cfg(target_os = "macos")]
        libc::__error().write(0);
    }
}
