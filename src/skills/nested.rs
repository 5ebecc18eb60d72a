//! Skills that lie one level or more too low: a collection among the skills.
//!
//! Discovery looks at direct subfolders only; what is missed by that is told,
//! with the option that reaches it. Bounded, because this may be any folder.

use std::collections::BTreeMap;
use std::path::Path;

use crate::limits;
use crate::skills::listing::options;
use crate::skills::skill::{DOCUMENT, is_document};
use crate::world::confined::{Root, WalkLimits};

/// What to say of a folder without a document in which skills lie; nothing
/// where there are none.
pub(super) fn search(folder: &Root, path: &Path) -> Option<String> {
    let limits = WalkLimits {
        depth: limits::NESTED_DEPTH,
        files: limits::NESTED_ENTRIES,
        entries: limits::NESTED_ENTRIES,
    };
    let tree = folder.walk(limits).ok()?;
    // How many skills lie in each folder that would be a skills folder.
    let mut homes: BTreeMap<&Path, usize> = BTreeMap::new();
    for file in &tree.files {
        let is_hidden = |part: &std::ffi::OsStr| part.as_encoded_bytes().starts_with(b".");
        let name = file.file_name().and_then(|name| name.to_str());
        if !name.is_some_and(is_document) || file.iter().any(is_hidden) {
            continue;
        }
        if let Some(home) = file.parent().and_then(Path::parent) {
            *homes.entry(home).or_default() += 1;
        }
    }
    let count: usize = homes.values().sum();
    let more = if tree.cut { " or more" } else { "" };
    let lie = match count {
        0 => return None,
        1 => format!("1{more} skill lies"),
        _ => format!("{count}{more} skills lie"),
    };
    let shown: Vec<_> = homes
        .keys()
        .take(limits::NEAR_NAMES)
        .map(|home| path.join(home).components().collect::<std::path::PathBuf>())
        .collect();
    let mut reached = options(shown.iter().map(std::path::PathBuf::as_path));
    if homes.len() > shown.len() {
        reached.push_str(" …");
    }
    Some(format!(
        "it has no {DOCUMENT}, but {lie} below it, which need an option: {reached}"
    ))
}
