//! Capture of a stream of any length: keeps its beginning and its end.
//!
//! A [`Capture`] receives every byte and keeps the first and the last ones, so memory
//! use is constant. Bytes are decoded only in [`Capture::text`], so that a cut never
//! splits a character.

use std::fmt::Write as _;

use base::secret::{CutEdges, Secrets};
use base::text::group_digits;

/// Limits on the kept part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureLimits {
    /// Bytes kept from the beginning.
    pub head_bytes: usize,
    /// Bytes kept from the end.
    pub tail_bytes: usize,
}

impl CaptureLimits {
    /// Half of `bytes` for the beginning, half for the end.
    pub const fn halves(bytes: usize) -> CaptureLimits {
        CaptureLimits { head_bytes: bytes - bytes / 2, tail_bytes: bytes / 2 }
    }
}

/// The beginning and the end of a stream, and its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    limits: CaptureLimits,
    head: Vec<u8>,
    /// A ring buffer once it is full; it then starts at `tail_start`.
    tail: Vec<u8>,
    tail_start: usize,
    total_bytes: u64,
}

impl Capture {
    /// An empty capture.
    pub const fn new(limits: CaptureLimits) -> Capture {
        Capture { limits, head: Vec::new(), tail: Vec::new(), tail_start: 0, total_bytes: 0 }
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total_bytes = self.total_bytes.saturating_add(bytes.len() as u64);
        let (head, rest) =
            bytes.split_at(bytes.len().min(self.limits.head_bytes - self.head.len()));
        self.head.extend_from_slice(head);
        // Only the end of a chunk that is larger than the ring buffer is kept.
        let rest = &rest[rest.len().saturating_sub(self.limits.tail_bytes)..];
        let (filling, mut rest) =
            rest.split_at(rest.len().min(self.limits.tail_bytes - self.tail.len()));
        self.tail.extend_from_slice(filling);
        while !rest.is_empty() {
            let space = &mut self.tail[self.tail_start..];
            let (now, later) = rest.split_at(rest.len().min(space.len()));
            space[..now.len()].copy_from_slice(now);
            self.tail_start = (self.tail_start + now.len()) % self.limits.tail_bytes;
            rest = later;
        }
    }

    /// Length of the whole stream.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Whether something between the beginning and the end is missing.
    pub fn is_truncated(&self) -> bool {
        self.total_bytes > self.kept_bytes() as u64
    }

    /// Number of kept bytes.
    pub fn kept_bytes(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// The bytes kept from the beginning.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The bytes kept after the beginning: the end of a truncated stream, otherwise
    /// all the rest.
    pub fn tail(&self) -> Vec<u8> {
        let (newer, older) = self.tail.split_at(self.tail_start);
        [older, newer].concat()
    }

    /// The stream as text, with U+FFFD for invalid UTF-8. If bytes are missing, a
    /// separate line reports how many.
    pub fn text(&self) -> String {
        self.masked(&Secrets::default())
    }

    /// The same text as [`Capture::text`], with secrets masked, including the rest of a
    /// secret that is cut by the missing part.
    pub fn masked(&self, secrets: &Secrets) -> String {
        let tail = self.tail();
        let masked = |bytes: Vec<u8>, cut| secrets.mask_cut(&lossy(bytes), cut).into_owned();
        if !self.is_truncated() {
            return masked([self.head.as_slice(), &tail].concat(), CutEdges::default());
        }
        let head = &self.head[..complete_length(&self.head)];
        let tail = &tail[tail.iter().take(3).take_while(|byte| is_continuation(**byte)).count()..];
        let missing = self.total_bytes - (head.len() + tail.len()) as u64;
        let mut text = masked(head.to_vec(), CutEdges::AFTER);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "[… {} bytes left out …]", group_digits(missing));
        text.push_str(&masked(tail.to_vec(), CutEdges::BEFORE));
        text
    }
}

/// Like `String::from_utf8_lossy`, but without copying valid text.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// The length of the bytes without an incomplete character at their end.
fn complete_length(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last() {
        Some(last) => match std::str::from_utf8(last.invalid()) {
            // `error_len` is `None` only if more bytes could complete the character.
            Err(error) if error.error_len().is_none() => bytes.len() - last.invalid().len(),
            _ => bytes.len(),
        },
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(head_bytes: usize, tail_bytes: usize, chunks: &[&[u8]]) -> Capture {
        let mut capture = Capture::new(CaptureLimits { head_bytes, tail_bytes });
        for chunk in chunks {
            capture.push(chunk);
        }
        capture
    }

    #[test]
    fn beginning_and_end_are_exact_for_any_chunk_size() {
        let all: Vec<u8> = (0..100u8).collect();
        for (head, tail) in [(0, 0), (0, 7), (7, 0), (1, 1), (10, 13), (50, 50), (60, 60)] {
            for size in [1, 2, 3, 7, 13, 14, 50, 99, 100] {
                let chunks: Vec<&[u8]> = all.chunks(size).collect();
                let kept = captured(head, tail, &chunks);
                assert_eq!(kept.total_bytes(), 100);
                assert_eq!(kept.is_truncated(), head + tail < 100);
                assert_eq!(kept.head(), &all[..head.min(100)]);
                let rest = 100 - head.min(100);
                assert_eq!(kept.tail(), &all[100 - tail.min(rest)..], "{head} {tail} {size}");
            }
        }
    }

    #[test]
    fn text_reports_missing_bytes_on_a_separate_line() {
        let long = vec![b'x'; 1_234_571];
        let table: &[(&[&[u8]], &str)] = &[
            (&[], ""),
            (&[b"abcd"], "abcd"),
            (&[b"abcde"], "ab\n[… 1 bytes left out …]\nde"),
            (&[b"a\nbcd"], "a\n[… 1 bytes left out …]\ncd"),
            (&[b"ab", &long, b"yz"], "ab\n[… 1,234,571 bytes left out …]\nyz"),
            (&["aé".as_bytes(), b"b"], "aéb"),
            (&["aéb".as_bytes(), "cdé".as_bytes()], "a\n[… 5 bytes left out …]\né"),
            (&["a€€".as_bytes()], "a\n[… 6 bytes left out …]\n"),
            (&[b"a\xffb\xff"], "a\u{fffd}b\u{fffd}"),
            (&[b"a\xff---b\xff"], "a\u{fffd}\n[… 3 bytes left out …]\nb\u{fffd}"),
        ];
        for (chunks, text) in table {
            assert_eq!(captured(2, 2, chunks).text(), *text);
        }
        assert_eq!(captured(0, 2, &[b"abc"]).text(), "[… 1 bytes left out …]\nbc");
    }
}
