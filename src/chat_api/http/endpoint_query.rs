//! Queries about an endpoint: its models, its server program, its context window. `doctor` and
//! runs of questions use them.
//!
//! No answer of a model depends on them, so a query is never repeated, and what an endpoint
//! does not report stays unknown.

use std::cell::Cell;
use std::io::{self, Read};
use std::time::Instant;

use crate::Endpoint;
use crate::http::client::{Client, without_query};
use crate::http::failure::{stop_error, transport_failure};
use crate::http::models::{ListedModel, find_model, parse_models};
use crate::quirks::contains_any;
use crate::quirks::servers::{self, ServerKind};
use crate::wire::LooseValue;
use base::bounded;
use base::error::{Error, ErrorKind, FailedPart, Result};
use base::event::{Event, EventSink};
use base::limits;
use host::cancellation::{Cancellation, StopReason};

/// The default port of Ollama.
pub const OLLAMA_PORT: u16 = 11434; // not a limit

/// Sends queries about an endpoint.
#[derive(Debug)]
pub struct EndpointQuery {
    client: Client,
    /// Ollama's report on the model.
    described: Cell<Option<DescribedModel>>,
}

/// The list of models of an endpoint.
#[derive(Debug)]
pub enum ModelListing {
    /// These models, at most [`limits::MODELS`].
    Models(Vec<ListedModel>),
    /// The credentials were refused (401, 403), perhaps only for the list.
    Refused(Error),
    /// There is no list, for this reason.
    Unavailable(String),
    /// Connected, but there was no answer, for this reason.
    NoAnswer(String),
}

/// The context window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextWindow {
    /// The size that is served.
    Served(u64),
    /// The size that the model was trained for; the served size is not reported.
    Trained(u64),
    /// Not reported.
    Unknown,
}

/// Report on the configured model.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportedModel {
    /// The number of parameters, if it decides how the model calls tools.
    pub parameters: Option<u64>,
    /// The context window that is served, in tokens.
    pub window: Option<u64>,
    /// Whether the window may be another one after the next answer. Ollama loads the model with the
    /// first request: before that it reports none, or that of another program's request.
    pub is_provisional: bool,
}

/// Ollama's report on a model; `None`: not reported.
#[derive(Clone, Copy, Debug, Default)]
struct DescribedModel {
    /// The context size set in the Modelfile.
    set_tokens: Option<u64>,
    /// The context size that the model was trained for.
    trained_tokens: Option<u64>,
    /// The number of parameters.
    parameters: Option<u64>,
}

