//! Server-sent events, cut anywhere, are the same events, and those of a reader
//! that is written as the standard is.

use std::sync::Once;

use skills_runner::internals::limits;
use skills_runner::internals::model::{EventTooLarge, SseSplitter};

use crate::cuts;
use crate::memory::bounded;

/// See the module.
pub fn check(data: &[u8]) {
    // It takes long, and depends on nothing.
    static ENDLESS: Once = Once::new();
    ENDLESS.call_once(check_endless);
    let due = events(data);
    for pieces in cuts::ways(data) {
        let found = split(pieces.iter().copied()).expect("small enough");
        assert_eq!(found, due, "cut into {} pieces", pieces.len());
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

/// The standard's reading, line by line.
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
    // The end of the stream ends the last event as well.
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

/// Endless lines and events end in an error, and no memory is filled before.
fn check_endless() {
    let text = "x".repeat(1000);
    for part in
        [format!("data: {text}"), format!("data: {text}\n"), format!(": {text}\rdata:{text}\r\n")]
    {
        let piece = part.repeat(limits::READ_BYTES / part.len()).into_bytes();
        let most = limits::SSE_EVENT_BYTES + limits::SSE_LINE_BYTES;
        let mut largest = 0;
        // A growing vector holds its old self while it moves.
        let is_refused = bounded(4 * most, || {
            let mut splitter = SseSplitter::default();
            let mut note = |data: &[u8]| -> Result<(), EventTooLarge> {
                largest = largest.max(data.len());
                Ok(())
            };
            let mut rounds = 0..=2 * most / piece.len();
            let is_refused = rounds.any(|_| splitter.feed(&piece, &mut note).is_err());
            is_refused || splitter.finish(&mut note).is_err()
        });
        assert!(is_refused, "{} and so on is no event", &part[..20]);
        assert!(largest <= limits::SSE_EVENT_BYTES, "an event of {largest} bytes");
    }
}
