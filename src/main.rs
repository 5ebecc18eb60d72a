//! The program's edge: arguments, environment and signals in, exit status out.

use std::env;
use std::process::ExitCode;

use skills_runner::Interrupt;
use skills_runner::program::{self, ExitOutcome, Invocation, Startup};

/// The search path of a process that has no `PATH`, as shells set it.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

skills_runner::fill_streams_before_main!();

fn main() -> ExitCode {
    program::survive_file_limit();
    let invocation = program::parse(env::args_os().skip(1).collect());
    // Help and version need no preparation, which would take half of their time.
    let startup = match invocation {
        Ok(Invocation::Run(_)) | Err(_) => prepare(),
        Ok(_) => Startup::default(),
    };
    match program::run(invocation, &startup) {
        ExitOutcome::Status(status) => ExitCode::from(status),
        ExitOutcome::Signal(signal) => program::end_by(signal),
    }
}

/// Protects the process and collects what it was started with.
fn prepare() -> Startup {
    program::hide_memory();
    program::become_subreaper();
    let mut environment: Vec<_> = env::vars_os().collect();
    if env::var_os("PATH").is_none() {
        environment.push(("PATH".into(), DEFAULT_PATH.into()));
    }
    program::forget(&|name, _| program::is_secret(name));
    Startup {
        environment,
        forget: program::forget,
        program: || env::current_exe().ok(),
        // A deleted working directory can still be used as `.`.
        folder: env::current_dir().unwrap_or_else(|_| ".".into()),
        interrupt: Interrupt::install().unwrap_or(Interrupt::never()),
    }
}
