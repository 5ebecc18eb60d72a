//! Whether the endpoint lists the configured model, and what helps if not, in
//! the words that `doctor` and conversations share.

use crate::config::Endpoint;
use crate::error::Result;
use crate::event::Listener;
use crate::limits;
use crate::model::http::{Inquiry, Listed, Listing, Server, find};
use crate::text;
use crate::world::patience::Patience;

/// A model that is not listed.
#[derive(Debug)]
pub struct Unlisted {
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub fix: String,
    /// Names like it.
    pub near: Vec<String>,
    /// Whose list it is: what Ollama does not list it does not have, elsewhere
    /// the name may be an alias.
    pub server: Server,
}

/// What is wrong with the endpoint's model, as far as its list tells. An
/// endpoint that has none tells nothing.
#[derive(Debug)]
pub enum Found {
    /// The model is there, or nobody can tell.
    Fine,
    /// It is not on the list.
    Unlisted(Unlisted),
    /// Nothing is told, for this reason, though it should be.
    Silent(String),
    /// The credentials were refused.
    Refused(crate::error::Error),
}

/// Asks the endpoint for its models. An error means that there is no
/// connection, or that the run is to stop.
pub fn look(
    endpoint: &Endpoint,
    patience: &Patience,
    listener: &mut Listener<'_>,
) -> Result<Found> {
    let inquiry = Inquiry::new(endpoint.clone(), patience.clone());
    let models = match inquiry.models(listener)? {
        Listing::Models(models) => models,
        Listing::Refused(error) => return Ok(Found::Refused(error)),
        Listing::Silent(reason) => return Ok(Found::Silent(reason)),
        Listing::Untold(_) => return Ok(Found::Fine),
    };
    let wanted = &endpoint.model;
    if find(&models, wanted, Server::Other).is_some() {
        return Ok(Found::Fine);
    }
    let server = inquiry.server(&models, listener)?;
    Ok(match find(&models, wanted, server) {
        Some(_) => Found::Fine,
        // An empty list tells nothing, but that of a server that has all it lists.
        None if models.is_empty() && server == Server::Other => Found::Fine,
        None => Found::Unlisted(Unlisted::new(wanted, &models, server)),
    })
}

impl Unlisted {
    /// The model `wanted`, which is not among these.
    pub fn new(wanted: &str, models: &[Listed], server: Server) -> Unlisted {
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
        let (message, fix) = if server == Server::Ollama {
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
        Unlisted { message, fix, near: near.into_iter().map(String::from).collect(), server }
    }
}

/// Ollama takes a name for its latest version; the rest tells names apart.
pub fn names(models: &[Listed]) -> impl Iterator<Item = &str> {
    let names = models.iter().map(|model| model.name.as_str());
    names.map(|name| name.strip_suffix(":latest").unwrap_or(name))
}

fn quoted(names: &[&str]) -> String {
    let names = names.iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}
