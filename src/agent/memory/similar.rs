//! Finds facts that are similar to a text, and the fact that a text names.

use crate::memory::fact::{Fact, is_date, without_tag};
use crate::memory::overlap::WordSet;
use base::limits;

/// A fact that has words in common with a text.
struct SimilarFact<'f> {
    fact: &'f Fact,
    /// The common words, as a part of the larger set of words.
    share: usize,
    /// Whether the text is another version of it.
    is_version: bool,
}

/// The facts that have words in common with a text, the most similar first, and of equal ones
/// the last.
fn similar<'f>(facts: &'f [Fact], text: &str) -> Vec<SimilarFact<'f>> {
    let words = WordSet::new(text);
    let found = facts.iter().rev().filter_map(|fact| {
        let other = WordSet::new(&fact.content);
        let (shared, larger) = words.nearness(&other)?;
        Some(SimilarFact {
            fact,
            share: shared * limits::FACT_BYTES / larger,
            is_version: words.is_version_of(&other),
        })
    });
    let mut found: Vec<SimilarFact<'_>> = found.collect();
    found.sort_by_key(|similar| usize::MAX - similar.share);
    found
}

/// Whether one text is another version of the other.
pub(super) fn is_version(one: &str, other: &str) -> bool {
    WordSet::new(one).is_version_of(&WordSet::new(other))
}

/// The fact of which the text is a newer version. Facts in the user's own form do not count.
pub(super) fn older_version<'f>(facts: &'f [Fact], text: &str) -> Option<&'f Fact> {
    let mut found = similar(facts, text).into_iter();
    let found = found.find(|similar| similar.is_version && similar.fact.is_plain);
    found.map(|similar| similar.fact)
}

/// The texts of the most similar facts, except the same text and the fact of one line.
pub(super) fn similar_others(
    facts: &[Fact],
    text: &str,
    except_line: Option<usize>,
) -> Vec<String> {
    let own = without_tag(text);
    let found = similar(facts, text).into_iter().map(|similar| similar.fact);
    let others =
        found.filter(|fact| Some(fact.line) != except_line && without_tag(&fact.content) != own);
    others.map(|fact| fact.content.clone()).take(limits::SIMILAR_NAMES).collect()
}

/// The fact that a text names: the same text except for blanks and case, or else the only one
/// of which it is another version. The error is the cause and a hint.
pub(super) fn named<'f>(facts: &'f [Fact], text: &str) -> Result<&'f Fact, (String, String)> {
    let text = without_marker(text);
    let folded = |text: &str| without_tag(text).to_lowercase();
    let exact = facts.iter().rev().find(|fact| folded(&fact.content) == folded(text));
    let found = similar(facts, text);
    let mut versions = found.iter().filter(|similar| similar.is_version);
    let result = match (exact, versions.next(), versions.next()) {
        (Some(fact), ..) => Ok(fact),
        (None, Some(only), None) => Ok(only.fact),
        (None, Some(_), Some(_)) => Err("several facts are similar to it"),
        (None, None, _) => Err("there is no such fact"),
    };
    match result {
        Ok(fact) if fact.is_plain => Ok(fact),
        Ok(fact) => Err((
            format!("the user wrote it in a form of their own, in line {}", fact.line),
            "ask the user to change it".to_string(),
        )),
        Err(cause) => {
            let near = found.iter().take(limits::SIMILAR_NAMES);
            let near: Vec<String> =
                near.map(|similar| format!("`{}`", similar.fact.content)).collect();
            let hint = match near.join(", ") {
                texts if texts.is_empty() => "no fact is similar: omit `replaces`".to_string(),
                texts => format!(
                    "give the whole text of one of the most similar facts: {texts}; or omit `replaces`"
                ),
            };
            Err((cause.to_string(), hint))
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
