//! JSON-RPC 2.0, as MCP uses it: one message per line, no batches, and an id that is
//! never null. <https://www.jsonrpc.org/specification>
//!
//! Parsing builds no tree of values, so deep or long members that are not used need no
//! memory. An invalid message is answered if its id can be read.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use base::limits;
use base::text;

/// Error code: the line is not a valid request.
pub(super) const INVALID_REQUEST: i32 = -32_600; // not a limit
/// Error code: the method does not exist.
pub(super) const METHOD_NOT_FOUND: i32 = -32_601; // not a limit
/// Error code: the parameters are invalid, or name something that does not exist.
pub(super) const INVALID_PARAMS: i32 = -32_602; // not a limit

/// Id of a request: a string or an integer, as JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id(String);

impl Id {
    /// Parses an id; `None` if it is invalid or too long. Strings are compared by their
    /// content, integers by their digits, however many.
    pub fn parse(json: &RawValue) -> Option<Id> {
        if is_too_long(json) {
            return None;
        }
        let text = json.get();
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Id(text.into()));
        }
        text.starts_with('"').then(|| {
            // A string with half of a surrogate pair is not text: it is sent back unchanged.
            let content = serde_json::from_str::<Cow<'_, str>>(text).ok();
            Id(content.map_or(text.into(), |content| Value::from(content).to_string()))
        })
    }
}

/// Whether an id is too long to be sent back.
fn is_too_long(json: &RawValue) -> bool {
    json.get().len() > limits::MESSAGE_ID_BYTES
}

/// The id as JSON.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Error response to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// Error code of the protocol.
    pub code: i32,
    /// Text for users and models.
    pub message: String,
    /// Data for programs.
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without data.
    pub fn new(code: i32, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// Creates an error about invalid parameters.
    pub fn invalid_params(message: impl Into<String>) -> RpcError {
        RpcError::new(INVALID_PARAMS, message)
    }

    /// Builds the response line.
    pub fn response(&self, id: &Id) -> String {
        let mut error = serde_json::json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
    }
}

/// A request, which needs a response.
#[derive(Debug)]
pub struct RpcRequest<'l> {
    /// Id, repeated in the response.
    pub id: Id,
    /// Name of the method.
    pub method: Cow<'l, str>,
    /// A JSON object, if any.
    pub params: Option<&'l RawValue>,
}

impl<'l> RpcRequest<'l> {
    /// Parses the parameters and ignores unknown ones. Missing parameters are an empty
    /// object.
    pub fn parse_params<T: Deserialize<'l>>(&self) -> Result<T, RpcError> {
        let text = self.params.map_or("{}", RawValue::get);
        serde_json::from_str(text).map_err(|error| {
            let reason = text::one_line(&error.to_string(), limits::SUMMARY_CHARS);
            RpcError::invalid_params(format!("invalid params of {}: {reason}", self.method))
        })
    }
}

/// A parsed line.
#[derive(Debug)]
pub enum IncomingMessage<'l> {
    /// Needs a response.
    Request(RpcRequest<'l>),
    /// Needs no response.
    Notification {
        /// Name of the method.
        method: Cow<'l, str>,
        /// A JSON object, if any.
        params: Option<&'l RawValue>,
    },
    /// A response, though the server sends no requests.
    Response,
    /// An empty line.
    Empty,
    /// An invalid message; without an id it cannot be answered.
    Invalid(Option<Id>, RpcError),
}

/// Parses a line.
pub fn parse_line(line: &[u8]) -> IncomingMessage<'_> {
    // Some programs start their output with a byte order mark.
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    // `trim_ascii` would also remove form feeds, which are not white space in JSON.
    let is_not_blank = |byte: &u8| !b" \t\r\n".contains(byte);
    let end = line.iter().rposition(is_not_blank).map_or(0, |last| last + 1);
    let line = &line[line.iter().position(is_not_blank).unwrap_or(end)..end];
    if line.is_empty() {
        return IncomingMessage::Empty;
    }
    match std::str::from_utf8(line) {
        Ok(text) => parse_message(text),
        Err(error) => {
            let before = line.get(..error.valid_up_to()).unwrap_or_default();
            let before = std::str::from_utf8(before).unwrap_or_default();
            let id = MessageMembers::parse(before).0.response_id(before, true);
            invalid_message(id, "it is not UTF-8")
        }
    }
}

fn invalid_message<'l>(id: Option<Id>, reason: &str) -> IncomingMessage<'l> {
    IncomingMessage::Invalid(
        id,
        RpcError::new(INVALID_REQUEST, format!("invalid request: {reason}")),
    )
}

