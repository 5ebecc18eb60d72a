//! Sentences of a text.

use std::borrow::Cow;

use crate::text::truncate_words;

/// Abbreviations that do not end a sentence, although a capital or a digit may follow.
const ABBREVIATIONS: [&str; 5] = ["e.g", "i.e", "vs", "incl", "approx"];

/// The text, or as many of its first sentences as have at most `most_bytes`. If the first one is
/// longer, it is cut between two words.
pub fn first_sentences(text: &str, most_bytes: usize) -> Cow<'_, str> {
    if text.len() <= most_bytes {
        return Cow::Borrowed(text);
    }
    match whole_sentences(text, most_bytes) {
        "" => truncate_words(text, most_bytes),
        sentences => Cow::Borrowed(sentences),
    }
}

/// As many of the first sentences as have at most `most_bytes`; empty if the first one is longer.
pub fn whole_sentences(text: &str, most_bytes: usize) -> &str {
    let ends =
        text.char_indices().filter(|(_, c)| matches!(c, '.' | '!' | '?' | '。' | '！' | '？'));
    let ends = ends.map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= most_bytes);
    let last = ends.filter(|end| is_sentence_end(&text[..*end], &text[*end..])).last();
    &text[..last.unwrap_or(0)]
}

/// Whether a full stop, or the like, at the end of `before` ends a sentence.
fn is_sentence_end(before: &str, behind: &str) -> bool {
    if behind.is_empty() || before.ends_with(['。', '！', '？']) {
        return true;
    }
    let next = behind.trim_start();
    let word = before.rsplit([' ', '(']).next().unwrap_or_default().trim_end_matches('.');
    let is_abbreviation = ABBREVIATIONS.iter().any(|it| word.eq_ignore_ascii_case(it));
    next.len() < behind.len() && !next.starts_with(char::is_lowercase) && !is_abbreviation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_sentences() {
        let table = [
            ("One. Two! Three?", 16, "One. Two! Three?"),
            ("One. Two! Three?", 15, "One. Two!"),
            ("One. Two! Three?", 8, "One."),
            ("One. Two! Three?", 3, "One…"),
            ("Reads v1.2 files, e.g. PDF ones. Then more.", 35, "Reads v1.2 files, e.g. PDF ones."),
            ("Reads files (e.g. PDF) in one go", 25, "Reads files (e.g. PDF) in…"),
            ("A tool etc. and so on. More of it.", 25, "A tool etc. and so on."),
            ("Uses Node.js. For the web.", 14, "Uses Node.js."),
            ("读取文件。写入文件。", 20, "读取文件。"),
        ];
        for (text, most, expected) in table {
            assert_eq!(first_sentences(text, most), expected, "{text}");
        }
        assert_eq!(whole_sentences("One two three. Four.", 10), "");
    }
}
