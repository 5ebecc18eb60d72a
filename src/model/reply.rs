//! Puts a reply together from its pieces.
//!
//! A whole reply and a stream go the same way: each JSON value is a piece.
//! Endpoints number their calls in many ways (by index, by id, not at all, all
//! the same); [`Assembler::slot`] is where that is made right. A call that may
//! be unfinished never leaves here.

use serde_json::Value;

use crate::error::Error;
use crate::event::{Event, Listener};
use crate::limits;
use crate::message::Assistant;
use crate::model::think::{Piece, ThinkFilter};
use crate::model::wire::{CallDelta, Chunk, Delta, Loose};
use crate::model::{Finish, Reply};
use crate::tool::{ToolCall, Usage};

/// Why a reply is no reply.
#[derive(Debug)]
pub enum Fault {
    /// An error object stands where the reply should be.
    Refused(Value),
    /// It is larger than the named bound.
    TooLarge(&'static str),
    /// It is not what chat completions look like: the reason, in words.
    Malformed(String),
}

impl From<super::sse::TooLarge> for Fault {
    fn from(_: super::sse::TooLarge) -> Fault {
        Fault::TooLarge("event")
    }
}

/// A call of which pieces have come.
#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    call: ToolCall,
    depth: Depth,
}

/// One reply in the making.
#[derive(Debug, Default)]
pub struct Assembler {
    content: String,
    reasoning: String,
    /// The field in which reasoning came: some endpoints want it back under that name.
    reasoning_field: Option<&'static str>,
    think: ThinkFilter,
    slots: Vec<Slot>,
    finish: Option<String>,
    usage: Option<Usage>,
    done: bool,
    told: bool,
    /// Whether anything that looks like a piece of a reply has come.
    begun: bool,
}

impl Assembler {
    /// Whether the person has seen a piece of the answer.
    pub fn has_told(&self) -> bool {
        self.told
    }

