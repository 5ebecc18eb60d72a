//! A conversation: read a line, run the turn, print the answer, repeat.
//!
//! On a terminal and from a pipe alike; a failure is told and the
//! conversation goes on. Ctrl+C cancels the turn, at an empty prompt it says
//! how to leave, and the second one leaves.

use crate::agent;
use crate::cli::args::{Typed, usage};
use crate::cli::ask;
use crate::cli::setup::{Run, Start};
use crate::config::Needs;
use crate::conversation::Conversation;
use crate::error::{Error, Kind, Result};
use crate::event::Tally;
use crate::limits;
use crate::message::Message;
use crate::model::Model;
use crate::tools::Tools;
use crate::world::input::{Input, ReadError, Source};
use crate::world::output::Output;
use crate::world::patience::Stop;
use crate::world::signal::Signal;

mod commands;
mod skills;

const PROMPT: &str = "> ";

/// What a line asks for.
enum Line {
    Turn,
    Nothing,
    Leave,
}

/// The parts of a conversation that its turns share.
struct Chat<'c> {
    conversation: Conversation,
    model: &'c dyn Model,
    tools: &'c Tools<'c>,
    run: &'c Run,
    /// The last failure of a turn, for the exit status of a piped conversation.
    failure: Option<Error>,
    is_terminal: bool,
}

/// Holds a conversation until its end.
pub fn run(typed: Typed, start: &Start, output: &mut Output) -> Result<u8> {
    let io_error = |error| Error::new(Kind::Io, format!("failed to read standard input: {error}"));
    let mut input = Input::open().map_err(io_error)?;
    let run = Run::new(typed, start, Needs::Endpoint, output)?;
    let first = ask::words(&run.typed.words)?;
    let model = ask::model(&run)?;
    output.name_model(model.name());
    if run.typed.dry_run && first.trim().is_empty() {
        return Err(usage("--dry-run shows a request, and there is no prompt"));
    }
    let (instructions, tools) = run.equip(output)?;
    let mut chat = Chat {
        conversation: Conversation::new(&instructions),
        model: &model,
        tools: &tools,
        run: &run,
        failure: None,
        is_terminal: input.source() == Source::Terminal,
    };
    if run.typed.dry_run {
        if matches!(chat.take_first(&first, output), Line::Turn) {
            ask::preview(&chat.conversation, &model, &tools, output)?;
        }
        return Ok(chat.status());
    }
    if chat.is_terminal {
        output.note(&format!(
            "{}; /help lists the commands, Ctrl+D leaves",
            model.name()
        ));
    }
    match chat.take_first(&first, output) {
        Line::Leave => return Ok(0),
        Line::Nothing => {}
        Line::Turn => chat.turn(output)?,
    }
    if run.typed.stdin {
        chat.read_lines(&mut input, output)?;
    }
    Ok(chat.status())
}

impl Chat<'_> {
    fn read_lines(&mut self, input: &mut Input, output: &mut Output) -> Result<()> {
        let mut warned = false;
        loop {
            if self.is_terminal {
                output.prompt(PROMPT);
            }
            let line = match input.read_line(limits::CHAT_LINE_BYTES, &self.run.patience) {
                Ok(Some(line)) => line,
                Ok(None) => {
                    if self.is_terminal {
                        output.end_prompt();
                    }
                    return Ok(());
                }
                Err(ReadError::Stop(Stop::Interrupted(signal))) if self.goes_on(signal) => {
                    self.run.patience.interrupt.take();
                    input.discard_line();
                    output.end_prompt();
                    if std::mem::replace(&mut warned, true) {
                        return Ok(());
                    }
                    output.note("press Ctrl+C again or Ctrl+D to leave");
                    continue;
                }
                Err(ReadError::Stop(stop)) => return Err(stop.into()),
                Err(ReadError::Io(error)) => {
                    return Err(Error::new(
                        Kind::Io,
                        format!("failed to read standard input: {error}"),
                    ));
                }
            };
            warned = false;
            if self.is_terminal && line.len() >= limits::TERMINAL_LINE_BYTES {
                output.warn(
                    "the terminal takes no longer line: its end is missing (use a file or a pipe)",
                );
            }
            match self.take_line(&line, output) {
                Line::Leave => return Ok(()),
                Line::Nothing => {}
                Line::Turn => self.turn(output)?,
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
            _ => self.question(words),
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

    pub fn question(&mut self, text: &str) -> Line {
        self.conversation.ask(text);
        Line::Turn
    }

    /// One turn. Only what ends the whole conversation is an error.
    fn turn(&mut self, output: &mut Output) -> Result<()> {
        output.begin_turn();
        if let Some(Message::User(said)) = self.conversation.messages().last() {
            output.ask(&said.text);
        }
        let mut tally = Tally::default();
        let answer = agent::turn(
            &mut self.conversation,
            self.model,
            self.tools,
            &self.run.bounds(),
            &mut tally,
            &mut |event| output.show(&event),
        );
        output.spend(tally);
        match answer.and_then(|answer| ask::finish(&answer, output)) {
            Ok(()) => output.end_turn(None),
            Err(error) => match error.kind() {
                Kind::Interrupted(signal) if self.goes_on(signal) => {
                    self.run.patience.interrupt.take();
                    self.conversation.close();
                    output.end_turn(Some(&error));
                    output.warn("interrupted; the conversation goes on");
                }
                Kind::Interrupted(_) => return Err(error),
                Kind::Limit if self.run.patience.check().is_err() => return Err(error),
                _ => {
                    output.end_turn(Some(&error));
                    if self.conversation.awaits_answer() && self.is_terminal {
                        output.note("/retry sends it again");
                    }
                    self.failure = Some(error);
                }
            },
        }
        output.outcome()
    }
}
