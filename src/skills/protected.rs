//! Places with settings, credentials and stored data, the folders of skills, and the home: what
//! sandboxed scripts and the tools for the user's files must keep away from.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::ScriptSettings;
use crate::limits;
use crate::skills::boundary::Boundary;
use crate::skills::skill::has_document;
use crate::text::folded_name;
use crate::world::confined::{Identity, Root, identity};

/// The real paths of the private files and folders, whether they exist or not.
pub(crate) fn private_paths(scripts: &ScriptSettings) -> impl Iterator<Item = PathBuf> {
    scripts.private_files.iter().filter_map(real_or_missing)
}

/// The real path; of what is missing, the path at which it would be, behind a dangling link, too.
pub(crate) fn real_or_missing(path: impl AsRef<Path>) -> Option<PathBuf> {
    let mut path = path.as_ref().to_path_buf();
    for _ in 0..limits::LINKS {
        if let Some(found) = canonical(&path) {
            return Some(found);
        }
        let (parent, name) = (path.parent()?, path.file_name()?);
        match fs::read_link(&path) {
            Ok(target) => path = parent.join(target),
            Err(_) => return Some(real_or_missing(parent)?.join(name)),
        }
    }
    None
}

/// These skills folders, which are real paths, and the skills that links in them lead to.
pub(crate) fn skill_places(scripts: &ScriptSettings, folders: Vec<PathBuf>) -> Vec<PathBuf> {
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
pub(crate) fn targets_of_links(folders: &[PathBuf]) -> Vec<PathBuf> {
    let entries = folders.iter().filter_map(|root| fs::read_dir(root).ok()).flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|entry| real_or_missing(entry.path())).collect()
}

/// Whether a real path is one of these places or in one, also by another path to the same folder.
pub(crate) fn lies_in(real: &Path, places: &[PathBuf]) -> bool {
    let found: Vec<Identity> = places.iter().filter_map(identity).collect();
    let is_same = |path: &Path| identity(path).is_some_and(|it| found.contains(&it));
    places.iter().any(|place| real.starts_with(place)) || real.ancestors().any(is_same)
}

/// Whether this folder, in which the user works, is the home, a folder above it, or `/`.
pub(crate) fn is_home_or_above(scripts: &ScriptSettings, folder: Identity) -> bool {
    Boundary::new(scripts).forbidden_folders().describe(folder).is_some()
}

/// Whether this folder has a document.
pub(super) fn is_skill(folder: &Path) -> bool {
    Root::open(folder).is_ok_and(|root| has_document(&root))
}

/// Whether a name is private in any folder: `.env*` and `.git`.
pub(crate) fn is_private_name(name: &str) -> bool {
    folded_name(name).starts_with(".env") || is_git_name(name)
}

/// Whether some file systems take this name for that of git's folder: they ignore parts of a name,
/// or have short names, and parts of files behind a colon.
pub(crate) fn is_git_name(name: &str) -> bool {
    let folded = folded_name(name.split(':').next().unwrap_or(name));
    matches!(folded.as_str(), ".git" | "git~1")
}

/// What is private below some folders, by name or because it is in a private place.
#[derive(Debug, Default)]
pub(crate) struct PrivateEntries {
    /// The files and folders with private names.
    pub paths: Vec<PathBuf>,
    /// The private files, and those below private folders.
    files: BTreeSet<Identity>,
    /// Other files that have several names.
    linked: Vec<(PathBuf, Identity)>,
    /// Whether there were too many entries to see all.
    is_cut: bool,
}

impl PrivateEntries {
    /// Finds them below these folders and in the places of the settings, in at most this many
    /// entries of each.
    pub(crate) fn find(scripts: &ScriptSettings, folders: &[&Path], most: usize) -> PrivateEntries {
        let mut found = PrivateEntries::default();
        // Each has its own limit: much stored data leaves enough for the folders.
        found.look_through(folders.iter().map(|folder| (folder.to_path_buf(), false)), most);
        found.look_through(private_paths(scripts).map(|path| (path, true)), most);
        found
    }

    /// Adds what is below these starts, each of which is private or not.
    fn look_through(&mut self, starts: impl Iterator<Item = (PathBuf, bool)>, most: usize) {
        let mut queue: VecDeque<(PathBuf, bool)> = starts.collect();
        let mut left = most;
        while let Some((path, is_private)) = queue.pop_front() {
            let Ok(meta) = path.symlink_metadata() else { continue };
            if meta.is_file() && is_private {
                self.files.insert((meta.dev(), meta.ino()));
            } else if meta.is_file() && meta.nlink() > 1 {
                self.linked.push((path, (meta.dev(), meta.ino())));
            } else if meta.is_dir() {
                for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                    self.is_cut |= left == 0;
                    if left == 0 {
                        break;
                    }
                    left -= 1;
                    let name = entry.file_name();
                    let has_name = !is_private && is_private_name(&name.to_string_lossy());
                    if has_name {
                        self.paths.push(entry.path());
                    }
                    queue.push_back((entry.path(), is_private || has_name));
                }
            }
        }
    }

    /// Whether this file, which has several names, is a private one; `None` if that is not known.
    pub(crate) fn holds(&self, file: Identity) -> Option<bool> {
        let is_private = self.files.contains(&file);
        (is_private || !self.is_cut).then_some(is_private)
    }

    /// The private entries, and the other names of private files.
    pub(crate) fn all_paths(self) -> Vec<PathBuf> {
        let PrivateEntries { mut paths, files, linked, .. } = self;
        let other_names = linked.into_iter().filter(|(_, file)| files.contains(file));
        paths.extend(other_names.map(|(path, _)| path));
        paths
    }
}

/// The real path of the parent, joined with the name: a final link is not followed.
pub(super) fn without_following(path: impl AsRef<Path>) -> Option<PathBuf> {
    let path = path.as_ref();
    Some(canonical(path.parent()?)?.join(path.file_name()?))
}

pub(super) fn canonical(path: impl AsRef<Path>) -> Option<PathBuf> {
    path.as_ref().canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_file_systems_take_for_git_are_found() {
        for name in [".git", ".GIT", ".Git. .", ".g\u{200c}it", "GIT~1", ".git::$INDEX", ".git :x"]
        {
            assert!(is_git_name(name), "{name:?}");
        }
        for name in [".gitignore", ".gitattributes", ".github", "git", "a.git", "git~2", ".gi"] {
            assert!(!is_git_name(name), "{name:?}");
        }
    }
}
