//! Prepares text for output: folds it into a line, truncates it, and removes
//! characters that control a terminal.

use std::borrow::Cow;
use std::path::Path;

use unicode_normalization::UnicodeNormalization;
use unicode_width::UnicodeWidthChar;

use crate::limits;

mod decoding;
mod fence;
mod invisible;
mod sentences;

pub use decoding::any_decoded;
pub use fence::{FenceLine, OpenFences, fence_language, is_shell_language, single_fence};
pub use invisible::{TerminalTextFilter, find_hidden, is_invisible, without_invisible};
pub use sentences::{first_sentences, whole_sentences};

/// Folds white space into single blanks, and truncates the line to `most_bytes` at a
/// character's boundary.
pub fn one_line(text: &str, most_bytes: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most_bytes));
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > most_bytes {
            line.truncate(line.floor_char_boundary(most_bytes));
            line.push('…');
            break;
        }
    }
    line
}

/// The last line that is not blank.
pub fn last_line(text: &str) -> &str {
    text.trim_end().rsplit('\n').next().unwrap_or_default()
}

/// Truncates a text to `most_bytes` and adds an ellipsis.
pub fn truncate(text: &str, most_bytes: usize) -> Cow<'_, str> {
    if text.len() <= most_bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", text[..text.floor_char_boundary(most_bytes)].trim_end()))
}

/// Same as [`truncate`], but between two words if possible.
pub fn truncate_words(text: &str, most_bytes: usize) -> Cow<'_, str> {
    if text.len() <= most_bytes {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most_bytes);
    // A word that ends exactly here is complete.
    let is_whole = text[end..].starts_with(char::is_whitespace);
    let end = match text[..end].rfind(char::is_whitespace) {
        // Scripts without blanks, and words that fill more than half of the limit.
        Some(at) if !is_whole && at >= end / 2 => at,
        _ => end,
    };
    let kept = text[..end].trim_end_matches(|c: char| c.is_whitespace() || ",;:-–—(".contains(c));
    Cow::Owned(format!("{kept}…"))
}

/// A number with its noun: `1 skill`, `2 skills`.
pub fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// The first names, and the number of the others.
pub fn first_names(all: &[&str]) -> String {
    let mut text = all[..all.len().min(limits::LISTED_NAMES)].join(", ");
    if all.len() > limits::LISTED_NAMES {
        text.push_str(&format!(" and {} more", all.len() - limits::LISTED_NAMES));
    }
    text
}

/// A number with commas: `12,345`.
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A file's name for one line of a list, whatever characters it contains.
pub fn one_line_name(name: &str) -> String {
    invisible::escape_invisible(name).replace(char::is_control, "\u{fffd}")
}

/// A file's name without what some file systems ignore: letter case, normal forms, invisible
/// characters, dots and blanks at the end.
pub fn folded_name(name: &str) -> String {
    let visible = without_invisible(name);
    let decomposed: String = visible.trim_end_matches(['.', ' ']).nfd().collect();
    decomposed.to_uppercase().to_lowercase().nfd().collect()
}

/// Replaces characters that control a terminal, and escapes invisible characters.
pub fn printable(text: &str) -> Cow<'_, str> {
    match invisible::escape_invisible(text) {
        Cow::Borrowed(text) => without_controls(text),
        Cow::Owned(text) => Cow::Owned(without_controls(&text).into_owned()),
    }
}

/// Replaces characters that control a terminal: all control characters except tab
/// and line feed, and so all escape sequences. A carriage return before a line feed
/// is removed; alone it would overwrite a line.
pub fn without_controls(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            c if is_control(c) => clean.push('\u{fffd}'),
            c => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

/// The text of bytes; those that are not UTF-8 are shown as `\xff`.
pub fn escape_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// Prepares text for every endpoint: removes escape sequences of a terminal, and
/// replaces control characters other than tab, line feed and carriage return, which
/// some endpoints refuse.
pub fn sendable(text: &str) -> Cow<'_, str> {
    // Searches bytes, not characters, since each request checks its whole history.
    let is_refused = |byte: u8| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    let mut rest = text;
    let mut clean = String::new();
    while let Some(at) = rest.bytes().position(is_refused) {
        clean.push_str(&rest[..at]);
        let sequence = escape_sequence(&rest[at..]);
        if sequence == 0 {
            clean.push('\u{fffd}');
        }
        rest = &rest[at + sequence.max(1)..];
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(clean + rest)
}

/// Length of the complete escape sequence (ECMA-48) at the start of the text; 0
/// without one.
fn escape_sequence(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes {
        // Control sequences, such as colours: parameters, then one final byte.
        [0x1b, b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| !matches!(byte, 0x20..=0x3f));
            let is_final = |end: &usize| matches!(rest[*end], 0x40..=0x7e);
            end.filter(is_final).map_or(0, |end| end + 3)
        }
        // Commands to the terminal, such as a title or a link, end with BEL or ESC \\.
        [0x1b, b']', ..] => {
            let bell = text.find('\x07').map(|at| at + 1);
            let terminator = text[1..].find("\x1b\\").map(|at| at + 3);
            bell.into_iter().chain(terminator).min().unwrap_or(0)
        }
        [0x1b, b'0'..=b'~', ..] => 2,
        [0x1b, b'(' | b')', b'0'..=b'~', ..] => 3,
        _ => 0,
    }
}

