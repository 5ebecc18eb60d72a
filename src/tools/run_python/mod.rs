//! `run_python_script`: runs Python that the model wrote, or a script of a skill, which may be in
//! another language.
//!
//! `tools/program` runs it; this module adds what is particular to scripts.

use std::ffi::OsString;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::{PythonChoice, ScriptSettings};
use crate::error::Fault;
use crate::skills::Skill;
use crate::skills::python::{Interpreter, script_environment};
use crate::text::{self, shell_quoted};
use crate::tool::{Effects, ToolResult};
use crate::tools::consent::{ConsentKind, ConsentRequest, ConsentSection};
use crate::tools::program::{
    ProgramKind, ProgramRun, StartFolder, checked_arguments, effects, for_model, not_run,
    output_schema, scratch, time_limit,
};
use crate::tools::schema::call_of_named_skill;
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};

mod language;
mod module;
mod slips;
mod source;

use language::OtherInterpreter;
use source::{SAFE_PATH, ScriptSource};

/// The arguments of a call: the source of a script, or the path of one of the skill.
#[derive(Deserialize)]
struct RunPythonArguments {
    skill_name: Option<String>,
    script: Option<String>,
    file_path: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    cwd: Option<StartArgument>,
    #[serde(default)]
    stdin: String,
    timeout_seconds: Option<i64>,
}

/// The argument `cwd`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StartArgument {
    Skill,
    User,
}

/// The tool `run_python_script`.
pub(super) struct RunPython;

