//! Standard output, until writing fails.
//!
//! A slow reader must not delay the end after a signal: a write waits for room, for
//! signals and for the deadline of the run. After a failure nothing more is written,
//! and every wait of the run ends, since its output would be lost.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Instant;

use base::error::{Error, ErrorKind, Result};
use base::limits;
use host::cancellation::{self, Cancellation, Readiness, StopReason};
use host::signal::{Interrupt, Signal};

/// Standard output.
#[derive(Debug)]
pub(super) struct Stdout {
    interrupt: Interrupt,
    /// Deadline of the run, at which waiting for the reader ends.
    deadline: Option<Instant>,
    /// Whether the reader is the client on standard input.
    is_server: bool,
    failure: Option<io::Error>,
    is_reported: bool,
    has_output: bool,
}

impl Stdout {
    /// With `is_watched`, a closed reader is noticed even before the next write.
    pub(super) fn new(interrupt: Interrupt, is_watched: bool) -> Stdout {
        let stdout = Stdout {
            interrupt,
            deadline: None,
            is_server: false,
            failure: None,
            is_reported: false,
            has_output: false,
        };
        if is_watched {
            stdout.watch();
        }
        stdout
    }

    /// Declares the reader to be the client on standard input. Waiting for it is short
    /// once standard input is closed.
    pub(super) fn serve(&mut self) {
        self.is_server = true;
        self.watch();
    }

    /// Whether the reader is such a client, which then also reads standard error.
    pub(super) fn is_server(&self) -> bool {
        self.is_server
    }

    /// Raises the interrupt as soon as the reader closes standard output.
    fn watch(&self) {
        self.interrupt.watch_reader(io::stdout().as_fd());
    }

    /// Sets the deadline at which writing ends.
    pub(super) fn end_at(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Writes and flushes a text.
    pub(super) fn write(&mut self, text: &str) {
        for piece in text.as_bytes().chunks(limits::STDOUT_PIECE_BYTES) {
            if self.failure.is_some() {
                return;
            }
            self.has_output = true;
            if let Err(error) = self.write_piece(piece) {
                self.failure = Some(error);
                self.interrupt.raise(Signal::PIPE);
            }
        }
    }

    /// Writes a text and a line end; a short line with one write.
    pub(super) fn write_line(&mut self, text: &str) {
        let rest = text.len() % limits::STDOUT_PIECE_BYTES;
        let (pieces, rest) = text.split_at(text.floor_char_boundary(text.len() - rest));
        self.write(pieces);
        self.write(&format!("{rest}\n"));
    }

    /// Whether anything was written.
    pub(super) fn has_output(&self) -> bool {
        self.has_output
    }

    /// Whether the reader closed standard output.
    pub(super) fn is_reader_gone(&self) -> bool {
        let kind = self.failure.as_ref().map(io::Error::kind);
        kind == Some(io::ErrorKind::BrokenPipe)
    }

    /// Returns the error of a failed write once: a full disk, or a signal while the
    /// reader was slow. A closed reader is not an error.
    pub(super) fn take_write_error(&mut self) -> Result<()> {
        match &self.failure {
            Some(error) if !self.is_reader_gone() && !self.is_reported => {
                self.is_reported = true;
                Err(match StopReason::from_io_error(error) {
                    Some(stop) => stop.into(),
                    None => {
                        Error::new(ErrorKind::Io, format!("failed to write the answer: {error}"))
                    }
                })
            }
            _ => Ok(()),
        }
    }

    fn write_piece(&self, piece: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout();
        let cancellation =
            Cancellation { interrupt: self.interrupt.clone(), deadline: self.deadline };
        let room = Some((stdout.as_fd(), Readiness::Write));
        let round = self.is_server.then_some(limits::STDOUT_AFTER_STDIN);
        loop {
            let is_over = self.is_server && is_abandoned();
            match cancellation.wait(room, round) {
                Ok(()) => break,
                Err(StopReason::Silence(_)) if is_over => {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Err(StopReason::Silence(_)) => {}
                Err(stop) => {
                    // A last short wait for the reader.
                    let last_wait =
                        Cancellation::never().wait(room, Some(limits::STDOUT_AFTER_SIGNAL));
                    last_wait.map_err(|_| stop)?;
                    break;
                }
            }
        }
        stdout.write_all(piece)?;
        stdout.flush()
    }
}

/// Writes a text of the program itself, such as its help, without masking. Signals end
/// the program in the default way.
pub(crate) fn print_standalone(text: &str) -> Result<()> {
    let mut stdout = Stdout::new(Interrupt::never(), false);
    stdout.write_line(text.strip_suffix('\n').unwrap_or(text));
    stdout.take_write_error()
}

/// Whether the writer of standard input has closed it.
fn is_abandoned() -> bool {
    cancellation::is_ready((io::stdin().as_fd(), Readiness::PeerClosed))
}
