//! Checks of the reader of MCP messages: the lines of a stream do not depend on the pieces in
//! which it arrives, and each line is parsed as another JSON parser parses it.

use std::collections::BTreeMap;

use base::limits;
use host::lines::{LineBuffer, LinePiece};
use serde_json::Value;
use serde_json::value::RawValue;
use skills_runner::parsers::{
    Era, Id, IncomingMessage, RequestMeta, RpcError, RpcRequest, RpcResult, parse_line,
};

use crate::cuts::{self, Numbers};
use crate::memory::with_limit;

type Members = BTreeMap<String, Box<RawValue>>;

/// See the module.
pub fn check(data: &[u8]) {
    let mut numbers = Numbers::of(data);
    for most in [numbers.below(100), limits::MESSAGE_LINE_BYTES] {
        check_lines(data, most);
    }
    for line in data.split(|byte| *byte == b'\n') {
        // For the list of open brackets, which grows by doubling, and the repaired copy of a line
        // that is not UTF-8.
        let most = (1 << 12) + 6 * line.len();
        check_line(line, &with_limit(most, || parse_line(line)));
    }
}

/// Checks that the lines do not depend on the pieces; `None`: too long.
fn check_lines(data: &[u8], most: usize) {
    let mut expected: Vec<Option<&[u8]>> = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        let whole = line.strip_suffix(b"\r").unwrap_or(line);
        expected.push((line.len() <= most).then_some(whole));
    }
    if data.is_empty() || data.ends_with(b"\n") {
        expected.pop();
    }
    for pieces in cuts::ways(data) {
        let mut lines = LineBuffer::default();
        let mut found = expected.iter();
        let mut compare = |piece: LinePiece<'_>| {
            let piece = match piece {
                LinePiece::Whole(line) => Some(line),
                LinePiece::TooLong => None,
            };
            assert_eq!(found.next(), Some(&piece), "cut into {}", pieces.len());
        };
        for (index, piece) in pieces.iter().enumerate() {
            // `fill` reserves memory for a whole read each time, which is slow: it is used
            // for one piece only.
            let count = match (pieces.len(), index) {
                (2, 1) => lines.fill(&mut &piece[..]).expect("memory can be read"),
                _ => 0,
            };
            lines.push(&piece[count..]);
            while let Some(piece) = lines.next_line(most) {
                compare(piece);
            }
            assert!(!lines.has_line());
        }
        lines.take_last_line(most).map(&mut compare);
        assert!(lines.is_empty() && lines.take_last_line(most).is_none());
        assert_eq!(found.next(), None);
    }
}

fn check_line(line: &[u8], incoming: &IncomingMessage<'_>) {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        assert!(matches!(incoming, IncomingMessage::Empty));
        return;
    }
    let text = std::str::from_utf8(line).ok();
    let members = text.and_then(|text| serde_json::from_str::<Members>(text).ok());
    match (members, incoming) {
        (Some(members), _) => check_message(&members, incoming),
        (None, IncomingMessage::Invalid(id, error)) => {
            assert_eq!(error.code, -32600);
            if let Some(id) = id {
                check_error_response(error, id);
                assert!(is_whole(line, &id.to_string()), "the id {id} is not in the line");
            }
        }
        (None, _) => panic!("{incoming:?} from a line that is not an object"),
    }
}

/// Whether the line contains the id with all its digits.
fn is_whole(line: &[u8], id: &str) -> bool {
    if id.starts_with('"') {
        // The id may contain escapes in the line.
        return line.contains(&b'"');
    }
    let mut places = line.windows(id.len() + 1);
    let ends = |byte: u8| !byte.is_ascii_digit() && !matches!(byte, b'.' | b'e' | b'E');
    places.any(|part| part.starts_with(id.as_bytes()) && ends(part[id.len()]))
}

fn string(json: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(json?.get()).ok()
}

fn is_id(json: &RawValue) -> bool {
    let text = json.get();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= limits::MESSAGE_ID_BYTES && (text.starts_with('"') || is_integer)
}

