//! Puts a reply together from its pieces.
//!
//! A whole reply and a stream go the same way: each JSON value is a piece. A
//! call that may be unfinished never leaves here.

use serde_json::Value;

use crate::bounded;
use crate::event::{Event, EventSink};
use crate::limits;
use crate::message::AssistantMessage;
use crate::model::calls::CallAssembler;
use crate::model::cumulative::CumulativeFilter;
use crate::model::delta_fast_path::DeltaForm;
use crate::model::finish::judge;
use crate::model::invalid_response::{InvalidResponse, not_a_reply, refused};
use crate::model::sse::{GLUED, glued_event, is_beat};
use crate::model::think_filter::{ThinkFilter, ThinkPiece, split_unopened};
use crate::model::wire::{Choice, Chunk, Delta, LooseValue};
use crate::model::{FinishReason, ModelReply, json_repair, reasoning_details};
use crate::tool::Usage;

/// The fields of reasoning that endpoints want to see again beside calls.
const ECHOED: [&str; 2] = ["reasoning_content", "reasoning"];

/// In what form things came: a whole message after pieces only says them again.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about what has come")]
struct ReplyForm {
    text: bool,
    calls: bool,
    thoughts: bool,
    /// A whole message, and not only pieces of one.
    message: bool,
}

/// One reply in the making.
#[derive(Debug, Default)]
pub struct ReplyAssembler {
    content: String,
    reasoning: String,
    /// The field in which reasoning came: some endpoints want it back under that name.
    reasoning_field: Option<&'static str>,
    details: reasoning_details::ReasoningDetails,
    /// What the endpoint wants to see again with the message.
    extra_content: Option<Value>,
    resent: CumulativeFilter,
    think: ThinkFilter,
    calls: CallAssembler,
    /// Calls of another choice, for a reply that has none itself but says so.
    elsewhere: CallAssembler,
    elsewhere_choice: Option<u64>,
    pieces: ReplyForm,
    /// The form of the events that bring text alone.
    form: DeltaForm,
    /// The index of the choice that is read.
    choice: Option<u64>,
    finish: Option<String>,
    usage: Option<Usage>,
    done: bool,
    told: bool,
    /// Whether anything that looks like a piece of a reply has come.
    begun: bool,
}

impl ReplyAssembler {
    /// The answer to a conversation of so many messages.
    pub fn after(messages: usize) -> ReplyAssembler {
        ReplyAssembler {
            // Each turn adds at least as many messages as it has calls.
            calls: CallAssembler::numbered_from(messages),
            elsewhere: CallAssembler::numbered_from(messages),
            ..ReplyAssembler::default()
        }
    }

    /// Whether the person has seen a piece of the answer.
    pub fn has_told(&self) -> bool {
        self.told
    }

    /// Whether any piece of a reply has come, if only an empty one.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether the reason why the reply ends has come, which proves it whole.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether the end marker of a stream has come.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Takes the data of one event, or a whole body.
    pub fn take(&mut self, data: &[u8], sink: &mut EventSink<'_>) -> Result<(), InvalidResponse> {
        bounded::begin();
        let mut glued: Vec<u8>;
        let mut data = data;
        for _ in 0..GLUED {
            let Some(next) = self.take_event(data, sink)? else {
                return Ok(());
            };
            glued = next;
            data = &glued;
        }
        Err(InvalidResponse::TooMany("events in one line"))
    }

