//! The names in a skills folder that may be skills: folders, and links to folders, whose
//! names do not start with a dot.
//!
//! Broken links and names that are not UTF-8 are reported. No skill is opened here.

use std::fs::{self, DirEntry};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::skill::is_document_name;
use crate::skills::{Problem, Severity, is_skill_name};
use crate::text::shell_quoted;
use crate::world::confined::OpenError;

/// Folders that tools create wherever they run.
const TOOL_FOLDERS: [&str; 3] = ["__pycache__", "node_modules", "venv"];

/// The entries of a skills folder.
#[derive(Default)]
pub(super) struct FolderListing {
    /// Sorted, at most [`limits::SKILLS`].
    pub names: Vec<String>,
    /// Whether the folder itself has a document, and so is a skill.
    pub is_skill: bool,
    /// Problems of the folder and of entries that cannot be skills.
    pub problems: Vec<Problem>,
}

/// Whether tools create folders of this name.
pub(super) fn is_tool_folder(name: &str) -> bool {
    TOOL_FOLDERS.contains(&name)
}

impl FolderListing {
    /// Reads the names in a folder.
    pub(super) fn read(folder: &Path) -> std::io::Result<FolderListing> {
        let mut listing = FolderListing::default();
        let names = &mut listing.names;
        let mut left_out = 0;
        for entry in fs::read_dir(folder)?.take(limits::ENTRIES_READ) {
            let entry = entry?;
            match entry.file_name().into_string() {
                Ok(text) if is_document_name(&text) => {
                    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                    listing.is_skill |= !is_folder;
                }
                Ok(text) if is_skill_name(&text) => match is_folder(&entry) {
                    Ok(true) => names.push(text),
                    Ok(false) => {}
                    Err(cause) => listing.problems.push(broken_link(entry.path(), cause)),
                },
                Err(_) if is_folder(&entry) == Ok(true) => {
                    listing.problems.push(name_not_utf8(entry.path()));
                }
                Ok(_) | Err(_) => {}
            }
            // The same names are kept whatever the order in which the system lists them.
            if names.len() >= 2 * limits::SKILLS {
                left_out += keep_first(names);
            }
        }
        left_out += keep_first(names);
        if left_out > 0 {
            listing.problems.push(too_many(folder, left_out));
        }
        if listing.is_skill {
            listing.problems.push(folder_is_skill(folder));
        }
        Ok(listing)
    }
}

/// Sorts the names and keeps those within the limit. Returns how many are left out.
fn keep_first(names: &mut Vec<String>) -> usize {
    names.sort_unstable();
    let left_out = names.len().saturating_sub(limits::SKILLS);
    names.truncate(limits::SKILLS);
    left_out
}

/// Whether an entry is a folder or a link to one. Fails for a link that cannot be followed.
fn is_folder(entry: &DirEntry) -> Result<bool, String> {
    let is_link = match entry.file_type() {
        Ok(kind) if kind.is_dir() => return Ok(true),
        Ok(kind) => kind.is_symlink(),
        Err(_) => false,
    };
    if !is_link {
        return Ok(false);
    }
    let path = entry.path();
    let error = match path.metadata() {
        Ok(meta) => return Ok(meta.is_dir()),
        Err(error) => error,
    };
    let target = fs::read_link(&path).unwrap_or_default();
    let target = target.display();
    Err(match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            format!("a link to {target}, which does not exist")
        }
        _ if error.raw_os_error() == Some(libc::ELOOP) => {
            format!("a link to {target}, which leads back to itself")
        }
        _ => format!("a link to {target}, which cannot be followed: {error}"),
    })
}

/// The problem of a skills folder that cannot be read.
pub(super) fn unreadable_folder(folder: &Path, error: &Error) -> Problem {
    let fix = match error.kind() {
        ErrorKind::NotFound => {
            "create the folder, or name another one with --skills or SKILLS_FOLDER_PATH"
        }
        ErrorKind::PermissionDenied => {
            "make it readable, or name another one with --skills or SKILLS_FOLDER_PATH"
        }
        _ => "name a skills folder: --skills DIR",
    };
    Problem {
        severity: Severity::Error,
        ..problem(folder.to_path_buf(), "unreadable-folder", unreadable_message(folder, error), fix)
    }
}

