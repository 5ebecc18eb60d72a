//! The result of a script or a command: a text for the model, an object for programs, hints.

use std::time::Duration;

use serde::Serialize;

use crate::tools::hints::{HintRequest, RunKind, StartFolder, hints, left_in_skill, warning};
use crate::tools::plain_path;
use crate::tools::program::run_sandbox::RunSandbox;
use crate::tools::program::{ProgramKind, ProgramRun};
use base::limits;
use base::text::{self, one_line_name};
use base::tool::{Action, CommandExit, ScriptExit, ToolResult, milliseconds};
use host::cancellation::StopReason;
use host::capture::Capture;
use host::process::{ProcessExit, ProcessOutcome};
use skills::changes::SkillChanges;
use skills::python::Interpreter;

/// The result as an object, for records and other programs.
#[derive(Serialize)]
struct ReportObject<'r> {
    skill_name: Option<&'r str>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_in_skill: Vec<String>,
}

/// A program that has run.
pub(super) struct ProgramReport<'r> {
    /// The run.
    pub run: &'r ProgramRun<'r>,
    /// The program's time limit; `None` if the run's deadline came first.
    pub limit: Option<Duration>,
    /// The sandbox in which it ran.
    pub sandbox: &'r RunSandbox,
    /// Files that it changed in its skill's folder.
    pub changes: SkillChanges,
    /// The process's exit and output.
    pub outcome: &'r ProcessOutcome,
}

impl ProgramReport<'_> {
    /// Creates the result for the model and the user. The output is masked here, where the places
    /// of its cuts are known.
    pub(super) fn result(&self) -> ToolResult {
        let (run, outcome) = (self.run, self.outcome);
        let secrets = run.context.secrets;
        let returncode = match outcome.exit {
            ProcessExit::Exited(code) => code,
            ProcessExit::Signaled(signal) => -signal,
            ProcessExit::Unknown => -libc::SIGKILL,
        };
        let (stdout, stderr) = (outcome.stdout.masked(secrets), outcome.stderr.masked(secrets));
        let truncated = outcome.stdout.is_truncated() || outcome.stderr.is_truncated();
        let mut hints = self.hints(&stdout, &stderr);
        if truncated {
            hints.push(
                "a part in the middle is left out: print less, or write it to a file and read that"
                    .into(),
            );
        }
        if outcome.timed_out && self.limit.is_some() {
            hints.push("the user can allow more time with --script-timeout".into());
        }
        let is_of_venv =
            |python: &Interpreter| python.venv.is_some() && python.program == run.program;
        let names_program =
            matches!(run.kind, ProgramKind::Script { .. }) && !run.python.is_some_and(is_of_venv);
        let object = ReportObject {
            skill_name: run.skill.map(|skill| skill.name.as_str()),
            returncode,
            stdout,
            stderr,
            timed_out: outcome.timed_out,
            duration_ms: milliseconds(outcome.duration),
            interpreter: names_program.then(|| run.program.display().to_string()),
            truncated: truncated.then_some(true),
            error: self.error(),
            hint: (!hints.is_empty()).then(|| hints.join("; ")),
            left_in_skill: left_in_skill(&self.changes),
        };
        ToolResult {
            summary: object.summary(outcome.stdout.total_bytes() + outcome.stderr.total_bytes()),
            content: self.text(&object, &hints),
            untrusted: Some(format!("{}\n{}", object.stdout, object.stderr)),
            ok: returncode == 0 && object.error.is_none(),
            // A structure of strings and numbers always has a JSON form.
            object: serde_json::to_string(&object).ok(),
            warning: run.skill.and_then(|skill| warning(skill, &self.changes)),
            action: Some(self.action(returncode)),
            ..ToolResult::default()
        }
    }

    fn hints(&self, stdout: &str, stderr: &str) -> Vec<String> {
        let run = self.run;
        hints(&HintRequest {
            kind: match run.kind {
                ProgramKind::Script { file: Some(_) } => RunKind::File,
                ProgramKind::Script { file: None } => RunKind::Source,
                ProgramKind::Command(_) => RunKind::Command,
            },
            skill: run.skill,
            python: run.python,
            scripts: run.scripts,
            skills: run.context.skills,
            start_folder: run.start,
            stdout,
            stderr,
            source: Some(run.source),
            failed: self.outcome.exit != ProcessExit::Exited(0),
            left_behind: self.outcome.left_behind,
            keep_leftovers: run.scripts.keep_leftovers,
            changes: Some(&self.changes),
            sandbox_advice: self.sandbox.advice_on_refusal(run, stderr),
            failed_before: run.context.history.failed_before.get(),
        })
    }

    fn action(&self, returncode: i32) -> Action {
        match self.run.kind {
            ProgramKind::Script { file } => Action::RanScript(ScriptExit {
                skill: self.run.skill.map(|skill| skill.name.clone()),
                file: file.map(plain_path),
                returncode,
            }),
            ProgramKind::Command(command) => {
                Action::RanCommand(CommandExit { command: command.to_string(), returncode })
            }
        }
    }

    /// The result as the model reads it: how it ended and where it ran, hints, and both streams.
    fn text(&self, object: &ReportObject<'_>, hints: &[String]) -> String {
        let end = object.error.clone().unwrap_or_else(|| exit_words(object.returncode));
        let folder = match self.run.start {
            StartFolder::Skill => "the skill's folder".to_string(),
            StartFolder::User => one_line_name(&self.run.scripts.user_folder.to_string_lossy()),
        };
        let meant = self.run.meant;
        let mut text = format!("{end}, {} ms, in {folder}{meant}\n", object.duration_ms);
        for hint in hints {
            text.push_str(&format!("hint: {}\n", text::one_line(hint, limits::HINT_BYTES)));
        }
        let stderr = without_library_frames(&object.stderr);
        let is_shorter = stderr.len() < object.stderr.len();
        let kept = |stream: &Capture| stream.is_truncated().then(|| stream.kept_bytes());
        let (out, err) = (&self.outcome.stdout, &self.outcome.stderr);
        let streams = [
            ("stdout", &object.stdout, out, kept(out)),
            ("stderr", &stderr, err, if is_shorter { Some(stderr.len()) } else { kept(err) }),
        ];
        for (name, shown, stream, kept) in streams {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            let kept = kept.map(|bytes| format!(", {bytes} shown"));
            let (total, kept) = (stream.total_bytes(), kept.unwrap_or_default());
            text.push_str(&format!("--- {name} ({total} bytes{kept})\n{shown}"));
        }
        text
    }

    /// Why the program did not end by itself, or its output is incomplete.
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
            let noun = self.run.noun();
            format!("the {noun} killed its guardian process; everything that it started was killed")
        } else if outcome.is_output_incomplete {
            "its output could not be read to the end".into()
        } else {
            return None;
        };
        Some(error)
    }
}

