//! The check of the sandbox.

use std::path::PathBuf;

use crate::cli::doctor::report::DoctorCheck;
use crate::cli::run::{ExaminedRun, Run};
use base::error::{ErrorKind, Fault};
use base::limits;
use base::settings::{SCRIPT_SANDBOX, SCRIPT_SANDBOX_READ, SCRIPT_SANDBOX_WRITE, Settings};
use host::sandbox;
use skills::python::Interpreter;
use skills::sandbox_grants::query_restrictions;

const NAME: &str = "sandbox";

/// Checks whether the sandbox is on, and whether this machine supports it.
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

/// The check of Python starts it in the sandbox; this one checks all that precedes it.
fn check_enabled(run: &Run) -> DoctorCheck {
    let scripts = &run.config.scripts;
    // Without an interpreter, skills with a venv still run in the sandbox.
    let python = Interpreter::without_venv(scripts)
        .unwrap_or_else(|_| Interpreter { program: PathBuf::new(), venv: None });
    let (folders, limit) = (run.skills.folders(), limits::PYTHON_START_TIMEOUT);
    let granted = query_restrictions(&python, scripts, folders, limit);
    let unavailable = |cause| {
        Fault::without_fix(format!("{SCRIPT_SANDBOX} is on, but no sandbox is possible: {cause}"))
    };
    let available = granted.and_then(|_| sandbox::available().map_err(unavailable));
    match available {
        Ok(available) => DoctorCheck::ok(NAME, format!("on: {available}")),
        Err(Fault { message, fix }) => {
            let fix = fix.unwrap_or_else(|| UNAVAILABLE_FIX.into());
            DoctorCheck::failure(NAME, ErrorKind::Config, message, fix)
        }
    }
}

const UNAVAILABLE_FIX: &str =
    "run on Linux 5.13 or newer with Landlock and seccomp, or set SCRIPT_SANDBOX=off";
