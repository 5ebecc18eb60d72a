//! The checks of settings and Python.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::doctor::report::DoctorCheck;
use crate::cli::doctor::skills;
use crate::cli::run::{ExaminedRun, Run};
use ::skills::Catalogue;
use ::skills::ScriptSettings;
use ::skills::probe::SANDBOX_FIX;
use ::skills::python::PythonChoice;
use ::skills::python::{Interpreter, InterpreterQuery, PYTHON_FIX, guardian_fault};
use ::skills::sandbox_grants::query_restrictions;
use agent::system_prompt;
use base::error::{Error, ErrorKind, Fault, Result};
use base::limits;
use base::settings::{self, Settings};
use base::text::one_line;
use base::tool::milliseconds;
use host::cancellation::{Cancellation, StopReason};
use host::capture::CaptureLimits;
use host::process::{ProcessExit, Restrictions};

/// Settings that are listed even if they are not set.
const REQUIRED: [&str; 3] =
    [settings::LLM_API_KEY, settings::LLM_API_BASE_URL, settings::LLM_MODEL_NAME];

/// The check of the configuration: lists all settings that are set, and reports every problem.
pub(super) fn configuration(examined: &ExaminedRun) -> DoctorCheck {
    const NAME: &str = "configuration";
    let run = &examined.run;
    let unread = prompt_file_error(run);
    let problems = examined.problems.iter().chain(unread.as_ref().map(Error::fault));
    let mut problems = problems.map(|problem| (problem.message.as_str(), setting_fix(problem)));
    let mut check = match problems.next() {
        None => {
            let count = run.settings.display_values().filter(|shown| shown.value.is_some()).count();
            let noun = if count == 1 { "setting is" } else { "settings are" };
            DoctorCheck::ok(NAME, format!("{count} {noun} set"))
        }
        Some((message, fix)) => {
            let mut check = DoctorCheck::failure(NAME, ErrorKind::Config, message, fix);
            for (message, fix) in problems {
                check.add_failure(ErrorKind::Config, message, fix);
            }
            check
        }
    };
    let is_fine = examined.problems.is_empty() && unread.is_none();
    let rows = add_settings(&run.settings, is_fine, &mut check);
    if let Some(text) = run.withheld_variables().filter(|_| run.options.scripts) {
        check.add_line(text);
    }
    let files = run.settings.files().iter();
    let skipped = files.flat_map(|file| file.notices.iter().cloned().chain(file.skipped_lines()));
    let warnings = skipped.chain(run.config.warnings.iter().cloned());
    for warning in warnings.chain(base::settings::misspelled::warnings(&run.settings)) {
        check.add_warning(warning.message.as_str(), setting_fix(&warning));
    }
    check.with_detail("settings", rows)
}

/// Adds a line for each setting that is set, and returns the settings for JSON output.
fn add_settings(settings: &Settings, is_fine: bool, check: &mut DoctorCheck) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut rows = Vec::new();
    for shown in settings.display_values() {
        let name = shown.setting.name;
        match shown.value {
            Some((value, source)) => {
                let value = one_line(&value, limits::SUMMARY_CHARS);
                let (name, origin) = (source.name, source.origin.to_string());
                lines.push(format!("{name}={value} ({origin})"));
                rows.push(json!({"name": name, "value": value, "origin": origin}));
            }
            None if REQUIRED.contains(&name) => {
                // If the missing value is a problem, it is reported as one.
                if is_fine {
                    lines.push(format!("{name} is not set (and not required)"));
                }
                rows.push(json!({"name": name, "value": null, "origin": null}));
            }
            None => {}
        }
    }
    if !is_fine && !lines.is_empty() {
        check.add_line("current settings:");
    }
    for line in lines {
        check.add_line(line);
    }
    rows
}

/// The error of an unreadable system prompt file.
fn prompt_file_error(run: &Run) -> Option<Error> {
    let path = run.config.prompt_file.as_deref()?;
    system_prompt::read_template(path, &run.cancellation).err()
}

fn setting_fix(fault: &Fault) -> &str {
    fault.fix.as_deref().unwrap_or("correct this setting")
}

/// The properties of an interpreter.
struct InterpreterInfo {
    executable: String,
    version: String,
    /// The time from its start to its end.
    duration: Duration,
}

/// A script that runs in any version of Python.
const VERSION_SCRIPT: &str =
    "import sys; print(sys.executable); print('%d.%d.%d' % tuple(sys.version_info[:3]))";

