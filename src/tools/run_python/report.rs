//! What came of a script, as the model reads it, with the hint that helps.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::limits;
use crate::secret::Secrets;
use crate::skills::Skill;
use crate::skills::changes::SkillChanges;
use crate::skills::packages::{known_part, package_of};
use crate::skills::python::{Interpreter, setup_command};
use crate::skills::setup::lacks_listed;
use crate::text;
use crate::tool::{ToolResult, milliseconds};
use crate::tools::run_python::run_sandbox::RunSandbox;
use crate::world::cancellation::StopReason;
use crate::world::process::{ProcessExit, ProcessOutcome};

/// The result as the model reads it.
#[derive(Debug, Serialize)]
pub(super) struct ScriptReport<'r> {
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
    #[serde(skip)]
    bytes: u64,
    #[serde(skip)]
    warning: Option<String>,
}

/// A script that has run.
pub(super) struct ScriptRun<'r> {
    /// Whose it is.
    pub skill: &'r Skill,
    /// What ran it.
    pub python: &'r Interpreter,
    /// Its limit, or `None` for what was left of the run's time.
    pub limit: Option<Duration>,
    /// What it left behind lives on.
    pub keep: bool,
    /// The sandbox that it ran in.
    pub confined: &'r RunSandbox,
    /// What it changed that decides about later runs.
    pub changes: SkillChanges,
    /// How it ended, and what it said.
    pub outcome: &'r ProcessOutcome,
}

