//! Reading archives: tar, as it is or compressed by gzip, and zip.
//!
//! An archive may be hostile: sizes, numbers and the ratio of compression are bounded, and an
//! archive with a path that leads out, or with a device, is refused as a whole. Nothing is written
//! here: the caller decides what to do with an entry.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use crate::cancellation::{Cancellation, StopReason};
use base::digest::is_digest;
use base::limits;
use base::text::{escape_bytes, one_line};

/// The mark of a tar archive, and its place in the first header.
const TAR_MARK: &[u8; 5] = b"ustar";
const TAR_MARK_OFFSET: usize = 257;

/// Bits of a mode that make a file executable.
const EXECUTABLE: u32 = 0o111;

mod inflate;
mod tar;
mod zip;

/// An entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveEntry {
    /// The path, relative, without `.`, `..` and empty names.
    pub path: String,
    /// What it is.
    pub kind: ArchiveEntryKind,
}

impl ArchiveEntry {
    /// An entry of this path, which is checked.
    fn new(path: &[u8], kind: ArchiveEntryKind) -> io::Result<ArchiveEntry> {
        let is_usable =
            std::str::from_utf8(path).is_ok_and(|path| !path.contains(char::is_control));
        let kind = if is_usable { kind } else { ArchiveEntryKind::Unusable };
        Ok(ArchiveEntry { path: checked_path(path)?, kind })
    }
}

/// What an entry of an archive is. Folders are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveEntryKind {
    /// A regular file of this many bytes.
    File {
        /// Its size.
        size: u64,
        /// Whether its mode makes it executable.
        is_executable: bool,
    },
    /// A symbolic link with this target.
    Link(String),
    /// Another name of the file with this path in the archive.
    HardLink(String),
    /// Something whose name, or target, has a control character or is not UTF-8, as older programs
    /// of Windows write them. Such bytes of the path are escaped.
    Unusable,
}

/// Gets an entry, and the content of a file.
pub type EntryVisitor<'v> = dyn FnMut(ArchiveEntry, &mut dyn Read) -> io::Result<()> + 'v;

/// Reads all entries of an archive in their order. Returns the commit that the archive was made
/// of, if it names one, as archives made by git do. The text of an error follows
/// `failed to read ARCHIVE: `.
pub fn read(
    file: &File,
    cancellation: &Cancellation,
    visit: &mut EntryVisitor<'_>,
) -> io::Result<Option<String>> {
    let mut start = [0; TAR_MARK_OFFSET + TAR_MARK.len()];
    file.read_at(&mut start, 0)?;
    io::Seek::rewind(&mut &*file)?;
    let mut names = 0;
    let visit = &mut |entry: ArchiveEntry, content: &mut dyn Read| {
        names += entry.path.len();
        if let ArchiveEntryKind::Link(target) | ArchiveEntryKind::HardLink(target) = &entry.kind {
            names += target.len();
            if target.len() > limits::PATH_BYTES {
                return Err(refused("the target of a link is too long"));
            }
        }
        if names > limits::ARCHIVE_NAMES_BYTES {
            return Err(refused("the names of its entries are too long"));
        }
        visit(entry, content)
    };
    let budget = Budget {
        size: file.metadata()?.len(),
        read: 0,
        until_next: 2 * limits::ARCHIVE_EXTENSION_BYTES,
        entries: 0,
        cancellation,
    };
    match &start {
        [0x1f, 0x8b, ..] => tar::read(inflate::Gzip::new(file)?, budget, visit),
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => zip::read(file, budget, visit),
        start if start.ends_with(TAR_MARK) => tar::read(file, budget, visit),
        _ => Err(refused("it is neither a .tar.gz nor a .zip archive")),
    }
}

/// What may still be read.
struct Budget<'c> {
    /// Size of the archive in bytes.
    size: u64,
    /// Decompressed bytes that were read.
    read: u64,
    /// Bytes that may be read before the next entry: a long name is no content.
    until_next: u64,
    entries: usize,
    cancellation: &'c Cancellation,
}

impl Budget<'_> {
    /// Counts an entry with a content of this many bytes.
    fn count_entry(&mut self, size: u64) -> io::Result<()> {
        self.until_next = size.saturating_add(2 * limits::ARCHIVE_EXTENSION_BYTES);
        self.entries += 1;
        let limit = limits::ARCHIVE_ENTRIES;
        if self.entries > limit {
            return Err(refused(format!("it has more than {limit} entries")));
        }
        Ok(())
    }

    fn count_bytes(&mut self, bytes: u64) -> io::Result<()> {
        self.cancellation.check()?;
        let left = self.until_next.checked_sub(bytes);
        self.until_next = left.ok_or_else(|| refused("the name of an entry is too long"))?;
        self.read = self.read.saturating_add(bytes);
        if self.read > limits::ARCHIVE_BYTES {
            return Err(refused("its files are larger than 1 GiB"));
        }
        let most = self.size.saturating_mul(limits::ARCHIVE_RATIO);
        if self.read > limits::ARCHIVE_RATIO_BYTES.max(most) {
            let ratio = limits::ARCHIVE_RATIO;
            return Err(refused(format!("its files are more than {ratio} times as large as it")));
        }
        Ok(())
    }
}

/// Counts what is read.
struct Counted<'b, 'c, R> {
    reader: R,
    budget: &'b RefCell<Budget<'c>>,
}

impl<R: Read> Read for Counted<'_, '_, R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(room)?;
        self.budget.borrow_mut().count_bytes(length as u64)?;
        Ok(length)
    }
}

/// Checks a path of an entry; an empty one is the root.
fn checked_path(bytes: &[u8]) -> io::Result<String> {
    let path = escape_bytes(bytes);
    let shown = || one_line(&path, limits::SUMMARY_CHARS);
    let refuse = |cause: &str| Err(refused(format!("the path `{}` {cause}", shown())));
    if path.starts_with('/') {
        return refuse("is absolute");
    }
    if path.len() > limits::PATH_BYTES {
        return refuse("is too long");
    }
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    if names.contains(&"..") {
        return refuse("contains `..`");
    }
    Ok(names.join("/"))
}

/// The name of a commit, if this is one.
fn commit(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    is_digest(text).then(|| text.to_ascii_lowercase())
}

/// The error of an archive that is refused.
fn refused(cause: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, cause.into())
}

/// An error of a crate, in plain words: an archive that cannot be read is damaged. Errors of the
/// system, reasons to stop and refusals stay.
fn in_plain_words(error: io::Error) -> io::Error {
    let is_own = error.kind() == io::ErrorKind::InvalidData
        || StopReason::from_io_error(&error).is_some()
        || error.raw_os_error().is_some();
    if is_own { error } else { damaged() }
}

/// An archive that ends too early, or with a wrong checksum.
fn damaged() -> io::Error {
    refused("it is damaged or incomplete")
}
