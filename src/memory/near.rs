//! Which facts a text is near to, and which one it names.

use crate::limits;
use crate::memory::facts::{Fact, FactChange, Facts, is_date, without_tag};
use crate::memory::overlap::WordSet;
use crate::order;

/// A fact that shares words with a text.
struct NearFact<'f> {
    fact: &'f Fact,
    share: usize,
    /// The text is another version of it.
    is_version: bool,
}

impl Facts {
    /// The facts that share words with a text, the nearest first, and of equal
    /// ones the last.
    fn near(&self, content: &str) -> Vec<NearFact<'_>> {
        let words = WordSet::of(content);
        let some = self.all().iter().rev();
        let some = some.filter(|fact| words.may_be_in(&fact.content));
        let found = some.filter_map(|fact| {
            let other = WordSet::of(&fact.content);
            let (shared, larger) = words.nearness(&other)?;
            Some(NearFact {
                fact,
                share: shared * limits::FACT_BYTES / larger,
                is_version: words.overlap(&other).is_some(),
            })
        });
        let mut near: Vec<NearFact<'_>> = found.collect();
        order::sort_by_key(&mut near, |near| usize::MAX - near.share);
        near
    }

    /// The fact that a text is a newer version of. What a person wrote in a form
    /// of their own is none.
    pub(super) fn version(&self, content: &str) -> Option<&Fact> {
        let mut near = self.near(content).into_iter();
        let found = near.find(|near| near.is_version && near.fact.is_plain);
        found.map(|near| near.fact)
    }

    /// The texts of the nearest facts that say something else than a new one, and
    /// stay after this change.
    pub fn others(&self, content: &str, change: &FactChange) -> Vec<String> {
        let own = without_tag(content);
        let replaced = match change {
            FactChange::Replaced(old) => Some(old.line),
            FactChange::Known | FactChange::Added => None,
        };
        let near = self.near(content).into_iter().map(|near| near.fact);
        let others =
            near.filter(|fact| Some(fact.line) != replaced && without_tag(&fact.content) != own);
        let texts = others.map(|fact| fact.content.clone());
        texts.take(limits::NEAR_NAMES).collect()
    }

    /// The one fact that a text names: the same text but for blanks and case, else
    /// the only one that is another version of it. The error says why there is
    /// none, and what to do.
    pub fn named(&self, text: &str) -> Result<&Fact, (String, String)> {
        let text = said(text);
        let same = |fact: &&Fact| folded(&fact.content) == folded(text);
        let exact = self.all().iter().rev().find(same);
        let near = self.near(text);
        let mut versions = near.iter().filter(|near| near.is_version);
        let found = match (exact, versions.next(), versions.next()) {
            (Some(fact), ..) => Ok(fact),
            (None, Some(version), None) => Ok(version.fact),
            (None, Some(_), Some(_)) => Err("several facts are near it"),
            (None, None, _) => Err("there is no such fact"),
        };
        match found {
            Ok(fact) if fact.is_plain => Ok(fact),
            Ok(fact) => Err((
                format!("the user wrote it in a form of their own, in line {}", fact.line),
                "ask the user to change it".to_string(),
            )),
            Err(cause) => {
                let names = near.iter().take(limits::NEAR_NAMES);
                let names: Vec<String> =
                    names.map(|near| format!("`{}`", near.fact.content)).collect();
                let hint = if names.is_empty() {
                    "no fact is near: leave `replaces` out".to_string()
                } else {
                    format!(
                        "give the whole text of one of the nearest: {}; or leave `replaces` out",
                        names.join(", ")
                    )
                };
                Err((cause.to_string(), hint))
            }
        }
    }
}

/// The text of a fact that was copied with the mark and the date in front of it.
fn said(text: &str) -> &str {
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
    WordSet::of(one).overlap(&WordSet::of(other)).is_some()
}

fn folded(text: &str) -> String {
    without_tag(text).to_lowercase()
}
