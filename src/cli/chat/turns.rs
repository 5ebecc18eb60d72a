//! `/clear`, `/retry`, `/undo` and `/tools`.

use crate::cli::chat::{Chat, LineOutcome, attach};
use crate::ui::Output;
use agent::conversation::ConversationState;
use base::limits;
use base::text;

impl Chat<'_> {
    /// Removes all messages and attachments.
    pub(super) fn clear(&mut self, output: &mut Output) -> LineOutcome {
        self.conversation.clear();
        self.renew_system_prompt(output);
        self.is_given_next = !self.given.is_empty();
        let attached = std::mem::take(&mut self.attached);
        let dropped = match attached.lines().collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => names,
            names => format!("; removed attachments: {names}"),
        };
        output.note(&format!("the conversation is cleared{dropped}"));
        LineOutcome::Nothing
    }

    /// Replaces the system prompt: catalogue, facts and date may have changed. Before the first
    /// question it is replaced again with it.
    pub(super) fn renew_system_prompt(&mut self, output: &mut Output) {
        let catalogue = self.run.skills.catalogue();
        let question = self.conversation.first_question();
        self.is_question_first = question.is_none();
        let question = question.unwrap_or_default().into_owned();
        let system_prompt =
            self.run.system_prompt(&catalogue, self.tools, &question, &self.model, output);
        self.conversation.set_instructions(&system_prompt);
    }

    /// Before the first question is sent: describes the skills that fit it.
    pub(super) fn choose_described_skills(&mut self, output: &mut Output) {
        if self.is_question_first {
            self.renew_system_prompt(output);
        }
    }

    /// Repeats the request that failed or the turn that was interrupted.
    pub(super) fn retry(&mut self, output: &mut Output) -> LineOutcome {
        match self.conversation.state() {
            ConversationState::Empty => output.note("there is nothing to repeat"),
            ConversationState::Answered => output.note(
                "there is nothing to repeat: the last question was answered (/undo removes both)",
            ),
            ConversationState::Unanswered
            | ConversationState::Failed
            | ConversationState::OpenCalls
            | ConversationState::Called
            | ConversationState::Interrupted => {
                self.conversation.reopen_turn();
                return LineOutcome::Turn;
            }
        }
        LineOutcome::Nothing
    }

    /// Removes the last turn.
    pub(super) fn undo(&mut self, output: &mut Output) -> LineOutcome {
        let is_answered = !self.conversation.state().awaits_answer();
        match self.conversation.undo() {
            Some(message) => {
                self.is_given_next |= self.has_given(&message);
                let question = text::one_line(&message.typed_text(), limits::SUMMARY_CHARS);
                let what = if is_answered { "question and answer" } else { "question" };
                output.note(&format!("removed {what}: {question}"));
                let names = attach::attachment_names(&message);
                if !names.is_empty() {
                    output.note(&format!("removed attachments: {names}"));
                }
            }
            None if self.conversation.summarized() > 0 => {
                output.note("there is nothing to remove: the earlier turns are summarized");
            }
            None => output.note("there is nothing to remove"),
        }
        LineOutcome::Nothing
    }

    /// Prints one line per tool.
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