    /// Takes one event and gives the one that was glued to it, if any.
    fn take_event(
        &mut self,
        data: &[u8],
        sink: &mut EventSink<'_>,
    ) -> Result<Option<Vec<u8>>, InvalidResponse> {
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.done = true;
        }
        // Comments that a gateway has wrapped once more say nothing, nor does
        // what comes after the end.
        if self.done || data.is_empty() || data.starts_with(b":") || is_beat(data) {
            return Ok(None);
        }
        if let Some(text) = self.form.text(data) {
            self.take_text_alone(&text.text(), sink)?;
            return Ok(None);
        }
        // Several values in one event come from gateways that glue frames.
        let mut chunks = serde_json::Deserializer::from_slice(data).into_iter::<Chunk<'_>>();
        loop {
            let start = chunks.byte_offset();
            match chunks.next() {
                None => return Ok(None),
                Some(Ok(chunk)) => {
                    let is_all = start == 0 && chunks.byte_offset() == data.len();
                    if is_all && chunk.choices.items.iter().all(|it| self.is_ours(it)) {
                        self.form.learn(data, &chunk);
                    }
                    self.take_chunk(chunk, sink)?;
                }
                Some(Err(error)) => return self.take_mended(&data[start..], &error, sink),
            }
        }
    }

    /// What the parser refused, once more with its text made valid.
    fn take_mended(
        &mut self,
        data: &[u8],
        error: &serde_json::Error,
        sink: &mut EventSink<'_>,
    ) -> Result<Option<Vec<u8>>, InvalidResponse> {
        if bounded::is_exceeded() {
            return Err(InvalidResponse::TooMany("values"));
        }
        bounded::begin();
        let mended = json_repair::mend(data);
        let mut chunks = serde_json::Deserializer::from_slice(&mended).into_iter::<Chunk<'_>>();
        loop {
            let start = chunks.byte_offset();
            match chunks.next() {
                None => return Ok(None),
                Some(Ok(chunk)) => self.take_chunk(chunk, sink)?,
                Some(Err(_)) => {
                    // A list of errors, a bare text: JSON, but no piece of a reply.
                    if let Ok(value) = bounded::from_slice(&mended) {
                        return Err(not_a_reply(value));
                    }
                    if let Some(next) = glued_event(&mended[start..]) {
                        return Ok(Some(next.to_vec()));
                    }
                    return Err(if error.is_eof() {
                        InvalidResponse::Unfinished
                    } else {
                        InvalidResponse::Malformed(error.to_string())
                    });
                }
            }
        }
    }

    fn take_chunk(
        &mut self,
        chunk: Chunk<'_>,
        sink: &mut EventSink<'_>,
    ) -> Result<(), InvalidResponse> {
        if chunk.error.is_something() {
            return Err(refused([("error", chunk.error)]));
        }
        let has_choices = !chunk.choices.items.is_empty();
        if !has_choices && chunk.detail.is_something() {
            return Err(refused([("detail", chunk.detail)]));
        }
        if chunk.object.text() == "error" {
            return Err(refused([
                ("message", chunk.message),
                ("code", chunk.code),
                ("type", chunk.r#type),
            ]));
        }
        self.usage = chunk.usage.usage().or(self.usage);
        let mut choice = None;
        for candidate in chunk.choices.items {
            if choice.is_none() && self.is_ours(&candidate) {
                choice = Some(candidate);
            } else {
                self.take_elsewhere(&candidate)?;
            }
        }
        let Some(choice) = choice else {
            return Ok(());
        };
        if choice.error.is_something() {
            return Err(refused([("error", choice.error)]));
        }
        self.begun = true;
        self.choice = self.choice.or(choice.index.number());
        self.usage = choice.usage.usage().or(self.usage);
        self.pieces.text |= !choice.delta.content.text().is_empty();
        self.pieces.calls |= !choice.delta.tool_calls.items.is_empty();
        self.pieces.thoughts |= choice.delta.has_thought();
        let delta = &choice.delta;
        let is_more = !delta.content.text().is_empty() || !delta.tool_calls.items.is_empty();
        self.take_delta(delta, sink)?;
        if let Some(mut message) = choice.message {
            self.pieces.message = true;
            if self.pieces.text {
                message.content = LooseValue::Null;
            }
            if self.pieces.calls {
                message.tool_calls.items.clear();
            }
            if self.pieces.thoughts {
                message.reasoning_content = LooseValue::Null;
                message.reasoning = LooseValue::Null;
                message.reasoning_text = LooseValue::Null;
            }
            self.take_delta(&message, sink)?;
        }
        self.take_finish(&choice.finish_reason.text(), is_more);
        Ok(())
    }

    /// One answer was asked for; of several only the first to come counts.
    fn is_ours(&self, choice: &Choice<'_>) -> bool {
        match (self.choice, choice.index.number()) {
            (Some(known), Some(index)) => known == index,
            _ => true,
        }
    }

    /// Some gateways put the text into one choice and the calls into another.
    fn take_elsewhere(&mut self, choice: &Choice<'_>) -> Result<(), InvalidResponse> {
        let index = choice.index.number().unwrap_or_default();
        if *self.elsewhere_choice.get_or_insert(index) != index {
            return Ok(());
        }
        let message = choice.message.as_deref().unwrap_or(&choice.delta);
        let calls = &message.tool_calls.items;
        for (position, call) in calls.iter().enumerate() {
            self.elsewhere.take(call, position, calls.len())?;
        }
        Ok(())
    }

    /// The reason why the reply ends, or that it goes on although it had one.
    fn take_finish(&mut self, reason: &str, is_more: bool) {
        let is_reason = !matches!(reason, "" | "null" | "None");
        let known = self.finish.as_deref().map(judge);
        // What says that something is missing stays said.
        if matches!(known, None | Some(FinishReason::Complete)) && (is_reason || is_more) {
            self.finish = is_reason.then(|| reason.to_string());
        }
    }

    fn take_delta(
        &mut self,
        delta: &Delta<'_>,
        sink: &mut EventSink<'_>,
    ) -> Result<(), InvalidResponse> {
        self.take_reasoning("reasoning_content", &delta.reasoning_content, sink)?;
        self.take_reasoning("reasoning", &delta.reasoning, sink)?;
        self.take_reasoning("reasoning_text", &delta.reasoning_text, sink)?;
        self.details.take(&delta.reasoning_details)?;
        if let LooseValue::Other(extra) = &delta.extra_content {
            self.extra_content = Some(extra.clone());
        }
        self.take_content(&delta.content.text(), sink)?;
        self.take_text(&delta.refusal.text(), sink)?;
        let calls = &delta.tool_calls;
        if calls.is_cut {
            return Err(InvalidResponse::TooMany("calls"));
        }
        for (position, call) in calls.items.iter().enumerate() {
            self.calls.take(call, position, calls.items.len())?;
        }
        Ok(())
    }

    fn take_reasoning(
        &mut self,
        field: &'static str,
        text: &LooseValue<'_>,
        sink: &mut EventSink<'_>,
    ) -> Result<(), InvalidResponse> {
        let text = text.text();
        // Some send the same thought under two names: the first one counts.
        if text.is_empty() || self.reasoning_field.is_some_and(|known| known != field) {
            return Ok(());
        }
        self.reasoning_field = Some(field);
        grow(&mut self.reasoning, &text)?;
        sink(Event::Reasoning(&text));
        Ok(())
    }

    /// What an event of the known form brings.
    fn take_text_alone(
        &mut self,
        text: &str,
        sink: &mut EventSink<'_>,
    ) -> Result<(), InvalidResponse> {
        self.pieces.text |= !text.is_empty();
        self.take_content(text, sink)?;
        self.take_finish("", !text.is_empty());
        Ok(())
    }

    fn take_content(
        &mut self,
        text: &str,
        sink: &mut EventSink<'_>,
    ) -> Result<(), InvalidResponse> {
        let mut resent = std::mem::take(&mut self.resent);
        let mut result = Ok(());
        resent.feed(text, &mut |text| {
            if result.is_ok() {
                result = self.take_text(text, sink);
            }
        });
        self.resent = resent;
        result
    }

    fn take_text(&mut self, text: &str, sink: &mut EventSink<'_>) -> Result<(), InvalidResponse> {
        if text.is_empty() {
            return Ok(());
        }
        let mut think = std::mem::take(&mut self.think);
        let mut result = Ok(());
        think.feed(text, &mut |piece| {
            if result.is_ok() {
                result = self.take_piece(&piece, sink);
            }
        });
        self.think = think;
        result
    }

    fn take_piece(
        &mut self,
        piece: &ThinkPiece<'_>,
        sink: &mut EventSink<'_>,
    ) -> Result<(), InvalidResponse> {
        match piece {
            ThinkPiece::Said(text) => {
                grow(&mut self.content, text)?;
                self.told = true;
                sink(Event::Text(text));
            }
            ThinkPiece::Thought(text) => sink(Event::Reasoning(text)),
        }
        Ok(())
    }

    /// The end of the bytes: what the pieces make together. `Finish::Cut` when
    /// nothing says that the reply is whole.
    pub fn finish(mut self, sink: &mut EventSink<'_>) -> Result<ModelReply, InvalidResponse> {
        let mut resent = std::mem::take(&mut self.resent);
        let mut result = Ok(());
        resent.finish(&mut |text| result = self.take_text(text, sink));
        result?;
        let mut think = std::mem::take(&mut self.think);
        let mut result = Ok(());
        think.finish(&mut |piece| result = self.take_piece(&piece, sink));
        result?;
        self.think = think;
        let finish = match self.finish.as_deref() {
            None if !self.done => FinishReason::Cut,
            // A connection that breaks after the reason looks like an end.
            Some(_) if !self.done && self.calls.has_half() => FinishReason::Cut,
            reason => reason.map_or(FinishReason::Complete, judge),
        };
        let says_calls = matches!(self.finish.as_deref(), Some("tool_calls" | "function_call"));
        let mut message = AssistantMessage {
            content: match self.reasoning_field {
                None if !self.think.has_thought() => split_unopened(self.content),
                _ => self.content,
            },
            ..AssistantMessage::default()
        };
        if finish == FinishReason::Complete {
            message.calls = self.calls.finish()?;
            if message.calls.is_empty() && says_calls && !self.elsewhere.has_half() {
                message.calls = self.elsewhere.finish()?;
            }
            let extra = self.extra_content.take();
            message.opaque.extend(extra.map(|extra| ("extra_content".into(), extra)));
            if !message.calls.is_empty() {
                let field = self.reasoning_field.filter(|field| ECHOED.contains(field));
                message.opaque.extend(field.map(|field| (field.into(), self.reasoning.into())));
                let details = Some(self.details.list).filter(|details| !details.is_empty());
                message
                    .opaque
                    .extend(details.map(|details| ("reasoning_details".into(), details.into())));
            }
        }
        Ok(ModelReply { message, finish, cause: None, usage: self.usage })
    }

    /// A whole reply that came without a stream has no end marker: the end of
    /// its JSON value is one. Pieces in a row are no whole reply, unless the
    /// body is known to hold no more.
    pub fn mark_whole(&mut self, is_delimited: bool) {
        self.done |= self.pieces.message || is_delimited;
    }
}

