//! Assembles the tool calls of a reply from their pieces.
//!
//! Endpoints number tool calls by index, by id, not at all, or all the same.
//! [`CallAssembler::find_slot`] decides which call a piece belongs to.

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::invalid_response::InvalidResponse;
use crate::wire::{CallDelta, CallDeltas};
use base::bounded;
use base::limits;
use base::tool::ToolCall;

/// The tool calls of one reply, in the order in which they started.
#[derive(Debug, Default)]
pub(super) struct CallAssembler {
    /// The number of the first generated id.
    first_id_number: usize,
    slots: Vec<CallSlot>,
    /// Bytes of arguments received for all calls.
    arguments_bytes: usize,
    /// Size of the fields received that are sent back.
    extra_size: KeptSize,
}

/// Size of values that are kept to be sent back: all pieces of a reply together are limited.
#[derive(Debug, Default)]
pub(super) struct KeptSize {
    bytes: usize,
    values: usize,
}

impl KeptSize {
    /// Adds values, unless there are too many.
    pub(super) fn add(&mut self, values: &[Value]) -> Result<(), InvalidResponse> {
        for value in values {
            self.bytes += value.to_string().len();
            self.values += bounded::count_values(value);
        }
        if self.bytes > limits::MESSAGE_BYTES {
            return Err(InvalidResponse::TooLarge("reasoning"));
        }
        if self.values > limits::JSON_VALUES {
            return Err(InvalidResponse::TooMany("values"));
        }
        Ok(())
    }
}

/// A tool call in progress.
#[derive(Debug, Default)]
struct CallSlot {
    index: Option<u64>,
    call: ToolCall,
    progress: JsonProgress,
}

impl CallAssembler {
    /// Creates an assembler whose generated ids count from this number: some endpoints require
    /// ids to be unique in the whole conversation.
    pub(super) fn numbered_from(first_id_number: usize) -> CallAssembler {
        CallAssembler { first_id_number, ..CallAssembler::default() }
    }

    /// Adds the pieces of calls in one event.
    pub(super) fn add_deltas(&mut self, deltas: &CallDeltas) -> Result<(), InvalidResponse> {
        if deltas.is_truncated {
            return Err(InvalidResponse::TooMany("calls"));
        }
        for (position, delta) in deltas.items.iter().enumerate() {
            self.add_delta(delta, position, deltas.items.len())?;
        }
        Ok(())
    }

