//! `write_daily_note`: appends to the user's note of today.

use serde_json::{Value, json};

use crate::memory::notes;
use crate::tool::{Effects, ToolResult};
use crate::tools::{Arguments, Tool, ToolContext, string_argument};

/// The tool `write_daily_note`.
pub(super) struct WriteDailyNote;

impl Tool for WriteDailyNote {
    fn name(&self) -> &'static str {
        "write_daily_note"
    }

    fn description(&self) -> &'static str {
        "Append what was done to the user's Markdown note of today."
    }

    fn title(&self) -> &'static str {
        "Write a daily note"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "activity": {"type": "string", "description": "Markdown"},
                "title": {"type": "string"},
            },
            "required": ["activity"],
        })
    }

    fn output(&self) -> Option<Value> {
        Some(json!({
            "type": "object",
            "properties": {"written_to": {"type": "string"}},
            "required": ["written_to"],
        }))
    }

    fn effects(&self, _context: &ToolContext<'_>) -> Effects {
        Effects { is_read_only: false, is_idempotent: false, ..Effects::READ_ONLY }
    }

    fn is_offered(&self, context: &ToolContext<'_>, _has_skills: bool) -> bool {
        context.storage.notes.is_some()
    }

    fn summary(&self, arguments: &Arguments) -> String {
        match string_argument(arguments, "title") {
            "" => string_argument(arguments, "activity").to_string(),
            title => title.to_string(),
        }
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> ToolResult {
        let Some(folder) = &context.storage.notes else {
            return ToolResult::failure(
                "there are no daily notes: the user can name a folder for them with NOTES_FOLDER_PATH",
            );
        };
        let text = |name| context.secrets.mask(string_argument(arguments, name));
        match notes::write_entry(folder, &text("title"), &text("activity"), context.cancellation) {
            Ok(path) => {
                let shown = path.display().to_string();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                ToolResult::success(
                    json!({ "written_to": shown }).to_string(),
                    format!("added to {name}"),
                )
            }
            Err(error) => ToolResult::failure(error.to_string().replace("\nhint: ", "; ")),
        }
    }
}
