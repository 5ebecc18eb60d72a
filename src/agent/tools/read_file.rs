//! `read_file`: reads a file or folder below the working folder, or of a skill.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools::pages::LineRange;
use crate::tools::schema::{self, call_of_skill_in_path};
use crate::tools::user_files::UserFiles;
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};
use base::tool::{Effects, ToolResult};

#[derive(Deserialize)]
struct ReadFileArguments {
    path: String,
    offset: Option<i64>,
    limit: Option<i64>,
}

/// The tool `read_file`.
pub(super) struct ReadFile;

impl Tool for ReadFile {
    fn name(&self) -> &'static str {
        "read_file"
    }

    fn description(&self) -> &'static str {
        "Read a file of the user or list a folder."
    }

    fn title(&self) -> &'static str {
        "Read a file"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "offset": {"type": "integer"},
                "limit": {"type": "integer"}
            },
            "required": ["path"],
        })
    }

    fn call_forms(&self) -> Vec<(&str, Value)> {
        vec![("Read a text file of the user.", schema::for_small_models(self.parameters()))]
    }

    fn effects(&self, _context: &ToolContext<'_>) -> Effects {
        Effects::READ_ONLY
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let ReadFileArguments { path, offset, limit } = arguments.parse()?;
        let page = LineRange::from_arguments(offset, limit)?;
        Ok(PreparedCall::new(path.clone(), move |context| {
            read(&path, &page, context).unwrap_or_else(ToolResult::failure)
        }))
    }
}

fn read(path: &str, page: &LineRange, context: &ToolContext<'_>) -> Result<ToolResult, String> {
    let files = UserFiles::open(context)?;
    let opened = files.open_to_read(path).or_else(|error| {
        if !files.is_missing(path) {
            return Err(error);
        }
        files.open_in_recent_skill(path).ok_or_else(|| match call_of_skill_in_path(path, context) {
            Some(call) => format!("{error}; {call}"),
            None => error,
        })
    })?;
    let shown = page.of(opened.target, opened.action, context);
    let result = shown.map_err(|error| files.error(path, "read", &error.into()))?;
    Ok(result.with_note(opened.note.as_deref()))
}
