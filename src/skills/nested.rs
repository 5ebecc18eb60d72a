//! Nested skills: skills in a subfolder that is not a skill but a collection of skills.
//!
//! Discovery reads direct subfolders only; nested skills are reported with the option
//! that loads them. The search is limited, because it may meet any folder.

use std::collections::BTreeMap;
use std::path::Path;

use crate::limits;
use crate::skills::listing::skills_options;
use crate::skills::skill::{DOCUMENT_NAME, is_document_name};
use crate::world::confined::{Root, WalkLimits};

/// The skills below a folder without a document.
pub(super) struct NestedSkills {
    /// Their number, as in `2 skills lie`.
    count_phrase: String,
    /// The options that load them.
    options: String,
    is_one: bool,
}

impl NestedSkills {
    /// Why the folder is not a skill.
    pub(super) fn message(&self) -> String {
        let NestedSkills { count_phrase: lie, options, .. } = self;
        let need = if self.is_one { "needs" } else { "need" };
        format!("it has no {DOCUMENT_NAME}, but {lie} below it, which {need} an option: {options}")
    }

    /// The remedy.
    pub(super) fn fix(&self) -> String {
        format!("name it as a skills folder: {}", self.options)
    }
}

/// Searches a folder for nested skills.
pub(super) fn find_nested_skills(folder: &Root, path: &Path) -> Option<NestedSkills> {
    let limits = WalkLimits {
        depth: limits::NESTED_DEPTH,
        files: limits::NESTED_ENTRIES,
        entries: limits::NESTED_ENTRIES,
    };
    let tree = folder.walk(limits).ok()?;
    // Number of skills in each folder that could be named as a skills folder.
    let mut homes: BTreeMap<&Path, usize> = BTreeMap::new();
    for file in &tree.files {
        let is_hidden = |part: &std::ffi::OsStr| part.as_encoded_bytes().starts_with(b".");
        let name = file.file_name().and_then(|name| name.to_str());
        if !name.is_some_and(is_document_name) || file.iter().any(is_hidden) {
            continue;
        }
        if let Some(home) = file.parent().and_then(Path::parent) {
            *homes.entry(home).or_default() += 1;
        }
    }
    let count: usize = homes.values().sum();
    let is_one = count == 1 && !tree.is_cut;
    let lie = match count {
        0 => return None,
        1 if is_one => "1 skill lies".to_owned(),
        _ if tree.is_cut => format!("{count} or more skills lie"),
        _ => format!("{count} skills lie"),
    };
    let shown: Vec<_> = homes
        .keys()
        .take(limits::SIMILAR_NAMES)
        .map(|home| path.join(home).components().collect::<std::path::PathBuf>())
        .collect();
    let mut options = skills_options(shown.iter().map(std::path::PathBuf::as_path));
    if homes.len() > shown.len() {
        options.push_str(" …");
    }
    Some(NestedSkills { count_phrase: lie, options, is_one })
}