/// The check of the interpreter for skills without a venv. An error means that the run must stop.
pub(super) fn python(run: &Run, catalogue: &Catalogue) -> Result<DoctorCheck> {
    const NAME: &str = "python";
    let scripts = &run.config.scripts;
    if !run.options.scripts {
        return Ok(DoctorCheck::skipped(NAME, "--no-scripts: scripts are disabled"));
    }
    if scripts.python == PythonChoice::Off {
        let message = "SCRIPT_PYTHON=off: only skills with a venv run scripts";
        return Ok(DoctorCheck::ok(NAME, message));
    }
    let is_needed = catalogue
        .skills
        .iter()
        .any(|skill| skill.error.is_none() && skills::has_working_venv(run, skill).is_none());
    let lacking = |message: &str, fix: &str| {
        if is_needed {
            DoctorCheck::failure(NAME, ErrorKind::Io, message, fix)
        } else {
            DoctorCheck::warning(NAME, message, fix)
        }
    };
    let python = match Interpreter::without_venv(scripts) {
        Ok(interpreter) => interpreter,
        Err(fault) => return Ok(lacking(&fault.message, fault.fix.as_deref().unwrap_or_default())),
    };
    let program = &python.program;
    let (folders, limit) = (run.skills.folders(), limits::PYTHON_START_TIMEOUT);
    let confine = match query_restrictions(&python, scripts, folders, limit) {
        Ok(confine) => confine,
        Err(cause) => return Ok(DoctorCheck::skipped(NAME, format!("not started: {cause}"))),
    };
    let info = start_interpreter(program, scripts, confine.as_ref(), &run.cancellation);
    match run.cancellation.check() {
        Err(stop @ StopReason::Deadline) => return Ok(DoctorCheck::from_error(NAME, &stop.into())),
        checked => checked?,
    }
    let info = match info {
        Ok(info) => info,
        Err(fault) => return Ok(lacking(&fault.message, fault.fix.as_deref().unwrap_or_default())),
    };
    let shown = program.display();
    let took = milliseconds(info.duration);
    let place = if confine.is_some() { " in the sandbox" } else { "" };
    let message = format!("{shown}, Python {}, starts in {took} ms{place}", info.version);
    let is_indirect =
        program.canonicalize().ok() != Path::new(&info.executable).canonicalize().ok();
    let check = if !info.version.starts_with("3.") {
        lacking(&format!("{shown} is Python {}, not Python 3", info.version), PYTHON_FIX)
    } else if info.duration > limits::PYTHON_START_SLOW && is_indirect {
        let fix = format!("set SCRIPT_PYTHON={}, which starts directly", info.executable);
        DoctorCheck::warning(NAME, format!("{message}, which delays every script"), fix)
    } else {
        DoctorCheck::ok(NAME, message)
    };
    let check = check.with_detail("program", program.to_string_lossy());
    let check = check.with_detail("executable", info.executable);
    Ok(check.with_detail("version", info.version).with_detail("start_ms", took))
}

/// Starts the interpreter, a second time if it is slow: its files may not have been cached.
fn start_interpreter(
    program: &Path,
    scripts: &ScriptSettings,
    confine: Option<&Restrictions>,
    cancellation: &Cancellation,
) -> std::result::Result<InterpreterInfo, Fault> {
    match query_interpreter(program, scripts, confine, cancellation) {
        Ok(info) if info.duration > limits::PYTHON_START_SLOW => {
            query_interpreter(program, scripts, confine, cancellation)
        }
        result => result,
    }
}

/// Starts the interpreter like a script, in the sandbox if it is on, and reads its version.
fn query_interpreter(
    program: &Path,
    scripts: &ScriptSettings,
    confine: Option<&Restrictions>,
    cancellation: &Cancellation,
) -> std::result::Result<InterpreterInfo, Fault> {
    let fix = confine.map_or(PYTHON_FIX, |_| SANDBOX_FIX);
    let fault = |cause: String| Fault::new(format!("{} {cause}", program.display()), fix);
    let question = InterpreterQuery {
        source: VERSION_SCRIPT,
        stdin: b"",
        environment: &scripts.environment,
        limit: limits::PYTHON_START_TIMEOUT,
        output_limits: CaptureLimits::halves(limits::PIPE_READ_BYTES),
        restrictions: confine.cloned(),
    };
    let outcome = question.run(program, cancellation);
    let outcome = outcome.map_err(|error| {
        guardian_fault(&error).unwrap_or_else(|| fault(format!("cannot be started: {error}")))
    })?;
    let (stdout, stderr) = (outcome.stdout.text(), outcome.stderr.text());
    let lines: Vec<&str> = stdout.lines().collect();
    match (outcome.exit, lines.as_slice()) {
        _ if outcome.timed_out => {
            let limit = limits::PYTHON_START_TIMEOUT.as_secs();
            Err(fault(format!("does not start within {limit} s")))
        }
        (ProcessExit::Exited(0), [.., executable, version]) => Ok(InterpreterInfo {
            executable: (*executable).into(),
            version: one_line(version, limits::QUOTED_BYTES),
            duration: outcome.duration,
        }),
        _ => {
            let words = stderr.lines().last().unwrap_or("it prints nothing");
            let words = one_line(words, limits::QUOTED_BYTES);
            Err(fault(format!("is not a working Python: {words}")))
        }
    }
}
