//! `read_daily_note`: returns the user's note of a day.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::memory::notes;
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};
use base::tool::{Effects, ToolResult};
use host::clock::LocalTime;

#[derive(Deserialize)]
struct ReadDailyNoteArguments {
    date: Option<String>,
}

/// The tool `read_daily_note`.
pub(super) struct ReadDailyNote;

impl Tool for ReadDailyNote {
    fn name(&self) -> &'static str {
        "read_daily_note"
    }

    fn description(&self) -> &'static str {
        "Read the user's note of a day."
    }

    fn title(&self) -> &'static str {
        "Read a daily note"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"date": {"type": "string", "description": "YYYY-MM-DD, default today"}},
        })
    }

    fn effects(&self, _context: &ToolContext<'_>) -> Effects {
        Effects::READ_ONLY
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let ReadDailyNoteArguments { date } = arguments.parse()?;
        let date = date.unwrap_or_else(|| LocalTime::now().date);
        Ok(PreparedCall::new(date.clone(), move |context| read(&date, context)))
    }
}

fn read(date: &str, context: &ToolContext<'_>) -> ToolResult {
    let Some(folder) = &context.storage.notes else {
        return ToolResult::failure(notes::NO_FOLDER);
    };
    match notes::read_note(folder, date, context.secrets) {
        Ok(Some(text)) => {
            let length = text.len();
            ToolResult::success(text, format!("{length} bytes"))
        }
        Ok(None) => {
            let text = format!("there is no note of {date}");
            ToolResult::success(text.clone(), text)
        }
        Err(message) => ToolResult::failure(message),
    }
}
