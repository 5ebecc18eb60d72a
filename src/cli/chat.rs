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
use crate::model::Model;
use crate::skills::Summary;
use crate::text;
use crate::tools::Tools;
use crate::world::input::{Input, ReadError, Source};
use crate::world::output::Output;
use crate::world::patience::Stop;
use crate::world::signal::Signal;

/// A row of the table of commands: its name and what it does.
const COMMANDS: &[(&str, &str)] = &[
    ("/help", "this list"),
    ("/clear", "forget the conversation"),
    ("/retry", "send the last request again"),
    ("/skills", "the skills"),
    (
        "/SKILL [arguments]",
        "follow a skill, as in /pdf report.pdf",
    ),
    ("/exit", "leave (also Ctrl+D)"),
];

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
    if run.typed.dry_run {
        ask::preview(&first, &instructions, &model, &tools, output)?;
        return Ok(0);
    }
    let mut chat = Chat {
        conversation: Conversation::new(&instructions),
        model: &model,
        tools: &tools,
        run: &run,
        failure: None,
        is_terminal: input.source() == Source::Terminal,
    };
    if chat.is_terminal {
        output.note(&format!(
            "{}; /help lists the commands, Ctrl+D leaves",
            model.name()
        ));
    }
    if !first.trim().is_empty() {
        chat.ask(&first, output)?;
    }
    if run.typed.stdin {
        chat.read_lines(&mut input, output)?;
    }
    match chat.failure {
        Some(error) if !chat.is_terminal => Ok(error.kind().exit_status()),
        _ => Ok(0),
    }
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

    /// Ctrl+C on a terminal ends no conversation; every other signal does.
    fn goes_on(&self, signal: i32) -> bool {
        self.is_terminal && Signal(signal) == Signal::INT
    }

    fn take_line(&mut self, line: &str, output: &mut Output) -> Line {
        let line = line.trim();
        let (word, rest) = match line.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim_start()),
            None => (line, ""),
        };
        match word {
            "" => Line::Nothing,
            "/exit" | "/quit" | "/help" | "/clear" | "/retry" | "/skills" if !rest.is_empty() => {
                output.warn(&format!("{word} stands alone on its line"));
                Line::Nothing
            }
            "/exit" | "/quit" => Line::Leave,
            "/help" => {
                for (name, about) in COMMANDS {
                    output.note(&format!("{name}: {about}"));
                }
                Line::Nothing
            }
            "/clear" => {
                self.conversation.clear();
                output.note("the conversation is forgotten");
                Line::Nothing
            }
            "/retry" if self.conversation.awaits_answer() => Line::Turn,
            "/retry" => {
                output.note("there is nothing to send again");
                Line::Nothing
            }
            "/skills" => {
                self.list_skills(output);
                Line::Nothing
            }
            _ => match word.strip_prefix('/') {
                // A path such as /etc/hosts is a question.
                Some(name) if !name.contains('/') => self.take_name(name, line, rest, output),
                _ => self.question(line),
            },
        }
    }

    fn question(&mut self, text: &str) -> Line {
        self.conversation.ask(text);
        Line::Turn
    }

    /// A line that begins with `/name`: a skill is invoked, a single word that
    /// is none is a slip.
    fn take_name(&mut self, name: &str, line: &str, rest: &str, output: &mut Output) -> Line {
        let catalogue = self.run.skills.catalogue();
        let is_it = |skill: &&Summary| skill.name == name || skill.alias.as_deref() == Some(name);
        let skill = catalogue
            .named(name)
            .or_else(|| catalogue.skills.iter().find(is_it));
        let Some(skill) = skill else {
            if !rest.is_empty() {
                return self.question(line);
            }
            let skills = catalogue.skills.iter().map(|skill| skill.name.as_str());
            let commands = COMMANDS.iter().map(|(command, _)| &command[1..]);
            let commands = commands.filter(|command| !command.contains(' '));
            let advice = match text::nearest(name, commands.chain(skills), 1).first() {
                Some(near) => format!("did you mean /{near}?"),
                None => "/help lists the commands, /skills the skills".into(),
            };
            output.warn(&format!(
                "there is no command /{name}, and no such skill; {advice}"
            ));
            return Line::Nothing;
        };
        let invoked = match &skill.fault {
            Some(fault) => Err(fault.clone()),
            // By the name that was typed: several skills may share an alias.
            None => self.tools.invoke(name, rest).map_err(String::from),
        };
        match invoked {
            Ok(text) => {
                output.note(&format!("the skill `{}`, {} bytes", skill.name, text.len()));
                self.question(&text)
            }
            Err(fault) => {
                let message = format!("failed to invoke skill `{}`: {fault}", skill.name);
                let error = Error::new(Kind::Io, message);
                output.error(&error);
                self.failure = Some(error);
                Line::Nothing
            }
        }
    }

    /// One line a skill.
    fn list_skills(&self, output: &mut Output) {
        let catalogue = self.run.skills.catalogue();
        for fault in &catalogue.faults {
            output.note(fault);
        }
        if catalogue.skills.is_empty() {
            output.note("there are no skills");
        }
        for skill in catalogue.skills.iter().take(limits::CHAT_SKILLS) {
            let about = match &skill.fault {
                Some(fault) => format!("(cannot be used: {fault})"),
                None => text::one_line(&skill.description, limits::CHAT_DESCRIPTION_BYTES),
            };
            output.note(&format!("/{}: {about}", skill.name));
        }
        if let Some(left) = catalogue.skills.len().checked_sub(limits::CHAT_SKILLS + 1) {
            output.note(&format!("… and {} more", left + 1));
        }
    }

    fn ask(&mut self, prompt: &str, output: &mut Output) -> Result<()> {
        self.conversation.ask(prompt);
        self.turn(output)
    }

    /// One turn. Only what ends the whole conversation is an error.
    fn turn(&mut self, output: &mut Output) -> Result<()> {
        output.begin_turn();
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
