//! Standard output as a protocol's channel: messages, and nothing else.

use super::Output;

impl Output {
    /// From now on standard output carries a protocol's messages: should their
    /// reader go away, whatever is waited for ends. What finds no room on standard
    /// error is left out.
    pub fn serve(&mut self) {
        self.streams = false;
        self.serves = true;
        self.stdout.watch();
    }

    /// One message: a line of JSON, which has no line end within.
    pub fn send(&mut self, message: &str) {
        let mut line = self.masked(message).into_owned();
        line.push('\n');
        self.stdout.write(&line);
    }
}
