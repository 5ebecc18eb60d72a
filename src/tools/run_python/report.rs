//! The result of a script for the model, with hints.

use std::time::Duration;

use serde::Serialize;

use crate::config::ScriptSettings;
use crate::limits;
use crate::secret::Secrets;
use crate::skills::Skill;
use crate::skills::changes::SkillChanges;
use crate::skills::python::Interpreter;
use crate::text;
use crate::tool::{Action, ScriptExit, ToolResult, milliseconds};
use crate::tools::hints::{HintRequest, RunKind, StartFolder, hints, warning};
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
    /// The settings of scripts.
    pub scripts: &'r ScriptSettings,
    /// The source.
    pub source: &'r str,
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
        let (stdout, stderr) = (outcome.stdout.masked(secrets), outcome.stderr.masked(secrets));
        let truncated = outcome.stdout.is_truncated() || outcome.stderr.is_truncated();
        let report = ScriptReport {
            skill_name: &self.skill.name,
            returncode,
            hint: self.hint(&stdout, &stderr),
            stdout,
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
            warning: warning(Some(self.skill), &self.changes),
            action: Some(Action::RanScript(ScriptExit {
                skill: Some(self.skill.name.clone()),
                file: self.file.map(plain_path),
                returncode,
            })),
            ..ToolResult::default()
        }
    }

    fn hint(&self, stdout: &str, stderr: &str) -> Option<String> {
        let hints = hints(&HintRequest {
            kind: if self.file.is_some() { RunKind::File } else { RunKind::Source },
            skill: Some(self.skill),
            python: Some(self.python),
            scripts: self.scripts,
            start_folder: StartFolder::Skill,
            stdout,
            stderr,
            source: Some(self.source),
            failed: self.outcome.exit != ProcessExit::Exited(0),
            left_behind: self.outcome.left_behind,
            keep_leftovers: self.scripts.keep_leftovers,
            changes: Some(&self.changes),
            sandbox_advice: self.sandbox.advice_on_refusal(stderr),
            offers_commands: false,
            failed_before: false,
        });
        (!hints.is_empty()).then(|| hints.join("; "))
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
            text::last_line(&self.stderr)
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
