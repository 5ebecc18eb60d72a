//! Bounded reads from a descriptor.
//!
//! A file's size is only a hint: it may grow meanwhile, be sparse, or be 0 for a
//! file that has content. So never more than the bound and one byte is read.
//! Nothing here knows a path.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::OpenError;
use crate::limits;

/// A piece of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct FileRange {
    /// At most as many bytes as were asked for.
    pub bytes: Vec<u8>,
    /// Whether the file goes on behind them.
    pub more: bool,
}

/// The file from its start; with `more`, it is longer than `bytes_max`.
pub fn read_whole(file: &File, bytes_max: usize) -> Result<FileRange, OpenError> {
    read_range(file, 0, bytes_max)
}

/// The file from `offset` on; behind its end there is nothing, and no error.
pub(crate) fn read_range(
    file: &File,
    offset: u64,
    bytes_max: usize,
) -> Result<FileRange, OpenError> {
    let size = file.metadata()?.len();
    let wanted = bytes_max.saturating_add(1);
    let left = size.saturating_sub(offset).saturating_add(1);
    let first = left.clamp(limits::LEAST_READ_BYTES, limits::FIRST_READ_BYTES);
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
        let Some(position) = position(offset, filled, bytes.len()) else {
            break;
        };
        match file.read_at(&mut bytes[filled..], position) {
            Ok(0) => break,
            Ok(count) => {
                filled += count;
                // Less than was asked for, and just what it said it has: its end.
                let end = offset.saturating_add(filled as u64);
                if filled < bytes.len() && end == size {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let more = filled > bytes_max;
    bytes.truncate(filled.min(bytes_max));
    Ok(FileRange { bytes, more })
}

/// Fills `room` with the beginning of a file whose size was seen a moment ago,
/// for whoever reads thousands of them; how much there was of it.
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

/// The place of the next byte, unless the system cannot count to the end of the
/// room: no file reaches that far.
fn position(offset: u64, filled: usize, room_end: usize) -> Option<u64> {
    let end = offset.checked_add(u64::try_from(room_end).ok()?)?;
    i64::try_from(end).ok()?;
    offset.checked_add(u64::try_from(filled).ok()?)
}
