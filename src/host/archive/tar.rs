//! Tar archives (POSIX.1-2017, `pax`), with the extensions of GNU tar for long names.

use std::cell::RefCell;
use std::io::{self, Read};

use tar::{Archive, EntryType, PaxExtensions};

use super::{ArchiveEntry, ArchiveEntryKind, Budget, Counted, EXECUTABLE, EntryVisitor};
use super::{checked_path, commit, damaged, in_plain_words, refused};
use base::limits;

/// Reads all entries.
pub(super) fn read(
    input: impl Read,
    budget: Budget<'_>,
    visit: &mut EntryVisitor<'_>,
) -> io::Result<Option<String>> {
    let budget = RefCell::new(budget);
    let mut archive = Archive::new(Counted { reader: input, budget: &budget });
    let mut found = None;
    for entry in archive.entries()? {
        let mut entry = entry.map_err(in_plain_words)?;
        let size = entry.size();
        budget.borrow_mut().count_entry(size)?;
        let target = entry.link_name_bytes().unwrap_or_default().into_owned();
        let kind = match entry.header().entry_type() {
            EntryType::XGlobalHeader => {
                let mut bytes = Vec::new();
                entry.take(limits::ARCHIVE_EXTENSION_BYTES).read_to_end(&mut bytes)?;
                let mut fields = PaxExtensions::new(&bytes).filter_map(Result::ok);
                let comment = fields.find(|field| field.key_bytes() == b"comment");
                found = comment.and_then(|field| commit(field.value_bytes())).or(found);
                continue;
            }
            EntryType::Directory => {
                checked_path(&entry.path_bytes())?;
                continue;
            }
            EntryType::Regular | EntryType::Continuous => {
                let mode = entry.header().mode().map_err(in_plain_words)?;
                ArchiveEntryKind::File { size, is_executable: mode & EXECUTABLE != 0 }
            }
            EntryType::Symlink => {
                String::from_utf8(target).map_or(ArchiveEntryKind::Unusable, ArchiveEntryKind::Link)
            }
            EntryType::Link => ArchiveEntryKind::HardLink(checked_path(&target)?),
            _ => return Err(refused("it contains a device, a FIFO or another special file")),
        };
        visit(ArchiveEntry::new(&entry.path_bytes(), kind)?, &mut entry)?;
    }
    // After the first block of zeros there is a second one, and at the end the checksum of gzip.
    budget.borrow_mut().until_next = u64::MAX;
    match io::copy(&mut archive.into_inner(), &mut io::sink())? {
        0 => Err(damaged()),
        _ => Ok(found),
    }
}
