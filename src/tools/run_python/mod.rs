//! `run_python_script`: runs Python that the model wrote, or a script of the skill, in the
//! skill's folder.
//!
//! `world/process` controls the process (session, time limit, output); this module adds what is
//! particular to Python scripts of skills.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::ScriptSettings;
use crate::limits;
use crate::skills::Skill;
use crate::skills::changes::SkillsSnapshot;
use crate::skills::python::Interpreter;
use crate::text::{self, shell_quoted};
use crate::tool::{Effects, ToolResult};
use crate::tools::consent::{ConsentKind, ConsentRequest, ConsentSection};
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};
use crate::world::cancellation::StopReason;
use crate::world::capture::CaptureLimits;
use crate::world::process::{Leftovers, ProcessJob, run};
use crate::world::scratch::Scratch;

mod module;
mod report;
mod run_sandbox;
mod source;

use report::ScriptRun;
use run_sandbox::RunSandbox;
use source::{SAFE_PATH, ScriptSource};

/// The arguments of a call: the source of a script, or the path of one of the skill.
#[derive(Deserialize)]
struct RunPythonArguments {
    skill_name: String,
    script: Option<String>,
    file_path: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    stdin: String,
    timeout_seconds: Option<i64>,
}

/// The tool `run_python_script`.
pub(super) struct RunPython;

impl Tool for RunPython {
    fn name(&self) -> &'static str {
        "run_python_script"
    }

    fn description(&self) -> &'static str {
        "Run Python in a skill's folder: either your own source (`script`) or one of the skill's \
         scripts (`file_path` with `args`). Print what you need to see."
    }

    fn title(&self) -> &'static str {
        "Run Python in a skill"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "skill_name": {"type": "string"},
                "script": {"type": "string"},
                "file_path": {"type": "string"},
                "args": {"type": "array", "items": {"type": "string"}},
                "stdin": {"type": "string"},
                "timeout_seconds": {"type": "integer"}
            },
            "required": ["skill_name"],
        })
    }

    fn output(&self) -> Option<Value> {
        Some(json!({
            "type": "object",
            "properties": {
                "skill_name": {"type": "string"},
                "returncode": {"type": "integer"},
                "stdout": {"type": "string"},
                "stderr": {"type": "string"},
                "timed_out": {"type": "boolean"},
                "duration_ms": {"type": "integer"},
                "interpreter": {"type": "string"},
                "truncated": {"type": "boolean"},
                "error": {"type": "string"},
                "hint": {"type": "string"},
            },
            "required": [
                "skill_name", "returncode", "stdout", "stderr", "timed_out", "duration_ms",
            ],
        }))
    }

    fn effects(&self, context: &ToolContext<'_>) -> Effects {
        let is_confined = context.scripts.is_some_and(|scripts| scripts.sandbox.is_some());
        Effects { is_open_world: !is_confined, starts_programs: true, ..Effects::UNKNOWN }
    }

    fn is_offered(&self, context: &ToolContext<'_>, has_skills: bool) -> bool {
        has_skills
            && context.scripts.is_some_and(|scripts| {
                Interpreter::without_venv(scripts).is_ok() || context.skills.has_any_venv()
            })
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let arguments: RunPythonArguments = arguments.parse()?;
        let what = match arguments.file_path.as_deref() {
            None | Some("") => arguments.script.clone().unwrap_or_default(),
            Some(path) => format!("{path} {}", arguments.args.join(" ")),
        };
        let summary = format!("{}: {what}", arguments.skill_name);
        Ok(PreparedCall::new(summary, move |context| {
            run_script(&arguments, context).unwrap_or_else(ToolResult::failure)
        }))
    }
}

fn run_script(
    arguments: &RunPythonArguments,
    context: &ToolContext<'_>,
) -> Result<ToolResult, String> {
    let scripts = context
        .scripts
        .ok_or("scripts are switched off (--no-scripts): answer without running any")?;
    let skill = &context.skills.open(&arguments.skill_name)?;
    let source = &ScriptSource::read(arguments, skill)?;
    let python = &Interpreter::for_skill(skill, scripts).map_err(|error| error.fault)?;
    let limit = time_limit(arguments.timeout_seconds, scripts)?;
    let consent = consent_request(skill, source, python, arguments).obtain(context)?;
    let script = ReadyScript { skill, source, python, limit, arguments, scripts, context };
    let result = script.run().unwrap_or_else(ToolResult::failure);
    Ok(ToolResult { consent, ..result })
}

/// The question whether this script may run.
fn consent_request(
    skill: &Skill,
    source: &ScriptSource<'_>,
    python: &Interpreter,
    arguments: &RunPythonArguments,
) -> ConsentRequest {
    let quoted_words = arguments.args.iter().map(|word| shell_quoted(Path::new(word)));
    let words = quoted_words.collect::<Vec<_>>().join(" ");
    let script = String::from_utf8_lossy(&source.bytes);
    let input = (!arguments.stdin.is_empty()).then(|| ConsentSection {
        short: Some(format!("input: {}", text::counted(arguments.stdin.len(), "byte"))),
        ..ConsentSection::new("input", &arguments.stdin)
    });
    let [command, script] = match &source.path {
        None => [
            (!words.is_empty()).then(|| ConsentSection::new("arguments", words)),
            Some(ConsentSection::new("script", script)),
        ],
        Some(path) => [
            Some(ConsentSection::new(
                "command",
                format!("{} {words}", shell_quoted(Path::new(path))),
            )),
            Some(ConsentSection {
                short: Some(String::new()),
                ..ConsentSection::new(&format!("script {path}"), script)
            }),
        ],
    };
    ConsentRequest {
        kind: ConsentKind::Script,
        head: format!(
            "a script wants to run in the skill `{}`, by {}",
            skill.name,
            python.program.display()
        ),
        sections: [command, input, script].into_iter().flatten().collect(),
    }
}

