//! Plain http through a proxy: each request names the whole address (RFC 9112 3.2.2).

use std::fmt;
use std::io::{self, Read, Write};

use ureq::unversioned::transport::{
    Buffers, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

use crate::model::http::connect_error::ConnectError;
use crate::model::http::peer::{Peer, room};
use crate::model::http::proxy_errors::{lost, status_of, wants_login};
use crate::world::cancellation::StopReason;

/// A connection to a proxy that is asked for one endpoint again and again.
pub(super) struct HttpProxy {
    buffers: LazyBuffers,
    stream: TransportAdapter,
    head: RequestHead,
    /// A request has been sent, and nothing of its answer has come.
    is_answer_due: bool,
    party: Peer,
}

impl HttpProxy {
    /// `login` is a whole header line.
    pub(super) fn new(
        stream: TransportAdapter,
        buffers: LazyBuffers,
        party: Peer,
        target: &Peer,
        login: Option<String>,
    ) -> HttpProxy {
        HttpProxy {
            buffers,
            stream,
            head: RequestHead::new(&target.authority(), login),
            is_answer_due: false,
            party,
        }
    }

    /// Stops and obstacles stay; anything else is between the proxy and here.
    fn explain(&self, error: io::Error) -> io::Error {
        if StopReason::within(&error).is_some() || error.kind() == io::ErrorKind::UnexpectedEof {
            return error;
        }
        match error.downcast::<ConnectError>() {
            Ok(obstacle) => obstacle.into(),
            Err(error) => lost(&self.party, &error).into(),
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
        result.map_err(|error| self.explain(error))?;
        self.is_answer_due = true;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.set_timeout(timeout);
        self.head.begin();
        let is_first = std::mem::take(&mut self.is_answer_due);
        let start = self.buffers.input().len();
        loop {
            let result = self.stream.read(room(&mut self.buffers)?);
            let amount = result.map_err(|error| self.explain(error))?;
            self.buffers.input_appended(amount);
            let answer = &self.buffers.input()[start..];
            if is_first && amount > 0 && answer.len() < STATUS_BYTES {
                continue;
            }
            // Only a proxy says that, so it is no matter of the endpoint.
            if is_first && status_of(&String::from_utf8_lossy(answer)).is_some_and(|s| s == 407) {
                let head = String::from_utf8_lossy(answer);
                return Err(wants_login(&self.party, &head, self.head.has_login()).into());
            }
            return Ok(!answer.is_empty());
        }
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().is_open()
    }
}

/// As much of an answer as shows its status: `HTTP/1.1 407 `.
const STATUS_BYTES: usize = 13;

impl fmt::Debug for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The buffers hold headers, and so the key; the head holds the login.
        f.debug_struct("Forward").field("party", &self.party).finish_non_exhaustive()
    }
}

/// Turns `POST /path HTTP/1.1` into the absolute form, in whatever pieces it comes.
struct RequestHead {
    /// `http://host:port`
    prefix: String,
    /// The header line with the login.
    login: Option<String>,
    place: HeadPosition,
}

#[derive(Clone, Copy)]
enum HeadPosition {
    Method,
    Line,
    Rest,
}

impl RequestHead {
    fn new(authority: &str, login: Option<String>) -> RequestHead {
        RequestHead { prefix: format!("http://{authority}"), login, place: HeadPosition::Method }
    }

    /// The next byte is the first of a request.
    fn begin(&mut self) {
        self.place = HeadPosition::Method;
    }

    fn has_login(&self) -> bool {
        self.login.is_some()
    }

    fn rewrite(&mut self, output: &[u8]) -> Vec<u8> {
        let mut rest = output;
        let mut written = Vec::with_capacity(output.len() + self.prefix.len());
        loop {
            let (end, insertion, next) = match self.place {
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
            self.place = next;
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
                    head.begin();
                }
            }
        }
    }
}
