//! Standard output as a protocol's channel: messages, and nothing else. Standard
//! error then belongs to a client that may never read it.

use std::io::{self, Write};
use std::os::fd::AsFd;

use super::Output;
use crate::limits;
use crate::text::counted;
use crate::world::cancellation::{self, Cancellation, Readiness};

impl Output {
    /// From now on standard output carries a protocol's messages: should their
    /// reader go away, whatever is waited for ends. What finds no room on standard
    /// error is left out.
    pub(crate) fn serve(&mut self) {
        self.streams = false;
        self.stdout.serve();
    }

    /// One message: a line of JSON, which has no line end within. It goes out as it
    /// is: who makes it masks what others have said in it.
    pub(crate) fn send(&mut self, message: &str) {
        self.stdout.write(&format!("{message}\n"));
    }

    /// Lines for standard error. Nobody is told, if this fails.
    pub(super) fn write_error(&mut self, lines: &str) {
        for line in lines.split_inclusive('\n') {
            if !self.has_room() {
                self.left_out = self.left_out.saturating_add(1);
                continue;
            }
            let mut text = line.to_string();
            if self.left_out > 0 {
                let count = counted(std::mem::take(&mut self.left_out), "line");
                text.insert_str(0, &format!("… {count} left out here\n"));
            }
            for piece in text.as_bytes().chunks(limits::STDOUT_PIECE_BYTES) {
                if !self.has_room() {
                    break;
                }
                let _ = io::stderr().write_all(piece);
            }
        }
    }

    /// Whether standard error takes a piece. After a line that found no room it
    /// is not waited for: who reads nothing would hold up each answer a little.
    fn has_room(&self) -> bool {
        let stderr = io::stderr();
        let room = (stderr.as_fd(), Readiness::Write);
        if !self.stdout.serves() {
            return true;
        }
        if self.left_out > 0 {
            return cancellation::is_ready(room);
        }
        let cancellation = Cancellation::never();
        cancellation.wait(Some(room), Some(limits::STDERR_ROOM)).is_ok()
    }
}
