//! The skills folders: what is there, and one skill of it.
//!
//! A skill is a direct, non-hidden subfolder (or a link to a folder, but for those
//! of `boundary.rs`) with a document. What has none is no skill: nothing here opens
//! it. Nothing is remembered between two calls: a skill changed on disk is seen by
//! the next one.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::limits;
use crate::world::confined::{OpenError, Root, identity};
use boundary::Boundary;

mod boundary;
mod catalogue;
pub(crate) mod changes;
pub(crate) mod check;
mod discovery;
pub(crate) mod frontmatter;
pub(crate) mod interpreter_shim;
pub(crate) mod invocation;
mod listing;
mod metadata;
mod nested;
pub(crate) mod packages;
pub(crate) mod probe;
mod problem;
pub(crate) mod python;
mod requirements_text;
pub(crate) mod sandbox_grants;
pub(crate) mod setup;
pub(crate) mod skeleton;
mod skill;
mod skill_error;
pub(crate) mod venv;
pub(crate) mod yaml;

/// Whether a text keeps the specification's rules for names.
pub(crate) fn is_valid_name(name: &str) -> bool {
    check::is_name(name)
}

pub use requirements_text::{decoded, ends_line, is_continued, lines};

pub use catalogue::{Catalogue, SkillSummary};
pub use problem::{Problem, Severity};
pub use skill::Skill;
pub(crate) use skill_error::SkillError;

/// Where skills are installed with the program, below the folder above its own.
const INSTALLED: [&CStr; 3] = [c"share", c"skills-runner", c"skills"];

/// The folders that skills are looked for in; the first one wins a name.
#[derive(Clone, Debug)]
pub struct Skills {
    folders: Vec<PathBuf>,
    /// Where no link among them may lead.
    boundary: Boundary,
    /// The folder among them that came with the program, and the one above its
    /// [`INSTALLED`].
    installed: Option<(PathBuf, PathBuf)>,
    /// Another command finds a skill in them only by its path.
    by_path: bool,
}

impl Skills {
    /// Looks into these folders, which may be missing. Home and working folder are
    /// unknown: of the folders that no link may lead to, only `/` is refused.
    pub fn new(folders: Vec<PathBuf>) -> Skills {
        // Without a slash at the end, behind which a link could not be told.
        let folders = folders.into_iter();
        let folders = folders.map(|folder| folder.components().collect());
        Skills {
            folders: folders.collect(),
            boundary: Boundary::default(),
            installed: None,
            by_path: false,
        }
    }

    /// The skills of a configuration: no link among them leads to the home, or above
    /// the home or the working folder.
    pub fn from_config(config: &Config) -> Skills {
        Skills {
            boundary: Boundary::of(&config.scripts),
            ..Skills::new(config.skills_folders.clone())
        }
    }

    /// The same and the skills that were installed with a program, as the last:
    /// `program` is its own file. They count only where nobody but root and this user
    /// may write. Nothing changes where there are none, or where the folder is one of
    /// these anyway; else those that are missing are left out.
    #[must_use]
    pub fn with_installed(mut self, program: &Path) -> Skills {
        let program = program.canonicalize().unwrap_or_default();
        let Some(prefix) = program.parent().and_then(Path::parent) else {
            return self;
        };
        let folder = prefix.join("share/skills-runner/skills");
        let is_it = |known: &PathBuf| identity(known) == identity(&folder);
        if folder.is_dir() && !self.folders.iter().any(is_it) {
            let is_there = |folder: &PathBuf| folder.is_dir() || folder.is_symlink();
            self.folders.retain(is_there);
            self.folders.push(folder.clone());
            self.installed = Some((folder, prefix.to_path_buf()));
        }
        self
    }

    /// The skills of other folders, for the same user.
    #[must_use]
    pub fn elsewhere(&self, folders: Vec<PathBuf>) -> Skills {
        Skills { boundary: self.boundary.clone(), ..Skills::new(folders) }
    }

    /// The same folders, given for this command only, so that a skill's mere
    /// name would not be found by the next one.
    #[must_use]
    pub fn named_by_path(self) -> Skills {
        Skills { by_path: true, ..self }
    }

    /// The folders, for messages.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The folders that do not exist or are no folders, each with what is wrong.
    pub fn missing(&self) -> Vec<Problem> {
        let fault = |folder: &Path| match fs::metadata(folder) {
            Ok(meta) if meta.is_dir() => None,
            Ok(_) => Some(io::ErrorKind::NotADirectory.into()),
            Err(error) => Some(error),
        };
        let folders = self.folders.iter();
        let missing = folders.filter_map(|folder| {
            let error = fault(folder)?;
            Some(listing::unreadable(folder, &error))
        });
        missing.collect()
    }

