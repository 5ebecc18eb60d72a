//! A model behind an endpoint with OpenAI's chat completions API.
//!
//! A request gets up to three tries; a request that the endpoint does not accept is changed and
//! sent again. `client.rs` sends requests, `response_body.rs` reads replies, `failure.rs`
//! classifies failures.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::time::{Duration, Instant};

use ureq::http::Response;
use ureq::http::response::Parts;

use crate::body::RequestBody;
use crate::constrained::ConstrainedStream;
use crate::dialect::{Dialect, DialectChange};
use crate::invalid_response::InvalidResponse;
use crate::reply::ReplyAssembler;
use crate::request_failure::RequestFailure;
use crate::{Endpoint, ToolCalling};
use crate::{FinishReason, Model, ModelReply, ModelRequest, retry, text_calls};
use base::error::{ErrorKind, FailedPart, Result};
use base::event::{Event, EventSink};
use base::limits;
use base::message::Message;
use base::secret::MASK;
use base::text::one_line;
use host::cancellation::Cancellation;

mod absolute_form;
mod authority;
mod certificates;
mod client;
mod download;
mod endpoint_query;
mod failure;
mod models;
mod peer;
mod proxy;
mod request_changes;
mod response_body;
mod socks;
mod tls;
mod transport;

pub use crate::quirks::servers::ServerKind;
pub use download::download;
pub use endpoint_query::{
    ContextWindow, EndpointQuery, ModelListing, OLLAMA_PORT, ReportedModel, query_briefly,
};
pub use models::{ListedModel, find_model};

use client::{Client, without_query};
use failure::{empty_reply_failure, transport_failure};
use request_changes::RequestChanges;
use response_body::BodyInterruption;

/// A model behind an endpoint.
pub struct HttpModel {
    client: Client,
    url: String,
    stream: bool,
    /// The endpoint's dialect, as learned so far.
    dialect: RefCell<Dialect>,
    /// The dialect before replies were constrained on trial.
    unconstrained: RefCell<Option<Dialect>>,
    has_warned: Cell<bool>,
}

/// The address is left out: its query may contain a key.
impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel")
            .field("client", &self.client)
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

impl HttpModel {
    /// Creates a model without connecting. With `stream`, replies are requested as streams.
    pub fn new(endpoint: Endpoint, stream: bool, cancellation: Cancellation) -> HttpModel {
        HttpModel {
            url: endpoint.address.chat_completions_url(),
            dialect: RefCell::new(Dialect::new(endpoint.vision, endpoint.calling())),
            unconstrained: RefCell::default(),
            client: Client::new(endpoint, cancellation),
            stream,
            has_warned: Cell::new(false),
        }
    }

    /// Whether replies are requested as streams. An endpoint that does not stream is detected
    /// by the first request.
    pub fn is_streaming(&self) -> bool {
        self.stream && !self.dialect.borrow().has(&DialectChange::OmitStream)
    }

    /// The fields that the endpoint has demanded so far, as a JSON object.
    pub fn demanded_fields(&self) -> Option<String> {
        let dialect = self.dialect.borrow();
        let fields = Some(dialect.demanded_fields()).filter(|fields| !fields.is_empty())?;
        serde_json::to_string(&fields).ok()
    }

