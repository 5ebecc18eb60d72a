//! `skills-runner.lock`: what was installed beside it, from where, and the digest of each file.
//! With `SKILLS_LOCKED=on` only skills with exactly these files are used.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::is_skill_name;
use base::digest::{copy_sha256, is_digest};
use base::error::newer_version_cause;
use base::limits;
use base::text::folded_name;
use host::confined::{EntryKind, OpenError, Root, read_whole};

/// The name of the lock file.
pub const LOCK_FILE_NAME: &str = "skills-runner.lock";

/// Whether a file of this name is the lock file, on some file systems.
pub fn is_lock_file_name(name: &str) -> bool {
    folded_name(name) == LOCK_FILE_NAME
}

/// The start of digests, unlike the name of a commit.
pub const DIGEST_START: &str = "sha256:";

/// The version of the format. In later ones the file names the program that wrote it, as sessions
/// do; in this one it does not, as every version can read it.
const VERSION: u32 = 1;

/// The files of a skill, by path, each with its digest as `sha256:…`.
pub type FileDigests = BTreeMap<String, String>;

/// The content of a lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockFile {
    version: u32,
    /// The skills by the names of their folders.
    pub skills: BTreeMap<String, LockedSkill>,
}

/// An installed skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedSkill {
    /// Where it is from, as for `skills add`.
    pub source: String,
    /// Its folder there; empty: the root.
    pub folder: String,
    /// The commit, or the digest of an archive that names none; null for a local folder.
    pub revision: Option<String>,
    /// Its files.
    pub files: FileDigests,
}

impl Default for LockFile {
    fn default() -> LockFile {
        LockFile { version: VERSION, skills: BTreeMap::new() }
    }
}

/// Why a lock file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockFileError {
    /// It cannot be read, or is not a lock file; the cause.
    Invalid(String),
    /// A newer version of this program has written it.
    Newer {
        /// The version of the program, if the file names it.
        program: Option<String>,
    },
}

impl fmt::Display for LockFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockFileError::Invalid(cause) => formatter.write_str(cause),
            LockFileError::Newer { program } => {
                formatter.write_str(&newer_version_cause(program.as_deref()))
            }
        }
    }
}

impl std::error::Error for LockFileError {}

impl From<OpenError> for LockFileError {
    fn from(error: OpenError) -> LockFileError {
        LockFileError::Invalid(error.user_message())
    }
}

impl LockFile {
    /// Reads the lock file in this folder; without one it is empty.
    pub fn read(folder: &Root) -> Result<LockFile, LockFileError> {
        let file = match folder.file(LOCK_FILE_NAME) {
            Ok(file) => file,
            Err(OpenError::NotFound) => return Ok(LockFile::default()),
            Err(error) => return Err(error.into()),
        };
        let content = read_whole(&file, limits::LOCK_FILE_BYTES)?;
        if content.has_more {
            let cause = format!("it is larger than {} bytes", limits::LOCK_FILE_BYTES);
            return Err(LockFileError::Invalid(cause));
        }
        LockFile::parse(&content.bytes)
    }

