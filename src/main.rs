//! Entry point: collects arguments, environment and signals, and returns the exit
//! status. Only this file reads the environment.

use std::env;
use std::process::ExitCode;

use skills_runner::Interrupt;
use skills_runner::program::{self, ExitOutcome, Invocation, Startup};

/// Search path if `PATH` is not set, as in shells.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

skills_runner::open_missing_streams_before_main!();

fn main() -> ExitCode {
    program::handle_file_size_limit();
    let invocation = program::parse(env::args_os().skip(1).collect());
    // Skipped for help and version: it would take half of their time.
    let startup = match invocation {
        Ok(Invocation::Run(_)) | Err(_) => prepare(),
        Ok(_) => Startup::default(),
    };
    match program::run(invocation, &startup) {
        ExitOutcome::Status(status) => ExitCode::from(status),
        ExitOutcome::Signal(signal) => program::exit_by_signal(signal),
    }
}

/// Protects the process and collects its environment and working folder.
fn prepare() -> Startup {
    program::hide_memory();
    program::become_subreaper();
    let mut environment: Vec<_> = env::vars_os().collect();
    if env::var_os("PATH").is_none() {
        environment.push(("PATH".into(), DEFAULT_PATH.into()));
    }
    program::erase_from_environment(&|name, _| program::is_secret(name));
    Startup {
        environment,
        erase_credentials: program::erase_from_environment,
        program_path: || env::current_exe().ok(),
        // A deleted working directory can still be used as `.`.
        folder: env::current_dir().unwrap_or_else(|_| ".".into()),
        program: env::args_os().next().unwrap_or_default().into(),
        interrupt: Interrupt::install().unwrap_or(Interrupt::never()),
    }
}