/// Checks a message by its members.
fn check_message(members: &Members, incoming: &IncomingMessage<'_>) {
    let member = |name: &str| members.get(name).map(|json| &**json);
    let has = |name: &str| members.contains_key(name);
    if (has("result") || has("error")) && !has("method") {
        assert!(matches!(incoming, IncomingMessage::Response), "{incoming:?}");
        return;
    }
    let id = member("id").filter(|json| is_id(json));
    let is_valid = string(member("jsonrpc")).as_deref() == Some("2.0");
    let method = string(member("method")).filter(|_| is_valid);
    let params = member("params").filter(|params| params.get() != "null");
    let is_object = params.is_none_or(|params| params.get().starts_with('{'));
    let (has_response_id, code) = match (&method, incoming) {
        (Some(method), IncomingMessage::Notification { method: it, params: given }) => {
            assert_eq!(it, method);
            assert!(!has("id"), "{method} gets no answer");
            let given = given.map(RawValue::get);
            assert_eq!(given, params.filter(|_| is_object).map(RawValue::get));
            return;
        }
        (Some(method), IncomingMessage::Request(request)) => {
            assert!(is_object && request.method == **method, "{request:?}");
            assert_eq!(request.params.map(RawValue::get), params.map(RawValue::get));
            check_id(&request.id, id);
            check_request(request);
            return;
        }
        (_, IncomingMessage::Invalid(given, error)) => {
            if let (Some(given), false) = (given, has("result") || has("error")) {
                check_id(given, id);
                check_error_response(error, given);
            }
            (given.is_some(), error.code)
        }
        (_, other) => panic!("{other:?} of {members:?}"),
    };
    assert_eq!(has_response_id, id.is_some(), "{members:?}");
    // A valid message is refused only for its id or its parameters.
    let is_invalid = method.is_none() || (id.is_none() && has("id")) || !is_object;
    assert!(is_invalid, "{members:?}");
    let has_invalid_params = method.is_some() && id.is_some();
    assert_eq!(code, if has_invalid_params { -32602 } else { -32600 });
}

/// Checks that the id is sent back as JSON of the same value.
fn check_id(id: &Id, sent: Option<&RawValue>) {
    let Some(sent) = sent else { panic!("the id {id} was not sent") };
    let text = id.to_string();
    assert!(!text.contains('\n'));
    match serde_json::from_str::<Value>(sent.get()) {
        Ok(Value::String(sent)) => assert_eq!(string_of(&text), Some(sent)),
        _ => assert_eq!(text, sent.get()),
    }
    let again = serde_json::from_str::<Box<RawValue>>(&text).expect("an id is JSON");
    assert_eq!(Id::parse(&again).as_ref(), Some(id), "not stable");
}

fn string_of(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// Checks that an error response is one line and is parsed as a response.
fn check_error_response(error: &RpcError, id: &Id) {
    check_response(&error.response(id), id, "error");
}

fn check_response(line: &str, id: &Id, part: &str) -> Members {
    assert!(!line.contains('\n'));
    assert!(matches!(parse_line(line.as_bytes()), IncomingMessage::Response), "{line}");
    let members: Members = serde_json::from_str(line).expect("an answer is JSON");
    assert_eq!(members["id"].get(), id.to_string());
    assert_eq!(members.keys().map(String::as_str).collect::<Vec<_>>(), {
        let mut names = ["id", "jsonrpc", part];
        names.sort_unstable();
        names
    });
    members
}

/// Checks that the metadata of a request is used only if it is present.
fn check_request(request: &RpcRequest<'_>) {
    let params = request.params.map(RawValue::get).unwrap_or("{}");
    let params: Option<Value> = serde_json::from_str(params).ok();
    for is_initialized in [false, true] {
        let era = RequestMeta::from_request(request).and_then(|meta| meta.era(is_initialized));
        match era {
            Err(error) => {
                assert!(matches!(error.code, -32602 | -32022), "{error:?}");
                check_error_response(&error, &request.id);
            }
            Ok(Era::Legacy) => assert!(is_initialized),
            Ok(Era::Modern) => {
                let Some(params) = &params else { continue };
                let meta = &params["_meta"];
                assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
                assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
            }
        }
    }
    for era in [Era::Legacy, Era::Modern] {
        for reply in [RpcResult::default(), RpcResult::new("a", "x").cached_for(1)] {
            let is_cached = era == Era::Modern && reply.cache_milliseconds.is_some();
            let members = check_response(&era.response(&request.id, reply), &request.id, "result");
            let result: Value = serde_json::from_str(members["result"].get()).expect("it is JSON");
            assert_eq!(result["resultType"] == "complete", era == Era::Modern);
            assert_eq!(result["ttlMs"].is_number(), is_cached);
        }
    }
}
