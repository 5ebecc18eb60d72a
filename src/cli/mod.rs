//! The command line front end: runs the parsed command and returns its exit status.

use crate::cli::options::{AskOptions, Command, CommandLine};
use crate::cli::values::usage;
use crate::ui::input::{StdinKind, StdinReader};
use crate::ui::{Format, Output, Verbosity, print_standalone};
use base::error::{Error, ErrorKind, Result};
use host::signal::Signal;

pub(crate) mod args;
mod attach;
mod chat;
mod commands;
mod demo;
mod doctor;
mod env_files;
mod facts;
mod folder_trust;
mod folders;
pub(crate) mod generate;
pub(crate) mod help;
mod init;
mod installed_model;
mod invocation;
mod mcp_server;
mod model_input;
mod model_lookup;
mod one_shot;
mod option_table;
mod options;
mod requirements;
mod run;
mod session_handle;
mod sessions;
mod skills;
mod startup;
mod stdin;
mod tool;
mod values;

pub use args::{Invocation, parse};
pub use startup::Startup;

/// How the program should exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitOutcome {
    /// With this exit status.
    Status(u8),
    /// By this signal, so that a shell's loop stops too.
    Signal(Signal),
}

impl From<Result<u8>> for ExitOutcome {
    fn from(result: Result<u8>) -> ExitOutcome {
        match result.map_err(|error| error.kind()) {
            Ok(status) => ExitOutcome::Status(status),
            Err(ErrorKind::Interrupted(signal)) => ExitOutcome::Signal(Signal(signal)),
            Err(kind) => ExitOutcome::Status(kind.exit_status()),
        }
    }
}

/// Runs the command, or reports why the arguments are invalid.
pub fn run(request: Result<Invocation>, startup: &Startup) -> ExitOutcome {
    let new_output = |format, verbosity| {
        Output::new(format, verbosity, startup.terminal_features(), startup.interrupt.clone())
    };
    let text = match request {
        Ok(Invocation::Run(line)) => {
            let mut output = new_output(stdout_format(&line), line.options.verbosity);
            if line.options.plain {
                output.set_plain();
            }
            let result = dispatch(*line, startup, &mut output);
            // A signal that arrived too late to stop anything must still end a shell's loop.
            let result = result.and_then(|status| match startup.interrupt.pending() {
                Some(signal) if signal != Signal::PIPE => Err(Error::interrupted(signal.0)),
                _ => Ok(status),
            });
            return output.finish(result).into();
        }
        Err(error) => Err(error),
        Ok(Invocation::Help(words)) => Ok(help::text(&words, Output::report_columns())),
        Ok(Invocation::Generate(write)) => Ok(write()),
        Ok(Invocation::Version) => Ok(help::VERSION.to_string()),
    };
    let result = text.and_then(|text| print_standalone(&text));
    new_output(Format::Text, Verbosity::Normal).finish(result.map(|()| 0)).into()
}

/// The format of standard output.
fn stdout_format(line: &CommandLine) -> Format {
    match &line.command {
        Command::Ask(ask) | Command::Chat(ask) if ask.dry_run => Format::Text,
        Command::Ask(_) | Command::Chat(_) | Command::Demo(_) => line.options.format,
        Command::Facts(_) | Command::Sessions(_) | Command::Skills(_) | Command::Eval(_)
            if line.options.is_json() =>
        {
            Format::Object
        }
        _ => Format::Text,
    }
}

/// Returns an error for a prompt of a single word that is meant as a command. With other input
/// than a terminal or `/dev/null` it is a prompt.
fn check_single_word(ask: &AskOptions) -> Result<()> {
    let (Some(meant), Some(word)) = (ask.meant, &ask.prompt) else {
        return Ok(());
    };
    match StdinReader::open().map(|input| input.kind()) {
        Ok(StdinKind::File | StdinKind::Stream) => Ok(()),
        Ok(StdinKind::Terminal | StdinKind::Nothing) | Err(_) => {
            let hint = format!("{meant}; as a question: skills-runner -- {word}");
            Err(usage(format!("there is no command `{word}`")).with_hint(hint))
        }
    }
}

/// Runs the command, and returns the exit status.
fn dispatch(line: CommandLine, startup: &Startup, output: &mut Output) -> Result<u8> {
    let options = line.options;
    if let Command::Ask(ask) | Command::Chat(ask) = &line.command {
        check_single_word(ask)?;
    }
    match line.command {
        Command::Ask(ask) if one_shot::is_conversation(&ask, &options) => {
            chat::run(ask, options, startup, output)
        }
        Command::Ask(ask) => one_shot::run(&ask, options, startup, output).map(|()| 0),
        Command::Chat(ask) => chat::run(ask, options, startup, output),
        Command::Demo(tools) => demo::run(&tools, options, startup, output).map(|()| 0),
        Command::Doctor => doctor::run(options, startup, output),
        Command::Init(command) => init::run(&command, options, startup, output),
        Command::Facts(facts) => facts::run(facts, options, startup, output).map(|()| 0),
        Command::Mcp(mcp) => mcp_server::run(&mcp, options, startup, output).map(|()| 0),
        Command::Sessions(sessions) => {
            sessions::run(&sessions, options, startup, output).map(|()| 0)
        }
        Command::Skills(skills) => skills::run(skills, options, startup, output),
        Command::Eval(eval) => skills::eval::run(&eval, options, startup, output),
        Command::Tool(tool) => tool::run(tool, options, startup, output),
        Command::Trust(folder) => {
            let settings = env_files::settings_without_files(&options, startup);
            folder_trust::run(folder.as_deref(), &settings, startup, output).map(|()| 0)
        }
    }
}
