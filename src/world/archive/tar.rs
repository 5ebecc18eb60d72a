//! Tar archives (POSIX.1-2017, `pax`), with the extensions of GNU tar for long names.
//!
//! The crate reads single headers. Long names are read here, since it would read them without a
//! limit.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};

use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{ArchiveEntry, ArchiveEntryKind, Budget, Counted, EntryVisitor};
use super::{checked_path, commit, damaged, in_plain_words, refused};
use crate::limits;

/// Bits of a mode that make a file executable.
const EXECUTABLE: u32 = 0o111;

/// What headers before an entry say about it.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    /// The commit that the archive was made of.
    commit: Option<String>,
}

/// Reads all entries.
pub(super) fn read(
    input: impl Read,
    budget: Budget<'_>,
    visit: &mut EntryVisitor<'_>,
) -> io::Result<Option<String>> {
    let budget = RefCell::new(budget);
    let has_ended = Cell::new(false);
    let reader = Counted { reader: input, budget: &budget, has_ended: &has_ended };
    let mut archive = Archive::new(reader);
    let mut extensions = Extensions::default();
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry.map_err(in_plain_words)?;
        budget.borrow_mut().count_entry()?;
        let size = entry.size();
        let target = |extensions: &mut Extensions, entry: &Entry<'_, _>| {
            let named = extensions.target.take();
            let target =
                named.or_else(|| entry.link_name_bytes().map(std::borrow::Cow::into_owned));
            String::from_utf8(target.unwrap_or_default()).map_err(|_| damaged())
        };
        let kind = match entry.header().entry_type() {
            EntryType::XGlobalHeader
            | EntryType::XHeader
            | EntryType::GNULongName
            | EntryType::GNULongLink => {
                extensions.read(&mut entry)?;
                continue;
            }
            EntryType::Regular | EntryType::Continuous => ArchiveEntryKind::File {
                size,
                is_executable: entry.header().mode()? & EXECUTABLE != 0,
            },
            EntryType::Symlink => ArchiveEntryKind::Link(target(&mut extensions, &entry)?),
            EntryType::Link => {
                let target = target(&mut extensions, &entry)?;
                ArchiveEntryKind::HardLink(checked_path(target.as_bytes())?)
            }
            EntryType::Directory => {
                extensions.forget();
                checked_path(&entry.path_bytes())?;
                continue;
            }
            EntryType::Block | EntryType::Char | EntryType::Fifo => {
                return Err(refused("it contains a device or a FIFO"));
            }
            _ => return Err(refused("it contains an entry of an unknown kind")),
        };
        let path = extensions.path.take();
        extensions.forget();
        let path = checked_path(&path.unwrap_or_else(|| entry.path_bytes().into_owned()))?;
        visit(ArchiveEntry { path, kind }, &mut Whole { entry, left: size })?;
    }
    // After the last entry there is a block of zeros, and at the end of the file the checksum.
    if has_ended.get() {
        return Err(damaged());
    }
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(extensions.commit)
}

impl Extensions {
    /// Reads such a header.
    fn read(&mut self, entry: &mut Entry<'_, impl Read>) -> io::Result<()> {
        let kind = entry.header().entry_type();
        let mut bytes = Vec::new();
        entry.take(limits::ARCHIVE_EXTENSION_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limits::ARCHIVE_EXTENSION_BYTES {
            return Err(refused("the name of an entry is too long"));
        }
        if matches!(kind, EntryType::GNULongName | EntryType::GNULongLink) {
            // It ends with NUL.
            let end = bytes.iter().position(|byte| *byte == 0);
            bytes.truncate(end.unwrap_or(bytes.len()));
        }
        match kind {
            EntryType::GNULongName => self.path = Some(bytes),
            EntryType::GNULongLink => self.target = Some(bytes),
            EntryType::XHeader => self.add_pax(&bytes)?,
            _ => {
                let comment = pax_fields(&bytes).find(|(key, _)| *key == b"comment");
                self.commit = comment.and_then(|(_, value)| commit(value)).or(self.commit.take());
            }
        }
        Ok(())
    }

    /// Forgets what was said about an entry that has been read.
    fn forget(&mut self) {
        (self.path, self.target) = (None, None);
    }

    fn add_pax(&mut self, bytes: &[u8]) -> io::Result<()> {
        for (key, value) in pax_fields(bytes) {
            match key {
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.target = Some(value.to_vec()),
                // Readers that do not know these see other files.
                b"size" => return Err(refused("it contains a file of 8 GiB or more")),
                _ if key.starts_with(b"GNU.sparse") => {
                    return Err(refused("it contains a sparse file"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The content of an entry; an error if the archive ends before it does.
struct Whole<R> {
    entry: R,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let length = self.entry.read(room)?;
        self.left = self.left.saturating_sub(length as u64);
        if length == 0 && self.left > 0 && !room.is_empty() {
            return Err(damaged());
        }
        Ok(length)
    }
}

fn pax_fields(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let fields = PaxExtensions::new(bytes).filter_map(Result::ok);
    fields.map(|field| (field.key_bytes(), field.value_bytes()))
}
