//! The words of a text as the ranking compares them: small letters, stems, and pairs of characters
//! in scripts that do not separate words.

use std::ops::RangeInclusive;

use super::stemmer;

/// Words that say nothing about a subject: English, German, French, Spanish, Portuguese, Italian
/// and Russian ones.
const STOP_WORDS: &str = include_str!("stop_words.txt");

/// Scripts without blanks between words: Thai, Japanese kana, Chinese characters, Hangul.
const UNSPACED: [RangeInclusive<char>; 5] = [
    '\u{e00}'..='\u{e7f}',
    '\u{3040}'..='\u{30ff}',
    '\u{3400}'..='\u{9fff}',
    '\u{ac00}'..='\u{d7af}',
    '\u{20000}'..='\u{3ffff}',
];

/// Whether a word, in small letters, says nothing about a subject.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.split_ascii_whitespace().any(|stop_word| stop_word == word)
}

/// The first three letters of words to search for: most words of a document are passed over by
/// them.
pub(super) struct WordStarts(Vec<bool>);

impl WordStarts {
    /// How many letters are distinguished: both cases of an ASCII letter are equal modulo this.
    const LETTERS: usize = 32;
    /// How many numbers [`WordStarts::index`] may return.
    const NUMBERS: usize = WordStarts::LETTERS.pow(3);

    /// Those of all words.
    pub(super) fn all() -> WordStarts {
        WordStarts(vec![true; WordStarts::NUMBERS])
    }

    /// Those of words with these stems.
    pub(super) fn of<'s>(stems: impl Iterator<Item = &'s str>) -> WordStarts {
        let mut starts = vec![false; WordStarts::NUMBERS];
        for stem in stems {
            let at = WordStarts::index(stem.as_bytes());
            match stem.len() {
                // The third letter may belong to an ending: `us` is the stem of `using`.
                ..=3 => {
                    let first = at - at % WordStarts::LETTERS;
                    starts[first..first + WordStarts::LETTERS].fill(true);
                }
                _ => starts[at] = true,
            }
        }
        WordStarts(starts)
    }

    /// A number for the first three letters, whatever their case. Words with different letters may
    /// have the same.
    #[inline]
    fn index(word: &[u8]) -> usize {
        let bits =
            |at: usize| word.get(at).map_or(0, |byte| usize::from(*byte) % WordStarts::LETTERS);
        (bits(0) * WordStarts::LETTERS + bits(1)) * WordStarts::LETTERS + bits(2)
    }
}

/// Kind of a byte of text.
#[derive(Clone, Copy, PartialEq)]
enum ByteKind {
    Blank,
    Letter,
    NotAscii,
}

const KINDS: [ByteKind; 256] = {
    let mut kinds = [ByteKind::NotAscii; 256];
    let mut byte = 0u8;
    while byte < 0x80 {
        if byte.is_ascii_alphanumeric() {
            kinds[byte as usize] = ByteKind::Letter;
        } else {
            kinds[byte as usize] = ByteKind::Blank;
        }
        byte += 1;
    }
    kinds
};

/// Calls `visit` with each word of a text that starts so, as it is written.
pub(super) fn for_each_word<'t>(
    text: &'t str,
    starts: &WordStarts,
    visit: &mut dyn FnMut(&'t str),
) {
    let mut bytes = text.as_bytes();
    let kind = |bytes: &[u8], at: usize| {
        bytes.get(at).map_or(ByteKind::Blank, |byte| KINDS[usize::from(*byte)])
    };
    while let [first, rest @ ..] = bytes {
        if KINDS[usize::from(*first)] == ByteKind::Blank {
            bytes = rest;
            continue;
        }
        let start = text.len() - bytes.len();
        let mut length = 0;
        while kind(bytes, length) == ByteKind::Letter {
            length += 1;
        }
        // C++ and C# are words, too.
        if length == 1 {
            let suffix = ["++", "#"].into_iter().find(|it| rest.starts_with(it.as_bytes()));
            length += suffix.map_or(0, str::len);
        }
        if kind(bytes, length) == ByteKind::NotAscii {
            let word = &text[start..];
            length = word.find(|c: char| !c.is_alphanumeric()).unwrap_or(word.len());
            visit_parts(&word[..length], visit);
            // What ended the word.
            length += word[length..].chars().next().map_or(0, char::len_utf8);
        } else if starts.0[WordStarts::index(&bytes[..length])] {
            visit(&text[start..start + length]);
        }
        bytes = &bytes[length..];
    }
}

/// Visits the parts of a word: those in unspaced scripts as pairs of characters.
fn visit_parts<'t>(word: &'t str, visit: &mut dyn FnMut(&'t str)) {
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let is_unspaced = is_unspaced(first);
        let end = rest.find(|c| self::is_unspaced(c) != is_unspaced).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        if !is_unspaced || part.chars().nth(1).is_none() {
            visit(part);
            continue;
        }
        let starts = part.char_indices().map(|(at, _)| at);
        let ends = starts.clone().skip(2).chain([part.len()]);
        starts.zip(ends).for_each(|(start, end)| visit(&part[start..end]));
    }
}

/// Whether the character belongs to a script without blanks between words.
pub(super) fn is_unspaced(c: char) -> bool {
    c >= *UNSPACED[0].start() && UNSPACED.iter().any(|range| range.contains(&c))
}

/// Writes a word into `buffer`, in small letters and shortened to its stem.
pub(super) fn write_stem(word: &str, buffer: &mut String) {
    write_shortened(word, stemmer::stem, buffer);
}

/// Writes a word into `buffer`, in small letters and shortened to what its own forms share.
pub(super) fn write_base(word: &str, buffer: &mut String) {
    write_shortened(word, stemmer::base, buffer);
}

fn write_shortened(word: &str, shorten: fn(&mut String), buffer: &mut String) {
    buffer.clear();
    if word.is_ascii() {
        buffer.push_str(word);
        buffer.make_ascii_lowercase();
    } else {
        buffer.push_str(&word.to_lowercase());
    }
    if buffer.bytes().all(|byte| byte.is_ascii_lowercase()) {
        shorten(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        for_each_word(text, &WordStarts::all(), &mut |word| words.push(word));
        words
    }

    #[test]
    fn texts_are_split_into_words_in_every_script() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("Merge PDFs, don't_split!", &["Merge", "PDFs", "don", "t", "split"]),
            ("a—b über Größe.", &["a", "b", "über", "Größe"]),
            ("Проверь программу", &["Проверь", "программу"]),
            ("把PDF合并成", &["把", "PDF", "合并", "并成"]),
            ("このFigmaの", &["この", "Figma", "の"]),
            ("한국어 x", &["한국", "국어", "x"]),
            ("C++ or c#, F-1 a+b", &["C++", "or", "c#", "F", "1", "a", "b"]),
            ("é", &["é"]),
            ("— é", &["é"]),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), *expected, "{text}");
        }
    }

    #[test]
    fn stems_have_small_letters() {
        let mut stem = String::new();
        for (word, expected) in [("Retries", "retri"), ("GRÖSSE", "grösse"), ("UTF8s", "utf8s")] {
            write_stem(word, &mut stem);
            assert_eq!(stem, expected);
        }
        assert!(is_stop_word("the") && is_stop_word("für") && !is_stop_word("pdf"));
    }
}
