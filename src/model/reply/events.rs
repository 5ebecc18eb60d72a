//! Parsing of the JSON values of a reply: several in one event, events joined into one, and
//! values that need repair.

use crate::bounded;
use crate::event::EventSink;
use crate::model::invalid_response::{InvalidResponse, classify_non_reply};
use crate::model::json_repair::repair_json;
use crate::model::reply::ReplyAssembler;
use crate::model::sse::{MAX_JOINED_EVENTS, is_keep_alive, joined_event};
use crate::model::wire::Chunk;

impl ReplyAssembler {
    /// Reads the data of one event, or a whole body.
    pub fn feed(&mut self, data: &[u8], sink: &mut EventSink<'_>) -> Result<(), InvalidResponse> {
        bounded::reset_count();
        let mut joined: Vec<u8>;
        let mut data = data;
        for _ in 0..MAX_JOINED_EVENTS {
            let Some(next) = self.feed_event(data, sink)? else {
                return Ok(());
            };
            joined = next;
            data = &joined;
        }
        Err(InvalidResponse::TooMany("events in one line"))
    }

    /// Reads one event and returns the one that was joined to it, if any.
    fn feed_event(
        &mut self,
        data: &[u8],
        sink: &mut EventSink<'_>,
    ) -> Result<Option<Vec<u8>>, InvalidResponse> {
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.has_end_marker = true;
        }
        // Ignored: comments that a gateway has wrapped as data, and everything after the end.
        if self.has_end_marker || data.is_empty() || data.starts_with(b":") || is_keep_alive(data) {
            return Ok(None);
        }
        if let Some(text) = self.template.extract_text(data) {
            self.add_plain_text(&text.text(), sink)?;
            return Ok(None);
        }
        // Gateways that join frames send several values in one event.
        let mut chunks = serde_json::Deserializer::from_slice(data).into_iter::<Chunk<'_>>();
        loop {
            let start = chunks.byte_offset();
            match chunks.next() {
                None => return Ok(None),
                Some(Ok(chunk)) => {
                    let is_all = start == 0 && chunks.byte_offset() == data.len();
                    if is_all && chunk.choices.items.iter().all(|it| self.is_selected_choice(it)) {
                        self.template.learn(data, &chunk);
                    }
                    self.add_chunk(chunk, sink)?;
                }
                Some(Err(error)) => return self.feed_repaired(&data[start..], &error, sink),
            }
        }
    }

    /// Parses data that the parser refused once more, after repairing its text.
    fn feed_repaired(
        &mut self,
        data: &[u8],
        error: &serde_json::Error,
        sink: &mut EventSink<'_>,
    ) -> Result<Option<Vec<u8>>, InvalidResponse> {
        if bounded::is_exceeded() {
            return Err(InvalidResponse::TooMany("values"));
        }
        bounded::reset_count();
        let repaired = repair_json(data);
        let mut chunks = serde_json::Deserializer::from_slice(&repaired).into_iter::<Chunk<'_>>();
        loop {
            let start = chunks.byte_offset();
            match chunks.next() {
                None => return Ok(None),
                Some(Ok(chunk)) => self.add_chunk(chunk, sink)?,
                Some(Err(_)) => {
                    // A list of errors, a bare text: JSON, but not a piece of a reply.
                    if let Ok(value) = bounded::from_slice(&repaired) {
                        return Err(classify_non_reply(value));
                    }
                    if let Some(next) = joined_event(&repaired[start..]) {
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
}
