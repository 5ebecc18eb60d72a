//! Checks that the files that a document names exist.
//!
//! A broken link is an error, since a link must lead to a file. A path in code is a warning,
//! since it may be a file of the user. Each path is looked up once and reported at its first
//! line.

use std::collections::BTreeSet;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::mentions::{Mention, find_mentions, is_system_path};
use super::{DocumentText, Findings};
use crate::limits;
use crate::skills::Skill;
use crate::text;
use crate::world::confined::{EntryKind, OpenError};

/// Levels from a skill up to the root of a repository with plugins.
const FOLDERS_ABOVE: usize = 4;

/// Checks every file that the document names.
pub(super) fn check(skill: &Skill, document: &DocumentText, findings: &mut Findings) {
    let body = document.body();
    let folders = subfolders(skill);
    let mut seen = BTreeSet::new();
    let mut names = None;
    for mention in find_mentions(body, document.body_line(), &folders) {
        if seen.len() >= limits::REFERENCES {
            break;
        }
        if seen.insert((mention.is_link, mention.path.clone())) {
            let names = &mut names;
            check_mention(skill, document, &mention, names, findings);
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

fn check_mention(
    skill: &Skill,
    document: &DocumentText,
    mention: &Mention,
    names: &mut Option<Vec<String>>,
    findings: &mut Findings,
) {
    let path = percent_decode(&mention.path);
    let shown = text::one_line(&path, limits::SUMMARY_CHARS);
    let mut outside = |how: &str, fix: &str| {
        let message = format!("`{shown}` {how} the skill; only files in the skill can be read");
        let rule = "outside-reference";
        findings.add(rule, document.file_name, mention.line, message, fix.to_owned());
    };
    let Some(inside) = normalize(&path).filter(|_| !is_system_path(&path)) else {
        return outside("leads out of", "copy the file into the skill");
    };
    if !matches!(skill.root.open_target(&inside), Err(OpenError::NotFound | OpenError::NotAFolder))
    {
        return;
    }
    if exists_above(skill, &inside) {
        return outside("is in a folder above", "move it into the skill");
    }
    let names = names.get_or_insert_with(|| {
        let files = skill.files().files;
        let names = files.iter().map(|path| path.to_string_lossy().into_owned());
        names.collect()
    });
    let (rule, what) = if mention.is_link {
        ("dangling-link", "the link leads to")
    } else {
        ("dangling-mention", "the document names")
    };
    let message = format!("{what} `{shown}`, but the skill has no such file");
    names.retain(|name| name != document.file_name);
    let near = likely_file(&inside, names).map(|name| format!("did you mean `{name}`?"));
    let fix = near.or_else(|| {
        let fix = "add the file, or remove the link";
        mention.is_link.then(|| fix.to_owned())
    });
    findings.push(rule, PathBuf::from(document.file_name), Some(mention.line), message, fix);
}

/// Whether the file exists relative to a folder above the skill, such as a plugin's or a
/// repository's. The file is not opened.
fn exists_above(skill: &Skill, path: &str) -> bool {
    let above = skill.path.ancestors().skip(1).take(FOLDERS_ABOVE);
    above.into_iter().any(|folder| folder.join(path).is_file())
}

/// Returns the file that the author most likely meant.
fn likely_file(path: &str, names: &[String]) -> Option<String> {
    let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let is_same = |name: &&String| name.to_lowercase() == path.to_lowercase();
    let wanted = base(path);
    let found =
        names.iter().find(is_same).or_else(|| names.iter().find(|name| base(name) == wanted));
    let folder = |name: &str| name.rsplit_once('/').map(|(folder, _)| folder.to_lowercase());
    // Another file of the same folder counts only if its name is similar.
    let is_likely = |name: &&str| {
        folder(name) != folder(path)
            || !text::similar_names(&wanted, [base(name).as_str()].into_iter(), 1).is_empty()
    };
    let near = || text::similar_names(path, names.iter().map(String::as_str).filter(is_likely), 1);
    found.cloned().or_else(|| near().first().map(|name| (*name).to_owned()))
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

/// Decodes `%20` and similar escapes in a path.
fn percent_decode(path: &str) -> String {
    match percent_decode_str(path).decode_utf8() {
        Ok(decoded) => decoded.into_owned(),
        Err(_) => path.to_owned(),
    }
}
