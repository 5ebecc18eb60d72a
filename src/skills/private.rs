//! Files that are private by name or content in any folder, or by the settings: nothing reads them
//! for a model or client. What was opened decides, whatever path was asked for.

use std::cell::OnceCell;
use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use memchr::memmem;

use base::limits;
use base::text::folded_name;
use host::confined::{
    FoundFile, Identity, OpenError, OpenFile, PathTarget, Root, identity, read_head, real_path,
};
use host::files::open_regular;

/// Names of files with keys of OpenSSH; tokens for npm and indexes of Python packages; passwords
/// for curl, git and psql.
const CREDENTIAL_FILES: &str = "id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk id_rsa \
                                .npmrc .pypirc .netrc _netrc .git-credentials .pgpass";

/// Whether a name is private in any folder: `.env*`, `.git`, and those of files with credentials.
pub fn is_private_name(name: &str) -> bool {
    let folded = folded_name(name);
    let is_credential = CREDENTIAL_FILES.split(' ').any(|it| it == folded);
    folded.starts_with(".env") || is_git_name(name) || is_credential
}

/// Whether some file systems take this name for that of git's folder: they ignore parts of a name,
/// or have short names, and parts of files behind a colon.
pub fn is_git_name(name: &str) -> bool {
    let folded = folded_name(name.split(':').next().unwrap_or(name));
    matches!(folded.as_str(), ".git" | "git~1")
}

/// The names in a path, in lower case.
pub fn names(path: &Path) -> impl Iterator<Item = String> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
        _ => None,
    })
}

/// Whether a path has a private name in it.
pub fn has_private_name(path: &Path) -> bool {
    names(path).any(|name| is_private_name(&name))
}

/// Whether a file that starts with these bytes holds a private key.
pub fn holds_private_key(path: &Path, start: &[u8]) -> bool {
    start.trim_ascii_start().starts_with(b"PuTTY-User-Key-File-")
        || is_pem(path, start) && memmem::find(start, b"PRIVATE KEY").is_some()
}

/// Whether a file may have keys in lines of dashes (PEM and SSH2), by its name or its first line:
/// certificates or what OpenSSL says about a key may stand before it.
fn is_pem(path: &Path, start: &[u8]) -> bool {
    let first = start.trim_ascii_start();
    let dashes = first.iter().take_while(|byte| **byte == b'-').count();
    let is_begin = dashes > 3 && first[dashes..].trim_ascii_start().starts_with(b"BEGIN ");
    is_begin || first.starts_with(b"Bag Attributes") || has_pem_name(path)
}

/// Whether a name ends in `.pem` or `.key`, or did before another end was added (`.pem.bak`).
fn has_pem_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    name.split('.').skip(1).any(|end| matches!(end, "pem" | "key"))
}

/// Whether an open file, with this real path, holds a private key.
pub fn is_key_file(path: &Path, file: &File) -> bool {
    let size = file.metadata().map_or(0, |meta| meta.len());
    let read = |most: usize| {
        let mut start = vec![0; most];
        let length = read_head(file, size, &mut start).unwrap_or(0);
        start.truncate(length);
        start
    };
    let mut start = read(limits::KEY_START_BYTES);
    if is_pem(path, &start) {
        start = read(limits::KEY_SEARCH_BYTES);
    }
    holds_private_key(path, &start)
}

/// The files that the settings make private.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrivateFiles {
    /// Their paths, whether they exist or not.
    pub files: Vec<PathBuf>,
    /// The user's working folder.
    pub user_folder: Option<PathBuf>,
}

impl PrivateFiles {
    /// The rule for what is read in the folder of a skill.
    pub(super) fn rule_for(&self, skill: &Root) -> ReadRule {
        let folder = real_path(skill).or_else(|_| skill.path().canonicalize());
        let folder = folder.unwrap_or_else(|_| skill.path().to_path_buf());
        // The user may keep skills beside settings.
        let private = self.files.iter().filter_map(real_or_missing);
        let private = private.filter(|path| !folder.starts_with(path)).collect();
        let searched = [folder.clone()].into_iter().chain(self.user_folder.clone()).collect();
        let most = limits::HIDDEN_ENTRIES;
        ReadRule { folder, private, searched, most, entries: OnceCell::new() }
    }

    /// Returns the document of a skill unless it is private, for a list of all skills: of a hard
    /// link, fewer entries are searched than before the whole document is read. `elsewhere`: what
    /// is private outside the skills, which is found once for the list.
    pub(super) fn check_listed(
        &self,
        skill: &Root,
        (name, open): (String, OpenFile),
        elsewhere: &OnceCell<PrivateEntries>,
    ) -> Result<(String, OpenFile), OpenError> {
        let (mut rule, found) = (self.rule_for(skill), FoundFile::of(&open.file)?);
        if found.has_other_names {
            let (user, most) = (self.user_folder.as_slice(), limits::LISTED_LINK_ENTRIES);
            let elsewhere =
                elsewhere.get_or_init(|| PrivateEntries::find(&rule.private, user, most));
            if elsewhere.holds(found.identity) == Some(true) {
                return Err(OpenError::Private);
            }
            rule.entries = PrivateEntries::find(&[], &rule.searched[..1], most).into();
        }
        Ok((name.clone(), rule.check_file(name.as_ref(), open)?))
    }
}

