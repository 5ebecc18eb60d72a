//! The program's edge: arguments, environment and signals in, exit status out.

use std::env;
use std::process::ExitCode;

use skills_runner::cli::{Ending, Start, run};
use skills_runner::settings;
use skills_runner::world::{harden, process, signal};

/// Where programs are looked for without a `PATH`, as shells do.
const SEARCHED: &str = "/usr/local/bin:/usr/bin:/bin";

fn main() -> ExitCode {
    harden::hide_memory();
    process::become_subreaper();
    let mut environment: Vec<_> = env::vars_os().collect();
    if env::var_os("PATH").is_none() {
        environment.push(("PATH".into(), SEARCHED.into()));
    }
    harden::forget(&|name, _| settings::is_secret(name));
    let start = Start {
        arguments: env::args_os().skip(1).collect(),
        environment,
        forget: harden::forget,
        // A working directory that has been deleted still has a meaning as `.`.
        folder: env::current_dir().unwrap_or_else(|_| ".".into()),
        interrupt: signal::Interrupt::install().unwrap_or(signal::Interrupt::never()),
    };
    match run(start) {
        Ending::Status(status) => ExitCode::from(status),
        Ending::Signal(signal) => signal::end_by(signal),
    }
}
