//! Places with settings, credentials and stored data, the folders of skills, and the home: what
//! sandboxed scripts and the tools for the user's files must keep away from.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ScriptSettings;
use crate::boundary::Boundary;
use crate::private::real_or_missing;
use crate::skill::has_document;
use host::confined::{Identity, Root, identity};

/// The real paths of the private files and folders, whether they exist or not.
pub fn private_paths(scripts: &ScriptSettings) -> impl Iterator<Item = PathBuf> {
    scripts.private_files.iter().filter_map(real_or_missing)
}

/// These skills folders, which are real paths, and the skills that links in them lead to.
pub fn skill_places(scripts: &ScriptSettings, folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let forbidden = Boundary::new(scripts).forbidden_folders();
    let is_forbidden = |path: &Path| {
        let found = identity(path);
        found.is_none_or(|found| forbidden.describe(found).is_some())
    };
    // Other links are not skills, and may lead anywhere.
    let links = targets_of_links(&folders).into_iter();
    let links: Vec<PathBuf> = links.filter(|path| is_skill(path) && !is_forbidden(path)).collect();
    folders.into_iter().chain(links).collect()
}

/// Where the links in these folders lead, whether there is anything or not: a document there would
/// make it a skill.
pub fn targets_of_links(folders: &[PathBuf]) -> Vec<PathBuf> {
    let entries = folders.iter().filter_map(|root| fs::read_dir(root).ok()).flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|entry| real_or_missing(entry.path())).collect()
}

/// Whether this folder, in which the user works, is the home, a folder above it, or `/`.
pub fn is_home_or_above(scripts: &ScriptSettings, folder: Identity) -> bool {
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
