//! Repairs of a document that can be verified.
//!
//! The strict reader must read the repaired document exactly as the tolerant one read the
//! original, except for the intended changes, and the body must stay the same byte for byte.
//! A repair that fails this test is not written, and a second run changes nothing. A file is
//! renamed only if the new name is free.

use std::path::PathBuf;

use super::document::{self, DOCUMENT_NAME};
use crate::limits;
use crate::skills::check::rules::severity;
use crate::skills::{Problem, Skill};
use crate::world::confined::{self, EntryKind, OpenError};

mod entry;
mod fields;
mod repair;
#[cfg(test)]
mod tests;
mod values;

pub(super) use repair::repair_document;

/// A problem that was repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FixedProblem {
    /// Relative to the skill's folder.
    pub file: PathBuf,
    /// Line number before the repair; `None` for the file itself.
    pub line: Option<usize>,
    /// The rule that the document broke.
    pub rule: &'static str,
    /// The old and the new value, if the meaning changed.
    pub change: Option<String>,
}

/// Repairs what is safe to repair in a skill, and returns the repaired problems. On error (the
/// document could not be written or renamed) the document is unchanged.
pub(crate) fn fix(skill: &Skill) -> Result<Vec<FixedProblem>, Problem> {
    let names: Vec<String> = document::document_names(skill)
        .unwrap_or_default()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let Some(name) = names.iter().find(|name| *name == DOCUMENT_NAME).or(names.first()) else {
        return Ok(Vec::new());
    };
    let mut fixed = Vec::new();
    let bytes =
        skill.root.file(name).and_then(|file| confined::read_whole(&file, limits::DOCUMENT_BYTES));
    let text = match bytes {
        Ok(piece) if !piece.has_more => String::from_utf8(piece.bytes).ok(),
        // The linter reports it.
        Ok(_) | Err(_) => None,
    };
    if let Some((text, repaired)) =
        text.and_then(|text| repair_document(&text, &skill.name).map(|m| (text, m)))
    {
        skill
            .root
            .replace(name, text.as_bytes(), repaired.text.as_bytes())
            .map_err(|error| write_problem("write", name, &error))?;
        let change = repaired.renamed.map(|(old, new)| {
            let old = document::display_value(&old);
            format!("`{old}` is now `{new}`")
        });
        fixed.extend(repaired.fixed.into_iter().map(|(line, rule)| FixedProblem {
            file: name.into(),
            line: Some(line),
            rule,
            change: change.clone().filter(|_| rule.starts_with("name-")),
        }));
    }
    if can_rename(skill) {
        skill
            .root
            .rename(name, DOCUMENT_NAME)
            .map_err(|error| write_problem("rename", name, &error))?;
        fixed.push(FixedProblem {
            file: name.into(),
            line: None,
            rule: "document-case",
            change: Some(format!("`{}` is now `{DOCUMENT_NAME}`", document::display_value(name))),
        });
    }
    Ok(fixed)
}

/// Whether the document can be renamed to SKILL.md: it must be a file, and the only document.
pub(super) fn can_rename(skill: &Skill) -> bool {
    let entries = skill.root.entries(limits::FOLDER_ENTRIES);
    let list = entries.map(|entries| entries.entries).unwrap_or_default();
    let mut named = list.iter().filter(|entry| entry.name.eq_ignore_ascii_case(DOCUMENT_NAME));
    let first =
        named.next().filter(|entry| entry.name != DOCUMENT_NAME && entry.kind == EntryKind::File);
    first.is_some() && named.next().is_none()
}

fn write_problem(verb: &str, name: &str, error: &OpenError) -> Problem {
    let rule = "unwritable-document";
    let cause = match error {
        OpenError::Link => "it is a link, and its target may belong to another project".into(),
        other => other.to_string(),
    };
    Problem {
        file: name.into(),
        line: None,
        rule,
        severity: severity(rule),
        message: format!("failed to {verb} it: {cause}"),
        fix: Some("repair a copy that you may write".into()),
    }
}
