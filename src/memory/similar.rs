//! Finds facts that are similar to a text, and the fact that a text names.

use crate::limits;
use crate::memory::facts::{Fact, FactChange, Facts, is_date, without_tag};
use crate::memory::overlap::WordSet;

/// A fact that has words in common with a text.
struct SimilarFact<'f> {
    fact: &'f Fact,
    share: usize,
    /// Whether the text is another version of it.
    is_version: bool,
}

impl Facts {
    /// The facts that have words in common with a text, the most similar first, and of equal
    /// ones the last.
    fn similar(&self, content: &str) -> Vec<SimilarFact<'_>> {
        let words = WordSet::new(content);
        let some = self.all().iter().rev();
        let some = some.filter(|fact| words.may_be_similar_to(&fact.content));
        let found = some.filter_map(|fact| {
            let other = WordSet::new(&fact.content);
            let (shared, larger) = words.nearness(&other)?;
            Some(SimilarFact {
                fact,
                share: shared * limits::FACT_BYTES / larger,
                is_version: words.overlap(&other).is_some(),
            })
        });
        let mut similar: Vec<SimilarFact<'_>> = found.collect();
        similar.sort_by_key(|similar| usize::MAX - similar.share);
        similar
    }

    /// The fact of which the text is a newer version. Facts in the user's own form do not
    /// count.
    pub(super) fn older_version(&self, content: &str) -> Option<&Fact> {
        let mut similar = self.similar(content).into_iter();
        let found = similar.find(|similar| similar.is_version && similar.fact.is_plain);
        found.map(|similar| similar.fact)
    }

    /// The texts of the most similar other facts that stay after this change.
    pub fn similar_others(&self, content: &str, change: &FactChange) -> Vec<String> {
        let own = without_tag(content);
        let replaced = match change {
            FactChange::Replaced(old) => Some(old.line),
            FactChange::Known | FactChange::Added => None,
        };
        let similar = self.similar(content).into_iter().map(|similar| similar.fact);
        let similar_others =
            similar.filter(|fact| Some(fact.line) != replaced && without_tag(&fact.content) != own);
        let texts = similar_others.map(|fact| fact.content.clone());
        texts.take(limits::SIMILAR_NAMES).collect()
    }

    /// The fact that a text names: the same text except for blanks and case, or else the only
    /// one of which it is another version. The error is the cause and a hint.
    pub fn named(&self, text: &str) -> Result<&Fact, (String, String)> {
        let text = without_marker(text);
        let same = |fact: &&Fact| folded(&fact.content) == folded(text);
        let exact = self.all().iter().rev().find(same);
        let similar = self.similar(text);
        let mut versions = similar.iter().filter(|similar| similar.is_version);
        let found = match (exact, versions.next(), versions.next()) {
            (Some(fact), ..) => Ok(fact),
            (None, Some(older_version), None) => Ok(older_version.fact),
            (None, Some(_), Some(_)) => Err("several facts are similar to it"),
            (None, None, _) => Err("there is no such fact"),
        };
        match found {
            Ok(fact) if fact.is_plain => Ok(fact),
            Ok(fact) => Err((
                format!("the user wrote it in a form of their own, in line {}", fact.line),
                "ask the user to change it".to_string(),
            )),
            Err(cause) => {
                let names = similar.iter().take(limits::SIMILAR_NAMES);
                let names: Vec<String> =
                    names.map(|similar| format!("`{}`", similar.fact.content)).collect();
                let hint = if names.is_empty() {
                    "no fact is similar: omit `replaces`".to_string()
                } else {
                    format!(
                        "give the whole text of one of the most similar facts: {}; or omit `replaces`",
                        names.join(", ")
                    )
                };
                Err((cause.to_string(), hint))
            }
        }
    }
}

/// The text of a fact without the list marker and the date.
fn without_marker(text: &str) -> &str {
    let text = text.trim();
    let text = text.strip_prefix("- ").unwrap_or(text).trim_start();
    let dated = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match dated {
        Some((date, rest)) if is_date(date) => rest.trim_start(),
        _ => text,
    }
}

/// Whether one text is another version of the other.
pub(super) fn is_version(one: &str, other: &str) -> bool {
    WordSet::new(one).overlap(&WordSet::new(other)).is_some()
}

fn folded(text: &str) -> String {
    without_tag(text).to_lowercase()
}
