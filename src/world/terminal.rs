//! The terminal that controls us, whatever standard input and output are: there
//! a person is asked what no pipe may answer.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::limits;
use crate::world::cancellation::{Cancellation, Readiness};
use crate::world::event_source::EventSource;

/// An open terminal. Neither writing nor reading holds up a signal's end: the
/// error then carries a [`StopReason`](crate::world::cancellation::StopReason).
#[derive(Debug)]
pub(crate) struct Terminal {
    file: File,
}

impl Terminal {
    /// Opens it, once we are in its foreground: until then the kernel stops us, as
    /// everybody who reads there. There is none in a service, or behind `setsid`.
    pub(crate) fn open() -> io::Result<Terminal> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
            .open("/dev/tty")?;
        let terminal = Terminal { file };
        terminal.forget_typing()?;
        Ok(terminal)
    }

    /// Lines and columns.
    pub(crate) fn size(&self) -> (usize, usize) {
        // SAFETY: plain numbers, for which zero is a valid value.
        let mut size: libc::winsize = unsafe { std::mem::zeroed() };
        // SAFETY: the structure outlives the call, the descriptor is open.
        unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
        // Some do not know.
        let or = |number, usual| if number == 0 { usual } else { number };
        (or(size.ws_row, 24).into(), or(size.ws_col, 80).into())
    }

    /// Writes all of it. What it holds must be fit for a terminal.
    pub(crate) fn say(&mut self, text: &str, cancellation: &Cancellation) -> io::Result<()> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            cancellation.wait(Some((self.file.as_fd(), Readiness::Write)), None)?;
            match self.file.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The line that is typed after the question; `None` at the end of typing.
    /// While it is thought about somebody else is served.
    pub(crate) fn read_reply(
        &mut self,
        question: &str,
        cancellation: &Cancellation,
        event_source: Option<&dyn EventSource>,
    ) -> io::Result<Option<String>> {
        // The answer is for this question alone.
        let was_collected = cancellation.interrupt.collect(false);
        let line = self.answer(question, cancellation, event_source);
        cancellation.interrupt.collect(was_collected);
        if !matches!(line, Ok(Some(_))) {
            // Nobody pressed Enter.
            let _ = self.file.write(b"\n");
        }
        line
    }

    fn answer(
        &mut self,
        question: &str,
        cancellation: &Cancellation,
        event_source: Option<&dyn EventSource>,
    ) -> io::Result<Option<String>> {
        self.forget_typing()?;
        self.say(question, cancellation)?;
        self.line(cancellation, event_source)
    }

    /// What was typed before a question is no answer to it.
    fn forget_typing(&self) -> io::Result<()> {
        // SAFETY: an open descriptor and a plain number.
        match unsafe { libc::tcflush(self.file.as_raw_fd(), libc::TCIFLUSH) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn line(
        &mut self,
        cancellation: &Cancellation,
        event_source: Option<&dyn EventSource>,
    ) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        while line.len() <= limits::TERMINAL_LINE_BYTES {
            cancellation.wait_with((self.file.as_fd(), Readiness::Read), event_source)?;
            let mut piece = [0; limits::PIPE_READ_BYTES];
            match self.file.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(count) => line.extend_from_slice(&piece[..count]),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
            if let Some(end) = line.iter().position(|byte| b"\r\n".contains(byte)) {
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
        }
        Ok(None)
    }
}

/// Makes a terminal hand out the line that is being edited in it. The kernel does
/// so when it is told to edit lines while there are characters: it is told not
/// to, and at once to do so again. Nothing else changes, and of everybody in the
/// background, whom this would stop, nothing is changed.
pub(crate) fn push_line(terminal: BorrowedFd<'_>) {
    unedited(terminal, || {});
}

/// Forgets what has been typed and was not read; whether that was anything. Only
/// behind [`keep_typing`] it is still there after Ctrl+C.
pub(crate) fn forget_typing(terminal: BorrowedFd<'_>) -> bool {
    let mut count: libc::c_int = 0;
    unedited(terminal, || {
        // SAFETY: an open descriptor, and a number that outlives the calls.
        unsafe {
            libc::ioctl(terminal.as_raw_fd(), libc::FIONREAD, &raw mut count);
            libc::tcflush(terminal.as_raw_fd(), libc::TCIFLUSH);
        }
    });
    count > 0
}

/// Whether Ctrl+C leaves what has been typed of a line; returns whether that has
/// changed.
pub(crate) fn keep_typing(terminal: BorrowedFd<'_>, is_kept: bool) -> bool {
    let Some(mut modes) = edited(terminal) else {
        return false;
    };
    let old = modes.c_lflag;
    modes.c_lflag &= !libc::NOFLSH;
    if is_kept {
        modes.c_lflag |= libc::NOFLSH;
    }
    if modes.c_lflag != old {
        set(terminal, &modes);
    }
    modes.c_lflag != old
}

/// Whether the program is in the foreground of a terminal.
pub(crate) fn is_ours(terminal: BorrowedFd<'_>) -> bool {
    // SAFETY: an open descriptor.
    unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) == libc::getpgrp() }
}

/// Does something while a terminal edits no lines.
fn unedited(terminal: BorrowedFd<'_>, act: impl FnOnce()) {
    let Some(modes) = edited(terminal) else {
        return;
    };
    let mut unedited = modes;
    unedited.c_lflag &= !libc::ICANON;
    set(terminal, &unedited);
    act();
    set(terminal, &modes);
}

/// The modes of a terminal that is ours and edits lines.
fn edited(terminal: BorrowedFd<'_>) -> Option<libc::termios> {
    // SAFETY: plain numbers, for which zero is a valid value.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the structure outlives the call, the descriptor is open.
    let is_known = unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes) == 0 };
    (is_known && is_ours(terminal) && modes.c_lflag & libc::ICANON != 0).then_some(modes)
}

/// Sets modes; a signal meanwhile does not keep it from that.
fn set(terminal: BorrowedFd<'_>, modes: &libc::termios) {
    // SAFETY: the structure outlives the call, the descriptor is open.
    while unsafe { libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, modes) } != 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}