/// Rule for reading below a folder for a model or client. The opened entry decides: its real path,
/// identity, other names and content, whatever path was asked for.
#[derive(Debug)]
pub struct ReadRule {
    /// The real path of the folder; names above it do not count.
    pub folder: PathBuf,
    /// The real paths of private files and folders.
    pub private: Vec<PathBuf>,
    /// The folders in which other names of a file are searched.
    pub searched: Vec<PathBuf>,
    /// The number of entries of each that are searched.
    pub most: usize,
    /// Results of the search.
    pub entries: OnceCell<PrivateEntries>,
}

impl ReadRule {
    /// Whether something with this real path is private; `None` if that is not known of a file with
    /// several names.
    pub fn is_private(&self, real: &Path, found: Option<&FoundFile>) -> Option<bool> {
        let below = real.strip_prefix(&self.folder).unwrap_or(real);
        let is_listed = |found: &FoundFile| {
            let mut private = self.private.iter();
            private.any(|path| identity(path) == Some(found.identity))
        };
        if has_private_name(below)
            || names(real).any(|name| is_git_name(&name))
            || real.starts_with("/proc")
            || lies_in(real, &self.private)
            || found.is_some_and(is_listed)
        {
            return Some(true);
        }
        match found.filter(|file| file.has_other_names) {
            Some(file) => {
                let find = || PrivateEntries::find(&self.private, &self.searched, self.most);
                self.entries.get_or_init(find).holds(file.identity)
            }
            None => Some(false),
        }
    }

    /// Returns what was opened by this path below the folder, unless it is private. Of a file with
    /// more names than are searched that is not known: installed files may have several.
    pub fn check(&self, asked: &Path, target: PathTarget) -> Result<PathTarget, OpenError> {
        match target {
            PathTarget::File(open) => self.check_file(asked, open).map(PathTarget::File),
            PathTarget::Folder(root) => match self.is_private(&self.real(asked, &root), None) {
                Some(true) => Err(OpenError::Private),
                _ => Ok(PathTarget::Folder(root)),
            },
        }
    }

    /// The same of a file.
    pub fn check_file(&self, asked: &Path, open: OpenFile) -> Result<OpenFile, OpenError> {
        let (real, found) = (self.real(asked, &open.file), FoundFile::of(&open.file)?);
        if is_key_file(&real, &open.file) || self.is_private(&real, Some(&found)) == Some(true) {
            return Err(OpenError::Private);
        }
        Ok(open)
    }

    /// The real path; without `/proc` there is only the path that was asked for.
    fn real(&self, asked: &Path, opened: &impl AsFd) -> PathBuf {
        real_path(opened).unwrap_or_else(|_| self.folder.join(asked))
    }
}

/// Private entries below some folders, by name or by place.
#[derive(Debug, Default)]
pub struct PrivateEntries {
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
    /// Finds them below these folders and in these private places, in at most this many entries of
    /// each.
    pub fn find(private: &[PathBuf], folders: &[PathBuf], most: usize) -> PrivateEntries {
        let mut found = PrivateEntries::default();
        // Each has its own limit: much stored data leaves enough for the folders.
        found.look_through(folders.iter().map(|folder| (folder.clone(), false)), most);
        found.look_through(private.iter().map(|path| (path.clone(), true)), most);
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
                    let is_key = |path: &Path| {
                        has_pem_name(path)
                            && open_regular(path).is_ok_and(|it| is_key_file(path, &it))
                    };
                    let has_name = !is_private
                        && (is_private_name(&entry.file_name().to_string_lossy())
                            || is_key(&entry.path()));
                    if has_name {
                        self.paths.push(entry.path());
                    }
                    queue.push_back((entry.path(), is_private || has_name));
                }
            }
        }
    }

    /// Whether this file, which has several names, is a private one; `None` if that is not known.
    pub fn holds(&self, file: Identity) -> Option<bool> {
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

/// The real path; of what is missing, the path at which it would be, behind a dangling link, too.
pub fn real_or_missing(path: impl AsRef<Path>) -> Option<PathBuf> {
    let mut path = path.as_ref().to_path_buf();
    for _ in 0..limits::LINKS {
        if let Ok(found) = path.canonicalize() {
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

/// Whether a real path is one of these places or in one, also by another path to the same folder.
pub fn lies_in(real: &Path, places: &[PathBuf]) -> bool {
    let found: Vec<Identity> = places.iter().filter_map(identity).collect();
    let is_same = |path: &Path| identity(path).is_some_and(|it| found.contains(&it));
    places.iter().any(|place| real.starts_with(place)) || real.ancestors().any(is_same)
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
