//! A script or a command that a tool runs: its process, sandbox and environment, and the check
//! for files of skills that it changed. `host/process` controls the process.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use serde_json::{Value, json};

use crate::tools::ToolContext;
pub(super) use crate::tools::hints::StartFolder;
use base::error::Fault;
use base::limits;
use base::tool::{Effects, ToolResult};
use host::cancellation::StopReason;
use host::capture::CaptureLimits;
use host::confined::identity;
use host::process::{Leftovers, ProcessJob, run};
use host::scratch::Scratch;
use skills::ScriptSettings;
use skills::Skill;
use skills::changes::SkillSnapshot;
use skills::python::{Interpreter, guardian_fault, script_environment};

mod report;
mod run_sandbox;

use report::ProgramReport;
use run_sandbox::RunSandbox;

/// The suffixes of files, and the programs that run them, the first that is there.
pub(super) const LANGUAGES: [(&[&str], &[&str]); 5] = [
    (&["sh", "bash"], &["bash", "sh"]),
    (&["js", "mjs", "cjs"], &["node", "bun", "deno"]),
    (&["ts"], &["tsx", "bun", "deno", "node"]),
    (&["rb"], &["ruby"]),
    (&["pl"], &["perl"]),
];

/// Suffixes of Python programs.
pub(super) const PYTHON: [&str; 5] = ["py", "pyw", "pyc", "pyz", "zip"];

/// Whether a file is a script by its suffix. Modules of a package are not.
pub(super) fn is_script(path: &Path) -> bool {
    let suffix = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let others = LANGUAGES.iter().flat_map(|(suffixes, _)| suffixes.iter());
    let is_module = path.file_stem().is_some_and(|name| name == "__init__");
    !is_module && (suffix == PYTHON[0] || others.into_iter().any(|other| *other == suffix))
}

/// Whether a code fence with this language has what a tool can run.
pub(crate) fn runs_language(name: &str) -> bool {
    let python = ["python", "python3", "tool_code"];
    let is_other = |(suffixes, programs): &(&[&str], &[&str])| {
        suffixes.contains(&name) || programs.contains(&name)
    };
    PYTHON[0] == name || python.contains(&name) || LANGUAGES.iter().any(is_other)
}

/// A script or command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramKind<'c> {
    /// A script; `file`: its path in the skill, `None` for source that the model wrote.
    Script {
        /// Path in the skill.
        file: Option<&'c str>,
    },
    /// A command of the model.
    Command(&'c str),
}

/// A program that may run.
pub(super) struct ProgramRun<'c> {
    /// The context of the tool.
    pub context: &'c ToolContext<'c>,
    /// The settings of scripts.
    pub scripts: &'c ScriptSettings,
    /// The skill to which it belongs.
    pub skill: Option<&'c Skill>,
    /// End of the result's first line, about files and skills that the call did not name.
    pub meant: &'c str,
    /// The folder that it starts in.
    pub start: StartFolder,
    /// The interpreter of the skill, or of a script without a skill.
    pub python: Option<&'c Interpreter>,
    /// Its kind.
    pub kind: ProgramKind<'c>,
    /// Its source, for hints.
    pub source: &'c str,
    /// The program's file.
    pub program: &'c Path,
    /// Its arguments.
    pub arguments: &'c [OsString],
    /// Variables that are set only for this program, unless the user has set them.
    pub variables: &'c [(&'c str, &'c str)],
    /// Its standard input.
    pub stdin: &'c str,
    /// Its private folder.
    pub scratch: &'c Scratch,
}

