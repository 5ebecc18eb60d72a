//! Nested skills: skills in a subfolder that is not a skill but a collection of skills.
//!
//! Discovery reads direct subfolders only; nested skills are reported with the option
//! that loads them. The search is limited, because it may meet any folder.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::skill::is_document_name;
use crate::world::confined::{Root, WalkLimits};

/// The skills below a folder without a document.
pub(super) struct NestedSkills {
    pub count: usize,
    /// Whether there may be more.
    pub is_cut: bool,
    /// The first folders that could be named as a skills folder.
    pub folders: Vec<PathBuf>,
    pub has_more_folders: bool,
}

/// Searches a folder for nested skills.
pub(super) fn find_nested_skills(folder: &Root, path: &Path) -> Option<NestedSkills> {
    let walk = WalkLimits {
        depth: limits::NESTED_DEPTH,
        files: limits::NESTED_ENTRIES,
        entries: limits::NESTED_ENTRIES,
    };
    let tree = folder.walk(walk).ok()?;
    let is_hidden = |part: &OsStr| part.as_encoded_bytes().starts_with(b".");
    let documents = tree.files.iter().filter(|file| {
        let name = file.file_name().and_then(OsStr::to_str);
        name.is_some_and(is_document_name) && !file.iter().any(is_hidden)
    });
    let above: Vec<&Path> = documents.filter_map(|file| file.parent()?.parent()).collect();
    let folders: BTreeSet<&Path> = above.iter().copied().collect();
    let shown = folders.iter().take(limits::SIMILAR_NAMES);
    (!above.is_empty()).then(|| NestedSkills {
        count: above.len(),
        is_cut: tree.is_cut,
        folders: shown.map(|below| path.join(below).components().collect()).collect(),
        has_more_folders: folders.len() > limits::SIMILAR_NAMES,
    })
}
