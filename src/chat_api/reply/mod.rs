//! Assembles a reply from its pieces.
//!
//! A whole reply and a stream are read in the same way: each JSON value is a piece. Tool calls
//! that may be incomplete never leave this module. `events.rs` parses the data, this file combines
//! their contents.

use std::mem::take;

use serde_json::Value;

use crate::calls::{CallAssembler, KeptSize};
use crate::cumulative::CumulativeFilter;
use crate::delta_fast_path::DeltaTemplate;
use crate::invalid_response::{InvalidResponse, error_object};
use crate::quirks::{finish_reasons, is_reasoning_field};
use crate::think_filter::{ThinkFilter, ThinkPiece, strip_unopened_reasoning};
use crate::wire::{Choice, Chunk, Delta, LooseValue};
use crate::{FinishReason, ModelReply};
use base::event::{Event, EventSink};
use base::limits;
use base::message::AssistantMessage;
use base::tool::Usage;

mod events;

/// Parts of a message.
#[derive(Clone, Copy, Debug, Default)]
struct MessageParts {
    text: bool,
    calls: bool,
    reasoning: bool,
}

/// A reply in progress.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct ReplyAssembler {
    content: String,
    reasoning: String,
    /// The field that the reasoning came in: some endpoints expect it back under that name.
    reasoning_field: Option<&'static str>,
    /// Signed reasoning (`reasoning_details`), which the endpoint expects back unchanged.
    details: Vec<Value>,
    details_size: KeptSize,
    /// A field that the endpoint expects back with the message.
    extra_content: Option<Value>,
    cumulative: CumulativeFilter,
    think: ThinkFilter,
    calls: CallAssembler,
    /// Tool calls of another choice, used if this one has none although its finish reason says
    /// so.
    other_choice_calls: CallAssembler,
    other_choice: Option<u64>,
    /// The parts that were received as deltas: a whole message after them only repeats them.
    received: MessageParts,
    has_whole_message: bool,
    /// The form of events with only text.
    template: DeltaTemplate,
    /// The index of the choice that is read.
    choice: Option<u64>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    has_end_marker: bool,
    has_emitted_text: bool,
    /// Whether any piece of a reply was received.
    has_started: bool,
    /// Whether anything but empty pieces was received since this was asked.
    has_progress: bool,
}

impl ReplyAssembler {
    /// Creates the assembler of a reply to a conversation with this number of messages.
    pub fn after_messages(messages: usize) -> ReplyAssembler {
        ReplyAssembler {
            // Each turn adds at least as many messages as it has calls.
            calls: CallAssembler::numbered_from(messages),
            other_choice_calls: CallAssembler::numbered_from(messages),
            ..ReplyAssembler::default()
        }
    }

    /// Whether a part of the answer was passed to the event sink.
    pub fn has_emitted_text(&self) -> bool {
        self.has_emitted_text
    }

