//! Standard input: what it is, all of it, or line by line, always with an eye
//! on the signals.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use crate::limits;
use crate::world::lines::Lines;
pub use crate::world::lines::Piece;
use crate::world::patience::{Patience, Readiness, Stop};
use crate::world::terminal;

/// What standard input is, as far as reading it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A person types.
    Terminal,
    /// `/dev/null` and other devices, or nothing at all: not to be read unasked.
    Nothing,
    /// A file: all of it is there already.
    File,
    /// A pipe or a socket: it may stay silent for ever.
    Stream,
}

/// All of standard input, or why not.
#[derive(Debug, PartialEq, Eq)]
pub enum Whole {
    /// Everything up to the end.
    Bytes(Vec<u8>),
    /// No byte came in time.
    Silent,
    /// More than the bound.
    TooLarge,
}

/// A line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its end. What is not UTF-8 is replaced.
    Text(String),
    /// One that is longer than the bound.
    TooLong,
    /// The end of the input.
    End,
}

impl Line {
    fn of(piece: &Piece<'_>) -> Line {
        match piece {
            Piece::Whole(bytes) => Line::Text(String::from_utf8_lossy(bytes).into_owned()),
            Piece::TooLong => Line::TooLong,
        }
    }
}

/// Standard input, unbuffered below us.
#[derive(Debug)]
pub struct Input {
    file: File,
    source: Source,
    /// Read but not yet given out.
    lines: Lines,
    at_end: bool,
}

impl Input {
    /// Looks at standard input without reading any of it.
    pub fn open() -> io::Result<Input> {
        // A second descriptor for the same file: std's own has a buffer that
        // poll cannot see into.
        let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        let source = if io::stdin().is_terminal() {
            Source::Terminal
        } else if kind.is_file() {
            Source::File
        } else if kind.is_fifo() || kind.is_socket() {
            Source::Stream
        } else {
            Source::Nothing
        };
        Ok(Input { file, source, lines: Lines::default(), at_end: false })
    }

    /// What it is.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Reads to the end, at most `most` bytes. With `first` the first byte has
    /// to come within that time; after it there is no hurry.
    pub fn read_to_end(
        &mut self,
        most: usize,
        first: Option<Duration>,
        patience: &Patience,
    ) -> Result<Whole, ReadError> {
        let mut bytes = self.lines.take();
        let mut piece = vec![0u8; limits::READ_BYTES];
        loop {
            let limit = if bytes.is_empty() { first } else { None };
            match patience.wait(Some((self.file.as_fd(), Readiness::Read)), limit) {
                Ok(()) => {}
                Err(Stop::Silence(_)) => return Ok(Whole::Silent),
                Err(stop) => return Err(ReadError::Stop(stop)),
            }
            match self.file.read(&mut piece) {
                Ok(0) => return Ok(Whole::Bytes(bytes)),
                Ok(count) if bytes.len() + count > most => return Ok(Whole::TooLarge),
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(ReadError::Io(error)),
            }
        }
    }

    /// The next line without its end. Of one that is longer than `most` bytes
    /// nothing is kept.
    pub fn read_line(&mut self, most: usize, patience: &Patience) -> Result<Line, ReadError> {
        loop {
            if let Some(piece) = self.lines.next(most) {
                return Ok(Line::of(&piece));
            }
            if self.at_end {
                // After Ctrl+D a terminal goes on.
                self.at_end = self.source != Source::Terminal;
                let last = self.lines.last(most);
                return Ok(last.map_or(Line::End, |piece| Line::of(&piece)));
            }
            self.wait(patience).map_err(ReadError::Stop)?;
            self.fill().map_err(ReadError::Io)?;
        }
    }

    /// Whether something more is there to read, or comes within `limit`.
    pub fn has_more(&self, limit: Duration, patience: &Patience) -> Result<bool, ReadError> {
        if !self.lines.is_empty() {
            return Ok(true);
        }
        match patience.wait(Some((self.file.as_fd(), Readiness::Read)), Some(limit)) {
            Ok(()) => Ok(true),
            Err(Stop::Silence(_)) => Ok(false),
            Err(stop) => Err(ReadError::Stop(stop)),
        }
    }

    /// Makes what has been typed of a line readable before its end, as far as a
    /// terminal keeps that to itself: it can be edited no more, and nothing is
    /// lost of it. Where that does not work nothing happens.
    pub fn hand_over_line(&self) {
        if self.source == Source::Terminal {
            terminal::push_line(self.file.as_fd());
        }
    }

    /// Whether nothing of what was read is left.
    pub fn is_drained(&self) -> bool {
        self.lines.is_empty()
    }

    /// Takes what somebody else has read of it.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// Whether Ctrl+C leaves what has been typed of a line; returns whether that
    /// has changed.
    pub fn keep_typing(&self, is_kept: bool) -> bool {
        self.source == Source::Terminal && terminal::keep_typing(self.file.as_fd(), is_kept)
    }

    /// Forgets what has been typed and was not read; whether that was anything.
    pub fn forget_typing(&self) -> bool {
        self.source == Source::Terminal && terminal::forget_typing(self.file.as_fd())
    }

    /// Forgets a line that has been begun (the terminal has forgotten it too).
    pub fn discard_line(&mut self) {
        self.lines.clear();
    }

    /// Waits until there is something to read, or the end.
    pub fn wait(&self, patience: &Patience) -> Result<(), Stop> {
        patience.wait(Some((self.file.as_fd(), Readiness::Read)), None)
    }

    /// Reads once, without waiting where something is there; false at the end.
    pub fn fill(&mut self) -> io::Result<bool> {
        match self.lines.fill(&mut self.file) {
            Ok(0) => self.at_end = true,
            Ok(_) => {}
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(!self.at_end)
    }

    /// The next line that has been read, as it came.
    pub fn next_piece(&mut self, most: usize) -> Option<Piece<'_>> {
        if self.at_end && !self.lines.has_line() {
            return self.lines.last(most);
        }
        self.lines.next(most)
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Somebody else may have made the shared descriptor non-blocking.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// Why reading ended before its end.
#[derive(Debug)]
pub enum ReadError {
    /// A signal or the deadline.
    Stop(Stop),
    /// The system says no.
    Io(io::Error),
}
