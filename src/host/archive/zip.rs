//! Zip archives (PKWARE's APPNOTE 6.3), stored or compressed by DEFLATE. Only the directory at
//! the end counts.

use std::fs::File;
use std::io::{self, BufReader, Read};

use rawzip::{CompressionMethod, Error, RECOMMENDED_BUFFER_SIZE, ZipArchive};

use super::inflate::Inflate;
use super::{ArchiveEntry, ArchiveEntryKind, Budget, EXECUTABLE, EntryVisitor};
use super::{checked_path, commit, damaged, refused};
use base::limits;

/// Reads all entries.
pub(super) fn read(
    file: &File,
    mut budget: Budget<'_>,
    visit: &mut EntryVisitor<'_>,
) -> io::Result<Option<String>> {
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(file.try_clone()?, &mut buffer).map_err(zip_error)?;
    let mut comment = Vec::new();
    archive.comment().read_to_end(&mut comment)?;
    let mut entries = archive.entries(&mut buffer);
    while let Some(entry) = entries.next_entry().map_err(zip_error)? {
        let (mode, size) = (entry.mode(), entry.uncompressed_size_hint());
        budget.count_entry(size)?;
        // What there really is has the same size: the reader checks that.
        budget.count_bytes(size)?;
        // Programs of Windows write backslashes between the names of folders.
        let path: &[u8] = entry.file_path().as_bytes();
        let path: Vec<u8> = path.iter().map(|b| if *b == b'\\' { b'/' } else { *b }).collect();
        if path.ends_with(b"/") || mode.value() & libc::S_IFMT == libc::S_IFDIR {
            checked_path(&path)?;
            continue;
        }
        if entry.flags().is_encrypted() {
            return Err(refused("it is encrypted"));
        }
        let found = archive.get_entry(entry.wayfinder()).map_err(zip_error)?;
        let data = BufReader::new(found.reader());
        let data: Box<dyn Read> = match entry.compression_method() {
            CompressionMethod::STORE => Box::new(data),
            CompressionMethod::DEFLATE => Box::new(Inflate::new(data)),
            _ => return Err(refused("it is compressed by a method other than DEFLATE")),
        };
        let mut data = found.verifying_reader(data);
        let kind = if mode.is_symlink() {
            let mut target = Vec::new();
            (&mut data).take(limits::PATH_BYTES as u64 + 1).read_to_end(&mut target)?;
            String::from_utf8(target).map_or(ArchiveEntryKind::Unusable, ArchiveEntryKind::Link)
        } else if mode.value() & libc::S_IFMT == libc::S_IFREG {
            ArchiveEntryKind::File { size, is_executable: mode.value() & EXECUTABLE != 0 }
        } else {
            return Err(refused("it contains a device or a FIFO"));
        };
        visit(ArchiveEntry::new(&path, kind)?, &mut data)?;
    }
    Ok(commit(&comment))
}

#[allow(clippy::needless_pass_by_value, reason = "the form of map_err")]
fn zip_error(_: Error) -> io::Error {
    damaged()
}