    fn parse(bytes: &[u8]) -> Result<LockFile, LockFileError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
            #[serde(default)]
            program: Value,
        }
        let invalid =
            |error: serde_json::Error| LockFileError::Invalid(format!("it is not valid: {error}"));
        let Version { version, program } = serde_json::from_slice(bytes).map_err(invalid)?;
        if version > VERSION {
            let program = program.as_str().map(String::from);
            return Err(LockFileError::Newer { program });
        }
        if version < VERSION {
            return Err(LockFileError::Invalid(format!(
                "{version} is not a version of its format"
            )));
        }
        let lock: LockFile = serde_json::from_slice(bytes).map_err(invalid)?;
        let is_valid = |name: &str| is_skill_name(name) && !is_lock_file_name(name);
        if let Some(name) = lock.skills.keys().find(|name| !is_valid(name)) {
            return Err(LockFileError::Invalid(format!("{name:?} is not the name of a skill")));
        }
        let mut revisions = lock.skills.values().filter_map(|skill| skill.revision.as_deref());
        match revisions.find(|revision| !is_revision(revision)) {
            Some(revision) => {
                Err(LockFileError::Invalid(format!("{revision:?} is not a revision")))
            }
            None => Ok(lock),
        }
    }

    /// The content of the file.
    pub fn to_json(&self) -> String {
        // Strings and numbers always serialize.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// Lock files that were read, by their folders.
pub(super) type LockFiles = HashMap<PathBuf, Result<LockFile, LockFileError>>;

/// Checks that a skill has exactly the files that the lock file beside it lists. The error is the
/// cause.
pub(super) fn check_locked(path: &Path, skill: &Root, locks: &mut LockFiles) -> Result<(), String> {
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else {
        return Err("its folder has no name".into());
    };
    let lock = locks.entry(folder.to_path_buf()).or_insert_with(|| {
        let folder = Root::open(folder).map_err(LockFileError::from);
        folder.and_then(|folder| LockFile::read(&folder))
    });
    let lock = lock.as_ref().map_err(|cause| format!("{LOCK_FILE_NAME}: {cause}"))?;
    let locked = lock.skills.get(&*name.to_string_lossy());
    let locked = locked.ok_or_else(|| format!("no {LOCK_FILE_NAME} beside it lists it"))?;
    let change = first_change(&locked.files, &file_digests(skill)?);
    change.map_or(Ok(()), |change| Err(format!("{change} since {LOCK_FILE_NAME} was written")))
}

/// Copies all bytes, and returns their digest as a lock file has it.
pub fn copy_digest(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<String> {
    Ok(format!("{DIGEST_START}{}", copy_sha256(from, to)?))
}

/// Whether this is the name of a commit or the digest of an archive.
fn is_revision(text: &str) -> bool {
    is_digest(text.strip_prefix(DIGEST_START).unwrap_or(text))
}

/// The first difference in words; `None`: they are equal.
pub fn first_change(old: &FileDigests, new: &FileDigests) -> Option<String> {
    let added = || added(old, new).next().map(|path| format!("`{path}` was added"));
    first_edit(old, new).or_else(added)
}

/// The first listed file that was changed or deleted, in words.
pub fn first_edit(listed: &FileDigests, new: &FileDigests) -> Option<String> {
    let (path, _) = listed.iter().find(|(path, digest)| new.get(*path) != Some(digest))?;
    let verb = if new.contains_key(path) { "changed" } else { "deleted" };
    Some(format!("`{path}` was {verb}"))
}

/// The files that are not listed, such as the user's own.
pub fn added<'f>(
    listed: &'f FileDigests,
    new: &'f FileDigests,
) -> impl Iterator<Item = &'f String> {
    new.keys().filter(|path| !listed.contains_key(*path))
}

/// Whether other files need the place of a file: one has its name, or lies in it, or it lies in
/// one.
pub fn is_taken(path: &str, others: &FileDigests) -> bool {
    let mut paths = path.match_indices('/').map(|(end, _)| &path[..end]).chain([path]);
    has_below(others, path) || paths.any(|path| others.contains_key(path))
}

/// Whether there are files below a path.
pub fn has_below(files: &FileDigests, path: &str) -> bool {
    let start = format!("{path}/");
    files.range(start.clone()..).next().is_some_and(|(path, _)| path.starts_with(&start))
}

/// The digests of all files of a skill, except those that tools create. The error is the cause; a
/// link and anything else that no skill is installed with is one.
pub fn file_digests(skill: &Root) -> Result<FileDigests, String> {
    let mut digests = FileDigests::new();
    let mut left = limits::INSTALLED_BYTES;
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let describe = |error: OpenError| match folder.as_str() {
            "" => error.user_message(),
            folder => format!("`{folder}`: {}", error.user_message()),
        };
        let opened = skill.folder(&folder).map_err(describe)?;
        let listed = opened.entries(limits::INSTALLED_FILES).map_err(describe)?;
        if listed.omitted > 0 || digests.len() > limits::INSTALLED_FILES {
            return Err(format!("it has more than {} files", limits::INSTALLED_FILES));
        }
        for entry in listed.entries {
            let Some(name) = entry.name.to_str() else {
                return Err(format!("the name {} is not UTF-8", entry.name.display()));
            };
            let path = if folder.is_empty() { name.into() } else { format!("{folder}/{name}") };
            match entry.kind {
                EntryKind::Folder if is_left_out(&path) => {}
                EntryKind::Folder if path.matches('/').count() < limits::INSTALLED_DEPTH => {
                    folders.push(path);
                }
                EntryKind::File => {
                    // It may grow: one byte more shows that, and is all that is read.
                    let size = entry.size.unwrap_or(0);
                    let too_large = || "it is larger than 64 MiB".to_string();
                    left = left.checked_sub(size).ok_or_else(too_large)?;
                    let digest = skill.file(&path).map_err(|error| error.user_message());
                    let digest = digest.and_then(|file| {
                        let mut file = file.take(size.saturating_add(1));
                        copy_digest(&mut file, &mut io::sink()).map_err(|it| it.to_string())
                    });
                    let digest = digest.map_err(|cause| format!("`{path}`: {cause}"))?;
                    digests.insert(path, digest);
                }
                _ => return Err(format!("`{path}` is not a file or a folder")),
            }
        }
    }
    Ok(digests)
}

/// Whether a folder of a skill does not count: what a setup, npm and Python create.
pub fn is_left_out(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path == "venv" || matches!(name, "node_modules" | "__pycache__")
}
