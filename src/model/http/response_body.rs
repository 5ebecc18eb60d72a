//! Reads the body of a reply, whatever it is: a stream of events, one JSON
//! value, a page that is no reply at all. The first bytes decide, not what the
//! headers say.

use std::io::{self, Read};

use crate::bounded;
use crate::event::EventSink;
use crate::limits;
use crate::model::http::client::Client;
use crate::model::invalid_response::{EXPECTED, InvalidResponse, not_a_reply};
use crate::model::reply::ReplyAssembler;
use crate::model::sse::{EventTooLarge, SseSplitter};
use crate::secret::{CutEdges, Secrets};
use crate::text::one_line;

/// What kept a body from being read to its end.
#[derive(Debug)]
pub(super) enum BodyInterruption {
    /// The connection broke, or the run is to stop.
    Broken(io::Error),
    /// What came is no reply.
    Fault(InvalidResponse),
    /// There is no body.
    Empty,
}

impl From<io::Error> for BodyInterruption {
    fn from(error: io::Error) -> BodyInterruption {
        BodyInterruption::Broken(error)
    }
}

impl From<EventTooLarge> for BodyInterruption {
    fn from(error: EventTooLarge) -> BodyInterruption {
        BodyInterruption::Fault(error.into())
    }
}

impl From<InvalidResponse> for BodyInterruption {
    fn from(fault: InvalidResponse) -> BodyInterruption {
        BodyInterruption::Fault(fault)
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the body and puts the reply together. `is_delimited`: the head says
/// where the body ends, so that what is missing was never sent.
pub(super) fn assemble(
    client: &Client,
    reader: &mut dyn Read,
    is_delimited: bool,
    assembler: &mut ReplyAssembler,
    sink: &mut EventSink<'_>,
) -> Result<(), BodyInterruption> {
    let mut buffer = vec![0u8; limits::READ_BYTES];
    let mut filled = 0;
    // Keep-alive line feeds may come before the body proper.
    let first = loop {
        let count = reader.read(&mut buffer[filled..])?;
        if count > 0 {
            client.expect_more();
        }
        filled += count;
        let start = beginning(&buffer[..filled]);
        match buffer[start..filled].first() {
            Some(first) if !is_cut_mark(&buffer[start..filled]) || count == 0 => {
                let first = *first;
                buffer.copy_within(start..filled, 0);
                filled -= start;
                break first;
            }
            None if count == 0 => return Err(BodyInterruption::Empty),
            None => filled = 0,
            Some(_) => {}
        }
    };
    let secrets = &client.endpoint.secrets;
    match first {
        b'{' | b'[' => {
            let beginning = &buffer[..filled];
            read_whole(reader, beginning, is_delimited, secrets, assembler, sink)
        }
        b'<' => {
            Err(InvalidResponse::Refused(String::from_utf8_lossy(&buffer[..filled]).into()).into())
        }
        _ if !looks_like_events(&buffer[..filled]) => {
            Err(malformed(&buffer[..filled], secrets).into())
        }
        _ => {
            let rest = BodyRest { client, reader, buffer: &mut buffer, filled };
            read_stream(rest, is_delimited, assembler, sink)
        }
    }
}

/// Where the body proper begins: after white space and a byte order mark.
fn beginning(bytes: &[u8]) -> usize {
    let space = |from: usize| {
        let rest = &bytes[from..];
        let end = rest.iter().position(|byte| !byte.is_ascii_whitespace());
        from + end.unwrap_or(rest.len())
    };
    let start = space(0);
    if bytes[start..].starts_with(BYTE_ORDER_MARK) {
        space(start + BYTE_ORDER_MARK.len())
    } else {
        start
    }
}

/// Whether these are the first bytes of a mark whose rest has not come yet.
fn is_cut_mark(bytes: &[u8]) -> bool {
    bytes.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(bytes)
}

fn read_whole(
    reader: &mut dyn Read,
    beginning: &[u8],
    is_delimited: bool,
    secrets: &Secrets,
    assembler: &mut ReplyAssembler,
    sink: &mut EventSink<'_>,
) -> Result<(), BodyInterruption> {
    let mut body = beginning.to_vec();
    let most = limits::BODY_BYTES as u64 + 1;
    reader.take(most.saturating_sub(body.len() as u64)).read_to_end(&mut body)?;
    if body.len() > limits::BODY_BYTES {
        return Err(InvalidResponse::TooLarge("body").into());
    }
    match assembler.take(&body, sink) {
        Ok(()) if assembler.has_begun() => {
            assembler.mark_whole(is_delimited);
            Ok(())
        }
        Ok(()) | Err(InvalidResponse::Malformed(_) | InvalidResponse::NoChoices) => {
            // JSON of another form often holds an error's words.
            Err(match bounded::from_slice(&body).map(not_a_reply) {
                Ok(InvalidResponse::NoChoices) => no_choices(&first_words(&body, secrets)).into(),
                Ok(fault) => fault.into(),
                Err(_) => malformed(&body, secrets).into(),
            })
        }
        Err(InvalidResponse::Unfinished) => Err(unfinished(&body, is_delimited, secrets)),
        Err(fault) => Err(fault.into()),
    }
}

/// A body of which the beginning has been read.
struct BodyRest<'r> {
    client: &'r Client,
    reader: &'r mut dyn Read,
    buffer: &'r mut [u8],
    filled: usize,
}

fn read_stream(
    rest: BodyRest<'_>,
    is_delimited: bool,
    assembler: &mut ReplyAssembler,
    sink: &mut EventSink<'_>,
) -> Result<(), BodyInterruption> {
    let BodyRest { client, reader, buffer, mut filled } = rest;
    let secrets = &client.endpoint.secrets;
    let mut splitter = SseSplitter::default();
    let mut first = None;
    loop {
        splitter.feed(&buffer[..filled], &mut |data| {
            let result = assembler.take(data, sink);
            if first.is_none() && !assembler.has_begun() && !assembler.is_done() {
                first = Some(first_words(data, secrets));
            }
            // An event that ended is all there: its value is broken, not cut.
            result.map_err(|fault| match fault {
                InvalidResponse::Unfinished => malformed(data, secrets),
                InvalidResponse::NoChoices => no_choices(&first_words(data, secrets)),
                fault => fault,
            })
        })?;
        if assembler.is_done() {
            // The connection can serve the next request only if the body is
            // read to its end, but that is not worth waiting for.
            client.expect_end();
            while matches!(reader.read(buffer), Ok(1..)) {}
            let came = first.as_deref().unwrap_or("the end of a stream");
            let begun = assembler.has_begun().then_some(());
            return begun.ok_or_else(|| no_choices(came).into());
        }
        filled = reader.read(buffer)?;
        if filled == 0 {
            return splitter.finish(&mut |data| match assembler.take(data, sink) {
                Err(InvalidResponse::Unfinished) => Err(unfinished(data, is_delimited, secrets)),
                result => Ok(result?),
            });
        }
    }
}

/// Whether a body that is neither JSON nor a page begins as a stream of events
/// does, as far as its beginning has come.
fn looks_like_events(beginning: &[u8]) -> bool {
    [":", "data", "event", "id", "retry"].iter().any(|field| {
        beginning.starts_with(field.as_bytes()) || field.as_bytes().starts_with(beginning)
    })
}

/// What ends in the middle of this: cut by the connection, or sent so.
fn unfinished(data: &[u8], is_delimited: bool, secrets: &Secrets) -> BodyInterruption {
    if is_delimited {
        malformed(data, secrets).into()
    } else {
        BodyInterruption::Broken(io::ErrorKind::UnexpectedEof.into())
    }
}

/// What is no reply at all, in its own first words. Of its rest nothing may
/// have come yet.
fn malformed(body: &[u8], secrets: &Secrets) -> InvalidResponse {
    InvalidResponse::Malformed(first_words(body, secrets))
}

/// JSON that is no reply and no error, in its own first words.
fn no_choices(came: &str) -> InvalidResponse {
    InvalidResponse::Malformed(format!("{EXPECTED}, got {came}"))
}

fn first_words(body: &[u8], secrets: &Secrets) -> String {
    let text = String::from_utf8_lossy(body);
    let text = secrets.mask_cut(&text, CutEdges::BEHIND);
    one_line(&text, limits::QUOTED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_a_mark_before_the_body_are_passed_over() {
        let table: &[(&[u8], usize, bool)] = &[
            (b"{", 0, false),
            (b"\n\r\n {", 4, false),
            (b"\xef\xbb\xbf{", 3, false),
            (b"\n\xef\xbb\xbf\n{", 5, false),
            (b"\xef\xbb", 0, true),
            (b"\xef\xbbx", 0, false),
            (b" \n", 2, true),
        ];
        for (bytes, start, is_cut) in table {
            assert_eq!(beginning(bytes), *start, "{bytes:?}");
            assert_eq!(is_cut_mark(&bytes[*start..]), *is_cut, "{bytes:?}");
        }
    }
}
