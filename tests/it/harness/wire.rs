//! Renders a [`Reply`] to the bytes of an HTTP response.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;

use super::completion::Completion;
use super::reply::{Body, ConnectionEnd, Piece, Reply};
use super::request::Request;

/// A response in pieces, each written after a pause.
pub(super) struct Response {
    pub(super) pieces: Vec<Piece>,
    pub(super) ending: ConnectionEnd,
}

impl Reply {
    /// Returns the reply itself, or the one that its function computes for this request.
    pub(super) fn resolve(mut self, request: &Request) -> Reply {
        while let Body::Computed(answer) = &self.body {
            self = answer(request);
        }
        self
    }

    /// Returns why this reply does not fit the request, if the program deviates from the test's
    /// script.
    pub(super) fn mismatch(&self, request: &Request) -> Option<&'static str> {
        match self.body {
            Body::Completion(..) if !request.matches("POST", "/chat/completions") => {
                Some("the script has a completion here, which was not requested")
            }
            Body::Models(_) if !request.matches("GET", "/models") => {
                Some("the script has a list of models here, which was not requested")
            }
            _ => None,
        }
    }

    /// Renders the reply. `calls` counts the tool call ids assigned so far.
    pub(super) fn render(mut self, request: &Request, calls: &mut usize) -> Response {
        let mut ending = self.ending;
        if ending == ConnectionEnd::Keep && self.announces_close(request) {
            ending = ConnectionEnd::Close;
        }
        let pieces = match std::mem::replace(&mut self.body, Body::Raw(Vec::new())) {
            Body::Raw(pieces) => return self.with_pauses(pieces, ending),
            Body::Completion(mut completion, shape) => {
                completion.number_calls(calls);
                if shape.unwrap_or(request.requests_stream()) {
                    self.stream(&completion, request)
                } else {
                    self.with_length(200, completion.json_body().as_bytes())
                }
            }
            Body::Models(names) => {
                let model = |name| json!({"id": name, "object": "model", "owned_by": "test"});
                let models: Vec<_> = names.into_iter().map(model).collect();
                let list = json!({"object": "list", "data": models});
                self.with_length(200, list.to_string().as_bytes())
            }
            Body::Status(status, body) => self.with_length(status, &body),
            Body::Chunks(chunks) => {
                let mut pieces = vec![(Duration::ZERO, self.stream_head())];
                pieces
                    .extend(chunks.into_iter().map(|(pause, bytes)| (pause, chunk_bytes(&bytes))));
                self.add_end(pieces, vec![chunk_bytes(b"")])
            }
            Body::Computed(_) => unreachable!("a computed reply is resolved first"),
        };
        let once = |(pause, bytes)| Piece::once(pause, bytes);
        self.with_pauses(pieces.into_iter().map(once).collect(), ending)
    }

    fn with_pauses(&self, mut pieces: Vec<Piece>, ending: ConnectionEnd) -> Response {
        for piece in pieces.iter_mut().skip(1) {
            piece.pause += self.pace;
        }
        match pieces.first_mut() {
            Some(first) => first.pause += self.delay,
            None => pieces.push(Piece::once(self.delay, Vec::new())),
        }
        Response { pieces, ending }
    }

    fn stream(&self, completion: &Completion, request: &Request) -> Vec<(Duration, Vec<u8>)> {
        let wants_usage = request.json["stream_options"]["include_usage"] == true;
        let (body, end) = completion.events(wants_usage);
        let frame = |event: String| chunk_bytes(format!("{event}\n\n").as_bytes());
        let mut pieces = vec![self.stream_head()];
        pieces.extend(body.into_iter().map(frame));
        let mut end: Vec<_> = end.into_iter().map(frame).collect();
        end.push(chunk_bytes(b""));
        self.add_end(pieces.into_iter().map(|piece| (Duration::ZERO, piece)).collect(), end)
    }

    /// Appends the end of the stream, unless the reply is to be cut off.
    fn add_end(
        &self,
        mut pieces: Vec<(Duration, Vec<u8>)>,
        end: Vec<Vec<u8>>,
    ) -> Vec<(Duration, Vec<u8>)> {
        if !self.is_cut {
            pieces.extend(end.into_iter().map(|piece| (Duration::ZERO, piece)));
        }
        pieces
    }

    fn with_length(&self, status: u16, body: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        let length = body.len().to_string();
        let headers = [("Content-Type", "application/json"), ("Content-Length", length.as_str())];
        // By definition, responses with these statuses have neither a body nor a length.
        let headers = if matches!(status, 204 | 304) { &headers[..0] } else { &headers[..] };
        let sent = if self.is_cut { &body[..body.len() / 2] } else { body };
        vec![(Duration::ZERO, self.head(status, headers)), (Duration::ZERO, sent.to_vec())]
    }

    fn stream_head(&self) -> Vec<u8> {
        let headers = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")];
        self.head(200, &headers)
    }

    fn head(&self, status: u16, defaults: &[(&str, &str)]) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        let is_set =
            |name: &str| self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        for (name, value) in defaults.iter().filter(|(name, _)| !is_set(name)) {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        (head + "\r\n").into_bytes()
    }

    fn announces_close(&self, request: &Request) -> bool {
        let own = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("connection"));
        let is_close = |value: &str| value.eq_ignore_ascii_case("close");
        own.is_some_and(|(_, value)| is_close(value))
            || request.header("connection").is_some_and(is_close)
    }
}

/// Encodes one chunk of a chunked body; the empty chunk ends it.
fn chunk_bytes(bytes: &[u8]) -> Vec<u8> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    framed
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}