/// Returns up to `most` names similar to `wanted`, the most similar first.
pub fn similar_names<'n>(
    wanted: &str,
    names: impl Iterator<Item = &'n str>,
    most: usize,
) -> Vec<&'n str> {
    let wanted = normalize(wanted);
    let mut found: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let candidate = normalize(name);
            let distance = if candidate == wanted {
                0
            } else if !wanted.is_empty()
                && (candidate.contains(&wanted) || wanted.contains(&candidate))
            {
                1
            } else {
                edit_distance(&wanted, &candidate)
            };
            // A third of the letters may differ.
            (distance <= 1 + wanted.chars().count() / 3).then_some((distance, name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).take(most).collect()
}

/// Keeps letters and digits in lower case: `My_Skill` and `my-skill` are equal.
fn normalize(name: &str) -> String {
    // Limited, since the edit distance takes quadratic time.
    name.chars().filter(|c| c.is_alphanumeric()).take(64).flat_map(char::to_lowercase).collect()
}

/// Levenshtein distance.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Quotes a path for a shell, if necessary.
pub fn shell_quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%:,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The start of a line that fits into this many columns of a terminal.
pub fn fitting(line: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = line.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > columns
    });
    &line[..end.map_or(line.len(), |(end, _)| end)]
}

/// A line that fits into this many columns of a terminal; an ellipsis marks that it was cut.
pub fn shortened(line: &str, columns: usize) -> Cow<'_, str> {
    if fitting(line, columns).len() == line.len() {
        return Cow::Borrowed(line);
    }
    Cow::Owned(format!("{}…", fitting(line, columns.saturating_sub(1)).trim_end()))
}

/// The columns of a terminal that a line takes.
pub fn columns(line: &str) -> usize {
    line.chars().filter_map(UnicodeWidthChar::width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (4096, "4,096"), (1_000_000, "1,000,000")] {
            assert_eq!(group_digits(number), text);
        }
    }

    #[test]
    fn text_is_folded_and_truncated_between_characters() {
        assert_eq!(one_line("  a\n\tb  c ", 100), "a b c");
        assert_eq!(one_line(&"ä".repeat(400), 301), format!("{}…", "ä".repeat(150)));
        assert_eq!(truncate("äää", 3), "ä…");
        assert_eq!(truncate("abc", 3), "abc");
        assert_eq!(truncate_words("abc", 3), "abc");
        assert_eq!(truncate_words("one two three", 11), "one two…");
        assert_eq!(truncate_words("one two three", 7), "one two…");
        assert_eq!(truncate_words("one, two", 6), "one…");
        assert_eq!(truncate_words("a descriptionwithoutblanks", 16), "a descriptionwit…");
        assert_eq!(truncate_words("äää", 3), "ä…");
    }

    #[test]
    fn printable_text_does_not_control_a_terminal() {
        let table = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("a\x1b[31mred", "a\u{fffd}[31mred"),
            ("\x07\x08\x7f", "\u{fffd}\u{fffd}\u{fffd}"),
            ("dos\r\nline", "dos\nline"),
            ("over\rwritten", "over\u{fffd}written"),
            ("c1 \u{9b}31m", "c1 \u{fffd}31m"),
            ("abc\u{202e}fed", "abc\\u{202e}fed"),
            ("grüße 😀", "grüße 😀"),
        ];
        for (text, expected) in table {
            assert_eq!(printable(text), expected);
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_escaped() {
        let table: [(&[u8], &str); 4] = [
            ("grüße".as_bytes(), "grüße"),
            (b"caf\xe9.md", "caf\\xe9.md"),
            (b"\xff\xfe", "\\xff\\xfe"),
            (b"cut \xe2\x82", "cut \\xe2\\x82"),
        ];
        for (bytes, expected) in table {
            assert_eq!(escape_bytes(bytes), expected);
        }
    }

    #[test]
    fn only_similar_names_are_found() {
        let names = ["calculator", "data-explorer", "text-analyzer"];
        let near = |wanted| similar_names(wanted, names.into_iter(), 3);
        assert_eq!(near("calcluator"), ["calculator"]);
        assert_eq!(near("Data_Explorer"), ["data-explorer"]);
        assert_eq!(near("calc"), ["calculator"]);
        assert!(near("weather").is_empty());
        assert!(near("").is_empty());
    }

    #[test]
    fn sent_text_does_not_control_a_terminal() {
        let table = [
            ("plain\ttext\r\n", "plain\ttext\r\n"),
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b(Bx\x1b7", "x"),
            ("a\0b\x08", "a\u{fffd}b\u{fffd}"),
            ("cut \x1b[", "cut \u{fffd}["),
            ("cut \x1b", "cut \u{fffd}"),
            ("\x1b[31é", "\u{fffd}[31é"),
        ];
        for (text, expected) in table {
            assert_eq!(sendable(text), expected, "{text:?}");
        }
    }
}
