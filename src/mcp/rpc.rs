//! JSON-RPC 2.0, as the protocol uses it: one message a line, no batches, and
//! an id that is never null. <https://www.jsonrpc.org/specification>
//!
//! Reading makes no tree of values: what is not looked at costs nothing, however
//! deep or long. A message that is wrong is answered where its id can be read.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::limits;
use crate::text;

/// The line is JSON and no request.
pub(super) const INVALID_REQUEST: i32 = -32_600; // not a bound
/// There is no such method.
pub(super) const METHOD_NOT_FOUND: i32 = -32_601; // not a bound
/// What is asked for is wrong, or is not there.
pub(super) const INVALID_PARAMS: i32 = -32_602; // not a bound
/// It is there, and cannot be had.
pub(super) const INTERNAL_ERROR: i32 = -32_603; // not a bound

/// What a request is answered under: a string or an integer, as JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id(String);

impl Id {
    /// `None` for what is no id, or too long for one. A string is told from another
    /// by what it says, an integer by its digits, be they more than a number can hold.
    pub fn of(json: &RawValue) -> Option<Id> {
        if is_too_long(json) {
            return None;
        }
        let text = json.get();
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Id(text.into()));
        }
        text.starts_with('"').then(|| {
            // Half of a surrogate pair is no text, and goes back as it came.
            let said = serde_json::from_str::<Cow<'_, str>>(text).ok();
            Id(said.map_or(text.into(), |said| Value::from(said).to_string()))
        })
    }
}

/// Whether an id has more bytes than one that is sent back.
fn is_too_long(json: &RawValue) -> bool {
    json.get().len() > limits::MESSAGE_ID_BYTES
}

/// As JSON.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// As the protocol numbers them.
    pub code: i32,
    /// For people and models.
    pub message: String,
    /// For programs.
    pub data: Option<Value>,
}

impl RpcError {
    /// Without data.
    pub fn new(code: i32, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// What is asked for is wrong.
    pub fn params(message: impl Into<String>) -> RpcError {
        RpcError::new(INVALID_PARAMS, message)
    }

    /// The answer, as a line.
    pub fn answer(&self, id: &Id) -> String {
        let mut error = serde_json::json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
    }
}

/// A request.
#[derive(Debug)]
pub struct RpcRequest<'l> {
    /// What its answer carries.
    pub id: Id,
    /// What is asked.
    pub method: Cow<'l, str>,
    /// An object.
    pub params: Option<&'l RawValue>,
}

impl<'l> RpcRequest<'l> {
    /// Its parameters; what nobody asked for is left out. None at all are an
    /// empty object.
    pub fn params<T: Deserialize<'l>>(&self) -> Result<T, RpcError> {
        let text = self.params.map_or("{}", RawValue::get);
        serde_json::from_str(text).map_err(|error| {
            let why = text::one_line(&error.to_string(), limits::SUMMARY_CHARS);
            RpcError::params(format!("the params of {} are wrong: {why}", self.method))
        })
    }
}

/// What a line is.
#[derive(Debug)]
pub enum IncomingMessage<'l> {
    /// It wants an answer.
    Request(RpcRequest<'l>),
    /// It wants none.
    Notification {
        /// What is told.
        method: Cow<'l, str>,
        /// An object, if anything.
        params: Option<&'l RawValue>,
    },
    /// An answer; nothing was asked.
    Response,
    /// Nothing stands in the line.
    Empty,
    /// It is wrong; without an id nobody can be answered.
    Refused(Option<Id>, RpcError),
}

/// Stands for a byte that is not UTF-8. JSON takes it in strings only, and takes
/// up no more room than the byte.
const LOST: char = '\u{7f}';

/// Reads a line.
pub fn read(line: &[u8]) -> IncomingMessage<'_> {
    // Some programs begin all that they write with a byte order mark.
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    // The blanks of JSON: `trim_ascii` knows one more.
    let is_text = |byte: &u8| !b" \t\r\n".contains(byte);
    let end = line.iter().rposition(is_text).map_or(0, |last| last + 1);
    let line = &line[line.iter().position(is_text).unwrap_or(end)..end];
    if line.is_empty() {
        return IncomingMessage::Empty;
    }
    let Ok(text) = std::str::from_utf8(line) else {
        let mut text = String::with_capacity(line.len());
        for chunk in line.utf8_chunks() {
            text.push_str(chunk.valid());
            text.extend(chunk.invalid().iter().map(|_| LOST));
        }
        let id = MessageMembers::of(&text).0.addressee(&text, true);
        let id = id.filter(|id| !id.0.contains(LOST));
        return refused(id, "it is not UTF-8");
    };
    judge(text)
}

fn refused<'l>(id: Option<Id>, why: &str) -> IncomingMessage<'l> {
    IncomingMessage::Refused(id, RpcError::new(INVALID_REQUEST, format!("invalid request: {why}")))
}

