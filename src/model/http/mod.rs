//! The model behind an endpoint that speaks OpenAI's chat completions.
//!
//! One request, up to three tries, one reply; a request that the endpoint does
//! not take is changed and sent again. How requests travel is `client.rs`, how
//! replies are read `reading.rs`, what failures mean `failure.rs`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::time::{Duration, Instant};

use ureq::http::Response;
use ureq::http::response::Parts;

use crate::config::Endpoint;
use crate::error::{ErrorKind, Result};
use crate::event::{Event, EventSink};
use crate::limits;
use crate::message::Message;
use crate::model::body::RequestBody;
use crate::model::dialect::Dialect;
use crate::model::invalid_response::InvalidResponse;
use crate::model::reply::ReplyAssembler;
use crate::model::request_failure::RequestFailure;
use crate::model::{FinishReason, Model, ModelReply, ModelRequest, retry, text_calls};
use crate::secret::MASK;
use crate::world::cancellation::Cancellation;

mod authority;
mod certificates;
mod client;
mod connect_error;
mod endpoint_query;
mod failure;
mod http_proxy;
mod models;
mod peer;
mod proxy;
mod proxy_errors;
mod request_changes;
mod response_body;
mod socks;
mod tls;
mod transport;

pub(crate) use endpoint_query::{ContextWindow, EndpointQuery, ModelListing};
pub(crate) use models::{ListedModel, ServerKind, find};

use client::Client;
use connect_error::{no_answer, shown};
use failure::{broken, nothing, stop_of};
use request_changes::RequestChanges;
use response_body::BodyInterruption;

/// Asks an endpoint.
pub struct HttpModel {
    client: Client,
    url: String,
    stream: bool,
    /// What the endpoint has turned out not to take.
    dialect: RefCell<Dialect>,
    /// The endpoint does not stream: whole answers are asked for.
    is_whole: Cell<bool>,
    has_warned: Cell<bool>,
}

/// The address may hold a key in its query.
impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel")
            .field("client", &self.client)
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

impl HttpModel {
    /// A model that has not connected yet. With `stream`, replies are asked
    /// for piece by piece.
    pub fn new(endpoint: Endpoint, stream: bool, cancellation: Cancellation) -> HttpModel {
        HttpModel {
            url: endpoint.address.chat_completions(),
            dialect: RefCell::new(Dialect::new(endpoint.vision)),
            client: Client::new(endpoint, cancellation),
            stream,
            is_whole: Cell::new(false),
            has_warned: Cell::new(false),
        }
    }

    /// Whether replies are asked for piece by piece, as far as is known: an
    /// endpoint that does not stream is found out by the first request.
    pub fn streams(&self) -> bool {
        self.stream && !self.is_whole.get()
    }

