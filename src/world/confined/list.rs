//! Listing of a folder.
//!
//! Memory use and the number of entries are limited, and omitted entries are reported. Reads
//! no file's content and follows no link.

use std::collections::BinaryHeap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::ptr::NonNull;

use super::open::{entry_status, open_name};
use super::{OpenError, Root};

/// Folders that tools create, with no content written for readers.
const TOOL_FOLDERS: [&str; 6] =
    [".git", ".skills-runner-setup", ".venv", "__pycache__", "node_modules", "venv"];

/// File that every venv contains (PEP 405).
pub(crate) const VENV_MARKER: &str = "pyvenv.cfg";

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
    let mut stream = FolderStream::open(root)?;
    // The name that sorts last is on top, to be replaced by one that sorts earlier.
    let mut kept: BinaryHeap<(Vec<u8>, u8)> = BinaryHeap::new();
    let mut read = 0;
    let mut is_incomplete = false;
    while let Some((name, kind)) = stream.next()? {
        if read == max_read {
            is_incomplete = true;
            break;
        }
        read += 1;
        if kept.len() < keep {
            kept.push((name.to_vec(), kind));
        } else if let Some(mut last) = kept.peek_mut().filter(|last| name < last.0.as_slice()) {
            *last = (name.to_vec(), kind);
        }
    }
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

/// Open stream of a folder's names. `std::fs::read_dir` would need a path.
struct FolderStream(NonNull<libc::DIR>);

impl FolderStream {
    fn open(root: &Root) -> Result<FolderStream, OpenError> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let descriptor: OwnedFd = open_name(root.as_fd(), c".", flags)?;
        let number = descriptor.into_raw_fd();
        // SAFETY: an open descriptor of a folder, which the stream now owns.
        let stream = NonNull::new(unsafe { libc::fdopendir(number) });
        stream.map(FolderStream).ok_or_else(|| {
            let error = io::Error::last_os_error();
            // SAFETY: `fdopendir` failed, so the descriptor still belongs to this function.
            unsafe { libc::close(number) };
            error.into()
        })
    }

    /// The next name and its `d_type`, without `.` and `..`.
    fn next(&mut self) -> Result<Option<(&[u8], u8)>, OpenError> {
        loop {
            clear_errno();
            // SAFETY: the stream is open and used only by this value.
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
        // SAFETY: the stream is open and not used after this.
        unsafe { libc::closedir(self.0.as_ptr()) };
    }
}

/// Clears errno, by which alone `readdir` distinguishes the end from an error.
fn clear_errno() {
    // SAFETY: the address of this thread's errno.
    unsafe {
        #[cfg(target_os = "linux")]
        libc::__errno_location().write(0);
        #[cfg(target_os = "macos")]
        libc::__error().write(0);
    }
}
