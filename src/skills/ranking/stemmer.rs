//! Stems of English words, by Porter's algorithm (M. F. Porter, "An algorithm for suffix
//! stripping", Program 14/3, 1980): `retries` and `retrying` become `retri`. The
//! endings `ent` and `ence` stay: `excellence` is not about Excel.
//!
//! Words of other languages lose some endings, too; that does no harm, as all texts are treated
//! alike.

/// Suffixes with what takes their place. Only the longest one that a word ends with is tried.
type Rules = &'static [(&'static str, &'static str)];

const STEP_2: Rules = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

const STEP_3: Rules = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

const STEP_4: Rules = &[
    ("al", ""),
    ("ance", ""),
    ("er", ""),
    ("ic", ""),
    ("able", ""),
    ("ible", ""),
    ("ant", ""),
    ("ement", ""),
    ("ment", ""),
    ("sion", "s"),
    ("tion", "t"),
    ("ou", ""),
    ("ism", ""),
    ("ate", ""),
    ("iti", ""),
    ("ous", ""),
    ("ive", ""),
    ("ize", ""),
];

/// Shortens a word of small ASCII letters to its stem, which words of the same root share:
/// `operators` and `operation` become `oper`.
pub(super) fn stem(word: &mut String) {
    if word.len() <= 2 {
        return;
    }
    remove_inflection(word);
    apply(STEP_2, 0, word);
    apply(STEP_3, 0, word);
    apply(STEP_4, 1, word);
    remove_last_e(word);
    if word.ends_with("ll") && measure(word) > 1 {
        word.pop();
    }
}

/// Shortens a word of small ASCII letters to what its own forms share: `operators` becomes
/// `operator`.
pub(super) fn base(word: &mut String) {
    if word.len() > 2 {
        remove_inflection(word);
        remove_last_e(word);
    }
}

fn remove_inflection(word: &mut String) {
    remove_plural(word);
    remove_past_or_participle(word);
    if let Some(rest) = word.strip_suffix('y')
        && has_vowel(rest)
    {
        replace(word, "y", "i");
    }
}

fn remove_last_e(word: &mut String) {
    if let Some(rest) = word.strip_suffix('e') {
        let measure = measure(rest);
        if measure > 1 || measure == 1 && !ends_short(rest) {
            word.pop();
        }
    }
}

fn remove_plural(word: &mut String) {
    if word.ends_with("sses") || word.ends_with("ies") {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
}

fn remove_past_or_participle(word: &mut String) {
    if word.ends_with("eed") {
        if measure(&word[..word.len() - 3]) > 0 {
            word.pop();
        }
        return;
    }
    let rest = word.strip_suffix("ed").or_else(|| word.strip_suffix("ing"));
    let Some(rest) = rest.filter(|rest| has_vowel(rest)) else {
        return;
    };
    word.truncate(rest.len());
    let is_double = ends_double(word);
    if ["at", "bl", "iz"].iter().any(|end| word.ends_with(end)) {
        word.push('e');
    } else if is_double && !word.ends_with(['l', 's', 'z']) {
        word.pop();
    } else if !is_double && measure(word) == 1 && ends_short(word) {
        word.push('e');
    }
}

/// Replaces the longest suffix that the word has, if what is before it has a greater measure.
fn apply(rules: Rules, least: usize, word: &mut String) {
    let rule = rules.iter().filter(|(suffix, _)| word.ends_with(suffix));
    // `ement` and `ment` both end with `ent`.
    let Some((suffix, replacement)) = rule.max_by_key(|(suffix, _)| suffix.len()) else {
        return;
    };
    // The letter before `ion` belongs to the stem.
    let before = suffix.strip_suffix("ion").filter(|letter| letter.len() == 1);
    let stem = word.len() - suffix.len() + before.map_or(0, str::len);
    if measure(&word[..stem]) > least {
        replace(word, suffix, replacement);
    }
}

fn replace(word: &mut String, suffix: &str, replacement: &str) {
    word.truncate(word.len() - suffix.len());
    word.push_str(replacement);
}

/// Whether each letter of a word is a vowel; `y` is one after a consonant.
fn vowels(word: &str) -> impl Iterator<Item = bool> {
    let mut was_vowel = true;
    word.bytes().map(move |letter| {
        was_vowel = match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => true,
            b'y' => !was_vowel,
            _ => false,
        };
        was_vowel
    })
}

fn has_vowel(word: &str) -> bool {
    vowels(word).any(|is_vowel| is_vowel)
}

/// Number of vowels, or runs of them, that are followed by a consonant.
fn measure(word: &str) -> usize {
    let mut was_vowel = false;
    vowels(word)
        .filter(|&is_vowel| std::mem::replace(&mut was_vowel, is_vowel) && !is_vowel)
        .count()
}

/// Whether the word ends with a double consonant.
fn ends_double(word: &str) -> bool {
    let mut last = word.bytes().rev();
    let is_same = last.next() == last.next();
    is_same && word.len() > 1 && vowels(word).last() == Some(false)
}

/// Whether the word ends with consonant, vowel, consonant, the last one not `w`, `x` or `y`.
fn ends_short(word: &str) -> bool {
    let kinds: Vec<bool> = vowels(word).collect();
    kinds.ends_with(&[false, true, false]) && !word.ends_with(['w', 'x', 'y'])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the article.
    #[test]
    fn english_words_become_their_stems() {
        let table = [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("bled", "bled"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("troubled", "troubl"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("hissing", "hiss"),
            ("fizzed", "fizz"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("valenci", "valenc"),
            ("digitizer", "digit"),
            ("radicalli", "radic"),
            ("vietnamization", "vietnam"),
            ("operator", "oper"),
            ("feudalism", "feudal"),
            ("hopefulness", "hope"),
            ("sensibiliti", "sensibl"),
            ("triplicate", "triplic"),
            ("formative", "form"),
            ("electriciti", "electr"),
            ("goodness", "good"),
            ("revival", "reviv"),
            ("allowance", "allow"),
            ("airliner", "airlin"),
            ("adjustable", "adjust"),
            ("replacement", "replac"),
            ("adjustment", "adjust"),
            ("dependent", "dependent"),
            ("excellence", "excellenc"),
            ("adoption", "adopt"),
            ("communism", "commun"),
            ("effective", "effect"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("cease", "ceas"),
            ("controlling", "control"),
            ("roll", "roll"),
            ("retries", "retri"),
            ("retrying", "retri"),
            ("is", "is"),
            ("", ""),
        ];
        for (word, expected) in table {
            let mut stemmed = word.to_string();
            stem(&mut stemmed);
            assert_eq!(stemmed, expected, "{word}");
        }
    }

    #[test]
    fn forms_of_a_word_have_the_same_base() {
        for (words, expected) in [
            (&["excel", "excels"][..], "excel"),
            (&["excellence"], "excellenc"),
            (&["manage", "manages", "managed", "managing"], "manag"),
            (&["operators", "operator"], "operator"),
            (&["us", "is"], ""),
        ] {
            for word in words {
                let mut base = word.to_string();
                super::base(&mut base);
                let expected = if expected.is_empty() { word } else { expected };
                assert_eq!(base, expected, "{word}");
            }
        }
    }
}
