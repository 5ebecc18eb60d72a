//! Parsing of the JSON values of a reply: several in one event, events joined into one, and
//! values that need repair.

use std::borrow::Cow;

use crate::invalid_response::{InvalidResponse, classify_non_reply};
use crate::json_repair::repair_json;
use crate::reply::ReplyAssembler;
use crate::sse::{MAX_JOINED_EVENTS, is_keep_alive, joined_event};
use crate::wire::Chunk;
use base::bounded;
use base::event::EventSink;

impl ReplyAssembler {
    /// Reads the data of one event, or a whole body.
    pub fn feed(&mut self, data: &[u8], sink: &mut EventSink<'_>) -> Result<(), InvalidResponse> {
        let mut data = Cow::Borrowed(data);
        for _ in 0..MAX_JOINED_EVENTS {
            let event = data.trim_ascii();
            if event == b"[DONE]" {
                self.has_end_marker = true;
            }
            // Ignored: comments that a gateway has wrapped as data, and everything after the end.
            let is_comment = event.is_empty() || event.starts_with(b":") || is_keep_alive(event);
            if self.has_end_marker || is_comment {
                return Ok(());
            }
            if let Some((text, choice)) = self.template.read(event)
                && self.is_selected_choice(choice)
            {
                return self.add_text_delta(&text, sink);
            }
            let Some((start, error)) = self.add_chunks(event, sink)? else {
                return Ok(());
            };
            if bounded::is_exceeded() {
                return Err(InvalidResponse::TooMany("values"));
            }
            let repaired = repair_json(&event[start..]);
            let Some((start, _)) = self.add_chunks(repaired.as_bytes(), sink)? else {
                return Ok(());
            };
            // A list of errors, a bare text: JSON, but not a piece of a reply.
            if let Ok(value) = bounded::from_slice(repaired.as_bytes()) {
                return Err(classify_non_reply(value));
            }
            match joined_event(&repaired.as_bytes()[start..]) {
                Some(next) => data = Cow::Owned(next.to_vec()),
                None if error.is_eof() => return Err(InvalidResponse::Unfinished),
                None => return Err(InvalidResponse::Malformed(error.to_string())),
            }
        }
        Err(InvalidResponse::TooMany("events in one line"))
    }

    /// Adds the JSON values of one event: gateways that join frames send several. Returns where
    /// the parser stopped, and why, unless it read everything.
    fn add_chunks(
        &mut self,
        data: &[u8],
        sink: &mut EventSink<'_>,
    ) -> Result<Option<(usize, serde_json::Error)>, InvalidResponse> {
        bounded::reset_count();
        let mut chunks = serde_json::Deserializer::from_slice(data).into_iter::<Chunk>();
        loop {
            let start = chunks.byte_offset();
            match chunks.next() {
                None => return Ok(None),
                Some(Ok(chunk)) => {
                    self.template.learn(data, &chunk);
                    self.add_chunk(chunk, sink)?;
                }
                Some(Err(error)) => return Ok(Some((start, error))),
            }
        }
    }
}
