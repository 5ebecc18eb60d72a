//! The program's edge: arguments, environment and signals in, exit status out.

use std::env;
use std::process::ExitCode;

use skills_runner::cli::{Ending, Request, Start, parse, run};
use skills_runner::settings;
use skills_runner::world::{harden, process, signal};

/// Where programs are looked for without a `PATH`, as shells do.
const SEARCHED: &str = "/usr/local/bin:/usr/bin:/bin";

skills_runner::fill_streams_before_main!();

fn main() -> ExitCode {
    signal::survive_file_limit();
    let request = parse(env::args_os().skip(1).collect());
    // Half of what help and version cost would be what they have no need of.
    let start = match request {
        Ok(Request::Run(_)) | Err(_) => start(),
        Ok(_) => Start::default(),
    };
    match run(request, &start) {
        Ending::Status(status) => ExitCode::from(status),
        Ending::Signal(signal) => signal::end_by(signal),
    }
}

fn start() -> Start {
    harden::hide_memory();
    process::become_subreaper();
    let mut environment: Vec<_> = env::vars_os().collect();
    if env::var_os("PATH").is_none() {
        environment.push(("PATH".into(), SEARCHED.into()));
    }
    harden::forget(&|name, _| settings::is_secret(name));
    Start {
        environment,
        forget: harden::forget,
        program: || env::current_exe().ok(),
        // A working directory that has been deleted still has a meaning as `.`.
        folder: env::current_dir().unwrap_or_else(|_| ".".into()),
        interrupt: signal::Interrupt::install().unwrap_or(signal::Interrupt::never()),
    }
}
