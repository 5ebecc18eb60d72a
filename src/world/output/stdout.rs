//! Standard output, as long as it can be written.
//!
//! A reader that does not read would hold up a signal's end: what is written
//! waits for room with an eye on the signals and the end of the run. Once writing has failed, nothing
//! more is tried, and whatever the run waits for ends: nobody would see it.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::world::cancellation::{self, Cancellation, Readiness, StopReason};
use crate::world::signal::{Interrupt, Signal};

/// Where the answer goes.
#[derive(Debug)]
pub(super) struct Stdout {
    interrupt: Interrupt,
    /// The end of the run: nobody waits for a reader any longer.
    deadline: Option<Instant>,
    /// A reader that takes nothing goes with whoever asks on standard input.
    serves: bool,
    failure: Option<io::Error>,
    is_told: bool,
}

impl Stdout {
    /// Nothing has been written yet. `is_live`: it is read as it comes, so that
    /// a reader that goes away need not be written to before it is missed.
    pub(super) fn new(interrupt: Interrupt, is_live: bool) -> Stdout {
        let stdout =
            Stdout { interrupt, deadline: None, serves: false, failure: None, is_told: false };
        if is_live {
            stdout.watch();
        }
        stdout
    }

    /// From now on the reader belongs to whoever asks on standard input, and is
    /// not waited for long once nobody can ask any more.
    pub(super) fn serve(&mut self) {
        self.serves = true;
        self.watch();
    }

    /// Whether it does; standard error then belongs to the same client.
    pub(super) fn serves(&self) -> bool {
        self.serves
    }

    /// From now on the reader is missed as soon as it goes.
    fn watch(&self) {
        self.interrupt.watch(io::stdout().as_fd());
    }

    /// From now on writing ends with the run.
    pub(super) fn end_at(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Writes all of it, through to the reader.
    pub(super) fn write(&mut self, text: &str) {
        for piece in text.as_bytes().chunks(limits::STDOUT_PIECE_BYTES) {
            if self.failure.is_some() {
                return;
            }
            if let Err(error) = self.write_piece(piece) {
                self.failure = Some(error);
                self.interrupt.raise(Signal::PIPE);
            }
        }
    }

    /// Writes it as a line, a short one at once.
    pub(super) fn write_line(&mut self, text: &str) {
        let rest = text.len() % limits::STDOUT_PIECE_BYTES;
        let (pieces, rest) = text.split_at(text.floor_char_boundary(text.len() - rest));
        self.write(pieces);
        self.write(&format!("{rest}\n"));
    }

    /// Whether the reader went away.
    pub(super) fn is_unread(&self) -> bool {
        let kind = self.failure.as_ref().map(io::Error::kind);
        kind == Some(io::ErrorKind::BrokenPipe)
    }

    /// Why not everything could be written, told once. A reader that went away
    /// is no failure; a full disk is, and so is a signal that came while the
    /// reader did not read.
    pub(super) fn outcome(&mut self) -> Result<()> {
        match &self.failure {
            Some(error) if !self.is_unread() && !self.is_told => {
                self.is_told = true;
                Err(match StopReason::within(error) {
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
        let round = self.serves.then_some(limits::STDOUT_UNREAD);
        loop {
            let is_over = self.serves && is_abandoned();
            match cancellation.wait(room, round) {
                Ok(()) => break,
                Err(StopReason::Silence(_)) if is_over => {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Err(StopReason::Silence(_)) => {}
                Err(stop) => {
                    // The last words still go out, if somebody takes them.
                    let last = Cancellation::never().wait(room, Some(limits::STDOUT_LAST));
                    last.map_err(|_| stop)?;
                    break;
                }
            }
        }
        stdout.write_all(piece)?;
        stdout.flush()
    }
}

/// Writes a text of the program's own, such as its help, when nothing else is
/// to be told: there is nothing in it to be masked, and no signal but those
/// that end the program by themselves.
pub(crate) fn print_alone(text: &str) -> Result<()> {
    let mut stdout = Stdout::new(Interrupt::never(), false);
    stdout.write_line(text.strip_suffix('\n').unwrap_or(text));
    stdout.outcome()
}

/// Whether nobody can write to standard input any more.
fn is_abandoned() -> bool {
    cancellation::is_ready((io::stdin().as_fd(), Readiness::Abandoned))
}
