//! Invisible characters: they hide text from users that a model reads, or make a line
//! look like another one.
//!
//! In output for users they are escaped. In an answer some are part of the text:
//! joiners of letters and emoji, the tags of a flag, marks of direction.

use std::borrow::Cow;

/// First character of flags that are written with tags.
const FLAG: char = '\u{1f3f4}';
const TAG_END: char = '\u{e007f}';
/// Most tags in a flag: a country and a part of it.
const TAGS: usize = 12;
/// Longest row of invisible characters that may be part of the text.
const IN_A_ROW: usize = 16;

/// Whether a character shows nothing or changes how others are shown. Control
/// characters are not included.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Removes invisible characters.
pub fn without_invisible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(is_invisible, ""))
}

/// Escapes invisible characters as `\u{200b}`, except those that join or select others than
/// ASCII.
pub(super) fn escape_invisible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut is_after_ascii = false;
    classify(None, text, |_, c, is_text| {
        if !is_invisible(c) || is_text && !is_direction_mark(c) && !is_after_ascii {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
        is_after_ascii = c.is_ascii();
    });
    Cow::Owned(shown)
}

/// Invisible characters that are not part of the text, with their positions.
pub fn find_hidden(text: &str) -> Vec<(usize, char)> {
    let mut found = Vec::new();
    if !text.is_ascii() {
        classify(None, text, |at, c, is_text| {
            if !is_text {
                found.push((at, c));
            }
        });
    }
    found
}

/// Replaces invisible characters that are not part of an answer's text. The answer
/// comes in pieces, which may split characters that belong together.
#[derive(Debug, Default)]
pub struct TerminalTextFilter {
    before: Option<char>,
    held: String,
}

impl TerminalTextFilter {
    /// Adds a piece, and returns the text that can be shown now.
    pub fn add(&mut self, piece: &str) -> String {
        let mut text = std::mem::take(&mut self.held) + piece;
        let row = text.chars().rev().take_while(|c| is_invisible(*c));
        let row: usize = row.take(IN_A_ROW + 1).map(char::len_utf8).sum();
        // The next character decides whether they join anything.
        if text[text.len() - row..].chars().count() <= IN_A_ROW {
            self.held = text.split_off(text.len() - row);
        }
        self.filter(&text)
    }

    /// Returns the rest at the end of the answer.
    pub fn end(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        let rest = self.filter(&held);
        self.before = None;
        rest
    }

    fn filter(&mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let before = self.before;
        classify(before, text, |_, c, is_text| {
            shown.push(if is_text { c } else { '\u{fffd}' });
        });
        self.before = text.chars().next_back().or(before);
        shown
    }
}

/// Calls `visit` for each character with its position and whether it is part of the
/// text. `before` is the character before the text.
fn classify(mut before: Option<char>, text: &str, mut visit: impl FnMut(usize, char, bool)) {
    let mut tags_left = 0;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        if before == Some(FLAG) {
            tags_left = flag_tags_length(&text[at..]);
        }
        let is_text = !is_invisible(c)
            || tags_left > 0
            || is_direction_mark(c)
            || selects_variant(before, c)
            || matches!(c, '\u{200c}' | '\u{200d}')
                && before.is_some_and(can_be_joined)
                && rest.chars().next().is_some_and(can_be_joined);
        tags_left = tags_left.saturating_sub(1);
        visit(at, c, is_text);
        before = Some(c);
    }
}

/// Whether a character changes the direction of the text around it.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// Number of characters in the tags of a flag, including the end tag.
fn flag_tags_length(text: &str) -> usize {
    let tags = text.chars().take(TAGS);
    let tags = tags.take_while(|c| matches!(c, '\u{e0020}'..='\u{e007e}')).count();
    match text.chars().nth(tags) {
        Some(TAG_END) if tags > 0 => tags + 1,
        _ => 0,
    }
}