fn judge(text: &str) -> IncomingMessage<'_> {
    // What the parser says of another value quotes it, however long it is.
    if text.starts_with('[') {
        return refused(None, "a batch; messages come one by one");
    }
    if !text.starts_with('{') {
        return refused(None, "it is no JSON object");
    }
    let (members, fault) = MessageMembers::of(text);
    let id = members.addressee(text, fault.is_some());
    if let Some(fault) = fault {
        let why = text::one_line(&fault.to_string(), limits::SUMMARY_CHARS);
        return refused(id, &why);
    }
    if members.is_response && members.method.is_none() {
        return IncomingMessage::Response;
    }
    if members.version.and_then(name).as_deref() != Some("2.0") {
        return refused(id, "`jsonrpc` must be \"2.0\"");
    }
    let Some(method) = members.method.and_then(name) else {
        return refused(id, "`method` must be a string");
    };
    let params = members.params.filter(|params| params.get() != "null");
    let is_object = params.is_none_or(|params| params.get().starts_with('{'));
    match (members.id, id) {
        (None, _) => IncomingMessage::Notification { method, params: params.filter(|_| is_object) },
        (Some(json), id) if is_too_long(json) => refused(id, "`id` has more than 64 KiB"),
        (Some(_), None) => refused(None, "`id` must be a string or an integer"),
        (Some(_), Some(id)) if !is_object => {
            IncomingMessage::Refused(Some(id), RpcError::params("`params` must be an object"))
        }
        (Some(_), Some(id)) => IncomingMessage::Request(RpcRequest { id, method, params }),
    }
}

/// A string, where it can be without a copy.
fn name(json: &RawValue) -> Option<Cow<'_, str>> {
    match serde_json::from_str::<&str>(json.get()) {
        Ok(name) => Some(Cow::Borrowed(name)),
        Err(_) => serde_json::from_str(json.get()).ok().map(Cow::Owned),
    }
}

/// The members of a message, the last of each name; of one that is broken, those
/// in front of the fault.
#[derive(Default)]
struct MessageMembers<'l> {
    version: Option<&'l RawValue>,
    id: Option<&'l RawValue>,
    method: Option<&'l RawValue>,
    params: Option<&'l RawValue>,
    /// It has a result or an error.
    is_response: bool,
}

impl<'l> MessageMembers<'l> {
    fn of(text: &'l str) -> (MessageMembers<'l>, Option<serde_json::Error>) {
        let mut members = MessageMembers::default();
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = reader.deserialize_map(&mut members);
        let read = read.and_then(|()| reader.end());
        (members, read.err())
    }

    /// Who is to be answered. Nobody, where a broken message may be an answer
    /// itself, or may end within the digits of its id.
    fn addressee(&self, text: &str, is_broken: bool) -> Option<Id> {
        let id = self.id?;
        let is_cut = id.get().as_bytes().as_ptr_range().end == text.as_bytes().as_ptr_range().end;
        if is_broken && (is_cut || self.is_response) {
            return None;
        }
        if is_too_long(id) {
            // It counts as unreadable, which JSON-RPC answers under `null`.
            return Some(Id("null".into()));
        }
        Id::of(id)
    }
}

impl<'l> Visitor<'l> for &mut MessageMembers<'l> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'l, str>>()? {
            let place = match &*key {
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
            *place = Some(map.next_value()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(json: &str) -> Option<String> {
        let json: Box<RawValue> = serde_json::from_str(json).unwrap();
        Id::of(&json).map(|id| id.to_string())
    }

    #[test]
    fn an_id_is_a_string_or_an_integer_of_any_size() {
        for same in ["0", "-7", "9007199254740993", r#""""#, r#""a\"b""#, r#""\ud800""#] {
            assert_eq!(id(same).as_deref(), Some(same));
        }
        assert_eq!(id(r#""\u0061\/""#).as_deref(), Some(r#""a/""#));
        for none in ["null", "1.0", "1e3", "true", "[]", "{}"] {
            assert_eq!(id(none), None, "{none}");
        }
        let digits = "1".repeat(limits::MESSAGE_ID_BYTES);
        assert_eq!(id(&digits), Some(digits.clone()));
        assert_eq!(id(&(digits + "1")), None);
    }

    /// The id that a broken line is answered under.
    fn addressee(line: &[u8]) -> Option<String> {
        match read(line) {
            IncomingMessage::Refused(id, fault) => {
                assert_eq!(fault.code, INVALID_REQUEST);
                id.map(|id| id.to_string())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_broken_line_is_answered_under_an_id_that_is_whole() {
        for line in [
            &br#"{"id":5,"#[..],
            br#"{"id":5 x"#,
            br#"{"id":5}}"#,
            br#"{"id":4,"id":5,x"#,
            b"{\"a\":\"\xff\",\"id\":5}",
        ] {
            assert_eq!(addressee(line).as_deref(), Some("5"), "{line:?}");
        }
        for line in [
            &br#"{"id":5"#[..],
            br#"{x,"id":5}"#,
            br#"{"id":5,"result":x"#,
            br#"[{"id":5}]"#,
            b"{\"id\":\"\xff\",",
            b"{\"id\":5,\"error\":\"\xff\"}",
        ] {
            assert_eq!(addressee(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_mark_in_front_and_blanks_around_are_nothing() {
        let line = "\u{feff} \t{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r".as_bytes();
        assert!(matches!(read(line), IncomingMessage::Notification { params: None, .. }));
        assert!(matches!(read("\u{feff} ".as_bytes()), IncomingMessage::Empty));
    }
}
