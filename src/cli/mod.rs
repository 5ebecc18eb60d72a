//! The command line: what was typed, done, and its exit status.

use std::ffi::OsString;

use crate::cli::args::{Command, Request, Typed, usage};
use crate::config::Needs;
use crate::error::{Error, Kind, Result};
use crate::world::output::{Output, Verbosity};
use crate::world::signal::Signal;

pub mod args;
mod ask;
mod chat;
mod demo;
pub mod help;
mod setup;
mod tool;

pub use setup::Start;

/// How the program is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this exit status.
    Status(u8),
    /// By this signal, so that a shell's loop stops too.
    Signal(Signal),
}

impl From<&Error> for Ending {
    fn from(error: &Error) -> Ending {
        match error.kind() {
            Kind::Interrupted(signal) => Ending::Signal(Signal(signal)),
            kind => Ending::Status(kind.exit_status()),
        }
    }
}

/// Does what the arguments ask for.
pub fn run(mut start: Start) -> Ending {
    let color = setup::wants_color(&start.environment);
    let request = match args::parse(std::mem::take(&mut start.arguments)) {
        Ok(request) => request,
        Err(error) => return fail(&error, &mut Output::new(Verbosity::Normal, color)),
    };
    let (result, mut output) = match request {
        Request::Help => show(&help::text(), color),
        Request::Version => show(help::VERSION, color),
        Request::Run(typed) => {
            let mut output = Output::new(typed.verbosity, color);
            (dispatch(*typed, &start, &mut output), output)
        }
    };
    // An answer that could not be written is a failure of its own.
    match result.and_then(|status| output.outcome().map(|()| status)) {
        Ok(status) => Ending::Status(status),
        Err(error) => fail(&error, &mut output),
    }
}

fn show(text: &str, color: bool) -> (Result<u8>, Output) {
    let mut output = Output::new(Verbosity::Normal, color);
    output.print(text);
    (Ok(0), output)
}

fn fail(error: &Error, output: &mut Output) -> Ending {
    // A signal needs no explanation: the shell shows it.
    if !matches!(error.kind(), Kind::Interrupted(_)) {
        output.error(error);
    }
    Ending::from(error)
}

fn dispatch(typed: Typed, start: &Start, output: &mut Output) -> Result<u8> {
    match typed.command {
        Command::Ask if !ask::is_conversation(&typed) => ask::run(typed, start, output),
        Command::Ask | Command::Chat => chat::run(typed, start, output),
        Command::Tool => tool::run(typed, start, output),
        Command::Demo => {
            no_words("demo", &typed.words)?;
            demo::run(
                &setup::Run::new(typed, start, Needs::Skills, output)?,
                output,
            )
        }
    }
}

/// For commands that take no words of their own.
fn no_words(command: &str, words: &[OsString]) -> Result<()> {
    if words.is_empty() {
        return Ok(());
    }
    Err(
        usage(format!("{command} takes no words")).with_hint(format!(
            "a prompt that begins with `{command}` comes after --: skills-runner -- {command} …"
        )),
    )
}
