//! The search for skills in a skills folder, level by level.
//!
//! In a folder that the user named, skills may lie deeper than directly in it, as in a repository
//! of plugins. In a default folder, deeper skills are only noticed, for a hint.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::folder_problems as problems;
use crate::listing::{FolderListing, ListedFolder, is_tool_folder};
use crate::lookup::{Found, OpenFolders, OpenedFolder};
use crate::metadata;
use crate::skill::DOCUMENT_NAME;
use crate::{Problem, is_skill_name};
use base::limits;
use host::confined::{Identity, OpenError, PathTarget, Root, identity};

/// Contents of a skills folder.
#[derive(Default)]
pub(super) struct FolderContents {
    /// The direct subfolders that are no skills, with what they are instead.
    pub no_skills: Vec<(String, Found)>,
    /// The direct subfolders with skills below them.
    pub with_skills_below: BTreeSet<String>,
    /// Whether a skill lies directly in the folder.
    pub has_direct_skill: bool,
    /// Whether the folder itself has a document.
    pub is_skill: bool,
    /// Problems of the folder and of entries that cannot be skills.
    pub problems: Vec<Problem>,
}

/// Calls `visit` for each skill with its path in the skills folder, which is empty for the folder
/// itself.
///
/// # Errors
///
/// The problem of a folder that cannot be read.
pub(super) fn search(
    folders: &OpenFolders<'_>,
    folder: &OpenedFolder<'_>,
    visit: &mut dyn FnMut(&str, Found),
) -> Result<FolderContents, Problem> {
    let path = &folder.folder.path;
    if let Err(error @ OpenError::Foreign) = &folder.root {
        return Err(problems::untrusted_folder(path, error));
    }
    let listing = FolderListing::read(path);
    let listing = listing.map_err(|error| problems::unreadable_folder(path, &error))?;
    let mut contents = FolderContents { is_skill: listing.is_skill, ..FolderContents::default() };
    let Ok(root) = &folder.root else {
        return Ok(contents);
    };
    if !listing.is_skill {
        contents.problems.extend(flat_files(root, path, &listing.markdown_files));
    }
    let is_named = folder.folder.is_named();
    let mut search = Search {
        folders,
        root,
        path,
        is_named,
        device: fs::metadata(path).map_or(0, |meta| meta.dev()),
        waiting: VecDeque::new(),
        links: Vec::new(),
        seen: HashSet::new(),
        examined: 0,
        contents: &mut contents,
        visit,
    };
    search.run(listing);
    Ok(contents)
}

/// The problems of files with the fields of a skill, which would have to be folders.
fn flat_files(root: &Root, folder: &Path, names: &[String]) -> Vec<Problem> {
    let mut head = vec![0; limits::FRONTMATTER_BYTES];
    let mut is_flat = |name: &&String| {
        let Ok(PathTarget::File(open)) = root.open_target(name) else { return false };
        metadata::read(&open, &mut head).is_ok_and(|it| {
            ["name", "description"].iter().all(|key| it.frontmatter.fields.contains_key(*key))
        })
    };
    let names: BTreeSet<&String> = names.iter().collect();
    let names = names.into_iter().take(limits::FLAT_FILES).filter(|name| is_flat(name));
    names.map(|name| problems::flat_file(folder.join(name))).collect()
}

/// Opens the skill that wins a folder's name, without reading any document. Returns `None` if no
/// skill's folder has the name, or if the catalogue has to decide.
pub(super) fn open_by_folder_name(
    folders: &OpenFolders<'_>,
    name: &str,
) -> Option<(Root, PathBuf)> {
    if !is_skill_name(name) {
        return None;
    }
    // What cannot be used hides nothing.
    let mut broken = None;
    for opened in &folders.folders {
        // The skills folder itself may be the skill.
        if opened.folder.path.file_name() == Some(name.as_ref()) {
            return None;
        }
        let Ok(root) = &opened.root else { continue };
        let mut found: Option<(usize, String)> = None;
        let mut add = |path: &str, skill: &Found| {
            let place = (path.split('/').count(), path.to_string());
            match skill {
                Found::Skill(Ok(_)) if found.as_ref().is_none_or(|first| place < *first) => {
                    found = Some(place);
                }
                Found::Skill(Err(_)) if broken.is_none() => broken = Some((opened, place.1)),
                _ => {}
            }
        };
        match folders.inspect(root, name) {
            Some(skill @ Found::Skill(Ok(_))) => add(name, &skill),
            _ if opened.folder.is_named() => {
                let _ = search(folders, opened, &mut |path, skill| {
                    if path.rsplit('/').next() == Some(name) {
                        add(path, &skill);
                    }
                });
            }
            Some(skill) => add(name, &skill),
            None => {}
        }
        if let Some((_, path)) = found {
            return Some((folders.open_at(opened, &path)?, opened.folder.path.join(path)));
        }
    }
    let (opened, path) = broken?;
    Some((folders.open_at(opened, &path)?, opened.folder.path.join(path)))
}

