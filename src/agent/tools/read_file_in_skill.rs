//! `read_file_in_skill`: reads any file of a skill, and nothing outside it.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools::pages::LineRange;
use crate::tools::user_files::{UserFiles, shown};
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext, plain_path};
use base::tool::{Action, Effects, ToolResult};
use host::confined::OpenError;
use skills::{Skill, is_valid_name};

#[derive(Deserialize)]
struct ReadFileInSkillArguments {
    skill_name: String,
    file_path: String,
    offset: Option<i64>,
    limit: Option<i64>,
}

/// The tool `read_file_in_skill`.
pub(super) struct ReadFileInSkill;

impl Tool for ReadFileInSkill {
    fn name(&self) -> &'static str {
        "read_file_in_skill"
    }

    fn description(&self) -> &'static str {
        "Read a file of a skill or list a folder, by its path in the skill. `limit` lines from line \
         `offset` on."
    }

    fn title(&self) -> &'static str {
        "Read a file of a skill"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "skill_name": {"type": "string"},
                "file_path": {"type": "string"},
                "offset": {"type": "integer"},
                "limit": {"type": "integer"}
            },
            "required": ["skill_name", "file_path"],
        })
    }

    fn effects(&self, _context: &ToolContext<'_>) -> Effects {
        Effects::READ_ONLY
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let ReadFileInSkillArguments { skill_name, file_path, offset, limit } =
            arguments.parse()?;
        let page = LineRange::from_arguments(offset, limit)?;
        let summary = format!("{skill_name}: {file_path}");
        Ok(PreparedCall::new(summary, move |context| {
            read(&skill_name, &file_path, &page, context).unwrap_or_else(ToolResult::failure)
        }))
    }
}

/// Whether the path leads to a file that `read_file` reads.
fn is_of_user(path: &str, context: &ToolContext<'_>) -> bool {
    UserFiles::open(context).is_ok_and(|files| files.open_to_read(path).is_ok())
}

/// The message for the path `../NAME/FILE` of a skill that is not beside this one.
fn missing_skill(skill: &Skill, path: &str, context: &ToolContext<'_>) -> Option<String> {
    let (name, _) = path.trim_start_matches("./").strip_prefix("../")?.split_once('/')?;
    let is_folder = skill.root.folder(name).is_ok() || skill.path.with_file_name(name).exists();
    let cause =
        context.skills.open_any(name).err().filter(|_| is_valid_name(name) && !is_folder)?;
    Some(format!("`{}` is a file of another skill, and {cause}", shown(path)))
}

fn read(
    skill_name: &str,
    path: &str,
    page: &LineRange,
    context: &ToolContext<'_>,
) -> Result<ToolResult, String> {
    let skill = context.skills.open_any(skill_name)?;
    let other = context.skills.open_other(&skill, path);
    let (skill, path) = other.unwrap_or_else(|| (skill, path.to_string()));
    let document = skill.document_file_name()?;
    let opened = skill.resolve_file(&path);
    let opened = opened.map_err(|error| {
        let message = skill.file_error("the file", "read", &path, &error);
        match (error, context.user_scripts()) {
            (OpenError::Absolute, Some(_)) => {
                format!("{message}, or read a file of the user with `read_file` or `run_command`")
            }
            (OpenError::Absolute, None) => {
                format!("{message}; only a script can read what is elsewhere")
            }
            (OpenError::NotFound, Some(_)) if is_of_user(&path, context) => {
                format!("`{}` is a file of the user: read it with `read_file`", shown(&path))
            }
            _ => missing_skill(&skill, &path, context).unwrap_or(message),
        }
    })?;
    let note = opened.note("read");
    let is_document = plain_path(&opened.path) == document;
    let action = is_document.then(|| Action::ReadSkill(skill.name.clone()));
    let shown = page.of(opened.target, action, context);
    let result = shown.map_err(|error| format!("`{path}` cannot be read: {error}"))?;
    Ok(result.with_note(note.as_deref()))
}
