//! Text as a reader would decode it: without escapes, entities and terminal sequences, and what
//! base64 in it stands for.

use crate::limits;

/// Whether `is_found` holds for a text or for what it decodes to. `None`: there is too much text.
pub(crate) fn any_decoded(text: &str, is_found: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
    search(text, limits::DECODED_LAYERS, &mut limits::DECODED_BYTES.clone(), is_found)
}

fn search(
    text: &str,
    layers: usize,
    room: &mut usize,
    is_found: &mut dyn FnMut(&str) -> bool,
) -> Option<bool> {
    *room = room.checked_sub(text.len())?;
    if text.is_empty() || is_found(text) {
        return Some(!text.is_empty());
    }
    if layers == 0 {
        return Some(false);
    }
    let plain = unescaped(text);
    Some(
        plain != text && search(&plain, layers - 1, room, is_found)?
            || search(&from_base64(text), layers - 1, room, is_found)?,
    )
}

/// A text with its escapes replaced: those of JSON, C and Markdown, percent signs, quoted-printable
/// and HTML entities. Terminal sequences are left out.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '&', '%', '=', '\u{1b}', '\u{9b}']) {
        let (before, escape) = rest.split_at(at);
        let (decoded, bytes) = read_escape(escape);
        plain.push_str(before);
        plain.extend(decoded);
        rest = &escape[bytes..];
    }
    plain + rest
}

/// Names of HTML entities; others stand for nothing that a search needs.
const ENTITIES: [(&str, char); 7] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("lowbar", '_'),
    ("UnderBar", '_'),
];

/// What an escape at the start of a text stands for, and its length in bytes.
fn read_escape(text: &str) -> (Option<char>, usize) {
    let number = |at: usize, radix: u32, most: usize| {
        let digits = text.get(at..)?;
        let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
        let end = digits.bytes().take(most).take_while(is_digit).count();
        let c = u32::from_str_radix(&digits[..end], radix).ok().and_then(char::from_u32)?;
        Some((Some(c), at + end))
    };
    let mut chars = text.chars();
    let (first, second) = (chars.next().unwrap_or_default(), chars.next());
    let decoded = match (first, second) {
        ('\\', Some('u' | 'U')) if text[2..].starts_with('{') => number(3, 16, 8),
        ('\\', Some('u')) => number(2, 16, 4),
        ('\\', Some('U')) => number(2, 16, 8),
        ('\\', Some('x')) => number(2, 16, 2),
        ('\\', Some('0'..='7')) => number(1, 8, 3),
        ('\\', Some('n' | 'r' | 't')) => Some((Some('\n'), 2)),
        ('\\', Some('e')) => Some((Some('\u{1b}'), 2)),
        ('\\', Some(other)) => Some((Some(other), 1 + other.len_utf8())),
        ('%' | '=', _) => number(1, 16, 2).filter(|(_, bytes)| *bytes == 3),
        ('&', Some('#')) => number(3, 16, 6).filter(|_| text[2..].starts_with(['x', 'X'])),
        ('&', _) => read_entity(&text[1..]),
        ('\u{1b}', Some('[')) => Some((None, sequence_bytes(text, 2))),
        ('\u{9b}', _) => Some((None, sequence_bytes(text, first.len_utf8()))),
        ('\u{1b}', Some(']')) => Some((None, text.find(['\u{7}', '\\']).unwrap_or(1) + 1)),
        _ => None,
    };
    let decoded = decoded.or_else(|| number(2, 10, 7).filter(|_| text.starts_with("&#")));
    decoded.unwrap_or((Some(first), first.len_utf8()))
}

/// The entity with the name at the start of a text.
fn read_entity(text: &str) -> Option<(Option<char>, usize)> {
    let (name, _) = text.split_once(';').filter(|(name, _)| name.len() <= limits::ENTITY_BYTES)?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric());
    let known = ENTITIES.iter().find(|(known, _)| *known == name);
    is_name.then(|| (known.map(|(_, c)| *c), 2 + name.len()))
}

/// The length of a terminal sequence whose parameters begin at `start`.
fn sequence_bytes(text: &str, start: usize) -> usize {
    let is_parameter = |byte: &u8| matches!(byte, 0x20..=0x3f);
    let parameters = text.bytes().skip(start).take_while(is_parameter).count();
    text.ceil_char_boundary(start + parameters + 1)
}

/// The ASCII text that base64 in a text stands for. It may be wrapped, with marks or numbers before
/// its lines, and its start may be missing.
fn from_base64(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim_start_matches([' ', '\t', '>', '|', '#', '*']);
        let behind = line.trim_start_matches(|c: char| c.is_ascii_digit());
        behind.strip_prefix(['\t', ':', '|', '\u{2192}']).unwrap_or(line)
    });
    let joined: String = lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_');
    let runs = joined.split(|c| !is_part(c)).filter(|run| run.len() >= limits::BASE64_BYTES);
    let mut plain = String::new();
    for (run, start) in runs.flat_map(|run| (0..4).map(move |start| (run, start))) {
        let mut bits = 0u32;
        for (at, byte) in run.bytes().skip(start).enumerate() {
            let value = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' | b'-' => 62,
                _ => 63,
            };
            bits = bits << 6 | u32::from(value);
            let decoded = (bits >> (6 - 2 * (at % 4)) & 0xff) as u8;
            if at % 4 > 0 && (decoded.is_ascii_graphic() || decoded.is_ascii_whitespace()) {
                plain.push(char::from(decoded));
            }
        }
        plain.push('\n');
    }
    plain
}
