//! A stream of messages of the Model Context Protocol: cut anywhere it is the
//! same lines, and each is what another reader of JSON takes it for.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use skills_runner::internals::limits;
use skills_runner::internals::mcp::{
    Era, Id, IncomingMessage, RequestMeta, RpcError, RpcRequest, RpcResult, read,
};
use skills_runner::internals::world::{LineBuffer, LinePiece};

use crate::cuts::{self, Numbers};
use crate::memory::bounded;

type Members = BTreeMap<String, Box<RawValue>>;

/// See the module.
pub fn check(data: &[u8]) {
    let mut numbers = Numbers::of(data);
    for most in [numbers.below(100), limits::MESSAGE_LINE_BYTES] {
        check_lines(data, most);
    }
    for line in data.split(|byte| *byte == b'\n') {
        // A list of brackets grows by doubling, beside the text that is no UTF-8.
        let most = (1 << 12) + 6 * line.len();
        check_line(line, &bounded(most, || read(line)));
    }
}

/// The same lines however the bytes come; `None`: too long.
fn check_lines(data: &[u8], most: usize) {
    let mut due: Vec<Option<&[u8]>> = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        let whole = line.strip_suffix(b"\r").unwrap_or(line);
        due.push((line.len() <= most).then_some(whole));
    }
    if data.is_empty() || data.ends_with(b"\n") {
        due.pop();
    }
    for pieces in cuts::ways(data) {
        let mut lines = LineBuffer::default();
        let mut found = due.iter();
        let mut compare = |piece: LinePiece<'_>| {
            let piece = match piece {
                LinePiece::Whole(line) => Some(line),
                LinePiece::TooLong => None,
            };
            assert_eq!(found.next(), Some(&piece), "cut into {}", pieces.len());
        };
        for (index, piece) in pieces.iter().enumerate() {
            // Room is made for a whole read each time, which takes long.
            let count = match (pieces.len(), index) {
                (2, 1) => lines.fill(&mut &piece[..]).expect("memory can be read"),
                _ => 0,
            };
            lines.push(&piece[count..]);
            while let Some(piece) = lines.next(most) {
                compare(piece);
            }
            assert!(!lines.has_line());
        }
        lines.last(most).map(&mut compare);
        assert!(lines.is_empty() && lines.last(most).is_none());
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
        (None, IncomingMessage::Refused(id, fault)) => {
            assert_eq!(fault.code, -32600);
            if let Some(id) = id {
                check_answer(fault, id);
                assert!(is_whole(line, &id.to_string()), "{id} was guessed");
            }
        }
        (None, _) => panic!("{incoming:?} of no object"),
    }
}

/// Whether the id stands in the line, and its digits end there.
fn is_whole(line: &[u8], id: &str) -> bool {
    if id.starts_with('"') {
        // It may have been written with escapes.
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

/// What its members make of a message.
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
    let (due_id, code) = match (&method, incoming) {
        (Some(method), IncomingMessage::Notification { method: it, params: given }) => {
            assert_eq!(it, method);
            assert!(!has("id"), "nobody answers {method}");
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
        (_, IncomingMessage::Refused(given, fault)) => {
            if let (Some(given), false) = (given, has("result") || has("error")) {
                check_id(given, id);
                check_answer(fault, given);
            }
            (given.is_some(), fault.code)
        }
        (_, other) => panic!("{other:?} of {members:?}"),
    };
    assert_eq!(due_id, id.is_some(), "{members:?}");
    // A good message is refused for its id or its parameters alone.
    let is_wrong = method.is_none() || (id.is_none() && has("id")) || !is_object;
    assert!(is_wrong, "{members:?}");
    let is_params = method.is_some() && id.is_some();
    assert_eq!(code, if is_params { -32602 } else { -32600 });
}

/// As JSON it is what was sent.
fn check_id(id: &Id, sent: Option<&RawValue>) {
    let Some(sent) = sent else { panic!("nobody has sent {id}") };
    let text = id.to_string();
    assert!(!text.contains('\n'));
    match serde_json::from_str::<Value>(sent.get()) {
        Ok(Value::String(sent)) => assert_eq!(string_of(&text), Some(sent)),
        _ => assert_eq!(text, sent.get()),
    }
    let again = serde_json::from_str::<Box<RawValue>>(&text).expect("an id is JSON");
    assert_eq!(Id::of(&again).as_ref(), Some(id), "not settled");
}

fn string_of(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// One line, and its own reader takes it for an answer.
fn check_answer(fault: &RpcError, id: &Id) {
    check_frame(&fault.answer(id), id, "error");
}

fn check_frame(line: &str, id: &Id, part: &str) -> Members {
    assert!(!line.contains('\n'));
    assert!(matches!(read(line.as_bytes()), IncomingMessage::Response), "{line}");
    let members: Members = serde_json::from_str(line).expect("an answer is JSON");
    assert_eq!(members["id"].get(), id.to_string());
    assert_eq!(members.keys().map(String::as_str).collect::<Vec<_>>(), {
        let mut names = ["id", "jsonrpc", part];
        names.sort_unstable();
        names
    });
    members
}

/// What it says of itself is believed only where it says so.
fn check_request(request: &RpcRequest<'_>) {
    let params = request.params.map(RawValue::get).unwrap_or("{}");
    let params: Option<Value> = serde_json::from_str(params).ok();
    for is_initialized in [false, true] {
        let era = RequestMeta::of(request).and_then(|meta| meta.era(is_initialized));
        match era {
            Err(fault) => {
                assert!(matches!(fault.code, -32602 | -32022), "{fault:?}");
                check_answer(&fault, &request.id);
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
        for reply in [RpcResult::of(&()), RpcResult::of(&Value::from("x")).kept(1)] {
            let body = if reply.body == "null" { "{}" } else { r#"{"a":"x"}"# };
            let reply = RpcResult { body: body.into(), ..reply };
            let members = check_frame(&era.answer(&request.id, &reply), &request.id, "result");
            let result: Value = serde_json::from_str(members["result"].get()).expect("it is JSON");
            assert_eq!(result["resultType"] == "complete", era == Era::Modern);
            let is_kept = era == Era::Modern && reply.keep.is_some();
            assert_eq!(result["ttlMs"].is_number(), is_kept);
        }
    }
}