    /// The request as it would be sent, with every credential masked, as
    /// indented JSON.
    pub fn preview(&self, request: &ModelRequest<'_>) -> serde_json::Result<String> {
        #[derive(serde::Serialize)]
        struct RequestPreview<'p> {
            method: &'static str,
            url: String,
            headers: BTreeMap<String, String>,
            body: RequestBody<'p>,
        }
        let dialect = self.dialect.borrow();
        serde_json::to_string_pretty(&RequestPreview {
            method: "POST",
            url: masked_query(&self.url),
            headers: self.client.shown_headers(),
            body: self.body(request, &[], &dialect),
        })
    }

    fn body<'b>(
        &'b self,
        request: &ModelRequest<'b>,
        aside: &'b [Message],
        dialect: &'b Dialect,
    ) -> RequestBody<'b> {
        RequestBody {
            model: &self.client.endpoint.model,
            messages: request.messages,
            aside,
            tools: request.tools,
            stream: self.streams(),
            extra: &self.client.endpoint.extra_body,
            dialect,
        }
    }

    fn try_once(
        &self,
        request: &ModelRequest<'_>,
        aside: &[Message],
        sink: &mut EventSink<'_>,
        told: &mut bool,
    ) -> std::result::Result<ModelReply, RequestFailure> {
        let dialect = self.dialect.borrow();
        let content = self.body(request, aside, &dialect);
        // Room for the pictures at once: a vector that grows copies them.
        let picture_bytes = content.picture_bytes();
        let mut body = Vec::with_capacity(picture_bytes + limits::READ_BYTES);
        serde_json::to_writer(&mut body, &content).map_err(|error| {
            RequestFailure::lasting(no_answer(&self.url, ErrorKind::Protocol, &error.to_string()))
        })?;
        drop(dialect);
        sink(Event::Request { method: "POST", url: shown(&self.url), bytes: body.len() });
        let start = Instant::now();
        let response =
            self.client.post(&self.url, &body).map_err(|error| broken(&self.url, error))?;
        let messages = request.messages.len();
        let mut reply = self.read(response, messages, sink, told)?;
        let is_answer = reply.finish == FinishReason::Complete && reply.message.calls.is_empty();
        if is_answer && text_calls::is_call(&reply.message.content, request.tools) {
            reply.finish = FinishReason::UnparsedCall;
        }
        sink(Event::Response { duration: start.elapsed(), usage: reply.usage });
        // How many tokens a picture takes has nothing to do with its bytes.
        let bytes = body.len().saturating_sub(picture_bytes);
        self.warn_of_truncation(bytes, &reply, sink);
        Ok(reply)
    }

    fn read(
        &self,
        response: Response<ureq::Body>,
        messages: usize,
        sink: &mut EventSink<'_>,
        told: &mut bool,
    ) -> std::result::Result<ModelReply, RequestFailure> {
        let (parts, mut body) = response.into_parts();
        let mut reader = body.as_reader().take(limits::RESPONSE_BYTES);
        if !matches!(parts.status.as_u16(), 200..=203 | 206) {
            return Err(self.client.refused(&self.url, &parts, &mut reader));
        }
        let mut assembler = ReplyAssembler::after(messages);
        let has_end = is_delimited(&parts);
        let client = &self.client;
        let mut result =
            response_body::assemble(client, &mut reader, has_end, &mut assembler, sink);
        if reader.limit() == 0 && !assembler.is_done() {
            result = Err(InvalidResponse::TooLarge("body").into());
        }
        *told = assembler.has_told();
        let (failure, is_stop) = match result {
            Ok(()) => (None, false),
            Err(BodyInterruption::Broken(error)) => {
                let is_stop = stop_of(&error).is_some();
                // The reason why it ends has come: nothing is missing.
                let is_whole = assembler.is_finished() && !is_stop;
                let failure = (!is_whole).then(|| broken(&self.url, error.into()));
                (failure, is_stop)
            }
            Err(BodyInterruption::Fault(fault)) => {
                (Some(self.client.faulty(&self.url, fault, &parts)), false)
            }
            Err(BodyInterruption::Empty) => (Some(nothing(&self.url)), false),
        };
        let cause = match failure {
            Some(failure) if is_stop || !*told => return Err(failure),
            // What has been said stays said: the answer is cut off, not lost.
            failure => failure.map(|failure| failure.error),
        };
        let mut reply =
            assembler.finish(sink).map_err(|fault| self.client.faulty(&self.url, fault, &parts))?;
        if cause.is_some() {
            reply.finish = FinishReason::Cut;
            reply.message.calls.clear();
            reply.cause = cause;
        }
        self.check_content(reply)
    }

    /// A reply that says nothing and calls nothing is none.
    fn check_content(&self, reply: ModelReply) -> std::result::Result<ModelReply, RequestFailure> {
        if !reply.message.content.trim().is_empty() || !reply.message.calls.is_empty() {
            return Ok(reply);
        }
        let error = |kind, text: &str| no_answer(&self.url, kind, text);
        if let Some(cause) = reply.cause {
            return Err(RequestFailure::lasting(cause));
        }
        Err(match reply.finish {
            FinishReason::Length => return Ok(reply),
            FinishReason::Cut => RequestFailure::passing(error(
                ErrorKind::Temporary,
                "the reply ended before anything was said",
            )),
            FinishReason::Filtered => RequestFailure::lasting(error(
                ErrorKind::Endpoint,
                "the endpoint's content filter withheld the answer",
            )),
            FinishReason::Complete | FinishReason::UnparsedCall => {
                RequestFailure::lasting(error(ErrorKind::Protocol, "the answer is empty"))
            }
        })
    }

    /// Some servers cut long prompts to their context without a word.
    fn warn_of_truncation(&self, bytes: usize, reply: &ModelReply, sink: &mut EventSink<'_>) {
        let Some(usage) = reply.usage.filter(|usage| usage.prompt_tokens > 0) else {
            return;
        };
        let least = (bytes / limits::BYTES_PER_TOKEN_MOST) as u64;
        let is_long = bytes > limits::TRUNCATION_BYTES;
        if is_long && usage.prompt_tokens < least && !self.has_warned.replace(true) {
            sink(Event::Warning(&format!(
                "the endpoint read only {} tokens of a request of {bytes} bytes: its context may be too small \
                 (Ollama: OLLAMA_CONTEXT_LENGTH)",
                usage.prompt_tokens
            )));
        }
    }
}

/// Whether the head says where the body ends.
fn is_delimited(parts: &Parts) -> bool {
    ["content-length", "transfer-encoding"].iter().any(|name| parts.headers.contains_key(*name))
}

/// The address with what its query may hold of credentials masked. Of Azure's
/// version everything is shown.
fn masked_query(url: &str) -> String {
    let Some((base, query)) = url.split_once('?') else {
        return url.into();
    };
    let masked = query.split('&').map(|part| match part.split_once('=') {
        Some((name, _)) if name != "api-version" => format!("{name}={MASK}"),
        _ => part.to_string(),
    });
    format!("{base}?{}", masked.collect::<Vec<_>>().join("&"))
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.client.endpoint.model
    }

    fn complete(&self, request: &ModelRequest<'_>, sink: &mut EventSink<'_>) -> Result<ModelReply> {
        let mut attempt = 1;
        let mut changes = RequestChanges::default();
        loop {
            self.client.cancellation.check()?;
            let mut told = false;
            let failure = match self.try_once(request, &changes.aside, sink, &mut told) {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let change =
                (!told).then(|| self.adapt(request, &failure, &mut changes, sink)).flatten();
            if let Some(change) = change {
                sink(Event::Retry {
                    attempt: attempt + 1,
                    delay: Duration::ZERO,
                    reason: &format!("{}: {change}", failure.error.message()),
                });
                continue;
            }
            if let Some(error) = self.blindness(request, &failure).filter(|_| !told) {
                return Err(error);
            }
            attempt += 1;
            if !failure.retryable || told || attempt > limits::TRIES {
                if changes.tries_whole {
                    // It was not the stream that the endpoint refused.
                    self.is_whole.set(false);
                }
                let is_worn_out = failure.retryable && attempt > limits::TRIES;
                return Err(match failure.error.hint() {
                    None if is_worn_out => failure.error.with_hint(format!(
                        "that was try {} of {0}: try again later",
                        limits::TRIES
                    )),
                    _ => failure.error,
                });
            }
            let delay = retry::pause(attempt, failure.retry_after);
            sink(Event::Retry { attempt, delay, reason: failure.error.message() });
            self.client.cancellation.pause(delay)?;
        }
    }
}
