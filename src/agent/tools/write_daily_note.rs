//! `write_daily_note`: appends to the user's note of today.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::memory::notes;
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};
use base::tool::{Effects, ToolResult};

#[derive(Deserialize)]
struct WriteDailyNoteArguments {
    activity: String,
    #[serde(default)]
    title: String,
}

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

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let WriteDailyNoteArguments { activity, title } = arguments.parse()?;
        let summary = if title.is_empty() { &activity } else { &title };
        Ok(PreparedCall::new(summary.clone(), move |context| write(&title, &activity, context)))
    }
}

fn write(title: &str, activity: &str, context: &ToolContext<'_>) -> ToolResult {
    let Some(folder) = &context.storage.notes else {
        return ToolResult::failure(notes::NO_FOLDER);
    };
    let mask = |text| context.secrets.mask(text);
    match notes::write_entry(folder, &mask(title), &mask(activity), context.cancellation) {
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
