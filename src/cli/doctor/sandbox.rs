//! What `doctor` says of the sandbox of scripts.

use crate::cli::doctor::local;
use crate::cli::doctor::report::Check;
use crate::cli::setup::Run;
use crate::error::Kind;
use crate::limits;
use crate::settings::SCRIPT_SANDBOX;
use crate::skills::grants::Case;
use crate::skills::python::Interpreter;
use crate::tool::milliseconds;
use crate::world::sandbox;

const NAME: &str = "sandbox";

/// Whether scripts run in one, whether this machine can have one, and whether
/// Python starts in it.
pub fn sandbox(run: &Run) -> Check {
    let scripts = &run.config.scripts;
    if !run.typed.scripts {
        return Check::skipped(NAME, "--no-scripts: no script is run");
    }
    let Some(confinement) = &scripts.sandbox else {
        return match sandbox::available() {
            Ok(available) => Check::ok(
                NAME,
                format!("off; {SCRIPT_SANDBOX}=on is possible here: {available}"),
            ),
            Err(cause) => Check::skipped(NAME, format!("off, and impossible here: {cause}")),
        };
    };
    let available = match sandbox::available() {
        Ok(available) => available,
        Err(cause) => {
            let message = format!("{SCRIPT_SANDBOX} is on, and there can be no sandbox: {cause}");
            return Check::failure(NAME, Kind::Config, message, WITHOUT);
        }
    };
    let message = format!("on: {available}");
    let Ok(python) = Interpreter::without_venv(scripts) else {
        return Check::ok(NAME, message);
    };
    let started = Case {
        folder: None,
        python: &python,
        scripts,
        confinement,
        skills_folders: run.skills.folders(),
        source: None,
        temporary: None,
    }
    .confine(limits::PYTHON_START)
    .and_then(|confine| {
        let program = &python.program;
        local::start(program, scripts, Some(confine), &run.patience)
            .map_err(|cause| format!("{} {cause}", program.display()))
    });
    match started {
        Ok(told) => {
            let took = milliseconds(told.duration);
            Check::ok(NAME, format!("{message}; Python starts in it in {took} ms"))
        }
        Err(cause) => Check::failure(NAME, Kind::Config, format!("{message}; {cause}"), GRANT),
    }
}

const WITHOUT: &str =
    "run on Linux 5.13 or newer with Landlock and seccomp, or set SCRIPT_SANDBOX=off";
const GRANT: &str =
    "grant what it lacks with SCRIPT_SANDBOX_READ, or set SCRIPT_PYTHON to another interpreter";
