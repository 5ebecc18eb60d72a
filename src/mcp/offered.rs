//! The tools that can be called here, and how they are told of.

use serde_json::{Value, json};

use super::Server;
use crate::tool::Effects;
use crate::tools::{self, TABLE, Tool};

/// What can be called here.
pub fn offered<'t>(server: &Server<'_>) -> impl Iterator<Item = &'t (dyn Tool + Sync)> {
    let tools = TABLE.iter().copied();
    // A skill that is missing now may be there for the next call.
    tools.filter(|tool| tool.is_offered(&server.bench, true))
}

/// The message for a name that none of them has.
pub fn unknown(server: &Server<'_>, name: &str) -> String {
    let names: Vec<&str> = offered(server).map(Tool::name).collect();
    tools::not_among(name, names.iter().copied())
}

/// Whether scripts can run here.
pub fn runs_scripts(server: &Server<'_>) -> bool {
    offered(server).any(|tool| tool.effects(&server.bench).starts_programs)
}

/// A tool with its name and its title, as clients read it.
pub fn described(names: (&str, &str), about: &str, parameters: &Value, effects: Effects) -> Value {
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
