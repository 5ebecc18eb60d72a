//! `run_command`: runs a shell command in the user's working folder.

use std::iter;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools::consent::{ConsentKind, ConsentRequest, ConsentSection};
use crate::tools::program::{
    ProgramKind, ProgramRun, StartFolder, checked_arguments, effects, for_model, output_schema,
    scratch, skill_of_call,
};
use crate::tools::run_python::{call_named_skill, with_advice_on_module};
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};
use base::tool::{Effects, ToolResult};
use host::files::find_program;
use skills::Skill;
use skills::python::{Interpreter, is_executable};

#[derive(Deserialize)]
struct RunCommandArguments {
    command: String,
    skill_name: Option<String>,
}

/// The tool `run_command`.
pub(super) struct RunCommand;

impl Tool for RunCommand {
    fn name(&self) -> &'static str {
        "run_command"
    }

    fn description(&self) -> &'static str {
        "Run a shell command in the user's folder; with `skill_name` it has that skill's packages, \
         and its folder is $SKILL_DIR."
    }

    fn title(&self) -> &'static str {
        "Run a command"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "skill_name": {"type": "string"}
            },
            "required": ["command"],
        })
    }

    fn call_forms(&self) -> Vec<(&str, Value)> {
        let parameters = json!({
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        });
        let description = "Run a shell command in the user's folder, such as ls, cp, grep -c, \
                           sed -i or echo >>.";
        vec![(description, parameters)]
    }

    fn output(&self) -> Option<Value> {
        Some(output_schema())
    }

    fn effects(&self, context: &ToolContext<'_>) -> Effects {
        effects(context)
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let arguments: RunCommandArguments = arguments.parse()?;
        if arguments.command.trim().is_empty() {
            return Err(ArgumentError::new("command", "is empty"));
        }
        let summary = arguments.command.clone();
        Ok(PreparedCall::new(summary, move |context| {
            run_command(&arguments, context).unwrap_or_else(ToolResult::failure)
        }))
    }
}

fn run_command(
    arguments: &RunCommandArguments,
    context: &ToolContext<'_>,
) -> Result<ToolResult, String> {
    let scripts = context.user_scripts().ok_or(
        "commands are switched off (--no-scripts, or an MCP server without --user-files): answer \
         without running any",
    )?;
    let shell = scripts.shell.as_deref().ok_or(
        "commands are switched off (SCRIPT_SHELL or SCRIPT_PYTHON is off, or there is no shell): \
         do without, or tell the user",
    )?;
    if !is_executable(shell) {
        return Err(format!(
            "SCRIPT_SHELL names {}, which is not an executable file; tell the user: set it to a shell, such \
             as bash",
            shell.display()
        ));
    }
    let (skill, mut meant) = skill_of_call(arguments.skill_name.as_deref(), context)?;
    let python = match &skill {
        Some(skill) => venv_of(skill, context)?,
        None => None,
    };
    let first = arguments.command.split_whitespace().next().unwrap_or_default();
    if find_program(first.as_ref(), scripts.variable("PATH")).is_none()
        && let Some(result) = call_named_skill(&arguments.command, &[], "", context)
    {
        return result;
    }
    let (command, paths) = match &skill {
        Some(skill) => with_skill_paths(&arguments.command, skill, &scripts.user_folder),
        None => (arguments.command.clone(), Vec::new()),
    };
    if !paths.is_empty() {
        meant.push_str(&format!("; of the skill: {}", paths.join(", ")));
    }
    let words = ["-c".to_string(), command.clone()];
    let advice = "write it to a file with write_file, and run that";
    let words = checked_arguments(NOUN, &words, advice)?;
    let consent = consent_request(&command, skill.as_ref(), shell).obtain(context)?;
    let run = || {
        let scratch = scratch(scripts, NOUN)?;
        let run = ProgramRun {
            context,
            scripts,
            skill: skill.as_ref(),
            start: StartFolder::User,
            python: python.as_ref(),
            kind: ProgramKind::Command(&arguments.command),
            source: &arguments.command,
            program: shell,
            arguments: &words,
            variables: &[],
            stdin: "",
            meant: &meant,
            scratch: &scratch,
        };
        run.run()
    };
    let result = run().unwrap_or_else(ToolResult::failure);
    Ok(ToolResult { consent, ..with_advice_on_module(result, skill.as_ref(), context) })
}

const NOUN: &str = "command";

/// The command with paths in the skill's folder instead of those that exist only there, and these.
/// A command of several lines is not changed, as it may hold the text of a file, nor one that goes
/// to another folder.
fn with_skill_paths<'c>(
    command: &'c str,
    skill: &Skill,
    user_folder: &Path,
) -> (String, Vec<&'c str>) {
    let words = || command.split(' ');
    if command.contains('\n') || words().any(|word| ["cd", "pushd"].contains(&word)) {
        return (command.to_string(), Vec::new());
    }
    let is_path = |word: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        word.contains(['/', '.'])
            && word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.chars().all(is_plain)
            && user_folder.join(word).symlink_metadata().is_err()
            && skill.open_readable(word).is_ok()
    };
    // A file behind `>` is written.
    let is_written = iter::once("").chain(words()).map(|before| before.ends_with('>'));
    let mut paths = Vec::new();
    let changed = words().zip(is_written).map(|(word, is_written)| {
        if is_written || !is_path(word) {
            return word.to_string();
        }
        paths.push(word);
        format!("\"$SKILL_DIR\"/{word}")
    });
    (changed.collect::<Vec<_>>().join(" "), paths)
}

/// The interpreter of the skill's venv, if it has one. A venv that cannot be used is an error.
fn venv_of(skill: &Skill, context: &ToolContext<'_>) -> Result<Option<Interpreter>, String> {
    let Some(scripts) = context.scripts else {
        return Ok(None);
    };
    match Interpreter::for_skill(skill, scripts) {
        Ok(python) => Ok(python.venv.is_some().then_some(python)),
        Err(error) if error.defect.is_some() => Err(for_model(&error.fault)),
        Err(_) => Ok(None),
    }
}

fn consent_request(command: &str, skill: Option<&Skill>, shell: &Path) -> ConsentRequest {
    let skill = skill.map_or(String::new(), |skill| format!(", for the skill `{}`", skill.name));
    ConsentRequest {
        kind: ConsentKind::Command,
        head: format!(
            "a command wants to run in the working folder, by {}{skill}",
            shell.display()
        ),
        sections: vec![ConsentSection::new("command", command)],
    }
}
