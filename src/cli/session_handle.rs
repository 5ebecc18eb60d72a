//! The session of a run: selects it by the options, opens it and restores its conversation.

use std::borrow::Cow;
use std::time::SystemTime;

use crate::cli::options::{AskOptions, SessionChoice};
use crate::cli::run::Run;
use crate::config::Config;
use crate::ui::Output;
use agent::conversation::{Conversation, ConversationState, SavedConversation};
use agent::session::{RestoredSession, SavedAs, Session, SessionHeader, Sessions, format_age};
use base::error::{Error, ErrorKind, Result};
use base::message::Message;
use base::text::counted;
use chat_api::Model;
use chat_api::ToolCalling;

/// The conversation of a run and the session that saves it.
#[derive(Debug)]
pub(super) struct SessionHandle {
    session: Option<Session>,
    saved: SavedConversation,
    /// Whether the messages differ from the file.
    is_repaired: bool,
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
        model: &dyn Model,
        automatic: bool,
        output: &mut Output,
    ) -> Result<SessionHandle> {
        let is_named = ask.session.is_some();
        let id = run.conversation_name.clone();
        if !is_named && (!automatic || ask.dry_run) {
            return Ok(SessionHandle::new(None, None, id));
        }
        let header = new_header(run, model.name());
        let sessions = match sessions_folder(&run.config) {
            Err(error) if is_named => return Err(error),
            Err(error) => {
                output.note(&format!("the conversation is not saved: {}", error.message()));
                return Ok(SessionHandle::new(None, None, id));
            }
            Ok(sessions) => sessions,
        };
        let name = match &ask.session {
            Some(SessionChoice::Named(name)) => Some(name.clone()),
            Some(SessionChoice::Latest) => match sessions.latest(&header.folder)? {
                Some(found) => Some(found.name),
                None => return Err(nothing_to_continue(&header.folder)),
            },
            None => None,
        };
        let (session, restored) = match name {
            None => (Some(sessions.new_automatic(header)?), None),
            Some(name) if ask.dry_run && !sessions.exists(&name) => (None, None),
            Some(name) if ask.dry_run => (None, sessions.read(&name)?),
            Some(name) => {
                let opened = sessions.open(&name, header)?;
                for warning in &opened.warnings {
                    output.warn(warning);
                }
                report_continuation(&name, opened.restored.as_ref(), ask, output);
                (opened.session, opened.restored)
            }
        };
        if let Some(SavedAs { name, .. }) = session.as_ref().map(Session::saved_as) {
            output.set_session(Some(name));
            run.conversation_name.clone_from(name);
        }
        if let Some(restored) = &restored {
            continue_constrained(restored, model);
        }
        Ok(SessionHandle::new(session, restored, id))
    }

    fn new(
        session: Option<Session>,
        restored: Option<RestoredSession>,
        id: String,
    ) -> SessionHandle {
        let is_repaired = restored.as_ref().is_some_and(|restored| restored.is_repaired);
        let saved = restored.map_or_else(|| SavedConversation::new(id), |restored| restored.saved);
        SessionHandle { session, saved, is_repaired }
    }

    /// Where the conversation is saved; `None`: it is not.
    pub(super) fn saved_as(&self) -> Option<SavedAs> {
        self.session.as_ref().map(|session| session.saved_as().clone())
    }

    /// The first question of the saved conversation.
    pub(super) fn first_question(&self) -> Option<Cow<'_, str>> {
        self.saved.first_question()
    }

    /// The conversation with this system prompt. Calls that a killed run left open are closed.
    pub(super) fn into_conversation(self, system_prompt: &str) -> Conversation {
        let mut conversation = Conversation::from_saved(system_prompt, self.saved);
        if let Some(session) = self.session {
            conversation.set_journal(Box::new(session));
        }
        if self.is_repaired {
            conversation.record_all();
        }
        conversation.abandon_calls("interrupted: the program was ended");
        if conversation.state() != ConversationState::Failed {
            conversation.close_turn("");
        }
        conversation
    }
}

/// Constrains replies if those of this model were constrained in the saved conversation.
fn continue_constrained(restored: &RestoredSession, model: &dyn Model) {
    let is_constrained =
        |message: &Message| matches!(message, Message::Assistant(it) if it.is_constrained);
    if restored.header.model == model.name()
        && model.tool_calling() == ToolCalling::Auto
        && restored.saved.messages.iter().any(is_constrained)
    {
        model.constrain(true);
    }
}

/// Reports which session is continued and how old it is.
fn report_continuation(
    name: &str,
    restored: Option<&RestoredSession>,
    ask: &AskOptions,
    output: &mut Output,
) {
    let Some(RestoredSession { saved, .. }) = restored else {
        return;
    };
    let age = format_age(saved.last_activity);
    let messages = counted(saved.messages.len(), "message");
    let message = format!("continuing session `{name}`, {age} old, {messages}");
    // The user who named the session knows which one it is.
    match ask.session {
        Some(SessionChoice::Named(_)) => output.note(&message),
        Some(SessionChoice::Latest) | None => output.note_always(&message),
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
