//! The session of a run: selects it by the options, opens it and restores its conversation.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::SystemTime;

use crate::cli::options::{AskOptions, SessionChoice};
use crate::cli::run::Run;
use crate::config::Config;
use crate::conversation::{Conversation, ConversationState, SavedConversation};
use crate::error::{Error, ErrorKind, Result};
use crate::session::{
    RestoredSession, Session, SessionHeader, Sessions, SharedSession, format_age,
};
use crate::text::counted;
use crate::world::output::Output;

/// The session that saves a conversation, and the messages that it continues.
#[derive(Debug, Default)]
pub(super) struct SessionHandle {
    /// The session; `None`: the conversation is not saved.
    pub session: Option<SharedSession>,
    restored: Option<RestoredSession>,
    last_activity: Option<SystemTime>,
}

/// The folder of sessions.
pub(super) fn sessions_folder(config: &Config) -> Result<Sessions> {
    match &config.storage.sessions {
        Some(folder) => Ok(Sessions::new(folder, &config.secrets)),
        None => Err(Error::new(
            ErrorKind::Config,
            "failed to find the sessions folder: there is no home folder",
        )
        .with_hint("set SESSIONS_PATH to a folder for sessions")),
    }
}

/// Reports once that a conversation can no longer be saved.
pub(super) fn report_save_errors(conversation: &mut Conversation, output: &mut Output) {
    if let Some(error) = conversation.take_journal_error() {
        output.warn(&error.to_string());
    }
    if !conversation.has_journal() {
        output.set_session(None);
    }
}

/// Settles a turn that ended with this error: an interrupted turn stays, with the part of the
/// answer that was received; a failed question is replaced by the next one.
pub(super) fn settle_failed_turn(
    conversation: &mut Conversation,
    error: &Error,
    partial_answer: &str,
) {
    match error.kind() {
        ErrorKind::Interrupted(_) => conversation.close_turn(partial_answer),
        // The time or step limit: the turn stays open.
        ErrorKind::Limit => {}
        _ => conversation.record_failed_request(),
    }
}

impl SessionHandle {
    /// Opens the session that the options name. An `automatic` one gets a generated name.
    /// `--dry-run` only reads.
    pub(super) fn open(
        run: &mut Run,
        ask: &AskOptions,
        model: &str,
        automatic: bool,
        output: &mut Output,
    ) -> Result<SessionHandle> {
        let is_named = ask.session.is_some();
        if !is_named && (!automatic || ask.dry_run) {
            return Ok(SessionHandle::default());
        }
        let header = new_header(run, model);
        let sessions = match sessions_folder(&run.config) {
            Err(error) if is_named => return Err(error),
            Err(error) => {
                output.note(&format!("the conversation is not saved: {}", error.message()));
                return Ok(SessionHandle::default());
            }
            Ok(sessions) => sessions,
        };
        let (name, last_activity) = match &ask.session {
            Some(SessionChoice::Named(name)) => {
                let all = sessions.list().unwrap_or_default();
                let found = all.iter().find(|found| found.name == *name);
                (name.clone(), found.map(|found| found.modified))
            }
            Some(SessionChoice::Latest) => match sessions.latest(&header.folder)? {
                Some(found) => (found.name, Some(found.modified)),
                None => return Err(nothing_to_continue(&header.folder)),
            },
            None => {
                let handle = sessions.new_automatic(header)?;
                return Ok(SessionHandle::from_session(handle, run, output));
            }
        };
        if ask.dry_run {
            let restored = if sessions.exists(&name) { sessions.read(&name)? } else { None };
            return Ok(SessionHandle { restored, last_activity, session: None });
        }
        let opened = sessions.open(&name, header)?;
        for warning in &opened.warnings {
            output.warn(warning);
        }
        if let Some(restored) = &opened.restored {
            let age = last_activity
                .map_or_else(String::new, |time| format!(", {} old", format_age(time)));
            let messages = counted(restored.messages.len(), "message");
            let message = format!("continuing session `{name}`{age}, {messages}");
            // The user who named the session knows which one it is.
            match ask.session {
                Some(SessionChoice::Named(_)) => output.note(&message),
                _ => output.note_always(&message),
            }
        }
        let handle = match opened.session {
            Some(session) => SessionHandle::from_session(session, run, output),
            None => SessionHandle::default(),
        };
        Ok(SessionHandle { restored: opened.restored, last_activity, ..handle })
    }

    fn from_session(session: Session, run: &mut Run, output: &mut Output) -> SessionHandle {
        output.set_session(Some(session.name()));
        run.conversation_name = session.name().to_string();
        SessionHandle { session: Some(Rc::new(RefCell::new(session))), ..SessionHandle::default() }
    }

    /// The conversation with this system prompt. Calls that a killed run left open are closed.
    pub(super) fn into_conversation(self, system_prompt: &str) -> Conversation {
        let header = match (&self.restored, &self.session) {
            (Some(restored), _) => Some(restored.header.clone()),
            (None, Some(session)) => Some(session.borrow().header().clone()),
            (None, None) => None,
        };
        let is_repaired = self.restored.as_ref().is_some_and(|past| past.is_repaired);
        let has_failed = self.restored.as_ref().is_some_and(|past| past.has_failed);
        let messages = self.restored.map(|past| past.messages);
        let mut conversation = match header {
            Some(header) => {
                let past = SavedConversation {
                    id: header.id,
                    messages: messages.unwrap_or_default(),
                    has_failed,
                    started: header.created,
                    last_activity: self.last_activity.unwrap_or(header.created),
                };
                Conversation::from_saved(system_prompt, past)
            }
            None => Conversation::new(system_prompt),
        };
        if let Some(session) = self.session {
            conversation.set_journal(Box::new(session));
        }
        if is_repaired {
            conversation.record_all();
        }
        conversation.abandon_calls("interrupted: the program was ended");
        if conversation.state() != ConversationState::Failed {
            conversation.close_turn("");
        }
        conversation
    }
}

/// The header of a session that starts now.
pub(super) fn new_header(run: &Run, model: &str) -> SessionHeader {
    SessionHeader {
        id: run.conversation_name.clone(),
        folder: run.folder.to_string_lossy().into_owned(),
        model: model.to_string(),
        created: SystemTime::now(),
        automatic: None,
    }
}

fn nothing_to_continue(folder: &str) -> Error {
    let message = format!("failed to continue: there is no saved conversation of `{folder}`");
    Error::new(ErrorKind::Io, message).with_hint(
        "`skills-runner sessions list` lists those of all folders; --session NAME starts one",
    )
}
