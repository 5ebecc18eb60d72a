//! Mending what can be mended with proof.
//!
//! A changed document must read, by the strict reader alone, exactly as the
//! tolerant one read it before, plus what was meant to change, and its body
//! must be the same byte for byte. What cannot be proven so is not written; a
//! second run finds nothing to do. Names of files change only where the new
//! one is free.

use std::path::PathBuf;

use super::document::{self, USUAL};
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

pub(super) use repair::mend;

/// Something that was mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    /// Relative to the skill's folder.
    pub file: PathBuf,
    /// As it was counted before; `None` for the file itself.
    pub line: Option<usize>,
    /// The rule that is no longer broken.
    pub rule: &'static str,
    /// What became of the old value, where the new one says something else.
    pub change: Option<String>,
}

/// Mends what is safe to mend in a skill, and tells what that was. The error:
/// the document could not be written or renamed; then it is as it was.
pub(crate) fn fix(skill: &Skill) -> Result<Vec<Fixed>, Problem> {
    let names: Vec<String> =
        document::names(skill).unwrap_or_default().into_iter().map(|(name, _)| name).collect();
    let Some(name) = names.iter().find(|name| *name == USUAL).or(names.first()) else {
        return Ok(Vec::new());
    };
    let mut fixed = Vec::new();
    let bytes =
        skill.root.file(name).and_then(|file| confined::read_whole(&file, limits::DOCUMENT_BYTES));
    let text = match bytes {
        Ok(piece) if !piece.more => String::from_utf8(piece.bytes).ok(),
        // The linter has said so.
        Ok(_) | Err(_) => None,
    };
    if let Some((text, mended)) = text.and_then(|text| mend(&text, &skill.name).map(|m| (text, m)))
    {
        skill
            .root
            .replace(name, text.as_bytes(), mended.text.as_bytes())
            .map_err(|refusal| failed("write", name, &refusal))?;
        let change = mended.renamed.map(|(old, new)| {
            let old = document::shown(&old);
            format!("`{old}` is now `{new}`")
        });
        fixed.extend(mended.fixed.into_iter().map(|(line, rule)| Fixed {
            file: name.into(),
            line: Some(line),
            rule,
            change: change.clone().filter(|_| rule.starts_with("name-")),
        }));
    }
    if can_rename(skill) {
        skill.root.rename(name, USUAL).map_err(|refusal| failed("rename", name, &refusal))?;
        fixed.push(Fixed {
            file: name.into(),
            line: None,
            rule: "document-case",
            change: Some(format!("`{}` is now `{USUAL}`", document::shown(name))),
        });
    }
    Ok(fixed)
}

/// Whether the document can get its usual name. With several documents nobody
/// knows which one is meant, and a link is left to who made it.
pub(super) fn can_rename(skill: &Skill) -> bool {
    let entries = skill.root.entries(limits::FOLDER_ENTRIES);
    let list = entries.map(|entries| entries.list).unwrap_or_default();
    let mut named = list.iter().filter(|entry| entry.name.eq_ignore_ascii_case(USUAL));
    let first = named.next().filter(|entry| entry.name != USUAL && entry.kind == EntryKind::File);
    first.is_some() && named.next().is_none()
}

fn failed(verb: &str, name: &str, refusal: &OpenError) -> Problem {
    let rule = "unwritable-document";
    let cause = match refusal {
        OpenError::Link => "it is a link, and what it leads to may belong to others".into(),
        other => other.to_string(),
    };
    Problem {
        file: name.into(),
        line: None,
        rule,
        severity: severity(rule),
        message: format!("failed to {verb} it: {cause}"),
        fix: Some("mend a copy that this user may write".into()),
    }
}
