//! The model behind an endpoint that speaks OpenAI's chat completions.
//!
//! One request, up to three tries, one reply. How requests travel is
//! `client.rs`, what failures mean is `failure.rs`.

use std::cell::Cell;
use std::io::{self, Read};
use std::time::{Duration, Instant};

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

mod client;
mod failure;
mod transport;

use client::Client;
use failure::{broken, no_answer, shown, stop_of};

/// Asks an endpoint.
#[derive(Debug)]
pub struct HttpModel {
    client: Client,
    url: String,
    stream: bool,
    /// Off once the endpoint has refused `stream_options`.
    stream_usage: Cell<bool>,
}

impl HttpModel {
    /// A model that has not connected yet. With `stream`, replies are asked
    /// for piece by piece.
    pub fn new(endpoint: Endpoint, stream: bool, patience: Patience) -> HttpModel {
        HttpModel {
            url: endpoint.address.chat_completions(),
            client: Client::new(endpoint, patience),
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
            model: &self.client.endpoint.model,
            messages: request.messages,
            tools: request.tools,
            stream: self.stream,
            stream_usage: self.stream_usage.get(),
        };
        let body = serde_json::to_vec(&body).map_err(|error| {
            Failure::lasting(no_answer(&self.url, Kind::Protocol, &error.to_string()))
        })?;
        listener(Event::Request {
            url: shown(&self.url),
            bytes: body.len(),
        });
        let start = Instant::now();
        let response = self
            .client
            .post(&self.url, &body)
            .map_err(|error| broken(&self.url, error))?;
        let reply = self.read(response, listener, told)?;
        listener(Event::Response {
            duration: start.elapsed(),
            usage: reply.usage,
        });
        Ok(reply)
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
            let (mut failure, body) =
                self.client
                    .refused(&self.url, status, &parts.headers, &mut reader);
            let names_usage = self.stream && is_within(b"stream_options", &body);
            if matches!(status, 400 | 422) && names_usage && self.stream_usage.replace(false) {
                failure.retryable = true;
                failure.retry_after = Some(Duration::ZERO);
            }
            return Err(failure);
        }
        let mut assembler = Assembler::default();
        let result = self.assemble(&mut reader, &mut assembler, listener);
        *told = assembler.has_told();
        let (failure, is_stop) = match result {
            Ok(()) => (None, false),
            Err(Interruption::Broken(error)) => {
                let is_stop = stop_of(&error).is_some();
                (Some(broken(&self.url, error.into())), is_stop)
            }
            Err(Interruption::Fault(fault)) => (
                Some(self.client.faulty(&self.url, fault, &parts.headers)),
                false,
            ),
        };
        let cause = match failure {
            Some(failure) if is_stop || !*told => return Err(failure),
            // What has been said stays said: the answer is cut off, not lost.
            failure => failure.map(|failure| failure.error),
        };
        let mut reply = assembler
            .finish(listener)
            .map_err(|fault| self.client.faulty(&self.url, fault, &parts.headers))?;
        if cause.is_some() {
            reply.finish = Finish::Cut;
            reply.message.calls.clear();
            reply.cause = cause;
        }
        let said_nothing = reply.message.content.is_empty();
        match reply.finish {
            Finish::Cut if said_nothing => Err(Failure::passing(no_answer(
                &self.url,
                Kind::Temporary,
                "the reply ended before anything was said",
            ))),
            Finish::Filtered if said_nothing => Err(Failure::lasting(no_answer(
                &self.url,
                Kind::Endpoint,
                "the endpoint's content filter withheld the answer",
            ))),
            Finish::Complete if said_nothing && reply.message.calls.is_empty() => Err(
                Failure::lasting(no_answer(&self.url, Kind::Protocol, "the answer is empty")),
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
                self.client.expect_more();
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
                self.client.expect_end();
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
        &self.client.endpoint.model
    }

    fn complete(&self, request: &Request<'_>, listener: &mut Listener<'_>) -> Result<Reply> {
        let mut attempt = 1;
        loop {
            self.client.patience.check()?;
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
            self.client.patience.pause(delay)?;
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

fn is_within(word: &[u8], bytes: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}
