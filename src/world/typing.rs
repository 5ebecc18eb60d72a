//! What is typed while something else is waited for: messages, as they came.
//!
//! A terminal hands out lines and does not say when each was typed. So they are
//! read as they come: what follows at once was pasted, and belongs together.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::limits;
use crate::world::cancellation::{self, Cancellation, Readiness};
use crate::world::terminal;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub enum TypedInput {
    /// Lines that came at once, with their ends.
    Whole(Vec<u8>),
    /// The same, and the last line goes on.
    Begun(Vec<u8>),
    /// The end of typing (Ctrl+D).
    End,
}

/// A terminal, and what was typed there.
#[derive(Debug)]
pub(super) struct Typing {
    pub(super) terminal: File,
    pub(super) is_watched: bool,
    messages: VecDeque<Vec<u8>>,
    at_end: bool,
}

impl Typing {
    pub(super) fn new(terminal: File) -> Typing {
        Typing { terminal, is_watched: false, messages: VecDeque::new(), at_end: false }
    }

    /// The next message.
    pub(super) fn next(&mut self) -> Option<TypedInput> {
        match self.messages.pop_front() {
            Some(message) if message.ends_with(b"\n") => Some(TypedInput::Whole(message)),
            Some(message) => Some(TypedInput::Begun(message)),
            None => std::mem::take(&mut self.at_end).then_some(TypedInput::End),
        }
    }

    /// Reads the message that has come, if any. `false`: nothing more is read
    /// before the next prompt. `is_over` ends it early.
    pub(super) fn collect(&mut self, is_over: impl Fn() -> bool) -> bool {
        if !cancellation::is_ready((self.terminal.as_fd(), Readiness::Read)) {
            return true;
        }
        // In the background reading would stop the program.
        if !terminal::is_ours(self.terminal.as_fd()) {
            return false;
        }
        let goes_on = |message: &mut Vec<u8>| !message.ends_with(b"\n");
        let mut message = self.messages.pop_back_if(goes_on).unwrap_or_default();
        let mut pause = limits::PASTE_BEGINS;
        let mut piece = [0; limits::PIPE_READ_BYTES];
        let is_open = loop {
            match self.terminal.read(&mut piece) {
                Ok(0) => {
                    self.at_end = true;
                    break false;
                }
                Ok(count) => message.extend_from_slice(&piece[..count]),
                Err(error)
                    if [ErrorKind::Interrupted, ErrorKind::WouldBlock].contains(&error.kind()) => {}
                Err(_) => break false,
            }
            // The prompt reads the rest, and says that it is too long.
            if message.len() > limits::CHAT_LINE_BYTES {
                message.truncate(message.trim_ascii_end().len());
                break false;
            }
            if is_over() {
                break true;
            }
            if !self.is_ready(pause) {
                terminal::push_line(self.terminal.as_fd());
                if !self.is_ready(limits::HANDED_OVER) {
                    break true;
                }
            }
            pause = limits::PASTE_GOES_ON;
        };
        if !message.is_empty() {
            self.messages.push_back(message);
        }
        is_open
    }

    fn is_ready(&self, limit: Duration) -> bool {
        let what = (self.terminal.as_fd(), Readiness::Read);
        Cancellation::never().wait(Some(what), Some(limit)).is_ok()
    }
}
