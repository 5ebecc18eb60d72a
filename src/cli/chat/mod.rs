//! A conversation: read a line, run the turn, print the answer, repeat.
//!
//! On a terminal and from a pipe alike; a failure is told and the
//! conversation goes on. Ctrl+C cancels the turn or what is being typed, at an
//! empty prompt it says how to leave, and the second one leaves.

use crate::agent;
use crate::cli::args::{CommandLine, usage};
use crate::cli::attach::Attachments;
use crate::cli::one_shot;
use crate::cli::session_handle::{self, SessionHandle};
use crate::cli::setup::{Run, Startup};
use crate::config::ConfigNeeds;
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, RunStats};
use crate::limits;
use crate::memory::notes::ConversationNote;
use crate::message::{Message, UserMessage};
use crate::model::Model as _;
use crate::model::http::HttpModel;
use crate::session::SharedSession;
use crate::text;
use crate::tool::Usage;
use crate::tools::Tools;
use crate::world::cancellation::StopReason;
use crate::world::input::{StdinError, StdinReader};
use crate::world::output::Output;
use crate::world::signal::Signal;

mod attach;
mod commands;
mod context;
mod endpoint;
mod facts;
mod lines;
mod sessions;
mod skills;
mod turns;

use lines::{ChatInput, ChatMessage};

/// What a line asks for.
enum LineOutcome {
    Turn,
    Nothing,
    Leave,
}

/// Where a conversation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatState {
    /// The endpoint is looked at.
    Initializing,
    /// A line is waited for.
    Ready,
    /// A turn runs.
    Processing,
    /// In front of each request: whether it fits.
    CheckingContext,
    /// It ends.
    Terminating,
    /// It has ended.
    Closed,
}

impl ChatState {
    /// Tells that it is reached, with `-v`.
    fn tell(self, output: &mut Output) {
        let name = match self {
            ChatState::Initializing => "initializing",
            ChatState::Ready => "ready",
            ChatState::Processing => "processing",
            ChatState::CheckingContext => "checking context",
            ChatState::Terminating => "terminating",
            ChatState::Closed => "closed",
        };
        output.detail(&format!("state: {name}"));
    }
}

/// The parts of a conversation that its turns share.
struct Chat<'c> {
    conversation: Conversation,
    /// What it is saved in.
    session: Option<SharedSession>,
    model: HttpModel,
    tools: &'c Tools<'c>,
    run: &'c Run,
    /// What the daily note will say of it.
    diary: ConversationNote,
    /// What goes with the next question.
    attached: Attachments,
    /// The last failure of a turn, for the exit status of a piped conversation.
    failure: Option<Error>,
    /// Tokens of all turns, as reported.
    spent: Usage,
    is_terminal: bool,
}

/// Holds a conversation until its end.
pub(super) fn run(typed: CommandLine, start: &Startup, output: &mut Output) -> Result<u8> {
    let io_error =
        |error| Error::new(ErrorKind::Io, format!("failed to read standard input: {error}"));
    let mut lines = ChatInput::new(StdinReader::open().map_err(io_error)?, start.interrupt.clone());
    let mut run = Run::with_skills(typed, start, ConfigNeeds::Endpoint, output)?;
    let first = one_shot::words(&run.typed.words)?;
    let model = one_shot::model(&run)?;
    output.name_model(model.name());
    if run.typed.dry_run && first.trim().is_empty() {
        return Err(usage("--dry-run shows a request, and there is no prompt"));
    }
    if !run.typed.attach.is_empty() && first.trim().is_empty() && !run.typed.stdin {
        return Err(one_shot::no_prompt());
    }
    let attached = Attachments::typed(&run)?;
    let kept = SessionHandle::open(&mut run, model.name(), lines.is_terminal(), output)?;
    let (instructions, tools) = run.equip(output);
    let mut chat = Chat {
        session: kept.session.clone(),
        conversation: kept.conversation(&instructions),
        model,
        tools: &tools,
        run: &run,
        diary: ConversationNote::default(),
        attached,
        failure: None,
        spent: Usage::default(),
        is_terminal: lines.is_terminal(),
    };
    if run.typed.dry_run {
        if matches!(chat.take_first(&first, output), LineOutcome::Turn) {
            one_shot::preview(&chat.conversation, &chat.model, &tools, output)?;
        }
        return Ok(chat.status());
    }
    ChatState::Initializing.tell(output);
    chat.check_diary(output);
    let ended = chat.hold(&first, &mut lines, output);
    lines.close();
    ChatState::Terminating.tell(output);
    chat.keep_diary(output);
    ChatState::Closed.tell(output);
    ended.map(|()| chat.status())
}