/// The problem of a skills folder that other users may write in.
pub(super) fn untrusted_folder(folder: &Path, error: &OpenError) -> Problem {
    let shown = folder.display();
    Problem {
        severity: Severity::Error,
        ..problem(
            folder.to_path_buf(),
            "unreadable-folder",
            format!("the skills folder {shown} is not used: {error}"),
            "let only root or yourself own it and the folder above it, and write in them",
        )
    }
}

/// Why a skills folder cannot be read, and which folder may have been meant.
fn unreadable_message(folder: &Path, error: &Error) -> String {
    let shown = folder.display();
    match error.kind() {
        ErrorKind::NotFound => match path_list_options(folder) {
            Some(options) => format!(
                "the skills folder {shown} does not exist; to name several folders, use {options}"
            ),
            None => match other_programs_options(folder) {
                Some(options) => format!(
                    "the skills folder {shown} does not exist, but one of another program does: \
                     {options}"
                ),
                None => format!("the skills folder {shown} does not exist"),
            },
        },
        ErrorKind::NotADirectory if folder.file_name().is_some_and(is_os_document_name) => {
            format!(
                "the skills folder {shown} cannot be read: it is a document; name the folder that \
                 contains its skill"
            )
        }
        ErrorKind::NotADirectory => {
            format!("the skills folder {shown} cannot be read: it is not a folder")
        }
        _ => format!("the skills folder {shown} cannot be read: {error}"),
    }
}

fn is_os_document_name(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(is_document_name)
}

/// The options that were meant by `--skills a:b`, if these folders exist.
fn path_list_options(folder: &Path) -> Option<String> {
    let text = folder.to_str()?;
    let parts: Vec<&Path> =
        text.split(':').filter(|part| !part.is_empty()).map(Path::new).collect();
    let is_list = parts.len() > 1 && parts.iter().all(|part| part.is_dir());
    is_list.then(|| skills_options(parts.iter().copied()))
}

/// The options for the skills folders of other programs, next to a missing one.
fn other_programs_options(folder: &Path) -> Option<String> {
    let beside = folder.parent()?;
    let theirs = [".agents/skills", ".claude/skills"].map(|name| beside.join(name));
    let found: Vec<&Path> =
        theirs.iter().map(PathBuf::as_path).filter(|path| path.is_dir()).collect();
    (!found.is_empty()).then(|| skills_options(found.into_iter()))
}

/// The folders as command-line options.
pub(super) fn skills_options<'p>(folders: impl Iterator<Item = &'p Path>) -> String {
    let options = folders.map(|folder| format!("--skills {}", shell_quoted(folder)));
    options.collect::<Vec<_>>().join(" ")
}

/// The problem of too many skills; `folder` is empty if all folders together hold too many.
pub(super) fn too_many(folder: &Path, left_out: usize) -> Problem {
    problem(
        folder.to_path_buf(),
        "too-many-skills",
        format!("more than {} skills: the last {left_out} by name are left out", limits::SKILLS),
        "split them into several folders, and name those that you need",
    )
}

fn name_not_utf8(path: PathBuf) -> Problem {
    problem(
        path,
        "name-not-utf8",
        "the folder's name is not UTF-8, so it cannot be a skill".into(),
        "rename the folder",
    )
}

fn broken_link(path: PathBuf, cause: String) -> Problem {
    let fix = "remove the link, or correct it";
    problem(path, "broken-link", cause, fix)
}

fn folder_is_skill(folder: &Path) -> Problem {
    let fix = match folder.parent() {
        Some(parent) => {
            format!("name the folder above it: {}", skills_options([parent].into_iter()))
        }
        None => "name the folder above it".into(),
    };
    let message = "this is a skill, not a folder of skills";
    problem(folder.to_path_buf(), "folder-is-skill", message.into(), fix)
}

fn problem(file: PathBuf, rule: &'static str, message: String, fix: impl Into<String>) -> Problem {
    Problem { file, line: None, rule, severity: Severity::Warning, message, fix: Some(fix.into()) }
}
