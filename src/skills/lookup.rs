//! Access to the skills in the skills folders, by path. Tools, commands and protocols open a
//! skill only through this file.
//!
//! Entries that are no skills, or unreadable, hide nothing in later folders.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use crate::boundary::{Boundary, ForbiddenFolders};
use crate::private::{PrivateEntries, PrivateFiles};
use crate::skill::{DOCUMENT_NAME, has_document, open_document};
use crate::{FolderOrigin, SkillsFolder};
use crate::{INSTALLED_PATH, SkillSummary, Skills};
use host::confined::{FoundFile, OpenError, OpenFile, Root, identity, read_head};

/// The skills folders, opened; each real folder once.
pub(super) struct OpenFolders<'s> {
    pub folders: Vec<OpenedFolder<'s>>,
    boundary: &'s Boundary,
    private: &'s PrivateFiles,
    /// Private entries outside the skills; found for the first document with several names.
    elsewhere: OnceCell<PrivateEntries>,
    /// The folders that no link may lead to; computed for the first link.
    forbidden: OnceCell<ForbiddenFolders>,
}

/// A skills folder, or why it cannot be opened.
pub(super) struct OpenedFolder<'s> {
    pub folder: &'s SkillsFolder,
    pub root: Result<Root, OpenError>,
}

/// Target of a path in a skills folder.
pub(super) enum Found {
    /// A folder with a document: its file name, and the file if it can be opened.
    Skill(Result<(String, OpenFile), OpenError>),
    /// A folder without a document.
    NoDocument,
    /// A link to a folder that no link may lead to.
    ForbiddenLink { leads_to: &'static str, has_document: bool },
    /// A folder that cannot be opened, with the reason.
    Unreadable(String),
}

impl<'s> OpenFolders<'s> {
    pub(super) fn of(skills: &'s Skills) -> OpenFolders<'s> {
        let mut seen = HashSet::new();
        let folders = skills.folders().iter();
        let folders = folders
            .filter(|folder| identity(folder).is_none_or(|found| seen.insert(found)))
            .map(|folder| OpenedFolder { folder, root: open_folder(folder) });
        OpenFolders {
            folders: folders.collect(),
            boundary: &skills.boundary,
            private: &skills.private,
            elsewhere: OnceCell::new(),
            forbidden: OnceCell::new(),
        }
    }

    /// Examines a folder by its path in a skills folder; empty for the skills folder itself.
    /// `None`: there is no such folder.
    pub(super) fn inspect(&self, root: &Root, path: &str) -> Option<Found> {
        if let Some(open) = open_plain_document(root, path) {
            return Some(Found::Skill(Ok((DOCUMENT_NAME.to_string(), open))));
        }
        let (folder, forbidden) = match self.open_entry(root, path) {
            Ok(opened) => opened,
            Err(OpenError::NotFound | OpenError::NotAFolder) => return None,
            Err(error) => return Some(Found::Unreadable(error.user_message())),
        };
        Some(match (forbidden, open_document(&folder)) {
            (Some(leads_to), _) => {
                Found::ForbiddenLink { leads_to, has_document: has_document(&folder) }
            }
            (None, Err(OpenError::NotFound)) => Found::NoDocument,
            // Its description is shown before anything else of it is judged.
            (None, document) => Found::Skill(
                document.and_then(|it| self.private.check_listed(&folder, it, &self.elsewhere)),
            ),
        })
    }

    /// Opens a folder by its path in a skills folder, and says what it is if it is a forbidden
    /// folder behind a link. A direct subfolder may be a link to anywhere; deeper ones must lie in
    /// the skills folder.
    fn open_entry(
        &self,
        root: &Root,
        path: &str,
    ) -> Result<(Root, Option<&'static str>), OpenError> {
        let is_direct = !path.is_empty() && !path.contains('/');
        let folder = if is_direct { root.linked_folder(path)? } else { root.folder(path)? };
        if !folder.is_linked() {
            return Ok((folder, None));
        }
        let forbidden = self.forbidden.get_or_init(|| self.boundary.forbidden_folders());
        let leads_to = forbidden.describe(folder.identity()?);
        let leads_to = leads_to.or_else(|| self.boundary.outside(&folder));
        Ok((folder, leads_to))
    }

    /// Opens the folder of a skill of the catalogue.
    pub(super) fn open_listed(&self, skill: &SkillSummary) -> Option<Root> {
        self.folders.iter().find_map(|opened| {
            let path = skill.path.strip_prefix(&opened.folder.path).ok()?;
            self.open_at(opened, path.to_str()?)
        })
    }

    /// Reads at most `most` bytes from the start of a listed skill's document into `buffer`, which
    /// stays empty if there is none.
    pub(super) fn read_start(&self, skill: &SkillSummary, most: usize, buffer: &mut Vec<u8>) {
        buffer.clear();
        let document = self.folders.iter().find_map(|opened| {
            let path = skill.path.strip_prefix(&opened.folder.path).ok()?;
            match self.inspect(opened.root.as_ref().ok()?, path.to_str()?)? {
                Found::Skill(document) => document.ok(),
                _ => None,
            }
        });
        if let Some((_, open)) = document {
            buffer.resize(most.min(usize::try_from(open.size).unwrap_or(most)), 0);
            let length = read_head(&open.file, open.size, buffer);
            buffer.truncate(length.unwrap_or(0));
        }
    }

    /// Opens a folder if it is a skill. The checks are made on the opened folder, which is the one
    /// that is read later.
    pub(super) fn open_at(&self, opened: &OpenedFolder<'_>, path: &str) -> Option<Root> {
        let root = opened.root.as_ref().ok()?;
        let is_in_reach = opened.folder.is_named() || !path.contains('/');
        let (folder, forbidden) = self.open_entry(root, path).ok().filter(|_| is_in_reach)?;
        (forbidden.is_none() && has_document(&folder)).then_some(folder)
    }
}

/// Opens a skills folder; of an installed one, the path below the installation has to be trusted.
fn open_folder(folder: &SkillsFolder) -> Result<Root, OpenError> {
    match folder.origin {
        FolderOrigin::Installed => {
            let prefix = folder.path.ancestors().nth(INSTALLED_PATH.len());
            Root::open_trusted(prefix.unwrap_or(&folder.path), INSTALLED_PATH)
        }
        _ => Root::open(&folder.path),
    }
}

/// Opens the document in the usual case with as few system calls as possible: a file with the
/// standard name, no links and no other name.
fn open_plain_document(root: &Root, path: &str) -> Option<OpenFile> {
    let path = Path::new(path).join(DOCUMENT_NAME).into_os_string().into_vec();
    if root.is_linked() {
        return None;
    }
    let open = root.open_plain_file(&CString::new(path).ok()?)?;
    FoundFile::of(&open.file).is_ok_and(|found| !found.has_other_names).then_some(open)
}