/// Sends queries that delay a run without a need, so they have
/// [`limits::BRIEF_QUERY_TIMEOUT`] in all; `None` if they take longer.
pub fn query_briefly<T>(
    endpoint: &Endpoint,
    cancellation: &Cancellation,
    send: impl FnOnce(&EndpointQuery) -> Result<T>,
) -> Result<Option<T>> {
    let limit = cancellation.capped_by_deadline(limits::BRIEF_QUERY_TIMEOUT);
    let interrupt = cancellation.interrupt.clone();
    let brief = Cancellation { interrupt, deadline: Some(Instant::now() + limit) };
    match send(&EndpointQuery::new(endpoint.clone(), brief)) {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == ErrorKind::Limit && cancellation.check().is_ok() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The response to a query.
enum QueryResponse {
    Body(Vec<u8>),
    Refused(u16, Error),
    /// Connected, but there was no answer, for this reason.
    NoAnswer(String),
}

impl EndpointQuery {
    /// Creates a client for queries without connecting.
    pub fn new(endpoint: Endpoint, cancellation: Cancellation) -> EndpointQuery {
        EndpointQuery { client: Client::new(endpoint, cancellation), described: Cell::default() }
    }

    /// Lists the models. An error means that there is no connection, or that the run must stop.
    pub fn list_models(&self, sink: &mut EventSink<'_>) -> Result<ModelListing> {
        self.list(&self.client.endpoint.address.models_url(), sink)
    }

    /// Lists the models that are installed in Ollama; other servers have no such list, or one
    /// with the owner of each model.
    pub fn list_installed_models(&self, sink: &mut EventSink<'_>) -> Result<ModelListing> {
        self.list(&self.client.endpoint.address.server_url("/api/tags"), sink)
    }

    fn list(&self, url: &str, sink: &mut EventSink<'_>) -> Result<ModelListing> {
        let unavailable = |reason: &str| Ok(ModelListing::Unavailable(reason.into()));
        match self.fetch(url, None, sink)? {
            QueryResponse::Body(body) => match parse_models(&body) {
                Some(mut models) => {
                    // The names may have been cut.
                    for name in models.iter_mut().map(|model| &mut model.name) {
                        *name = self.client.endpoint.secrets.mask_shortened(name).into();
                    }
                    Ok(ModelListing::Models(models))
                }
                None if body.len() > limits::METADATA_BYTES => unavailable("the list is too long"),
                None => unavailable("the endpoint's answer is not a list of models"),
            },
            QueryResponse::Refused(401 | 403, error) => Ok(ModelListing::Refused(error)),
            QueryResponse::Refused(status @ (404 | 405 | 501), _) => Ok(ModelListing::Unavailable(
                format!("the endpoint has no list of models (status {status})"),
            )),
            QueryResponse::Refused(status, _) => {
                Ok(ModelListing::Unavailable(format!("the endpoint answered with status {status}")))
            }
            QueryResponse::NoAnswer(reason) => Ok(ModelListing::NoAnswer(reason)),
        }
    }

    /// Detects the server program from its answers. An error means that the run must stop.
    pub fn server_kind(
        &self,
        models: &[ListedModel],
        sink: &mut EventSink<'_>,
    ) -> Result<ServerKind> {
        let address = &self.client.endpoint.address;
        let owner = models.first().map_or("", |model| model.owner.as_str());
        if let Some((_, kind)) = servers::OWNERS.iter().find(|(name, _)| *name == owner) {
            return Ok(*kind);
        }
        // Ollama and llama.cpp speak plain http; other servers need no query.
        if address.is_encrypted() {
            return Ok(ServerKind::Other);
        }
        let body = self.fetch_body(&address.server_url(servers::OLLAMA_VERSION), None, sink)?;
        bounded::reset_count();
        let version: LooseValue =
            serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
        let is_ollama = version.field("version").is_string();
        Ok(if is_ollama || address.port() == OLLAMA_PORT {
            ServerKind::Ollama
        } else {
            ServerKind::Other
        })
    }

    /// Queries what a run depends on, and adds it to `reported` as it comes: the last answer may be
    /// late. An error means that there is no connection, or that the run must stop.
    pub fn report_model(
        &self,
        needs_window: bool,
        reported: &mut ReportedModel,
        sink: &mut EventSink<'_>,
    ) -> Result<()> {
        let ModelListing::Models(models) = self.list_models(sink)? else {
            return Ok(());
        };
        let server = self.server_kind(&models, sink)?;
        let listed = find_model(&models, &self.client.endpoint.model, server);
        reported.is_provisional = needs_window && server == ServerKind::Ollama;
        reported.parameters = self.parameters(&models, server, sink)?;
        reported.window = match server {
            _ if !needs_window => None,
            // It lists all models that it has.
            ServerKind::Ollama if listed.is_none() => None,
            ServerKind::Other => listed.and_then(|model| model.served_tokens),
            _ => match self.context_window(server, listed, sink)? {
                ContextWindow::Served(tokens) => Some(tokens),
                ContextWindow::Trained(_) | ContextWindow::Unknown => None,
            },
        };
        Ok(())
    }

    /// Queries the number of parameters of the configured model, if it decides how the model calls
    /// tools; `models`: the list of a `server` of this kind. An error means that the run must stop.
    pub fn parameters(
        &self,
        models: &[ListedModel],
        server: ServerKind,
        sink: &mut EventSink<'_>,
    ) -> Result<Option<u64>> {
        let endpoint = &self.client.endpoint;
        if !endpoint.calls_by_size() {
            return Ok(None);
        }
        let listed = find_model(models, &endpoint.model, server);
        Ok(match (server, listed, models) {
            (ServerKind::Ollama, Some(_), _) => self.described_model(sink)?.parameters,
            // It has one, whatever its name is in requests.
            (ServerKind::LlamaCpp, None, [only]) => only.parameters,
            (_, listed, _) => listed.and_then(|model| model.parameters),
        })
    }

    /// Queries the context window of the configured model. `listed` is its entry in the list.
    /// An error means that the run must stop.
    pub fn context_window(
        &self,
        server: ServerKind,
        listed: Option<&ListedModel>,
        sink: &mut EventSink<'_>,
    ) -> Result<ContextWindow> {
        let trained = listed.and_then(|model| model.trained_tokens);
        let (actual, trained) = match (server, listed.and_then(|model| model.served_tokens)) {
            (ServerKind::Ollama, _) => {
                let loaded = self.loaded_context(sink)?;
                let described = self.described_model(sink)?;
                let (set, trained) = (described.set_tokens, described.trained_tokens.or(trained));
                // Never more than the model has: of several requests at once each gets a part.
                let actual = loaded.into_iter().chain(set).min();
                (actual.map(|tokens| tokens.min(trained.unwrap_or(tokens))), trained)
            }
            (_, Some(tokens)) => (Some(tokens), None),
            (ServerKind::LlamaCpp, None) => (self.llama_cpp_context(sink)?, trained),
            (ServerKind::Other, None) if !self.client.endpoint.address.is_encrypted() => {
                (self.llama_cpp_context(sink)?, trained)
            }
            (ServerKind::Other, None) => (None, trained),
        };
        let trained = trained.map_or(ContextWindow::Unknown, ContextWindow::Trained);
        Ok(actual.map_or(trained, ContextWindow::Served))
    }

    /// Ollama: the context size of the model if it is loaded.
    fn loaded_context(&self, sink: &mut EventSink<'_>) -> Result<Option<u64>> {
        let url = self.client.endpoint.address.server_url("/api/ps");
        let list = self.fetch_body(&url, None, sink)?;
        let models = list.and_then(|body| parse_models(&body)).unwrap_or_default();
        let loaded = find_model(&models, &self.client.endpoint.model, ServerKind::Ollama);
        Ok(loaded.and_then(|model| model.served_tokens))
    }

    /// Ollama: what it reports of the model.
    fn described_model(&self, sink: &mut EventSink<'_>) -> Result<DescribedModel> {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct ShownModel {
            parameters: LooseValue,
            model_info: LooseValue,
            details: LooseValue,
        }
        if let Some(described) = self.described.get() {
            return Ok(described);
        }
        let url = self.client.endpoint.address.server_url("/api/show");
        let question = serde_json::json!({"model": self.client.endpoint.model}).to_string();
        let body = self.fetch_body(&url, Some(question.as_bytes()), sink)?;
        let body = body.unwrap_or_default();
        bounded::reset_count();
        let show: ShownModel = serde_json::from_slice(&body).unwrap_or_default();
        let parameters = show.parameters.text();
        let set_tokens = parameters.lines().find_map(|line| {
            let value = line.trim().strip_prefix("num_ctx")?;
            value.trim().parse().ok().filter(|tokens| *tokens > 0)
        });
        let mut fields = show.model_info.fields();
        let trained_tokens = fields
            .find(|(name, _)| name.ends_with(".context_length"))
            .and_then(|(_, tokens)| tokens.as_u64())
            .filter(|tokens| *tokens > 0);
        let size = show.details.field("parameter_size").as_str().and_then(parameter_count);
        let count = show.model_info.field(servers::DESCRIBED_PARAMETERS).as_u64();
        let parameters = count.filter(|count| *count > 0).or(size);
        let described = DescribedModel { set_tokens, trained_tokens, parameters };
        self.described.set(Some(described));
        Ok(described)
    }

    /// llama.cpp: the context size of a request.
    fn llama_cpp_context(&self, sink: &mut EventSink<'_>) -> Result<Option<u64>> {
        let url = self.client.endpoint.address.server_url("/props");
        let body = self.fetch_body(&url, None, sink)?.unwrap_or_default();
        bounded::reset_count();
        let properties: LooseValue = serde_json::from_slice(&body).unwrap_or_default();
        let tokens = properties.number_at("default_generation_settings.n_ctx");
        Ok(tokens.filter(|tokens| *tokens > 0))
    }

    /// The body of a successful response, or `None`. An error means that the run must stop.
    fn fetch_body(
        &self,
        url: &str,
        body: Option<&[u8]>,
        sink: &mut EventSink<'_>,
    ) -> Result<Option<Vec<u8>>> {
        match self.fetch(url, body, sink) {
            Ok(QueryResponse::Body(body)) => Ok(Some(body)),
            Ok(_) => Ok(None),
            // A failed query is not an error; a stop of the run is.
            Err(error) => self.client.cancellation.check().map(|()| None).map_err(|_| error),
        }
    }

    fn fetch(
        &self,
        url: &str,
        body: Option<&[u8]>,
        sink: &mut EventSink<'_>,
    ) -> Result<QueryResponse> {
        sink(Event::Request {
            method: if body.is_some() { "POST" } else { "GET" },
            url: without_query(url),
            bytes: body.map_or(0, <[u8]>::len),
        });
        let start = Instant::now();
        let response = match self.client.query(url, body) {
            Ok(response) => response,
            Err(error) => return without_response(url, error),
        };
        let (parts, mut body) = response.into_parts();
        let mut reader = body.as_reader().take(limits::METADATA_BYTES as u64 + 1);
        let response = if parts.status.is_success() {
            let mut bytes = Vec::new();
            match reader.read_to_end(&mut bytes) {
                Ok(_) => QueryResponse::Body(bytes),
                Err(error) => without_end(&error)?,
            }
        } else {
            let failure = self.client.refusal_failure(url, &parts, &mut reader);
            let error = failure.error(without_query(url));
            match failure.answer {
                Some(answer) if contains_any(&answer.words, &servers::LIST_REFUSALS) => {
                    QueryResponse::Refused(answer.status, error.with_part(FailedPart::ModelList))
                }
                Some(answer) => QueryResponse::Refused(answer.status, error),
                None => return Err(error),
            }
        };
        sink(Event::Response { duration: start.elapsed(), usage: None });
        Ok(response)
    }
}

/// The number that a size such as `1.5B` or `494.03M` means.
fn parameter_count(size: &str) -> Option<u64> {
    let unit = size.chars().next_back()?;
    let (_, factor) = servers::SIZE_UNITS.iter().find(|(name, _)| *name == unit)?;
    let number: f64 = size.strip_suffix(unit)?.parse().ok()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let count = (number * factor) as u64;
    (count > 0).then_some(count)
}

/// Handles a missing response: silence is one kind of answer, anything else means no
/// connection.
fn without_response(url: &str, error: ureq::Error) -> Result<QueryResponse> {
    if let ureq::Error::Io(cause) = &error
        && let Some(stop @ (StopReason::Silence(_) | StopReason::Incomplete(_))) =
            StopReason::from_io_error(cause)
    {
        return Ok(QueryResponse::NoAnswer(stop.to_string()));
    }
    Err(transport_failure(error).error(without_query(url)))
}

fn without_end(error: &io::Error) -> Result<QueryResponse> {
    match stop_error(error) {
        Some(stop) => Err(stop),
        None => Ok(QueryResponse::NoAnswer("the answer was cut off".into())),
    }
}
