//! Messages that the user types, at a prompt or while the program waits for something else.
//!
//! A terminal delivers lines without saying when each was typed. So lines are read as
//! soon as they arrive: those that follow immediately were pasted and form one message. Nor can
//! they stay in the terminal during a turn: once its 4 KiB are full of lines, the kernel no longer
//! looks at what is typed, not even for Ctrl+C.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::line_editing;
use crate::poll::{self, Readiness};
use base::limits;

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
    terminal: File,
    is_collecting: AtomicBool,
    collected: Mutex<CollectedInput>,
}

#[derive(Debug, Default)]
struct CollectedInput {
    messages: VecDeque<Vec<u8>>,
    at_end: bool,
}

impl TypeAhead {
    /// Starts to collect.
    pub(super) fn new(terminal: File) -> TypeAhead {
        TypeAhead { terminal, is_collecting: AtomicBool::new(true), collected: Mutex::default() }
    }

    /// Starts or stops collecting. Returns whether input was collected before.
    pub(super) fn set_collecting(&self, is_wanted: bool) -> bool {
        self.is_collecting.swap(is_wanted, Ordering::Relaxed)
    }

    /// The terminal, while its input is collected.
    pub(super) fn watched_terminal(&self) -> Option<BorrowedFd<'_>> {
        self.is_collecting.load(Ordering::Relaxed).then(|| self.terminal.as_fd())
    }

    /// Removes and returns the next message.
    pub(super) fn next(&self) -> Option<TypedInput> {
        let mut collected = self.collected.lock().ok()?;
        match collected.messages.pop_front() {
            Some(message) if message.ends_with(b"\n") => Some(TypedInput::Complete(message)),
            Some(message) => Some(TypedInput::Unfinished(message)),
            None => std::mem::take(&mut collected.at_end).then_some(TypedInput::End),
        }
    }

    /// Reads a message if input is available; `is_over` ends reading early. Collecting stops
    /// if nothing more must be read before the next prompt.
    pub(super) fn collect(&self, is_over: impl Fn() -> bool) {
        let Some(terminal) = self.watched_terminal() else {
            return;
        };
        if !poll::is_ready((terminal, Readiness::Read)) {
            return;
        }
        // Reading in the background would stop the program (SIGTTIN).
        let is_open =
            line_editing::is_in_foreground(terminal) && self.read_message(is_over).unwrap_or(false);
        if !is_open {
            self.set_collecting(false);
        }
    }

    /// Reads one message; waits for its start. Returns whether more may be read.
    pub(super) fn read_message(&self, is_over: impl Fn() -> bool) -> io::Result<bool> {
        let mut input = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ready =
            |limit| poll::is_ready_within((self.terminal.as_fd(), Readiness::Read), limit);
        let is_unfinished = |message: &mut Vec<u8>| !message.ends_with(b"\n");
        let mut message = input.messages.pop_back_if(is_unfinished).unwrap_or_default();
        let mut pause = limits::PASTE_SECOND_LINE;
        let mut piece = [0; limits::PIPE_READ_BYTES];
        let is_open = loop {
            match (&self.terminal).read(&mut piece) {
                Ok(0) => {
                    input.at_end = true;
                    break false;
                }
                Ok(count) => message.extend_from_slice(&piece[..count]),
                Err(error)
                    if [ErrorKind::Interrupted, ErrorKind::WouldBlock].contains(&error.kind()) => {}
                Err(error) => return Err(error),
            }
            // The rest is read too, and the message stays too long, also without its line break.
            if message.len() > limits::CHAT_LINE_BYTES + 1 {
                let last = if message.ends_with(b"\n") { b'\n' } else { b' ' };
                message.truncate(limits::CHAT_LINE_BYTES + 1);
                message.push(last);
            }
            if is_over() {
                break true;
            }
            if !is_ready(pause) {
                line_editing::release_line(self.terminal.as_fd());
                if !is_ready(limits::TERMINAL_LINE_READY) {
                    break true;
                }
            }
            pause = limits::PASTE_NEXT_LINE;
        };
        // Enter, if the program before this one had switched its translation off.
        for byte in message.iter_mut().filter(|byte| **byte == b'\r') {
            *byte = b'\n';
        }
        if !message.is_empty() {
            input.messages.push_back(message);
        }
        Ok(is_open)
    }
}
