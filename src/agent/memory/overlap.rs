//! Decides whether one fact is another version of a second one.
//!
//! Words are separated by blanks and have no punctuation around them; hashtags are words,
//! except `#important`. They are compared in lower case. The overlap is the number of common
//! words divided by the size of the larger set. Distinctive words ("server A", "server B",
//! "Python 3.11") must be the same in both: those with a digit, a capital, or a single
//! letter. Their case counts, except for a capital only at the start of the text.

use std::collections::BTreeSet;

use crate::memory::fact::IMPORTANT_TAG;

/// The set of words of a text.
#[derive(Debug)]
pub(super) struct WordSet {
    all: BTreeSet<String>,
    distinctive: BTreeSet<String>,
    /// The first word, and in lower case, if it is distinctive only because of a capital at
    /// its start.
    first: Option<(String, String)>,
}

/// The minimal overlap in tenths for two versions of one fact, exclusive.
const SAME_TENTHS: usize = 7;

/// The minimal overlap in tenths for similar facts, exclusive.
const SIMILAR_TENTHS: usize = 4;

impl WordSet {
    /// Splits a text into words.
    pub(super) fn new(text: &str) -> WordSet {
        let mut words = WordSet { all: BTreeSet::new(), distinctive: BTreeSet::new(), first: None };
        for (index, word) in text.split_whitespace().map(without_punctuation).enumerate() {
            if word.is_empty() || word.eq_ignore_ascii_case(IMPORTANT_TAG) {
                continue;
            }
            let lower = word.to_lowercase();
            if is_distinctive(word) {
                // `It` may start a sentence; `IT` and `A` are distinctive.
                let rest = word.chars().skip(1).any(is_distinctive_char);
                if index == 0 && !rest && !is_distinctive(&lower) {
                    words.first = Some((word.to_string(), lower.clone()));
                }
                words.distinctive.insert(word.to_string());
            }
            words.all.insert(lower);
        }
        words
    }

    /// Whether the overlap is large enough and all distinctive words are the same.
    pub(super) fn is_version_of(&self, other: &WordSet) -> bool {
        self.shared(other, SAME_TENTHS).is_some()
            && self.distinctive_words_are_in(other)
            && other.distinctive_words_are_in(self)
    }

    /// The number of common words and the size of the larger set, if the texts are similar.
    pub(super) fn nearness(&self, other: &WordSet) -> Option<(usize, usize)> {
        self.shared(other, SIMILAR_TENTHS)
    }

    /// The number of common words and the size of the larger set, if their ratio is above so
    /// many tenths.
    fn shared(&self, other: &WordSet, parts: usize) -> Option<(usize, usize)> {
        let larger = self.all.len().max(other.all.len());
        let smaller = self.all.len().min(other.all.len());
        if smaller * 10 <= larger * parts {
            return None;
        }
        let shared = self.all.intersection(&other.all).count();
        (shared * 10 > larger * parts).then_some((shared, larger))
    }

    /// Whether the other set has all distinctive words of this one.
    fn distinctive_words_are_in(&self, other: &WordSet) -> bool {
        let mut missing = self.distinctive.difference(&other.distinctive);
        missing.all(|word| {
            let own = self.first.as_ref().filter(|(first, _)| first == word);
            own.is_some_and(|(_, lower)| other.all.contains(lower))
        })
    }
}

/// The word without the punctuation around it. Characters that belong to the word stay, as in
/// `C++`, `C#`, `-5`, `50%`.
fn without_punctuation(word: &str) -> &str {
    let is_around = |c: char| ".,;:!?\"'`()[]{}<>*_…“”‘’«»„".contains(c);
    word.trim_matches(is_around)
}

fn is_distinctive_char(c: char) -> bool {
    c.is_numeric() || c.is_uppercase()
}

fn is_distinctive(word: &str) -> bool {
    let mut parts = word.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    word.chars().any(is_distinctive_char) || parts.any(|part| part.chars().count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_version(one: &str, other: &str) -> bool {
        let found = WordSet::new(one).is_version_of(&WordSet::new(other));
        assert_eq!(found, WordSet::new(other).is_version_of(&WordSet::new(one)), "{one}");
        found
    }

    #[test]
    fn facts_are_versions_by_their_words_unless_a_distinctive_word_differs() {
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
            assert!(is_version(one, other), "{one} / {other}");
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
            assert!(!is_version(one, other), "{one} / {other}");
        }
    }
}
