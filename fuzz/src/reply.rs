//! Replies: in any pieces from the network a reply is the same, an incomplete one has no
//! calls, and memory is limited.

use std::fmt::Write as _;

use base::limits;
use chat_api::{
    InvalidResponse, ReplyAssembler, SseSplitter, ThinkFilter, ThinkPiece, find_calls,
    is_code_call, is_unparsed_call, read_text_calls,
};
use serde::de::IgnoredAny;
use skills_runner::Event;
use skills_runner::{FinishReason, ModelReply};
use skills_runner::{ToolCall, ToolDefinition};

use crate::cuts::{self, Numbers};
use crate::memory::with_limit;

/// The memory of a value relative to its text: `{"":0}` is a node of a map.
const MEMORY_FACTOR: usize = 400;

/// The result of reading a stream.
struct Outcome {
    emitted: String,
    thought: String,
    is_finished: bool,
    is_done: bool,
    reply: Result<ModelReply, InvalidResponse>,
}

/// See the module.
pub fn check(data: &[u8]) {
    let most = (1 << 18) + MEMORY_FACTOR * data.len();
    let whole = with_limit(most, || assemble(&[data]));
    check_outcome(&whole);
    let expected = shown(&whole);
    for pieces in cuts::ways(data) {
        assert_eq!(shown(&assemble(&pieces)), expected, "cut into {} pieces", pieces.len());
    }
    // The meaning of an event does not depend on the form of the previous one. (The message
    // of a parser contains a position.)
    let without_place = |shown: &str| shown.split(" at line ").next().map(str::to_owned);
    let with_varied_form = shown(&assemble(&[&with_varied_form(data)]));
    assert_eq!(without_place(&with_varied_form), without_place(&expected), "unlike events");
    // A connection may break anywhere.
    let mut numbers = Numbers::of(data);
    for _ in 0..4 {
        check_outcome(&assemble(&[&data[..numbers.below(data.len())]]));
    }
    // Events may be lost, including the last.
    let events: Vec<&[u8]> = data.split_inclusive(|byte| *byte == b'\n').collect();
    for _ in 0..4 {
        let lost = [numbers.below(events.len()), numbers.below(events.len())];
        let is_kept = |at: usize| {
            !lost.contains(&at) && (lost[0] < lost[1] || !events[at].ends_with(b"[DONE]\n"))
        };
        let kept: Vec<&[u8]> =
            (0..events.len()).filter(|at| is_kept(*at)).map(|at| events[at]).collect();
        check_outcome(&assemble(&kept));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        check_thoughts(text);
    }
}

/// The same stream with an additional blank in every second object, so that no event has the
/// form of the previous one.
fn with_varied_form(data: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut is_second = false;
    for line in data.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
        let object = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii_start);
        match object.and_then(|object| object.strip_prefix(b"{")) {
            Some(rest) if is_second => {
                stream.extend_from_slice(&line[..line.len() - rest.len()]);
                stream.push(b' ');
                stream.extend_from_slice(rest);
            }
            _ => stream.extend_from_slice(line),
        }
        is_second ^= object.is_some();
    }
    stream
}

fn assemble(pieces: &[&[u8]]) -> Outcome {
    let (mut emitted, mut thought) = (String::new(), String::new());
    let mut listener = |event: Event<'_>| match event {
        Event::Text(text) => emitted.push_str(text),
        Event::Reasoning(text) => thought.push_str(text),
        _ => {}
    };
    let mut assembler = ReplyAssembler::after_messages(3);
    let mut splitter = SseSplitter::default();
    let mut take = |data: &[u8]| assembler.feed(data, &mut listener);
    let mut result: Result<(), InvalidResponse> =
        pieces.iter().try_for_each(|piece| splitter.feed(piece, &mut take));
    if result.is_ok() {
        result = splitter.finish(&mut take);
    }
    let (is_finished, is_done) = (assembler.has_finish_reason(), assembler.has_end_marker());
    let reply = result.and_then(|()| assembler.finish(&mut listener));
    Outcome { emitted, thought, is_finished, is_done, reply }
}

fn shown(outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "{:?} {:?} {} {} {:?}",
        outcome.emitted, outcome.thought, outcome.is_finished, outcome.is_done, outcome.reply
    );
    text
}

fn check_outcome(outcome: &Outcome) {
    let Ok(reply) = &outcome.reply else { return };
    let (message, is_proven) = (&reply.message, outcome.is_finished || outcome.is_done);
    assert!(is_proven || reply.finish == FinishReason::Cut, "nothing proves that it is complete");
    assert!(message.content.len() <= limits::MESSAGE_BYTES);
    assert!(outcome.emitted.ends_with(&message.content), "the emitted text ends with the content");
    assert!(
        message.calls.is_empty() || reply.finish == FinishReason::Complete,
        "calls of an incomplete reply"
    );
    assert!(message.calls.len() <= limits::CALLS_ANSWERED);
    for (index, call) in message.calls.iter().enumerate() {
        check_call(call, outcome.is_done);
        let is_other = |other: &ToolCall| other.id != call.id;
        assert!(message.calls[..index].iter().all(is_other), "two calls with one id");
    }
    let bytes: usize = message.calls.iter().map(|call| call.arguments.len()).sum();
    assert!(bytes <= limits::ALL_ARGUMENTS_BYTES);
    let tool = |name: &str| ToolDefinition {
        name: name.into(),
        description: "d".into(),
        parameters: serde_json::Value::Null,
    };
    assert!(!is_unparsed_call(&message.content, &[]));
    let tools = [tool("list_skills"), tool("f")];
    is_unparsed_call(&message.content, &tools);
    is_code_call(&message.content, &tools);
    find_calls(&message.content, &tools);
    if let Some((sentence, calls)) = read_text_calls(&message.content, &tools) {
        assert!(message.content.trim().starts_with(sentence));
        assert!(calls.iter().all(|call| tools.iter().any(|tool| tool.name == call.name)));
    }
}

fn check_call(call: &ToolCall, is_done: bool) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    assert!(!call.id.is_empty());
    assert!(call.name.bytes().all(is_plain) && !call.name.is_empty(), "{:?}", call.name);
    assert!(call.name.len() <= limits::TOOL_NAME_CHARS);
    let read = serde_json::from_str::<IgnoredAny>(&call.arguments);
    let is_half = !call.arguments.trim().is_empty() && read.is_err_and(|error| error.is_eof());
    assert!(is_done || !is_half, "an incomplete call: {}", call.arguments);
}

/// Checks that reasoning does not depend on the pieces of its text.
fn check_thoughts(text: &str) {
    if text.len() - text.trim_start().len() >= limits::LEADING_BLANKS {
        return;
    }
    let mut expected = None;
    for pieces in cuts::text_ways(text) {
        let (mut said, mut thought) = (String::new(), String::new());
        let mut filter = ThinkFilter::default();
        let mut take = |piece: ThinkPiece| {
            said.push_str(&piece.text);
            thought.push_str(&piece.reasoning);
        };
        for piece in &pieces {
            take(filter.feed(piece));
        }
        take(filter.finish());
        let found = (said, thought, filter.has_reasoning());
        let expected = expected.get_or_insert_with(|| found.clone());
        assert_eq!(found, *expected, "cut into {} pieces", pieces.len());
    }
}
