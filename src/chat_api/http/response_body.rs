//! Reader of response bodies: a stream of events, one JSON value, or a page that is not a
//! reply. The first bytes decide, not the headers.

use std::io::{self, Read};
use std::mem::take;

use crate::http::client::Client;
use crate::invalid_response::{EXPECTED_CHOICES, InvalidResponse, classify_non_reply};
use crate::reply::ReplyAssembler;
use crate::sse::{EventTooLarge, SseSplitter};
use base::bounded;
use base::event::EventSink;
use base::limits;
use base::secret::{CutEdges, Secrets};
use base::text::one_line;

/// The reason why a body could not be read to its end.
#[derive(Debug)]
pub(super) enum BodyInterruption {
    /// The connection broke, or the run must stop.
    Broken(io::Error),
    /// The content is not a valid reply.
    Invalid(InvalidResponse),
    /// The body is empty.
    Empty,
}

impl From<io::Error> for BodyInterruption {
    fn from(error: io::Error) -> BodyInterruption {
        BodyInterruption::Broken(error)
    }
}

impl From<EventTooLarge> for BodyInterruption {
    fn from(error: EventTooLarge) -> BodyInterruption {
        BodyInterruption::Invalid(error.into())
    }
}

impl From<InvalidResponse> for BodyInterruption {
    fn from(invalid: InvalidResponse) -> BodyInterruption {
        BodyInterruption::Invalid(invalid)
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the body and assembles the reply. `is_delimited`: the head says where the body ends,
/// so a missing part was never sent.
pub(super) fn read_body(
    client: &Client,
    reader: &mut dyn Read,
    is_delimited: bool,
    assembler: &mut ReplyAssembler,
    sink: &mut EventSink<'_>,
) -> Result<(), BodyInterruption> {
    let mut buffer = vec![0u8; limits::READ_BYTES];
    let (mut filled, mut is_start) = (0, true);
    // Line feeds to keep the connection alive may come before the content.
    let first = loop {
        let count = reader.read(&mut buffer[filled..])?;
        if take(&mut is_start) {
            client.limit_keep_alives();
        }
        filled += count;
        let start = body_start(&buffer[..filled]);
        match buffer[start..filled].first() {
            Some(&first) => {
                buffer.copy_within(start..filled, 0);
                filled -= start;
                break first;
            }
            None if count == 0 => return Err(BodyInterruption::Empty),
            None => filled = 0,
        }
    };
    let secrets = &client.endpoint.secrets;
    match first {
        b'{' | b'[' => {
            let first_bytes = &buffer[..filled];
            let mut reader = ContentReader { client, reader };
            read_whole(&mut reader, first_bytes, is_delimited, secrets, assembler, sink)
        }
        b'<' => {
            Err(InvalidResponse::ErrorObject(String::from_utf8_lossy(&buffer[..filled]).into())
                .into())
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

/// Reader of a JSON body, where all but white space is content.
struct ContentReader<'r> {
    client: &'r Client,
    reader: &'r mut dyn Read,
}

impl Read for ContentReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        if !buffer[..count].trim_ascii().is_empty() {
            self.client.limit_keep_alives();
        }
        Ok(count)
    }
}

/// Where the content starts: after white space and the bytes of a byte order mark, which start
/// nothing else that is valid.
fn body_start(bytes: &[u8]) -> usize {
    let is_content = |byte: &u8| !byte.is_ascii_whitespace() && !BYTE_ORDER_MARK.contains(byte);
    bytes.iter().position(is_content).unwrap_or(bytes.len())
}

fn read_whole(
    reader: &mut dyn Read,
    first_bytes: &[u8],
    is_delimited: bool,
    secrets: &Secrets,
    assembler: &mut ReplyAssembler,
    sink: &mut EventSink<'_>,
) -> Result<(), BodyInterruption> {
    let mut body = first_bytes.to_vec();
    let most = limits::BODY_BYTES as u64 + 1;
    reader.take(most.saturating_sub(body.len() as u64)).read_to_end(&mut body)?;
    if body.len() > limits::BODY_BYTES {
        return Err(InvalidResponse::TooLarge("body").into());
    }
    match assembler.feed(&body, sink) {
        Ok(()) if assembler.has_started() => {
            assembler.mark_complete(is_delimited);
            Ok(())
        }
        Ok(()) | Err(InvalidResponse::Malformed(_) | InvalidResponse::NoChoices) => {
            // JSON of another form often contains an error message.
            Err(match bounded::from_slice(&body).map(classify_non_reply) {
                Ok(InvalidResponse::NoChoices) => no_choices(&first_words(&body, secrets)).into(),
                Ok(invalid) => invalid.into(),
                Err(_) => malformed(&body, secrets).into(),
            })
        }
        Err(InvalidResponse::Unfinished) => Err(unfinished(&body, is_delimited, secrets)),
        Err(invalid) => Err(invalid.into()),
    }
}

/// A body whose first bytes have been read.
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
            let result = assembler.feed(data, sink);
            if first.is_none() && !assembler.has_started() && !assembler.has_end_marker() {
                first = Some(first_words(data, secrets));
            }
            // An event that ended is complete: its value is invalid, not cut.
            result.map_err(|invalid| match invalid {
                InvalidResponse::Unfinished => malformed(data, secrets),
                InvalidResponse::NoChoices => no_choices(&first_words(data, secrets)),
                invalid => invalid,
            })
        })?;
        if assembler.has_end_marker() {
            // The connection can be reused only if the body is read to its end, but that is not
            // worth a long wait.
            client.limit_stream_end();
            while matches!(reader.read(buffer), Ok(1..)) {}
            let received = first.as_deref().unwrap_or("the end of a stream");
            let started = assembler.has_started().then_some(());
            return started.ok_or_else(|| no_choices(received).into());
        }
        if assembler.take_progress() {
            client.limit_keep_alives();
        }
        filled = reader.read(buffer)?;
        if filled == 0 {
            return splitter.finish(&mut |data| match assembler.feed(data, sink) {
                Err(InvalidResponse::Unfinished) => Err(unfinished(data, is_delimited, secrets)),
                result => Ok(result?),
            });
        }
    }
}

