//! Splits a stream of bytes into lines of limited length.
//!
//! Memory use is at most the limit and one read, whatever the length and number of the
//! lines: a line that is too long is discarded. Never waits, and does not decode bytes.

use std::io::{self, Read};

use base::limits;

/// Buffer of bytes that were received and not returned yet.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Start of the next line.
    start: usize,
    /// Up to here the line has no line break.
    searched: usize,
    /// The start of the line was too long and has been discarded.
    is_too_long: bool,
}

/// A line without its line break.
#[derive(Debug, PartialEq, Eq)]
pub enum LinePiece<'l> {
    /// The whole line.
    Whole(&'l [u8]),
    /// The line is longer than the limit.
    TooLong,
}

impl LineBuffer {
    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.compact();
        self.make_room(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Reads once. Returns the number of bytes.
    pub fn fill(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        self.compact();
        let length = self.bytes.len();
        self.make_room(limits::READ_BYTES);
        self.bytes.resize(length + limits::READ_BYTES, 0);
        let read = reader.read(&mut self.bytes[length..]);
        self.bytes.truncate(length + *read.as_ref().unwrap_or(&0));
        read
    }

    /// Whether everything received so far has been returned.
    pub fn is_empty(&self) -> bool {
        self.start == self.bytes.len() && !self.is_too_long
    }

    /// Whether the buffer holds a whole line.
    pub fn has_line(&self) -> bool {
        self.bytes[self.searched..].contains(&b'\n')
    }

    /// Returns the next whole line, if there is one. `max_bytes` is the limit of its length.
    pub fn next_line(&mut self, max_bytes: usize) -> Option<LinePiece<'_>> {
        let open = &self.bytes[self.searched..];
        let end = open.iter().position(|&byte| byte == b'\n');
        let length = end.map_or(self.bytes.len(), |end| self.searched + end) - self.start;
        self.is_too_long |= length > max_bytes;
        let Some(end) = end else {
            if self.is_too_long {
                self.start = self.bytes.len();
            }
            self.searched = self.bytes.len();
            self.compact();
            return None;
        };
        let end = self.searched + end;
        let begin = std::mem::replace(&mut self.start, end + 1);
        self.searched = self.start;
        Some(self.line_piece(begin, end))
    }

    /// Returns the text after the last line break, if any. Call it at the end of the stream.
    pub fn take_last_line(&mut self, max_bytes: usize) -> Option<LinePiece<'_>> {
        if self.is_empty() {
            return None;
        }
        let end = self.bytes.len();
        self.is_too_long |= end - self.start > max_bytes;
        let begin = std::mem::replace(&mut self.start, end);
        self.searched = end;
        Some(self.line_piece(begin, end))
    }

    /// Removes and returns all remaining bytes.
    pub fn take_rest(&mut self) -> Vec<u8> {
        self.compact();
        std::mem::take(self).bytes
    }

    fn line_piece(&mut self, begin: usize, end: usize) -> LinePiece<'_> {
        if std::mem::take(&mut self.is_too_long) {
            return LinePiece::TooLong;
        }
        let line = &self.bytes[begin..end];
        LinePiece::Whole(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Reserves room for the next bytes. A `Vec` by itself would double its capacity, which
    /// is too much for a large line.
    fn make_room(&mut self, bytes: usize) {
        let length = self.bytes.len();
        if self.bytes.capacity() - length < bytes {
            self.bytes.reserve_exact(bytes.max(length / 8));
        }
    }

    /// Removes bytes that were returned, and frees the memory of a large line.
    fn compact(&mut self) {
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

    /// The lines of `text`, pushed in pieces of `size` bytes; `None` for one that is too long.
    fn lines(text: &[u8], size: usize, most: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = LineBuffer::default();
        let mut found = Vec::new();
        let kept = |piece: LinePiece<'_>| match piece {
            LinePiece::Whole(line) => Some(line.to_vec()),
            LinePiece::TooLong => None,
        };
        for bytes in text.chunks(size) {
            lines.push(bytes);
            while let Some(piece) = lines.next_line(most) {
                found.push(kept(piece));
            }
            assert!(lines.bytes.len() <= most + size);
        }
        found.extend(lines.take_last_line(most).map(kept));
        assert!(lines.is_empty() && lines.take_last_line(most).is_none());
        found
    }

    #[test]
    fn lines_are_whole_for_any_chunk_size() {
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
    fn the_memory_of_a_large_line_is_freed() {
        let mut lines = LineBuffer::default();
        lines.push(&vec![b'x'; 1 << 20]);
        lines.push(b"\n");
        assert!(matches!(lines.next_line(1 << 20), Some(LinePiece::Whole(_))));
        lines.push(b"a\n");
        assert!(lines.bytes.capacity() <= limits::READ_BYTES);
    }

    #[test]
    fn a_large_line_needs_little_more_memory_than_its_length() {
        let length = (17 << 20) + 1;
        let mut lines = LineBuffer::default();
        let mut reader = io::repeat(b'x').take(length);
        while lines.fill(&mut reader).unwrap() > 0 {}
        let (held, least) = (lines.bytes.capacity(), lines.bytes.len());
        assert_eq!(least as u64, length);
        assert!(held <= least / 8 * 9 + limits::READ_BYTES, "{held}");
    }
}
