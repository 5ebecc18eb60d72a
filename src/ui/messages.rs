//! Output of a protocol server: standard output gets only messages, and standard error
//! goes to a client that may never read it.

use std::io::{self, Write};
use std::os::fd::AsFd;

use super::Output;
use base::limits;
use base::text::counted;
use host::cancellation::{self, Cancellation, Readiness};

impl Output {
    /// Switches to protocol messages on standard output: every wait ends when their
    /// reader closes it, and lines are dropped while standard error is full.
    pub(crate) fn serve(&mut self) {
        self.streams = false;
        self.stdout.serve();
    }

    /// Writes one message: a line of JSON without a line end. It is not masked here.
    pub(crate) fn send(&mut self, message: &str) {
        self.stdout.write(&format!("{message}\n"));
    }

    /// Writes lines to standard error, and ignores failures.
    pub(super) fn write_error(&mut self, lines: &str) {
        for line in lines.split_inclusive('\n') {
            if !self.has_room() {
                self.dropped_lines = self.dropped_lines.saturating_add(1);
                continue;
            }
            let mut text = line.to_string();
            if self.dropped_lines > 0 {
                let count = counted(std::mem::take(&mut self.dropped_lines), "line");
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

    /// Whether standard error has room for a piece. After a dropped line there is no wait,
    /// which would delay each response.
    fn has_room(&self) -> bool {
        let stderr = io::stderr();
        let room = (stderr.as_fd(), Readiness::Write);
        if !self.stdout.is_server() {
            return true;
        }
        if self.dropped_lines > 0 {
            return cancellation::is_ready(room);
        }
        let cancellation = Cancellation::never();
        cancellation.wait(Some(room), Some(limits::STDERR_WAIT)).is_ok()
    }
}