    /// The request that would be sent, with credentials masked, as indented JSON.
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
            headers: self.client.masked_headers(),
            body: self.request_body(request, &[], &dialect),
        })
    }

    fn request_body<'b>(
        &'b self,
        request: &ModelRequest<'b>,
        temporary_messages: &'b [Message],
        dialect: &'b Dialect,
    ) -> RequestBody<'b> {
        RequestBody {
            model: &self.client.endpoint.model,
            messages: request.messages,
            temporary_messages,
            tools: request.tools,
            call_mark: request.call_mark,
            forms: request.forms,
            stream: self.stream && !dialect.has(&DialectChange::OmitStream),
            extra_fields: &self.client.endpoint.extra_body,
            dialect,
        }
    }

    fn send_once(
        &self,
        request: &ModelRequest<'_>,
        temporary_messages: &[Message],
        sink: &mut EventSink<'_>,
        has_emitted_text: &mut bool,
    ) -> std::result::Result<ModelReply, RequestFailure> {
        let dialect = self.dialect.borrow();
        let request_body = self.request_body(request, temporary_messages, &dialect);
        // Reserves room for the images: a vector that grows copies them.
        let image_bytes = request_body.image_bytes();
        let mut body = Vec::with_capacity(image_bytes + limits::READ_BYTES);
        serde_json::to_writer(&mut body, &request_body)
            .map_err(|error| RequestFailure::new(ErrorKind::Protocol, error.to_string()))?;
        let is_constrained = request_body.is_constrained();
        drop(dialect);
        sink(Event::Request { method: "POST", url: without_query(&self.url), bytes: body.len() });
        let start = Instant::now();
        let response = self.client.post(&self.url, &body).map_err(transport_failure)?;
        let messages = request.messages.len();
        let mut reply = if is_constrained {
            let mut stream = ConstrainedStream::default();
            let pass = &mut |event: Event<'_>| stream.pass(event, sink);
            let read = self.read_response(response, messages, pass, has_emitted_text);
            *has_emitted_text &= stream.has_shown();
            check_not_empty(stream.finish(read?, messages, sink))?
        } else {
            self.read_response(response, messages, sink, has_emitted_text)?
        };
        let is_answer = reply.finish == FinishReason::Complete && reply.message.calls.is_empty();
        if is_answer
            && !is_constrained
            && text_calls::is_unparsed_call(&reply.message.content, request.tools)
        {
            reply.finish = FinishReason::UnparsedCall;
        }
        sink(Event::Response { duration: start.elapsed(), usage: reply.usage });
        // The number of tokens of an image does not depend on its bytes.
        let bytes = body.len().saturating_sub(image_bytes);
        self.warn_of_truncation(bytes, &reply, sink);
        Ok(reply)
    }

    fn read_response(
        &self,
        response: Response<ureq::Body>,
        messages: usize,
        sink: &mut EventSink<'_>,
        has_emitted_text: &mut bool,
    ) -> std::result::Result<ModelReply, RequestFailure> {
        let (parts, mut body) = response.into_parts();
        let mut reader = body.as_reader().take(limits::RESPONSE_BYTES);
        if !matches!(parts.status.as_u16(), 200..=203 | 206) {
            return Err(self.client.refusal_failure(&self.url, &parts, &mut reader));
        }
        let mut assembler = ReplyAssembler::after_messages(messages);
        let has_end = is_delimited(&parts);
        let client = &self.client;
        let mut result =
            response_body::read_body(client, &mut reader, has_end, &mut assembler, sink);
        if reader.limit() == 0 && !assembler.has_end_marker() {
            result = Err(InvalidResponse::TooLarge("body").into());
        }
        *has_emitted_text = assembler.has_emitted_text();
        let invalid_response = |invalid: InvalidResponse| {
            self.client.invalid_response_failure(&self.url, invalid, &parts)
        };
        let mut failure = match result {
            Ok(()) => assembler.cut_reason().map(|reason| {
                let reason = one_line(reason, limits::QUOTED_BYTES);
                RequestFailure::temporary(format!(
                    "the endpoint ended the reply with the reason `{reason}`"
                ))
            }),
            Err(BodyInterruption::Broken(error)) => {
                let failure = transport_failure(error.into());
                // After a finish reason nothing is missing.
                (failure.is_stop() || !assembler.has_finish_reason()).then_some(failure)
            }
            Err(BodyInterruption::Invalid(invalid)) => Some(invalid_response(invalid)),
            Err(BodyInterruption::Empty) => Some(empty_reply_failure()),
        };
        if let Some(failure) = failure.take_if(|it| it.is_stop() || !*has_emitted_text) {
            return Err(failure);
        }
        let mut reply = assembler.finish(sink).map_err(invalid_response)?;
        // Text that was passed on cannot be retracted: the answer is reported as cut off.
        if let Some(failure) = failure {
            if reply.message.content.trim().is_empty() {
                return Err(failure.without_retry());
            }
            reply.finish = FinishReason::Cut;
            reply.message.calls.clear();
            reply.cause = Some(failure.truncation_error(without_query(&self.url)));
        }
        check_not_empty(reply)
    }

    /// Warns if the endpoint seems to have cut the prompt: some servers cut it to their context
    /// silently.
    fn warn_of_truncation(&self, bytes: usize, reply: &ModelReply, sink: &mut EventSink<'_>) {
        let Some(usage) = reply.usage.filter(|usage| usage.prompt_tokens > 0) else {
            return;
        };
        let least = (bytes / limits::BYTES_PER_TOKEN_MAX) as u64;
        let is_long = bytes > limits::TRUNCATION_BYTES;
        if is_long && usage.prompt_tokens < least && !self.has_warned.replace(true) {
            sink(Event::Warning(&format!(
                "the endpoint read only {} tokens of a request of {bytes} bytes: \
                 its context window may be too small (Ollama: set OLLAMA_CONTEXT_LENGTH)",
                usage.prompt_tokens
            )));
        }
    }
}

