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

/// The skills below a folder without a document.
pub(super) struct NestedSkills {
    /// How many there are, as in `2 skills lie`.
    lie: String,
    /// The options that reach them.
    options: String,
    is_one: bool,
}

impl NestedSkills {
    /// Why the folder is no skill.
    pub(super) fn fault(&self) -> String {
        let NestedSkills { lie, options, .. } = self;
        let need = if self.is_one { "needs" } else { "need" };
        format!("it has no {DOCUMENT}, but {lie} below it, which {need} an option: {options}")
    }

    /// What to do with it.
    pub(super) fn fix(&self) -> String {
        format!("name it as a skills folder: {}", self.options)
    }
}

/// The skills that lie below a folder; nothing where there are none.
pub(super) fn search(folder: &Root, path: &Path) -> Option<NestedSkills> {
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
    let is_one = count == 1 && !tree.cut;
    let lie = match count {
        0 => return None,
        1 if is_one => "1 skill lies".to_owned(),
        _ if tree.cut => format!("{count} or more skills lie"),
        _ => format!("{count} skills lie"),
    };
    let shown: Vec<_> = homes
        .keys()
        .take(limits::NEAR_NAMES)
        .map(|home| path.join(home).components().collect::<std::path::PathBuf>())
        .collect();
    let mut options = options(shown.iter().map(std::path::PathBuf::as_path));
    if homes.len() > shown.len() {
        options.push_str(" …");
    }
    Some(NestedSkills { lie, options, is_one })
}
