//! A conversation: read a line, run the turn, print the answer, repeat.
//!
//! On a terminal and from a pipe alike; a failure is told and the
//! conversation goes on. Ctrl+C cancels the turn or what is being typed, at an
//! empty prompt it says how to leave, and the second one leaves.

use crate::agent;
use crate::cli::args::{Typed, usage};
use crate::cli::ask;
use crate::cli::attach::Attachments;
use crate::cli::resume::{self, Kept};
use crate::cli::setup::{Run, Start};
use crate::config::Needs;
use crate::conversation::Conversation;
use crate::error::{Error, Kind, Result};
use crate::event::{Event, Tally};
use crate::limits;
use crate::memory::notes::Diary;
use crate::message::{Message, User};
use crate::model::Model as _;
use crate::model::http::HttpModel;
use crate::session::Shared;
use crate::text;
use crate::tool::Usage;
use crate::tools::Tools;
use crate::world::input::{Input, ReadError};
use crate::world::output::Output;
use crate::world::patience::Stop;
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

use lines::{Lines, Said};

/// What a line asks for.
enum Line {
    Turn,
    Nothing,
    Leave,
}

/// Where a conversation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
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

impl State {
    /// Tells that it is reached, with `-v`.
    fn tell(self, output: &mut Output) {
        let name = match self {
            State::Initializing => "initializing",
            State::Ready => "ready",
            State::Processing => "processing",
            State::CheckingContext => "checking context",
            State::Terminating => "terminating",
            State::Closed => "closed",
        };
        output.detail(&format!("state: {name}"));
    }
}

/// The parts of a conversation that its turns share.
struct Chat<'c> {
    conversation: Conversation,
    /// What it is saved in.
    session: Option<Shared>,
    model: HttpModel,
    tools: &'c Tools<'c>,
    run: &'c Run,
    /// What the daily note will say of it.
    diary: Diary,
    /// What goes with the next question.
    attached: Attachments,
    /// The last failure of a turn, for the exit status of a piped conversation.
    failure: Option<Error>,
    /// Tokens of all turns, as reported.
    spent: Usage,
    is_terminal: bool,
}

/// Holds a conversation until its end.
pub fn run(typed: Typed, start: &Start, output: &mut Output) -> Result<u8> {
    let io_error = |error| Error::new(Kind::Io, format!("failed to read standard input: {error}"));
    let mut lines = Lines::new(Input::open().map_err(io_error)?, start.interrupt.clone());
    let mut run = Run::with_skills(typed, start, Needs::Endpoint, output)?;
    let first = ask::words(&run.typed.words)?;
    let model = ask::model(&run)?;
    output.name_model(model.name());
    if run.typed.dry_run && first.trim().is_empty() {
        return Err(usage("--dry-run shows a request, and there is no prompt"));
    }
    if !run.typed.attach.is_empty() && first.trim().is_empty() && !run.typed.stdin {
        return Err(ask::no_prompt());
    }
    let attached = Attachments::typed(&run)?;
    let kept = Kept::open(&mut run, model.name(), lines.is_terminal(), output)?;
    let (instructions, tools) = run.equip(output);
    let mut chat = Chat {
        session: kept.session.clone(),
        conversation: kept.conversation(&instructions),
        model,
        tools: &tools,
        run: &run,
        diary: Diary::default(),
        attached,
        failure: None,
        spent: Usage::default(),
        is_terminal: lines.is_terminal(),
    };
    if run.typed.dry_run {
        if matches!(chat.take_first(&first, output), Line::Turn) {
            ask::preview(&chat.conversation, &chat.model, &tools, output)?;
        }
        return Ok(chat.status());
    }
    State::Initializing.tell(output);
    chat.check_diary(output);
    let ended = chat.hold(&first, &mut lines, output);
    lines.close();
    State::Terminating.tell(output);
    chat.keep_diary(output);
    State::Closed.tell(output);
    ended.map(|()| chat.status())
}

