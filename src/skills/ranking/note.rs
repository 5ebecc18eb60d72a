//! What a search says beside the skills that it lists: how many mention the words, and which words
//! no skill mentions.

use std::collections::HashSet;

use super::Ranking;
use super::words::{WordStarts, for_each_word};
use crate::limits;
use crate::skills::SkillSummary;
use crate::text::{self, counted};

impl Ranking<'_> {
    /// The note about the skills that were found among the `candidates`.
    pub(crate) fn note(&self, candidates: &[&SkillSummary]) -> String {
        let mut note = match (self.found().len(), self.mentioning.len()) {
            (0, mentioning) => {
                let near = self.mentioning[..mentioning.min(limits::SIMILAR_NAMES)].iter();
                let near: Vec<_> = near.map(|skill| skill.display_name()).collect();
                let all = counted(candidates.len(), "skill");
                let mut note = format!("no skill fits, of {all}: do without one, or say so");
                if !near.is_empty() {
                    note.push_str(&format!("; nearest by words: `{}`", near.join("`, `")));
                }
                note
            }
            (found, mentioning) if found < mentioning => {
                format!("the best {found} of {mentioning} skills that mention a word of the query")
            }
            (1, _) => "1 skill mentions a word of the query".to_string(),
            (found, _) => format!("{found} skills mention a word of the query"),
        };
        let unknown = self.unknown_words.iter().take(limits::UNKNOWN_WORDS);
        let unknown: Vec<&str> = unknown.map(String::as_str).collect();
        if !unknown.is_empty() {
            note.push_str(&format!("; no skill mentions `{}`", unknown.join("`, `")));
            let near: Vec<String> =
                unknown.iter().flat_map(|word| similar_words(word, candidates)).collect();
            if !near.is_empty() {
                note.push_str(&format!("; near words are `{}`", near.join("`, `")));
            }
        }
        note
    }
}

/// The words of names and descriptions that are similar to a word, the most similar first.
fn similar_words(word: &str, skills: &[&SkillSummary]) -> Vec<String> {
    let length = word.chars().count();
    if length < limits::SIMILAR_WORD_CHARS {
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
