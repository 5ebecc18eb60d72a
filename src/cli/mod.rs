//! The command line: what was typed, done, and its exit status.

use std::ffi::OsString;

use crate::cli::args::{CommandLine, usage};
use crate::cli::table::Command;
use crate::config::ConfigNeeds;
use crate::error::{Error, ErrorKind, Result};
use crate::world::output::{Format, Output, Verbosity, print_alone};
use crate::world::signal::Signal;

pub(crate) mod args;
mod attach;
mod chat;
mod demo;
mod doctor;
mod env_files;
mod facts;
mod folders;
pub(crate) mod generate;
pub(crate) mod help;
mod mcp_server;
mod model_lookup;
mod one_shot;
mod session_handle;
mod sessions;
mod setup;
mod skills;
mod table;
mod tool;
mod values;

pub use args::{Invocation, parse};
pub use setup::Startup;

/// How the program is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitOutcome {
    /// With this exit status.
    Status(u8),
    /// By this signal, so that a shell's loop stops too.
    Signal(Signal),
}

impl From<&Error> for ExitOutcome {
    fn from(error: &Error) -> ExitOutcome {
        match error.kind() {
            ErrorKind::Interrupted(signal) => ExitOutcome::Signal(Signal(signal)),
            kind => ExitOutcome::Status(kind.exit_status()),
        }
    }
}

/// Does what the arguments ask for, and tells what is wrong with them.
pub fn run(request: Result<Invocation>, start: &Startup) -> ExitOutcome {
    let color = setup::wants_color(&start.environment);
    let interrupt = &start.interrupt;
    let output = |format, verbosity| Output::new(format, verbosity, color, interrupt.clone());
    let text = match request {
        Ok(Invocation::Run(typed)) => {
            let mut output = output(format(&typed), typed.verbosity);
            let result = dispatch(*typed, start, &mut output);
            // A signal that came too late to stop anything still ends a shell's loop.
            let result = result.and_then(|status| match interrupt.pending() {
                Some(signal) if signal != Signal::PIPE => Err(Error::interrupted(signal.0)),
                _ => Ok(status),
            });
            return end(result, output);
        }
        Err(error) => Err(error),
        Ok(Invocation::Help) => Ok(help::text()),
        Ok(Invocation::Generate(write)) => Ok(write()),
        Ok(Invocation::Version) => Ok(help::VERSION.to_string()),
    };
    match text.and_then(|text| print_alone(&text)) {
        Ok(()) => ExitOutcome::Status(0),
        Err(error) => end(Err(error), output(Format::Text, Verbosity::Normal)),
    }
}

/// What standard output carries: only answers have formats.
fn format(typed: &CommandLine) -> Format {
    match typed.command {
        Command::Ask | Command::Chat if typed.dry_run => Format::Text,
        Command::Ask | Command::Chat | Command::Demo => typed.format,
        Command::Tool
        | Command::Doctor
        | Command::Facts
        | Command::Mcp
        | Command::Sessions
        | Command::Skills => Format::Text,
    }
}

/// Tells what went wrong, and makes the result the last thing that is written.
fn end(result: Result<u8>, mut output: Output) -> ExitOutcome {
    // An answer that could not be written is a failure of its own, and so is a log.
    let result = match result {
        Err(error) if !is_for_want_of_a_reader(&error, &output) => Err(error),
        other => {
            let status = *other.as_ref().unwrap_or(&0);
            output.settle(status).and(other)
        }
    };
    let ending = match result {
        Ok(status) => {
            output.complete(status);
            ExitOutcome::Status(status)
        }
        Err(error) if is_for_want_of_a_reader(&error, &output) => ExitOutcome::Status(0),
        Err(error) => {
            output.end_turn(Some(&error));
            ExitOutcome::from(&error)
        }
    };
    match (ending, output.outcome()) {
        (_, Ok(())) => ending,
        (_, Err(error)) => {
            output.error(&error);
            match ending {
                ExitOutcome::Signal(_) => ending,
                ExitOutcome::Status(_) => ExitOutcome::from(&error),
            }
        }
    }
}

/// Whether the run stopped because standard output cannot be written any more,
/// or failed on the way there: a reader that went away is no failure.
fn is_for_want_of_a_reader(error: &Error, output: &Output) -> bool {
    match error.kind() {
        ErrorKind::Interrupted(signal) => Signal(signal) == Signal::PIPE,
        _ => output.is_unread(),
    }
}

fn dispatch(typed: CommandLine, start: &Startup, output: &mut Output) -> Result<u8> {
    if typed.fix && typed.command != Command::Skills {
        return Err(usage("--fix belongs to `skills check`"));
    }
    if typed.skills_as_tools && typed.command != Command::Mcp {
        return Err(usage("--skills-as-tools belongs to `mcp`"));
    }
    if typed.dry_run && !matches!(typed.command, Command::Ask | Command::Chat) {
        return Err(usage("--dry-run shows the request of a question; it holds back nothing else"));
    }
    if !typed.attach.is_empty() && !matches!(typed.command, Command::Ask | Command::Chat) {
        return Err(usage("--attach goes with a question, or with chat"));
    }
    session_handle::check(&typed)?;
    if matches!(
        typed.command,
        Command::Doctor | Command::Facts | Command::Sessions | Command::Skills
    ) {
        for (name, is_typed) in [("--log", typed.log.is_some()), ("--confirm", typed.confirm)] {
            if is_typed {
                return Err(usage(format!(
                    "{name} belongs to what runs tools: a question, chat, demo, tool"
                )));
            }
        }
    }
    // With `--json` a failure is an object too, but for wrong usage: nobody has asked yet.
    let is_json = typed.format != Format::Text;
    let has_object = matches!(typed.command, Command::Facts | Command::Sessions | Command::Skills);
    let result = obey(typed, start, output);
    if let Err(error) = &result
        && has_object
        && is_json
        && error.kind() != ErrorKind::Usage
    {
        output.print_failure(error);
    }
    result
}

fn obey(typed: CommandLine, start: &Startup, output: &mut Output) -> Result<u8> {
    match typed.command {
        Command::Ask if !one_shot::is_conversation(&typed) => one_shot::run(typed, start, output),
        Command::Ask | Command::Chat => chat::run(typed, start, output),
        Command::Doctor => {
            no_words("doctor", &typed.words)?;
            doctor::run(typed, start, output)
        }
        Command::Facts => facts::run(typed, start, output).map(|()| 0),
        Command::Sessions => sessions::run(typed, start, output).map(|()| 0),
        Command::Skills => skills::run(typed, start, output),
        Command::Mcp => {
            no_words("mcp", &typed.words)?;
            mcp_server::run(typed, start, output).map(|()| 0)
        }
        Command::Tool => tool::run(typed, start, output),
        Command::Demo => {
            no_words("demo", &typed.words)?;
            let run = setup::Run::new(typed, start, ConfigNeeds::Skills, output)?;
            demo::run(run, output)
        }
    }
}

/// For commands that take no words of their own.
fn no_words(command: &str, words: &[OsString]) -> Result<()> {
    if words.is_empty() {
        return Ok(());
    }
    Err(usage(format!("{command} takes no words")).with_hint(format!(
        "a prompt that begins with `{command}` comes after --: skills-runner -- {command} …"
    )))
}
