//! The session of a run: found, opened, told of, and handed to its conversation.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::SystemTime;

use crate::cli::args::{CommandLine, usage};
use crate::cli::setup::Run;
use crate::cli::table::Command;
use crate::config::Config;
use crate::context::plan;
use crate::conversation::{Conversation, SavedConversation};
use crate::error::{Error, ErrorKind, Result};
use crate::session::{RestoredSession, Session, SessionHeader, Sessions, SharedSession, age};
use crate::text::counted;
use crate::world::output::Output;

/// What a conversation is kept in, and what it goes on from.
#[derive(Debug, Default)]
pub(super) struct SessionHandle {
    /// What keeps it; `None`: nothing does.
    pub session: Option<SharedSession>,
    restored: Option<RestoredSession>,
    last_activity: Option<SystemTime>,
}

/// Wrong usage, where the options of a session do not belong.
pub(super) fn check(typed: &CommandLine) -> Result<()> {
    let asks = matches!(typed.command, Command::Ask | Command::Chat);
    for (name, is_typed) in [("--session", typed.session.is_some()), ("--continue", typed.goes_on)]
    {
        if is_typed && !asks {
            return Err(usage(format!("{name} belongs to a question or to chat")));
        }
    }
    if typed.session.is_some() && typed.goes_on {
        return Err(usage("--session and --continue name two conversations")
            .with_hint("--session NAME alone goes on with that one, too"));
    }
    Ok(())
}

/// The folder of sessions.
pub(super) fn sessions(config: &Config) -> Result<Sessions> {
    match &config.storage.sessions {
        Some(folder) => Ok(Sessions::new(folder, &config.secrets)),
        None => Err(Error::new(
            ErrorKind::Config,
            "failed to find the sessions: there is no home to keep them in",
        )
        .with_hint("SESSIONS_PATH names a folder for them")),
    }
}

/// Tells once that a conversation is not saved any more.
pub(super) fn tell_fault(conversation: &mut Conversation, output: &mut Output) {
    if let Some(warning) = conversation.take_warning() {
        output.warn(&warning);
    }
    if let Some(fault) = conversation.take_fault() {
        output.warn(&fault.to_string());
    }
    if !conversation.is_kept() {
        output.name_session(None);
    }
}

/// Leaves a turn that this error has ended as the next run is to find it: what was
/// interrupted stays, with what was `said` of an answer; what failed is replaced by
/// the next question.
pub(super) fn settle(conversation: &mut Conversation, error: &Error, said: &str) {
    match error.kind() {
        ErrorKind::Interrupted(_) => conversation.close(said),
        // The time was over, or the steps were.
        ErrorKind::Limit => {}
        _ => conversation.note_failure(),
    }
}

impl SessionHandle {
    /// Opens what the options name. A conversation that is `automatic` saves
    /// itself under a name of its own. `--dry-run` only reads.
    pub(super) fn open(
        run: &mut Run,
        model: &str,
        automatic: bool,
        output: &mut Output,
    ) -> Result<SessionHandle> {
        let is_named = run.typed.session.is_some() || run.typed.goes_on;
        if !is_named && (!automatic || run.typed.dry_run) {
            return Ok(SessionHandle::default());
        }
        let header = header(run, model);
        let sessions = match sessions(&run.config) {
            Err(error) if is_named => return Err(error),
            Err(error) => {
                output.note(&format!("the conversation is not saved: {}", error.message()));
                return Ok(SessionHandle::default());
            }
            Ok(sessions) => sessions,
        };
        let (name, last_activity) = match &run.typed.session {
            Some(name) => {
                let all = sessions.all().unwrap_or_default();
                let found = all.iter().find(|found| found.name == *name);
                (name.clone(), found.map(|found| found.changed))
            }
            None if run.typed.goes_on => match sessions.latest(&header.folder)? {
                Some(found) => (found.name, Some(found.changed)),
                None => return Err(nothing_to_continue(&header.folder)),
            },
            None => {
                let kept = sessions.automatic(header)?;
                return Ok(SessionHandle::of(kept, run, output));
            }
        };
        if run.typed.dry_run {
            let restored = if sessions.has(&name) { sessions.read(&name)? } else { None };
            return Ok(SessionHandle { restored, last_activity, session: None });
        }
        let opened = sessions.open(&name, header)?;
        for warning in &opened.warnings {
            output.warn(warning);
        }
        if let Some(restored) = &opened.restored {
            let age = last_activity.map_or_else(String::new, |time| format!(", {} old", age(time)));
            let messages = counted(restored.messages.len(), "message");
            let told = format!("going on with session `{name}`{age}, {messages}");
            // Nothing new to who named it.
            match run.typed.session {
                Some(_) => output.note(&told),
                None => output.say(&told),
            }
        }
        let kept = match opened.session {
            Some(session) => SessionHandle::of(session, run, output),
            None => SessionHandle::default(),
        };
        Ok(SessionHandle { restored: opened.restored, last_activity, ..kept })
    }

    fn of(session: Session, run: &mut Run, output: &mut Output) -> SessionHandle {
        output.name_session(Some(session.name()));
        run.source = session.name().to_string();
        SessionHandle { session: Some(Rc::new(RefCell::new(session))), ..SessionHandle::default() }
    }

    /// The conversation, under these instructions. What a killed run has left
    /// open in it is closed.
    pub(super) fn conversation(self, instructions: &str) -> Conversation {
        let header = match (&self.restored, &self.session) {
            (Some(restored), _) => Some(restored.header.clone()),
            (None, Some(session)) => Some(session.borrow().header().clone()),
            (None, None) => None,
        };
        let is_mended = self.restored.as_ref().is_some_and(|past| past.is_mended);
        let has_failed = self.restored.as_ref().is_some_and(|past| past.has_failed);
        let messages = self.restored.map(|past| past.messages);
        let mut conversation = match header {
            Some(header) => {
                let past = SavedConversation {
                    id: header.id,
                    summarized: plan::summarized(messages.as_deref().unwrap_or_default()),
                    messages: messages.unwrap_or_default(),
                    started: header.created,
                    last_activity: self.last_activity.unwrap_or(header.created),
                };
                Conversation::resumed(instructions, past)
            }
            None => Conversation::new(instructions),
        };
        if let Some(session) = self.session {
            conversation.keep_in(Box::new(session));
        }
        if is_mended {
            conversation.note_all();
        }
        conversation.abandon_calls("interrupted: the program was ended");
        if !has_failed {
            conversation.close("");
        }
        conversation
    }
}

/// What a session that begins now says of itself.
pub(super) fn header(run: &Run, model: &str) -> SessionHeader {
    SessionHeader {
        id: run.source.clone(),
        folder: run.folder.to_string_lossy().into_owned(),
        model: model.to_string(),
        created: SystemTime::now(),
        automatic: None,
    }
}

fn nothing_to_continue(folder: &str) -> Error {
    let message = format!("failed to continue: no saved conversation was begun in `{folder}`");
    Error::new(ErrorKind::Io, message).with_hint(
        "`skills-runner sessions list` gives those of all folders; --session NAME begins one",
    )
}
