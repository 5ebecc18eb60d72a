//! What `doctor` looks at on this machine: settings and Python.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::doctor::misspelled;
use crate::cli::doctor::remedy::remedy;
use crate::cli::doctor::report::DoctorCheck;
use crate::cli::doctor::skills;
use crate::cli::setup::{ExaminedRun, Run};
use crate::config::{PythonChoice, ScriptSettings};
use crate::error::{Error, ErrorKind, Result};
use crate::instructions;
use crate::limits;
use crate::settings;
use crate::skills::Catalogue;
use crate::skills::python::{Interpreter, InterpreterQuery};
use crate::text::one_line;
use crate::tool::milliseconds;
use crate::world::cancellation::{Cancellation, StopReason};
use crate::world::capture::CaptureLimits;
use crate::world::process::{ProcessExit, Restrictions};

/// Settings that are told also where they are not set.
const REQUIRED: [&str; 3] =
    [settings::LLM_API_KEY, settings::LLM_API_BASE_URL, settings::LLM_MODEL_NAME];

/// Every setting that is set, and everything that is wrong with them.
pub(super) fn configuration(examined: &ExaminedRun) -> DoctorCheck {
    let mut lines = Vec::new();
    let mut rows = Vec::new();
    let mut count = 0;
    let unread = instructions_unread(&examined.run);
    let is_fine = examined.problems.is_empty() && unread.is_none();
    for shown in examined.settings.shown() {
        let name = shown.setting.name;
        match shown.value {
            Some((value, source)) => {
                let value = one_line(&value, limits::SUMMARY_CHARS);
                let (name, origin) = (source.name, source.origin.to_string());
                lines.push(format!("{name}={value} ({origin})"));
                rows.push(json!({"name": name, "value": value, "origin": origin}));
                count += 1;
            }
            None if REQUIRED.contains(&name) => {
                // Where that is a problem, it is told as one.
                if is_fine {
                    lines.push(format!("{name} is not set, and need not be"));
                }
                rows.push(json!({"name": name, "value": null, "origin": null}));
            }
            None => {}
        }
    }
    let is_like_a_key = lines.iter().any(|line| line.contains(settings::LIKE_A_KEY));
    let problems = examined.problems.iter().map(|problem| match remedy(problem) {
        (message, _) if is_like_a_key && message.starts_with(settings::LLM_API_BASE_URL) => {
            (message, SWAPPED)
        }
        told => told,
    });
    let unread = unread.as_ref();
    let unread = unread.map(|error| (error.message(), error.hint().unwrap_or_default()));
    let problems: Vec<(&str, &str)> = problems.chain(unread).collect();
    let mut check = match problems.as_slice() {
        [] => DoctorCheck::ok("configuration", format!("{} set", settings_count(count))),
        [(message, fix), ..] => {
            DoctorCheck::failure("configuration", ErrorKind::Config, *message, *fix)
        }
    };
    if !is_fine && !lines.is_empty() {
        check.add_line("what is set:");
    }
    for line in lines {
        check.add_line(line);
    }
    for (message, fix) in problems.into_iter().skip(1) {
        check.add_failure(ErrorKind::Config, message, fix);
    }
    for file in examined.settings.files() {
        for fault in file.contents.faults.iter().take(limits::NAMES) {
            let (path, line) = (file.path.display(), fault.line);
            check.add_warning(
                format!("skipped {path} line {line}: {}", fault.message),
                format!("correct the line in {path}"),
            );
        }
    }
    for warning in &examined.run.config.warnings {
        let (message, fix) = remedy(warning);
        check.add_warning(message, fix);
    }
    for (message, fix) in misspelled::warnings(&examined.settings) {
        check.add_warning(message, fix);
    }
    check.with("settings", Value::Array(rows))
}

/// Why the file of instructions cannot be used.
fn instructions_unread(run: &Run) -> Option<Error> {
    let path = run.config.prompt_file.as_deref()?;
    instructions::read(path, &run.cancellation).err()
}

const SWAPPED: &str = "what is set there looks like a key: set LLM_API_BASE_URL to the endpoint's address, \
                       and LLM_API_KEY to the key";

fn settings_count(count: usize) -> String {
    match count {
        1 => "1 setting is".into(),
        _ => format!("{count} settings are"),
    }
}

/// What an interpreter tells of itself.
pub(super) struct InterpreterInfo {
    executable: String,
    version: String,
    /// From its start to its end.
    pub duration: Duration,
}

/// What an interpreter of any version is asked.
const VERSION_SCRIPT: &str =
    "import sys; print(sys.executable); print('%d.%d.%d' % tuple(sys.version_info[:3]))";