    /// Adds a piece of a call: the one at `position` in a list of `count` pieces.
    fn add_delta(
        &mut self,
        delta: &CallDelta,
        position: usize,
        count: usize,
    ) -> Result<(), InvalidResponse> {
        let (id, name) = (delta.id.identifier(), delta.function.name.text());
        let index = delta.index.number();
        let arguments = delta.function.arguments.json_text();
        let slot = match self.find_slot(&id, index, &name, &arguments, (position, count)) {
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
        if let Some(extra) = delta.extra_content.kept() {
            self.extra_size.add(std::slice::from_ref(extra))?;
            slot.call.opaque.insert("extra_content".into(), extra.clone());
        }
        self.arguments_bytes += arguments.len();
        if self.arguments_bytes > limits::ALL_ARGUMENTS_BYTES {
            return Err(InvalidResponse::TooLarge("arguments"));
        }
        slot.append_arguments(&arguments)
    }

    /// The slot that a piece belongs to, or `None` if it starts a new call.
    fn find_slot(
        &self,
        id: &str,
        index: Option<u64>,
        name: &str,
        arguments: &str,
        (position, count): (usize, usize),
    ) -> Option<usize> {
        // The same id under another index, or twice in one list, is another call. So is a
        // complete call after a complete one: some endpoints send the tool's name as the id.
        let is_other_call = |slot: &CallSlot| {
            !name.is_empty()
                && slot.progress.is_complete()
                && slot.call.arguments != arguments
                && !arguments.starts_with(&slot.call.arguments)
                && JsonProgress::from_text(arguments).is_complete()
        };
        let is_match = |(at, slot): (usize, &CallSlot)| {
            let same_index = index.is_none() || slot.index.is_none() || slot.index == index;
            let same_position = index.is_some() || count == 1 || at == position;
            slot.call.id == id && same_index && same_position && !is_other_call(slot)
        };
        if !id.is_empty()
            && let Some(slot) = self.slots.iter().enumerate().position(is_match)
        {
            return Some(slot);
        }
        let starts_new_call = |slot: &CallSlot| {
            let other_id = !id.is_empty() && !slot.call.id.is_empty() && slot.call.id != id;
            let has_names = !name.is_empty() && !slot.call.name.is_empty();
            let is_finished = slot.progress.is_complete()
                || (slot.call.arguments.trim().is_empty() && slot.call.name != name);
            other_id || (has_names && is_finished)
        };
        let candidate = match index {
            Some(index) => self.slots.iter().rposition(|slot| slot.index == Some(index)),
            // Without an index, the position in a list of several decides; a single piece
            // continues the last call.
            None if count > 1 && position < self.slots.len() => Some(position),
            None if count > 1 => None,
            None => self.slots.len().checked_sub(1),
        }?;
        (!starts_new_call(&self.slots[candidate])).then_some(candidate)
    }

    /// Whether a call has incomplete arguments.
    pub(super) fn has_incomplete_call(&self) -> bool {
        let is_incomplete = |slot: &CallSlot| {
            !slot.call.arguments.trim().is_empty() && !slot.progress.is_complete()
        };
        self.slots.iter().any(is_incomplete)
    }

    /// The calls, each with a name and an id that can be sent back.
    pub(super) fn finish(self) -> Result<Vec<ToolCall>, InvalidResponse> {
        let first_id_number = self.first_id_number;
        let calls = self.slots.into_iter().map(|slot| slot.call);
        let calls = calls.flat_map(split_joined_objects);
        let mut calls: Vec<ToolCall> = calls.take(limits::CALLS_ANSWERED + 1).collect();
        if calls.len() > limits::CALLS_ANSWERED {
            return Err(InvalidResponse::TooMany("calls"));
        }
        calls.retain(|call| !call.name.is_empty() || !call.arguments.is_empty());
        for call in &mut calls {
            call.name = sendable_name(&call.name);
        }
        assign_missing_ids(&mut calls, first_id_number);
        Ok(calls)
    }
}

impl CallSlot {
    fn append_arguments(&mut self, piece: &str) -> Result<(), InvalidResponse> {
        let arguments = &mut self.call.arguments;
        // Some endpoints send everything so far again with each piece.
        let repeats = !arguments.is_empty()
            && piece.len() > arguments.len()
            && piece.starts_with(arguments.as_str());
        let restarts = self.progress.is_complete() && piece.trim_start().starts_with('{');
        if repeats || restarts {
            arguments.clear();
            self.progress = JsonProgress::default();
        }
        if arguments.len() + piece.len() > limits::ARGUMENTS_BYTES {
            return Err(InvalidResponse::TooLarge("call's arguments"));
        }
        arguments.push_str(piece);
        self.progress.feed(piece);
        Ok(())
    }
}

/// Counts brackets and strings, to detect the end of a JSON object without parsing all of it
/// again for each piece.
#[derive(Debug, Default)]
struct JsonProgress {
    open_brackets: usize,
    is_in_string: bool,
    is_escaped: bool,
    has_started: bool,
}

impl JsonProgress {
    fn from_text(text: &str) -> JsonProgress {
        let mut progress = JsonProgress::default();
        progress.feed(text);
        progress
    }

    fn feed(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_in_string => self.is_escaped = true,
                b'"' => self.is_in_string = !self.is_in_string,
                _ if self.is_in_string => {}
                b'{' | b'[' => {
                    self.open_brackets += 1;
                    self.has_started = true;
                }
                b'}' | b']' => self.open_brackets = self.open_brackets.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.has_started && self.open_brackets == 0 && !self.is_in_string
    }
}

/// Splits calls that an endpoint joined: each of several objects among the arguments becomes a
/// call. Other arguments stay unchanged, except that a JSON string around an object is removed,
/// since endpoints do not accept it back.
fn split_joined_objects(mut call: ToolCall) -> Vec<ToolCall> {
    let Some(mut values) = json_values(&call.arguments) else {
        return vec![call];
    };
    if values.len() > 1 && values.iter().all(|value| value.starts_with('{')) {
        // A repeated object is the same call.
        values.dedup();
        let new_call = |arguments: &&str| ToolCall {
            name: call.name.clone(),
            arguments: (*arguments).into(),
            ..ToolCall::default()
        };
        let mut calls: Vec<ToolCall> = values.iter().map(new_call).collect();
        calls[0].id = call.id;
        calls[0].opaque = call.opaque;
        return calls;
    }
    if values == ["null"] {
        call.arguments.clear();
    } else if let Some(inner) = unwrap_json_string(&values) {
        call.arguments = inner;
    }
    vec![call]
}

/// The texts of consecutive JSON values; `None` if there is any other text, or there are more
/// values than allowed calls.
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

/// The content of a single JSON string, if that is an object or empty.
fn unwrap_json_string(values: &[&str]) -> Option<String> {
    let [value] = values else { return None };
    let inner: String = serde_json::from_str(value).ok()?;
    let is_object = match json_values(&inner)?.as_slice() {
        [] => true,
        [object] => object.starts_with('{'),
        _ => false,
    };
    is_object.then_some(inner)
}

/// The tool's name in a form that every endpoint accepts back: letters, digits, `_` and `-`.
/// Text from `<` on, which some models append, is removed.
fn sendable_name(name: &str) -> String {
    let name = name.split('<').next().unwrap_or_default().trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '-' });
    let plain: String = plain.take(limits::TOOL_NAME_CHARS).collect();
    if plain.is_empty() { "unnamed".into() } else { plain }
}

