//! The names in a folder that may be skills: folders, and links to folders.
//!
//! Broken links and names that are not UTF-8 are reported. No skill is opened here.

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

use crate::Problem;
use crate::folder_problems::{broken_link, name_not_utf8, too_many};
use crate::skill::is_document_name;
use base::limits;
use host::confined::VENV_MARKER;

/// Folders that tools create wherever they run, and macOS in archives.
const TOOL_FOLDERS: [&str; 7] =
    [".git", ".skills-runner-install", ".venv", "__MACOSX", "__pycache__", "node_modules", "venv"];

/// The entries of a folder.
#[derive(Default)]
pub(super) struct FolderListing {
    /// Sorted by name, at most [`limits::SKILLS`].
    pub folders: Vec<ListedFolder>,
    /// Whether the folder itself has a document, and so is a skill.
    pub is_skill: bool,
    /// The names of its other Markdown files.
    pub markdown_files: Vec<String>,
    /// Whether the folder is a venv.
    pub is_venv: bool,
    /// Problems of entries that cannot be skills.
    pub problems: Vec<Problem>,
}

/// A folder, or a link to one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListedFolder {
    pub name: String,
    /// Inode number; `None` for a link.
    pub inode: Option<u64>,
}

/// Whether tools create folders of this name.
pub fn is_tool_folder(name: &str) -> bool {
    let is_of_macos = name.starts_with("._");
    TOOL_FOLDERS.contains(&name) || is_of_macos || name.starts_with('.') && name.ends_with("cache")
}

/// Whether this is the name of a file that belongs to git or macOS, not to a skill.
pub fn is_system_file(name: &str) -> bool {
    matches!(name, ".git" | ".DS_Store") || name.starts_with("._")
}

impl FolderListing {
    /// Reads the names in a folder.
    pub(super) fn read(folder: &Path) -> std::io::Result<FolderListing> {
        let mut listing = FolderListing::default();
        let folders = &mut listing.folders;
        let mut left_out = 0;
        for entry in fs::read_dir(folder)?.take(limits::ENTRIES_READ) {
            let entry = entry?;
            match entry.file_name().into_string() {
                Ok(name) if is_document_name(&name) => {
                    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                    listing.is_skill |= !is_folder;
                }
                Ok(name) => match FolderKind::of(&entry) {
                    FolderKind::Folder => {
                        folders.push(ListedFolder { name, inode: Some(entry.ino()) });
                    }
                    FolderKind::Link => folders.push(ListedFolder { name, inode: None }),
                    FolderKind::None if name.to_lowercase().ends_with(".md") => {
                        listing.markdown_files.push(name);
                    }
                    FolderKind::None => listing.is_venv |= name == VENV_MARKER,
                    FolderKind::BrokenLink(_) if name.starts_with('.') => {}
                    FolderKind::BrokenLink(cause) => {
                        listing.problems.push(broken_link(entry.path(), cause));
                    }
                },
                Err(_) => match FolderKind::of(&entry) {
                    FolderKind::Folder | FolderKind::Link => {
                        listing.problems.push(name_not_utf8(entry.path()));
                    }
                    FolderKind::None | FolderKind::BrokenLink(_) => {}
                },
            }
            // The same names are kept whatever the order in which the system lists them.
            if folders.len() >= 2 * limits::SKILLS {
                left_out += keep_first(folders);
            }
        }
        left_out += keep_first(folders);
        if left_out > 0 {
            listing.problems.push(too_many(folder, left_out));
        }
        Ok(listing)
    }
}

/// Sorts the names and keeps those within the limit. Returns how many are left out.
fn keep_first(folders: &mut Vec<ListedFolder>) -> usize {
    folders.sort_unstable();
    let left_out = folders.len().saturating_sub(limits::SKILLS);
    folders.truncate(limits::SKILLS);
    left_out
}

/// Whether an entry is a folder or leads to one.
enum FolderKind {
    Folder,
    /// A link to a folder.
    Link,
    /// Not a folder.
    None,
    /// A link that cannot be followed, with the reason.
    BrokenLink(String),
}

impl FolderKind {
    fn of(entry: &DirEntry) -> FolderKind {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => return FolderKind::Folder,
            Ok(kind) if kind.is_symlink() => {}
            Ok(_) | Err(_) => return FolderKind::None,
        }
        let path = entry.path();
        let error = match path.metadata() {
            Ok(meta) if meta.is_dir() => return FolderKind::Link,
            Ok(_) => return FolderKind::None,
            Err(error) => error,
        };
        let target = fs::read_link(&path).unwrap_or_default();
        let target = target.display();
        FolderKind::BrokenLink(match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                format!("a link to {target}, which does not exist")
            }
            _ if error.raw_os_error() == Some(libc::ELOOP) => {
                format!("a link to {target}, which leads back to itself")
            }
            _ => format!("a link to {target}, which cannot be followed: {error}"),
        })
    }
}