/// Whether a body that is neither JSON nor a page starts like a stream of events.
fn looks_like_events(first_bytes: &[u8]) -> bool {
    [":", "data", "event", "id", "retry"].iter().any(|field| {
        first_bytes.starts_with(field.as_bytes()) || field.as_bytes().starts_with(first_bytes)
    })
}

/// The interruption of an incomplete value: cut by the connection, or sent that way.
fn unfinished(data: &[u8], is_delimited: bool, secrets: &Secrets) -> BodyInterruption {
    if is_delimited {
        malformed(data, secrets).into()
    } else {
        BodyInterruption::Broken(io::ErrorKind::UnexpectedEof.into())
    }
}

/// The error for a body that is not a reply, with its first words. The rest of the body may not
/// have been read.
fn malformed(body: &[u8], secrets: &Secrets) -> InvalidResponse {
    InvalidResponse::Malformed(first_words(body, secrets))
}

/// The error for JSON that is neither a reply nor an error, with its first words.
fn no_choices(received: &str) -> InvalidResponse {
    InvalidResponse::Malformed(format!("{EXPECTED_CHOICES}, got {received}"))
}

fn first_words(body: &[u8], secrets: &Secrets) -> String {
    let text = String::from_utf8_lossy(body);
    let text = secrets.mask_cut(&text, CutEdges::AFTER);
    one_line(&text, limits::QUOTED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_byte_order_mark_are_skipped() {
        let table: &[(&[u8], usize)] = &[
            (b"{", 0),
            (b"\n\r\n {", 4),
            (b"\xef\xbb\xbf{", 3),
            (b"\n\xef\xbb\xbf\n{", 5),
            (b"\xef\xbb", 2),
            (b" \n", 2),
        ];
        for (bytes, start) in table {
            assert_eq!(body_start(bytes), *start, "{bytes:?}");
        }
    }
}
