//! A request that the server received, with accessors for tests.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::Value;

/// One request. Accessors to parts of the body fail the test and print the request if the part is
/// missing.
#[derive(Clone)]
pub(crate) struct Request {
    /// `POST`, `GET`, `CONNECT`.
    pub method: String,
    /// The path in the request line, with its query: `/v1/chat/completions`.
    pub path: String,
    /// Headers with names as sent; [`Request::header`] ignores their case.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
    /// The body as JSON; null if there is no body.
    pub json: Value,
    /// Number of the connection; the first is 1.
    pub connection: usize,
    /// When the first line had arrived.
    pub arrived: Instant,
}

impl Request {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(have, _)| have.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The messages.
    #[track_caller]
    pub(crate) fn messages(&self) -> &[Value] {
        self.list("messages")
    }

    /// The last message.
    #[track_caller]
    pub(crate) fn last_message(&self) -> &Value {
        self.messages().last().unwrap_or_else(|| panic!("no message in {self:?}"))
    }

    /// The text of the system message.
    #[track_caller]
    pub(crate) fn system(&self) -> &str {
        let first = self.messages().first().filter(|message| message["role"] == "system");
        first
            .and_then(|message| message["content"].as_str())
            .unwrap_or_else(|| panic!("no system message in {self:?}"))
    }

    /// The mark that opens a call in text, from the example in the system message.
    #[track_caller]
    pub(crate) fn call_mark(&self) -> &str {
        let system = self.system();
        let marks = system.split_once("nothing but this:\n<tool_call-");
        let (_, rest) = marks.unwrap_or_else(|| panic!("no mark in {self:?}"));
        let (mark, _) = rest.split_once(">\n{\"name\": \"TOOL\", ").unwrap();
        assert!(mark.len() == 4 && mark.bytes().all(|it| it.is_ascii_alphanumeric()), "{mark}");
        mark
    }

    /// A text whose plain tags of calls have the mark.
    #[track_caller]
    pub(crate) fn with_mark(&self, text: &str) -> String {
        text.replace("tool_call>", &format!("tool_call-{}>", self.call_mark()))
    }

    /// The result of the last tool call with this id.
    #[track_caller]
    pub(crate) fn tool_result(&self, id: &str) -> &str {
        let found = self.messages().iter().rfind(|message| message["tool_call_id"] == id);
        found
            .and_then(|message| message["content"].as_str())
            .unwrap_or_else(|| panic!("no result of `{id}` in {self:?}"))
    }