    /// Whether any piece of a reply was received, even an empty one.
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    /// Whether a finish reason was received, which proves that the reply is complete.
    pub fn has_finish_reason(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// The finish reason, if it says that something else than a limit or a filter ended the reply.
    pub fn cut_reason(&self) -> Option<&str> {
        let reason = self.finish_reason.as_deref();
        reason.filter(|reason| finish_reasons::classify(reason) == FinishReason::Cut)
    }

    /// Whether text, reasoning or a piece of a call was received since the last time.
    pub fn take_progress(&mut self) -> bool {
        take(&mut self.has_progress)
    }

    /// Whether the end marker of a stream was received.
    pub fn has_end_marker(&self) -> bool {
        self.has_end_marker
    }

    fn add_chunk(&mut self, chunk: Chunk, sink: &mut EventSink<'_>) -> Result<(), InvalidResponse> {
        if chunk.error.is_meaningful() {
            return Err(error_object([("error", chunk.error)]));
        }
        let has_choices = !chunk.choices.items.is_empty();
        if !has_choices && chunk.detail.is_meaningful() {
            return Err(error_object([("detail", chunk.detail)]));
        }
        if chunk.object.text() == "error" {
            return Err(error_object([
                ("message", chunk.message),
                ("code", chunk.code),
                ("type", chunk.r#type),
            ]));
        }
        self.usage = chunk.usage.usage().or(self.usage);
        let mut choice = None;
        for candidate in chunk.choices.items {
            if choice.is_none() && self.is_selected_choice(candidate.index.number()) {
                choice = Some(candidate);
            } else {
                self.add_other_choice(&candidate)?;
            }
        }
        let Some(mut choice) = choice else {
            return Ok(());
        };
        // An error of the provider behind a gateway, which may have sent a part of the reply
        // before.
        let message = choice.message.as_mut().map(|message| take(&mut message.error));
        let errors = [Some(take(&mut choice.error)), Some(take(&mut choice.delta.error)), message];
        if let Some(error) = errors.into_iter().flatten().find(LooseValue::is_meaningful) {
            return Err(error_object([("error", error)]));
        }
        self.has_started = true;
        self.choice = self.choice.or(choice.index.number());
        self.usage = choice.usage.usage().or(self.usage);
        let delta = &choice.delta;
        let has_output = !delta.content.text().is_empty() || !delta.tool_calls.items.is_empty();
        self.received.text |= !delta.content.text().is_empty();
        self.received.calls |= !delta.tool_calls.items.is_empty();
        self.received.reasoning |= delta.reasoning(None).is_some();
        self.add_delta(delta, MessageParts::default(), sink)?;
        if let Some(message) = choice.message {
            self.has_whole_message = true;
            self.add_delta(&message, self.received, sink)?;
        }
        self.add_finish_reason(&choice.finish_reason.text(), has_output);
        Ok(())
    }

    /// Adds a piece that is nothing but text, as [`Self::add_chunk`] would.
    fn add_text_delta(
        &mut self,
        text: &str,
        sink: &mut EventSink<'_>,
    ) -> Result<(), InvalidResponse> {
        self.received.text |= !text.is_empty();
        let new_text = self.cumulative.feed(text);
        self.add_text(&new_text, sink)?;
        self.add_finish_reason("", !text.is_empty());
        Ok(())
    }

    /// Whether the choice with this index is the one that is read: the first one received.
    fn is_selected_choice(&self, index: Option<u64>) -> bool {
        match (self.choice, index) {
            (Some(known), Some(index)) => known == index,
            _ => true,
        }
    }

    /// Reads the tool calls of another choice: some gateways put the text into one choice and
    /// the calls into another.
    fn add_other_choice(&mut self, choice: &Choice) -> Result<(), InvalidResponse> {
        let index = choice.index.number().unwrap_or_default();
        if *self.other_choice.get_or_insert(index) != index {
            return Ok(());
        }
        let message = choice.message.as_deref().unwrap_or(&choice.delta);
        self.other_choice_calls.add_deltas(&message.tool_calls)
    }

    /// Sets the finish reason, or removes it if output follows it.
    fn add_finish_reason(&mut self, reason: &str, has_output: bool) {
        let is_reason = !matches!(reason, "" | "null" | "None");
        let current = self.finish_reason.as_deref().map(finish_reasons::classify);
        // A reason that reports an incomplete reply is kept.
        if matches!(current, None | Some(FinishReason::Complete)) && (is_reason || has_output) {
            self.finish_reason = is_reason.then(|| reason.to_string());
        }
    }

    /// Adds a piece of the message, without the parts that it repeats.
    fn add_delta(
        &mut self,
        delta: &Delta,
        repeated: MessageParts,
        sink: &mut EventSink<'_>,
    ) -> Result<(), InvalidResponse> {
        let mut calls = delta.tool_calls.items.iter().map(|call| &call.function);
        // Some servers send empty pieces as keep-alives.
        self.has_progress |=
            calls.any(|it| [&it.name, &it.arguments].iter().any(|it| it.is_meaningful()));
        // Some endpoints send the same reasoning under two names: the first one counts.
        let reasoning = delta.reasoning(self.reasoning_field).filter(|_| !repeated.reasoning);
        if let Some((field, text)) = reasoning {
            self.reasoning_field = Some(field);
            self.has_progress |= !text.trim().is_empty();
            append_limited(&mut self.reasoning, &text)?;
            sink(Event::Reasoning(&text));
        }
        if let Some(Value::Array(details)) = delta.reasoning_details.kept() {
            self.details_size.add(details)?;
            self.details.extend(details.iter().cloned());
        }
        if let Some(extra) = delta.extra_content.kept() {
            self.extra_content = Some(extra.clone());
        }
        if !repeated.text {
            let text = delta.content.text();
            let new_text = self.cumulative.feed(&text);
            self.add_text(&new_text, sink)?;
        }
        self.add_text(&delta.refusal.text(), sink)?;
        if !repeated.calls {
            self.calls.add_deltas(&delta.tool_calls)?;
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str, sink: &mut EventSink<'_>) -> Result<(), InvalidResponse> {
        if text.is_empty() {
            return Ok(());
        }
        self.has_progress |= !text.trim().is_empty();
        if self.think.is_over() {
            return self.add_answer(text, sink);
        }
        let piece = self.think.feed(text);
        self.add_piece(&piece, sink)
    }

    fn add_answer(&mut self, text: &str, sink: &mut EventSink<'_>) -> Result<(), InvalidResponse> {
        append_limited(&mut self.content, text)?;
        self.has_emitted_text = true;
        sink(Event::Text(text));
        Ok(())
    }

    fn add_piece(
        &mut self,
        piece: &ThinkPiece,
        sink: &mut EventSink<'_>,
    ) -> Result<(), InvalidResponse> {
        if !piece.reasoning.is_empty() {
            sink(Event::Reasoning(&piece.reasoning));
        }
        if !piece.text.is_empty() {
            self.add_answer(&piece.text, sink)?;
        }
        Ok(())
    }

    /// Ends the input and returns the reply. Its finish is [`FinishReason::Cut`] if nothing
    /// proves that the reply is complete.
    pub fn finish(mut self, sink: &mut EventSink<'_>) -> Result<ModelReply, InvalidResponse> {
        let text = self.cumulative.finish();
        self.add_text(&text, sink)?;
        let piece = self.think.finish();
        self.add_piece(&piece, sink)?;
        let finish = match self.finish_reason.as_deref() {
            None if !self.has_end_marker => FinishReason::Cut,
            // After the finish reason, a broken connection looks like a normal end.
            Some(_) if !self.has_end_marker && self.calls.has_incomplete_call() => {
                FinishReason::Cut
            }
            reason => reason.map_or(FinishReason::Complete, finish_reasons::classify),
        };
        let usage = self.usage;
        let message = self.into_message(finish == FinishReason::Complete)?;
        Ok(ModelReply { message, finish, cause: None, usage })
    }

    /// The message; with its calls and what is sent back with them only if it is complete.
    fn into_message(self, is_complete: bool) -> Result<AssistantMessage, InvalidResponse> {
        let content = match self.reasoning_field {
            None if !self.think.has_reasoning() => strip_unopened_reasoning(self.content),
            _ => self.content,
        };
        let mut message = AssistantMessage { content, ..AssistantMessage::default() };
        if !is_complete {
            return Ok(message);
        }
        let announces_calls =
            matches!(self.finish_reason.as_deref(), Some("tool_calls" | "function_call"));
        message.calls = self.calls.finish()?;
        if message.calls.is_empty()
            && announces_calls
            && !self.other_choice_calls.has_incomplete_call()
        {
            message.calls = self.other_choice_calls.finish()?;
        }
        let mut keep = |name: &str, value: Value| message.opaque.insert(name.into(), value);
        if let Some(extra) = self.extra_content {
            keep("extra_content", extra);
        }
        if !message.calls.is_empty() {
            if let Some(field) = self.reasoning_field.filter(|field| is_reasoning_field(field)) {
                keep(field, self.reasoning.into());
            }
            if !self.details.is_empty() {
                keep("reasoning_details", self.details.into());
            }
        }
        Ok(message)
    }

    /// Marks the end of a body that was not a stream. A whole message is
    /// complete when its JSON value ends; deltas are complete only if the body was delimited.
    pub fn mark_complete(&mut self, is_delimited: bool) {
        self.has_end_marker |= self.has_whole_message || is_delimited;
    }
}

fn append_limited(text: &mut String, piece: &str) -> Result<(), InvalidResponse> {
    if text.len() + piece.len() > limits::MESSAGE_BYTES {
        return Err(InvalidResponse::TooLarge("message"));
    }
    text.push_str(piece);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assemble(chunks: &[&str]) -> Result<ModelReply, InvalidResponse> {
        let mut assembler = ReplyAssembler::default();
        let mut sink = |_: Event<'_>| {};
        for chunk in chunks {
            assembler.feed(chunk.as_bytes(), &mut sink)?;
        }
        assembler.finish(&mut sink)
    }

    #[test]
    fn only_a_finish_reason_or_the_end_marker_proves_the_end() {
        let text = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
        let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
        let length = r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#;
        let table: &[(&[&str], FinishReason)] = &[
            (&[text], FinishReason::Cut),
            (&[text, stop], FinishReason::Complete),
            (&[text, "[DONE]"], FinishReason::Complete),
            (&[text, length, "[DONE]"], FinishReason::Length),
            (&[text, length, stop, "[DONE]"], FinishReason::Length),
            (&[text, r#"{"choices":[{"finish_reason":"MAX_TOKENS"}]}"#], FinishReason::Length),
            (&[text, r#"{"choices":[{"finish_reason":"error"}]}"#, "[DONE]"], FinishReason::Cut),
            (&[text, r#"{"choices":[{"finish_reason":"eos"}]}"#], FinishReason::Complete),
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
    fn events_end_a_reply_or_continue_it() {
        let piece = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
        let chunk_of_choice = |index: u8, text: &str| {
            format!(r#"{{"choices":[{{"index":{index},"delta":{{"content":"{text}"}}}}]}}"#)
        };
        let (empty, text) = (piece(""), piece("b"));
        let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
        let whole = r#"{"choices":[{"message":{"content":"b"},"finish_reason":"stop"}]}"#;
        let table: &[(&[&str], FinishReason, &str)] = &[
            (&[&empty, &text, stop], FinishReason::Complete, "b"),
            (&[&empty, &text, whole], FinishReason::Complete, "b"),
            (&[&empty, stop, &text], FinishReason::Cut, "b"),
            (&[&empty, stop, &empty], FinishReason::Complete, ""),
            (&[&empty, "[DONE]", &text], FinishReason::Complete, ""),
            (&[&empty, &text, &piece("bc"), &piece("bcd")], FinishReason::Cut, "bcd"),
            // Events of another choice do not become the template.
            (
                &[
                    &chunk_of_choice(0, "a"),
                    &chunk_of_choice(1, "X"),
                    &chunk_of_choice(1, "Y"),
                    &chunk_of_choice(0, "b"),
                    &chunk_of_choice(1, "Z"),
                ],
                FinishReason::Cut,
                "ab",
            ),
        ];
        for (chunks, finish, content) in table {
            let reply = assemble(chunks).unwrap();
            let got = (reply.finish, reply.message.content.as_str());
            assert_eq!(got, (*finish, *content), "{chunks:?}");
        }
    }

    #[test]
    fn error_objects_instead_of_a_reply_are_detected() {
        for body in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"error":"no"}"#,
            r#"{"object":"error","message":"no"}"#,
        ] {
            let Err(InvalidResponse::ErrorObject(value)) = assemble(&[body]) else {
                panic!("{body}")
            };
            assert!(value.to_string().contains("no"));
        }
    }

    #[test]
    fn invalid_text_loses_one_character_only() {
        let pieces = [
            r#"{"choices":[{"delta":{"content":"a\ud83d"}}]}"#,
            "{\"choices\":[{\"delta\":{\"content\":\"b\nc\"}}]}{\"choices\":[{\"delta\":{\"content\":\"d\te\"}}]}",
            "[DONE]",
        ];
        let reply = assemble(&pieces).unwrap();
        assert_eq!(reply.message.content, "a\u{fffd}b\ncd\te");
        let Err(InvalidResponse::ErrorObject(value)) =
            assemble(&[r#"[{"error":{"message":"no"}}]"#])
        else {
            panic!("expected an error object")
        };
        assert_eq!(value[0]["error"]["message"], "no");
    }

    #[test]
    fn a_stream_of_whole_messages_is_combined() {
        let piece = |reasoning: &str| {
            format!(r#"{{"choices":[{{"message":{{"reasoning_content":"{reasoning}"}}}}]}}"#)
        };
        let end = r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
        let reply = assemble(&[&piece("a"), &piece("b"), end]).unwrap();
        assert_eq!(reply.message.opaque["reasoning_content"], "ab");
        // A whole message after deltas repeats them.
        let pieces = piece("a").replace("message", "delta");
        let again = end.replace("{\"tool_calls\"", "{\"reasoning_content\":\"a\",\"tool_calls\"");
        let reply = assemble(&[&pieces, &again]).unwrap();
        assert_eq!(reply.message.opaque["reasoning_content"], "a");
    }

    #[test]
    fn reasoning_is_sent_back_once_and_only_with_calls() {
        let call = r#""tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]"#;
        let reasoning = r#""reasoning_content":"r","reasoning":"r","reasoning_details":[{"text":"r","index":0}]"#;
        let with_call = format!(r#"{{"choices":[{{"message":{{{reasoning},{call}}}}}]}}"#);
        let opaque = assemble(&[&with_call, "[DONE]"]).unwrap().message.opaque;
        assert_eq!(
            Value::from(opaque),
            serde_json::json!({"reasoning_content": "r", "reasoning_details": [{"text": "r", "index": 0}]})
        );
        let other = format!(r#"{{"choices":[{{"message":{{"reasoning_text":"r",{call}}}}}]}}"#);
        assert!(assemble(&[&other, "[DONE]"]).unwrap().message.opaque.is_empty());
        let without = format!(r#"{{"choices":[{{"message":{{{reasoning},"content":"x"}}}}]}}"#);
        assert!(assemble(&[&without, "[DONE]"]).unwrap().message.opaque.is_empty());
    }
}
