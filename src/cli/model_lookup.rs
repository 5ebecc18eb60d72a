//! Whether the endpoint lists the configured model, and what helps if not, in
//! the words that `doctor` and conversations share.

use crate::config::Endpoint;
use crate::error::Result;
use crate::event::EventSink;
use crate::limits;
use crate::model::http::{EndpointQuery, ListedModel, ModelListing, ServerKind, find};
use crate::text;
use crate::world::cancellation::Cancellation;

/// A model that is not listed.
#[derive(Debug)]
pub(super) struct UnlistedModel {
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub fix: String,
    /// Names like it.
    pub near: Vec<String>,
    /// Whose list it is: what Ollama does not list it does not have, elsewhere
    /// the name may be an alias.
    pub server: ServerKind,
}

/// What is wrong with the endpoint's model, as far as its list tells. An
/// endpoint that has none tells nothing.
#[derive(Debug)]
pub(super) enum ModelLookup {
    /// The model is there, or nobody can tell.
    Fine,
    /// It is not on the list.
    Unlisted(UnlistedModel),
    /// Nothing is told, for this reason, though it should be.
    Silent(String),
    /// The credentials were refused.
    Refused(crate::error::Error),
}

/// Asks the endpoint for its models. An error means that there is no
/// connection, or that the run is to stop.
pub(super) fn look(
    endpoint: &Endpoint,
    cancellation: &Cancellation,
    sink: &mut EventSink<'_>,
) -> Result<ModelLookup> {
    let inquiry = EndpointQuery::new(endpoint.clone(), cancellation.clone());
    let models = match inquiry.models(sink)? {
        ModelListing::Models(models) => models,
        ModelListing::Refused(error) => return Ok(ModelLookup::Refused(error)),
        ModelListing::Silent(reason) => return Ok(ModelLookup::Silent(reason)),
        ModelListing::Untold(_) => return Ok(ModelLookup::Fine),
    };
    let wanted = &endpoint.model;
    if find(&models, wanted, ServerKind::Other).is_some() {
        return Ok(ModelLookup::Fine);
    }
    let server = inquiry.server(&models, sink)?;
    Ok(match find(&models, wanted, server) {
        Some(_) => ModelLookup::Fine,
        // An empty list tells nothing, but that of a server that has all it lists.
        None if models.is_empty() && server == ServerKind::Other => ModelLookup::Fine,
        None => ModelLookup::Unlisted(UnlistedModel::new(wanted, &models, server)),
    })
}

impl UnlistedModel {
    /// The model `wanted`, which is not among these.
    pub(super) fn new(wanted: &str, models: &[ListedModel], server: ServerKind) -> UnlistedModel {
        let count = models.len();
        let near = text::nearest(wanted, names(models), limits::NEAR_NAMES);
        let told = if near.is_empty() {
            let first: Vec<&str> = names(models).take(limits::NEAR_NAMES).collect();
            let more = if count > first.len() { ", …" } else { "" };
            match first.as_slice() {
                [] => String::new(),
                first => format!("; there are {}{more}", quoted(first)),
            }
        } else {
            format!("; near names: {}", quoted(&near))
        };
        let (message, fix) = if server == ServerKind::Ollama {
            let pull = match near.first() {
                Some(near) => {
                    format!("`ollama pull {wanted}`, or set LLM_MODEL_NAME to `{near}`")
                }
                None => format!("`ollama pull {wanted}`"),
            };
            (format!("Ollama does not have `{wanted}`{told}"), pull)
        } else {
            let message = format!("`{wanted}` is not among the {count} models listed{told}");
            let fix = match (near.as_slice(), count) {
                ([], 0) => "load a model in the server".to_string(),
                ([], _) => "set LLM_MODEL_NAME to a name of the list, unless it is an alias".into(),
                (near, _) => {
                    format!("set LLM_MODEL_NAME to {}, unless it is an alias", quoted(&near[..1]))
                }
            };
            (message, fix)
        };
        UnlistedModel { message, fix, near: near.into_iter().map(String::from).collect(), server }
    }
}

/// Ollama takes a name for its latest version; the rest tells names apart.
pub(super) fn names(models: &[ListedModel]) -> impl Iterator<Item = &str> {
    let names = models.iter().map(|model| model.name.as_str());
    names.map(|name| name.strip_suffix(":latest").unwrap_or(name))
}

fn quoted(names: &[&str]) -> String {
    let names = names.iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}