    /// The result of the last script or command with this id.
    #[track_caller]
    pub(crate) fn program_result(&self, id: &str) -> ProgramText<'_> {
        ProgramText::parse(self.tool_result(id))
    }

    /// Like [`Request::tool_result`], parsed as JSON.
    #[track_caller]
    pub(crate) fn tool_json(&self, id: &str) -> Value {
        let text = self.tool_result(id);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("`{id}`: {error}: {text}"))
    }

    /// The tools offered, as sent.
    #[track_caller]
    pub(crate) fn tools(&self) -> &[Value] {
        self.list("tools")
    }

    /// The names of the tools offered; may be empty.
    pub(crate) fn tool_names(&self) -> Vec<&str> {
        let tools = self.json["tools"].as_array().into_iter().flatten();
        tools.filter_map(|tool| tool["function"]["name"].as_str()).collect()
    }

    /// Whether the request asks for a stream.
    pub(crate) fn requests_stream(&self) -> bool {
        self.json["stream"] == true
    }

    /// Whether method and path match, without the query: `POST`, `/chat/completions`.
    pub(super) fn matches(&self, method: &str, path_end: &str) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        self.method == method && path.ends_with(path_end)
    }

    #[track_caller]
    fn list(&self, key: &str) -> &[Value] {
        self.json[key].as_array().unwrap_or_else(|| panic!("no list `{key}` in {self:?}"))
    }

    /// A placeholder for a server that sends a reply without reading a request.
    pub(super) fn placeholder(connection: usize) -> Request {
        Request {
            method: String::new(),
            path: String::new(),
            headers: Vec::new(),
            body: Vec::new(),
            json: Value::Null,
            connection,
            arrived: Instant::now(),
        }
    }

    /// Reads the next request of a connection; `None` at its end. Invalid HTTP is an error of the
    /// kind `InvalidData`; a client that disconnects in the middle gives another kind.
    pub(super) fn read(
        from: &mut BufReader<TcpStream>,
        connection: usize,
    ) -> io::Result<Option<Request>> {
        let Some(line) = read_line(from)? else {
            return Ok(None);
        };
        let arrived = Instant::now();
        let mut words = line.split(' ');
        let (Some(method), Some(path), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(invalid(format!("invalid request line: {line:?}")));
        };
        let mut headers = Vec::new();
        loop {
            let header = read_line(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if header.is_empty() {
                break;
            }
            let (name, value) = header
                .split_once(':')
                .ok_or_else(|| invalid(format!("invalid header line: {header:?}")))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body: Vec::new(),
            json: Value::Null,
            connection,
            arrived,
        };
        request.read_body(from)?;
        Ok(Some(request))
    }

    fn read_body(&mut self, from: &mut BufReader<TcpStream>) -> io::Result<()> {
        if self.header("transfer-encoding").is_some() {
            return Err(invalid(
                "chunked requests are not supported, as with some real servers".into(),
            ));
        }
        let Some(length) = self.header("content-length") else {
            return Ok(());
        };
        let length = length.parse().map_err(|_| invalid("invalid Content-Length".into()))?;
        if self.header("expect").is_some() {
            from.get_ref().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        self.body = vec![0; length];
        from.read_exact(&mut self.body)?;
        if length > 0 {
            self.json = serde_json::from_slice(&self.body)
                .map_err(|error| invalid(format!("the body is not valid JSON: {error}")))?;
        }
        Ok(())
    }
}

/// A readable form of the request, with long texts shortened.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {} (connection {})", self.method, self.path, self.connection)?;
        let mut json = self.json.clone();
        // The tools are the same in every request, and long.
        if let Some(tools) = json.get_mut("tools") {
            *tools = self.tool_names().into();
        }
        shorten(&mut json);
        write!(f, "{json:#}")
    }
}

fn shorten(value: &mut Value) {
    const LONGEST: usize = 2000;
    match value {
        Value::String(text) if text.len() > LONGEST => {
            let cut = (0..=LONGEST).rfind(|&at| text.is_char_boundary(at)).unwrap_or_default();
            *text = format!("{}… ({} bytes)", &text[..cut], text.len());
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(map) => map.values_mut().for_each(shorten),
        _ => {}
    }
}

/// Reads one line, without CR LF; `None` at the end of the connection.
fn read_line(from: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    const LONGEST: u64 = 64 * 1024;
    let mut line = Vec::new();
    from.take(LONGEST).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if line.pop() != Some(b'\r') {
        return Err(invalid("a line that does not end in CR LF".into()));
    }
    let line = String::from_utf8(line).map_err(|error| invalid(error.to_string()))?;
    Ok(Some(line))
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The result of a script or a command, as the model reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramText<'t> {
    /// The lines of the runner.
    pub(crate) head: &'t str,
    pub(crate) stdout: &'t str,
    pub(crate) stderr: &'t str,
}

impl<'t> ProgramText<'t> {
    #[track_caller]
    pub(crate) fn parse(text: &'t str) -> ProgramText<'t> {
        let parts = || {
            let (head, rest) = text.split_once("--- stdout (")?;
            let (_, rest) = rest.split_once(")\n")?;
            let (stdout, rest) = rest.rsplit_once("--- stderr (")?;
            let (_, stderr) = rest.split_once(")\n")?;
            Some(ProgramText { head, stdout, stderr })
        };
        parts().unwrap_or_else(|| panic!("no result of a program: {text:?}"))
    }
}