    /// Whether any piece of a reply has come, if only an empty one.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether the end marker of a stream has come.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Takes the data of one event, or a whole body.
    pub fn take(&mut self, data: &[u8], listener: &mut Listener<'_>) -> Result<(), Fault> {
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        // Comments that a gateway has wrapped once more.
        if data.is_empty() || data.starts_with(b":") {
            return Ok(());
        }
        // Several values in one event come from gateways that glue frames.
        for chunk in serde_json::Deserializer::from_slice(data).into_iter::<Chunk<'_>>() {
            let chunk = chunk.map_err(|error| Fault::Malformed(format!("{error}")))?;
            self.take_chunk(chunk, listener)?;
        }
        Ok(())
    }

    fn take_chunk(&mut self, chunk: Chunk<'_>, listener: &mut Listener<'_>) -> Result<(), Fault> {
        if !chunk.error.is_null() || chunk.object.text() == "error" {
            let message = chunk.message.into_value();
            let error = chunk.error.into_value();
            return Err(Fault::Refused(if error.is_null() {
                message
            } else {
                error
            }));
        }
        self.usage = chunk.usage.usage().or(self.usage);
        // One answer was asked for; more choices than one are not looked at.
        let Some(choice) = chunk.choices.into_iter().next() else {
            return Ok(());
        };
        self.begun = true;
        self.usage = choice.usage.usage().or(self.usage);
        self.take_delta(&choice.delta, listener)?;
        self.take_delta(&choice.message, listener)?;
        let finish = choice.finish_reason.text();
        if !finish.is_empty() {
            // What says that something is missing stays said.
            if !self
                .finish
                .as_deref()
                .is_some_and(|known| judge(known) != Finish::Complete)
            {
                self.finish = Some(finish.into_owned());
            }
        }
        Ok(())
    }

    fn take_delta(&mut self, delta: &Delta<'_>, listener: &mut Listener<'_>) -> Result<(), Fault> {
        self.take_reasoning("reasoning_content", &delta.reasoning_content, listener)?;
        self.take_reasoning("reasoning", &delta.reasoning, listener)?;
        for text in [delta.content.text(), delta.refusal.text()] {
            if !text.is_empty() {
                let mut think = std::mem::take(&mut self.think);
                let mut size = Ok(());
                think.feed(&text, &mut |piece| size = self.take_piece(&piece, listener));
                self.think = think;
                size?;
            }
        }
        for (position, call) in delta.tool_calls.iter().enumerate() {
            self.take_call(call, position, delta.tool_calls.len())?;
        }
        Ok(())
    }

    fn take_reasoning(
        &mut self,
        field: &'static str,
        text: &Loose<'_>,
        listener: &mut Listener<'_>,
    ) -> Result<(), Fault> {
        let text = text.text();
        // Some send the same thought under two names: the first one counts.
        if text.is_empty() || self.reasoning_field.is_some_and(|known| known != field) {
            return Ok(());
        }
        self.reasoning_field = Some(field);
        grow(&mut self.reasoning, &text)?;
        listener(Event::Reasoning(&text));
        Ok(())
    }

    fn take_piece(&mut self, piece: &Piece<'_>, listener: &mut Listener<'_>) -> Result<(), Fault> {
        match piece {
            Piece::Said(text) => {
                grow(&mut self.content, text)?;
                self.told = true;
                listener(Event::Text(text));
            }
            Piece::Thought(text) => listener(Event::Reasoning(text)),
        }
        Ok(())
    }

    fn take_call(
        &mut self,
        delta: &CallDelta<'_>,
        position: usize,
        together: usize,
    ) -> Result<(), Fault> {
        let (id, name) = (delta.id.identifier(), delta.function.name.text());
        let index = delta.index.number();
        let slot = match self.slot(&id, index, &name, position, together) {
            Some(slot) => slot,
            None if self.slots.len() >= limits::CALLS => {
                return Err(Fault::TooLarge("number of calls"));
            }
            None => {
                self.slots.push(Slot {
                    index,
                    ..Slot::default()
                });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[slot];
        if slot.call.id.is_empty() {
            slot.call.id = id.into_owned();
        }
        if slot.call.name.is_empty() {
            slot.call.name = name.into_owned();
        }
        if let Some(extra) = &delta.extra_content {
            slot.call
                .opaque
                .insert("extra_content".into(), extra.clone());
        }
        slot.extend(&delta.function.arguments.json_text())
    }

    /// The slot that a piece of a call belongs to; `None`: a new one.
    fn slot(
        &self,
        id: &str,
        index: Option<u64>,
        name: &str,
        position: usize,
        together: usize,
    ) -> Option<usize> {
        // The same id under another index, or twice in one list, is another call.
        let is_known = |(at, slot): (usize, &Slot)| {
            let same_index = index.is_none() || slot.index.is_none() || slot.index == index;
            let same_place = index.is_some() || together == 1 || at == position;
            slot.call.id == id && same_index && same_place
        };
        if !id.is_empty()
            && let Some(known) = self.slots.iter().enumerate().position(is_known)
        {
            return Some(known);
        }
        let begins_another = |slot: &Slot| {
            let other_id = !id.is_empty() && !slot.call.id.is_empty() && slot.call.id != id;
            let other_name =
                !name.is_empty() && !slot.call.name.is_empty() && slot.depth.is_complete();
            other_id || other_name
        };
        let candidate = match index {
            Some(index) => self
                .slots
                .iter()
                .rposition(|slot| slot.index == Some(index)),
            // Without an index the list's order tells, where it has several; else the last one goes on.
            None if together > 1 && position < self.slots.len() => Some(position),
            None if together > 1 => None,
            None => self.slots.len().checked_sub(1),
        }?;
        (!begins_another(&self.slots[candidate])).then_some(candidate)
    }

    /// The end of the bytes: what the pieces make together. `Finish::Cut` when
    /// nothing says that the reply is whole.
    pub fn finish(mut self, listener: &mut Listener<'_>) -> Result<Reply, Fault> {
        let mut think = std::mem::take(&mut self.think);
        let mut size = Ok(());
        think.finish(&mut |piece| size = self.take_piece(&piece, listener));
        size?;
        let is_half =
            |slot: &Slot| !slot.call.arguments.trim().is_empty() && !slot.depth.is_complete();
        let finish = match self.finish.as_deref() {
            None if !self.done => Finish::Cut,
            // A connection that breaks after the reason looks like an end.
            Some(_) if !self.done && self.slots.iter().any(is_half) => Finish::Cut,
            reason => reason.map_or(Finish::Complete, judge),
        };
        let mut message = Assistant {
            content: self.content,
            ..Assistant::default()
        };
        if finish == Finish::Complete {
            message.calls = self.slots.into_iter().map(|slot| slot.call).collect();
            message
                .calls
                .retain(|call| !call.name.is_empty() || !call.arguments.is_empty());
            for call in &mut message.calls {
                call.name = sendable_name(&call.name);
            }
            complete_ids(&mut message.calls);
            if let (Some(field), false) = (self.reasoning_field, message.calls.is_empty()) {
                message.opaque.insert(field.into(), self.reasoning.into());
            }
        }
        Ok(Reply {
            message,
            finish,
            cause: None,
            usage: self.usage,
        })
    }

    /// A whole reply that came without a stream has no end marker: the JSON
    /// value's own end is one.
    pub fn mark_whole(&mut self) {
        self.done = true;
    }
}

/// What a finish reason means. Unknown ones are taken for an end, but for those
/// that say otherwise.
fn judge(reason: &str) -> Finish {
    let reason = reason.to_ascii_lowercase();
    let says_otherwise = |word: &&str| reason.contains(*word);
    match reason.as_str() {
        "length" | "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "content_filter" => Finish::Filtered,
        _ if ["error", "abort", "cancel", "insufficient"]
            .iter()
            .any(says_otherwise) =>
        {
            Finish::Cut
        }
        _ => Finish::Complete,
    }
}

/// A tool's name as every endpoint takes it back: letters, digits, `_` and `-`.
/// What some models append after `<|` is not part of it.
fn sendable_name(name: &str) -> String {
    let name = name.split("<|").next().unwrap_or_default().trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '-' });
    let plain: String = plain.take(limits::TOOL_NAME_CHARS).collect();
    if plain.is_empty() {
        "unnamed".into()
    } else {
        plain
    }
}

