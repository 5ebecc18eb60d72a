//! Reads of limited size from an open file.
//!
//! A file's size is only a hint: the file may grow meanwhile, be sparse, or have content
//! although its size is 0. So at most one byte more than the limit is read. Uses no paths.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::OpenError;
use crate::limits;

/// Part of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The bytes, at most as many as requested.
    pub bytes: Vec<u8>,
    /// Whether the file continues after them.
    pub has_more: bool,
}

/// Reads a file from its start. `has_more` is set if it is longer than `max_bytes`.
pub fn read_whole(file: &File, max_bytes: usize) -> Result<FileRange, OpenError> {
    let size = file.metadata()?.len();
    let wanted = max_bytes.saturating_add(1);
    let first = size.saturating_add(1).clamp(limits::READ_BYTES_MIN, limits::INITIAL_BUFFER_BYTES);
    let mut room = usize::try_from(first).unwrap_or(wanted);
    let mut bytes = Vec::new();
    let mut filled = 0;
    while filled < wanted {
        if filled == bytes.len() {
            room = room.min(wanted - filled);
            bytes
                .try_reserve_exact(room)
                .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            bytes.resize(filled + room, 0);
            room = bytes.len();
        }
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => {
                filled += count;
                // A short read up to the stated size is the end; saves another read.
                if filled < bytes.len() && filled as u64 == size {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let has_more = filled > max_bytes;
    bytes.truncate(filled.min(max_bytes));
    Ok(FileRange { bytes, has_more })
}

/// Fills `room` with the start of a file of a known size and returns the number of bytes.
/// For callers that read thousands of files.
pub(crate) fn read_head(file: &File, size: u64, room: &mut [u8]) -> Result<usize, OpenError> {
    let mut filled = 0;
    while filled < room.len() {
        match file.read_at(&mut room[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        if filled as u64 == size {
            break;
        }
    }
    Ok(filled)
}
