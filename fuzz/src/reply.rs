//! A reply, cut anywhere by the network, is the same reply; what is unfinished
//! has no calls; memory is bounded.

use std::fmt::Write as _;

use serde::de::IgnoredAny;
use skills_runner::Event;
use skills_runner::internals::limits;
use skills_runner::internals::model::{
    InvalidResponse, ReplyAssembler, SseSplitter, ThinkFilter, ThinkPiece, is_call,
};
use skills_runner::{FinishReason, ModelReply};
use skills_runner::{ToolCall, ToolDefinition};

use crate::cuts::{self, Numbers};
use crate::memory::bounded;

/// What a value takes more than its text: `{"":0}` is a node of a map.
const MEMORY_FACTOR: usize = 400;

/// What came of a stream.
struct Outcome {
    told: String,
    thought: String,
    is_finished: bool,
    is_done: bool,
    reply: Result<ModelReply, InvalidResponse>,
}

/// See the module.
pub fn check(data: &[u8]) {
    let most = (1 << 18) + MEMORY_FACTOR * data.len();
    let whole = bounded(most, || assemble(&[data]));
    judge(&whole);
    let due = shown(&whole);
    for pieces in cuts::ways(data) {
        assert_eq!(shown(&assemble(&pieces)), due, "cut into {} pieces", pieces.len());
    }
    // What an event says does not depend on the form of the one before it. (A
    // parser's complaint tells its place.)
    let without_place = |shown: &str| shown.split(" at line ").next().map(str::to_owned);
    let unlike = shown(&assemble(&[&unlike(data)]));
    assert_eq!(without_place(&unlike), without_place(&due), "unlike events");
    // A connection may break anywhere.
    let mut numbers = Numbers::of(data);
    for _ in 0..4 {
        judge(&assemble(&[&data[..numbers.below(data.len())]]));
    }
    // Events may be lost, the end's among them.
    let events: Vec<&[u8]> = data.split_inclusive(|byte| *byte == b'\n').collect();
    for _ in 0..4 {
        let lost = [numbers.below(events.len()), numbers.below(events.len())];
        let is_kept = |at: usize| {
            !lost.contains(&at) && (lost[0] < lost[1] || !events[at].ends_with(b"[DONE]\n"))
        };
        let kept: Vec<&[u8]> =
            (0..events.len()).filter(|at| is_kept(*at)).map(|at| events[at]).collect();
        judge(&assemble(&kept));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        check_thoughts(text);
    }
}

/// The same stream with a blank more in every second object, so that no event
/// has the form of the one before it.
fn unlike(data: &[u8]) -> Vec<u8> {
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
    let (mut told, mut thought) = (String::new(), String::new());
    let mut listener = |event: Event<'_>| match event {
        Event::Text(text) => told.push_str(text),
        Event::Reasoning(text) => thought.push_str(text),
        _ => {}
    };
    let mut assembler = ReplyAssembler::after(3);
    let mut splitter = SseSplitter::default();
    let mut take = |data: &[u8]| assembler.take(data, &mut listener);
    let mut result: Result<(), InvalidResponse> =
        pieces.iter().try_for_each(|piece| splitter.feed(piece, &mut take));
    if result.is_ok() {
        result = splitter.finish(&mut take);
    }
    let (is_finished, is_done) = (assembler.is_finished(), assembler.is_done());
    let reply = result.and_then(|()| assembler.finish(&mut listener));
    Outcome { told, thought, is_finished, is_done, reply }
}

fn shown(outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "{:?} {:?} {} {} {:?}",
        outcome.told, outcome.thought, outcome.is_finished, outcome.is_done, outcome.reply
    );
    text
}

fn judge(outcome: &Outcome) {
    let Ok(reply) = &outcome.reply else { return };
    let (message, is_proven) = (&reply.message, outcome.is_finished || outcome.is_done);
    assert!(is_proven || reply.finish == FinishReason::Cut, "nothing says that it is whole");
    assert!(message.content.len() <= limits::MESSAGE_BYTES);
    assert!(outcome.told.ends_with(&message.content), "what was told is what was said");
    assert!(
        message.calls.is_empty() || reply.finish == FinishReason::Complete,
        "calls of a reply that is not whole"
    );
    assert!(message.calls.len() <= limits::CALLS_ANSWERED);
    for (index, call) in message.calls.iter().enumerate() {
        judge_call(call, outcome.is_done);
        let is_other = |other: &ToolCall| other.id != call.id;
        assert!(message.calls[..index].iter().all(is_other), "two calls of one id");
    }
    let bytes: usize = message.calls.iter().map(|call| call.arguments.len()).sum();
    assert!(bytes <= limits::ALL_ARGUMENTS_BYTES);
    let tool = |name: &str| ToolDefinition {
        name: name.into(),
        description: "d".into(),
        parameters: serde_json::Value::Null,
    };
    assert!(!is_call(&message.content, &[]));
    is_call(&message.content, &[tool("list_skills"), tool("f")]);
}

fn judge_call(call: &ToolCall, is_done: bool) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    assert!(!call.id.is_empty());
    assert!(call.name.bytes().all(is_plain) && !call.name.is_empty(), "{:?}", call.name);
    assert!(call.name.len() <= limits::TOOL_NAME_CHARS);
    let read = serde_json::from_str::<IgnoredAny>(&call.arguments);
    let is_half = !call.arguments.trim().is_empty() && read.is_err_and(|error| error.is_eof());
    assert!(is_done || !is_half, "half a call: {}", call.arguments);
}

/// Thoughts are the same however their text is cut.
fn check_thoughts(text: &str) {
    if text.len() - text.trim_start().len() >= limits::LEADING_BLANKS {
        return;
    }
    let mut due = None;
    for pieces in cuts::text_ways(text) {
        let (mut said, mut thought) = (String::new(), String::new());
        let mut filter = ThinkFilter::default();
        let mut take = |piece: ThinkPiece<'_>| match piece {
            ThinkPiece::Said(text) => said.push_str(text),
            ThinkPiece::Thought(text) => thought.push_str(text),
        };
        for piece in &pieces {
            filter.feed(piece, &mut take);
        }
        filter.finish(&mut take);
        let found = (said, thought, filter.has_thought());
        let due = due.get_or_insert_with(|| found.clone());
        assert_eq!(found, *due, "cut into {} pieces", pieces.len());
    }
}
