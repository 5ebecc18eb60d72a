//! Places with settings, credentials and stored data, the folders of skills, and the home: what
//! sandboxed scripts and the tools for the user's files must keep away from.

use std::fs;
use std::path::{Path, PathBuf};

use crate::config::ScriptSettings;
use crate::skills::boundary::Boundary;
use crate::skills::skill::has_document;
use crate::world::confined::{Identity, Root, identity};

/// The real paths of the private files and folders, whether they exist or not.
pub(crate) fn private_paths(scripts: &ScriptSettings) -> impl Iterator<Item = PathBuf> {
    scripts.private_files.iter().filter_map(real_or_missing)
}

/// The real path; of what is missing, the path at which it would be.
pub(crate) fn real_or_missing(path: impl AsRef<Path>) -> Option<PathBuf> {
    canonical(&path).or_else(|| without_following(path))
}

/// These skills folders, which are real paths, and the skills that links in them lead to.
pub(crate) fn skill_places(scripts: &ScriptSettings, folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let forbidden = Boundary::new(scripts).forbidden_folders();
    let is_forbidden = |path: &Path| {
        let found = identity(path);
        found.is_none_or(|found| forbidden.describe(found).is_some())
    };
    let entries = folders.iter().filter_map(|root| fs::read_dir(root).ok()).flatten();
    // Other links are not skills, and may lead anywhere.
    let links = entries.flatten().filter_map(|entry| {
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        is_link
            .then(|| canonical(entry.path()).filter(|path| is_skill(path) && !is_forbidden(path)))?
    });
    let links: Vec<PathBuf> = links.collect();
    folders.into_iter().chain(links).collect()
}

/// Whether this folder, in which the user works, is the home, a folder above it, or `/`.
pub(crate) fn is_home_or_above(scripts: &ScriptSettings, folder: Identity) -> bool {
    Boundary::new(scripts).forbidden_folders().describe(folder).is_some()
}

/// Whether this folder has a document.
pub(super) fn is_skill(folder: &Path) -> bool {
    Root::open(folder).is_ok_and(|root| has_document(&root))
}

/// The real path of the parent, joined with the name: a final link is not followed.
pub(super) fn without_following(path: impl AsRef<Path>) -> Option<PathBuf> {
    let path = path.as_ref();
    Some(canonical(path.parent()?)?.join(path.file_name()?))
}

pub(super) fn canonical(path: impl AsRef<Path>) -> Option<PathBuf> {
    path.as_ref().canonicalize().ok()
}