/// A search of one skills folder.
struct Search<'s> {
    folders: &'s OpenFolders<'s>,
    root: &'s Root,
    path: &'s Path,
    is_named: bool,
    /// The device of the skills folder.
    device: u64,
    /// Folders that are not skills: their subfolders come next.
    waiting: VecDeque<String>,
    /// Links, followed after all real folders; in a default folder they are treated as folders.
    links: Vec<String>,
    /// The real folders that were examined.
    seen: HashSet<Identity>,
    /// Number of folders that were examined.
    examined: usize,
    contents: &'s mut FolderContents,
    visit: &'s mut dyn FnMut(&str, Found),
}

impl Search<'_> {
    fn run(&mut self, listing: FolderListing) {
        if listing.is_skill {
            self.examine_root();
        }
        self.contents.problems.extend(listing.problems);
        self.examine_all("", listing.folders);
        loop {
            while let Some(folder) = self.waiting.pop_front() {
                self.list(&folder);
            }
            if self.links.is_empty() {
                return;
            }
            for link in std::mem::take(&mut self.links) {
                if identity(self.path.join(&link)).is_some_and(|found| self.seen.insert(found)) {
                    self.examine(&link);
                }
            }
        }
    }

    /// Offers the skills folder itself, if it is a skill.
    fn examine_root(&mut self) {
        let name = self.path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(is_skill_name)
            && let Some(found @ Found::Skill(_)) = self.folders.inspect(self.root, "")
        {
            (self.visit)("", found);
        }
    }

    /// Examines the subfolders of a folder that is not a skill.
    fn list(&mut self, folder: &str) {
        // A link may have led out of the skills folder.
        if self.root.folder(folder).is_err() {
            return;
        }
        let path = self.path.join(folder);
        match FolderListing::read(&path) {
            Ok(listing) if listing.is_venv => {
                self.contents.no_skills.retain(|(name, _)| name != folder);
            }
            Ok(listing) => self.examine_all(folder, listing.folders),
            Err(error) if self.is_named => {
                self.contents.problems.push(problems::unreadable_folder(&path, &error));
            }
            Err(_) => {}
        }
    }

    fn examine_all(&mut self, above: &str, entries: Vec<ListedFolder>) {
        for ListedFolder { name, inode } in entries {
            if self.examined == limits::SEARCHED_FOLDERS {
                let problem = problems::search_ended(self.path);
                if !self.contents.problems.contains(&problem) {
                    self.contents.problems.push(problem);
                }
                return;
            }
            let is_direct = above.is_empty();
            let is_hidden = name.starts_with('.');
            if is_hidden && !self.is_named || !is_direct && is_tool_folder(&name) {
                continue;
            }
            let path = if is_direct { name } else { format!("{above}/{name}") };
            match inode {
                Some(inode) => {
                    self.seen.insert((self.device, inode));
                    self.examine(&path);
                }
                None if is_direct && !self.is_named => self.examine(&path),
                None => self.links.push(path),
            }
        }
    }

    /// Whether the document of this folder is a link to that of another skill in the searched
    /// folder, as in folders that are made for another client.
    fn is_mirror(&self, path: &str) -> bool {
        let document = self.path.join(path).join(DOCUMENT_NAME);
        let is_link = document.is_symlink();
        let (Ok(document), Ok(root)) = (document.canonicalize(), self.path.canonicalize()) else {
            return false;
        };
        is_link
            && document.starts_with(root)
            && document.file_name() == Some(DOCUMENT_NAME.as_ref())
    }

    /// Visits a folder if it is a skill; otherwise its subfolders come later.
    fn examine(&mut self, path: &str) {
        self.examined += 1;
        let (top, name) = match path.rsplit_once('/') {
            Some((above, name)) => (above.split('/').next(), name),
            None => (None, path),
        };
        let found = match self.folders.inspect(self.root, path) {
            Some(Found::Skill(_)) if name.starts_with('.') => Found::NoDocument,
            Some(Found::Skill(Err(_))) if self.is_named && self.is_mirror(path) => return,
            Some(found) => found,
            None => return,
        };
        match (found, top) {
            (found @ Found::Skill(_), None) => {
                self.contents.has_direct_skill = true;
                (self.visit)(path, found);
            }
            (found @ Found::Skill(_), Some(top)) => {
                self.contents.with_skills_below.insert(top.to_string());
                if self.is_named {
                    (self.visit)(path, found);
                }
            }
            (found, _) => {
                let is_searched = matches!(found, Found::NoDocument) && !is_tool_folder(name);
                if is_searched && path.split('/').count() < limits::SEARCHED_LEVELS {
                    self.waiting.push_back(path.to_string());
                }
                if top.is_none() && is_skill_name(name) && !is_tool_folder(name) {
                    self.contents.no_skills.push((path.to_string(), found));
                }
            }
        }
    }
}
