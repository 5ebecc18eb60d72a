//! Whether the files that a document names are there.
//!
//! A link that leads nowhere is an error: nothing but a file can be meant. A
//! path in code is a warning, since it may be a file of somebody else. Each
//! path is looked for once and told at its first line.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::mentions::{Mention, is_of_system, mentions};
use super::{DocumentText, Findings};
use crate::limits;
use crate::percent;
use crate::skills::Skill;
use crate::text;
use crate::world::confined::{EntryKind, OpenError};

/// From a skill up to the root of a repository with plugins.
const FOLDERS_ABOVE: usize = 4;

/// Looks for every file that the document names.
pub(super) fn check(skill: &Skill, page: &DocumentText, findings: &mut Findings) {
    let body = page.body();
    let folders = folders(skill);
    let mut seen = BTreeSet::new();
    let mut names = None;
    for mention in mentions(body, page.body_line(), &folders) {
        if seen.len() >= limits::REFERENCES {
            break;
        }
        if seen.insert((mention.is_link, mention.path.clone())) {
            let names = &mut names;
            look(skill, page, &mention, names, findings);
        }
    }
}

/// The folders directly in the skill.
fn folders(skill: &Skill) -> Vec<String> {
    let entries = skill.root.entries(limits::FOLDER_ENTRIES);
    let list = entries.map(|entries| entries.list).unwrap_or_default();
    let folders = list.into_iter().filter(|entry| entry.kind == EntryKind::Folder);
    folders
        .filter_map(|entry| entry.name.into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect()
}

fn look(
    skill: &Skill,
    page: &DocumentText,
    mention: &Mention,
    names: &mut Option<Vec<String>>,
    findings: &mut Findings,
) {
    let path = decoded(&mention.path);
    let shown = text::one_line(&path, limits::SUMMARY_CHARS);
    let mut outside = |how: &str, fix: &str| {
        let message = format!("`{shown}` {how} the skill; only what lies in it can be read");
        let rule = "outside-reference";
        findings.add(rule, page.file_name, mention.line, message, fix.to_owned());
    };
    let Some(inside) = normal(&path).filter(|_| !is_of_system(&path)) else {
        return outside("leads out of", "copy what is needed into the skill");
    };
    if !matches!(skill.root.node(&inside), Err(OpenError::NotFound | OpenError::NotAFolder)) {
        return;
    }
    if is_beside(skill, &inside) {
        return outside("lies beside", "put it into the skill");
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
    let message = format!("{what} `{shown}`, and the skill has no such file");
    names.retain(|name| name != page.file_name);
    let near = meant(&inside, names).map(|name| format!("did you mean `{name}`?"));
    let fix = near.or_else(|| {
        let fix = "put the file there, or take the link out";
        mention.is_link.then(|| fix.to_owned())
    });
    findings.push(rule, PathBuf::from(page.file_name), Some(mention.line), message, fix);
}

/// Whether the path leads to a file from a folder above the skill: a plugin's
/// or a repository's. It is only asked whether it is there.
fn is_beside(skill: &Skill, path: &str) -> bool {
    let above = skill.path.ancestors().skip(1).take(FOLDERS_ABOVE);
    above.into_iter().any(|folder| folder.join(path).is_file())
}

/// The file that was most likely meant.
fn meant(path: &str, names: &[String]) -> Option<String> {
    let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let is_same = |name: &&String| name.to_lowercase() == path.to_lowercase();
    let wanted = base(path);
    let found =
        names.iter().find(is_same).or_else(|| names.iter().find(|name| base(name) == wanted));
    let folder = |name: &str| name.rsplit_once('/').map(|(folder, _)| folder.to_lowercase());
    // A neighbour with another name is not meant.
    let is_likely = |name: &&str| {
        folder(name) != folder(path)
            || !text::nearest(&wanted, [base(name).as_str()].into_iter(), 1).is_empty()
    };
    let near = || text::nearest(path, names.iter().map(String::as_str).filter(is_likely), 1);
    found.cloned().or_else(|| near().first().map(|name| (*name).to_owned()))
}

/// The path without `.` and `..`; none where it leaves the skill.
fn normal(path: &str) -> Option<String> {
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

/// The path with `%20` and its like as the characters they stand for.
fn decoded(path: &str) -> String {
    String::from_utf8(percent::decoded(path)).unwrap_or_else(|_| path.to_owned())
}
