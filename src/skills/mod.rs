//! The skills folders: what is there, and one skill of it.
//!
//! A skill is a direct, non-hidden subfolder (or a link to a folder). Nothing
//! is remembered between two calls: a skill changed on disk is seen by the
//! next one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::limits;
use crate::world::confined::{Refusal, Root};

mod catalogue;
pub mod check;
mod fault;
pub mod frontmatter;
pub mod invocation;
pub mod packages;
pub mod probe;
mod problem;
pub mod python;
pub mod setup;
pub mod skeleton;
mod skill;
pub mod yaml;

pub use catalogue::{Catalogue, Summary};
pub use fault::Fault;
pub use problem::{Problem, Severity};
pub use skill::{Document, Skill};

/// The folders that skills are looked for in; the first one wins a name.
#[derive(Clone, Debug)]
pub struct Skills {
    folders: Vec<PathBuf>,
}

impl Skills {
    /// Looks into these folders, which may be missing.
    pub fn new(folders: Vec<PathBuf>) -> Skills {
        Skills { folders }
    }

    /// The folders, for messages.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Reads what there is.
    pub fn catalogue(&self) -> Catalogue {
        let mut skills = BTreeMap::new();
        let mut faults = Vec::new();
        for folder in &self.folders {
            match catalogue::names(folder) {
                Ok(names) => {
                    for name in names {
                        if skills.len() < limits::SKILLS {
                            skills
                                .entry(name)
                                .or_insert_with_key(|name| catalogue::summary(folder, name));
                        }
                    }
                }
                Err(error) => faults.push(catalogue::describe(folder, &error)),
            }
        }
        Catalogue {
            skills: skills.into_values().collect(),
            faults,
        }
    }

    /// Opens a skill by its folder's name, or by the name in its frontmatter.
    /// The error tells a model what to do instead.
    pub fn find(&self, name: &str) -> Result<Skill, String> {
        if let Some(skill) = self.open(name)? {
            return Ok(skill);
        }
        let catalogue = self.catalogue();
        let by_alias = catalogue
            .skills
            .iter()
            .find(|skill| skill.alias.as_deref() == Some(name));
        if let Some(skill) = by_alias
            .map(|skill| self.open(&skill.name))
            .transpose()?
            .flatten()
        {
            return Ok(skill);
        }
        Err(catalogue.not_found(name))
    }

    fn open(&self, name: &str) -> Result<Option<Skill>, String> {
        if !is_skill_name(name) {
            return Ok(None);
        }
        for folder in &self.folders {
            let path = folder.join(name);
            match Root::open(&path) {
                Ok(root) => {
                    return Ok(Some(Skill {
                        name: name.to_string(),
                        path,
                        root,
                    }));
                }
                Err(Refusal::NotFound | Refusal::NotAFolder) => {}
                Err(refusal) => {
                    return Err(format!("the skill `{name}` cannot be opened: {refusal}"));
                }
            }
        }
        Ok(None)
    }
}

/// Whether a name can be that of a skill's folder.
fn is_skill_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']) && name.len() <= 255
}