impl Chat<'_> {
    /// The whole conversation.
    fn hold(&mut self, first: &str, lines: &mut Lines, output: &mut Output) -> Result<()> {
        if self.is_terminal {
            if self.run.typed.stdin {
                self.check_endpoint(output)?;
            }
            output.note(&format!("{}; /help lists the commands, Ctrl+D leaves", self.model.name()));
            self.recall(output);
        }
        output.converse();
        match self.take_first(first, output) {
            Line::Leave => return Ok(()),
            Line::Nothing => {}
            Line::Turn => {
                self.turn(output)?;
            }
        }
        if self.run.typed.stdin {
            self.read_lines(lines, output)?;
        }
        Ok(())
    }

    fn read_lines(&mut self, lines: &mut Lines, output: &mut Output) -> Result<()> {
        let mut warned = false;
        loop {
            State::Ready.tell(output);
            let said = match lines.next(&self.run.patience, output) {
                Err(ReadError::Stop(Stop::Interrupted(signal))) if self.goes_on(signal) => {
                    self.run.patience.interrupt.take();
                    output.end_prompt();
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
                Err(ReadError::Stop(stop)) => return Err(stop.into()),
                Err(ReadError::Io(error)) => {
                    return Err(Error::new(
                        Kind::Io,
                        format!("failed to read standard input: {error}"),
                    ));
                }
                Ok(said) => said,
            };
            warned = false;
            let line = match said {
                Said::Line(line) => self.take_line(&line, output),
                Said::Block(text) if text.trim().is_empty() => Line::Nothing,
                Said::Block(text) => self.question(&text, output),
                Said::TooLong => {
                    let most = limits::CHAT_LINE_BYTES;
                    let message = format!("a message is longer than {most} bytes: it is not sent");
                    self.refuse(message, false, output)
                }
                Said::Cut => {
                    let most = text::grouped(limits::TERMINAL_LINE_BYTES as u64);
                    let message = format!(
                        "the terminal cut the line at {most} bytes, so it is not sent: /attach FILE or a pipe takes it whole"
                    );
                    self.refuse(message, false, output)
                }
                Said::Unfinished => {
                    output.end_prompt();
                    output.note("typing ended in the middle of a message: it is not sent");
                    Line::Nothing
                }
                Said::End => {
                    if self.is_terminal {
                        output.end_prompt();
                    }
                    return Ok(());
                }
            };
            match line {
                Line::Leave => return Ok(()),
                Line::Nothing => {}
                Line::Turn => {
                    if !self.turn(output)? {
                        // Whoever interrupts does not want what was to come next.
                        lines.forget();
                    }
                }
            }
        }
    }

    /// The words of the command line, as if they were typed.
    fn take_first(&mut self, words: &str, output: &mut Output) -> Line {
        if words.starts_with('/') {
            return self.take_line(words, output);
        }
        match words.trim() {
            "" => Line::Nothing,
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

    pub fn question(&mut self, text: &str, output: &mut Output) -> Line {
        self.ask(User::from(text), output)
    }

    /// One turn; whether it was not interrupted. Only what ends the whole
    /// conversation is an error.
    fn turn(&mut self, output: &mut Output) -> Result<bool> {
        let mut is_uninterrupted = true;
        output.begin_turn();
        if let Some(Message::User(said)) = self.conversation.messages().last() {
            output.ask(&said.told());
        }
        let mut tally = Tally::default();
        let mut said = String::new();
        let answer = agent::turn(
            &mut self.conversation,
            &self.model,
            self.tools,
            &self.run.bounds(),
            &mut tally,
            &mut |event| {
                match event {
                    Event::Estimate { .. } => State::CheckingContext.tell(output),
                    Event::Request { .. } => State::Processing.tell(output),
                    Event::Text(text) => said.push_str(text),
                    Event::MessageEnd { .. } => said.clear(),
                    _ => {}
                }
                output.show(&event);
            },
        );
        self.spent += tally.usage;
        output.spend(tally);
        self.diary.note(self.conversation.messages());
        if let Err(error) = &answer {
            resume::settle(&mut self.conversation, error, &said);
        }
        resume::tell_fault(&mut self.conversation, output);
        match answer.and_then(|answer| ask::finish(&answer, self.conversation.answered(), output)) {
            Ok(()) => output.end_turn(None),
            Err(error) => match error.kind() {
                Kind::Interrupted(signal) if self.goes_on(signal) => {
                    self.run.patience.interrupt.take();
                    is_uninterrupted = false;
                    output.end_turn(Some(&error));
                    output.warn("interrupted; the conversation goes on (/retry asks again)");
                }
                Kind::Interrupted(_) => return Err(error),
                Kind::Limit if self.run.patience.check().is_err() => return Err(error),
                _ => {
                    output.end_turn(Some(&error));
                    let is_too_large = error.kind() == Kind::Context;
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
