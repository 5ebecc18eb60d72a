//! The skills folders: what is there, and one skill of it.
//!
//! A skill is a direct, non-hidden subfolder (or a link to a folder). Nothing
//! is remembered between two calls: a skill changed on disk is seen by the
//! next one.

use std::path::{Path, PathBuf};

use crate::limits;
use crate::world::confined::{Refusal, Root};
use listing::Listing;

mod catalogue;
pub mod changes;
pub mod check;
mod discovery;
mod fault;
pub mod frontmatter;
pub mod grants;
pub mod invocation;
mod listing;
mod metadata;
mod nested;
pub mod packages;
pub mod probe;
mod problem;
pub mod python;
mod requirements_text;
pub mod setup;
pub mod shim;
pub mod skeleton;
mod skill;
pub mod venv;
pub mod yaml;

/// Whether a text keeps the specification's rules for names.
pub fn is_valid_name(name: &str) -> bool {
    check::is_name(name)
}

// What `fuzz/` feeds: it is not public otherwise.
#[cfg(fuzzing)]
pub use requirements_text::{decoded, ends_line, is_continued, lines};

pub use catalogue::{Catalogue, Summary};
pub use fault::Fault;
pub use problem::{Problem, Severity};
pub use skill::{Document, Skill};

/// The folders that skills are looked for in; the first one wins a name.
#[derive(Clone, Debug)]
pub struct Skills {
    folders: Vec<PathBuf>,
    /// Another command finds a skill in them only by its path.
    by_path: bool,
}

impl Skills {
    /// Looks into these folders, which may be missing.
    pub fn new(folders: Vec<PathBuf>) -> Skills {
        Skills {
            folders,
            by_path: false,
        }
    }

    /// The same folders, given for this command only, so that a skill's mere
    /// name would not be found by the next one.
    #[must_use]
    pub fn named_by_path(self) -> Skills {
        Skills {
            by_path: true,
            ..self
        }
    }

    /// The folders, for messages.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Reads what there is.
    pub fn catalogue(&self) -> Catalogue {
        discovery::read(&self.folders)
    }

    /// Opens a skill by its folder's name, by the name in its frontmatter, or
    /// by its folder's name as it is shown in one line.
    /// The error tells a model what to do instead.
    pub fn find(&self, name: &str) -> Result<Skill, String> {
        if let Some(skill) = self.open(name)? {
            return Ok(skill);
        }
        let catalogue = self.catalogue();
        let is_meant =
            |skill: &&Summary| skill.alias.as_deref() == Some(name) || skill.shown_name() == name;
        let meant: Vec<&Summary> = catalogue.usable().filter(is_meant).collect();
        if let [first, _, ..] = meant.as_slice() {
            let names: Vec<&str> = meant.iter().map(|skill| skill.name.as_str()).collect();
            return Err(format!(
                "several skills call themselves `{}`: use one of the names `{}`",
                first.alias.as_deref().unwrap_or(name),
                names[..names.len().min(limits::NAMES)].join("`, `")
            ));
        }
        if let Some(skill) = meant
            .first()
            .map(|skill| self.open(&skill.name))
            .transpose()?
            .flatten()
        {
            return Ok(skill);
        }
        Err(catalogue.not_found(name))
    }

    /// Whether any skill has an environment of its own, be it a broken one.
    pub fn any_venv(&self) -> bool {
        let listings = self.folders.iter().filter_map(|folder| {
            let listing = Listing::of(folder).ok()?;
            Some((folder, listing))
        });
        listings.into_iter().any(|(folder, listing)| {
            let mut skills = listing.names.iter().map(|name| folder.join(name));
            skills.any(|skill| venv::of_skill(&skill).is_some())
        })
    }

    /// What a command takes for the skill in this folder.
    pub fn address(&self, name: &str, folder: &Path) -> String {
        if self.by_path {
            folder.to_string_lossy().into_owned()
        } else {
            name.to_string()
        }
    }

    fn open(&self, name: &str) -> Result<Option<Skill>, String> {
        if !is_skill_name(name) {
            return Ok(None);
        }
        // What cannot be opened hides nothing in a later folder, nor does a
        // folder without a document.
        let (mut refused, mut bare) = (None, None);
        for folder in &self.folders {
            let path = folder.join(name);
            match Root::open(&path) {
                Ok(root) => {
                    let document = skill::open_document(&root);
                    let skill = Skill {
                        name: name.to_string(),
                        address: self.address(name, &path),
                        path,
                        root,
                    };
                    if !matches!(document, Err(Refusal::NotFound)) {
                        return Ok(Some(skill));
                    }
                    bare = bare.or(Some(skill));
                }
                Err(Refusal::NotFound | Refusal::NotAFolder) => {}
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        match refused.filter(|_| bare.is_none()) {
            Some(refusal) => Err(format!("the skill `{name}` cannot be opened: {refusal}")),
            None => Ok(bare),
        }
    }
}

/// Whether a name can be that of a skill's folder.
fn is_skill_name(name: &str) -> bool {
    let is_part = !name.bytes().any(|byte| matches!(byte, b'/' | 0));
    !name.is_empty() && !name.starts_with('.') && is_part && name.len() <= 255
}
