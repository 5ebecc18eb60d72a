//! `/attach`: attachments of the next question.

use std::ffi::OsStr;

use crate::cli::chat::commands::line_error;
use crate::cli::chat::{Chat, LineOutcome};
use crate::cli::invocation;
use crate::ui::Output;
use base::error::{ErrorKind, Result};
use base::limits;
use base::media::Image;
use base::message::{InvokedSkill, Message, UserMessage};
use base::text;

impl Chat<'_> {
    /// Attaches a file, whose name may contain spaces, or an address; without either, lists the
    /// attachments.
    pub(super) fn attach(&mut self, name: &str, output: &mut Output) -> Result<LineOutcome> {
        if name.is_empty() {
            for line in self.attached.lines() {
                output.note(&format!("attached: {line}"));
            }
            if self.attached.is_empty() {
                output.note("nothing is attached; /attach FILE attaches a file");
            }
            return Ok(LineOutcome::Nothing);
        }
        let added = self.attached.add(OsStr::new(&unquoted(name)), self.run);
        let description = added.map_err(|error| match error.kind() {
            // The command line of the program was right.
            ErrorKind::Usage => line_error(error.message()),
            _ => error,
        })?;
        output.note(&format!("attached to the next question: {description}"));
        Ok(LineOutcome::Nothing)
    }

    /// Adds the question with its attachments. If it replaces a question that failed temporarily,
    /// it also gets the attachments of that one.
    pub(super) fn add_question(
        &mut self,
        mut question: UserMessage,
        output: &mut Output,
    ) -> LineOutcome {
        if let Some(Message::User(failed)) = self.conversation.messages().last() {
            self.is_given_next |= self.has_given(failed);
            let names = attachment_names(failed);
            let failure = self.failure.as_ref();
            let is_passing = failure.is_some_and(|error| error.kind() == ErrorKind::Temporary);
            if !names.is_empty() && !is_passing {
                output.note(&format!("removed with the failed question: {names}"));
            } else if !names.is_empty() {
                output.note(&format!(
                    "attached again, because the previous question failed: {names}"
                ));
                question.files.clone_from(&failed.files);
                question.images.clone_from(&failed.images);
            }
        }
        if std::mem::take(&mut self.is_given_next) {
            invocation::add_given(&self.given, &mut question.skills);
        }
        self.conversation.add_question(self.attached.move_into(question));
        LineOutcome::Turn
    }

    /// Whether the question has the skills of `--skill`.
    pub(super) fn has_given(&self, question: &UserMessage) -> bool {
        let is_there =
            |given: &InvokedSkill| question.skills.iter().any(|skill| skill.name == given.name);
        !self.given.is_empty() && self.given.iter().all(is_there)
    }
}

/// The names of the attachments of a question, in one line.
pub(super) fn attachment_names(question: &UserMessage) -> String {
    let files = question.files.iter().map(|file| file.name.clone());
    let all: Vec<String> = files.chain(question.images.iter().map(Image::describe)).collect();
    text::one_line(&all.join(", "), limits::HINT_BYTES)
}

/// Removes the quoting that terminals add to the name of a file dropped on them: quotes, or a
/// backslash before each space.
fn unquoted(name: &str) -> String {
    let inner = |quote| name.strip_prefix(quote)?.strip_suffix(quote);
    let quoted = inner('\'').or_else(|| inner('"'));
    quoted.map_or_else(|| name.replace("\\ ", " "), String::from)
}
