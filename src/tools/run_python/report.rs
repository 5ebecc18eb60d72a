//! The result of a script for the model, with hints.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::limits;
use crate::secret::Secrets;
use crate::skills::Skill;
use crate::skills::changes::SkillChanges;
use crate::skills::packages::{known_module, package_of};
use crate::skills::python::{Interpreter, setup_command};
use crate::skills::venv::lacks_listed_requirements;
use crate::text;
use crate::tool::{Action, ScriptExit, ToolResult, milliseconds};
use crate::tools::plain_path;
use crate::tools::run_python::run_sandbox::RunSandbox;
use crate::world::cancellation::StopReason;
use crate::world::process::{ProcessExit, ProcessOutcome};

/// The result as the model reads it.
#[derive(Serialize)]
struct ScriptReport<'r> {
    skill_name: &'r str,
    returncode: i32,
    stdout: String,
    stderr: String,
    timed_out: bool,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interpreter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// A script that has run.
pub(super) struct ScriptRun<'r> {
    /// The script's skill.
    pub skill: &'r Skill,
    /// Its path in the skill; `None` for source that the model wrote.
    pub file: Option<&'r str>,
    /// The interpreter.
    pub python: &'r Interpreter,
    /// The script's time limit; `None` if the run's deadline came first.
    pub limit: Option<Duration>,
    /// Whether processes that it left behind keep running.
    pub keep_leftovers: bool,
    /// The sandbox in which it ran.
    pub sandbox: &'r RunSandbox,
    /// Files that it changed and that affect later runs.
    pub changes: SkillChanges,
    /// The process's exit and output.
    pub outcome: &'r ProcessOutcome,
}

impl ScriptRun<'_> {
    /// Creates the result for the model and the user. The output is masked here, where the places
    /// of its cuts are known.
    pub(super) fn result(&self, secrets: &Secrets) -> ToolResult {
        let (python, outcome) = (self.python, self.outcome);
        let returncode = match outcome.exit {
            ProcessExit::Exited(code) => code,
            ProcessExit::Signaled(signal) => -signal,
            ProcessExit::Unknown => -libc::SIGKILL,
        };
        let stderr = outcome.stderr.masked(secrets);
        let truncated = outcome.stdout.is_truncated() || outcome.stderr.is_truncated();
        let report = ScriptReport {
            skill_name: &self.skill.name,
            returncode,
            hint: hint(self, &stderr),
            stdout: outcome.stdout.masked(secrets),
            stderr,
            timed_out: outcome.timed_out,
            duration_ms: milliseconds(outcome.duration),
            interpreter: python.venv.is_none().then(|| python.program.display().to_string()),
            truncated: truncated.then_some(true),
            error: self.error(),
        };
        let bytes = outcome.stdout.total_bytes() + outcome.stderr.total_bytes();
        ToolResult {
            summary: report.summary(bytes),
            // A structure of strings and numbers always has a JSON form.
            content: serde_json::to_string(&report).unwrap_or_default(),
            ok: report.returncode == 0 && report.error.is_none(),
            warning: warning(self.skill, &self.changes),
            action: Some(Action::RanScript(ScriptExit {
                skill: Some(self.skill.name.clone()),
                file: self.file.map(plain_path),
                returncode,
            })),
            ..ToolResult::default()
        }
    }

    /// Why the script did not end by itself, or its output is incomplete.
    fn error(&self) -> Option<String> {
        let outcome = self.outcome;
        let error = if outcome.interrupted.is_some() {
            "interrupted by the user".into()
        } else if outcome.cancelled {
            StopReason::Cancelled.to_string()
        } else if outcome.timed_out {
            match self.limit {
                Some(limit) => format!("stopped at the time limit of {} s", limit.as_secs()),
                None => "stopped at the time limit of the whole run (--timeout)".into(),
            }
        } else if outcome.exit == ProcessExit::Unknown {
            "the script killed its guardian process; everything that it started was killed".into()
        } else if outcome.is_output_incomplete {
            "its output could not be read to the end".into()
        } else {
            return None;
        };
        Some(error)
    }
}

impl ScriptReport<'_> {
    /// The result in one line for the user.
    fn summary(&self, bytes: u64) -> String {
        let end = match &self.error {
            Some(error) => error.clone(),
            None => format!("exit {}", self.returncode),
        };
        let failed = self.returncode != 0 && !self.stderr.trim().is_empty();
        let excerpt = if failed || self.stdout.trim().is_empty() {
            last_line(&self.stderr)
        } else {
            &self.stdout
        };
        let excerpt = text::one_line(excerpt, limits::SUMMARY_CHARS);
        let colon = if excerpt.is_empty() { "" } else { ": " };
        let mut summary = format!("{end}, {bytes} bytes, {} ms{colon}{excerpt}", self.duration_ms);
        // The user can act on the hint now.
        if let Some(hint) = self.hint.as_ref().filter(|_| failed) {
            let hint = text::one_line(hint, limits::HINT_BYTES);
            summary.push_str(&format!("; hint: {hint}"));
        }
        summary
    }
}

