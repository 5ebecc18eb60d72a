//! Turns taken back and asked again.

use crate::cli::chat::{Chat, LineOutcome, attach};
use crate::limits;
use crate::text;
use crate::world::output::Output;

impl Chat<'_> {
    /// The request that failed, or the turn that was interrupted, once more.
    pub(super) fn retry(&mut self, output: &mut Output) -> LineOutcome {
        if self.conversation.awaits_answer() || self.conversation.reopen() {
            return LineOutcome::Turn;
        }
        let message = if self.conversation.has_question() {
            "there is nothing to send again: the last question has its answer (/undo takes both back)"
        } else {
            "there is nothing to send again"
        };
        output.note(message);
        LineOutcome::Nothing
    }

    /// Takes the last turn back.
    pub(super) fn undo(&mut self, output: &mut Output) -> LineOutcome {
        let is_answered = !self.conversation.awaits_answer();
        match self.conversation.undo() {
            Some(said) => {
                let question = text::one_line(attach::question(&said), limits::SUMMARY_CHARS);
                let answer = if is_answered { ", with its answer" } else { "" };
                output.note(&format!("taken back{answer}: {question}"));
                let names = attach::names(&said);
                if !names.is_empty() {
                    output.note(&format!("with it goes what was attached: {names}"));
                }
            }
            None if self.conversation.summarized() > 0 => {
                output.note("there is nothing to take back: what was said before is a summary");
            }
            None => output.note("there is nothing to take back"),
        }
        LineOutcome::Nothing
    }

    /// One line a tool.
    pub(super) fn list_tools(&self, output: &mut Output) -> LineOutcome {
        let tools = self.tools.definitions();
        for tool in tools {
            let about = text::one_line(&tool.description, limits::SUMMARY_CHARS);
            output.note(&format!("{}: {about}", tool.name));
        }
        if tools.is_empty() {
            output.note("the model gets no tools");
        }
        LineOutcome::Nothing
    }
}
