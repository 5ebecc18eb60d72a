//! Captured output of a script, in any pieces: its beginning and end are exact, and no secret
//! is visible, neither whole nor as a part next to omitted text. The same for the streamed
//! text of a model.

use base::limits;
use base::secret::{CutEdges, MASK, Secret, Secrets};
use host::capture::{Capture, CaptureLimits};
use skills_runner::parsers::StreamRedactor;

use crate::cuts::{self, Numbers};

/// Longer secrets only take more time.
const MAX_SECRET_BYTES: usize = 200;

/// See the module. The first two lines are secrets, the rest is the output.
pub fn check(data: &[u8]) {
    let mut lines = data.splitn(3, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (values, output) = ([next(), next()], next());
    let values = values.map(|value| String::from_utf8_lossy(value).into_owned());
    if values.iter().any(|value| value.len() > MAX_SECRET_BYTES) {
        return;
    }
    let mut secrets = Secrets::default();
    secrets.extend(values.iter().filter_map(|value| Secret::new(value.as_str())));
    let mut numbers = Numbers::of(data);
    let caps = CaptureLimits { head_bytes: numbers.below(40), tail_bytes: numbers.below(40) };
    check_capture(output, caps, &secrets, &values);
    check_capture(output, CaptureLimits::halves(1 << 16), &secrets, &values);
    let text = String::from_utf8_lossy(output);
    check_stream(&text, &secrets, &values);
    // The same with an encoded secret in the output.
    let written = values.iter().flat_map(|value| encodings(value));
    let written: Vec<String> = written.collect();
    if let Some(written) = written.get(numbers.below(written.len())) {
        let at = text.floor_char_boundary(numbers.below(text.len() + 1));
        let text = format!("{}{written}{}", &text[..at], &text[at..]);
        check_capture(text.as_bytes(), CaptureLimits::halves(1 << 16), &secrets, &values);
        check_stream(&text, &secrets, &values);
    }
}

/// Encodings of a secret; of base64 only the characters that the secret alone determines.
fn encodings(value: &str) -> Vec<String> {
    let units = || value.encode_utf16();
    let bytes = || value.bytes();
    let escapes = [
        units().map(|unit| format!("\\u{unit:04x}")).collect(),
        units().map(|unit| format!("\\\\u{unit:04X}")).collect(),
        bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
        bytes().map(|byte| format!("\\{byte:03o}")).collect(),
        bytes().map(|byte| format!("%{byte:02X}")).collect(),
    ];
    let mut written: Vec<String> = escapes.to_vec();
    for front in 0..3 {
        let bits = std::iter::repeat_n(0, front).chain(bytes());
        let bits: Vec<u8> =
            bits.flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
        let sixes = bits.chunks_exact(6).map(|six| six.iter().fold(0, |all, bit| all << 1 | bit));
        // Characters that also depend on the bytes before are left out.
        let own: Vec<u8> = sixes.skip((8 * front).div_ceil(6)).collect();
        for (plus, slash) in [('+', '/'), ('-', '_')] {
            let letter = |six: &u8| match six {
                0..26 => char::from(b'A' + six),
                26..52 => char::from(b'a' + six - 26),
                52..62 => char::from(b'0' + six - 52),
                62 => plus,
                _ => slash,
            };
            written.push(own.iter().map(letter).collect());
            let lines = own.chunks(5).map(|line| line.iter().map(letter).collect());
            written.push(lines.collect::<Vec<String>>().join("\r\n"));
        }
    }
    written
}

/// The values that can be searched for: not too short to be masked, and not part of the
/// replacement for a secret.
fn searchable<'v>(values: &'v [String], replacement: &str) -> impl Iterator<Item = &'v String> {
    let is_kept = |value: &&String| value.len() >= limits::SECRET_BYTES;
    let is_mark =
        |value: &String| value.contains(['[', ']']) || replacement.contains(value.as_str());
    values.iter().filter(is_kept).filter(move |value| !is_mark(value))
}

fn check_capture(output: &[u8], caps: CaptureLimits, secrets: &Secrets, values: &[String]) {
    let mut expected = None;
    for pieces in cuts::ways(output) {
        let mut capture = Capture::new(caps);
        for piece in &pieces {
            capture.push(piece);
        }
        let head_end = output.len().min(caps.head_bytes);
        let tail_start = output.len().saturating_sub(caps.tail_bytes).max(head_end);
        assert_eq!(capture.head(), &output[..head_end]);
        assert_eq!(capture.tail(), &output[tail_start..]);
        assert_eq!(capture.total_bytes(), output.len() as u64);
        assert_eq!(capture.is_truncated(), head_end < tail_start);
        let text = capture.masked(secrets);
        if capture.is_truncated() {
            check_cut(&text, capture.head().ends_with(b"\n"), values);
        } else {
            assert_eq!(capture.text(), String::from_utf8_lossy(output));
            assert_hidden(&text, values, "");
        }
        assert_eq!(*expected.get_or_insert_with(|| text.clone()), text);
    }
}

/// Checks both sides of the omitted text.
fn check_cut(text: &str, is_line: bool, values: &[String]) {
    const MARK: &str = "[… ";
    const MARK_END: &str = " left out …]\n";
    // The output itself may contain such a line; then the check is not possible.
    if text.matches(MARK).count() != 1 || text.matches(MARK_END).count() != 1 {
        return;
    }
    let (head, rest) = text.split_once(MARK).expect("it is there");
    let (notice, tail) = rest.split_once(MARK_END).expect("it is there");
    assert!(notice.ends_with(" bytes"), "{notice}");
    assert_hidden(head, values, "");
    assert_hidden(tail, values, "");
    // A line end was added if the head did not end with one.
    let head = if is_line { head } else { head.strip_suffix('\n').unwrap_or(head) };
    for value in searchable(values, "") {
        for at in value.char_indices().map(|(at, _)| at) {
            let (begin, end) = value.split_at(at);
            let is_detectable =
                |part: &str| part.len() >= limits::SECRET_PART_BYTES && part != value;
            assert!(!is_detectable(begin) || !head.ends_with(begin), "{head:?}");
            assert!(!is_detectable(end) || !tail.starts_with(end), "{tail:?}");
        }
    }
}

fn assert_hidden(text: &str, values: &[String], replacement: &str) {
    for value in searchable(values, replacement) {
        assert!(!text.contains(value.as_str()), "{value:?} shows in {text:?}");
        let json = serde_json::Value::from(value.as_str()).to_string();
        assert!(!text.contains(&json), "{json} shows in {text:?}");
        for written in encodings(value) {
            assert!(!text.contains(&written), "{written:?} shows in {text:?}");
        }
    }
}

/// Checks the streamed text of a model.
fn check_stream(text: &str, secrets: &Secrets, values: &[String]) {
    assert_hidden(&secrets.mask(text), values, "");
    assert_hidden(&secrets.mask_shortened(text), values, "");
    assert_hidden(&secrets.mask_cut(text, CutEdges { before: true, after: true }), values, "");
    for pieces in cuts::text_ways(text) {
        let mut redactor = StreamRedactor::default();
        let mut shown = String::new();
        for piece in &pieces {
            shown.push_str(&redactor.add(piece, secrets));
        }
        shown.push_str(&redactor.end(secrets));
        assert_hidden(&shown, values, "");
        if !shown.contains(MASK) {
            assert_eq!(shown, text);
        }
        assert_eq!(shown.replace(MASK, ""), secrets.mask(text).replace(MASK, ""));
    }
}
