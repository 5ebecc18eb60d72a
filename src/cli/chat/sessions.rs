//! The conversation's session: told of, named, and recalled.

use std::cell::RefCell;
use std::rc::Rc;

use crate::cli::chat::{Chat, LineOutcome};
use crate::cli::session_handle::{header, sessions};
use crate::cli::sessions::shown;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::message::Message;
use crate::model::Model as _;
use crate::session::{Sessions, SharedSession, age, check_name};
use crate::text::counted;
use crate::world::output::Output;

impl Chat<'_> {
    /// The last turns of a conversation that goes on, for a person to see where
    /// it was left.
    pub(super) fn recall(&self, output: &mut Output) {
        let said = self.conversation.said();
        let questions = said.iter().enumerate();
        let questions = questions.filter(|(_, message)| matches!(message, Message::User(_)));
        let from = questions.rev().nth(limits::RECALLED_TURNS - 1);
        let from = from.map_or(0, |(place, _)| place);
        if from > 0 {
            output.recall(&format!("… {} before", counted(from, "message")));
        }
        for message in &said[from..] {
            let text = shown(message);
            for line in text.lines().take(limits::RECALLED_LINES) {
                output.recall(line);
            }
            let more = text.lines().count().saturating_sub(limits::RECALLED_LINES);
            if more > 0 {
                output.recall(&format!("… {}", counted(more, "more line")));
            }
        }
        if self.conversation.lacks_answer() {
            output.note("the last question has no answer (/retry asks it again)");
        }
    }

    /// `/session`.
    pub(super) fn tell_session(&self, output: &mut Output) {
        match self.kept() {
            Some(session) => {
                let session = session.borrow();
                output.note(&format!("session {}, {}", session.name(), session.path().display()));
            }
            None => output.note("the conversation is not saved (/save NAME does)"),
        }
        let conversation = &self.conversation;
        output.note(&format!("id {}", conversation.id()));
        output.note(&format!(
            "{}; begun {} ago, the last change {} ago",
            counted(conversation.said().len(), "message"),
            age(conversation.started()),
            age(conversation.last_activity()),
        ));
    }

    /// `/save NAME`.
    pub(super) fn save(&mut self, name: &str, output: &mut Output) -> LineOutcome {
        match self.save_as(name, output) {
            Ok(()) => output.note(&format!("saved as `{name}`: --session {name} goes on with it")),
            Err(error) if self.is_terminal => output.error(&error),
            // For a script it is a turn that failed.
            Err(error) => self.fail(error, output),
        }
        LineOutcome::Nothing
    }

    fn save_as(&mut self, name: &str, output: &mut Output) -> Result<()> {
        check_name(name)?;
        let sessions = sessions(&self.run.config)?;
        if let Some(session) = self.kept() {
            let mut session = session.borrow_mut();
            if session.name() == name {
                return Ok(());
            }
            if session.is_automatic() {
                sessions.rename(&mut session, name)?;
                output.name_session(Some(name));
                return Ok(());
            }
        }
        // What a person has named stays, and this goes on as a copy.
        if sessions.has(name) {
            return Err(Sessions::taken(name));
        }
        let mut fresh = header(self.run, self.model.name());
        fresh.created = self.conversation.started();
        fresh.id = self.conversation.id().to_string();
        let opened = sessions.open(name, fresh)?;
        let Some(session) = opened.session else {
            return Err(Error::new(ErrorKind::Io, opened.warnings.join("; ")));
        };
        let session = Rc::new(RefCell::new(session));
        self.conversation.keep_in(Box::new(Rc::clone(&session)));
        self.conversation.note_all();
        self.session = Some(session);
        output.name_session(Some(name));
        match self.conversation.take_fault() {
            Some(fault) => {
                output.name_session(None);
                Err(fault)
            }
            None => Ok(()),
        }
    }

    /// The session, as long as it is written.
    fn kept(&self) -> Option<&SharedSession> {
        self.session.as_ref().filter(|_| self.conversation.is_kept())
    }
}
