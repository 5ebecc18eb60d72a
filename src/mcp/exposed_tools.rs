//! The tools that can be called here, and how they are told of.

use serde_json::{Value, json};

use super::McpServer;
use crate::tool::Effects;
use crate::tools::{self, TABLE, Tool};

/// What can be called here.
pub(super) fn offered<'t>(server: &McpServer<'_>) -> impl Iterator<Item = &'t (dyn Tool + Sync)> {
    let tools = TABLE.iter().copied();
    // A skill that is missing now may be there for the next call.
    tools.filter(|tool| tool.is_offered(&server.context, true))
}

/// The message for a name that none of them has.
pub(super) fn unknown(server: &McpServer<'_>, name: &str) -> String {
    let names: Vec<&str> = offered(server).map(Tool::name).collect();
    tools::not_among(name, names.iter().copied())
}

/// Whether scripts can run here.
pub(super) fn runs_scripts(server: &McpServer<'_>) -> bool {
    offered(server).any(|tool| tool.effects(&server.context).starts_programs)
}

/// A tool with its name and its title, as clients read it.
pub(super) fn described(
    names: (&str, &str),
    about: &str,
    parameters: &Value,
    effects: Effects,
) -> Value {
    let (name, title) = names;
    json!({
        "name": name,
        "title": title,
        "description": about,
        "inputSchema": parameters,
        "annotations": {
            "title": title,
            "readOnlyHint": effects.reads_only,
            "destructiveHint": effects.destroys,
            "idempotentHint": effects.is_idempotent,
            "openWorldHint": effects.is_open,
        },
    })
}
