//! What `doctor` says of the sandbox of scripts.

use std::path::PathBuf;

use crate::cli::doctor::local::{self, GRANT};
use crate::cli::doctor::remedy::parted;
use crate::cli::doctor::report::DoctorCheck;
use crate::cli::setup::{ExaminedRun, Run};
use crate::error::ErrorKind;
use crate::limits;
use crate::settings::{SCRIPT_SANDBOX, SCRIPT_SANDBOX_READ, SCRIPT_SANDBOX_WRITE, Settings};
use crate::skills::python::Interpreter;
use crate::tool::milliseconds;
use crate::world::sandbox;

const NAME: &str = "sandbox";

/// Whether scripts run in one, whether this machine can have one, and whether
/// Python starts in it.
pub(super) fn sandbox(examined: &ExaminedRun) -> DoctorCheck {
    let run = &examined.run;
    if !run.typed.scripts {
        return DoctorCheck::skipped(NAME, "--no-scripts: no script is run");
    }
    let Some(confinement) = &run.config.scripts.sandbox else {
        return off(&examined.settings);
    };
    let mut check = on(run);
    let missing = confinement.read.iter().filter(|path| !path.exists());
    for path in missing {
        let path = path.display();
        check.add_warning(
            format!("{SCRIPT_SANDBOX_READ} names {path}, which is not there"),
            format!("correct it in {SCRIPT_SANDBOX_READ}, or take it out"),
        );
    }
    check
}

fn off(settings: &Settings) -> DoctorCheck {
    let mut check = match sandbox::available() {
        Ok(available) => {
            DoctorCheck::ok(NAME, format!("off; {SCRIPT_SANDBOX}=on is possible here: {available}"))
        }
        Err(cause) => DoctorCheck::skipped(NAME, format!("off, and impossible here: {cause}")),
    };
    for name in [SCRIPT_SANDBOX_WRITE, SCRIPT_SANDBOX_READ] {
        if settings.value(name).is_some() {
            check.add_warning(
                format!("{name} is set, and without a sandbox it changes nothing"),
                format!("set {SCRIPT_SANDBOX}=on, or take {name} out"),
            );
        }
    }
    check
}

fn on(run: &Run) -> DoctorCheck {
    let scripts = &run.config.scripts;
    let failure = |message: &str, fix| DoctorCheck::failure(NAME, ErrorKind::Config, message, fix);
    let available = match sandbox::available() {
        Ok(available) => available,
        Err(cause) => {
            let message = format!("{SCRIPT_SANDBOX} is on, and there can be no sandbox: {cause}");
            return failure(&message, WITHOUT);
        }
    };
    let found = Interpreter::without_venv(scripts);
    let has_python = found.is_ok();
    // Skills with a venv have a sandbox without it.
    let python = found.unwrap_or_else(|_| Interpreter {
        program: PathBuf::new(),
        venv: None,
        search_path: None,
    });
    let confine = match python.confine(scripts, run.skills.folders(), limits::PYTHON_START) {
        Ok(confine) => confine,
        Err(cause) => {
            let (message, fix) = parted(&cause).unwrap_or((&cause, WITHOUT));
            return failure(message, fix);
        }
    };
    let message = format!("on: {available}");
    if !has_python {
        return DoctorCheck::ok(NAME, message);
    }
    match local::start(&python.program, scripts, confine, &run.cancellation) {
        Ok(told) => {
            let took = milliseconds(told.duration);
            DoctorCheck::ok(NAME, format!("{message}; Python starts in it in {took} ms"))
        }
        Err(cause) => {
            let program = python.program.display();
            failure(&format!("{message}; in it {program} {cause}"), GRANT)
        }
    }
}

const WITHOUT: &str =
    "run on Linux 5.13 or newer with Landlock and seccomp, or set SCRIPT_SANDBOX=off";