/// The interpreter for skills without a venv. An error: the run is to stop.
pub(super) fn python(run: &Run, catalogue: &Catalogue) -> Result<DoctorCheck> {
    const NAME: &str = "python";
    let scripts = &run.config.scripts;
    if !run.typed.scripts {
        return Ok(DoctorCheck::skipped(NAME, "--no-scripts: no script is run"));
    }
    if scripts.python == PythonChoice::Off {
        let message = "SCRIPT_PYTHON=off: only skills with a venv run scripts";
        return Ok(DoctorCheck::ok(NAME, message));
    }
    let is_needed = catalogue
        .skills
        .iter()
        .any(|skill| skill.fault.is_none() && skills::venv(run, skill).is_none());
    let lacking = |message: &str, fix: &str| {
        if is_needed {
            DoctorCheck::failure(NAME, ErrorKind::Io, message, fix)
        } else {
            DoctorCheck::warning(NAME, message, fix)
        }
    };
    let python = match Interpreter::without_venv(scripts) {
        Ok(interpreter) => interpreter,
        Err(cause) => {
            let (message, fix) = cause.split_once(": ").unwrap_or((&cause, SET_PYTHON));
            return Ok(lacking(message, fix));
        }
    };
    let program = &python.program;
    let confine = match python.confine(scripts, run.skills.folders(), limits::PYTHON_START) {
        Ok(confine) => confine,
        Err(cause) => return Ok(DoctorCheck::skipped(NAME, format!("not started: {cause}"))),
    };
    let start = || start(program, scripts, confine.clone(), &run.cancellation);
    let told = match start() {
        // It may only be slow because nothing of it was in memory yet.
        Ok(told) if told.duration > limits::PYTHON_START_SLOW => start(),
        told => told,
    };
    match run.cancellation.check() {
        Err(stop @ StopReason::Deadline) => return Ok(DoctorCheck::failed(NAME, &stop.into())),
        checked => checked?,
    }
    let shown = program.display();
    let fix = confine.as_ref().map_or(SET_PYTHON, |_| GRANT);
    let told = match told {
        Ok(told) => told,
        Err(cause) => return Ok(lacking(&format!("{shown} {cause}"), fix)),
    };
    let took = milliseconds(told.duration);
    let message = format!("{shown}, Python {}, starts in {took} ms", told.version);
    let behind = program.canonicalize().ok() != Path::new(&told.executable).canonicalize().ok();
    let check = if !told.version.starts_with("3.") {
        lacking(&format!("{shown} is Python {}, not 3", told.version), SET_PYTHON)
    } else if told.duration > limits::PYTHON_START_SLOW && behind {
        let fix = format!("SCRIPT_PYTHON={} starts without the detour", told.executable);
        DoctorCheck::warning(NAME, format!("{message}, which scripts wait for"), fix)
    } else {
        DoctorCheck::ok(NAME, message)
    };
    let check = check.with("program", program.to_string_lossy());
    let check = check.with("executable", told.executable);
    Ok(check.with("version", told.version).with("start_ms", took))
}

const SET_PYTHON: &str = "set SCRIPT_PYTHON to a Python 3 interpreter";
/// The same for one that does not start in the sandbox.
pub(super) const GRANT: &str =
    "grant what it lacks with SCRIPT_SANDBOX_READ, or set SCRIPT_PYTHON to another interpreter";

/// Starts the interpreter as scripts start, in a sandbox if need be, and lets it tell what it is.
pub(super) fn start(
    program: &Path,
    scripts: &ScriptSettings,
    confine: Option<Restrictions>,
    cancellation: &Cancellation,
) -> std::result::Result<InterpreterInfo, String> {
    let question = InterpreterQuery {
        source: VERSION_SCRIPT,
        stdin: b"",
        environment: &scripts.environment,
        limit: limits::PYTHON_START,
        caps: CaptureLimits::halves(limits::PIPE_READ_BYTES),
        confine,
    };
    let outcome = question.run(program, cancellation)?;
    let (stdout, stderr) = (outcome.stdout.text(), outcome.stderr.text());
    let lines: Vec<&str> = stdout.lines().collect();
    match (outcome.ending, lines.as_slice()) {
        _ if outcome.timed_out => {
            let limit = limits::PYTHON_START.as_secs();
            Err(format!("does not start within {limit} s"))
        }
        (ProcessExit::Exited(0), [.., executable, version]) => Ok(InterpreterInfo {
            executable: (*executable).into(),
            version: one_line(version, limits::QUOTED_BYTES),
            duration: outcome.duration,
        }),
        _ => {
            let words = stderr.lines().last().unwrap_or("it says nothing");
            let words = one_line(words, limits::QUOTED_BYTES);
            Err(format!("is no working Python: {words}"))
        }
    }
}