impl<'r> ScriptReport<'r> {
    /// What came of it. What it printed is masked here, where its cuts are known.
    pub(super) fn of(ran: &ScriptRun<'r>, secrets: &Secrets) -> ScriptReport<'r> {
        let (skill, python, outcome) = (ran.skill, ran.python, ran.outcome);
        let returncode = match outcome.ending {
            ProcessExit::Exited(code) => code,
            ProcessExit::Signaled(signal) => -signal,
            ProcessExit::Lost => -libc::SIGKILL,
        };
        let stderr = outcome.stderr.masked(secrets);
        let error = if outcome.interrupted.is_some() {
            Some("interrupted by the user".to_string())
        } else if outcome.dismissed {
            Some(StopReason::Dismissed.to_string())
        } else if outcome.timed_out {
            Some(match ran.limit {
                Some(limit) => format!("stopped at the time limit of {} s", limit.as_secs()),
                None => "stopped at the time limit of the whole run (--timeout)".into(),
            })
        } else if outcome.ending == ProcessExit::Lost {
            Some(
                "the script ended the process that watches over it; all that it started was killed"
                    .into(),
            )
        } else if outcome.unread {
            Some("its output could not be read to the end".into())
        } else {
            None
        };
        let truncated = outcome.stdout.truncated() || outcome.stderr.truncated();
        ScriptReport {
            skill_name: &skill.name,
            returncode,
            hint: hint(ran, &stderr),
            warning: warning(skill, &ran.changes),
            stdout: outcome.stdout.masked(secrets),
            stderr,
            timed_out: outcome.timed_out,
            duration_ms: milliseconds(outcome.duration),
            interpreter: python.venv.is_none().then(|| python.program.display().to_string()),
            truncated: truncated.then_some(true),
            error,
            bytes: outcome.stdout.total_bytes() + outcome.stderr.total_bytes(),
        }
    }

    /// The same as a tool's result.
    pub(super) fn into_result(self) -> ToolResult {
        let ok = self.returncode == 0 && self.error.is_none();
        let end = match &self.error {
            Some(error) => error.clone(),
            None => format!("exit {}", self.returncode),
        };
        let failed = self.returncode != 0 && !self.stderr.trim().is_empty();
        let said = if failed || self.stdout.trim().is_empty() {
            last_line(&self.stderr)
        } else {
            &self.stdout
        };
        let said = text::one_line(said, limits::SUMMARY_CHARS);
        let colon = if said.is_empty() { "" } else { ": " };
        let (bytes, took) = (self.bytes, self.duration_ms);
        let mut summary = format!("{end}, {bytes} bytes, {took} ms{colon}{said}");
        // What the model may pass on, the user can do now.
        if let Some(hint) = self.hint.as_ref().filter(|_| failed) {
            let hint = text::one_line(hint, limits::HINT_BYTES);
            summary.push_str(&format!("; hint: {hint}"));
        }
        ToolResult {
            summary,
            // A structure of strings and numbers always has a JSON form.
            content: serde_json::to_string(&self).unwrap_or_default(),
            ok,
            document_bytes: None,
            image: None,
            ran: None,
            allowed: None,
            warning: self.warning,
        }
    }
}

fn last_line(text: &str) -> &str {
    text.trim_end().rsplit('\n').next().unwrap_or_default()
}

/// What would help: the command that installs a missing module, the walls of the
/// sandbox, a word about what was left running or changed.
fn hint(ran: &ScriptRun<'_>, stderr: &str) -> Option<String> {
    let failed = ran.outcome.ending != ProcessExit::Exited(0);
    let reason = if failed { reason(ran, stderr) } else { None };
    let after = reason.or_else(|| left_behind(ran.outcome.left_behind, ran.keep));
    let changed = changed(&ran.changes).map(|what| format!("{what} while the script ran: {LATER}"));
    let hints: Vec<String> = after.into_iter().chain(changed).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

const LATER: &str = "later runs go by what is there now";

/// What decides about later runs and has changed.
fn changed(changes: &SkillChanges) -> Option<String> {
    let own = named(&changes.own).map(|names| format!("{names} of the skill"));
    let whose: Vec<String> = own.into_iter().chain(named(&changes.others)).collect();
    (!whose.is_empty()).then(|| format!("{} changed", whose.join(", and ")))
}

/// The first of these paths, and how many more there are.
fn named(paths: &[PathBuf]) -> Option<String> {
    let shown = paths.iter().take(limits::CHANGES_NAMED);
    let mut names: Vec<String> =
        shown.map(|path| text::one_name(&path.display().to_string())).collect();
    if let Some(more @ 1..) = paths.len().checked_sub(limits::CHANGES_NAMED) {
        names.push(format!("{more} more"));
    }
    let last = names.pop()?;
    Some(match names.as_slice() {
        [] => last,
        _ => format!("{} and {last}", names.join(", ")),
    })
}

/// The same for the person, who is told as well where not everything was looked at.
fn warning(skill: &Skill, changes: &SkillChanges) -> Option<String> {
    let cut = changes.is_cut.then(|| {
        "the skills folders have too many files: not all were looked at for changes".to_owned()
    });
    let found = changed(changes).map(|what| format!("{what}: {LATER}"));
    let parts: Vec<String> = found.into_iter().chain(cut).collect();
    let said = parts.join("; ");
    (!parts.is_empty()).then(|| format!("while a script of the skill `{}` ran: {said}", skill.name))
}

/// What a script that failed lacked.
fn reason(ran: &ScriptRun<'_>, stderr: &str) -> Option<String> {
    // What lies in the skill is not installed by anybody.
    let is_own = |module: &&str| {
        let name = module.split('.').next().unwrap_or(module);
        let path = ran.skill.path.join(name);
        path.is_dir() || path.with_extension("py").is_file()
    };
    match missing_module(stderr).filter(|module| !is_own(module)) {
        Some(module) => Some(install_command(ran.skill, ran.python, module)),
        None => ran.confined.advice_for(stderr).map(str::to_string),
    }
}

fn left_behind(count: u32, keep: bool) -> Option<String> {
    let processes = if count == 1 { "process" } else { "processes" };
    let fate = match (keep, count) {
        (_, 0) => return None,
        (true, 1) => "lives on (SCRIPT_LEFTOVERS=keep)",
        (true, _) => "live on (SCRIPT_LEFTOVERS=keep)",
        (false, 1) => "was ended",
        (false, _) => "were ended",
    };
    Some(format!("{count} {processes} that the script left behind {fate}"))
}

/// The module that is missing, where the last line says so.
fn missing_module(stderr: &str) -> Option<&str> {
    let line = last_line(stderr);
    // Scripts that catch it quote the same words.
    let name = line.split_once("No module named '")?.1.split('\'').next()?;
    Some(name).filter(|name| !known_part(name).is_empty())
}

/// The one command that installs it. What package brings a module that is not
/// well known is not guessed: the skill's own list may tell, or its author.
fn install_command(skill: &Skill, python: &Interpreter, module: &str) -> String {
    let place = match &python.venv {
        Some(_) => " in the skill's venv",
        None => "",
    };
    let missing = format!("`{}` is not installed{place}", known_part(module));
    let is_listed = match &python.venv {
        Some(venv) => lacks_listed(skill, venv),
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
            "{missing}: `{}` installs it, with the package that brings it for PACKAGE",
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
