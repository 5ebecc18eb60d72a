//! Who the server is and what it can do: `initialize`, `ping`, `server/discover`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::McpServer;
use super::era::{LEGACY, MODERN, RpcResult, implementation};
use super::exposed_tools;
use super::request_context::{HandlerResult, RequestContext};
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
fn guide(server: &McpServer<'_>) -> String {
    let catalogue = server.catalogue();
    let guide =
        instructions::guide(&catalogue, exposed_tools::runs_scripts(server), &facts(server));
    // Descriptions have been shortened.
    server.context.secrets.mask_shortened(&guide).into_owned()
}

/// What is remembered, where a memory is set. Without it the server goes on.
fn facts(server: &McpServer<'_>) -> String {
    let context = &server.context;
    let Some(path) = context.storage.facts.as_deref() else {
        return String::new();
    };
    let cancellation = context.cancellation;
    match (Memory { path, cancellation }).for_prompt() {
        Ok(facts) => context.secrets.mask(&facts).into_owned(),
        Err(error) => {
            server.warn(&error.to_string());
            String::new()
        }
    }
}

/// The versions up to 2025-11-25 begin so.
pub(super) fn initialize(server: &McpServer<'_>, asked: &RequestContext<'_, '_>) -> HandlerResult {
    #[derive(Deserialize)]
    struct InitializeParams {
        #[serde(rename = "protocolVersion")]
        version: String,
    }
    let params: InitializeParams = asked.request.params()?;
    let known = LEGACY.into_iter().find(|version| *version == params.version);
    server.is_initialized.set(true);
    Ok(RpcResult::of(&json!({
        "protocolVersion": known.unwrap_or(LEGACY[0]),
        "capabilities": capabilities(),
        "serverInfo": implementation(),
        "instructions": guide(server),
    })))
}

/// Whether anybody is there.
pub(super) fn ping() -> RpcResult {
    RpcResult::of(&json!({}))
}

/// The same for the versions that need no beginning.
pub(super) fn discover(server: &McpServer<'_>) -> RpcResult {
    let discovered = json!({
        "supportedVersions": MODERN,
        "capabilities": capabilities(),
        "instructions": guide(server),
    });
    RpcResult::of(&discovered).kept(limits::KEPT_MILLISECONDS)
}
