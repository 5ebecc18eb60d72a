//! Standard input: what it is, all of it, or line by line, always with an eye
//! on the signals.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use crate::limits;
use crate::world::cancellation::{Cancellation, Readiness, StopReason};
use crate::world::lines::LineBuffer;
pub(crate) use crate::world::lines::LinePiece;
use crate::world::terminal;

/// What standard input is, as far as reading it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdinKind {
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
pub(crate) enum WholeInput {
    /// Everything up to the end.
    Bytes(Vec<u8>),
    /// No byte came in time.
    Silent,
    /// More than the bound.
    TooLarge,
}

/// A line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    /// Without its end. What is not UTF-8 is replaced.
    Text(String),
    /// One that is longer than the bound.
    TooLong,
    /// The end of the input.
    End,
}

impl InputLine {
    fn of(piece: &LinePiece<'_>) -> InputLine {
        match piece {
            LinePiece::Whole(bytes) => InputLine::Text(String::from_utf8_lossy(bytes).into_owned()),
            LinePiece::TooLong => InputLine::TooLong,
        }
    }
}

/// Standard input, unbuffered below us.
#[derive(Debug)]
pub(crate) struct StdinReader {
    file: File,
    source: StdinKind,
    /// Read but not yet given out.
    lines: LineBuffer,
    at_end: bool,
}

impl StdinReader {
    /// Looks at standard input without reading any of it.
    pub(crate) fn open() -> io::Result<StdinReader> {
        // A second descriptor for the same file: std's own has a buffer that
        // poll cannot see into.
        let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        let source = if io::stdin().is_terminal() {
            StdinKind::Terminal
        } else if kind.is_file() {
            StdinKind::File
        } else if kind.is_fifo() || kind.is_socket() {
            StdinKind::Stream
        } else {
            StdinKind::Nothing
        };
        Ok(StdinReader { file, source, lines: LineBuffer::default(), at_end: false })
    }

    /// What it is.
    pub(crate) fn source(&self) -> StdinKind {
        self.source
    }

    /// Reads to the end, at most `most` bytes. With `first` the first byte has
    /// to come within that time; after it there is no hurry.
    pub(crate) fn read_to_end(
        &mut self,
        most: usize,
        first: Option<Duration>,
        cancellation: &Cancellation,
    ) -> Result<WholeInput, StdinError> {
        let mut bytes = self.lines.take();
        let mut piece = vec![0u8; limits::READ_BYTES];
        loop {
            let limit = if bytes.is_empty() { first } else { None };
            match cancellation.wait(Some((self.file.as_fd(), Readiness::Read)), limit) {
                Ok(()) => {}
                Err(StopReason::Silence(_)) => return Ok(WholeInput::Silent),
                Err(stop) => return Err(StdinError::Stop(stop)),
            }
            match self.file.read(&mut piece) {
                Ok(0) => return Ok(WholeInput::Bytes(bytes)),
                Ok(count) if bytes.len() + count > most => return Ok(WholeInput::TooLarge),
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(StdinError::Io(error)),
            }
        }
    }

    /// The next line without its end. Of one that is longer than `most` bytes
    /// nothing is kept.
    pub(crate) fn read_line(
        &mut self,
        most: usize,
        cancellation: &Cancellation,
    ) -> Result<InputLine, StdinError> {
        loop {
            if let Some(piece) = self.lines.next(most) {
                return Ok(InputLine::of(&piece));
            }
            if self.at_end {
                // After Ctrl+D a terminal goes on.
                self.at_end = self.source != StdinKind::Terminal;
                let last = self.lines.last(most);
                return Ok(last.map_or(InputLine::End, |piece| InputLine::of(&piece)));
            }
            self.wait(cancellation).map_err(StdinError::Stop)?;
            self.fill().map_err(StdinError::Io)?;
        }
    }

    /// Whether something more is there to read, or comes within `limit`.
    pub(crate) fn has_more(
        &self,
        limit: Duration,
        cancellation: &Cancellation,
    ) -> Result<bool, StdinError> {
        if !self.lines.is_empty() {
            return Ok(true);
        }
        match cancellation.wait(Some((self.file.as_fd(), Readiness::Read)), Some(limit)) {
            Ok(()) => Ok(true),
            Err(StopReason::Silence(_)) => Ok(false),
            Err(stop) => Err(StdinError::Stop(stop)),
        }
    }

    /// Makes what has been typed of a line readable before its end, as far as a
    /// terminal keeps that to itself: it can be edited no more, and nothing is
    /// lost of it. Where that does not work nothing happens.
    pub(crate) fn hand_over_line(&self) {
        if self.source == StdinKind::Terminal {
            terminal::push_line(self.file.as_fd());
        }
    }

    /// Whether nothing of what was read is left.
    pub(crate) fn is_drained(&self) -> bool {
        self.lines.is_empty()
    }

    /// Takes what somebody else has read of it.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// Whether Ctrl+C leaves what has been typed of a line; returns whether that
    /// has changed.
    pub(crate) fn keep_typing(&self, is_kept: bool) -> bool {
        self.source == StdinKind::Terminal && terminal::keep_typing(self.file.as_fd(), is_kept)
    }

    /// Forgets what has been typed and was not read; whether that was anything.
    pub(crate) fn forget_typing(&self) -> bool {
        self.source == StdinKind::Terminal && terminal::forget_typing(self.file.as_fd())
    }

    /// Forgets a line that has been begun (the terminal has forgotten it too).
    pub(crate) fn discard_line(&mut self) {
        self.lines.clear();
    }

    /// Waits until there is something to read, or the end.
    pub(crate) fn wait(&self, cancellation: &Cancellation) -> Result<(), StopReason> {
        cancellation.wait(Some((self.file.as_fd(), Readiness::Read)), None)
    }

    /// Reads once, without waiting where something is there; false at the end.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        match self.lines.fill(&mut self.file) {
            Ok(0) => self.at_end = true,
            Ok(_) => {}
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(!self.at_end)
    }

    /// The next line that has been read, as it came.
    pub(crate) fn next_piece(&mut self, most: usize) -> Option<LinePiece<'_>> {
        if self.at_end && !self.lines.has_line() {
            return self.lines.last(most);
        }
        self.lines.next(most)
    }
}

impl AsFd for StdinReader {
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
pub(crate) enum StdinError {
    /// A signal or the deadline.
    Stop(StopReason),
    /// The system says no.
    Io(io::Error),
}
