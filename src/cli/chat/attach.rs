//! `/attach`: what goes with the next question.

use std::ffi::OsStr;

use crate::cli::attach::Attachments;
use crate::cli::chat::{Chat, LineOutcome};
use crate::error::ErrorKind;
use crate::limits;
use crate::message::{Image, Message, UserMessage};
use crate::text;
use crate::world::output::Output;

impl Chat<'_> {
    /// Attaches a file, whose name may hold blanks, or an address; without
    /// either says what is attached.
    pub(super) fn attach(&mut self, name: &str, output: &mut Output) -> LineOutcome {
        if name.is_empty() {
            for line in self.attached.lines() {
                output.note(&format!("attached: {line}"));
            }
            if self.attached.is_empty() {
                output.note("nothing is attached: /attach FILE");
            }
            return LineOutcome::Nothing;
        }
        match self.attached.add(OsStr::new(&unquoted(name)), self.run) {
            Ok(told) => output.note(&format!("attached, for the next question: {told}")),
            Err(error) if error.kind() == ErrorKind::Usage => {
                return self.refuse(error.message().into(), false, output);
            }
            // Ctrl+C and the deadline are seen by whoever reads the next line.
            Err(error) => output.error(&error),
        }
        LineOutcome::Nothing
    }

    /// Asks, with all that is attached. What went with a question that failed, in
    /// whose place this one stands, goes with this one, if it was not to blame.
    pub(super) fn run_question(
        &mut self,
        mut said: UserMessage,
        output: &mut Output,
    ) -> LineOutcome {
        if let Some(Message::User(failed)) = self.conversation.messages().last() {
            let names = names(failed);
            let failure = self.failure.as_ref();
            let is_passing = failure.is_some_and(|error| error.kind() == ErrorKind::Temporary);
            if !names.is_empty() && !is_passing {
                output.note(&format!("dropped with the failed question: {names}"));
            } else if !names.is_empty() {
                output.note(&format!("attached again, as the question before failed: {names}"));
                said.text.push_str(&failed.text[question(failed).len()..]);
                said.images.clone_from(&failed.images);
            }
        }
        self.conversation.add_question(self.attached.go_with(said));
        LineOutcome::Turn
    }

    /// Forgets what is attached; what it was.
    pub(super) fn detach(&mut self) -> String {
        let lines: Vec<String> = self.attached.lines().collect();
        self.attached = Attachments::default();
        lines.join(", ")
    }
}

/// How a file's text begins behind a question.
const FILE: &str = "\n\n<file name=\"";

/// The question without the files that went with it.
pub(super) fn question(said: &UserMessage) -> &str {
    // A skill's document may show files of its own.
    let end = said.text.find(FILE).filter(|_| !said.is_document);
    &said.text[..end.unwrap_or(said.text.len())]
}

/// What went with a question, for a line.
pub(super) fn names(said: &UserMessage) -> String {
    let files = said.text[question(said).len()..].split(FILE).skip(1);
    let files = files.filter_map(|file| Some(file.split_once('"')?.0.to_string()));
    let all: Vec<String> = files.chain(said.images.iter().map(Image::shown)).collect();
    text::one_line(&all.join(", "), limits::HINT_BYTES)
}

/// A name as a terminal gives it of a file that is dropped there: in quotes, or
/// with a backslash before each blank.
fn unquoted(name: &str) -> String {
    let inner = |quote| name.strip_prefix(quote)?.strip_suffix(quote);
    let quoted = inner('\'').or_else(|| inner('"'));
    quoted.map_or_else(|| name.replace("\\ ", " "), String::from)
}