/// Checks that the reply has text or tool calls; otherwise it is a failure.
fn check_not_empty(reply: ModelReply) -> std::result::Result<ModelReply, RequestFailure> {
    if !reply.message.content.trim().is_empty() || !reply.message.calls.is_empty() {
        return Ok(reply);
    }
    let (kind, cause) = match reply.finish {
        FinishReason::Length => return Ok(reply),
        FinishReason::Cut => (ErrorKind::Temporary, "the reply ended before any text or tool call"),
        FinishReason::Filtered => {
            (ErrorKind::Endpoint, "the endpoint's content filter withheld the answer")
        }
        FinishReason::Complete | FinishReason::UnparsedCall | FinishReason::UnknownNumber => {
            (ErrorKind::Protocol, "the answer is empty")
        }
    };
    let failure = RequestFailure::new(kind, cause);
    if kind != ErrorKind::Protocol {
        return Err(failure);
    }
    let usage = reply.usage.unwrap_or_default();
    let tokens = [usage.prompt_tokens, usage.completion_tokens];
    let tokens = tokens.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    Err(failure.with_part(FailedPart::Answer(tokens)))
}

/// Whether the response head says where the body ends.
fn is_delimited(parts: &Parts) -> bool {
    ["content-length", "transfer-encoding"].iter().any(|name| parts.headers.contains_key(*name))
}

/// The address with all values in its query masked, except the version of the Azure API.
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

    fn tool_calling(&self) -> ToolCalling {
        self.dialect.borrow().tool_calling().unwrap_or(self.client.endpoint.calling())
    }

    fn is_small(&self) -> bool {
        self.client.endpoint.is_small()
    }

    fn constrain(&self, is_constrained: bool) {
        if is_constrained {
            let constrained = self.dialect.borrow().constrained();
            self.unconstrained.replace(Some(self.dialect.replace(constrained)));
        } else if let Some(before) = self.unconstrained.take() {
            self.dialect.replace(before);
        }
    }

    fn complete(&self, request: &ModelRequest<'_>, sink: &mut EventSink<'_>) -> Result<ModelReply> {
        let mut attempt = 1;
        let mut changes = RequestChanges::default();
        loop {
            self.client.cancellation.check()?;
            let mut has_emitted_text = false;
            let failure = match self.send_once(
                request,
                &changes.temporary_messages,
                sink,
                &mut has_emitted_text,
            ) {
                Ok(mut reply) => {
                    reply.message.is_constrained = self.unconstrained.borrow().is_some();
                    return Ok(reply);
                }
                Err(failure) => failure,
            };
            let change = (!has_emitted_text)
                .then(|| self.adapt(request, &failure, &mut changes, sink))
                .flatten();
            let error = failure.error(without_query(&self.url));
            if let Some(change) = change {
                let reason = format!("{}: {change}", error.message());
                let delay = Duration::ZERO;
                sink(Event::Retry { attempt: attempt + 1, delay, reason: &reason });
                continue;
            }
            if let Some(error) = self.image_error(request, &failure).filter(|_| !has_emitted_text) {
                return Err(error);
            }
            attempt += 1;
            if !failure.is_retryable || has_emitted_text || attempt > limits::REQUEST_TRIES {
                if changes.tries_without_stream {
                    // The stream was not what the endpoint refused.
                    self.dialect.borrow_mut().revert(&DialectChange::OmitStream);
                }
                let used_all_tries = failure.is_retryable && attempt > limits::REQUEST_TRIES;
                return Err(match error.hint() {
                    None if used_all_tries => error.with_hint(format!(
                        "all {} tries failed: try again later",
                        limits::REQUEST_TRIES
                    )),
                    _ => error,
                });
            }
            let delay = retry::retry_delay(attempt, failure.retry_after);
            sink(Event::Retry { attempt, delay, reason: error.message() });
            self.client.cancellation.pause(delay)?;
        }
    }
}