    /// The folder for a new skill: the first that did not come with the program.
    pub fn writable(&self) -> Option<&Path> {
        let mut folders = self.folders.iter();
        let folder = folders.find(|folder| !self.is_installed(folder))?;
        Some(folder)
    }

    fn is_installed(&self, folder: &Path) -> bool {
        let installed = self.installed.as_ref();
        installed.is_some_and(|(installed, _)| installed == folder)
    }

    /// Opens a skills folder.
    fn open_folder(&self, folder: &Path) -> Result<Root, OpenError> {
        match &self.installed {
            Some((installed, prefix)) if installed == folder => Root::open_own(prefix, INSTALLED),
            _ => Root::open(folder),
        }
    }

    /// Reads what there is.
    pub fn catalogue(&self) -> Catalogue {
        discovery::read(self)
    }

    /// Opens a skill by its folder's name, by the name in its frontmatter, or
    /// by its folder's name as it is shown in one line. Its document can be opened,
    /// now at least. The error tells a model what to do instead.
    pub fn find(&self, name: &str) -> Result<Skill, String> {
        let skill = self.find_any(name)?;
        skill.document_name()?;
        Ok(skill)
    }

    /// The same, also where a document is there and cannot be opened: for what reads
    /// the document first, or tells what is wrong with it.
    pub fn find_any(&self, name: &str) -> Result<Skill, String> {
        if let Some(skill) = self.open(name)? {
            return Ok(skill);
        }
        let catalogue = self.catalogue();
        let is_meant = |skill: &&SkillSummary| {
            skill.alias.as_deref() == Some(name) || skill.shown_name() == name
        };
        let meant: Vec<&SkillSummary> = catalogue.usable().filter(is_meant).collect();
        if let [first, _, ..] = meant.as_slice() {
            let names: Vec<&str> = meant.iter().map(|skill| skill.name.as_str()).collect();
            return Err(format!(
                "several skills call themselves `{}`: use one of the names `{}`",
                first.alias.as_deref().unwrap_or(name),
                names[..names.len().min(limits::NAMES)].join("`, `")
            ));
        }
        if let Some(skill) =
            meant.first().map(|skill| self.open(&skill.name)).transpose()?.flatten()
        {
            return Ok(skill);
        }
        Err(catalogue.not_found(name))
    }

    /// Whether any skill has an environment of its own, be it a broken one.
    pub fn any_venv(&self) -> bool {
        let catalogue = self.catalogue();
        let mut skills = catalogue.usable();
        skills.any(|skill| venv::of_skill(&skill.path).is_some())
    }

    /// What a command takes for the skill in this folder.
    pub fn address(&self, name: &str, folder: &Path) -> String {
        if self.by_path { folder.to_string_lossy().into_owned() } else { name.to_string() }
    }

    fn open(&self, name: &str) -> Result<Option<Skill>, String> {
        if !is_skill_name(name) {
            return Ok(None);
        }
        // What cannot be opened hides nothing in a later folder, nor does what is no skill.
        let mut refused = None;
        for folder in &self.folders {
            match self.open_in(folder, name) {
                Ok(Some(root)) => {
                    let path = folder.join(name);
                    return Ok(Some(Skill {
                        name: name.to_string(),
                        address: self.address(name, &path),
                        path,
                        root,
                    }));
                }
                Ok(None)
                | Err(OpenError::NotFound | OpenError::NotAFolder | OpenError::Foreign) => {}
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        match refused {
            Some(refusal) => Err(format!("the skill `{name}` cannot be opened: {refusal}")),
            None => Ok(None),
        }
    }

    /// Opens a folder in a skills folder, if it is a skill's: what is decided here is
    /// decided of the folder that is read later.
    fn open_in(&self, folder: &Path, name: &str) -> Result<Option<Root>, OpenError> {
        let root = self.open_folder(folder)?.linked_folder(name)?;
        if root.is_linked() && self.boundary.draw().meets(&root)?.is_some() {
            return Ok(None);
        }
        let has_document = !matches!(skill::open_document(&root), Err(OpenError::NotFound));
        Ok(has_document.then_some(root))
    }
}

/// Whether a name can be that of a skill's folder.
fn is_skill_name(name: &str) -> bool {
    let is_part = !name.bytes().any(|byte| matches!(byte, b'/' | 0));
    !name.is_empty() && !name.starts_with('.') && is_part && name.len() <= 255
}
