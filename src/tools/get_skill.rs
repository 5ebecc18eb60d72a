//! `get_skill`: returns a skill's whole document, with its folder and its other files. With
//! arguments, the placeholders of the document are replaced. The user's invocation of a skill
//! uses the same text.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::limits;
use crate::message::InvokedSkill;
use crate::skills::invocation::SkillFolders;
use crate::skills::{Document, Skill, file_list, frontmatter, invocation};
use crate::text::{one_line, one_line_name};
use crate::tool::{Action, Effects, ToolResult};
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};

#[derive(Deserialize)]
struct GetSkillArguments {
    skill_name: String,
    /// If there are any, even empty ones, placeholders are replaced.
    arguments: Option<String>,
}

/// The tool `get_skill`.
pub(super) struct GetSkill;

impl Tool for GetSkill {
    fn name(&self) -> &'static str {
        "get_skill"
    }

    fn description(&self) -> &'static str {
        "Read a skill's instructions before you use it; `arguments` fill its $ARGUMENTS."
    }

    fn title(&self) -> &'static str {
        "Read a skill"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "skill_name": {"type": "string"},
                "arguments": {"type": "string"}
            },
            "required": ["skill_name"],
        })
    }

    fn effects(&self, _context: &ToolContext<'_>) -> Effects {
        Effects::READ_ONLY
    }

    fn is_offered(&self, _context: &ToolContext<'_>, has_skills: bool) -> bool {
        has_skills
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let GetSkillArguments { skill_name, arguments } = arguments.parse()?;
        let summary = match arguments.as_deref() {
            None | Some("") => skill_name.clone(),
            Some(words) => format!("{skill_name}: {words}"),
        };
        Ok(PreparedCall::new(summary, move |context| {
            let skill = context.skills.open_any(&skill_name);
            let loaded = skill.and_then(|skill| {
                let document = skill.read_document()?;
                load(&skill, &document, arguments.as_deref(), context)
            });
            loaded.unwrap_or_else(ToolResult::failure)
        }))
    }
}

/// Returns the document of a skill that the user invokes with these arguments.
pub(super) fn invoke(
    context: &ToolContext<'_>,
    name: &str,
    arguments: &str,
) -> Result<InvokedSkill, String> {
    let skill = context.skills.open_any(name)?;
    let document = skill.read_document()?;
    if !invocation::is_for_users(&frontmatter::parse(&document.text)) {
        return Err(
            "it is for the model only (user-invocable: false): say what you need, and the model reads it"
                .into(),
        );
    }
    invoked(&skill, &document, arguments, context)
}

/// Returns the document of a skill that the user gives with a question.
pub(super) fn give(context: &ToolContext<'_>, name: &str) -> Result<InvokedSkill, String> {
    let skill = context.skills.open_any(name)?;
    let document = skill.read_document()?;
    invoked(&skill, &document, "", context)
}

fn invoked(
    skill: &Skill,
    document: &Document,
    arguments: &str,
    context: &ToolContext<'_>,
) -> Result<InvokedSkill, String> {
    let result = load(skill, document, Some(arguments), context)?;
    let text = format!(
        "I invoke the skill `{}`. Follow its instructions below; they are whole, get_skill is not needed.\n\n{}",
        one_line_name(&skill.name),
        result.full_text()
    );
    Ok(InvokedSkill {
        name: skill.name.clone(),
        arguments: arguments.to_string(),
        // Names and descriptions were shortened, so parts of a secret are masked, too.
        text: context.secrets.mask_shortened(&text).into_owned(),
    })
}

/// Returns the skill's folder, document and other files, and what a model has to know about them.
fn load(
    skill: &Skill,
    document: &Document,
    arguments: Option<&str>,
    context: &ToolContext<'_>,
) -> Result<ToolResult, String> {
    let folder = skill.path.display().to_string();
    if arguments.is_none() && document.text.trim().is_empty() {
        return Err(format!("the document of the skill `{}` is empty", skill.name));
    }
    let folders = SkillFolders::of(skill, &document.text);
    let text = invocation::render(&document.text, &folders, arguments)?;
    let summary = format!("{}, {} bytes", document.file_name, text.len());
    let commands = commands_note(&invocation::commands_on_load(&text), context);
    let text = format!("Base directory for this skill: {folder}\n\n{text}");
    let files = other_files(skill, &document.file_name) + &commands;
    Ok(ToolResult {
        document: Some(text),
        action: Some(Action::ReadSkill(skill.name.clone())),
        ..ToolResult::success(files, summary)
    })
}

/// Lists the skill's other files; empty without any.
fn other_files(skill: &Skill, document: &str) -> String {
    let tree = skill.all_files();
    let names: Vec<_> = tree.files.iter().map(|path| path.to_string_lossy()).collect();
    let others = names.iter().map(AsRef::as_ref).filter(|name| *name != document);
    let (lines, is_folded) = file_list::fold(others);
    if lines.is_empty() {
        return String::new();
    }
    let folder = if is_folded { ", and lists a folder" } else { "" };
    let mut text =
        format!("\n\nOther files of this skill (read_file_in_skill reads them{folder}):\n");
    text.extend(lines.iter().take(limits::DOCUMENT_FILES).map(String::as_str));
    if tree.is_cut || lines.len() > limits::DOCUMENT_FILES {
        text.push_str("- … and more; read_file_in_skill with a folder lists it\n");
    }
    text
}

/// Says that the commands of a document were not run; empty without any.
fn commands_note(commands: &[&str], context: &ToolContext<'_>) -> String {
    if commands.is_empty() {
        return String::new();
    }
    let shown = commands.iter().take(limits::LISTED_COMMANDS);
    let shown = shown.map(|command| format!("!`{}`", one_line(command, limits::SUMMARY_CHARS)));
    let mut shown = shown.collect::<Vec<_>>().join(", ");
    if commands.len() > limits::LISTED_COMMANDS {
        shown.push_str(&format!(" and {} more", commands.len() - limits::LISTED_COMMANDS));
    }
    let advice = if context.allows_commands() {
        "run them with run_command if you need their output"
    } else {
        "they were not run"
    };
    format!("\n\nCommands that another client would have run first ({shown}): {advice}.\n")
}
