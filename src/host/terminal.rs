//! The controlling terminal, independent of standard input and output. It is used for
//! questions that the user must answer: a pipe on standard input cannot answer them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::cancellation::{Cancellation, Readiness, StopReason};
use crate::event_source::EventSource;
use crate::files::is_transient;
use crate::line_editing;
use crate::poll::is_ready_within;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use nix::sys::termios::{FlushArg, LocalFlags, tcflush};

/// The number of columns of a terminal, 80 if it is unknown.
pub fn columns(terminal: impl AsFd) -> usize {
    size(terminal).1
}

/// The number of lines and columns of a terminal.
fn size(terminal: impl AsFd) -> (usize, usize) {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the structure outlives the call, the descriptor is open.
    unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    // Some terminals report 0.
    let or = |number, default| if number == 0 { default } else { number };
    (or(size.ws_row, 24).into(), or(size.ws_col, 80).into())
}

/// Discards what was typed or pasted and still arrives.
pub fn discard_paste(terminal: impl AsFd) {
    let (silence, most) = limits::UNUSABLE_PASTE;
    for _ in 0..most {
        line_editing::discard_typed_text(terminal.as_fd());
        if !is_ready_within((terminal.as_fd(), Readiness::Read), silence) {
            break;
        }
    }
    line_editing::discard_typed_text(terminal.as_fd());
}

/// Asks the user; returns the trimmed reply, which is empty at the end of the input. A secret reply
/// is not shown while it is typed.
pub fn ask(question: &str, cancellation: &Cancellation, is_secret: bool) -> Result<String> {
    let reply = Terminal::open().and_then(|mut terminal| {
        let modes = line_editing::modes(terminal.file.as_fd()).filter(|_| is_secret);
        let tty = terminal.file.try_clone()?;
        if let Some(modes) = &modes {
            let mut hidden = modes.clone();
            hidden.local_flags.remove(LocalFlags::ECHO);
            // After Ctrl+Z and `fg` a shell would let the secret be shown.
            hidden.control_chars[libc::VSUSP] = libc::_POSIX_VDISABLE;
            line_editing::set_modes(tty.as_fd(), &hidden);
        }
        let reply = terminal.read_reply(question, cancellation, None);
        if let Some(modes) = &modes {
            line_editing::set_modes(tty.as_fd(), modes);
            let _ = terminal.file.write(b"\n");
        }
        reply
    });
    match reply {
        Ok(reply) => Ok(reply.unwrap_or_default().trim().to_string()),
        Err(error) => Err(match StopReason::from_io_error(&error) {
            Some(stop) => stop.into(),
            None => Error::new(ErrorKind::Io, format!("failed to ask on the terminal: {error}")),
        }),
    }
}

/// Open terminal. A signal or the deadline ends reading and writing; the error then
/// carries a [`StopReason`].
#[derive(Debug)]
pub struct Terminal {
    file: File,
}

impl Terminal {
    /// Opens the terminal. The kernel stops a process in the background here until it is in
    /// the foreground. Services and programs started by `setsid` have no terminal.
    pub fn open() -> io::Result<Terminal> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
            .open("/dev/tty")?;
        let terminal = Terminal { file };
        terminal.discard_input()?;
        Ok(terminal)
    }

    /// Returns the number of lines and columns.
    pub fn size(&self) -> (usize, usize) {
        size(&self.file)
    }

    /// Writes all of the text, which must be safe for a terminal.
    pub fn write(&mut self, text: &str, cancellation: &Cancellation) -> io::Result<()> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            cancellation.wait(Some((self.file.as_fd(), Readiness::Write)), None)?;
            match self.file.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Asks the question and returns the line that the user types; `None` at the end of
    /// input. Serves the event source while waiting.
    pub fn read_reply(
        &mut self,
        question: &str,
        cancellation: &Cancellation,
        event_source: Option<&dyn EventSource>,
    ) -> io::Result<Option<String>> {
        // The answer must not be collected as the user's next message.
        let was_collected = cancellation.interrupt.set_collecting(false);
        cancellation.interrupt.pause_observer(true);
        let line = self.prompt(question, cancellation, event_source);
        cancellation.interrupt.pause_observer(false);
        cancellation.interrupt.set_collecting(was_collected);
        if !matches!(line, Ok(Some(_))) {
            // The user has not pressed Enter, so the line is not ended yet.
            let _ = self.file.write(b"\n");
        }
        line
    }

    fn prompt(
        &mut self,
        question: &str,
        cancellation: &Cancellation,
        event_source: Option<&dyn EventSource>,
    ) -> io::Result<Option<String>> {
        self.discard_input()?;
        self.write(question, cancellation)?;
        self.read_line(cancellation, event_source)
    }

    /// Discards typed text: what was typed before a question is not an answer to it.
    fn discard_input(&self) -> io::Result<()> {
        Ok(tcflush(&self.file, FlushArg::TCIFLUSH)?)
    }

    fn read_line(
        &mut self,
        cancellation: &Cancellation,
        event_source: Option<&dyn EventSource>,
    ) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        while line.len() <= limits::TERMINAL_LINE_BYTES {
            cancellation.wait_serving((self.file.as_fd(), Readiness::Read), event_source)?;
            let mut piece = [0; limits::PIPE_READ_BYTES];
            match self.file.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(count) => line.extend_from_slice(&piece[..count]),
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
            if let Some(end) = line.iter().position(|byte| b"\r\n".contains(byte)) {
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
        }
        Ok(None)
    }
}