fn grow(text: &mut String, piece: &str) -> Result<(), Fault> {
    if text.len() + piece.len() > limits::MESSAGE_BYTES {
        return Err(Fault::TooLarge("message"));
    }
    text.push_str(piece);
    Ok(())
}

/// Gives calls without an id one of nine letters and digits, which every
/// dialect takes, and tells calls with the same id apart.
fn complete_ids(calls: &mut [ToolCall]) {
    for index in 0..calls.len() {
        let (before, rest) = calls.split_at_mut(index);
        let call = &mut rest[0];
        if call.id.is_empty() || before.iter().any(|other| other.id == call.id) {
            let mut number = index;
            loop {
                call.id = format!("call{number:05}");
                if !before.iter().any(|other| other.id == call.id) {
                    break;
                }
                number += limits::CALLS;
            }
        }
    }
}

impl Slot {
    fn extend(&mut self, piece: &str) -> Result<(), Fault> {
        let held = &mut self.call.arguments;
        // Some endpoints send everything so far again with each piece.
        let repeats =
            !held.is_empty() && piece.len() > held.len() && piece.starts_with(held.as_str());
        let restarts = self.depth.is_complete() && piece.trim_start().starts_with('{');
        if repeats || restarts {
            held.clear();
            self.depth = Depth::default();
        }
        if held.len() + piece.len() > limits::ARGUMENTS_BYTES {
            return Err(Fault::TooLarge("call's arguments"));
        }
        held.push_str(piece);
        self.depth.take(piece);
        Ok(())
    }
}

