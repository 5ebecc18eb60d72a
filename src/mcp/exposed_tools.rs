//! The tools that clients can call, and their JSON descriptions.

use serde_json::{Value, json};

use super::McpServer;
use agent::tools::{self, BUILTIN_TOOLS, Tool};
use base::tool::Effects;

/// Returns the tools that clients can call.
pub(super) fn offered_tools<'t>(
    server: &McpServer<'_>,
) -> impl Iterator<Item = &'t (dyn Tool + Sync)> {
    let has_skills = server.context.user_files && has_skills(server);
    let rows = BUILTIN_TOOLS.iter();
    rows.filter(move |row| row.is_for_client(&server.context, has_skills)).map(|row| row.tool)
}

/// Whether there are usable skills.
pub(super) fn has_skills(server: &McpServer<'_>) -> bool {
    server.context.skills.catalogue().usable().next().is_some()
}

/// Returns the error message for an unknown tool name.
pub(super) fn unknown_tool_message(server: &McpServer<'_>, name: &str) -> String {
    let names: Vec<&str> = offered_tools(server).map(Tool::name).collect();
    tools::unknown_tool_among(name, names.iter().copied())
}

/// Returns the JSON description of a tool. `names` are its name and its title.
pub(super) fn tool_json(
    names: (&str, &str),
    description: &str,
    parameters: &Value,
    effects: Effects,
) -> Value {
    let (name, title) = names;
    json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": parameters,
        "annotations": {
            "title": title,
            "readOnlyHint": effects.is_read_only,
            "destructiveHint": effects.is_destructive,
            "idempotentHint": effects.is_idempotent,
            "openWorldHint": effects.is_open_world,
        },
    })
}
