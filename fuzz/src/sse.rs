//! Server-sent events: in any pieces the events are the same, and equal to those of a parser
//! that follows the standard literally.

use std::sync::Once;

use base::limits;
use chat_api::{EventTooLarge, SseSplitter};

use crate::cuts;
use crate::memory::with_limit;

/// See the module.
pub fn check(data: &[u8]) {
    // Checked once: it takes long and does not depend on the input.
    static ENDLESS: Once = Once::new();
    ENDLESS.call_once(check_endless);
    let expected = events(data);
    for pieces in cuts::ways(data) {
        let found = split(pieces.iter().copied()).expect("small enough");
        assert_eq!(found, expected, "cut into {} pieces", pieces.len());
    }
}

fn split<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> Result<Vec<Vec<u8>>, EventTooLarge> {
    let mut splitter = SseSplitter::default();
    let mut found = Vec::new();
    let mut collect = |data: &[u8]| {
        found.push(data.to_vec());
        Ok(())
    };
    for piece in pieces {
        splitter.feed(piece, &mut collect)?;
    }
    splitter.finish(&mut collect)?;
    Ok(found)
}

/// A literal parser of the standard, line by line.
fn events(stream: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = stream.iter().peekable();
    while let Some(&byte) = bytes.next() {
        if byte == b'\r' {
            bytes.next_if(|next| **next == b'\n');
        }
        match byte {
            b'\r' | b'\n' => lines.push(Vec::new()),
            _ => lines.last_mut().expect("never empty").push(byte),
        }
    }
    // The end of the stream also ends the last event.
    lines.push(Vec::new());
    let (mut events, mut event) = (Vec::new(), Vec::new());
    for line in lines {
        if line.is_empty() && !event.is_empty() {
            events.push(std::mem::take(&mut event).join(&b'\n'));
        } else if let Some(data) = line.strip_prefix(b"data:") {
            event.push(data.strip_prefix(b" ").unwrap_or(data).to_vec());
        }
    }
    events
}

/// Checks that endless lines and events are an error before they fill the memory.
fn check_endless() {
    let text = "x".repeat(1000);
    for part in
        [format!("data: {text}"), format!("data: {text}\n"), format!(": {text}\rdata:{text}\r\n")]
    {
        let piece = part.repeat(limits::READ_BYTES / part.len()).into_bytes();
        let most = limits::SSE_EVENT_BYTES + limits::SSE_LINE_BYTES;
        let mut largest = 0;
        // A growing vector exists twice while it moves.
        let is_refused = with_limit(4 * most, || {
            let mut splitter = SseSplitter::default();
            let mut note = |data: &[u8]| -> Result<(), EventTooLarge> {
                largest = largest.max(data.len());
                Ok(())
            };
            let mut rounds = 0..=2 * most / piece.len();
            let is_refused = rounds.any(|_| splitter.feed(&piece, &mut note).is_err());
            is_refused || splitter.finish(&mut note).is_err()
        });
        assert!(is_refused, "endless {} was accepted", &part[..20]);
        assert!(largest <= limits::SSE_EVENT_BYTES, "an event of {largest} bytes");
    }
}
