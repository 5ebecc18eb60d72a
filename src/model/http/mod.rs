//! The model behind an endpoint that speaks OpenAI's chat completions.
//!
//! One request, up to three tries, one reply. `ureq` is configured as narrowly
//! as possible: statuses are no errors (their bodies tell what is wrong),
//! redirects are not followed (they would carry the key to another host), and
//! all waiting is ours. This is the only place where a secret is revealed.

use std::cell::Cell;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;

use ureq::Agent;
use ureq::http::Response;

use crate::config::Endpoint;
use crate::error::{Kind, Result};
use crate::event::{Event, Listener};
use crate::limits;
use crate::model::fault::Failure;
use crate::model::reply::{Assembler, Fault};
use crate::model::sse::Splitter;
use crate::model::wire::Body;
use crate::model::{Finish, Model, Reply, Request, retry};
use crate::text::one_line;
use crate::world::patience::Patience;

mod failure;
mod transport;

use failure::stop_of;
use transport::{PatientResolver, Shared, SilenceLimit};

/// Asks an endpoint.
#[derive(Debug)]
pub struct HttpModel {
    endpoint: Endpoint,
    url: String,
    patience: Patience,
    silence: Arc<SilenceLimit>,
    agent: Agent,
    stream: bool,
    /// Off once the endpoint has refused `stream_options`.
    stream_usage: Cell<bool>,
}

impl HttpModel {
    /// A model that has not connected yet. With `stream`, replies are asked
    /// for piece by piece.
    pub fn new(endpoint: Endpoint, stream: bool, patience: Patience) -> HttpModel {
        let silence = Arc::new(SilenceLimit::new(endpoint.idle_limit));
        let shared = Shared {
            patience: patience.clone(),
            silence: Arc::clone(&silence),
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_resolve(Some(limits::CONNECT))
            .timeout_connect(Some(limits::CONNECT))
            .input_buffer_size(limits::READ_BYTES)
            .output_buffer_size(limits::READ_BYTES)
            .user_agent(concat!("skills-runner/", env!("CARGO_PKG_VERSION")))
            .build();
        let connector = transport::connector(shared.clone());
        let agent = Agent::with_parts(config, connector, PatientResolver(shared));
        let url = endpoint.address.chat_completions();
        HttpModel {
            endpoint,
            url,
            patience,
            silence,
            agent,
            stream,
            stream_usage: Cell::new(true),
        }
    }

    fn try_once(
        &self,
        request: &Request<'_>,
        listener: &mut Listener<'_>,
        told: &mut bool,
    ) -> std::result::Result<Reply, Failure> {
        let body = Body {
            model: &self.endpoint.model,
            messages: request.messages,
            tools: request.tools,
            stream: self.stream,
            stream_usage: self.stream_usage.get(),
        };
        let body = serde_json::to_vec(&body)
            .map_err(|error| Failure::lasting(self.error(Kind::Protocol, &error.to_string())))?;
        listener(Event::Request {
            url: self.shown_url(),
            bytes: body.len(),
        });
        let start = Instant::now();
        let response = self.send(&body).map_err(|error| self.broken(error))?;
        let reply = self.read(response, listener, told)?;
        listener(Event::Response {
            duration: start.elapsed(),
            usage: reply.usage,
        });
        Ok(reply)
    }

    fn send(&self, body: &[u8]) -> std::result::Result<Response<ureq::Body>, ureq::Error> {
        // A slow start is normal where a local model reads a long prompt.
        self.silence
            .set(self.endpoint.idle_limit * limits::FIRST_BYTE_FACTOR);
        let mut request = self.agent.post(&self.url).content_type("application/json");
        if let Some(key) = &self.endpoint.key {
            let key = key.reveal();
            request = if self.endpoint.address.wants_api_key_header() {
                request.header("api-key", key)
            } else {
                request.header("authorization", format!("Bearer {key}"))
            };
        }
        request.send(body)
    }

    fn read(
        &self,
        response: Response<ureq::Body>,
        listener: &mut Listener<'_>,
        told: &mut bool,
    ) -> std::result::Result<Reply, Failure> {
        let status = response.status().as_u16();
        let (parts, mut body) = response.into_parts();
        let mut reader = body.as_reader().take(limits::RESPONSE_BYTES);
        if status != 200 {
            return Err(self.refused(status, &parts.headers, &mut reader));
        }
        let mut assembler = Assembler::default();
        let result = self.assemble(&mut reader, &mut assembler, listener);
        *told = assembler.has_told();
        let (failure, is_stop) = match result {
            Ok(()) => (None, false),
            Err(Interruption::Broken(error)) => {
                let is_stop = stop_of(&error).is_some();
                (Some(self.broken(error.into())), is_stop)
            }
            Err(Interruption::Fault(fault)) => (Some(self.faulty(fault, &parts.headers)), false),
        };
        let cause = match failure {
            Some(failure) if is_stop || !*told => return Err(failure),
            // What has been said stays said: the answer is cut off, not lost.
            failure => failure.map(|failure| failure.error),
        };
        let mut reply = assembler
            .finish(listener)
            .map_err(|fault| self.faulty(fault, &parts.headers))?;
        if cause.is_some() {
            reply.finish = Finish::Cut;
            reply.message.calls.clear();
            reply.cause = cause;
        }
        let said_nothing = reply.message.content.is_empty();
        match reply.finish {
            Finish::Cut if said_nothing => Err(Failure::passing(
                self.error(Kind::Temporary, "the reply ended before anything was said"),
            )),
            Finish::Filtered if said_nothing => Err(Failure::lasting(self.error(
                Kind::Endpoint,
                "the endpoint's content filter withheld the answer",
            ))),
            Finish::Complete if said_nothing && reply.message.calls.is_empty() => Err(
                Failure::lasting(self.error(Kind::Protocol, "the answer is empty")),
            ),
            _ => Ok(reply),
        }
    }

    /// Reads the body, whatever it is: a stream or a whole reply, by its first
    /// byte and not by what its headers say.
    fn assemble(
        &self,
        reader: &mut dyn Read,
        assembler: &mut Assembler,
        listener: &mut Listener<'_>,
    ) -> std::result::Result<(), Interruption> {
        let mut buffer = vec![0u8; limits::READ_BYTES];
        let mut filled = 0;
        // Keep-alive line feeds may come before the body proper.
        let first = loop {
            let count = reader.read(&mut buffer[filled..])?;
            if count > 0 {
                self.silence.set(self.endpoint.idle_limit);
            }
            filled += count;
            match buffer[..filled]
                .iter()
                .find(|byte| !byte.is_ascii_whitespace())
            {
                Some(first) => break *first,
                None if count == 0 => return Ok(()),
                None => filled = 0,
            }
        };
        match first {
            b'{' | b'[' => read_whole(reader, &buffer[..filled], assembler, listener),
            b'<' => Err(Fault::Refused(String::from_utf8_lossy(&buffer[..filled]).into()).into()),
            _ if !looks_like_events(&buffer[..filled]) => Err(malformed(&buffer[..filled]).into()),
            _ => {
                self.read_stream(reader, &mut buffer, filled, assembler, listener)?;
                Ok(())
            }
        }
    }

    fn read_stream(
        &self,
        reader: &mut dyn Read,
        buffer: &mut [u8],
        mut filled: usize,
        assembler: &mut Assembler,
        listener: &mut Listener<'_>,
    ) -> std::result::Result<(), Interruption> {
        let mut splitter = Splitter::default();
        loop {
            splitter.feed(&buffer[..filled], &mut |data| {
                assembler.take(data, listener)
            })?;
            if assembler.is_done() {
                // The connection can serve the next request only if the body is
                // read to its end, but that is not worth waiting for.
                self.silence.set(limits::AFTER_DONE);
                while matches!(reader.read(buffer), Ok(1..)) {}
                return Ok(());
            }
            filled = reader.read(buffer)?;
            if filled == 0 {
                splitter.finish(&mut |data| assembler.take(data, listener))?;
                return Ok(());
            }
        }
    }
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.endpoint.model
    }