fn last_line(text: &str) -> &str {
    text.trim_end().rsplit('\n').next().unwrap_or_default()
}

/// Returns the hints: the command that installs a missing module, the limits of the sandbox,
/// processes left behind, and changed files.
fn hint(ran: &ScriptRun<'_>, stderr: &str) -> Option<String> {
    let failed = ran.outcome.exit != ProcessExit::Exited(0);
    let reason = if failed { missing_hint(ran, stderr) } else { None };
    let after = reason.or_else(|| leftovers_hint(ran.outcome.left_behind, ran.keep_leftovers));
    let changed =
        changed_files(&ran.changes).map(|what| format!("{what} while the script ran: {LATER}"));
    let hints: Vec<String> = after.into_iter().chain(changed).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

const LATER: &str = "later runs use what is there now";

/// Names the changed files that affect later runs.
fn changed_files(changes: &SkillChanges) -> Option<String> {
    let own = name_paths(&changes.own).map(|names| format!("{names} of the skill"));
    let whose: Vec<String> = own.into_iter().chain(name_paths(&changes.others)).collect();
    (!whose.is_empty()).then(|| format!("{} changed", whose.join(", and ")))
}

/// Lists the first of these paths, and the number of further ones.
fn name_paths(paths: &[PathBuf]) -> Option<String> {
    let shown = paths.iter().take(limits::CHANGES_NAMED);
    let mut names: Vec<String> =
        shown.map(|path| text::one_line_name(&path.display().to_string())).collect();
    if let Some(more @ 1..) = paths.len().checked_sub(limits::CHANGES_NAMED) {
        names.push(format!("{more} more"));
    }
    let last = names.pop()?;
    Some(match names.as_slice() {
        [] => last,
        _ => format!("{} and {last}", names.join(", ")),
    })
}

/// Returns the same for the user, and notes if not all files were checked.
fn warning(skill: &Skill, changes: &SkillChanges) -> Option<String> {
    let cut = changes.is_cut.then(|| {
        "the skills folders have too many files: not all were checked for changes".to_owned()
    });
    let found = changed_files(changes).map(|what| format!("{what}: {LATER}"));
    let parts: Vec<String> = found.into_iter().chain(cut).collect();
    let list = parts.join("; ");
    (!parts.is_empty()).then(|| format!("while a script of the skill `{}` ran: {list}", skill.name))
}

/// Returns a hint about what a failed script lacked.
fn missing_hint(ran: &ScriptRun<'_>, stderr: &str) -> Option<String> {
    // A module of the skill itself cannot be installed.
    let is_own = |module: &&str| {
        let name = module.split('.').next().unwrap_or(module);
        let path = ran.skill.path.join(name);
        path.is_dir() || path.with_extension("py").is_file()
    };
    match missing_module(stderr).filter(|module| !is_own(module)) {
        Some(module) => Some(install_command(ran.skill, ran.python, module)),
        None => ran.sandbox.advice_on_refusal(stderr).map(str::to_string),
    }
}

fn leftovers_hint(count: u32, keep: bool) -> Option<String> {
    let processes = if count == 1 { "process" } else { "processes" };
    let fate = match (keep, count) {
        (_, 0) => return None,
        (true, 1) => "keeps running (SCRIPT_LEFTOVERS=keep)",
        (true, _) => "keep running (SCRIPT_LEFTOVERS=keep)",
        (false, 1) => "was ended",
        (false, _) => "were ended",
    };
    Some(format!("{count} {processes} that the script left behind {fate}"))
}

/// Returns the missing module if the last line names one.
fn missing_module(stderr: &str) -> Option<&str> {
    let line = last_line(stderr);
    // Scripts that catch the error print only its message.
    let name = line.split_once("No module named '")?.1.split('\'').next()?;
    Some(name).filter(|name| !known_module(name).is_empty())
}

/// Returns the hint with the command that installs a module. The package of a module that is not
/// well known is not guessed.
fn install_command(skill: &Skill, python: &Interpreter, module: &str) -> String {
    let place = match &python.venv {
        Some(_) => " in the skill's venv",
        None => "",
    };
    let missing = format!("`{}` is not installed{place}", known_module(module));
    let is_listed = match &python.venv {
        Some(venv) => lacks_listed_requirements(skill, venv),
        None => skill.root.file("requirements.txt").is_ok(),
    };
    let command = |packages: &[&str]| setup_command(&skill.address, packages);
    match package_of(module) {
        Some(package) => format!("{missing}: `{}` installs it", command(&[package])),
        None if is_listed => format!(
            "{missing}: `{}` installs what the skill's requirements.txt lists",
            command(&[])
        ),
        None => format!(
            "{missing}: `{}` installs it, where PACKAGE is the package that provides it",
            command(&["PACKAGE"])
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_module_is_named_by_its_package() {
        let trace = "Traceback (most recent call last):\n  File \"x\"\nModuleNotFoundError: No module named 'PIL.Image'\n";
        assert_eq!(missing_module(trace), Some("PIL.Image"));
        assert_eq!(
            missing_module("ModuleNotFoundError: No module named 'a'\nbut it was caught\n"),
            None
        );
    }
}
