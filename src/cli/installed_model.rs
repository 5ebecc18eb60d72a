//! The model if none is set: the only one that Ollama on this machine has. This takes one
//! request.

use std::path::Path;

use crate::cli::model_lookup::typable_names;
use crate::config::{ConfigProblem, EndpointWithoutModel, SettingLine};
use base::error::{Error, ErrorKind, Fault};
use base::event::EventSink;
use base::limits;
use base::settings::LLM_MODEL_NAME;
use base::text::{counted, shell_quoted};
use chat_api::Endpoint;
use chat_api::http::{ListedModel, ModelListing, query_briefly};
use host::cancellation::Cancellation;

/// How a model was chosen that no setting names.
pub(super) const ONLY_MODEL: &str = "the only one that Ollama has";

/// Why no model was found.
pub(super) enum NoModel {
    /// The user must name one.
    Unset(ConfigProblem),
    /// The server did not answer, or the run must stop.
    Failed(Error),
}

/// Finds the model, and returns the endpoint with it.
pub(super) fn find_installed_model(
    endpoint: EndpointWithoutModel,
    cancellation: &Cancellation,
    sink: &mut EventSink<'_>,
) -> Result<Endpoint, NoModel> {
    let queried = endpoint.for_queries();
    let listing =
        match query_briefly(queried, cancellation, |query| query.list_installed_models(sink)) {
            Ok(listing) => listing,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted(_) | ErrorKind::Limit) => {
                return Err(NoModel::Failed(error));
            }
            Err(error) => return Err(NoModel::Failed(unreachable(error.kind(), error.message()))),
        };
    match listing {
        Some(ModelListing::Models(models)) => match models.as_slice() {
            [only] if is_of_ollama(only) => {
                let name = only.name.clone();
                Ok(endpoint.with_found_model(name))
            }
            models => Err(NoModel::Unset(unset(models))),
        },
        Some(ModelListing::Refused(_) | ModelListing::Unavailable(_)) => {
            Err(NoModel::Unset(ConfigProblem::missing_model()))
        }
        Some(ModelListing::NoAnswer(_)) | None => {
            let limit = limits::BRIEF_QUERY_TIMEOUT.as_millis();
            let cause = format!("{} did not answer within {limit} ms", queried.address);
            Err(NoModel::Failed(unreachable(ErrorKind::Temporary, &cause)))
        }
    }
}

/// Ollama names no owners in its list of installed models; llama.cpp, which answers the same
/// request, does.
fn is_of_ollama(model: &ListedModel) -> bool {
    model.owner.is_empty()
}

/// The problem of a server with none or several models.
fn unset(models: &[ListedModel]) -> ConfigProblem {
    let is_ollama = models.iter().all(is_of_ollama);
    let server = if is_ollama { "Ollama" } else { "the server" };
    let count = match models.len() {
        0 => "no model".into(),
        count => counted(count, "model"),
    };
    let message = format!("{LLM_MODEL_NAME} is not set, and {server} has {count}");
    if models.is_empty() {
        let fault = Fault::new(message, "`ollama pull qwen3`, or another model");
        return ConfigProblem { fault, lines: Vec::new() };
    }
    let lines = typable_names(models);
    let lines = lines.take(limits::LISTED_NAMES);
    let lines = lines.map(|name| SettingLine::new(LLM_MODEL_NAME, shell_quoted(Path::new(name))));
    ConfigProblem::missing(message, lines.collect())
}

/// The error of a server that cannot be asked.
fn unreachable(kind: ErrorKind, cause: &str) -> Error {
    let message = format!("failed to find a model: {LLM_MODEL_NAME} is not set, and {cause}");
    Error::new(kind, message)
        .with_hint(format!("start Ollama: `ollama serve`; for another server set {LLM_MODEL_NAME}"))
}
