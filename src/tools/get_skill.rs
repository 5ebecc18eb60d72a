//! `get_skill`: a skill's document, whole, with what a model needs to act on
//! it: where the skill lies and which other files it has.

use serde_json::{Value, json};

use crate::limits;
use crate::skills::Skill;
use crate::text::one_name;
use crate::tool::ToolResult;
use crate::tools::{Arguments, Tool, Workbench, text_of};

/// The tool.
pub struct GetSkill;

impl Tool for GetSkill {
    fn name(&self) -> &'static str {
        "get_skill"
    }

    fn description(&self) -> &'static str {
        "Read a skill's instructions (its SKILL.md). Do this before using a skill."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"skill_name": {"type": "string", "description": "The skill's name."}},
            "required": ["skill_name"],
        })
    }

    fn is_offered(&self, _bench: &Workbench<'_>) -> bool {
        true
    }

    fn summary(&self, arguments: &Arguments) -> String {
        text_of(arguments, "skill_name").to_string()
    }

    fn run(&self, arguments: &Arguments, bench: &Workbench<'_>) -> ToolResult {
        let skill = match bench.skills.find(text_of(arguments, "skill_name")) {
            Ok(skill) => skill,
            Err(message) => return ToolResult::failure(message),
        };
        let document = match skill.document() {
            Ok(document) => document,
            Err(message) => return ToolResult::failure(message),
        };
        let mut content = format!(
            "Base directory for this skill: {}\n\n",
            skill.path.display()
        );
        let summary = format!("{}, {} bytes", document.file_name, document.text.len());
        content.push_str(&document.text);
        content.push_str(&other_files(&skill, &document.file_name));
        ToolResult::success(content, summary)
    }
}

/// The list of the skill's other files, or nothing where there are none.
fn other_files(skill: &Skill, document: &str) -> String {
    let tree = skill.files();
    let names = tree.files.iter().map(|path| path.to_string_lossy());
    let others: Vec<_> = names.filter(|name| name != document).collect();
    if others.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n\nOther files of this skill (read_file_in_skill reads them):\n");
    for name in others.iter().take(limits::DOCUMENT_FILES) {
        text.push_str("- ");
        text.push_str(&one_name(name));
        text.push('\n');
    }
    if tree.cut || others.len() > limits::DOCUMENT_FILES {
        text.push_str("- … and more; read_file_in_skill with a folder lists it\n");
    }
    text
}
