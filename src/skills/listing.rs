//! The names in a skills folder that may be skills.
//!
//! A folder, or a link to one, whose name does not begin with a dot. What only
//! looks like one is told: a link that leads nowhere, a name that is no text.
//! Nothing here looks into a skill.

use std::fs::{self, DirEntry};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::skill::is_document;
use crate::skills::{Problem, Severity, is_skill_name};
use crate::text::quoted;
use crate::world::confined::OpenError;

/// Folders that tools make wherever they run.
const MADE_BY_TOOLS: [&str; 3] = ["__pycache__", "node_modules", "venv"];

/// What lies in a skills folder.
#[derive(Default)]
pub(super) struct FolderListing {
    /// Sorted, at most [`limits::SKILLS`].
    pub names: Vec<String>,
    /// Whether the folder itself holds a document, and so is a skill.
    pub is_skill: bool,
    /// What is wrong with the folder, and what cannot be a skill for its name.
    pub problems: Vec<Problem>,
}

/// Whether a name is usual for folders that nobody wrote for a reader.
pub(super) fn is_made_by_tools(name: &str) -> bool {
    MADE_BY_TOOLS.contains(&name)
}

impl FolderListing {
    /// Reads the names in a folder.
    pub(super) fn of(folder: &Path) -> std::io::Result<FolderListing> {
        let mut listing = FolderListing::default();
        let names = &mut listing.names;
        let mut left_out = 0;
        for entry in fs::read_dir(folder)?.take(limits::ENTRIES_READ) {
            let entry = entry?;
            match entry.file_name().into_string() {
                Ok(text) if is_document(&text) => {
                    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                    listing.is_skill |= !is_folder;
                }
                Ok(text) if is_skill_name(&text) => match is_folder(&entry) {
                    Ok(true) => names.push(text),
                    Ok(false) => {}
                    Err(fault) => listing.problems.push(broken_link(entry.path(), fault)),
                },
                Err(_) if is_folder(&entry) == Ok(true) => {
                    listing.problems.push(no_text(entry.path()));
                }
                Ok(_) | Err(_) => {}
            }
            // Whatever the order in which the system names them, the same are kept.
            if names.len() >= 2 * limits::SKILLS {
                left_out += keep_first(names);
            }
        }
        left_out += keep_first(names);
        if left_out > 0 {
            listing.problems.push(too_many(folder, left_out));
        }
        if listing.is_skill {
            listing.problems.push(is_itself_a_skill(folder));
        }
        Ok(listing)
    }
}

/// Sorts the names, and keeps as many as there may be; how many are left out.
fn keep_first(names: &mut Vec<String>) -> usize {
    names.sort_unstable();
    let left_out = names.len().saturating_sub(limits::SKILLS);
    names.truncate(limits::SKILLS);
    left_out
}

/// Whether an entry is a folder or a link to one. The error: a link of which
/// that cannot be said.
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
            format!("a link to {target}, where nothing is")
        }
        _ if error.raw_os_error() == Some(libc::ELOOP) => {
            format!("a link to {target}, which leads in a circle")
        }
        _ => format!("a link to {target}, which cannot be followed: {error}"),
    })
}

/// What is wrong with a skills folder that cannot be read.
pub(super) fn unreadable(folder: &Path, error: &Error) -> Problem {
    let fix = match error.kind() {
        ErrorKind::NotFound => {
            "make the folder, or name another one with --skills or SKILLS_FOLDER_PATH"
        }
        ErrorKind::PermissionDenied => {
            "make it readable, or name another one with --skills or SKILLS_FOLDER_PATH"
        }
        _ => "name a folder of skills: --skills DIR",
    };
    Problem {
        severity: Severity::Error,
        ..problem(folder.to_path_buf(), "unreadable-folder", describe(folder, error), fix)
    }
}

/// What is wrong with a skills folder that is not to be trusted.
pub(super) fn unused(folder: &Path, refusal: &OpenError) -> Problem {
    let shown = folder.display();
    Problem {
        severity: Severity::Error,
        ..problem(
            folder.to_path_buf(),
            "unreadable-folder",
            format!("the skills folder {shown} is not used: {refusal}"),
            "let only root or yourself own it and the folder above it, and write there",
        )
    }
}

/// Why a skills folder cannot be read, and what may have been meant.
fn describe(folder: &Path, error: &Error) -> String {
    let shown = folder.display();
    match error.kind() {
        ErrorKind::NotFound => match several(folder) {
            Some(options) => format!(
                "the skills folder {shown} does not exist; several folders are given so: {options}"
            ),
            None => match of_other_programs(folder) {
                Some(options) => format!(
                    "the skills folder {shown} does not exist, but one for other programs is \
                     there: {options}"
                ),
                None => format!("the skills folder {shown} does not exist"),
            },
        },
        ErrorKind::NotADirectory if folder.file_name().is_some_and(is_document_name) => {
            format!(
                "the skills folder {shown} cannot be read: it is a document; name the folder in \
                 which its skill lies"
            )
        }
        ErrorKind::NotADirectory => {
            format!("the skills folder {shown} cannot be read: it is no folder")
        }
        _ => format!("the skills folder {shown} cannot be read: {error}"),
    }
}

fn is_document_name(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(is_document)
}

/// `--skills a:b`: the options that were meant, if these folders exist.
fn several(folder: &Path) -> Option<String> {
    let text = folder.to_str()?;
    let parts: Vec<&Path> =
        text.split(':').filter(|part| !part.is_empty()).map(Path::new).collect();
    let is_list = parts.len() > 1 && parts.iter().all(|part| part.is_dir());
    is_list.then(|| options(parts.iter().copied()))
}

/// The options for the folders beside a missing one in which other programs
/// look for skills, if there are any.
fn of_other_programs(folder: &Path) -> Option<String> {
    let beside = folder.parent()?;
    let theirs = [".agents/skills", ".claude/skills"].map(|name| beside.join(name));
    let found: Vec<&Path> =
        theirs.iter().map(PathBuf::as_path).filter(|path| path.is_dir()).collect();
    (!found.is_empty()).then(|| options(found.into_iter()))
}

/// The folders as options of the command line.
pub(super) fn options<'p>(folders: impl Iterator<Item = &'p Path>) -> String {
    let options = folders.map(|folder| format!("--skills {}", quoted(folder)));
    options.collect::<Vec<_>>().join(" ")
}

/// `folder` is empty for all of them together.
pub(super) fn too_many(folder: &Path, left_out: usize) -> Problem {
    problem(
        folder.to_path_buf(),
        "too-many-skills",
        format!("more than {} skills: the last {left_out} by name are left out", limits::SKILLS),
        "spread them over several folders, and name those that are needed",
    )
}

fn no_text(path: PathBuf) -> Problem {
    problem(
        path,
        "name-not-utf8",
        "the folder's name is not UTF-8, so it cannot be a skill's".into(),
        "rename the folder",
    )
}

fn broken_link(path: PathBuf, fault: String) -> Problem {
    let fix = "remove the link, or make it again";
    problem(path, "broken-link", fault, fix)
}

fn is_itself_a_skill(folder: &Path) -> Problem {
    let fix = match folder.parent() {
        Some(parent) => format!("name the folder above it: {}", options([parent].into_iter())),
        None => "name the folder above it".into(),
    };
    let message = "this is a skill, not a folder of skills";
    problem(folder.to_path_buf(), "folder-is-skill", message.into(), fix)
}

fn problem(file: PathBuf, rule: &'static str, message: String, fix: impl Into<String>) -> Problem {
    Problem { file, line: None, rule, severity: Severity::Warning, message, fix: Some(fix.into()) }
}
