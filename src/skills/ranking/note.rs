//! Note of a search beside the skills that it lists: how many mention the words, and which words no
//! skill mentions.

use std::collections::{BTreeSet, HashSet};

use super::Ranking;
use super::words::{WordStarts, for_each_word, is_unspaced};
use crate::SkillSummary;
use base::limits;
use base::text::{self, counted};

impl Ranking<'_> {
    /// The note about the skills that were found among the `candidates`.
    pub fn note(&self, candidates: &[&SkillSummary]) -> String {
        let note = match (self.found().len(), self.mentioning.len()) {
            (0, _) => format!("no skill fits, of {}", counted(candidates.len(), "skill")),
            _ if self.listed < limits::FOUND_SKILLS => {
                "no sure hit: use one of these only if its description fits".to_string()
            }
            (found, mentioning) if found < mentioning => {
                format!("the best {found} of {mentioning} skills that mention a word of the query")
            }
            (1, _) => "1 skill mentions a word of the query".to_string(),
            (found, _) => format!("{found} skills mention a word of the query"),
        };
        // Pairs of characters are not words.
        let unknown = self.unknown_words.iter().filter(|word| !word.starts_with(is_unspaced));
        let unknown: Vec<&String> = unknown.take(limits::UNKNOWN_WORDS).collect();
        let shown = unknown.iter().map(|word| text::truncate(word, limits::QUOTED_WORD_BYTES));
        let similar: BTreeSet<String> =
            unknown.iter().flat_map(|word| similar_words(word, candidates)).collect();
        let unknown = quoted_list("; no skill mentions ", shown);
        note + &unknown + &quoted_list("; similar words: ", similar.iter())
    }
}

/// A list of quoted words after its title; empty if there are none.
fn quoted_list<T: AsRef<str>>(title: &str, words: impl Iterator<Item = T>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{}`", word.as_ref())).collect();
    if words.is_empty() { String::new() } else { format!("{title}{}", words.join(", ")) }
}

/// The words of names and descriptions that are similar to a word, the most similar first.
fn similar_words(word: &str, skills: &[&SkillSummary]) -> Vec<String> {
    let length = word.chars().count();
    if length < limits::SIMILAR_WORD_CHARS || word.len() > limits::QUOTED_WORD_BYTES {
        return Vec::new();
    }
    let first = word.chars().next();
    let starts = WordStarts::all();
    let mut candidates: HashSet<String> = HashSet::new();
    for skill in skills {
        for text in [&*skill.name, &*skill.description] {
            for_each_word(text, &starts, &mut |candidate| {
                let is_near = candidate.len().abs_diff(word.len()) <= 2;
                let start = candidate.chars().next().map(|c| c.to_ascii_lowercase());
                if is_near && start == first {
                    candidates.insert(candidate.to_lowercase());
                }
            });
        }
    }
    let candidates = candidates.iter().map(String::as_str);
    let is_close = |near: &&str| text::edit_distance(word, near) <= length / 4;
    let mut near: Vec<&str> = candidates.filter(is_close).collect();
    near.sort_unstable_by_key(|near| (text::edit_distance(word, near), *near));
    near.into_iter().take(limits::SIMILAR_NAMES).map(str::to_string).collect()
}
