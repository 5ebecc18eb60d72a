//! `/session` and `/save`, and the recent turns of a continued conversation.

use crate::cli::chat::{Chat, LineOutcome};
use crate::cli::session_handle::{new_header, sessions_folder};
use crate::cli::sessions::message_text;
use crate::ui::Output;
use agent::conversation::ConversationState;
use agent::session::{SavedAs, SessionHeader, Sessions, check_name, format_age};
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::message::Message;
use base::text::counted;
use chat_api::Model as _;

impl Chat<'_> {
    /// Prints the last turns of a continued conversation.
    pub(super) fn show_recent_turns(&self, output: &mut Output) {
        let messages = self.conversation.messages_without_system();
        let questions = messages.iter().enumerate();
        let questions = questions.filter(|(_, message)| matches!(message, Message::User(_)));
        let from = questions.rev().nth(limits::RECALLED_TURNS - 1);
        let from = from.map_or(0, |(index, _)| index);
        if from > 0 {
            output.show_history_line(&format!("… {} before these", counted(from, "message")));
        }
        for message in &messages[from..] {
            let text = message_text(message);
            for line in text.lines().take(limits::RECALLED_LINES) {
                output.show_history_line(line);
            }
            let more = text.lines().count().saturating_sub(limits::RECALLED_LINES);
            if more > 0 {
                output.show_history_line(&format!("… {}", counted(more, "more line")));
            }
        }
        let state = self.conversation.state();
        if state.awaits_answer() || state == ConversationState::Interrupted {
            output.note("the last question has no answer (/retry sends it again)");
        }
    }

    /// `/session`.
    pub(super) fn show_session(&self, output: &mut Output) -> LineOutcome {
        match self.saved_session() {
            Some(SavedAs { name, path, .. }) => {
                output.note(&format!("session {name}, {}", path.display()));
            }
            None => output.note("the conversation is not saved (/save NAME saves it)"),
        }
        let conversation = &self.conversation;
        output.note(&format!("id {}", conversation.id()));
        output.note(&format!(
            "{}; started {} ago, last changed {} ago",
            counted(conversation.messages_without_system().len(), "message"),
            format_age(conversation.started()),
            format_age(conversation.last_activity()),
        ));
        LineOutcome::Nothing
    }

    /// Shows how a saved conversation on a terminal is continued.
    pub(super) fn show_how_to_go_on(&self, output: &mut Output) {
        let has_turns = !self.conversation.messages_without_system().is_empty();
        if let Some(SavedAs { name, is_automatic, .. }) =
            self.saved_session().filter(|_| self.is_terminal && has_turns)
        {
            let option = if *is_automatic { "-c" } else { &format!("--session {name}") };
            output.note(&format!("saved; to go on: skills-runner {option}"));
        }
    }

    /// `/save NAME`.
    pub(super) fn save(&mut self, name: &str, output: &mut Output) -> Result<LineOutcome> {
        self.save_as(name, output)?;
        output.note(&format!("saved as `{name}`: --session {name} continues it"));
        Ok(LineOutcome::Nothing)
    }

    fn save_as(&mut self, name: &str, output: &mut Output) -> Result<()> {
        check_name(name)?;
        let current = self.saved_session().cloned();
        if current.as_ref().is_some_and(|current| current.name == name) {
            return Ok(());
        }
        let sessions = sessions_folder(&self.run.config)?;
        if sessions.exists(name) {
            return Err(Sessions::name_taken_error(name));
        }
        let header = SessionHeader {
            id: self.conversation.id().to_string(),
            created: self.conversation.started(),
            ..new_header(self.run, self.model.name())
        };
        let opened = sessions.open(name, header)?;
        let Some(session) = opened.session else {
            return Err(Error::new(ErrorKind::Io, opened.warnings.join("; ")));
        };
        self.saved_as = Some(session.saved_as().clone());
        output.set_session(Some(name));
        self.conversation.set_journal(Box::new(session));
        self.conversation.record_all();
        if let Some(error) = self.conversation.take_journal_error() {
            output.set_session(None);
            return Err(error);
        }
        // A session that the user named stays; one with a generated name is replaced by this
        // one. It has no file before the first message.
        if let Some(old) = current.filter(|old| old.is_automatic) {
            let _ = sessions.delete(&old.name);
        }
        Ok(())
    }

    /// Where the conversation is saved, as long as it is.
    fn saved_session(&self) -> Option<&SavedAs> {
        self.saved_as.as_ref().filter(|_| self.conversation.has_journal())
    }
}
