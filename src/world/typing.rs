//! Type-ahead: messages that the user types while the program waits for something else.
//!
//! A terminal delivers lines without saying when each was typed. So lines are read as
//! soon as they arrive: those that follow immediately were pasted and form one message.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::limits;
use crate::world::cancellation::{self, Cancellation, Readiness};
use crate::world::terminal;

/// One message that was typed.
#[derive(Debug, PartialEq, Eq)]
pub enum TypedInput {
    /// Lines that arrived together, with their line breaks.
    Complete(Vec<u8>),
    /// The same, but the last line has no line break yet.
    Unfinished(Vec<u8>),
    /// The end of typing (Ctrl+D).
    End,
}

/// Terminal whose input is collected while the program is busy.
#[derive(Debug)]
pub(super) struct TypeAhead {
    pub(super) terminal: File,
    pub(super) is_watched: bool,
    messages: VecDeque<Vec<u8>>,
    at_end: bool,
}

impl TypeAhead {
    pub(super) fn new(terminal: File) -> TypeAhead {
        TypeAhead { terminal, is_watched: false, messages: VecDeque::new(), at_end: false }
    }

    /// Removes and returns the next message.
    pub(super) fn next(&mut self) -> Option<TypedInput> {
        match self.messages.pop_front() {
            Some(message) if message.ends_with(b"\n") => Some(TypedInput::Complete(message)),
            Some(message) => Some(TypedInput::Unfinished(message)),
            None => std::mem::take(&mut self.at_end).then_some(TypedInput::End),
        }
    }

    /// Reads a message if input is available; `is_over` ends reading early. Returns
    /// false if nothing more must be read before the next prompt.
    pub(super) fn collect(&mut self, is_over: impl Fn() -> bool) -> bool {
        if !cancellation::is_ready((self.terminal.as_fd(), Readiness::Read)) {
            return true;
        }
        // Reading in the background would stop the program (SIGTTIN).
        if !terminal::is_in_foreground(self.terminal.as_fd()) {
            return false;
        }
        let is_unfinished = |message: &mut Vec<u8>| !message.ends_with(b"\n");
        let mut message = self.messages.pop_back_if(is_unfinished).unwrap_or_default();
        let mut pause = limits::PASTE_SECOND_LINE;
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
            // The prompt reads the rest and reports that the line is too long.
            if message.len() > limits::CHAT_LINE_BYTES {
                message.truncate(message.trim_ascii_end().len());
                break false;
            }
            if is_over() {
                break true;
            }
            if !self.is_ready(pause) {
                terminal::release_line(self.terminal.as_fd());
                if !self.is_ready(limits::TERMINAL_LINE_READY) {
                    break true;
                }
            }
            pause = limits::PASTE_NEXT_LINE;
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
