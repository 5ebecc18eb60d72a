//! `run_python_script`: runs Python that the model wrote, or a script of a skill, which may be in
//! another language.
//!
//! `tools/program` runs it; this module adds what is particular to scripts.

use std::ffi::OsString;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools::consent::{ConsentKind, ConsentRequest, ConsentSection};
use crate::tools::hints::call_to_run;
use crate::tools::program::{
    ProgramKind, ProgramRun, StartFolder, checked_arguments, effects, for_model, not_run,
    output_schema, scratch, skill_of_call,
};
use crate::tools::schema::{NamedSkill, call_of_skill, is_offered_skill, named_skill};
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};
use base::error::Fault;
use base::text::{self, shell_quoted};
use base::tool::{Effects, ToolResult};
use skills::ScriptSettings;
use skills::Skill;
use skills::packages::package_of;
use skills::python::PythonChoice;
use skills::python::{Interpreter, script_environment};

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
    #[serde(default)]
    stdin: String,
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
                "stdin": {"type": "string"}
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
            (
                "Run Python code that you write, with the standard library alone (csv, json, re), \
                 and see what it prints.",
                source,
            ),
            ("Run a script of a skill that you have read, as its instructions say.", file),
        ]
    }

    fn output(&self) -> Option<Value> {
        Some(output_schema())
    }

    fn effects(&self, context: &ToolContext<'_>) -> Effects {
        effects(context)
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
    let (skill, meant) = skill_of_call(arguments.skill_name.as_deref(), context)?;
    let skill = skill.as_ref();
    let line = arguments.script.as_deref().filter(|_| arguments.file_path.is_none());
    let (args, stdin) = (&arguments.args, &arguments.stdin);
    if let Some(result) = line.and_then(|line| call_named_skill(line, args, stdin, context)) {
        return result;
    }
    let source = &ScriptSource::read(arguments, (skill, !meant.is_empty()), context)?;
    let start = start_folder(skill, context)?;
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
        let written = match &other {
            Some(other) => {
                source.check_unchanged()?;
                Ok(other.words(source))
            }
            None => source.write_files(&scratch, folder, start),
        };
        let mut words: Vec<OsString> =
            written.map_err(|error| not_run(NOUN, "its source could not be written", error))?;
        words.extend(checked_arguments(
            NOUN,
            &source.args,
            "give them through `stdin`, or in a file",
        )?);
        let run = ProgramRun {
            context,
            scripts,
            skill,
            start,
            python,
            meant: &meant,
            kind: ProgramKind::Script { file: source.skill_path() },
            source: &String::from_utf8_lossy(&source.bytes),
            program,
            arguments: &words,
            variables: if other.is_none() { &[SAFE_PATH] } else { &[] },
            stdin: &arguments.stdin,
            scratch: &scratch,
        };
        Ok(ToolResult { script_source: source.skill_script_text(), ..run.run()? })
    };
    let result = run().unwrap_or_else(ToolResult::failure);
    let result = with_advice_on_module(result, skill, context);
    Ok(ToolResult { consent, ..result.with_note(source.note.as_deref()) })
}

/// Does what is meant where a skill's name stands in the place of a program: says that
/// the skill is to be read, or runs its only script, once it was read last.
pub(super) fn call_named_skill(
    line: &str,
    more_args: &[String],
    stdin: &str,
    context: &ToolContext<'_>,
) -> Option<Result<ToolResult, String>> {
    let NamedSkill { name, scripts, args, is_read } = named_skill(line, context)?;
    let args = [&args, more_args].concat();
    let is_plain = !line.contains(['|', '&', ';', '<', '>', '$', '*', '?', '(', ')', '`']);
    Some(match scripts.as_slice() {
        [script] if is_read && is_plain => {
            let note = format!("{name} is a skill: its {script} ran");
            let (skill_name, file_path) = (Some(name), Some(script.clone()));
            let (script, stdin) = (None, stdin.to_string());
            let arguments = RunPythonArguments { skill_name, script, file_path, args, stdin };
            run_script(&arguments, context).map(|result| result.with_note(Some(&note)))
        }
        [script, ..] if is_read => {
            let call = call_to_run(&name, script, &args);
            context.history.needed_skill.replace(Some(name.clone()));
            Err(format!("{name} is a skill, not a program: {call}"))
        }
        _ => Err(call_of_skill(&name, ", not a program", context)),
    })
}

/// Adds what to do instead of importing a skill to the result of a program that did, by Python's
/// last message.
pub(super) fn with_advice_on_module(
    result: ToolResult,
    skill: Option<&Skill>,
    context: &ToolContext<'_>,
) -> ToolResult {
    let object: Option<Value> =
        result.object.as_ref().and_then(|object| serde_json::from_str(object).ok());
    let stderr = object.as_ref().and_then(|object| object["stderr"].as_str()).unwrap_or_default();
    let line = stderr.trim_end().lines().next_back().unwrap_or_default();
    let Some((_, module)) = line.split_once("No module named ").filter(|_| !result.ok) else {
        return result;
    };
    let module = module.trim_matches('\'').split(['\'', '.']).next().unwrap_or_default();
    let name = module.replace('_', "-");
    if package_of(module).is_some() || !is_offered_skill(&name, context) {
        return result;
    }
    let call = call_of_skill(&name, ", not a module", context);
    let advice = match skill {
        Some(skill) if skill.name == name => {
            format!("{name} is a skill, not a module: run a script of it by `file_path`")
        }
        _ => call,
    };
    result.with_note(Some(&advice))
}

/// The Python for a script, or the problem with it, and the interpreter of a script in another
/// language, which needs no Python. Where Python is switched off, it does not run either.
fn interpreters(
    source: &ScriptSource<'_>,
    skill: Option<&Skill>,
    scripts: &ScriptSettings,
) -> Result<(Result<Interpreter, Fault>, Option<OtherInterpreter>), String> {
    let python = match skill {
        Some(skill) => Interpreter::for_skill(skill, scripts).map_err(|error| error.fault),
        None => Interpreter::without_venv(scripts),
    };
    if let Err(fault) = &python
        && scripts.python == PythonChoice::Off
    {
        return Err(for_model(fault));
    }
    let environment = script_environment(skill, python.as_ref().ok(), scripts);
    let other = OtherInterpreter::find(source, &environment)?;
    Ok((python, other))
}

const NOUN: &str = "script";

/// The folder that a script starts in: the user's, if it may be used.
fn start_folder(skill: Option<&Skill>, context: &ToolContext<'_>) -> Result<StartFolder, String> {
    match (context.user_files, skill) {
        (true, _) => Ok(StartFolder::User),
        (false, Some(_)) => Ok(StartFolder::Skill),
        (false, None) => {
            Err("scripts start only in a skill's folder here: give `skill_name` (the \
                              user can allow more with --user-files)"
                .into())
        }
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
    let quoted_words = source.args.iter().map(|word| shell_quoted(Path::new(word)));
    let words = quoted_words.collect::<Vec<_>>().join(" ");
    let script = String::from_utf8_lossy(&source.bytes);
    let input = (!arguments.stdin.is_empty()).then(|| ConsentSection {
        short: Some(format!("input: {}", text::counted(arguments.stdin.len(), "byte"))),
        ..ConsentSection::new("input", &arguments.stdin)
    });
    let [command, script] = match source.file.as_ref().map(|file| &file.path) {
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