fn grow(text: &mut String, piece: &str) -> Result<(), InvalidResponse> {
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
            assembler.take(chunk.as_bytes(), &mut sink)?;
        }
        assembler.finish(&mut sink)
    }

    #[test]
    fn only_a_finish_reason_or_the_marker_proves_the_end() {
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
    fn a_piece_of_the_known_form_counts_as_any_other() {
        let piece = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
        let of = |index: u8, text: &str| {
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
            // Another choice than the one that is read has no form.
            (
                &[&of(0, "a"), &of(1, "X"), &of(1, "Y"), &of(0, "b"), &of(1, "Z")],
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
    fn errors_in_the_place_of_a_reply_are_found() {
        for body in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"error":"no"}"#,
            r#"{"object":"error","message":"no"}"#,
        ] {
            let Err(InvalidResponse::Refused(value)) = assemble(&[body]) else { panic!("{body}") };
            assert!(value.to_string().contains("no"));
        }
    }

    #[test]
    fn broken_text_loses_one_character_and_not_the_answer() {
        let pieces = [
            r#"{"choices":[{"delta":{"content":"a\ud83d"}}]}"#,
            "{\"choices\":[{\"delta\":{\"content\":\"b\nc\"}}]}{\"choices\":[{\"delta\":{\"content\":\"d\te\"}}]}",
            "[DONE]",
        ];
        let reply = assemble(&pieces).unwrap();
        assert_eq!(reply.message.content, "a\u{fffd}b\ncd\te");
        let Err(InvalidResponse::Refused(value)) = assemble(&[r#"[{"error":{"message":"no"}}]"#])
        else {
            panic!("a list of errors is none")
        };
        assert_eq!(value[0]["error"]["message"], "no");
    }

    #[test]
    fn pieces_may_all_come_as_messages() {
        let piece = |thought: &str| {
            format!(r#"{{"choices":[{{"message":{{"reasoning_content":"{thought}"}}}}]}}"#)
        };
        let end = r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
        let reply = assemble(&[&piece("a"), &piece("b"), end]).unwrap();
        assert_eq!(reply.message.opaque["reasoning_content"], "ab");
        // A whole message behind pieces says them again.
        let pieces = piece("a").replace("message", "delta");
        let again = end.replace("{\"tool_calls\"", "{\"reasoning_content\":\"a\",\"tool_calls\"");
        let reply = assemble(&[&pieces, &again]).unwrap();
        assert_eq!(reply.message.opaque["reasoning_content"], "a");
    }

    #[test]
    fn reasoning_is_echoed_beside_calls_only_and_once() {
        let call = r#""tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]"#;
        let thought = r#""reasoning_content":"r","reasoning":"r","reasoning_details":[{"text":"r","index":0}]"#;
        let with_call = format!(r#"{{"choices":[{{"message":{{{thought},{call}}}}}]}}"#);
        let opaque = assemble(&[&with_call, "[DONE]"]).unwrap().message.opaque;
        assert_eq!(
            Value::from(opaque),
            serde_json::json!({"reasoning_content": "r", "reasoning_details": [{"text": "r", "index": 0}]})
        );
        let other = format!(r#"{{"choices":[{{"message":{{"reasoning_text":"r",{call}}}}}]}}"#);
        assert!(assemble(&[&other, "[DONE]"]).unwrap().message.opaque.is_empty());
        let without = format!(r#"{{"choices":[{{"message":{{{thought},"content":"x"}}}}]}}"#);
        assert!(assemble(&[&without, "[DONE]"]).unwrap().message.opaque.is_empty());
    }
}