fn time_limit(seconds: Option<i64>, scripts: &ScriptSettings) -> Result<Duration, String> {
    match seconds.map(|seconds| (seconds, u64::try_from(seconds))) {
        None => Ok(scripts.limit),
        Some((_, Ok(seconds))) if seconds > 0 => {
            Ok(Duration::from_secs(seconds).min(scripts.limit))
        }
        Some((seconds, _)) => Err(format!("`timeout_seconds` must be 1 or more, not {seconds}")),
    }
}

/// Returns the script's arguments, or the reason why the kernel would refuse them.
fn checked_arguments(words: &[String]) -> Result<impl Iterator<Item = OsString>, String> {
    let is_too_long = |word: &String| word.len() >= limits::SCRIPT_ARGUMENT_BYTES;
    if words.iter().any(is_too_long)
        || words.iter().map(|word| word.len() + 1).sum::<usize>() > limits::SCRIPT_ARGUMENTS_BYTES
    {
        return Err(not_run("its arguments are too long", "give them through `stdin`"));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err(not_run("its arguments", "they contain a NUL character"));
    }
    Ok(words.iter().map(OsString::from))
}

fn not_run(what: &str, cause: impl fmt::Display) -> String {
    format!("the script could not be run: {what}: {cause}")
}

/// A script that may run.
struct ReadyScript<'c> {
    skill: &'c Skill,
    source: &'c ScriptSource<'c>,
    python: &'c Interpreter,
    limit: Duration,
    arguments: &'c RunPythonArguments,
    scripts: &'c ScriptSettings,
    context: &'c ToolContext<'c>,
}

impl ReadyScript<'_> {
    fn run(&self) -> Result<ToolResult, String> {
        let (skill, python, context) = (self.skill, self.python, self.context);
        let scratch = Scratch::new(&self.scripts.temporary_folder)
            .map_err(|error| not_run("no temporary folder (set TMPDIR)", error))?;
        let mut command = (self.source.write_files(&scratch, &skill.path))
            .map_err(|error| not_run("its source could not be written", error))?;
        command.extend(checked_arguments(&self.arguments.args)?);
        let folders = self.writable_folders();
        let before = SkillsSnapshot::capture(skill, &folders, scratch.path())
            .map_err(|error| not_run("its temporary folder was deleted", error))?;
        if let Err(StopReason::Interrupted(_)) = context.cancellation.check() {
            return Err("interrupted by the user".into());
        }
        let limit = context.cancellation.capped_by_deadline(self.limit);
        let sandbox =
            RunSandbox::prepare(skill, python, self.scripts, context.skills, &scratch, limit)
                .map_err(|cause| format!("the script was not run: {cause}"))?;
        let keep_leftovers = self.scripts.keep_leftovers;
        let job = ProcessJob {
            program: &python.program,
            args: &command,
            folder: &skill.path,
            environment: &self.environment(&sandbox),
            stdin: self.arguments.stdin.as_bytes(),
            limit,
            leftovers: if keep_leftovers { Leftovers::Keep } else { Leftovers::Kill },
            output_limits: CaptureLimits::halves(limits::OUTPUT_BYTES),
            interrupt: &context.cancellation.interrupt,
            scratch: Some(&scratch),
            restrictions: sandbox.restrictions.clone(),
            event_source: context.event_source,
        };
        let outcome = run(&job)
            .map_err(|error| not_run("no Python", python.start_error(skill, &error).fault))?;
        let ran = ScriptRun {
            skill,
            file: self.source.path.as_deref(),
            python,
            limit: (limit == self.limit).then_some(limit),
            scripts: self.scripts,
            source: &String::from_utf8_lossy(&self.source.bytes),
            sandbox: &sandbox,
            changes: before.changes(skill, &folders),
            outcome: &outcome,
        };
        Ok(ToolResult {
            script_source: self.source.skill_script_text(),
            ..ran.result(context.secrets)
        })
    }

    /// Returns the skills folders in which the script may write.
    fn writable_folders(&self) -> Vec<PathBuf> {
        let folders = self.context.skills.folders().iter();
        let mut folders: Vec<PathBuf> = folders.map(|folder| folder.path.clone()).collect();
        if let Some(confinement) = &self.scripts.sandbox {
            let granted = |folder: &PathBuf| {
                let mut granted = confinement.write.iter();
                granted.any(|path| path.starts_with(folder) || folder.starts_with(path))
            };
            folders.retain(granted);
        }
        folders
    }

    fn environment(&self, sandbox: &RunSandbox) -> Vec<(OsString, OsString)> {
        let mut environment = self.python.script_environment(self.skill, self.scripts);
        sandbox.set_variables(&mut environment, self.scripts);
        let (name, value) = SAFE_PATH;
        if self.scripts.variable(name).is_none_or(OsStr::is_empty) {
            environment.retain(|(known, _)| known != name);
            environment.push((name.into(), value.into()));
        }
        environment
    }
}