impl Tool for RunPython {
    fn name(&self) -> &'static str {
        "run_python_script"
    }

    fn description(&self) -> &'static str {
        "Run Python: your own source (`script`), or a skill's script in any language (`file_path` \
         with `args`). With `skill_name` it has that skill's packages. Print what you need to see."
    }

    fn title(&self) -> &'static str {
        "Run a script"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "skill_name": {"type": "string"},
                "script": {"type": "string"},
                "file_path": {"type": "string"},
                "args": {"type": "array", "items": {"type": "string"}},
                "cwd": {"type": "string", "enum": ["skill", "user"]},
                "stdin": {"type": "string"},
                "timeout_seconds": {"type": "integer"}
            },
        })
    }

    fn call_forms(&self) -> Vec<(&str, Value)> {
        let source = json!({
            "properties": {"script": {"type": "string"}},
            "required": ["script"],
        });
        let file = json!({
            "properties": {
                "skill_name": {"type": "string"},
                "file_path": {"type": "string"},
                "args": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["skill_name", "file_path", "args"],
        });
        vec![
            ("Run Python code and see what it prints. `script` is the code itself.", source),
            ("Run a script of a skill that you have read, as its instructions say.", file),
        ]
    }

    fn output(&self) -> Option<Value> {
        Some(output_schema())
    }

    fn effects(&self, context: &ToolContext<'_>) -> Effects {
        effects(context)
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
        let skill = arguments.skill_name.iter().map(|name| format!("{name}: "));
        let summary = format!("{}{what}", skill.collect::<String>());
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
    let name = arguments.skill_name.as_deref().filter(|name| !name.is_empty());
    let skill = name.map(|name| context.skills.open(name)).transpose()?;
    let skill = skill.as_ref();
    if arguments.file_path.is_none()
        && let Some(call) = call_of_named_skill(arguments.script.as_deref().unwrap_or(""), context)
    {
        return Err(call);
    }
    let source = &ScriptSource::read(arguments, skill, context.user_files)?;
    let start = start_folder(arguments, source, skill, context)?;
    let limit = time_limit(arguments.timeout_seconds, scripts)?;
    let (python, other) = interpreters(source, skill, scripts)?;
    let program = match (&other, &python) {
        (Some(other), _) => &other.program,
        (None, python) => &python.as_ref().map_err(for_model)?.program,
    };
    let python = python.as_ref().ok();
    let request = consent_request(skill, source, program, start, arguments);
    let consent = request.obtain(context)?;
    let run = || -> Result<ToolResult, String> {
        let scratch = scratch(scripts, NOUN)?;
        let folder = skill.map_or(&scripts.user_folder, |skill| &skill.path);
        let written = match (&other, skill) {
            (Some(other), Some(skill)) => {
                source.check_unchanged(skill)?;
                Ok(other.words(source, folder))
            }
            _ => source.write_files(&scratch, folder, start),
        };
        let mut words: Vec<OsString> =
            written.map_err(|error| not_run(NOUN, "its source could not be written", error))?;
        words.extend(checked_arguments(
            NOUN,
            &arguments.args,
            "give them through `stdin`, or in a file",
        )?);
        let run = ProgramRun {
            context,
            scripts,
            skill,
            start,
            python,
            kind: ProgramKind::Script { file: source.path.as_deref() },
            source: &String::from_utf8_lossy(&source.bytes),
            program,
            arguments: &words,
            variables: if other.is_none() { &[SAFE_PATH] } else { &[] },
            stdin: &arguments.stdin,
            limit,
            scratch: &scratch,
        };
        Ok(ToolResult { script_source: source.skill_script_text(), ..run.run()? })
    };
    let result = run().unwrap_or_else(ToolResult::failure);
    Ok(ToolResult { consent, ..result.with_note(source.note.as_deref()) })
}

/// The Python for a script, or the problem with it, and the interpreter of a script in another
/// language, which needs no Python. Where Python is switched off, it does not run either.
fn interpreters(
    source: &ScriptSource<'_>,
    skill: Option<&Skill>,
    scripts: &ScriptSettings,
) -> Result<(Result<Interpreter, Fault>, Option<OtherInterpreter>), String> {
    let Some(skill) = skill else {
        return Ok((Interpreter::without_venv(scripts), None));
    };
    let python = Interpreter::for_skill(skill, scripts).map_err(|error| error.fault);
    if let Err(fault) = &python
        && scripts.python == PythonChoice::Off
    {
        return Err(for_model(fault));
    }
    let environment = script_environment(Some(skill), python.as_ref().ok(), scripts);
    let other = OtherInterpreter::find(source, &environment)?;
    Ok((python, other))
}

const NOUN: &str = "script";

/// The folder that a script starts in: a file of a skill in the user's, source in the skill's.
fn start_folder(
    arguments: &RunPythonArguments,
    source: &ScriptSource<'_>,
    skill: Option<&Skill>,
    context: &ToolContext<'_>,
) -> Result<StartFolder, String> {
    match (arguments.cwd, skill) {
        (Some(StartArgument::User), _) | (None, None) if !context.user_files => Err(
            "scripts start only in a skill's folder here: give `skill_name`, and no `cwd` \"user\" (the \
             user can allow more with --user-files)"
                .into(),
        ),
        (Some(StartArgument::Skill), None) => {
            Err("`cwd` \"skill\" needs a `skill_name`".into())
        }
        (Some(StartArgument::User), _) | (None, None) => Ok(StartFolder::User),
        (None, Some(_)) if source.path.is_some() && context.user_files => Ok(StartFolder::User),
        (_, Some(_)) => Ok(StartFolder::Skill),
    }
}

/// The question whether this script may run.
fn consent_request(
    skill: Option<&Skill>,
    source: &ScriptSource<'_>,
    program: &Path,
    start: StartFolder,
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
    let place = match (start, skill) {
        (StartFolder::Skill, Some(skill)) => format!(" in the skill `{}`", skill.name),
        (_, Some(skill)) => format!(" in the working folder, of the skill `{}`", skill.name),
        (_, None) => " in the working folder".to_string(),
    };
    ConsentRequest {
        kind: ConsentKind::Script,
        head: format!("a script wants to run{place}, by {}", program.display()),
        sections: [command, input, script].into_iter().flatten().collect(),
    }
}