/// Follows brackets and strings, so that it is known at once whether a piece
/// ended a JSON object, without parsing everything again.
#[derive(Debug, Default)]
struct Depth {
    open: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Depth {
    fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => {
                    self.open += 1;
                    self.begun = true;
                }
                b'}' | b']' => self.open = self.open.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.begun && self.open == 0 && !self.in_string
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        let kind = crate::error::Kind::Protocol;
        match fault {
            Fault::Refused(value) => Error::new(kind, value.to_string()),
            Fault::TooLarge(what) => Error::new(kind, format!("the reply's {what} is too large")),
            Fault::Malformed(reason) => Error::new(kind, reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assemble(chunks: &[&str]) -> Result<Reply, Fault> {
        let mut assembler = Assembler::default();
        let mut listener = |_: Event<'_>| {};
        for chunk in chunks {
            assembler.take(chunk.as_bytes(), &mut listener)?;
        }
        assembler.finish(&mut listener)
    }

    fn calls(deltas: &[&str]) -> Vec<(String, String, String)> {
        let mut chunks: Vec<String> = deltas
            .iter()
            .map(|calls| format!(r#"{{"choices":[{{"delta":{{"tool_calls":{calls}}}}}]}}"#))
            .collect();
        chunks.push("[DONE]".into());
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        let reply = assemble(&chunks).unwrap();
        reply
            .message
            .calls
            .into_iter()
            .map(|call| (call.id, call.name, call.arguments))
            .collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn pieces_of_calls_find_their_place_in_every_dialect() {
        let two = [call("a", "f", r#"{"x":1}"#), call("b", "g", "{}")];
        let table: &[(&str, &[&str])] = &[
            (
                "by index",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
                    r#"[{"index":0,"function":{"arguments":"{\"x\""}}]"#,
                    r#"[{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}]"#,
                    r#"[{"index":0,"id":"","function":{"name":"","arguments":":1}"}}]"#,
                    r#"[{"index":1,"id":null,"function":{"name":null,"arguments":"}"}}]"#,
                ],
            ),
            (
                "no index",
                &[
                    r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]"#,
                    r#"[{"function":{"arguments":"1}"}}]"#,
                    r#"[{"id":"b","function":{"name":"g","arguments":"{}"}}]"#,
                ],
            ),
            (
                "all index 0",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                    r#"[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]"#,
                ],
            ),
            (
                "in one delta",
                &[
                    r#"[{"id":"a","function":{"name":"f","arguments":{"x":1}}},{"id":"b","function":{"name":"g","arguments":"{}"}}]"#,
                ],
            ),
            (
                "sent again and again",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x"}}]"#,
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                    r#"[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]"#,
                ],
            ),
        ];
        for (dialect, deltas) in table {
            assert_eq!(calls(deltas), two, "{dialect}");
        }
    }

    #[test]
    fn calls_without_ids_get_some_and_are_told_apart() {
        let made = calls(&[
            r#"[{"index":0,"function":{"name":"f","arguments":"{}"}}]"#,
            r#"[{"index":0,"function":{"name":"g","arguments":"{}"}}]"#,
        ]);
        assert_eq!(
            made,
            [call("call00000", "f", "{}"), call("call00001", "g", "{}")]
        );
    }

    #[test]
    fn calls_with_the_same_id_stay_apart() {
        let f = r#""id":"a","function":{"name":"f","arguments":"{}"}"#;
        let g = r#""id":"a","function":{"name":"g","arguments":"{}"}"#;
        let expected = [call("a", "f", "{}"), call("call00001", "g", "{}")];
        let by_index = [
            format!(r#"[{{"index":0,{f}}}]"#),
            format!(r#"[{{"index":1,{g}}}]"#),
        ];
        assert_eq!(calls(&[&by_index[0], &by_index[1]]), expected);
        assert_eq!(calls(&[&format!("[{{{f}}},{{{g}}}]")]), expected);
    }

    #[test]
    fn names_are_made_fit_to_be_sent_back() {
        let table = [
            ("list_skills", "list_skills"),
            ("list_skills<|channel|>x", "list_skills"),
            ("list skills", "list-skills"),
            ("", "unnamed"),
        ];
        for (name, expected) in table {
            assert_eq!(sendable_name(name), expected);
        }
        assert_eq!(
            sendable_name(&"x".repeat(5000)).len(),
            limits::TOOL_NAME_CHARS
        );
    }

    #[test]
    fn only_a_finish_reason_or_the_marker_proves_the_end() {
        let text = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
        let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
        let length = r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#;
        let table: &[(&[&str], Finish)] = &[
            (&[text], Finish::Cut),
            (&[text, stop], Finish::Complete),
            (&[text, "[DONE]"], Finish::Complete),
            (&[text, length, "[DONE]"], Finish::Length),
            (&[text, length, stop, "[DONE]"], Finish::Length),
            (
                &[text, r#"{"choices":[{"finish_reason":"MAX_TOKENS"}]}"#],
                Finish::Length,
            ),
            (
                &[text, r#"{"choices":[{"finish_reason":"error"}]}"#, "[DONE]"],
                Finish::Cut,
            ),
            (
                &[text, r#"{"choices":[{"finish_reason":"eos"}]}"#],
                Finish::Complete,
            ),
        ];
        for (chunks, finish) in table {
            let reply = assemble(chunks).unwrap();
            assert_eq!(
                (reply.finish, reply.message.content.as_str()),
                (*finish, "a"),
                "{chunks:?}"
            );
        }
        let half = r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}}]}"#;
        assert!(assemble(&[half, length]).unwrap().message.calls.is_empty());
        assert!(assemble(&[half, stop]).unwrap().message.calls.is_empty());
        assert!(assemble(&[half]).unwrap().message.calls.is_empty());
    }

    #[test]
    fn errors_in_the_place_of_a_reply_are_found() {
        for body in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"error":"no"}"#,
            r#"{"object":"error","message":"no"}"#,
        ] {
            let Err(Fault::Refused(value)) = assemble(&[body]) else {
                panic!("{body}")
            };
            assert!(value.to_string().contains("no"));
        }
    }
}
