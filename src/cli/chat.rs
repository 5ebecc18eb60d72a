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
use crate::skills::{Catalogue, Summary};
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
        "follow the skill of this name, with what stands behind it",
    ),
    ("/exit", "leave (also Ctrl+D)"),
];

/// The names that are the conversation's own.
const OWN_NAMES: [&str; 6] = ["clear", "exit", "help", "quit", "retry", "skills"];

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

    fn take_line(&mut self, line: &str, output: &mut Output) -> Line {
        let is_question = line.starts_with(char::is_whitespace);
        let line = line.trim();
        // What a terminal sends for an arrow key says nothing.
        if text::sendable(line).trim().is_empty() {
            return Line::Nothing;
        }
        if is_question {
            return self.question(line);
        }
        let (word, rest) = match line.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim_start()),
            None => (line, ""),
        };
        match word {
            "/exit" | "/quit" | "/help" | "/clear" | "/retry" | "/skills" if !rest.is_empty() => {
                self.refuse(format!("{word} stands alone on its line"), true, output)
            }
            "/exit" | "/quit" => Line::Leave,
            "/help" => {
                for (name, about) in COMMANDS {
                    output.note(&format!("{name}: {about}"));
                }
                output.note("a line that begins with a blank is a question, whatever it says");
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

    /// Tells that a line is a slip, of which nothing is sent. A person types
    /// it anew; for a script it is a turn that failed, which must not be green.
    fn refuse(&mut self, message: String, may_be_sent: bool, output: &mut Output) -> Line {
        let mut error = Error::new(Kind::Io, message);
        if may_be_sent {
            error = error.with_hint("with a blank in front the line is sent as a question");
        }
        if self.is_terminal {
            output.error(&error);
        } else {
            self.fail(error, output);
        }
        Line::Nothing
    }

    /// A turn that fails before anything is sent.
    fn fail(&mut self, error: Error, output: &mut Output) {
        output.begin_turn();
        output.end_turn(Some(&error));
        self.failure = Some(error);
    }

    /// A line that begins with `/name`: a skill is invoked; a single word that
    /// is none is a slip, and so is a name that is almost one.
    fn take_name(&mut self, name: &str, line: &str, rest: &str, output: &mut Output) -> Line {
        let catalogue = self.run.skills.catalogue();
        let is_it = |skill: &&Summary| skill.name == name || skill.alias.as_deref() == Some(name);
        let skill = catalogue
            .named(name)
            .or_else(|| catalogue.skills.iter().find(is_it));
        let Some(skill) = skill else {
            let advice = match meant(name, rest, &catalogue) {
                Some(near) => format!("did you mean {near}?"),
                None if !rest.is_empty() => return self.question(line),
                None => "/help lists the commands, /skills the skills".into(),
            };
            let name = text::one_line(name, limits::SUMMARY_CHARS);
            let message = format!("there is no command /{name}, and no such skill; {advice}");
            return self.refuse(message, !rest.is_empty(), output);
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
                self.fail(Error::new(Kind::Io, message), output);
                Line::Nothing
            }
        }
    }

    /// One line a skill that can be invoked by hand; how many cannot.
    fn list_skills(&self, output: &mut Output) {
        let catalogue = self.run.skills.catalogue();
        for fault in &catalogue.faults {
            output.note(&fault.message);
        }
        if catalogue.skills.is_empty() {
            output.note("there are no skills");
        }
        let is_own = |skill: &&Summary| OWN_NAMES.contains(&skill.name.as_str());
        let mine: Vec<&Summary> = catalogue.usable().filter(|s| s.is_for_users).collect();
        let (listed, hard): (Vec<&Summary>, Vec<&Summary>) = mine
            .iter()
            .partition(|skill| !is_own(skill) && is_word(&skill.name));
        for skill in listed.iter().take(limits::CHAT_SKILLS) {
            let about = text::one_line(&skill.description, limits::CHAT_DESCRIPTION_BYTES);
            output.note(&format!("/{}: {about}", skill.name));
        }
        if let Some(left) = listed.len().checked_sub(limits::CHAT_SKILLS + 1) {
            output.note(&format!("… and {} more", left + 1));
        }
        for skill in hard.iter().take(limits::NAMES) {
            let name = skill.shown_name();
            let why = if is_own(skill) {
                format!("/{name} is a command")
            } else {
                "its name is more than one word".into()
            };
            output.note(&format!(
                "the skill `{name}` cannot be called by a slash, because {why}: ask the model to use it"
            ));
        }
        let unusable = catalogue.skills.len() - catalogue.usable().count();
        let others = catalogue.usable().count() - mine.len();
        for (count, what) in [
            (others, "for the model only"),
            (unusable, "unusable: `skills-runner skills list` tells why"),
        ] {
            match count {
                0 => {}
                1 => output.note(&format!("1 more skill is {what}")),
                _ => output.note(&format!("{count} more skills are {what}")),
            }
        }
    }

    /// One turn. Only what ends the whole conversation is an error.
    fn turn(&mut self, output: &mut Output) -> Result<()> {
        output.begin_turn();
        if let Some(Message::User(text)) = self.conversation.messages().last() {
            output.ask(text);
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

/// Whether a line can begin with the name: it ends at the first blank.
fn is_word(name: &str) -> bool {
    !name.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The line that was meant by one that begins with `/name`, if a command or a
/// skill is called almost so.
fn meant(name: &str, rest: &str, catalogue: &Catalogue) -> Option<String> {
    let skills = || catalogue.usable().filter(|skill| skill.is_for_users);
    let names = || skills().flat_map(|skill| [Some(skill.name.as_str()), skill.alias.as_deref()]);
    // `/skill pdf report.pdf`, as the placeholder in the list of commands has it.
    let (first, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_skill = ["skill", "skills"].contains(&name.to_lowercase().as_str());
    let (name, rest) = match names().flatten().find(|known| is_skill && *known == first) {
        Some(first) => (first, behind.trim_start()),
        None => (name, rest),
    };
    // With words behind it a line is a question, unless the name is very like.
    let is_like = |known: &&str| {
        let (typed, length) = (name.chars().count(), known.chars().count());
        let begins = known.to_lowercase().starts_with(&name.to_lowercase());
        rest.is_empty() || begins && typed > 2 || typed.abs_diff(length) <= 1 + typed / 3
    };
    let known = OWN_NAMES.into_iter().chain(names().flatten());
    let near = text::nearest(name, known.filter(is_like), 1);
    let near = *near.first()?;
    // Commands take nothing.
    let rest = if OWN_NAMES.contains(&near) { "" } else { rest };
    let line = format!("/{near} {rest}");
    Some(text::one_line(&line, limits::SUMMARY_CHARS))
}
