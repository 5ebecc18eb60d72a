//! `/attach`: what goes with the next question.

use std::ffi::OsStr;

use crate::cli::attach::Attachments;
use crate::cli::chat::{Chat, Line};
use crate::error::Kind;
use crate::message::User;
use crate::world::output::Output;

impl Chat<'_> {
    /// Attaches a file, whose name may hold blanks, or an address; without
    /// either says what is attached.
    pub fn attach(&mut self, name: &str, output: &mut Output) -> Line {
        if name.is_empty() {
            for line in self.attached.lines() {
                output.note(&format!("attached: {line}"));
            }
            if self.attached.is_empty() {
                output.note("nothing is attached: /attach FILE");
            }
            return Line::Nothing;
        }
        match self.attached.add(OsStr::new(&unquoted(name)), self.run) {
            Ok(told) => output.note(&format!("attached, for the next question: {told}")),
            Err(error) if error.kind() == Kind::Usage => {
                return self.refuse(error.message().into(), false, output);
            }
            // Ctrl+C and the deadline are seen by whoever reads the next line.
            Err(error) => output.error(&error),
        }
        Line::Nothing
    }

    /// Asks, with all that is attached.
    pub fn ask(&mut self, said: User) -> Line {
        self.conversation.ask(self.attached.go_with(said));
        Line::Turn
    }

    /// Forgets what is attached.
    pub fn detach(&mut self) {
        self.attached = Attachments::default();
    }
}

/// A name as a terminal gives it of a file that is dropped there: in quotes, or
/// with a backslash before each blank.
fn unquoted(name: &str) -> String {
    let inner = |quote| name.strip_prefix(quote)?.strip_suffix(quote);
    let quoted = inner('\'').or_else(|| inner('"'));
    quoted.map_or_else(|| name.replace("\\ ", " "), String::from)
}
