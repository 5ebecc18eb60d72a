//! Plain http through a proxy: each request names the whole address (RFC 9112 3.2.2).

use std::fmt;
use std::io::{self, Read, Write};

use ureq::unversioned::transport::{
    Buffers, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

use crate::model::http::connect_error::ConnectError;
use crate::model::http::peer::{Peer, input_space};
use crate::model::http::proxy_errors::{connection_lost, login_error, parse_status};
use crate::world::cancellation::StopReason;

/// A connection to a proxy, for requests to one endpoint.
pub(super) struct HttpProxy {
    buffers: LazyBuffers,
    stream: TransportAdapter,
    head: RequestHead,
    /// Whether a request was sent and no byte of its answer was received.
    is_awaiting_answer: bool,
    peer: Peer,
}

impl HttpProxy {
    /// Creates the transport. `login` is a whole header line.
    pub(super) fn new(
        stream: TransportAdapter,
        buffers: LazyBuffers,
        peer: Peer,
        target: &Peer,
        login: Option<String>,
    ) -> HttpProxy {
        HttpProxy {
            buffers,
            stream,
            head: RequestHead::new(&target.authority(), login),
            is_awaiting_answer: false,
            peer,
        }
    }

    /// Adds context to an error: stops, connection errors and a closed connection stay
    /// unchanged; all else is an error of the connection to the proxy.
    fn with_context(&self, error: io::Error) -> io::Error {
        if StopReason::from_io_error(&error).is_some()
            || error.kind() == io::ErrorKind::UnexpectedEof
        {
            return error;
        }
        match error.downcast::<ConnectError>() {
            Ok(connect_error) => connect_error.into(),
            Err(error) => connection_lost(&self.peer, &error).into(),
        }
    }
}

impl Transport for HttpProxy {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.set_timeout(timeout);
        let output = self.head.rewrite(&self.buffers.output()[..amount]);
        let result = self.stream.write_all(&output);
        result.map_err(|error| self.with_context(error))?;
        self.is_awaiting_answer = true;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.set_timeout(timeout);
        self.head.start_request();
        let is_first = std::mem::take(&mut self.is_awaiting_answer);
        let start = self.buffers.input().len();
        loop {
            let result = self.stream.read(input_space(&mut self.buffers)?);
            let amount = result.map_err(|error| self.with_context(error))?;
            self.buffers.input_appended(amount);
            let answer = &self.buffers.input()[start..];
            if is_first && amount > 0 && answer.len() < STATUS_BYTES {
                continue;
            }
            // Only a proxy sends this status, so it does not concern the endpoint.
            if is_first && parse_status(&String::from_utf8_lossy(answer)).is_some_and(|s| s == 407)
            {
                let head = String::from_utf8_lossy(answer);
                return Err(login_error(&self.peer, &head, self.head.has_login()).into());
            }
            return Ok(!answer.is_empty());
        }
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().is_open()
    }
}

/// The length of an answer up to its status: `HTTP/1.1 407 `.
const STATUS_BYTES: usize = 13;

impl fmt::Debug for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The buffers contain headers, and so the key; the head contains the login.
        f.debug_struct("HttpProxy").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Converts `POST /path HTTP/1.1` to the absolute form, in pieces of any size.
struct RequestHead {
    /// `http://host:port`
    prefix: String,
    /// The header line with the login.
    login: Option<String>,
    position: HeadPosition,
}

#[derive(Clone, Copy)]
enum HeadPosition {
    Method,
    Line,
    Rest,
}

impl RequestHead {
    fn new(authority: &str, login: Option<String>) -> RequestHead {
        RequestHead { prefix: format!("http://{authority}"), login, position: HeadPosition::Method }
    }

    /// Starts a request: the next byte is its first.
    fn start_request(&mut self) {
        self.position = HeadPosition::Method;
    }

    fn has_login(&self) -> bool {
        self.login.is_some()
    }

    fn rewrite(&mut self, output: &[u8]) -> Vec<u8> {
        let mut rest = output;
        let mut written = Vec::with_capacity(output.len() + self.prefix.len());
        loop {
            let (end, insertion, next) = match self.position {
                HeadPosition::Method => (b' ', Some(&self.prefix), HeadPosition::Line),
                HeadPosition::Line => (b'\n', self.login.as_ref(), HeadPosition::Rest),
                HeadPosition::Rest => break,
            };
            let Some(at) = rest.iter().position(|byte| *byte == end) else {
                break;
            };
            let (before, after) = rest.split_at(at + 1);
            written.extend(before);
            written.extend(insertion.map_or("", String::as_str).as_bytes());
            rest = after;
            self.position = next;
        }
        written.extend(rest);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"POST /v1/x HTTP/1.1\r\nHost: a\r\n\r\nbody of\n lines ";

    fn head(login: bool) -> RequestHead {
        let login = login.then(|| "Proxy-Authorization: Basic bWU6aXQ6IGlz\r\n".to_string());
        RequestHead::new("a.test:8080", login)
    }

    #[test]
    fn requests_get_the_absolute_form_in_any_pieces() {
        for (login, line) in [(false, ""), (true, "Proxy-Authorization: Basic bWU6aXQ6IGlz\r\n")] {
            let expected = format!(
                "POST http://a.test:8080/v1/x HTTP/1.1\r\n{line}Host: a\r\n\r\nbody of\n lines "
            );
            for size in 1..=REQUEST.len() {
                let mut head = head(login);
                for _ in 0..2 {
                    let pieces: Vec<u8> =
                        REQUEST.chunks(size).flat_map(|piece| head.rewrite(piece)).collect();
                    assert_eq!(String::from_utf8(pieces).unwrap(), expected, "{size}");
                    head.start_request();
                }
            }
        }
    }
}