/// Whether a character selects a variant of the one before it: emoji or text, or a
/// variant of a Chinese character. A second selector has no effect.
fn selects_variant(before: Option<char>, c: char) -> bool {
    let Some(before) = before.filter(|before| !is_invisible(*before)) else {
        return false;
    };
    match c {
        '\u{fe00}'..='\u{fe0f}' => !before.is_ascii() || matches!(before, '0'..='9' | '#' | '*'),
        '\u{e0100}'..='\u{e01ef}' => {
            matches!(before, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        }
        _ => false,
    }
}

/// Whether a joiner can join this character: a letter, a mark on one, or an emoji.
fn can_be_joined(c: char) -> bool {
    let is_emoji_form = matches!(c, '\u{fe0e}' | '\u{fe0f}');
    let is_shown = !c.is_ascii() && !c.is_whitespace() && !c.is_control() && !is_invisible(c);
    c.is_alphabetic() || is_shown || is_emoji_form
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers, and what is shown of them.
    const TEXTS: [(&str, &str); 20] = [
        ("plain\ttext\n", "plain\ttext\n"),
        (
            "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥",
            "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥",
        ),
        ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        ("क्\u{200d}ष", "क्\u{200d}ष"),
        (
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}!",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}!",
        ),
        ("🏴\u{e0067}\u{e0062} x", "🏴\u{fffd}\u{fffd} x"),
        ("🏴\u{e007f}", "🏴\u{fffd}"),
        ("a\u{e0041}\u{e007f}", "a\u{fffd}\u{fffd}"),
        ("א\u{200f}! \u{200e}a \u{61c}", "א\u{200f}! \u{200e}a \u{61c}"),
        ("a\u{200d} b", "a\u{fffd} b"),
        ("a\u{200d}\u{200c}b", "a\u{fffd}\u{fffd}b"),
        ("1\u{200d}2", "1\u{fffd}2"),
        ("\u{200d}a", "\u{fffd}a"),
        ("a\u{200b}b\u{2060}c\u{feff}d\u{ad}e", "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e"),
        ("a\u{2028}b\u{202e}c\u{2066}d", "a\u{fffd}b\u{fffd}c\u{fffd}d"),
        ("✔\u{fe0f} 1\u{fe0f}\u{20e3} a\u{fe0f}", "✔\u{fe0f} 1\u{fe0f}\u{20e3} a\u{fffd}"),
        ("✔\u{fe0f}\u{fe0e}", "✔\u{fe0f}\u{fffd}"),
        ("葛\u{e0100} a\u{e0100}", "葛\u{e0100} a\u{fffd}"),
        ("\u{fff9}a\u{fffa}b\u{fffb}", "\u{fffd}a\u{fffd}b\u{fffd}"),
        ("ends \u{200b}", "ends \u{fffd}"),
    ];

    #[test]
    fn an_answer_is_filtered_independently_of_its_pieces() {
        for (text, expected) in TEXTS {
            let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            for cut in ends {
                let mut answer = TerminalTextFilter::default();
                let (begin, end) = text.split_at(cut);
                let shown = answer.add(begin) + &answer.add(end) + &answer.end();
                assert_eq!(shown, expected, "{text:?} cut at {cut}");
            }
            let mut answer = TerminalTextFilter::default();
            let mut shown: String = text.chars().map(|c| answer.add(&c.to_string())).collect();
            shown += &answer.end();
            assert_eq!(shown, expected, "{text:?} in single characters");
            let count = expected.matches('\u{fffd}').count();
            assert_eq!(find_hidden(text).len(), count, "{text:?}");
        }
        // A long row is not held back.
        let mut answer = TerminalTextFilter::default();
        let shown = answer.add(&"\u{200b}".repeat(1000));
        assert_eq!(shown.chars().count(), 1000);
    }

    #[test]
    fn invisible_characters_are_escaped_for_users() {
        for (text, expected) in [
            ("a\u{200b}b\u{202e}c", "a\\u{200b}b\\u{202e}c"),
            ("👨\u{200d}👩 ✔\u{fe0f}", "👨\u{200d}👩 ✔\u{fe0f}"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("a\u{200d}b \u{200e}", "a\\u{200d}b \\u{200e}"),
            ("x\u{e0041}", "x\\u{e0041}"),
            ("grüße", "grüße"),
        ] {
            assert_eq!(escape_invisible(text), expected);
        }
        assert_eq!(without_invisible("a\u{200b}\u{e0041}b"), "ab");
    }
}
