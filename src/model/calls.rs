//! Puts the calls of a reply together from their pieces.
//!
//! Endpoints number their calls in many ways: by index, by id, not at all, all
//! the same. [`CallAssembler::slot`] is where that is made right.

use serde::de::IgnoredAny;

use crate::bounded;
use crate::limits;
use crate::model::invalid_response::InvalidResponse;
use crate::model::wire::{CallDelta, LooseValue};
use crate::tool::ToolCall;

/// The calls of one reply, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct CallAssembler {
    /// What ids of our own count from.
    first_number: usize,
    slots: Vec<CallSlot>,
    /// Bytes of arguments that have come for all of them.
    arguments_bytes: usize,
    /// Values that have come with them to be echoed.
    extra_values: usize,
}

/// A call of which pieces have come.
#[derive(Debug, Default)]
struct CallSlot {
    index: Option<u64>,
    call: ToolCall,
    depth: JsonDepth,
}

impl CallAssembler {
    /// Ids that are missing will be made from this number on: some endpoints
    /// want them unique in the whole conversation.
    pub(super) fn numbered_from(first_number: usize) -> CallAssembler {
        CallAssembler { first_number, ..CallAssembler::default() }
    }

    /// Takes a piece of a call: the one at `position` in a list of `together`.
    pub(super) fn take(
        &mut self,
        delta: &CallDelta<'_>,
        position: usize,
        together: usize,
    ) -> Result<(), InvalidResponse> {
        let (id, name) = (delta.id.identifier(), delta.function.name.text());
        let index = delta.index.number();
        let arguments = delta.function.arguments.json_text();
        let slot = match self.slot(&id, index, &name, &arguments, (position, together)) {
            Some(slot) => slot,
            None if self.slots.len() >= limits::CALLS_ANSWERED => {
                return Err(InvalidResponse::TooMany("calls"));
            }
            None => {
                self.slots.push(CallSlot { index, ..CallSlot::default() });
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
        if let LooseValue::Other(extra) = &delta.extra_content {
            self.extra_values += bounded::count(extra);
            if self.extra_values > limits::JSON_VALUES {
                return Err(InvalidResponse::TooMany("values"));
            }
            slot.call.opaque.insert("extra_content".into(), extra.clone());
        }
        self.arguments_bytes += arguments.len();
        if self.arguments_bytes > limits::ALL_ARGUMENTS_BYTES {
            return Err(InvalidResponse::TooLarge("arguments"));
        }
        slot.extend(&arguments)
    }

    /// The slot that a piece of a call belongs to; `None`: a new one.
    fn slot(
        &self,
        id: &str,
        index: Option<u64>,
        name: &str,
        arguments: &str,
        (position, together): (usize, usize),
    ) -> Option<usize> {
        // The same id under another index, or twice in one list, is another call.
        // So is a whole call behind a whole one: an id that is only the tool's name.
        let is_another = |slot: &CallSlot| {
            !name.is_empty()
                && slot.depth.is_complete()
                && slot.call.arguments != arguments
                && !arguments.starts_with(&slot.call.arguments)
                && JsonDepth::of(arguments).is_complete()
        };
        let is_known = |(at, slot): (usize, &CallSlot)| {
            let same_index = index.is_none() || slot.index.is_none() || slot.index == index;
            let same_place = index.is_some() || together == 1 || at == position;
            slot.call.id == id && same_index && same_place && !is_another(slot)
        };
        if !id.is_empty()
            && let Some(known) = self.slots.iter().enumerate().position(is_known)
        {
            return Some(known);
        }
        let begins_another = |slot: &CallSlot| {
            let other_id = !id.is_empty() && !slot.call.id.is_empty() && slot.call.id != id;
            let has_names = !name.is_empty() && !slot.call.name.is_empty();
            let is_over = slot.depth.is_complete()
                || (slot.call.arguments.trim().is_empty() && slot.call.name != name);
            other_id || (has_names && is_over)
        };
        let candidate = match index {
            Some(index) => self.slots.iter().rposition(|slot| slot.index == Some(index)),
            // Without an index the list's order tells, where it has several; else the last one goes on.
            None if together > 1 && position < self.slots.len() => Some(position),
            None if together > 1 => None,
            None => self.slots.len().checked_sub(1),
        }?;
        (!begins_another(&self.slots[candidate])).then_some(candidate)
    }

    /// Whether a call has arguments that are not all there.
    pub(super) fn has_half(&self) -> bool {
        let is_half =
            |slot: &CallSlot| !slot.call.arguments.trim().is_empty() && !slot.depth.is_complete();
        self.slots.iter().any(is_half)
    }

    /// The calls, each with a name and an id that can be sent back.
    pub(super) fn finish(self) -> Result<Vec<ToolCall>, InvalidResponse> {
        let first_number = self.first_number;
        let calls = self.slots.into_iter().map(|slot| slot.call);
        let calls = calls.flat_map(split_glued);
        let mut calls: Vec<ToolCall> = calls.take(limits::CALLS_ANSWERED + 1).collect();
        if calls.len() > limits::CALLS_ANSWERED {
            return Err(InvalidResponse::TooMany("calls"));
        }
        calls.retain(|call| !call.name.is_empty() || !call.arguments.is_empty());
        for call in &mut calls {
            call.name = sendable_name(&call.name);
        }
        complete_ids(&mut calls, first_number);
        Ok(calls)
    }
}

impl CallSlot {
    fn extend(&mut self, piece: &str) -> Result<(), InvalidResponse> {
        let held = &mut self.call.arguments;
        // Some endpoints send everything so far again with each piece.
        let repeats =
            !held.is_empty() && piece.len() > held.len() && piece.starts_with(held.as_str());
        let restarts = self.depth.is_complete() && piece.trim_start().starts_with('{');
        if repeats || restarts {
            held.clear();
            self.depth = JsonDepth::default();
        }
        if held.len() + piece.len() > limits::ARGUMENTS_BYTES {
            return Err(InvalidResponse::TooLarge("call's arguments"));
        }
        held.push_str(piece);
        self.depth.take(piece);
        Ok(())
    }
}

/// Follows brackets and strings, so that it is known at once whether a piece
/// ended a JSON object, without parsing everything again.
#[derive(Debug, Default)]
struct JsonDepth {
    open: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl JsonDepth {
    fn of(text: &str) -> JsonDepth {
        let mut depth = JsonDepth::default();
        depth.take(text);
        depth
    }

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

/// The last resort where several calls came as one: each object among the
/// arguments is a call of its own. Everything else stays as it is, but for
/// one level of wrapping, which no endpoint takes back.
fn split_glued(mut call: ToolCall) -> Vec<ToolCall> {
    let Some(mut values) = json_values(&call.arguments) else {
        return vec![call];
    };
    if values.len() > 1 && values.iter().all(|value| value.starts_with('{')) {
        // The same again is the same call.
        values.dedup();
        let other = |arguments: &&str| ToolCall {
            name: call.name.clone(),
            arguments: (*arguments).into(),
            ..ToolCall::default()
        };
        let mut calls: Vec<ToolCall> = values.iter().map(other).collect();
        calls[0].id = call.id;
        calls[0].opaque = call.opaque;
        return calls;
    }
    if values == ["null"] {
        call.arguments.clear();
    } else if let Some(inner) = unwrapped(&values) {
        call.arguments = inner;
    }
    vec![call]
}

/// The texts of the JSON values that stand one after the other; `None` if
/// anything else does, or there are more than any reply may have.
fn json_values(text: &str) -> Option<Vec<&str>> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let (mut values, mut start) = (Vec::new(), 0);
    while let Some(value) = stream.next() {
        value.ok()?;
        values.push(text[start..stream.byte_offset()].trim());
        start = stream.byte_offset();
        if values.len() > limits::CALLS_ANSWERED {
            return None;
        }
    }
    Some(values)
}

/// What a text that is the only value holds, if that is an object or nothing.
fn unwrapped(values: &[&str]) -> Option<String> {
    let [value] = values else { return None };
    let inner: String = serde_json::from_str(value).ok()?;
    let is_object = match json_values(&inner)?.as_slice() {
        [] => true,
        [object] => object.starts_with('{'),
        _ => false,
    };
    is_object.then_some(inner)
}

/// A tool's name as every endpoint takes it back: letters, digits, `_` and `-`.
/// What some models append after `<|` is not part of it.
fn sendable_name(name: &str) -> String {
    let name = name.split("<|").next().unwrap_or_default().trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '-' });
    let plain: String = plain.take(limits::TOOL_NAME_CHARS).collect();
    if plain.is_empty() { "unnamed".into() } else { plain }
}

/// Gives calls without an id one of nine letters and digits, which every
/// dialect takes, and tells calls with the same id apart.
fn complete_ids(calls: &mut [ToolCall], first_number: usize) {
    for index in 0..calls.len() {
        let (before, rest) = calls.split_at_mut(index);
        let call = &mut rest[0];
        if call.id.is_empty() || before.iter().any(|other| other.id == call.id) {
            let mut number = first_number + index;
            loop {
                call.id = format!("call{number:05}");
                if !before.iter().any(|other| other.id == call.id) {
                    break;
                }
                number += limits::CALLS_ANSWERED;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn calls(deltas: &[&str]) -> Vec<(String, String, String)> {
        let mut calls = CallAssembler::default();
        for deltas in deltas {
            let deltas: Vec<CallDelta<'_>> = serde_json::from_str(deltas).unwrap();
            for (position, delta) in deltas.iter().enumerate() {
                calls.take(delta, position, deltas.len()).unwrap();
            }
        }
        let calls = calls.finish().unwrap().into_iter();
        calls.map(|call| (call.id, call.name, call.arguments)).collect()
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
    fn calls_that_came_as_one_are_parted() {
        let one = |arguments: &str| {
            let arguments = serde_json::to_string(arguments).unwrap();
            let delta =
                format!(r#"[{{"id":"a","function":{{"name":"f","arguments":{arguments}}}}}]"#);
            let calls = calls(&[&delta]).into_iter().map(|(_, _, arguments)| arguments);
            calls.collect::<Vec<String>>()
        };
        let table: &[(&str, &[&str])] = &[
            (r#"{"x":1}{"x":2}"#, &[r#"{"x":1}"#, r#"{"x":2}"#]),
            (r#"{"x":1} {"x":1}"#, &[r#"{"x":1}"#]),
            (r#"{"x":"}{"}"#, &[r#"{"x":"}{"}"#]),
            (r#"{"x":1}{"x"#, &[r#"{"x":1}{"x"#]),
            (r#"{"x":1}2"#, &[r#"{"x":1}2"#]),
            (r#""{\"x\":1}""#, &[r#"{"x":1}"#]),
            (r#""x""#, &[r#""x""#]),
            ("null", &[""]),
        ];
        for (arguments, expected) in table {
            assert_eq!(one(arguments), *expected, "{arguments}");
        }
    }

    #[test]
    fn calls_without_ids_get_some_and_are_told_apart() {
        let made = calls(&[
            r#"[{"index":0,"function":{"name":"f","arguments":"{}"}}]"#,
            r#"[{"index":0,"function":{"name":"g","arguments":"{}"}}]"#,
        ]);
        assert_eq!(made, [call("call00000", "f", "{}"), call("call00001", "g", "{}")]);
    }

    #[test]
    fn made_up_ids_count_on_in_the_next_turn() {
        let mut calls = CallAssembler::numbered_from(4);
        let deltas = r#"[{"function":{"name":"f"}},{"function":{"name":"g"}}]"#;
        let deltas: Vec<CallDelta<'_>> = serde_json::from_str(deltas).unwrap();
        for (position, delta) in deltas.iter().enumerate() {
            calls.take(delta, position, deltas.len()).unwrap();
        }
        let ids: Vec<String> = calls.finish().unwrap().into_iter().map(|call| call.id).collect();
        assert_eq!(ids, ["call00004", "call00005"]);
    }

    #[test]
    fn more_calls_than_are_answered_are_refused() {
        let glued = |number: usize| {
            let mut calls = CallAssembler::default();
            let arguments = (0..number).map(|n| json!({ "x": n }).to_string());
            let delta =
                json!({"function": {"name": "f", "arguments": arguments.collect::<String>()}});
            let delta = delta.to_string();
            calls.take(&serde_json::from_str(&delta).unwrap(), 0, 1).unwrap();
            let one = json!({"index": 1, "id": "b", "function": {"name": "f"}}).to_string();
            calls.take(&serde_json::from_str(&one).unwrap(), 0, 1).unwrap();
            calls.finish().map(|calls| calls.len())
        };
        let most = limits::CALLS_ANSWERED;
        assert_eq!(glued(most - 1).unwrap(), most);
        assert!(matches!(glued(most), Err(InvalidResponse::TooMany("calls"))));
    }

    #[test]
    fn calls_with_the_same_id_stay_apart() {
        let f = r#""id":"a","function":{"name":"f","arguments":"{}"}"#;
        let g = r#""id":"a","function":{"name":"g","arguments":"{}"}"#;
        let expected = [call("a", "f", "{}"), call("call00001", "g", "{}")];
        let by_index = [format!(r#"[{{"index":0,{f}}}]"#), format!(r#"[{{"index":1,{g}}}]"#)];
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
        assert_eq!(sendable_name(&"x".repeat(5000)).len(), limits::TOOL_NAME_CHARS);
    }
}
