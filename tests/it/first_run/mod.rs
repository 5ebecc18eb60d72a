//! The endpoint and the model of a run with few settings: variables of other programs, Ollama on
//! this machine, and what is missing.

mod addresses;
mod init;
mod installed_model;
mod missing;
mod window;

use crate::harness::{Reply, Request, Server, Test};
use serde_json::json;

/// A run whose endpoint no setting names.
fn without_settings(server: &Server) -> Test {
    let test = Test::new().endpoint(server);
    test.env_unset("LLM_API_BASE_URL").env_unset("LLM_API_KEY").env_unset("LLM_MODEL_NAME")
}

/// Ollama with these models, of which the ones in `loaded` have a window.
fn ollama(
    models: &'static [&'static str],
    loaded: impl Fn() -> Option<u64> + Send + Sync + 'static,
) -> Server {
    Server::of_all_requests(move |request| answer_as_ollama(request, models, loaded()))
}

fn answer_as_ollama(request: &Request, models: &[&str], window: Option<u64>) -> Reply {
    let list = |entries: Vec<_>, field: &str| {
        let entries: serde_json::Value = entries.into();
        Reply::status(200).body(json!({ field: entries }).to_string())
    };
    let all = models.iter();
    match request.path.as_str() {
        "/api/version" => Reply::status(200).body(r#"{"version":"0.12.6"}"#),
        "/api/tags" => {
            list(all.map(|name| json!({"name": name, "model": name})).collect(), "models")
        }
        "/api/ps" => {
            let entry = |name| Some(json!({"name": name, "context_length": window?}));
            list(all.filter_map(entry).collect(), "models")
        }
        "/api/show" => Reply::status(200).body(r#"{"model_info":{"x.context_length":131072}}"#),
        "/v1/models" => {
            list(all.map(|name| json!({"id": name, "owned_by": "library"})).collect(), "data")
        }
        "/v1/chat/completions" => Reply::text("Done."),
        _ => Reply::status(404),
    }
}

/// The methods and paths of the requests.
fn paths(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}