impl ProgramRun<'_> {
    /// Runs the program. The error, for the model, means that it did not run.
    pub(super) fn run(&self) -> Result<ToolResult, String> {
        let (skill, context) = (self.skill, self.context);
        self.scripts.check_user_folder(identity(&self.scripts.user_folder))?;
        let before = skill.map(|skill| SkillSnapshot::capture(skill, self.scratch.path()));
        let before = before
            .transpose()
            .map_err(|error| self.not_run("its temporary folder was deleted", error))?;
        if let Err(StopReason::Interrupted(_)) = context.cancellation.check() {
            return Err("interrupted by the user".into());
        }
        let limit = context.cancellation.capped_by_deadline(self.scripts.limit);
        let sandbox = RunSandbox::prepare(self, limit)
            .map_err(|cause| format!("the {} was not run: {cause}", self.noun()))?;
        let keep_leftovers = self.scripts.keep_leftovers;
        let job = ProcessJob {
            program: self.program,
            args: self.arguments,
            folder: self.start_path(),
            environment: &self.environment(&sandbox),
            stdin: self.stdin.as_bytes(),
            limit,
            leftovers: if keep_leftovers { Leftovers::Keep } else { Leftovers::Kill },
            output_limits: CaptureLimits::halves(context.history.text_bytes(limits::OUTPUT_BYTES)),
            interrupt: &context.cancellation.interrupt,
            scratch: Some(self.scratch),
            restrictions: sandbox.restrictions.clone(),
            event_source: context.event_source,
        };
        let outcome = run(&job).map_err(|error| self.start_error(&error))?;
        let report = ProgramReport {
            run: self,
            limit: (limit == self.scripts.limit).then_some(limit),
            sandbox: &sandbox,
            changes: before.map(|before| before.changes()).unwrap_or_default(),
            outcome: &outcome,
        };
        Ok(report.result())
    }

    /// The path of the folder that it starts in.
    fn start_path(&self) -> &Path {
        match (self.start, self.skill) {
            (StartFolder::Skill, Some(skill)) => &skill.path,
            _ => &self.scripts.user_folder,
        }
    }

    fn noun(&self) -> &'static str {
        match self.kind {
            ProgramKind::Script { .. } => "script",
            ProgramKind::Command(_) => "command",
        }
    }

    fn not_run(&self, what: &str, cause: impl fmt::Display) -> String {
        not_run(self.noun(), what, cause)
    }

    fn cannot_run(&self, cause: impl fmt::Display) -> String {
        format!("the {} could not be run: {cause}", self.noun())
    }

    fn start_error(&self, error: &std::io::Error) -> String {
        let folder = self.start_path();
        if !folder.is_dir() {
            return self.not_run(&format!("the folder {}", folder.display()), error);
        }
        let python = self.python.filter(|python| python.program == self.program);
        match (guardian_fault(error), python) {
            (Some(fault), _) => self.cannot_run(for_model(&fault)),
            (None, Some(python)) => {
                let fault = python.start_error(self.skill, error).fault;
                self.not_run("no Python", for_model(&fault))
            }
            (None, None) => self.cannot_run(error),
        }
    }

    fn environment(&self, sandbox: &RunSandbox) -> Vec<(OsString, OsString)> {
        let mut environment = script_environment(self.skill, self.python, self.scripts);
        sandbox.set_variables(&mut environment, self.scripts);
        for (name, value) in self.variables {
            if self.scripts.variable(name).is_none_or(OsStr::is_empty) {
                environment.retain(|(known, _)| known != name);
                environment.push((name.into(), value.into()));
            }
        }
        environment
    }
}

/// Returns the message for the model about a program that could not be started.
pub(super) fn not_run(noun: &str, what: &str, cause: impl fmt::Display) -> String {
    format!("the {noun} could not be run: {what}: {cause}")
}

/// Creates the private folder of a program.
pub(super) fn scratch(scripts: &ScriptSettings, noun: &str) -> Result<Scratch, String> {
    Scratch::new(&scripts.temporary_folder)
        .map_err(|error| not_run(noun, "no temporary folder (set TMPDIR)", error))
}

/// The skill of a call: the one that it names, or else the one whose document was read last; the
/// text is for [`ProgramRun::meant`].
pub(super) fn skill_of_call(
    name: Option<&str>,
    context: &ToolContext<'_>,
) -> Result<(Option<Skill>, String), String> {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        return Ok((Some(context.skills.open(name)?), String::new()));
    }
    let recent = context.history.recent_skill.borrow();
    let skill = recent.as_ref().and_then(|name| context.skills.open(name).ok());
    let meant = skill.as_ref().map(|skill| format!(", with the skill read last: {}", skill.name));
    Ok((skill, meant.unwrap_or_default()))
}

/// A problem that the user has to solve, in a message for the model.
pub(super) fn for_model(fault: &Fault) -> String {
    match &fault.fix {
        Some(fix) => format!("{}; tell the user: {fix}", fault.message),
        None => format!("{}: tell the user", fault.message),
    }
}

/// Returns the arguments of a program, or the reason why the kernel would refuse them, with
/// advice.
pub(super) fn checked_arguments(
    noun: &str,
    words: &[String],
    advice: &str,
) -> Result<Vec<OsString>, String> {
    let is_too_long = |word: &String| word.len() >= limits::SCRIPT_ARGUMENT_BYTES;
    if words.iter().any(is_too_long)
        || words.iter().map(|word| word.len() + 1).sum::<usize>() > limits::SCRIPT_ARGUMENTS_BYTES
    {
        return Err(not_run(noun, "its arguments are too long", advice));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err(not_run(noun, "its arguments", "they contain a NUL character"));
    }
    Ok(words.iter().map(OsString::from).collect())
}

/// The effects of a tool that runs programs.
pub(super) fn effects(context: &ToolContext<'_>) -> Effects {
    let is_confined = context.scripts.is_some_and(|scripts| scripts.sandbox.is_some());
    Effects { is_open_world: !is_confined, starts_programs: true, ..Effects::UNKNOWN }
}

/// JSON Schema of the result object of a program.
pub(super) fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "skill_name": {"type": ["string", "null"]},
            "returncode": {"type": "integer"},
            "stdout": {"type": "string"},
            "stderr": {"type": "string"},
            "timed_out": {"type": "boolean"},
            "duration_ms": {"type": "integer"},
            "interpreter": {"type": "string"},
            "truncated": {"type": "boolean"},
            "error": {"type": "string"},
            "hint": {"type": "string"},
            "note": {"type": "string"},
            "left_in_skill": {"type": "array", "items": {"type": "string"}},
        },
        "required": [
            "skill_name", "returncode", "stdout", "stderr", "timed_out", "duration_ms",
        ],
    })
}
