//! The text of a requirements file, as pip reads it: decoded by its byte order mark or by
//! a comment in its first two lines; and its logical lines, joined at backslashes and
//! without comments.

use std::borrow::Cow;

/// Order of the bytes in a code unit.
#[derive(Clone, Copy)]
enum ByteOrder {
    Little,
    Big,
}

/// Decodes the text. Byte order marks of UTF-16 and UTF-32 are removed, and invalid
/// characters are replaced. A text in UTF-8 stays byte for byte.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match bytes {
        // Before UTF-16, as this mark starts with that of UTF-16.
        [0xff, 0xfe, 0, 0, rest @ ..] => utf_32(rest, ByteOrder::Little).into(),
        [0, 0, 0xfe, 0xff, rest @ ..] => utf_32(rest, ByteOrder::Big).into(),
        [0xff, 0xfe, rest @ ..] => utf_16(rest, ByteOrder::Little).into(),
        [0xfe, 0xff, rest @ ..] => utf_16(rest, ByteOrder::Big).into(),
        // In Latin-1 every byte is the character with its number.
        _ if declares_latin_1(bytes) => bytes.iter().copied().map(char::from).collect(),
        _ => String::from_utf8_lossy(bytes),
    }
}

fn utf_16(bytes: &[u8], order: ByteOrder) -> String {
    let units = bytes.chunks(2).map(|pair| match (order, pair) {
        (ByteOrder::Little, &[one, two]) => u16::from_le_bytes([one, two]),
        (ByteOrder::Big, &[one, two]) => u16::from_be_bytes([one, two]),
        // Half a code unit at the end.
        _ => u16::MAX,
    });
    char::decode_utf16(units)
        .map(|c| c.ok().filter(|c| *c != '\u{ffff}').unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

fn utf_32(bytes: &[u8], order: ByteOrder) -> String {
    let number = |four: &[u8]| {
        let four: [u8; 4] = four.try_into().ok()?;
        Some(match order {
            ByteOrder::Little => u32::from_le_bytes(four),
            ByteOrder::Big => u32::from_be_bytes(four),
        })
    };
    bytes
        .chunks(4)
        .map(|four| number(four).and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Whether a comment declares Latin-1: `# -*- coding: latin-1 -*-`. Other 8-bit encodings
/// are read as UTF-8: they agree in ASCII, and the rest is replaced.
fn declares_latin_1(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').take(2);
    let comments = lines.filter(|line| line.starts_with(b"#"));
    let mut names = comments.filter_map(|line| {
        let line = str::from_utf8(line).ok()?;
        let (_, rest) = line.split_once("coding")?;
        let name = rest.strip_prefix([':', '='])?.trim_start();
        let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
        Some(name[..end.unwrap_or(name.len())].to_ascii_lowercase().replace('_', "-"))
    });
    let name = names.next();
    name.is_some_and(|name| {
        ["latin-1", "latin1", "iso-8859-1", "iso8859-1", "l1"].contains(&name.as_str())
    })
}

/// The requirements and options, each with the number of its first line, from 1.
pub fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut started: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(physical_lines(text)) {
        let (_, whole) = started.get_or_insert_with(|| (number, String::new()));
        let is_comment = line.trim_start().starts_with('#');
        if line.ends_with('\\') && !is_comment {
            whole.push_str(line.trim_matches('\\'));
            continue;
        }
        if is_comment {
            // A comment line also ends a continued requirement.
            whole.push(' ');
        }
        whole.push_str(line);
        lines.extend(started.take());
    }
    lines.extend(started);
    let meant = |(number, line): (usize, String)| {
        let line = without_comment(&line).trim();
        (!line.is_empty()).then(|| (number, line.to_string()))
    };
    lines.into_iter().filter_map(meant).collect()
}

/// Whether appended text would still belong to the last line.
pub fn ends_in_continuation(text: &str) -> bool {
    let last = physical_lines(text).last();
    last.is_some_and(|line| line.ends_with('\\') && !line.trim_start().starts_with('#'))
}

/// The lines as Python splits them.
fn physical_lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim_start_matches('\u{feff}');
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').flat_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.split(is_line_end)
    })
}

/// Whether a character other than a line feed ends a line in Python.
pub fn is_line_end(c: char) -> bool {
    matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The line without its comment, which starts with `#` at the start or after white space.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && before.is_whitespace() {
            return &line[..at];
        }
        before = c;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_by_its_byte_order_mark_or_comment() {
        let utf_16: Vec<u16> = "six # \u{1f40d}\n".encode_utf16().collect();
        let little: Vec<u8> = utf_16.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = utf_16.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        let wide = |bytes: fn(u32) -> [u8; 4]| -> Vec<u8> {
            "six # \u{1f40d}\n".chars().flat_map(|c| bytes(c.into())).collect()
        };
        for (mark, text) in [
            (&b"\xff\xfe"[..], little),
            (b"\xfe\xff", big),
            (b"\xff\xfe\0\0", wide(u32::to_le_bytes)),
            (b"\0\0\xfe\xff", wide(u32::to_be_bytes)),
        ] {
            assert_eq!(decode(&[mark, &text].concat()), "six # \u{1f40d}\n", "{mark:?}");
        }
        for (bytes, text) in [
            (&b"\xef\xbb\xbfsix"[..], "\u{feff}six"),
            (b"six # \xc3\xbc", "six # \u{fc}"),
            (b"six # \xfc", "six # \u{fffd}"),
            (b"# -*- coding: latin-1 -*-\n./\xfc.whl", "# -*- coding: latin-1 -*-\n./\u{fc}.whl"),
            (b"six\n# coding=ISO_8859-1\n# \xfc", "six\n# coding=ISO_8859-1\n# \u{fc}"),
            (b"six\n\n# coding=latin-1\n# \xfc", "six\n\n# coding=latin-1\n# \u{fffd}"),
            (b"# coding: utf-8\n# \xc3\xbc", "# coding: utf-8\n# \u{fc}"),
            (b"# my coding\n# \xfc", "# my coding\n# \u{fffd}"),
            (b"\xff\xfea\0b", "a\u{fffd}"),
            (b"\xff\xfe\0\xd8a\0", "\u{fffd}a"),
            (b"\xff\xfe\0\0\0\0\x11\0a", "\u{fffd}\u{fffd}"),
            (b"", ""),
        ] {
            assert_eq!(decode(bytes), text, "{bytes:?}");
        }
    }
}
