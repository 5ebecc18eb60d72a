//! Server-sent events, cut anywhere, are the same events, and those of a reader
//! that is written as the standard is.

use skills_runner::limits;
use skills_runner::model::{Splitter, TooLarge};

use crate::cuts;
use crate::memory::bounded;

/// A text that begins so stands for its rest many times over.
const MANY: &[u8] = b"\x01MANY";

/// See the module.
pub fn check(data: &[u8]) {
    if let Some(part) = data.strip_prefix(MANY) {
        return check_many(part);
    }
    let due = events(data);
    for pieces in cuts::ways(data) {
        let found = split(pieces.iter().copied()).expect("small enough");
        assert_eq!(found, due, "cut into {} pieces", pieces.len());
    }
}

fn split<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> Result<Vec<Vec<u8>>, TooLarge> {
    let mut splitter = Splitter::default();
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
fn check_many(part: &[u8]) {
    if part.is_empty() {
        return;
    }
    let piece = part.repeat((limits::READ_BYTES / part.len()).max(1));
    let most = limits::SSE_EVENT_BYTES + limits::SSE_LINE_BYTES;
    let mut largest = 0;
    // A growing vector holds its old self while it moves.
    bounded(4 * most + 2 * piece.len(), || {
        let mut splitter = Splitter::default();
        let mut note = |data: &[u8]| -> Result<(), TooLarge> {
            largest = largest.max(data.len());
            Ok(())
        };
        for _ in 0..=most / piece.len() + 1 {
            if splitter.feed(&piece, &mut note).is_err() {
                return;
            }
        }
        let _: Result<(), TooLarge> = splitter.finish(&mut note);
    });
    assert!(largest <= most + piece.len());
}
