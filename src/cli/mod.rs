//! The command line front end: runs the parsed command and returns its exit status.

use std::ffi::OsString;

use crate::cli::args::{CommandLine, usage};
use crate::cli::table::Command;
use crate::config::ConfigNeeds;
use crate::error::{Error, ErrorKind, Result};
use crate::world::output::{Format, Output, Verbosity, print_standalone};
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

/// How the program should exit.
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

/// Runs the command, or reports why the arguments are invalid.
pub fn run(request: Result<Invocation>, startup: &Startup) -> ExitOutcome {
    let color = setup::wants_color(&startup.environment);
    let interrupt = &startup.interrupt;
    let output = |format, verbosity| Output::new(format, verbosity, color, interrupt.clone());
    let text = match request {
        Ok(Invocation::Run(args)) => {
            let mut output = output(stdout_format(&args), args.verbosity);
            let result = check_and_dispatch(*args, startup, &mut output);
            // A signal that arrived too late to stop anything must still end a shell's loop.
            let result = result.and_then(|status| match interrupt.pending() {
                Some(signal) if signal != Signal::PIPE => Err(Error::interrupted(signal.0)),
                _ => Ok(status),
            });
            return finish(result, output);
        }
        Err(error) => Err(error),
        Ok(Invocation::Help) => Ok(help::text()),
        Ok(Invocation::Generate(write)) => Ok(write()),
        Ok(Invocation::Version) => Ok(help::VERSION.to_string()),
    };
    match text.and_then(|text| print_standalone(&text)) {
        Ok(()) => ExitOutcome::Status(0),
        Err(error) => finish(Err(error), output(Format::Text, Verbosity::Normal)),
    }
}

/// The format of standard output; `--output` applies only to answers.
fn stdout_format(args: &CommandLine) -> Format {
    match args.command {
        Command::Question | Command::Chat if args.dry_run => Format::Text,
        Command::Question | Command::Chat | Command::Demo => args.format,
        Command::Tool
        | Command::Doctor
        | Command::Facts
        | Command::Mcp
        | Command::Sessions
        | Command::Skills => Format::Text,
    }
}

/// Reports an error and writes the result record, always last.
fn finish(result: Result<u8>, mut output: Output) -> ExitOutcome {
    // If the answer or the log could not be written, the run failed.
    let result = match result {
        Err(error) if !is_reader_gone(&error, &output) => Err(error),
        other => {
            let status = *other.as_ref().unwrap_or(&0);
            output.finish_log(status).and(other)
        }
    };
    let ending = match result {
        Ok(status) => {
            output.finish_run(status);
            ExitOutcome::Status(status)
        }
        Err(error) if is_reader_gone(&error, &output) => ExitOutcome::Status(0),
        Err(error) => {
            output.end_turn(Some(&error));
            ExitOutcome::from(&error)
        }
    };
    match (ending, output.take_write_error()) {
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

/// Whether the run stopped because the reader of standard output closed it. That is not a
/// failure.
fn is_reader_gone(error: &Error, output: &Output) -> bool {
    match error.kind() {
        ErrorKind::Interrupted(signal) => Signal(signal) == Signal::PIPE,
        _ => output.is_reader_gone(),
    }
}

fn check_and_dispatch(args: CommandLine, startup: &Startup, output: &mut Output) -> Result<u8> {
    if args.skills_as_tools && args.command != Command::Mcp {
        return Err(usage("--skills-as-tools works only with `mcp`"));
    }
    if args.dry_run && !matches!(args.command, Command::Question | Command::Chat) {
        return Err(usage("--dry-run works only with a question or chat"));
    }
    if !args.attach.is_empty() && !matches!(args.command, Command::Question | Command::Chat) {
        return Err(usage("--attach works only with a question or chat"));
    }
    session_handle::check_options(&args)?;
    if matches!(
        args.command,
        Command::Doctor | Command::Facts | Command::Sessions | Command::Skills
    ) {
        for (name, is_typed) in [("--log", args.log.is_some()), ("--confirm", args.confirm)] {
            if is_typed {
                return Err(usage(format!(
                    "{name} works only where tools can run: with a question, chat, demo or tool"
                )));
            }
        }
    }
    // With `--json` an error is printed as an object too, except for wrong usage.
    let is_json = args.format != Format::Text;
    let has_object = matches!(args.command, Command::Facts | Command::Sessions | Command::Skills);
    let result = dispatch(args, startup, output);
    if let Err(error) = &result
        && has_object
        && is_json
        && error.kind() != ErrorKind::Usage
    {
        output.print_failure(error);
    }
    result
}

fn dispatch(args: CommandLine, startup: &Startup, output: &mut Output) -> Result<u8> {
    match args.command {
        Command::Question if !one_shot::is_conversation(&args) => {
            one_shot::run(args, startup, output)
        }
        Command::Question | Command::Chat => chat::run(args, startup, output),
        Command::Doctor => {
            no_words("doctor", &args.words)?;
            doctor::run(args, startup, output)
        }
        Command::Facts => facts::run(args, startup, output).map(|()| 0),
        Command::Sessions => sessions::run(args, startup, output).map(|()| 0),
        Command::Skills => skills::run(args, startup, output),
        Command::Mcp => {
            no_words("mcp", &args.words)?;
            mcp_server::run(args, startup, output).map(|()| 0)
        }
        Command::Tool => tool::run(args, startup, output),
        Command::Demo => {
            no_words("demo", &args.words)?;
            let run = setup::Run::new(args, startup, ConfigNeeds::Skills, output)?;
            demo::run(run, output)
        }
    }
}

/// Rejects arguments of a command that takes none.
fn no_words(command: &str, words: &[OsString]) -> Result<()> {
    if words.is_empty() {
        return Ok(());
    }
    Err(usage(format!("{command} takes no arguments")).with_hint(format!(
        "for a prompt that starts with `{command}`: skills-runner -- {command} …"
    )))
}
