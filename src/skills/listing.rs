//! The names in a skills folder that may be skills: folders, and links to folders, whose
//! names do not start with a dot.
//!
//! Broken links and names that are not UTF-8 are reported. No skill is opened here.

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::path::Path;

use crate::limits;
use crate::skills::folder_problems::{broken_link, folder_is_skill, name_not_utf8, too_many};
use crate::skills::skill::is_document_name;
use crate::skills::{Problem, is_skill_name};

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
