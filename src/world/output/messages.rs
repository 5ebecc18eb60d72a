//! Standard output as a protocol's channel: messages, and nothing else. Standard
//! error then belongs to a client that may never read it.

use std::io::{self, Write};
use std::os::fd::AsFd;

use super::Output;
use crate::limits;
use crate::world::patience::{Patience, Readiness};

impl Output {
    /// From now on standard output carries a protocol's messages: should their
    /// reader go away, whatever is waited for ends. What finds no room on standard
    /// error is left out.
    pub fn serve(&mut self) {
        self.streams = false;
        self.serves = true;
        self.stdout.watch();
    }

    /// One message: a line of JSON, which has no line end within. It goes out as it
    /// is: who makes it masks what others have said in it.
    pub fn send(&mut self, message: &str) {
        self.stdout.write(&format!("{message}\n"));
    }

    /// Lines for standard error. Nobody is told, if this fails.
    pub(super) fn write_error(&self, lines: &str) {
        let mut stderr = io::stderr();
        for piece in lines.as_bytes().chunks(limits::STDOUT_PIECE_BYTES) {
            let room = Some((stderr.as_fd(), Readiness::Write));
            let patience = Patience::endless();
            if self.serves && patience.wait(room, Some(limits::STDERR_ROOM)).is_err() {
                return;
            }
            let _ = stderr.write_all(piece);
        }
    }
}
