//! What an endpoint tells of itself: its models, whose server it is, how much
//! context it serves. `doctor` asks; conversations do without.
//!
//! Nothing here is needed for an answer, so nothing here is asked twice, and
//! whatever an endpoint does not tell is simply not known.

use std::io::{self, Read};
use std::time::Instant;

use serde_json::{Map, Value};

use crate::bounded;
use crate::config::Endpoint;
use crate::error::{Error, Result};
use crate::event::{Event, EventSink};
use crate::limits;
use crate::model::http::client::Client;
use crate::model::http::connect_error::shown;
use crate::model::http::failure::{broken, stop_of};
use crate::model::http::models::{ListedModel, ServerKind, find, parse};
use crate::model::request_failure::RequestFailure;
use crate::model::wire::LooseValue;
use crate::world::cancellation::{Cancellation, StopReason};

/// Where Ollama listens, unless it was told otherwise.
const OLLAMA_PORT: u16 = 11434; // not a bound

/// Asks an endpoint about itself.
#[derive(Debug)]
pub(crate) struct EndpointQuery {
    client: Client,
}

/// The models of an endpoint, as far as it tells.
#[derive(Debug)]
pub(crate) enum ModelListing {
    /// These, at most [`limits::MODELS`].
    Models(Vec<ListedModel>),
    /// The credentials were refused (401, 403). That may be meant for the list alone.
    Refused(Error),
    /// There is none, for this reason.
    Untold(String),
    /// Connected, but no answer came, for this reason.
    Silent(String),
}

/// How much context there is, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextWindow {
    /// This much is served.
    Served(u64),
    /// The model was made for this much; what is served is not told.
    Trained(u64),
    /// Not told.
    Unknown,
}

/// What came of a question.
enum QueryResponse {
    Body(Vec<u8>),
    Refused(u16, Error),
    /// Connected, but no answer came, for this reason.
    Nothing(String),
}

impl EndpointQuery {
    /// Nobody has been asked yet.
    pub(crate) fn new(endpoint: Endpoint, cancellation: Cancellation) -> EndpointQuery {
        EndpointQuery { client: Client::new(endpoint, cancellation) }
    }

    /// Which models there are. An error means that there is no connection, or
    /// that the run is to stop.
    pub(crate) fn models(&self, sink: &mut EventSink<'_>) -> Result<ModelListing> {
        let url = self.client.endpoint.address.models();
        let untold = |reason: &str| Ok(ModelListing::Untold(reason.into()));
        match self.send(&url, None, sink)? {
            QueryResponse::Body(body) => match parse(&body) {
                Some(mut models) => {
                    // Their names have been cut.
                    for name in models.iter_mut().map(|model| &mut model.name) {
                        *name = self.client.endpoint.secrets.mask_shortened(name).into();
                    }
                    Ok(ModelListing::Models(models))
                }
                None if body.len() > limits::INQUIRY_BYTES => untold("the list is too long"),
                None => untold("the endpoint answers with something else"),
            },
            QueryResponse::Refused(401 | 403, error) => Ok(ModelListing::Refused(error)),
            QueryResponse::Refused(status @ (404 | 405 | 501), _) => Ok(ModelListing::Untold(
                format!("the endpoint has no list of models (status {status})"),
            )),
            QueryResponse::Refused(status, _) => {
                Ok(ModelListing::Untold(format!("the endpoint answers with status {status}")))
            }
            QueryResponse::Nothing(reason) => Ok(ModelListing::Silent(reason)),
        }
    }

    /// Whose server it is, by what it answers. An error: the run is to stop.
    pub(crate) fn server(
        &self,
        models: &[ListedModel],
        sink: &mut EventSink<'_>,
    ) -> Result<ServerKind> {
        let address = &self.client.endpoint.address;
        let owner = models.first().map_or("", |model| model.owner.as_str());
        match owner {
            "library" => return Ok(ServerKind::Ollama),
            "llamacpp" => return Ok(ServerKind::LlamaCpp),
            _ => {}
        }
        // Both speak plain http; nobody else needs to be asked.
        if address.is_encrypted() || owner == "vllm" {
            return Ok(ServerKind::Other);
        }
        let greeting = self.told(&address.beside("/"), None, sink)?;
        let is_ollama = greeting.is_some_and(|body| body.starts_with(b"Ollama is running"));
        Ok(if is_ollama || address.port() == OLLAMA_PORT {
            ServerKind::Ollama
        } else {
            ServerKind::Other
        })
    }

    /// How much context the configured model has there. `listed` is its entry
    /// of the list. An error: the run is to stop.
    pub(crate) fn window(
        &self,
        server: ServerKind,
        listed: Option<&ListedModel>,
        sink: &mut EventSink<'_>,
    ) -> Result<ContextWindow> {
        let trained = listed.and_then(|model| model.trained);
        let (actual, trained) = match (server, listed.and_then(|model| model.served)) {
            (ServerKind::Ollama, _) => {
                let loaded = self.loaded(sink)?;
                let (set, made_for) = self.described(sink)?;
                (loaded.or(set), made_for.or(trained))
            }
            (_, Some(told)) => (Some(told), None),
            (ServerKind::LlamaCpp, None) => (self.properties(sink)?, trained),
            (ServerKind::Other, None) if !self.client.endpoint.address.is_encrypted() => {
                (self.properties(sink)?, trained)
            }
            (ServerKind::Other, None) => (None, trained),
        };
        let trained = trained.map_or(ContextWindow::Unknown, ContextWindow::Trained);
        Ok(actual.map_or(trained, ContextWindow::Served))
    }