impl Chat<'_> {
    /// The whole conversation.
    fn hold(&mut self, first: &str, lines: &mut ChatInput, output: &mut Output) -> Result<()> {
        if self.is_terminal {
            if self.run.typed.stdin {
                self.check_endpoint(output)?;
            }
            output.note(&format!("{}; /help lists the commands, Ctrl+D leaves", self.model.name()));
            self.recall(output);
        }
        output.converse();
        match self.take_first(first, output) {
            LineOutcome::Leave => return Ok(()),
            LineOutcome::Nothing => {}
            LineOutcome::Turn => {
                self.turn(output)?;
            }
        }
        if self.run.typed.stdin {
            self.read_lines(lines, output)?;
        }
        Ok(())
    }

    fn read_lines(&mut self, lines: &mut ChatInput, output: &mut Output) -> Result<()> {
        let mut warned = false;
        loop {
            ChatState::Ready.tell(output);
            let said = match lines.next(&self.run.cancellation, output) {
                Err(StdinError::Stop(StopReason::Interrupted(signal))) if self.goes_on(signal) => {
                    self.run.cancellation.interrupt.take();
                    Output::end_prompt();
                    if lines.forget() {
                        warned = false;
                        output.note("what was begun is forgotten");
                    } else if std::mem::replace(&mut warned, true) {
                        return Ok(());
                    } else {
                        output.note("press Ctrl+C again or Ctrl+D to leave");
                    }
                    continue;
                }
                Err(StdinError::Stop(stop)) => return Err(stop.into()),
                Err(StdinError::Io(error)) => {
                    return Err(Error::new(
                        ErrorKind::Io,
                        format!("failed to read standard input: {error}"),
                    ));
                }
                Ok(said) => said,
            };
            warned = false;
            let line = match said {
                ChatMessage::Line(line) => self.take_line(&line, output),
                ChatMessage::Block(text) if text.trim().is_empty() => LineOutcome::Nothing,
                ChatMessage::Block(text) => self.question(&text, output),
                ChatMessage::TooLong => {
                    let most = limits::CHAT_LINE_BYTES;
                    let message = format!("a message is longer than {most} bytes: it is not sent");
                    self.refuse(message, false, output)
                }
                ChatMessage::Cut => {
                    let most = text::grouped(limits::TERMINAL_LINE_BYTES as u64);
                    let message = format!(
                        "the terminal cut the line at {most} bytes, so it is not sent: /attach FILE or a pipe takes it whole"
                    );
                    self.refuse(message, false, output)
                }
                ChatMessage::Unfinished => {
                    Output::end_prompt();
                    output.note("typing ended in the middle of a message: it is not sent");
                    LineOutcome::Nothing
                }
                ChatMessage::End => {
                    if self.is_terminal {
                        Output::end_prompt();
                    }
                    return Ok(());
                }
            };
            match line {
                LineOutcome::Leave => return Ok(()),
                LineOutcome::Nothing => {}
                LineOutcome::Turn => {
                    if !self.turn(output)? {
                        // Whoever interrupts does not want what was to come next.
                        lines.forget();
                    }
                }
            }
        }
    }

    /// The words of the command line, as if they were typed.
    fn take_first(&mut self, words: &str, output: &mut Output) -> LineOutcome {
        if words.starts_with('/') {
            return self.take_line(words, output);
        }
        match words.trim() {
            "" => LineOutcome::Nothing,
            _ => self.question(words, output),
        }
    }

    fn status(&self) -> u8 {
        let failure = self.failure.as_ref().filter(|_| !self.is_terminal);
        failure.map_or(0, |error| error.kind().exit_status())
    }

    /// Ctrl+C on a terminal ends no conversation; every other signal does.
    fn goes_on(&self, signal: i32) -> bool {
        self.is_terminal && Signal(signal) == Signal::INT
    }

    pub(crate) fn question(&mut self, text: &str, output: &mut Output) -> LineOutcome {
        self.run_question(UserMessage::from(text), output)
    }

    /// One turn; whether it was not interrupted. Only what ends the whole
    /// conversation is an error.
    fn turn(&mut self, output: &mut Output) -> Result<bool> {
        let mut is_uninterrupted = true;
        output.begin_turn();
        if let Some(Message::User(said)) = self.conversation.messages().last() {
            output.begin_question(&said.told());
        }
        let mut stats = RunStats::default();
        let mut said = String::new();
        let answer = agent::run_turn(
            &mut self.conversation,
            &self.model,
            self.tools,
            &self.run.bounds(),
            &mut stats,
            &mut |event| {
                match event {
                    Event::Estimate { .. } => ChatState::CheckingContext.tell(output),
                    Event::Request { .. } => ChatState::Processing.tell(output),
                    Event::Text(text) => said.push_str(text),
                    Event::MessageEnd { .. } => said.clear(),
                    _ => {}
                }
                output.show(&event);
            },
        );
        self.spent += stats.usage;
        output.spend(stats);
        self.diary.note(self.conversation.messages());
        if let Err(error) = &answer {
            session_handle::settle(&mut self.conversation, error, &said);
        }
        session_handle::tell_fault(&mut self.conversation, output);
        match answer
            .and_then(|answer| one_shot::finish(&answer, self.conversation.answer_text(), output))
        {
            Ok(()) => output.end_turn(None),
            Err(error) => match error.kind() {
                ErrorKind::Interrupted(signal) if self.goes_on(signal) => {
                    self.run.cancellation.interrupt.take();
                    is_uninterrupted = false;
                    output.end_turn(Some(&error));
                    output.warn("interrupted; the conversation goes on (/retry asks again)");
                }
                ErrorKind::Interrupted(_) => return Err(error),
                ErrorKind::Limit if self.run.cancellation.check().is_err() => return Err(error),
                _ => {
                    output.end_turn(Some(&error));
                    let is_too_large = error.kind() == ErrorKind::Context;
                    if self.conversation.awaits_answer() && self.is_terminal && !is_too_large {
                        output.note("/retry sends it again");
                    }
                    self.failure = Some(error);
                }
            },
        }
        output.outcome().map(|()| is_uninterrupted)
    }
}
