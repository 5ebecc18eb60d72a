//! Nested skills: skills in a subfolder that is not a skill but a collection of skills.
//!
//! Discovery reads direct subfolders only; nested skills are reported with the option
//! that loads them. The search is limited, because it may meet any folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::skill::is_document_name;
use crate::world::confined::{Root, WalkLimits};

/// Returns the first folder below `folder` that contains skills, and so could be named as a skills
/// folder.
pub(super) fn find_skills_folder(folder: &Root, path: &Path) -> Option<PathBuf> {
    let walk = WalkLimits {
        depth: limits::NESTED_DEPTH,
        files: limits::NESTED_ENTRIES,
        entries: limits::NESTED_ENTRIES,
    };
    let tree = folder.walk(walk).ok()?;
    let is_hidden = |part: &OsStr| part.as_encoded_bytes().starts_with(b".");
    let mut documents = tree.files.iter().filter(|file| {
        let name = file.file_name().and_then(OsStr::to_str);
        name.is_some_and(is_document_name) && !file.iter().any(is_hidden)
    });
    let below = documents.find_map(|file| file.parent()?.parent())?;
    Some(path.join(below).components().collect())
}
