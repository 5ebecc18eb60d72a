//! Standard input, read whole or line by line. Every wait ends on a signal or at
//! the deadline of the run.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use base::error::{Error, ErrorKind, Result};
use host::cancellation::{Cancellation, Readiness, StopReason};
use host::files::{is_transient, read_error, read_to_end};
use host::lines::LineBuffer;
pub(crate) use host::lines::LinePiece;

/// Kind of standard input: each is read differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdinKind {
    /// A terminal: the user types.
    Terminal,
    /// `/dev/null`, another device, or closed: read only on request.
    Nothing,
    /// A regular file: reading it never waits.
    File,
    /// A pipe or a socket: data may never arrive.
    Stream,
}

/// Result of reading standard input to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WholeInput {
    /// All bytes up to the end.
    Bytes(Vec<u8>),
    /// The first byte did not arrive in time.
    Silent,
    /// Standard input is larger than the limit.
    TooLarge,
}

/// Result of reading one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    /// The line without its line break; invalid UTF-8 is replaced.
    Text(String),
    /// The line is longer than the limit.
    TooLong,
    /// The end of the input.
    End,
}

impl InputLine {
    fn from_piece(piece: &LinePiece<'_>) -> InputLine {
        match piece {
            LinePiece::Whole(bytes) => InputLine::Text(String::from_utf8_lossy(bytes).into_owned()),
            LinePiece::TooLong => InputLine::TooLong,
        }
    }
}

/// Reader of standard input with a buffer of its own.
#[derive(Debug)]
pub(crate) struct StdinReader {
    file: File,
    kind: StdinKind,
    /// Bytes that were read and not returned yet.
    lines: LineBuffer,
    at_end: bool,
}

impl StdinReader {
    /// Determines the kind of standard input without reading from it.
    pub(crate) fn open() -> Result<StdinReader> {
        StdinReader::new().map_err(|error| unreadable(&error))
    }

    fn new() -> io::Result<StdinReader> {
        // A second descriptor of the same file, because `poll` does not see what
        // std's own reader has buffered.
        let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let file_type = file.metadata()?.file_type();
        let kind = if io::stdin().is_terminal() {
            StdinKind::Terminal
        } else if file_type.is_file() {
            StdinKind::File
        } else if file_type.is_fifo() || file_type.is_socket() {
            StdinKind::Stream
        } else {
            StdinKind::Nothing
        };
        Ok(StdinReader { file, kind, lines: LineBuffer::default(), at_end: false })
    }

    /// The kind of standard input.
    pub(crate) fn kind(&self) -> StdinKind {
        self.kind
    }

    /// Reads to the end, at most `max_bytes`. With `first_byte_limit` the first
    /// byte must arrive within that time; later bytes have no limit.
    pub(crate) fn read_to_end(
        &mut self,
        max_bytes: usize,
        first_byte_limit: Option<Duration>,
        cancellation: &Cancellation,
    ) -> Result<WholeInput> {
        let silence = |length| if length == 0 { first_byte_limit } else { None };
        let rest = self.lines.take_rest();
        match read_to_end(&mut self.file, rest, max_bytes, silence, cancellation) {
            Ok(Some(bytes)) => Ok(WholeInput::Bytes(bytes)),
            Ok(None) => Ok(WholeInput::TooLarge),
            Err(error) => match StopReason::from_io_error(&error) {
                Some(StopReason::Silence(_)) => Ok(WholeInput::Silent),
                _ => Err(unreadable(&error)),
            },
        }
    }

    /// Reads the next line. A line longer than `max_bytes` is discarded.
    pub(crate) fn read_line(
        &mut self,
        max_bytes: usize,
        cancellation: &Cancellation,
    ) -> Result<InputLine> {
        loop {
            if let Some(piece) = self.lines.next_line(max_bytes) {
                return Ok(InputLine::from_piece(&piece));
            }
            if self.at_end {
                let last = self.lines.take_last_line(max_bytes);
                return Ok(last.map_or(InputLine::End, |piece| InputLine::from_piece(&piece)));
            }
            self.wait(cancellation)?;
            self.fill()?;
        }
    }

    /// Waits until input or its end can be read.
    pub(crate) fn wait(&self, cancellation: &Cancellation) -> Result<()> {
        Ok(cancellation.wait(Some((self.file.as_fd(), Readiness::Read)), None)?)
    }

    /// Reads once, without waiting if input is available. Returns false at the end.
    pub(crate) fn fill(&mut self) -> Result<bool> {
        match self.lines.fill(&mut self.file) {
            Ok(0) => self.at_end = true,
            Ok(_) => {}
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(unreadable(&error)),
        }
        Ok(!self.at_end)
    }

    /// The next line that was read, as bytes.
    pub(crate) fn next_piece(&mut self, max_bytes: usize) -> Option<LinePiece<'_>> {
        if self.at_end && !self.lines.has_line() {
            return self.lines.take_last_line(max_bytes);
        }
        self.lines.next_line(max_bytes)
    }
}

impl AsFd for StdinReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The error for standard input that could not be read, or for a stop of the run.
pub(crate) fn unreadable(error: &io::Error) -> Error {
    read_error(error, |cause| {
        Error::new(ErrorKind::Io, format!("failed to read standard input: {cause}"))
    })
}
