//! The check of the sandbox.

use std::path::PathBuf;

use crate::cli::doctor::local;
use crate::cli::doctor::report::DoctorCheck;
use crate::cli::run::{ExaminedRun, Run};
use crate::error::ErrorKind;
use crate::limits;
use crate::settings::{SCRIPT_SANDBOX, SCRIPT_SANDBOX_READ, SCRIPT_SANDBOX_WRITE, Settings};
use crate::skills::probe::SANDBOX_FIX;
use crate::skills::python::Interpreter;
use crate::skills::sandbox_grants::query_restrictions;
use crate::tool::milliseconds;
use crate::world::sandbox;

const NAME: &str = "sandbox";

/// Checks whether the sandbox is on, whether this machine supports it, and whether Python starts
/// in it.
pub(super) fn sandbox(examined: &ExaminedRun) -> DoctorCheck {
    let run = &examined.run;
    if !run.options.scripts {
        return DoctorCheck::skipped(NAME, "--no-scripts: scripts are disabled");
    }
    let Some(confinement) = &run.config.scripts.sandbox else {
        return check_disabled(&run.settings);
    };
    let mut check = check_enabled(run);
    let missing = confinement.read.iter().filter(|path| !path.exists());
    for path in missing {
        let path = path.display();
        check.add_warning(
            format!("{SCRIPT_SANDBOX_READ} names {path}, which does not exist"),
            format!("correct or remove it in {SCRIPT_SANDBOX_READ}"),
        );
    }
    check
}

fn check_disabled(settings: &Settings) -> DoctorCheck {
    let mut check = match sandbox::available() {
        Ok(available) => {
            DoctorCheck::ok(NAME, format!("off; {SCRIPT_SANDBOX}=on is possible here: {available}"))
        }
        Err(cause) => DoctorCheck::skipped(NAME, format!("off, and impossible here: {cause}")),
    };
    for name in [SCRIPT_SANDBOX_WRITE, SCRIPT_SANDBOX_READ] {
        if settings.value(name).is_some() {
            check.add_warning(
                format!("{name} is set, but has no effect without a sandbox"),
                format!("set {SCRIPT_SANDBOX}=on, or remove {name}"),
            );
        }
    }
    check
}

fn check_enabled(run: &Run) -> DoctorCheck {
    let scripts = &run.config.scripts;
    let failure = |message: &str, fix| DoctorCheck::failure(NAME, ErrorKind::Config, message, fix);
    let available = match sandbox::available() {
        Ok(available) => available,
        Err(cause) => {
            let message = format!("{SCRIPT_SANDBOX} is on, but no sandbox is possible: {cause}");
            return failure(&message, UNAVAILABLE_FIX);
        }
    };
    let found = Interpreter::without_venv(scripts);
    let has_python = found.is_ok();
    // Without an interpreter, skills with a venv still run in the sandbox.
    let python = found.unwrap_or_else(|_| Interpreter { program: PathBuf::new(), venv: None });
    let (folders, limit) = (run.skills.folders(), limits::PYTHON_START_TIMEOUT);
    let restrictions = match query_restrictions(&python, scripts, folders, limit) {
        Ok(restrictions) => restrictions,
        Err(fault) => {
            return failure(&fault.message, fault.fix.as_deref().unwrap_or(UNAVAILABLE_FIX));
        }
    };
    let message = format!("on: {available}");
    if !has_python {
        return DoctorCheck::ok(NAME, message);
    }
    match local::query_interpreter(&python.program, scripts, restrictions, &run.cancellation) {
        Ok(info) => {
            let took = milliseconds(info.duration);
            DoctorCheck::ok(NAME, format!("{message}; Python starts in it in {took} ms"))
        }
        Err(cause) => {
            let program = python.program.display();
            failure(&format!("{message}; in it {program} {cause}"), SANDBOX_FIX)
        }
    }
}

const UNAVAILABLE_FIX: &str =
    "run on Linux 5.13 or newer with Landlock and seccomp, or set SCRIPT_SANDBOX=off";
