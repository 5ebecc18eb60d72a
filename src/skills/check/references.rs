//! Checks that the files that a document names exist.
//!
//! A broken link is an error, since a link must lead to a file. A path in code is a warning,
//! since it may be a file of the user. Each path is looked up once and reported at its first
//! line.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;

use super::mentions::{Mention, find_mentions};
use super::{DocumentText, Findings};
use crate::limits;
use crate::skills::{Rule, Skill};
use crate::text;
use crate::world::confined::{EntryKind, OpenError};

/// Levels from a skill up to the root of a repository with plugins.
const FOLDERS_ABOVE: usize = 4;

/// Checks every file that the document names.
pub(super) fn check(skill: &Skill, document: &DocumentText, findings: &mut Findings) {
    let folders = subfolders(skill);
    let mut seen = BTreeSet::new();
    let lookup = FileLookup { skill, names: OnceCell::new() };
    for mention in find_mentions(document.body(), document.body_line(), &folders) {
        if seen.len() >= limits::REFERENCES {
            break;
        }
        if seen.insert((mention.is_link, mention.path.clone())) {
            lookup.check(document, &mention, findings);
        }
    }
}

/// Returns the names of the folders directly in the skill.
fn subfolders(skill: &Skill) -> Vec<String> {
    let entries = skill.root.entries(limits::FOLDER_ENTRIES);
    let list = entries.map(|entries| entries.entries).unwrap_or_default();
    let folders = list.into_iter().filter(|entry| entry.kind == EntryKind::Folder);
    folders
        .filter_map(|entry| entry.name.into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect()
}

/// The files of a skill.
struct FileLookup<'s> {
    skill: &'s Skill,
    /// The paths of all files, read for the first missing one.
    names: OnceCell<Vec<String>>,
}

impl FileLookup<'_> {
    fn check(&self, document: &DocumentText, mention: &Mention, findings: &mut Findings) {
        let path = percent_decode_str(&mention.path).decode_utf8_lossy();
        let shown = text::one_line(&path, limits::SUMMARY_CHARS);
        let mut outside = |how: &str| {
            let message = format!("`{shown}` {how} the skill; only files in the skill can be read");
            findings.add(document.problem(Rule::OutsideReference, mention.line, message));
        };
        let Some(inside) = normalize(&path) else {
            return outside("leads out of");
        };
        let target = self.skill.root.open_target(&inside);
        if !matches!(target, Err(OpenError::NotFound | OpenError::NotAFolder)) {
            return;
        }
        if self.exists_above(&inside) {
            return outside("is in a folder above");
        }
        let (rule, what) = if mention.is_link {
            (Rule::DanglingLink, "the link leads to")
        } else {
            (Rule::DanglingMention, "the document names")
        };
        let message = format!("{what} `{shown}`, but the skill has no such file");
        let problem = document.problem(rule, mention.line, message);
        findings.add(match self.find_similar(&inside, document.file_name) {
            Some(name) => problem.with_fix(format!("did you mean `{name}`?")),
            None => problem,
        });
    }

    /// Whether the file exists relative to a folder above the skill, such as a plugin's or a
    /// repository's. The file is not opened.
    fn exists_above(&self, path: &str) -> bool {
        let above = self.skill.path.ancestors().skip(1).take(FOLDERS_ABOVE);
        above.into_iter().any(|folder| folder.join(path).is_file())
    }

    /// Returns the file that the author most likely meant: one of the same name in another
    /// folder, or with a similar path.
    fn find_similar(&self, path: &str, document: &str) -> Option<&str> {
        let names = self.names.get_or_init(|| {
            let files = self.skill.files().files;
            files.iter().map(|path| path.to_string_lossy().into_owned()).collect()
        });
        let others = || names.iter().map(String::as_str).filter(|name| *name != document);
        let file_name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_lowercase();
        let wanted = file_name(path);
        let moved = others().find(|name| file_name(name) == wanted);
        moved.or_else(|| text::similar_names(path, others(), 1).first().copied())
    }
}

/// Returns the path without `.` and `..`; `None` if it leaves the skill.
fn normalize(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
