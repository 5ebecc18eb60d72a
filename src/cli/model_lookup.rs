//! Checks whether the endpoint lists the configured model, with messages that `doctor` and
//! conversations share.

use base::error::Result;
use base::event::EventSink;
use base::limits;
use base::text;
use chat_api::Endpoint;
use chat_api::http::{EndpointQuery, ListedModel, ModelListing, ServerKind, find_model};
use host::cancellation::Cancellation;

/// A model that the endpoint does not list.
#[derive(Debug)]
pub(super) struct UnlistedModel {
    /// The problem.
    pub message: String,
    /// Its remedy.
    pub fix: String,
    /// Similar names in the list.
    pub near: Vec<String>,
    /// The kind of server: Ollama lists every model that it has; elsewhere the name may be an
    /// alias.
    pub server: ServerKind,
}

/// Result of looking up the model in the endpoint's list.
#[derive(Debug)]
pub(super) enum ModelLookup {
    /// The model is listed, or the endpoint has no list.
    NoProblem,
    /// The model is not in the list.
    Unlisted(UnlistedModel),
    /// The endpoint did not return its list, for this reason.
    Silent(String),
    /// The credentials were refused.
    Refused(base::error::Error),
}

/// Requests the list of models. An error means that there is no connection or that the run
/// must stop.
pub(super) fn look_up_model(
    endpoint: &Endpoint,
    cancellation: &Cancellation,
    sink: &mut EventSink<'_>,
) -> Result<ModelLookup> {
    let query = EndpointQuery::new(endpoint.clone(), cancellation.clone());
    let models = match query.list_models(sink)? {
        ModelListing::Models(models) => models,
        ModelListing::Refused(error) => return Ok(ModelLookup::Refused(error)),
        ModelListing::NoAnswer(reason) => return Ok(ModelLookup::Silent(reason)),
        ModelListing::Unavailable(_) => return Ok(ModelLookup::NoProblem),
    };
    let wanted = &endpoint.model;
    if find_model(&models, wanted, ServerKind::Other).is_some() {
        return Ok(ModelLookup::NoProblem);
    }
    let server = query.server_kind(&models, sink)?;
    Ok(match find_model(&models, wanted, server) {
        Some(_) => ModelLookup::NoProblem,
        // An empty list proves nothing, except from a server that lists all its models.
        None if models.is_empty() && server == ServerKind::Other => ModelLookup::NoProblem,
        None => ModelLookup::Unlisted(UnlistedModel::new(wanted, &models, server)),
    })
}

impl UnlistedModel {
    /// Describes the model `wanted`, which is not among `models`.
    pub(super) fn new(wanted: &str, models: &[ListedModel], server: ServerKind) -> UnlistedModel {
        let near = text::similar_names(wanted, names(models), limits::SIMILAR_NAMES);
        let listed = if near.is_empty() {
            let first: Vec<&str> = names(models).take(limits::SIMILAR_NAMES).collect();
            let more = if models.len() > first.len() { ", …" } else { "" };
            match first.as_slice() {
                [] => String::new(),
                first => format!("; the endpoint lists {}{more}", quoted(first)),
            }
        } else {
            format!("; similar names: {}", quoted(&near))
        };
        let near: Vec<String> = near.into_iter().map(String::from).collect();
        let message = match server {
            ServerKind::Ollama => format!("Ollama does not have `{wanted}`{listed}"),
            _ => {
                let count = text::counted(models.len(), "model");
                format!("`{wanted}` is not among the {count} listed{listed}")
            }
        };
        let fix = match (server, near.first()) {
            (ServerKind::Ollama, None) => format!("`ollama pull {wanted}`"),
            (ServerKind::Ollama, Some(near)) => {
                format!("`ollama pull {wanted}`, or set LLM_MODEL_NAME to `{near}`")
            }
            _ if models.is_empty() => "load a model in the server".to_string(),
            (_, None) => {
                "set LLM_MODEL_NAME to a name in the list, unless yours is an alias".into()
            }
            (_, Some(near)) => format!("set LLM_MODEL_NAME to `{near}`, unless yours is an alias"),
        };
        UnlistedModel { message, fix, near, server }
    }
}

/// The names without `:latest`, which Ollama assumes.
pub(super) fn names(models: &[ListedModel]) -> impl Iterator<Item = &str> {
    let names = models.iter().map(|model| model.name.as_str());
    names.map(|name| name.strip_suffix(":latest").unwrap_or(name))
}

/// The names that a user can type: control characters have been replaced where the list was read.
pub(super) fn typable_names(models: &[ListedModel]) -> impl Iterator<Item = &str> {
    names(models).filter(|name| !name.contains('\u{fffd}'))
}

fn quoted(names: &[&str]) -> String {
    let names = names.iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}
