//! Identity and capabilities of the server: `initialize`, `ping`, `server/discover`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::McpServer;
use super::era::{LEGACY, MODERN, RpcResult, implementation};
use super::exposed_tools;
use super::request_context::{HandlerResult, RequestContext};
use agent::memory::Memory;
use agent::system_prompt;
use agent::tools::Tool;
use base::limits;

fn capabilities() -> Value {
    json!({
        "tools": {},
        "prompts": {},
        "resources": {},
        "extensions": {"io.modelcontextprotocol/skills": {"directoryRead": true}},
    })
}

/// Instructions for the client's model: how to use skills, and a list of them.
fn instructions(server: &McpServer<'_>) -> String {
    let catalogue = server.catalogue();
    let scripts = server.context.scripts.filter(|_| server.context.user_files);
    let text = system_prompt::server_instructions(
        &catalogue,
        exposed_tools::offered_tools(server).map(Tool::name),
        scripts.map(|scripts| scripts.user_folder.as_path()),
        &facts(server),
    );
    // Descriptions were truncated.
    server.context.secrets.mask_shortened(&text).into_owned()
}

/// The remembered facts, if a memory is configured. A failure is only a warning.
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

/// `initialize`: the first request in versions up to 2025-11-25.
pub(super) fn initialize(
    server: &McpServer<'_>,
    request: &RequestContext<'_, '_>,
) -> HandlerResult {
    #[derive(Deserialize)]
    struct InitializeParams {
        #[serde(rename = "protocolVersion")]
        version: String,
    }
    let params: InitializeParams = request.raw.parse_params()?;
    let known = LEGACY.into_iter().find(|version| *version == params.version);
    server.is_initialized.set(true);
    Ok(RpcResult::new("protocolVersion", known.unwrap_or(LEGACY[0]))
        .with("capabilities", capabilities())
        .with("serverInfo", implementation())
        .with("instructions", instructions(server)))
}

/// `ping`.
pub(super) fn ping() -> RpcResult {
    RpcResult::default()
}

/// `server/discover`: the counterpart of `initialize` in later versions.
pub(super) fn discover(server: &McpServer<'_>) -> RpcResult {
    RpcResult::new("supportedVersions", MODERN.to_vec())
        .with("capabilities", capabilities())
        .with("instructions", instructions(server))
        .cached_for(limits::CACHE_MILLISECONDS)
}
