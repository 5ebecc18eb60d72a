//! Parser of server-sent events: a stream of bytes in, the data of each event out.
//!
//! The format is that of the HTML standard, section "Server-sent events", as far as endpoints
//! use it: `data` lines, comments, blank lines. Lines end with LF, CRLF or CR, and the network
//! may cut them anywhere, also inside a character.

use serde::de::IgnoredAny;

use base::limits;

/// The most events that a gateway may have joined into one; also the limit of the search for
/// them.
pub(super) const MAX_JOINED_EVENTS: usize = 64;

/// Error for a line or an event above its limit.
#[derive(Debug, PartialEq, Eq)]
pub struct EventTooLarge;

/// Splits a stream into events.
#[derive(Debug, Default)]
pub struct SseSplitter {
    /// The start of a line whose end has not been received yet.
    line: Vec<u8>,
    /// The data lines of the current event, each with a line feed.
    data: Vec<u8>,
    /// Whether the last byte was a CR: an LF after it belongs to the same line end.
    after_cr: bool,
}

impl SseSplitter {
    /// Reads the next bytes and passes on the data of every event that they complete.
    pub fn feed<E: From<EventTooLarge>>(
        &mut self,
        mut bytes: &[u8],
        on_data: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let is_pair = std::mem::take(&mut self.after_cr) && bytes.starts_with(b"\n");
            self.after_cr = bytes[end] == b'\r';
            if !is_pair {
                self.extend_line(&bytes[..end])?;
                self.end_line(on_data)?;
            }
            bytes = &bytes[end + 1..];
        }
        self.after_cr &= bytes.is_empty();
        Ok(self.extend_line(bytes)?)
    }

    /// Ends the stream: passes on the data of an unfinished event.
    pub fn finish<E: From<EventTooLarge>>(
        &mut self,
        on_data: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.end_line(on_data)?;
        self.end_event(on_data)
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + bytes.len() > limits::SSE_LINE_BYTES {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line<E: From<EventTooLarge>>(
        &mut self,
        on_data: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.line.is_empty() {
            return self.end_event(on_data);
        }
        // Other lines are comments, or fields that are not used here (event, id, retry).
        if let Some(data) = self.line.strip_prefix(b"data:") {
            let data = data.strip_prefix(b" ").unwrap_or(data);
            if self.data.len() + data.len() > limits::SSE_EVENT_BYTES {
                return Err(EventTooLarge.into());
            }
            self.data.extend_from_slice(data);
            self.data.push(b'\n');
        }
        self.line.clear();
        Ok(())
    }

    fn end_event<E>(&mut self, on_data: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let result = self.data.split_last().map_or(Ok(()), |(_, data)| on_data(data));
        self.data.clear();
        result
    }
}

/// The event after a `data:` inside another event: a gateway has lost the line break between
/// them, perhaps with a part of the first event.
pub(super) fn joined_event(data: &[u8]) -> Option<&[u8]> {
    const FIELD: &[u8] = b"data:";
    let positions = data.windows(FIELD.len()).enumerate();
    let positions = positions.filter(|(_, bytes)| *bytes == FIELD).take(MAX_JOINED_EVENTS);
    let mut events = positions.map(|(at, _)| data[at + FIELD.len()..].trim_ascii());
    events.find(|event| {
        let mut values = serde_json::Deserializer::from_slice(event).into_iter::<IgnoredAny>();
        event.starts_with(b"[DONE]") || matches!(values.next(), Some(Ok(_)))
    })
}

/// Whether the data is a keep-alive: `null`, `ping`, `keep-alive` or another bare word.
pub(super) fn is_keep_alive(data: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_');
    data.len() <= limits::HEARTBEAT_BYTES && data.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&[u8]]) -> Result<Vec<String>, EventTooLarge> {
        let mut splitter = SseSplitter::default();
        let mut found = Vec::new();
        let mut collect = |data: &[u8]| {
            found.push(String::from_utf8_lossy(data).into_owned());
            Ok(())
        };
        for piece in pieces {
            splitter.feed(piece, &mut collect)?;
        }
        splitter.finish(&mut collect)?;
        Ok(found)
    }

    #[test]
    fn events_are_split_as_in_the_standard() {
        let table: &[(&str, &[&str])] = &[
            ("data: a\n\ndata: b\n\n", &["a", "b"]),
            ("data:a\r\n\r\ndata:  b\r\n\r\n", &["a", " b"]),
            (": comment\n\ndata: a\n\n", &["a"]),
            ("event: x\nid: 1\ndata: a\nretry: 5\n\n", &["a"]),
            ("data: a\ndata: b\n\n", &["a\nb"]),
            ("data: a\r\rdata: b\rdata: c\r\r", &["a", "b\nc"]),
            ("data: a\r\n\rdata: b\n\r", &["a", "b"]),
            ("data: a", &["a"]),
            ("data: a\n", &["a"]),
            ("\n\n\ndata:\n\n", &[""]),
            ("dat: a\ndata\n\n", &[]),
        ];
        for (stream, events) in table {
            assert_eq!(split(&[stream.as_bytes()]).unwrap(), *events, "{stream:?}");
        }
    }

    #[test]
    fn the_stream_may_be_cut_anywhere() {
        let stream = "data: {\"text\":\"grüße 😀\"}\r\n\r\n: keep-alive\n\ndata: x\ndata: y\n\ndata: [DONE]\n\n";
        let whole = split(&[stream.as_bytes()]).unwrap();
        assert_eq!(whole.len(), 3);
        for cut in 0..=stream.len() {
            let (a, b) = stream.as_bytes().split_at(cut);
            assert_eq!(split(&[a, b]).unwrap(), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(split(&bytes).unwrap(), whole);
    }

    #[test]
    fn endless_lines_and_events_are_refused() {
        let line = vec![b'x'; limits::SSE_LINE_BYTES / 2 + 1];
        assert_eq!(split(&[&line, &line]), Err(EventTooLarge));
        let mut event = b"data: ".to_vec();
        event.extend(vec![b'x'; limits::SSE_LINE_BYTES - 10]);
        event.push(b'\n');
        let pieces: Vec<&[u8]> = (0..9).map(|_| event.as_slice()).collect();
        assert_eq!(split(&pieces), Err(EventTooLarge));
    }
}
