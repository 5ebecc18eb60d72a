//! Who the server is and what it can do: `initialize`, `ping`, `server/discover`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::asked::{Answer, Asked};
use super::era::{LEGACY, MODERN, Reply, implementation};
use super::offered;
use crate::instructions;
use crate::limits;
use crate::memory::Memory;

fn capabilities() -> Value {
    json!({
        "tools": {},
        "prompts": {},
        "resources": {},
        "extensions": {"io.modelcontextprotocol/skills": {"directoryRead": true}},
    })
}

/// For the client's model: how to work with skills, and which there are.
fn guide(server: &Server<'_>) -> String {
    let catalogue = server.catalogue();
    let guide = instructions::guide(&catalogue, offered::runs_scripts(server), &facts(server));
    // Descriptions have been shortened.
    server.bench.secrets.mask_shortened(&guide).into_owned()
}

/// What is remembered, where a memory is set. Without it the server goes on.
fn facts(server: &Server<'_>) -> String {
    let bench = &server.bench;
    let Some(path) = bench.storage.facts.as_deref() else {
        return String::new();
    };
    let patience = bench.patience;
    match (Memory { path, patience }).for_prompt() {
        Ok(facts) => bench.secrets.mask(&facts).into_owned(),
        Err(error) => {
            server.warn(&error.to_string());
            String::new()
        }
    }
}

/// The versions up to 2025-11-25 begin so.
pub fn initialize(server: &Server<'_>, asked: &Asked<'_, '_>) -> Answer {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "protocolVersion")]
        version: String,
    }
    let params: Params = asked.request.params()?;
    let known = LEGACY.into_iter().find(|version| *version == params.version);
    server.is_initialized.set(true);
    Ok(Reply::of(&json!({
        "protocolVersion": known.unwrap_or(LEGACY[0]),
        "capabilities": capabilities(),
        "serverInfo": implementation(),
        "instructions": guide(server),
    })))
}

/// Whether anybody is there.
pub fn ping() -> Reply {
    Reply::of(&json!({}))
}

/// The same for the versions that need no beginning.
pub fn discover(server: &Server<'_>) -> Reply {
    let discovered = json!({
        "supportedVersions": MODERN,
        "capabilities": capabilities(),
        "instructions": guide(server),
    });
    Reply::of(&discovered).kept(limits::KEPT_MILLISECONDS)
}
