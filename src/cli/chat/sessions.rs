//! `/session` and `/save`, and the recent turns of a continued conversation.

use std::cell::RefCell;
use std::rc::Rc;

use crate::cli::chat::{Chat, LineOutcome};
use crate::cli::session_handle::{new_header, sessions_folder};
use crate::cli::sessions::message_text;
use crate::conversation::ConversationState;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::message::Message;
use crate::model::Model as _;
use crate::session::{Sessions, SharedSession, check_name, format_age};
use crate::text::counted;
use crate::world::output::Output;

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
    pub(super) fn show_session(&self, output: &mut Output) -> Result<LineOutcome> {
        match self.saved_session() {
            Some(session) => {
                let session = session.borrow();
                output.note(&format!("session {}, {}", session.name(), session.path().display()));
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
        Ok(LineOutcome::Nothing)
    }

    /// `/save NAME`.
    pub(super) fn save(&mut self, name: &str, output: &mut Output) -> Result<LineOutcome> {
        self.save_as(name, output)?;
        output.note(&format!("saved as `{name}`: --session {name} continues it"));
        Ok(LineOutcome::Nothing)
    }

    fn save_as(&mut self, name: &str, output: &mut Output) -> Result<()> {
        check_name(name)?;
        let sessions = sessions_folder(&self.run.config)?;
        if let Some(session) = self.saved_session() {
            let mut session = session.borrow_mut();
            if session.name() == name {
                return Ok(());
            }
            if session.is_automatic() {
                sessions.rename(&mut session, name)?;
                output.set_session(Some(name));
                return Ok(());
            }
        }
        // A session that the user named stays; this conversation continues as a copy.
        if sessions.exists(name) {
            return Err(Sessions::name_taken_error(name));
        }
        let mut fresh = new_header(self.run, self.model.name());
        fresh.created = self.conversation.started();
        fresh.id = self.conversation.id().to_string();
        let opened = sessions.open(name, fresh)?;
        let Some(session) = opened.session else {
            return Err(Error::new(ErrorKind::Io, opened.warnings.join("; ")));
        };
        let session = Rc::new(RefCell::new(session));
        self.conversation.set_journal(Box::new(Rc::clone(&session)));
        self.conversation.record_all();
        self.session = Some(session);
        output.set_session(Some(name));
        match self.conversation.take_journal_error() {
            Some(error) => {
                output.set_session(None);
                Err(error)
            }
            None => Ok(()),
        }
    }

    /// The session, while the conversation is saved to it.
    fn saved_session(&self) -> Option<&SharedSession> {
        self.session.as_ref().filter(|_| self.conversation.has_journal())
    }
}
