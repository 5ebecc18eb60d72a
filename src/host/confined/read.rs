//! Reads of limited size from an open file.
//!
//! A file's size is only a hint: the file may grow meanwhile, be sparse, or have content
//! although its size is 0. So at most one byte more than the limit is read. Uses no paths.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use super::OpenError;
use base::limits;

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
    let wanted = (max_bytes as u64).saturating_add(1);
    let size = file.metadata()?.len().saturating_add(1);
    let room = size.min(wanted).min(limits::INITIAL_BUFFER_BYTES);
    let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or(0));
    FileReader { file, position: 0 }.take(wanted).read_to_end(&mut bytes)?;
    let has_more = bytes.len() > max_bytes;
    bytes.truncate(max_bytes);
    Ok(FileRange { bytes, has_more })
}

/// Fills `room` with the start of a file of a known size and returns the number of bytes.
/// For callers that read thousands of files.
pub fn read_head(file: &File, size: u64, room: &mut [u8]) -> Result<usize, OpenError> {
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

/// Reader with a position of its own, so that one file can be read several times.
struct FileReader<'f> {
    file: &'f File,
    position: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(room, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;

    use super::super::tests::TempDir;
    use super::super::{PathTarget, Root};
    use super::*;

    #[test]
    fn reads_no_more_than_requested() {
        let dir = TempDir::new();
        dir.file("ten", "0123456789");
        dir.file("empty", "");
        File::create(dir.path("sparse")).unwrap().set_len(1 << 40).unwrap();
        let root = Root::open(&dir.0).unwrap();
        let ten = root.file("ten").unwrap();
        let text = |piece: FileRange| (String::from_utf8(piece.bytes).unwrap(), piece.has_more);
        for (max_bytes, expected, more) in [
            (10, "0123456789", false),
            (11, "0123456789", false),
            (9, "012345678", true),
            (0, "", true),
            (usize::MAX, "0123456789", false),
        ] {
            let piece = text(read_whole(&ten, max_bytes).unwrap());
            assert_eq!(piece, (expected.to_owned(), more), "{max_bytes}");
        }
        let empty = root.file("empty").unwrap();
        assert_eq!(read_whole(&empty, 0).unwrap(), FileRange { bytes: vec![], has_more: false });
        let sparse = root.file("sparse").unwrap();
        let piece = read_whole(&sparse, 3_000_000).unwrap();
        assert!(
            piece.has_more && piece.bytes.len() == 3_000_000 && piece.bytes.capacity() < 6_000_000
        );
    }

    #[test]
    fn reads_files_with_a_wrong_size() {
        let dir = TempDir::new();
        dir.file("log", "");
        let root = Root::open(&dir.0).unwrap();
        let PathTarget::File(log) = root.open_target("log").unwrap() else { panic!("no file") };
        assert_eq!(log.size, 0);
        let mut writer = File::options().append(true).open(dir.path("log")).unwrap();
        writer.write_all(&vec![b'x'; 700_000]).unwrap();
        assert_eq!(read_whole(&log.file, 1_000_000).unwrap().bytes.len(), 700_000);
        let piece = read_whole(&log.file, 600_000).unwrap();
        assert!(piece.has_more && piece.bytes.len() == 600_000);
        // A file whose stated size is always 0.
        if let Ok(process) = Root::open(Path::new("/proc/self")) {
            let status = process.file("status").unwrap();
            assert!(read_whole(&status, 100_000).unwrap().bytes.starts_with(b"Name:"));
        }
    }
}