/// Gives calls without an id, or with an id used before, one of nine letters and digits, which
/// every endpoint accepts.
fn assign_missing_ids(calls: &mut [ToolCall], first_id_number: usize) {
    for index in 0..calls.len() {
        let is_used = |id: &str, calls: &[ToolCall]| calls.iter().any(|call| call.id == id);
        let id = &calls[index].id;
        if id.is_empty() || is_used(id, &calls[..index]) {
            let generated = (first_id_number + index..).map(|number| format!("call{number:05}"));
            if let Some(id) = generated.into_iter().find(|id| !is_used(id, calls)) {
                calls[index].id = id;
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
            let deltas: Vec<CallDelta> = serde_json::from_str(deltas).unwrap();
            for (position, delta) in deltas.iter().enumerate() {
                calls.add_delta(delta, position, deltas.len()).unwrap();
            }
        }
        let calls = calls.finish().unwrap().into_iter();
        calls.map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn assigns_pieces_to_calls_in_every_numbering() {
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
    fn joined_calls_are_split() {
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
    fn calls_without_ids_get_unique_ids() {
        let assigned = calls(&[
            r#"[{"index":0,"function":{"name":"f","arguments":"{}"}}]"#,
            r#"[{"index":0,"function":{"name":"g","arguments":"{}"}}]"#,
        ]);
        assert_eq!(assigned, [call("call00000", "f", "{}"), call("call00001", "g", "{}")]);
    }

    #[test]
    fn generated_ids_continue_in_the_next_turn() {
        let mut calls = CallAssembler::numbered_from(4);
        let deltas = r#"[{"function":{"name":"f"}},{"function":{"name":"g"}}]"#;
        let deltas: Vec<CallDelta> = serde_json::from_str(deltas).unwrap();
        for (position, delta) in deltas.iter().enumerate() {
            calls.add_delta(delta, position, deltas.len()).unwrap();
        }
        let ids: Vec<String> = calls.finish().unwrap().into_iter().map(|call| call.id).collect();
        assert_eq!(ids, ["call00004", "call00005"]);
    }

    #[test]
    fn too_many_calls_are_refused() {
        let split_count = |number: usize| {
            let mut calls = CallAssembler::default();
            let arguments = (0..number).map(|n| json!({ "x": n }).to_string());
            let delta =
                json!({"function": {"name": "f", "arguments": arguments.collect::<String>()}});
            let delta = delta.to_string();
            calls.add_delta(&serde_json::from_str(&delta).unwrap(), 0, 1).unwrap();
            let one = json!({"index": 1, "id": "b", "function": {"name": "f"}}).to_string();
            calls.add_delta(&serde_json::from_str(&one).unwrap(), 0, 1).unwrap();
            calls.finish().map(|calls| calls.len())
        };
        let most = limits::CALLS_ANSWERED;
        assert_eq!(split_count(most - 1).unwrap(), most);
        assert!(matches!(split_count(most), Err(InvalidResponse::TooMany("calls"))));
    }

    #[test]
    fn calls_with_the_same_id_stay_separate() {
        let f = r#""id":"a","function":{"name":"f","arguments":"{}"}"#;
        let g = r#""id":"a","function":{"name":"g","arguments":"{}"}"#;
        let expected = [call("a", "f", "{}"), call("call00001", "g", "{}")];
        let by_index = [format!(r#"[{{"index":0,{f}}}]"#), format!(r#"[{{"index":1,{g}}}]"#)];
        assert_eq!(calls(&[&by_index[0], &by_index[1]]), expected);
        assert_eq!(calls(&[&format!("[{{{f}}},{{{g}}}]")]), expected);
    }

    #[test]
    fn names_are_made_sendable() {
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