fn parse_message(text: &str) -> IncomingMessage<'_> {
    // Checked before parsing: for a value that is not an object, the parser's message would quote
    // the whole value.
    if text.starts_with('[') {
        return invalid_message(
            None,
            "batches are not supported; send each message on its own line",
        );
    }
    if !text.starts_with('{') {
        return invalid_message(None, "it is not a JSON object");
    }
    let (members, error) = MessageMembers::parse(text);
    let id = members.response_id(text, error.is_some());
    if let Some(error) = error {
        let reason = text::one_line(&error.to_string(), limits::SUMMARY_CHARS);
        return invalid_message(id, &reason);
    }
    if members.is_response && members.method.is_none() {
        return IncomingMessage::Response;
    }
    if members.version.and_then(string_value).as_deref() != Some("2.0") {
        return invalid_message(id, "`jsonrpc` must be \"2.0\"");
    }
    let Some(method) = members.method.and_then(string_value) else {
        return invalid_message(id, "`method` must be a string");
    };
    let params = members.params.filter(|params| params.get() != "null");
    let is_object = params.is_none_or(|params| params.get().starts_with('{'));
    match (members.id, id) {
        (None, _) => IncomingMessage::Notification { method, params: params.filter(|_| is_object) },
        (Some(json), id) if is_too_long(json) => invalid_message(id, "`id` is longer than 64 KiB"),
        (Some(_), None) => invalid_message(None, "`id` must be a string or an integer"),
        (Some(_), Some(id)) if !is_object => IncomingMessage::Invalid(
            Some(id),
            RpcError::invalid_params("`params` must be an object"),
        ),
        (Some(_), Some(id)) => IncomingMessage::Request(RpcRequest { id, method, params }),
    }
}

/// Parses a JSON string, without copying if possible.
fn string_value(json: &RawValue) -> Option<Cow<'_, str>> {
    match serde_json::from_str::<&str>(json.get()) {
        Ok(name) => Some(Cow::Borrowed(name)),
        Err(_) => serde_json::from_str(json.get()).ok().map(Cow::Owned),
    }
}

/// The members of a message, the last one of each name. For invalid JSON, the members
/// before the error.
#[derive(Default)]
struct MessageMembers<'l> {
    version: Option<&'l RawValue>,
    id: Option<&'l RawValue>,
    method: Option<&'l RawValue>,
    params: Option<&'l RawValue>,
    /// Whether there is a member `result` or `error`.
    is_response: bool,
}

impl<'l> MessageMembers<'l> {
    fn parse(text: &'l str) -> (MessageMembers<'l>, Option<serde_json::Error>) {
        let mut members = MessageMembers::default();
        let mut reader = serde_json::Deserializer::from_str(text);
        let result = reader.deserialize_map(&mut members);
        let result = result.and_then(|()| reader.end());
        (members, result.err())
    }

    /// Returns the id for the response. `None` if an invalid message may itself be a
    /// response, or may end within the digits of its id.
    fn response_id(&self, text: &str, is_invalid: bool) -> Option<Id> {
        let id = self.id?;
        let is_cut = id.get().as_bytes().as_ptr_range().end == text.as_bytes().as_ptr_range().end;
        if is_invalid && (is_cut || self.is_response) {
            return None;
        }
        if is_too_long(id) {
            // JSON-RPC requires the id `null` if the id cannot be read.
            return Some(Id("null".into()));
        }
        Id::parse(id)
    }
}

impl<'l> Visitor<'l> for &mut MessageMembers<'l> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'l, str>>()? {
            let member = match &*key {
                "jsonrpc" => &mut self.version,
                "id" => &mut self.id,
                "method" => &mut self.method,
                "params" => &mut self.params,
                other => {
                    self.is_response |= other == "result" || other == "error";
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *member = Some(map.next_value()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(json: &str) -> Option<String> {
        let json: Box<RawValue> = serde_json::from_str(json).unwrap();
        Id::parse(&json).map(|id| id.to_string())
    }

    #[test]
    fn an_id_is_a_string_or_an_integer_of_any_size() {
        for unchanged in ["0", "-7", "9007199254740993", r#""""#, r#""a\"b""#, r#""\ud800""#] {
            assert_eq!(id(unchanged).as_deref(), Some(unchanged));
        }
        assert_eq!(id(r#""\u0061\/""#).as_deref(), Some(r#""a/""#));
        for invalid in ["null", "1.0", "1e3", "true", "[]", "{}"] {
            assert_eq!(id(invalid), None, "{invalid}");
        }
        let digits = "1".repeat(limits::MESSAGE_ID_BYTES);
        assert_eq!(id(&digits), Some(digits.clone()));
        assert_eq!(id(&(digits + "1")), None);
    }

    /// The id in the response to an invalid line.
    fn response_id(line: &[u8]) -> Option<String> {
        match parse_line(line) {
            IncomingMessage::Invalid(id, error) => {
                assert_eq!(error.code, INVALID_REQUEST);
                id.map(|id| id.to_string())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_invalid_line_is_answered_if_its_id_is_complete() {
        for line in [
            &br#"{"id":5,"#[..],
            br#"{"id":5 x"#,
            br#"{"id":5}}"#,
            br#"{"id":4,"id":5,x"#,
            b"{\"id\":5,\"a\":\"\xff\"}",
        ] {
            assert_eq!(response_id(line).as_deref(), Some("5"), "{line:?}");
        }
        for line in [
            &br#"{"id":5"#[..],
            br#"{x,"id":5}"#,
            br#"{"id":5,"result":x"#,
            br#"[{"id":5}]"#,
            b"{\"a\":\"\xff\",\"id\":5}",
            b"{\"id\":\"\xff\",",
            b"{\"id\":5,\"error\":\"\xff\"}",
        ] {
            assert_eq!(response_id(line), None, "{line:?}");
        }
    }

    #[test]
    fn byte_order_mark_and_blanks_are_ignored() {
        let line = "\u{feff} \t{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r".as_bytes();
        assert!(matches!(parse_line(line), IncomingMessage::Notification { params: None, .. }));
        assert!(matches!(parse_line("\u{feff} ".as_bytes()), IncomingMessage::Empty));
    }
}
