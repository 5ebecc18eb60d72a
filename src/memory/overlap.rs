//! Whether one fact is another, told anew.
//!
//! Words are what stands between blanks, without the punctuation around it, and
//! hashtags among them, but for `#important`; they are compared in lower case.
//! The overlap is what both share over the larger of the two sets. Words that
//! tell things apart ("server A", "server B", "Python 3.11") must be the same in
//! both: those with a digit, a capital, or a single letter in them. They are
//! compared as they are written, but for a capital that only begins the text.

use std::collections::BTreeSet;

/// The words of a text.
#[derive(Debug)]
pub(crate) struct WordSet {
    all: BTreeSet<String>,
    telling: BTreeSet<String>,
    /// The first word in lower case, where a capital at its beginning is all
    /// that makes it a telling one.
    first: Option<(String, String)>,
}

/// Over how many parts of ten of the larger set two facts are one.
const SAME: usize = 7;

/// Over how many parts of ten they are near each other.
const NEAR: usize = 4;

impl WordSet {
    /// Takes a text apart.
    pub(crate) fn of(text: &str) -> WordSet {
        let mut words = WordSet { all: BTreeSet::new(), telling: BTreeSet::new(), first: None };
        for (index, word) in text.split_whitespace().map(bare).enumerate() {
            if word.is_empty() || word.eq_ignore_ascii_case(super::facts::IMPORTANT_TAG) {
                continue;
            }
            let lower: String = lower(word).collect();
            if is_telling(word) {
                // `It` begins a sentence, `IT` does not, and neither does `A`.
                let rest = word.chars().skip(1).any(is_mark);
                if index == 0 && !rest && !is_telling(&lower) {
                    words.first = Some((word.to_string(), lower.clone()));
                }
                words.telling.insert(word.to_string());
            }
            words.all.insert(lower);
        }
        words
    }

    /// The overlap as shared words and the larger number of words, if it is large
    /// enough and all telling words are the same.
    pub(crate) fn overlap(&self, other: &WordSet) -> Option<(usize, usize)> {
        let (shared, larger) = self.shared(other, SAME)?;
        (self.tells(other) && other.tells(self)).then_some((shared, larger))
    }

    /// The same where fewer words suffice, and telling ones may differ.
    pub(crate) fn nearness(&self, other: &WordSet) -> Option<(usize, usize)> {
        self.shared(other, NEAR)
    }

    /// Shared words and the larger number of words, above so many parts of ten.
    fn shared(&self, other: &WordSet, parts: usize) -> Option<(usize, usize)> {
        let larger = self.all.len().max(other.all.len());
        let smaller = self.all.len().min(other.all.len());
        if smaller * 10 <= larger * parts {
            return None;
        }
        let shared = self.all.intersection(&other.all).count();
        (shared * 10 > larger * parts).then_some((shared, larger))
    }

    /// Whether a text may have enough of these words to be near: most have not,
    /// and are not taken apart.
    pub(crate) fn may_be_in(&self, text: &str) -> bool {
        let mut word = String::new();
        let mut shared = 0;
        for other in text.split_whitespace().map(bare) {
            word.clear();
            word.extend(lower(other));
            shared += usize::from(self.all.contains(&word));
        }
        shared * 10 > self.all.len() * NEAR
    }

    /// Whether the other has all telling words of this one.
    fn tells(&self, other: &WordSet) -> bool {
        let mut missing = self.telling.difference(&other.telling);
        missing.all(|word| {
            let own = self.first.as_ref().filter(|(first, _)| first == word);
            own.is_some_and(|(_, lower)| other.all.contains(lower))
        })
    }
}

/// The word without what stands around it in a sentence. What makes another word
/// of it stays, as in `C++`, `C#`, `-5`, `50%`.
fn bare(word: &str) -> &str {
    let is_around = |c: char| ".,;:!?\"'`()[]{}<>*_…“”‘’«»„".contains(c);
    word.trim_matches(is_around)
}

fn lower(word: &str) -> impl Iterator<Item = char> {
    word.chars().flat_map(char::to_lowercase)
}

fn is_mark(c: char) -> bool {
    c.is_numeric() || c.is_uppercase()
}

fn is_telling(word: &str) -> bool {
    let mut parts = word.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    word.chars().any(is_mark) || parts.any(|part| part.chars().count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_one(one: &str, other: &str) -> bool {
        let found = WordSet::of(one).overlap(&WordSet::of(other));
        assert_eq!(found, WordSet::of(other).overlap(&WordSet::of(one)), "{one}");
        assert!(found.is_none() || WordSet::of(one).may_be_in(other));
        found.is_some()
    }

    /// R-FACT-3.
    #[test]
    fn facts_are_one_by_their_words_unless_a_telling_word_differs() {
        let one = [
            ("user likes green tea", "user likes green tea"),
            ("the user likes green tea", "The user likes Green tea.".to_lowercase().leak()),
            ("the user likes green tea", "The user likes green tea!"),
            ("it rains in autumn here", "It rains in autumn here"),
            ("user prefers dark mode in the editor", "User prefers dark mode in the new editor"),
            ("server A is in Berlin since May", "server A is in Berlin, since May"),
            ("the build takes long at night", "the build takes long at night #work"),
            ("the build takes long", "the build takes long #important"),
        ];
        for (one, other) in one {
            assert!(is_one(one, other), "{one} / {other}");
        }
        let two = [
            ("", ""),
            ("!!!", "!!!"),
            ("user likes tea", "user likes coffee"),
            // 7 of 10 are not more than 70 %.
            ("ab bc cd de ef fg gh hi ij jk", "ab bc cd de ef fg gh xx yy zz"),
            ("server A is in the cellar now", "server B is in the cellar now"),
            ("server a is in the cellar now", "server b is in the cellar now"),
            ("the old server-a is in the cellar", "the old server-b is in the cellar"),
            ("the office is on floor 3 today", "the office is on floor 4 today"),
            ("the office is on floor three today", "the office is on floor 3 today"),
            ("the office is in Berlin since spring", "the office is in Paris since spring"),
            ("Paris is where the user lives now", "London is where the user lives now"),
            ("user likes the Apple pie of mother", "user likes the apple pie of mother"),
            ("the user knows C++ well enough", "the user knows C# well enough"),
            ("the user lives at number ½ now", "the user lives at number ¼ now"),
            ("the limit of it is -5 now", "the limit of it is 5 now"),
        ];
        for (one, other) in two {
            assert!(!is_one(one, other), "{one} / {other}");
        }
    }
}
