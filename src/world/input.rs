//! Standard input: what it is, all of it, or line by line, always with an eye
//! on the signals.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use crate::limits;
use crate::world::patience::{Patience, Readiness, Stop};

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

/// Standard input, unbuffered below us.
#[derive(Debug)]
pub struct Input {
    file: File,
    source: Source,
    /// Read but not yet given out as a line.
    rest: Vec<u8>,
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
        Ok(Input {
            file,
            source,
            rest: Vec::new(),
            at_end: false,
        })
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
        let mut bytes = std::mem::take(&mut self.rest);
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

    /// The next line without its end; `None` at the end of the input.
    pub fn read_line(
        &mut self,
        most: usize,
        patience: &Patience,
    ) -> Result<Option<String>, ReadError> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.rest[searched..].iter().position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.rest.drain(..=searched + end).collect();
                line.pop();
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            searched = self.rest.len();
            if self.rest.len() > most {
                let text = format!("a line is longer than {most} bytes");
                return Err(ReadError::Io(io::Error::new(
                    io::ErrorKind::InvalidData,
                    text,
                )));
            }
            if self.at_end {
                let line = std::mem::take(&mut self.rest);
                return Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned()));
            }
            self.fill(patience)?;
        }
    }

    /// Forgets a line that has been begun (the terminal has forgotten it too).
    pub fn discard_line(&mut self) {
        self.rest.clear();
    }

    fn fill(&mut self, patience: &Patience) -> Result<(), ReadError> {
        patience
            .wait(Some((self.file.as_fd(), Readiness::Read)), None)
            .map_err(ReadError::Stop)?;
        let mut piece = [0u8; limits::PIPE_READ_BYTES];
        match self.file.read(&mut piece) {
            Ok(0) => self.at_end = true,
            Ok(count) => self.rest.extend_from_slice(&piece[..count]),
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(ReadError::Io(error)),
        }
        Ok(())
    }
}

/// Somebody else may have made the shared descriptor non-blocking.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}

/// Why reading ended before its end.
#[derive(Debug)]
pub enum ReadError {
    /// A signal or the deadline.
    Stop(Stop),
    /// The system says no.
    Io(io::Error),
}
