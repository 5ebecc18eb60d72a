//! Lines of a stream of bytes, as they come in, each bounded.
//!
//! Memory stays at the bound and one read, however long a line is and however
//! many there are: of one that is too long nothing is kept. Nothing here waits,
//! and no byte is judged.

use std::io::{self, Read};

use crate::limits;

/// What has come in and was not given out yet.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to here there is no end of that line.
    searched: usize,
    /// The beginning of that line was too long to be kept.
    is_too_long: bool,
}

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum LinePiece<'l> {
    /// All of it.
    Whole(&'l [u8]),
    /// One that is longer than the bound.
    TooLong,
}

impl LineBuffer {
    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.forget();
        self.make_room(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Reads once; how many bytes came.
    pub fn fill(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        self.forget();
        let length = self.bytes.len();
        self.make_room(limits::READ_BYTES);
        self.bytes.resize(length + limits::READ_BYTES, 0);
        let read = reader.read(&mut self.bytes[length..]);
        self.bytes.truncate(length + *read.as_ref().unwrap_or(&0));
        read
    }

    /// Whether nothing is left of the stream as far as it came.
    pub fn is_empty(&self) -> bool {
        self.start == self.bytes.len() && !self.is_too_long
    }

    /// Whether a whole line is there.
    pub fn has_line(&self) -> bool {
        self.bytes[self.searched..].contains(&b'\n')
    }

    /// The next whole line, if it is there; one of more than `most` bytes is too long.
    pub fn next(&mut self, most: usize) -> Option<LinePiece<'_>> {
        let open = &self.bytes[self.searched..];
        let end = open.iter().position(|&byte| byte == b'\n');
        let length = end.map_or(self.bytes.len(), |end| self.searched + end) - self.start;
        self.is_too_long |= length > most;
        let Some(end) = end else {
            if self.is_too_long {
                self.start = self.bytes.len();
            }
            self.searched = self.bytes.len();
            self.forget();
            return None;
        };
        let end = self.searched + end;
        let begin = std::mem::replace(&mut self.start, end + 1);
        self.searched = self.start;
        Some(self.piece(begin, end))
    }

    /// What stands behind the last end of a line, if anything: the stream is over.
    pub fn last(&mut self, most: usize) -> Option<LinePiece<'_>> {
        if self.is_empty() {
            return None;
        }
        let end = self.bytes.len();
        self.is_too_long |= end - self.start > most;
        let begin = std::mem::replace(&mut self.start, end);
        self.searched = end;
        Some(self.piece(begin, end))
    }

    /// Forgets a line that has been begun.
    pub fn clear(&mut self) {
        *self = LineBuffer::default();
    }

    /// All that is left, whatever it is.
    pub fn take(&mut self) -> Vec<u8> {
        self.forget();
        std::mem::take(self).bytes
    }

    fn piece(&mut self, begin: usize, end: usize) -> LinePiece<'_> {
        if std::mem::take(&mut self.is_too_long) {
            return LinePiece::TooLong;
        }
        let line = &self.bytes[begin..end];
        LinePiece::Whole(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Makes room for the next bytes. By itself a `Vec` would double, and twice a
    /// large line is a lot.
    fn make_room(&mut self, bytes: usize) {
        let length = self.bytes.len();
        if self.bytes.capacity() - length < bytes {
            self.bytes.reserve_exact(bytes.max(length / 8));
        }
    }

    /// Gives back room: what was given out goes, and the memory of a line that was large.
    fn forget(&mut self) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        if self.bytes.is_empty() {
            self.bytes.shrink_to(limits::READ_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of `text` as it comes in pieces of `size` bytes; `None`: too long.
    fn lines(text: &[u8], size: usize, most: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = LineBuffer::default();
        let mut found = Vec::new();
        let kept = |piece: LinePiece<'_>| match piece {
            LinePiece::Whole(line) => Some(line.to_vec()),
            LinePiece::TooLong => None,
        };
        for bytes in text.chunks(size) {
            lines.push(bytes);
            while let Some(piece) = lines.next(most) {
                found.push(kept(piece));
            }
            assert!(lines.bytes.len() <= most + size);
        }
        found.extend(lines.last(most).map(kept));
        assert!(lines.is_empty() && lines.last(most).is_none());
        found
    }

    #[test]
    fn lines_come_whole_however_the_bytes_do() {
        let text = b"one\n\ntwo\r\n123456\n1234567\nlast";
        let line = |text: &str| Some(text.as_bytes().to_vec());
        let expected = [line("one"), line(""), line("two"), line("123456"), None, line("last")];
        for size in 1..=text.len() {
            assert_eq!(lines(text, size, 6), expected, "{size}");
        }
        assert_eq!(lines(b"1234567", 3, 6), [None]);
        assert_eq!(lines(b"a\n", 9, 6), [line("a")]);
        assert!(lines(b"", 1, 6).is_empty());
    }

    #[test]
    fn the_memory_of_a_large_line_goes_with_it() {
        let mut lines = LineBuffer::default();
        lines.push(&vec![b'x'; 1 << 20]);
        lines.push(b"\n");
        assert!(matches!(lines.next(1 << 20), Some(LinePiece::Whole(_))));
        lines.push(b"a\n");
        assert!(lines.bytes.capacity() <= limits::READ_BYTES);
    }

    #[test]
    fn a_large_line_takes_little_more_than_its_length() {
        let length = (17 << 20) + 1;
        let mut lines = LineBuffer::default();
        let mut reader = io::repeat(b'x').take(length);
        while lines.fill(&mut reader).unwrap() > 0 {}
        let (held, least) = (lines.bytes.capacity(), lines.bytes.len());
        assert_eq!(least as u64, length);
        assert!(held <= least / 8 * 9 + limits::READ_BYTES, "{held}");
    }
}