    /// Ollama: the context of the model that is loaded just now.
    fn loaded(&self, sink: &mut EventSink<'_>) -> Result<Option<u64>> {
        let url = self.client.endpoint.address.beside("/api/ps");
        let list = self.told(&url, None, sink)?;
        let models = list.and_then(|body| parse(&body)).unwrap_or_default();
        let loaded = find(&models, &self.client.endpoint.model, ServerKind::Ollama);
        Ok(loaded.and_then(|model| model.served))
    }

    /// Ollama: the context that the model's file sets, and what it was made for.
    fn described(&self, sink: &mut EventSink<'_>) -> Result<(Option<u64>, Option<u64>)> {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct ModelQuery<'s> {
            #[serde(borrow)]
            parameters: LooseValue<'s>,
            #[serde(borrow)]
            model_info: LooseValue<'s>,
        }
        let url = self.client.endpoint.address.beside("/api/show");
        let question = serde_json::json!({"model": self.client.endpoint.model}).to_string();
        let body = self.told(&url, Some(question.as_bytes()), sink)?;
        let body = body.unwrap_or_default();
        bounded::begin();
        let show: ModelQuery<'_> = serde_json::from_slice(&body).unwrap_or_default();
        let parameters = show.parameters.text();
        let set = parameters.lines().find_map(|line| {
            let value = line.trim().strip_prefix("num_ctx")?;
            value.trim().parse().ok()
        });
        let fields = match show.model_info.into_value() {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let made_for = fields
            .iter()
            .find(|(name, _)| name.ends_with(".context_length"))
            .and_then(|(_, tokens)| tokens.as_u64());
        Ok((set, made_for))
    }

    /// llama.cpp: the context that a request gets.
    fn properties(&self, sink: &mut EventSink<'_>) -> Result<Option<u64>> {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct ServerProperties {
            default_generation_settings: GenerationDefaults,
        }
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct GenerationDefaults {
            n_ctx: Option<u64>,
        }
        let url = self.client.endpoint.address.beside("/props");
        let body = self.told(&url, None, sink)?.unwrap_or_default();
        let properties: ServerProperties = serde_json::from_slice(&body).unwrap_or_default();
        Ok(properties.default_generation_settings.n_ctx.filter(|tokens| *tokens > 0))
    }

    /// The body of a success; everything else but a stop is nothing.
    fn told(
        &self,
        url: &str,
        body: Option<&[u8]>,
        sink: &mut EventSink<'_>,
    ) -> Result<Option<Vec<u8>>> {
        match self.send(url, body, sink) {
            Ok(QueryResponse::Body(body)) => Ok(Some(body)),
            Ok(_) => Ok(None),
            // What is not told is not worth an error; that the run is to stop is.
            Err(error) => self.client.cancellation.check().map(|()| None).map_err(|_| error),
        }
    }

    fn send(
        &self,
        url: &str,
        body: Option<&[u8]>,
        sink: &mut EventSink<'_>,
    ) -> Result<QueryResponse> {
        sink(Event::Request {
            method: if body.is_some() { "POST" } else { "GET" },
            url: shown(url),
            bytes: body.map_or(0, <[u8]>::len),
        });
        let start = Instant::now();
        let response = match self.client.query(url, body) {
            Ok(response) => response,
            Err(error) => return without_response(url, error),
        };
        let (parts, mut body) = response.into_parts();
        let mut reader = body.as_reader().take(limits::INQUIRY_BYTES as u64 + 1);
        let heard = if parts.status.is_success() {
            let mut bytes = Vec::new();
            match reader.read_to_end(&mut bytes) {
                Ok(_) => QueryResponse::Body(bytes),
                Err(error) => without_end(&error)?,
            }
        } else {
            let RequestFailure { error, answer, .. } =
                self.client.refused(url, &parts, &mut reader);
            match answer {
                Some(_) => QueryResponse::Refused(parts.status.as_u16(), error),
                None => return Err(error),
            }
        };
        sink(Event::Response { duration: start.elapsed(), usage: None });
        Ok(heard)
    }
}

/// No response: silence is an answer of sorts, everything else is no connection.
fn without_response(url: &str, error: ureq::Error) -> Result<QueryResponse> {
    if let ureq::Error::Io(cause) = &error
        && let Some(stop @ (StopReason::Silence(_) | StopReason::Dripping(_))) =
            StopReason::within(cause)
    {
        return Ok(QueryResponse::Nothing(stop.to_string()));
    }
    Err(broken(url, error).error)
}

fn without_end(error: &io::Error) -> Result<QueryResponse> {
    match stop_of(error) {
        Some(stop) => Err(stop),
        None => Ok(QueryResponse::Nothing("the answer broke off".into())),
    }
}
