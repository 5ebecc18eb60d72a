//! Which folder wins a name. Tools, commands and protocols open a skill only through this file.
//!
//! The first folder with a document wins. What is not a skill, or cannot be opened, hides nothing
//! in a later folder; it only says why a name that no skill has is not usable.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::ffi::CStr;
use std::path::{Path, PathBuf};

use crate::skills::boundary::{Boundary, ForbiddenFolders};
use crate::skills::skill::{DOCUMENT_NAME, has_document, open_document};
use crate::skills::{SkillSummary, Skills, is_skill_name};
use crate::world::confined::{OpenError, OpenFile, Root, identity};

/// The skills folders, opened; each real folder once.
pub(super) struct OpenFolders<'s> {
    pub folders: Vec<OpenedFolder<'s>>,
    boundary: &'s Boundary,
    /// The folders that no link may lead to; computed for the first link.
    forbidden: OnceCell<ForbiddenFolders>,
}

/// A skills folder, or why it cannot be opened.
pub(super) struct OpenedFolder<'s> {
    pub path: &'s Path,
    pub root: Result<Root, OpenError>,
}

/// A name in a skills folder.
pub(super) struct Candidate {
    /// The path in the skills folder.
    pub path: PathBuf,
    /// Index of the skills folder.
    pub folder: usize,
    pub found: Found,
}

/// What a skills folder has under a name.
pub(super) enum Found {
    /// A folder with a document: its file name, and the file if it can be opened.
    Skill(Result<(String, OpenFile), OpenError>),
    /// A folder without a document.
    NoDocument(Root),
    /// A link to a folder that no link may lead to.
    ForbiddenLink { leads_to: &'static str, has_document: bool },
    /// A folder that cannot be opened, with the reason.
    Unreadable(String),
}

/// The folders that have a name.
pub(super) struct Resolved {
    pub winner: Candidate,
    /// Folders without a document, before a winner that has one.
    pub without_document: Vec<PathBuf>,
    /// Folders that the winner hides.
    pub hidden: Vec<PathBuf>,
}

impl Found {
    /// Which of several candidates wins: the smallest rank, and of these the first.
    fn rank(&self) -> u8 {
        match self {
            Found::Skill(_) => 0,
            Found::NoDocument(_) | Found::ForbiddenLink { .. } => 1,
            Found::Unreadable(_) => 2,
        }
    }
}

impl<'s> OpenFolders<'s> {
    pub(super) fn of(skills: &'s Skills) -> OpenFolders<'s> {
        let mut seen = HashSet::new();
        let paths = skills.folders().iter();
        let folders = paths
            .filter(|path| identity(path).is_none_or(|folder| seen.insert(folder)))
            .map(|path| OpenedFolder { path, root: skills.open_folder(path) });
        OpenFolders {
            folders: folders.collect(),
            boundary: &skills.boundary,
            forbidden: OnceCell::new(),
        }
    }

    /// Decides which of the folders with these indexes wins the name; `None`: none has it.
    pub(super) fn resolve(
        &self,
        name: &str,
        folders: impl IntoIterator<Item = usize>,
    ) -> Option<Resolved> {
        let mut folders = folders.into_iter();
        let mut candidates: Vec<Candidate> = Vec::new();
        for folder in folders.by_ref() {
            candidates.extend(self.candidate(folder, name));
            if candidates.last().is_some_and(|last| last.found.rank() == 0) {
                break;
            }
        }
        let (at, _) =
            candidates.iter().enumerate().min_by_key(|(_, candidate)| candidate.found.rank())?;
        let after = candidates.split_off(at + 1).into_iter().map(|candidate| candidate.path);
        let winner = candidates.pop()?;
        // A link to the same folder is not a clash.
        let is_other = |path: &PathBuf| identity(path) != identity(&winner.path);
        let hidden = after.chain(folders.map(|folder| self.folders[folder].path.join(name)));
        let hidden: Vec<PathBuf> = hidden.filter(is_other).collect();
        let no_skill = candidates
            .into_iter()
            .filter(|candidate| candidate.found.rank() == 1 && winner.found.rank() == 0);
        let without_document: Vec<PathBuf> =
            no_skill.map(|candidate| candidate.path).filter(is_other).collect();
        Some(Resolved { winner, without_document, hidden })
    }

    fn candidate(&self, folder: usize, name: &str) -> Option<Candidate> {
        let OpenedFolder { path, root } = &self.folders[folder];
        let found = match root {
            Ok(root) => self.inspect(root, name)?,
            Err(OpenError::NotFound | OpenError::NotAFolder | OpenError::Foreign) => return None,
            Err(error) => Found::Unreadable(error.user_message()),
        };
        Some(Candidate { path: path.join(name), folder, found })
    }

    /// `None`: there is no such folder.
    fn inspect(&self, root: &Root, name: &str) -> Option<Found> {
        if let Some(open) = open_plain_document(root, name) {
            return Some(Found::Skill(Ok((DOCUMENT_NAME.to_string(), open))));
        }
        let (folder, forbidden) = match self.open_entry(root, name) {
            Ok(opened) => opened,
            Err(OpenError::NotFound | OpenError::NotAFolder) => return None,
            Err(error) => return Some(Found::Unreadable(error.user_message())),
        };
        Some(match (forbidden, open_document(&folder)) {
            (Some(leads_to), _) => {
                Found::ForbiddenLink { leads_to, has_document: has_document(&folder) }
            }
            (None, Err(OpenError::NotFound)) => Found::NoDocument(folder),
            (None, document) => Found::Skill(document),
        })
    }

    /// Opens a folder of a skills folder, and says what it is if a forbidden link leads there.
    fn open_entry(
        &self,
        root: &Root,
        name: &str,
    ) -> Result<(Root, Option<&'static str>), OpenError> {
        let folder = root.linked_folder(name)?;
        if !folder.is_linked() {
            return Ok((folder, None));
        }
        let forbidden = self.forbidden.get_or_init(|| self.boundary.forbidden_folders());
        let leads_to = forbidden.describe(folder.identity()?);
        Ok((folder, leads_to))
    }

    /// Opens the skill that wins a folder's name; `None`: no folder of this name is a skill.
    pub(super) fn open_skill(&self, name: &str) -> Option<(Root, PathBuf)> {
        if !is_skill_name(name) {
            return None;
        }
        let winner = self.resolve(name, 0..self.folders.len())?.winner;
        Some((self.open_at(winner.folder, name)?, winner.path))
    }

    /// Opens the folder of a skill of the catalogue.
    pub(super) fn open_listed(&self, skill: &SkillSummary) -> Option<Root> {
        let above = skill.path.parent();
        let folder = self.folders.iter().position(|folder| Some(folder.path) == above)?;
        self.open_at(folder, &skill.name)
    }

    /// Opens a folder if it is a skill. The checks are made on the opened folder, which is the one
    /// that is read later.
    fn open_at(&self, folder: usize, name: &str) -> Option<Root> {
        let root = self.folders[folder].root.as_ref().ok()?;
        let (opened, forbidden) = self.open_entry(root, name).ok()?;
        (forbidden.is_none() && has_document(&opened)).then_some(opened)
    }
}

/// Opens the document in the usual case with as few system calls as possible: a file with the
/// standard name, and no links.
fn open_plain_document(root: &Root, name: &str) -> Option<OpenFile> {
    let path = [name, "/", DOCUMENT_NAME, "\0"].concat();
    let path = CStr::from_bytes_with_nul(path.as_bytes()).ok()?;
    if root.is_linked() { None } else { root.open_plain_file(path) }
}
