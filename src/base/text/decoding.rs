//! Text as a reader would decode it: without escapes, entities and terminal sequences, and what
//! base64 in it stands for.

use std::ops::RangeInclusive;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use regex_lite::{Captures, Regex};

use crate::limits;

/// Whether `is_found` holds for a text or for what it decodes to. `None`: there is too much text.
pub fn any_decoded(text: &str, is_found: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
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
    let lines = text.lines().map(without_mark).collect::<Vec<_>>().join("\n");
    Some(
        plain != text && search(&plain, layers - 1, room, is_found)?
            || lines.len() < text.trim_end().len() && search(&lines, layers - 1, room, is_found)?
            || search(&from_base64(text), layers - 1, room, is_found)?,
    )
}

/// Terminal sequences, the escapes of JSON and C, percent signs, quoted-printable, HTML entities,
/// and what a backslash quotes.
const ESCAPES: &str = r"(?s)\x1b\[[ -?]*[@-~]|\x1b\][^\x07\x1b]*|\\u\{([0-9a-fA-F]{1,6})\}|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|(?:\\x|[%=])([0-9a-fA-F]{2})|&#[xX]([0-9a-fA-F]{1,6});?|&#([0-9]{1,7});?|\\([0-7]{1,3})|&([A-Za-z0-9]{1,32});|\\(.)";

/// A text with its escapes replaced.
fn unescaped(text: &str) -> String {
    let replaced = |found: &Captures<'_>| {
        let number = |mut groups: RangeInclusive<usize>, radix: u32| {
            let digits = groups.find_map(|group| found.get(group))?.as_str();
            u32::from_str_radix(digits, radix).ok().and_then(char::from_u32).map(String::from)
        };
        let name = found.get(8).or(found.get(9)).map_or("", |name| name.as_str());
        let numbers = number(1..=5, 16).or_else(|| number(6..=6, 10));
        numbers.or_else(|| number(7..=7, 8)).unwrap_or_else(|| match name {
            "amp" => "&".into(),
            "lt" => "<".into(),
            "gt" => ">".into(),
            "quot" => "\"".into(),
            "lowbar" | "UnderBar" => "_".into(),
            "n" | "r" | "t" => "\n".into(),
            "e" => "\u{1b}".into(),
            // Another entity stands for nothing that a search needs.
            other => if found.get(9).is_some() { other } else { "" }.into(),
        })
    };
    // A test compiles the expression.
    Regex::new(ESCAPES).map_or(String::new(), |all| all.replace_all(text, replaced).into_owned())
}

/// A line without the marks or the number before it.
fn without_mark(line: &str) -> &str {
    let line = line.trim_start_matches([' ', '\t', '>', '|', '#', '*']);
    let behind = line.trim_start_matches(|c: char| c.is_ascii_digit());
    behind.strip_prefix(['\t', ':', '|', '\u{2192}']).unwrap_or(line)
}

/// The text that base64 in a text stands for. It may be wrapped, with marks or numbers before
/// its lines, and its start may be missing.
fn from_base64(text: &str) -> String {
    let lines = text.lines().map(without_mark);
    let joined: String = lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect();
    let joined = joined.replace('-', "+").replace('_', "/");
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
    let mut plain = String::new();
    for run in joined.split(|c| !is_part(c)).filter(|run| run.len() >= limits::BASE64_BYTES) {
        let run = format!("{run}AAA");
        for part in (0..4).map(|start| &run[start..]) {
            let bytes = BASE64_STANDARD.decode(&part[..part.len() / 4 * 4]).unwrap_or_default();
            // What was no base64 gives characters here and there.
            let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\u{1b}');
            let is_no_text = |c: char| c == char::REPLACEMENT_CHARACTER || !is_text(c);
            let decoded = String::from_utf8_lossy(&bytes);
            let texts = decoded.split(is_no_text);
            plain.extend(texts.filter(|text| text.len() >= limits::BASE64_BYTES));
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_replaced() {
        for (text, expected) in [
            (r#"a\u0062\x63\144\"\n\_\u{65}\U00000066"#, "abcd\"\n_ef"),
            ("a%62=63&#100;&#x65;&#102&lowbar;&quot;&lt;&amp;lt;&shy;", "abcdef_\"<&lt;"),
            ("a\u{1b}[1;31mb\u{1b}[0m\u{1b}]8;;x\u{7}c", "ab\u{7}c"),
            ("ü % = & \\", "ü % = & \\"),
        ] {
            assert_eq!(unescaped(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_are_found_in_what_they_decode_to() {
        let find = |text: &str| any_decoded(text, &mut |text| text.contains("run_command"));
        for text in [
            "run_command",
            r"run\\u005fcommand",
            // `>> run_command??`, also for URLs, wrapped, without its start, and nested.
            "Pj4gcnVuX2NvbW1hbmQ/Pw==",
            "see Pj4gcnVuX2NvbW1hbmQ_Pw now",
            "> Pj4gcnVu\n> X2NvbW1h\n> bmQ/Pw==",
            "     1\tPj4gcnVu\n     2\tX2NvbW1h\n     3\tbmQ/Pw==",
            "4gcnVuX2NvbW1hbmQ/Pw==",
            "UGo0Z2NuVnVYMk52YlcxaGJtUS9Qdz09",
            "%55Go0Z2NuVnVYMk52YlcxaGJtUS9Qdz09",
        ] {
            assert_eq!(find(text), Some(true), "{text}");
        }
        for text in ["", "run a command", "cnVuLWNvbW1hbmQ=", &"runcommand".repeat(100)] {
            assert_eq!(find(text), Some(false), "{text}");
        }
        assert_eq!(find(&"x".repeat(limits::DECODED_BYTES + 1)), None);
    }
}