/// A text without the frames of libraries in its Python tracebacks, which a model does not change.
/// Incomplete tracebacks stay as they are.
fn without_library_frames(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        kept.push_str(line);
        if line != "Traceback (most recent call last):\n" {
            continue;
        }
        let mut frames = Vec::new();
        while let Some(frame) = lines.next_if(|line| line.starts_with("  ")) {
            frames.push(frame);
        }
        let is_whole = frames.first().is_some_and(|it| it.starts_with("  File \""))
            && lines.peek().is_some_and(|line| names_exception(line));
        let mut is_library = false;
        frames.retain(|line| {
            if let Some(path) = line.strip_prefix("  File \"") {
                is_library = is_whole
                    && path.contains(", in ")
                    && LIBRARIES.iter().any(|place| path.contains(place));
            }
            !is_library
        });
        kept.extend(frames);
    }
    kept
}

/// Parts of the paths of libraries in a line of a traceback.
const LIBRARIES: [&str; 5] =
    ["/site-packages/", "/dist-packages/", "/lib/python3.", "/lib64/python3.", "<frozen "];

/// Whether a line begins with the name of an exception: `json.JSONDecodeError: Expecting value`.
fn names_exception(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default().trim_end();
    let is_part = |c: char| c.is_alphanumeric() || "_.<>".contains(c);
    name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(is_part)
}

/// How a program ended: `exit 1` or `killed by signal 9`.
fn exit_words(returncode: i32) -> String {
    match returncode {
        0.. => format!("exit {returncode}"),
        signal => format!("killed by signal {}", -signal),
    }
}

impl ReportObject<'_> {
    /// The result in one line for the user.
    fn summary(&self, bytes: u64) -> String {
        let end = match &self.error {
            Some(error) => error.clone(),
            None => exit_words(self.returncode),
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
        if let Some(hint) = &self.hint {
            let hint = text::one_line(hint, limits::HINT_BYTES);
            summary.push_str(&format!("; hint: {hint}"));
        }
        summary
    }
}
