//! `write_file`: writes a whole file below the working folder.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools::user_files::{UserFiles, WRITING, shown};
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};
use base::text::counted;
use base::tool::{Action, Effects, ToolResult};

#[derive(Deserialize)]
struct WriteFileArguments {
    path: String,
    content: String,
}

/// The tool `write_file`.
pub(super) struct WriteFile;

impl Tool for WriteFile {
    fn name(&self) -> &'static str {
        "write_file"
    }

    fn description(&self) -> &'static str {
        "Write a whole file of the user; folders are made as needed."
    }

    fn title(&self) -> &'static str {
        "Write a file"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        })
    }

    fn call_forms(&self) -> Vec<(&str, Value)> {
        vec![("Write a new text file of the user.", self.parameters())]
    }

    fn effects(&self, _context: &ToolContext<'_>) -> Effects {
        WRITING
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let WriteFileArguments { path, content } = arguments.parse()?;
        let summary = format!("{path}, {}", counted(content.len(), "byte"));
        Ok(PreparedCall::new(summary, move |context| {
            write(&path, &content, context).unwrap_or_else(ToolResult::failure)
        }))
    }
}

fn write(path: &str, text: &str, context: &ToolContext<'_>) -> Result<ToolResult, String> {
    let files = UserFiles::open(context)?;
    let file = files.file(path)?;
    let path = file.path.clone();
    let state = if file.place.found().is_some() { "replaced" } else { "new" };
    let consent = files.write(file, None, text.as_bytes())?;
    // Without a count of bytes, which a small model gives as the answer.
    let wrote = format!("wrote {}: {state}", shown(&path));
    let summary = format!("{wrote}, {}", counted(text.len(), "byte"));
    Ok(ToolResult {
        consent,
        action: Some(Action::WroteFile(path)),
        ..ToolResult::success(wrote, summary)
    })
}