    fn complete(&self, request: &Request<'_>, listener: &mut Listener<'_>) -> Result<Reply> {
        let mut attempt = 1;
        loop {
            self.patience.check()?;
            let mut told = false;
            let failure = match self.try_once(request, listener, &mut told) {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            attempt += 1;
            if !failure.retryable || told || attempt > limits::TRIES {
                return Err(failure.error);
            }
            let delay = retry::pause(attempt, failure.retry_after);
            listener(Event::Retry {
                attempt,
                delay,
                reason: failure.error.message(),
            });
            self.patience.pause(delay)?;
        }
    }
}

/// What kept a body from being read to its end.
enum Interruption {
    Broken(io::Error),
    Fault(Fault),
}

impl From<io::Error> for Interruption {
    fn from(error: io::Error) -> Interruption {
        Interruption::Broken(error)
    }
}

impl From<Fault> for Interruption {
    fn from(fault: Fault) -> Interruption {
        Interruption::Fault(fault)
    }
}

fn read_whole(
    reader: &mut dyn Read,
    beginning: &[u8],
    assembler: &mut Assembler,
    listener: &mut Listener<'_>,
) -> std::result::Result<(), Interruption> {
    let mut body = beginning.to_vec();
    let most = limits::BODY_BYTES as u64 + 1;
    reader
        .take(most.saturating_sub(body.len() as u64))
        .read_to_end(&mut body)?;
    if body.len() > limits::BODY_BYTES {
        return Err(Fault::TooLarge("body").into());
    }
    match assembler.take(&body, listener) {
        Ok(()) if assembler.has_begun() => {
            assembler.mark_whole();
            Ok(())
        }
        Err(fault @ (Fault::Refused(_) | Fault::TooLarge(_))) => Err(fault.into()),
        // JSON of another form often holds an error's words.
        _ => Err(match serde_json::from_slice(&body) {
            Ok(value) => Fault::Refused(value),
            Err(_) => malformed(&body),
        }
        .into()),
    }
}

/// Whether a body that is neither JSON nor a page begins as a stream of events
/// does, as far as its beginning has come.
fn looks_like_events(beginning: &[u8]) -> bool {
    let beginning = beginning.trim_ascii_start();
    [":", "data", "event", "id", "retry"].iter().any(|field| {
        beginning.starts_with(field.as_bytes()) || field.as_bytes().starts_with(beginning)
    })
}

/// What is no reply at all, in its own first words.
fn malformed(body: &[u8]) -> Fault {
    Fault::Malformed(one_line(
        &String::from_utf8_lossy(body),
        limits::QUOTED_BYTES,
    ))
}
