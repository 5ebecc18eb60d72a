//! The skills folders, and access to the skills in them.
//!
//! A skill is a non-hidden subfolder with a document, or a link to such a folder (except to the
//! folders of `boundary.rs`): a direct one, or in a folder that the user named also a deeper one,
//! or that folder itself. A folder without a document is not a skill, and its files are never
//! opened. Nothing is cached: each call sees the skills as they are on disk.

#![forbid(unsafe_code)]

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use base::text::shell_quoted;
use boundary::Boundary;
use host::confined::{Root, identity};
use host::files::find_program;
use lookup::OpenFolders;
use private::PrivateFiles;

mod boundary;
mod catalogue;
pub mod changes;
pub mod check;
mod discovery;
pub mod evals;
pub mod file_list;
mod folder_problems;
pub mod frontmatter;
pub mod installed;
pub mod invocation;
pub mod listing;
pub mod lock_file;
mod lookup;
mod metadata;
mod names;
pub mod needs;
pub mod other_clients;
pub mod packages;
pub mod private;
pub mod probe;
mod problem;
pub mod program_files;
pub mod programs;
pub mod protected;
pub mod python;
pub mod ranking;
pub mod requirements;
mod rule;
pub mod sandbox_grants;
mod script_settings;
mod search;
pub mod siblings;
pub mod skeleton;
mod skill;
mod skill_file;
pub mod venv;
mod words;
pub mod yaml;

use lock_file::{LOCK_FILE_NAME, LockFile, LockFileError, LockFiles};

pub use catalogue::{Catalogue, FolderSummary, SkillSummary};
pub use check::is_valid_name;
pub use discovery::{FolderOrigin, SkillsFolder};
pub use problem::Problem;
pub use problem::ProblemCounts;
pub use rule::{RULES, Rule, RuleRow, Severity};
pub use script_settings::SandboxConfig;
pub use script_settings::ScriptSettings;
pub use skill::Skill;
pub use skill::{Document, is_document_name};
pub use words::split_words;

/// Path of the skills that are installed with the program, relative to the parent of the
/// program's folder.
const INSTALLED_PATH: [&CStr; 3] = [c"share", c"skills-runner", c"skills"];

/// The skills folders. Where two hold a skill of the same name, the first one wins.
#[derive(Clone, Debug)]
pub struct Skills {
    folders: Vec<SkillsFolder>,
    /// The folders that no link in a skills folder may lead to.
    boundary: Boundary,
    /// Where skills that were installed with the program are, if there are any.
    installed_folder: Option<PathBuf>,
    /// Whether other commands need a skill's path, as these folders are not in their settings.
    is_addressed_by_path: bool,
    /// The program in commands that are suggested to the user, as a shell takes it.
    program: String,
    /// The folder of a skill that is not used.
    left_out: Option<PathBuf>,
    /// Whether only skills are used that are as the lock file beside them lists them.
    is_locked: bool,
    private: Rc<PrivateFiles>,
}

/// The program's name.
const PROGRAM: &str = "skills-runner";

impl Skills {
    /// The skills in these folders, which may be missing, and below them. Home and working folder
    /// are not known, so of the folders that no link may lead to, only `/` is refused.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Skills {
        Skills {
            folders: folders.into_iter().map(|folder| SkillsFolder::named(&folder)).collect(),
            boundary: Boundary::default(),
            installed_folder: None,
            is_addressed_by_path: false,
            program: PROGRAM.into(),
            left_out: None,
            is_locked: false,
            private: Rc::default(),
        }
    }

    /// The skills in these folders, where links to the home, or to a folder above the home or the
    /// working folder, are refused. `stays_here`: links out of the working folder, too.
    pub fn of_folders(
        folders: &[SkillsFolder],
        scripts: &ScriptSettings,
        stays_here: bool,
    ) -> Skills {
        let boundary = Boundary::new(scripts);
        Skills {
            folders: folders.to_vec(),
            boundary: if stays_here { boundary.within_working_folder() } else { boundary },
            is_locked: scripts.skills_locked,
            private: Rc::new(PrivateFiles {
                files: scripts.private_files.clone(),
                user_folder: Some(scripts.user_folder.clone()),
            }),
            ..Skills::new([])
        }
    }

    /// Makes a file private, too.
    pub fn add_private_file(&mut self, path: PathBuf) {
        Rc::make_mut(&mut self.private).files.push(path);
    }

    /// Adds the skills that were installed with a program, after all others; `program` is
    /// the program's file. They are used only if no user except root and this one may
    /// write there. Nothing changes if there are none, or if their folder is listed
    /// already; otherwise the folders that are missing are removed.
    #[must_use]
    pub fn with_installed(mut self, program: &Path) -> Skills {
        let program = program.canonicalize().unwrap_or_default();
        let Some(prefix) = program.parent().and_then(Path::parent) else {
            return self;
        };
        let folder = prefix.join("share/skills-runner/skills");
        let is_same = |known: &SkillsFolder| identity(known) == identity(&folder);
        if folder.is_dir() && !self.folders.iter().any(is_same) {
            self.folders.retain(|folder| folder.path.is_dir() || folder.path.is_symlink());
            let origin = FolderOrigin::Installed;
            self.folders.push(SkillsFolder { path: folder.clone(), origin });
        }
        self.installed_folder = Some(folder);
        self
    }

    /// The skills folders, and that of installed skills, which may be missing.
    pub fn places(&self) -> impl Iterator<Item = PathBuf> {
        let folders = self.folders.iter().map(|folder| folder.path.clone());
        folders.chain(self.installed_folder.clone())
    }

    /// The skills of another folder, with the same boundary.
    #[must_use]
    pub fn with_folder(&self, folder: PathBuf) -> Skills {
        let private = Rc::clone(&self.private);
        let (boundary, program) = (self.boundary.clone(), self.program.clone());
        Skills { boundary, program, private, is_locked: self.is_locked, ..Skills::new([folder]) }
    }

    /// The same folders of a program that was started by this path: commands that are suggested
    /// to the user contain it where the program's name is not in `PATH`.
    #[must_use]
    pub fn started_as(mut self, program: &Path, search: Option<&OsStr>) -> Skills {
        if !program.as_os_str().is_empty() && find_program(PROGRAM.as_ref(), search).is_none() {
            self.program = shell_quoted(&program.components().collect::<PathBuf>());
        }
        self
    }

    /// The same folders, given for this command only: commands that are suggested to the
    /// user have to name a skill by its path.
    #[must_use]
    pub fn addressed_by_path(self) -> Skills {
        Skills { is_addressed_by_path: true, ..self }
    }

    /// The skills folders.
    pub fn folders(&self) -> &[SkillsFolder] {
        &self.folders
    }

    /// A problem for each skills folder that does not exist or is not a folder.
    pub fn folder_problems(&self) -> Vec<Problem> {
        let metadata_error = |folder: &Path| match fs::metadata(folder) {
            Ok(meta) if meta.is_dir() => None,
            Ok(_) => Some(io::ErrorKind::NotADirectory.into()),
            Err(error) => Some(error),
        };
        let folders = self.folders.iter();
        let missing = folders.filter_map(|SkillsFolder { path, .. }| {
            let error = metadata_error(path)?;
            Some(folder_problems::unreadable_folder(path, &error))
        });
        missing.collect()
    }

    /// The folder for a new skill: the first that was not installed with the program.
    pub fn folder_for_new_skills(&self) -> Option<&Path> {
        let mut folders = self.folders.iter();
        let folder = folders.find(|folder| folder.origin != FolderOrigin::Installed)?;
        Some(&folder.path)
    }

    /// Reads the list of all skills.
    pub fn catalogue(&self) -> Catalogue {
        let mut catalogue = discovery::read(self);
        if let Some(path) = &self.left_out {
            catalogue.skills.retain(|skill| skill.path != *path);
        }
        catalogue
    }

    /// The same skills without the one in this folder.
    #[must_use]
    pub fn without(mut self, folder: &Path) -> Skills {
        self.left_out = Some(folder.to_path_buf());
        self
    }

    /// Opens a skill by a name as [`Catalogue::find`] takes it. Fails if its document cannot be
    /// opened. The error tells a model what to do instead.
    pub fn open(&self, name: &str) -> Result<Skill, String> {
        let skill = self.open_any(name)?;
        skill.document_file_name()?;
        Ok(skill)
    }

    /// Like [`Skills::open`], but does not open the document: for callers that read it
    /// first, or that report its problems.
    pub fn open_any(&self, name: &str) -> Result<Skill, String> {
        match search::open_by_folder_name(&OpenFolders::of(self), name) {
            Some((root, path)) if self.left_out.is_none() && !self.is_locked => {
                Ok(self.opened(name, root, path))
            }
            _ => self.open_listed(self.catalogue().find(name)?),
        }
    }

    /// Opens a skill of the catalogue, but not its document.
    pub fn open_listed(&self, skill: &SkillSummary) -> Result<Skill, String> {
        let root = OpenFolders::of(self).open_listed(skill);
        let root = root.ok_or_else(|| skill.error.clone().unwrap_or("it was deleted".into()));
        // The check is repeated with the folder that is read later.
        match root.and_then(|root| {
            self.check_lock(&skill.path, &root, &mut LockFiles::new()).map(|()| root)
        }) {
            Ok(root) => Ok(self.opened(&skill.name, root, skill.path.clone())),
            Err(error) => {
                Err(format!("the skill `{}` cannot be used: {error}", skill.display_name()))
            }
        }
    }

    /// If skills are locked, checks that a skill is as the lock file beside it lists it.
    fn check_lock(&self, path: &Path, skill: &Root, locks: &mut LockFiles) -> Result<(), String> {
        if !self.is_locked {
            return Ok(());
        }
        lock_file::check_locked(path, skill, locks)
            .map_err(|cause| format!("SKILLS_LOCKED is on, and {cause}"))
    }

    /// If skills are locked, finds a lock file beside one of them that a newer version has written.
    pub fn newer_lock_file(&self) -> Option<(PathBuf, LockFileError)> {
        if !self.is_locked {
            return None;
        }
        // Without the digests of all files.
        let skills = Skills { is_locked: false, ..self.clone() }.catalogue().skills;
        let folders: BTreeSet<&Path> =
            skills.iter().filter_map(|skill| skill.path.parent()).collect();
        folders.into_iter().find_map(|folder| {
            let error = LockFile::read(&Root::open(folder).ok()?).err()?;
            let is_newer = matches!(error, LockFileError::Newer { .. });
            is_newer.then(|| (folder.join(LOCK_FILE_NAME), error))
        })
    }

    /// Opens the other skill that a path of a skill leads to: `../OTHER/FILE`, or an absolute
    /// path. Also returns the path in it, which is not checked: opening it does that.
    pub fn open_other(&self, skill: &Skill, path: &str) -> Option<(Skill, String)> {
        let path = match path.trim_start_matches("./").strip_prefix("../") {
            Some(beside) => skill.path.parent()?.join(beside),
            None => PathBuf::from(path),
        };
        if !path.is_absolute() || path.starts_with(&skill.path) {
            return None;
        }
        self.open_containing(&path)
    }

    /// Opens the usable skill whose folder an absolute path names, and returns the path in it.
    pub fn open_containing(&self, path: &Path) -> Option<(Skill, String)> {
        let catalogue = self.catalogue();
        let usable = catalogue.skills.iter().filter(|skill| skill.is_usable());
        let innermost = |folder_of: &dyn Fn(&SkillSummary) -> Option<PathBuf>| {
            let folders = usable.clone().filter_map(|skill| Some((folder_of(skill)?, skill)));
            let containing = folders.filter(|(folder, _)| path.starts_with(folder));
            containing.max_by_key(|(folder, _)| folder.as_os_str().len())
        };
        // As it is listed, else without links.
        let (folder, skill) = innermost(&|skill| Some(skill.path.clone()))
            .or_else(|| innermost(&|skill| skill.path.canonicalize().ok()))?;
        let below = path.strip_prefix(&folder).ok()?.to_str()?.to_string();
        Some((self.open_listed(skill).ok()?, below))
    }

    /// Whether any skill has a venv, even a broken one.
    pub fn has_any_venv(&self) -> bool {
        let catalogue = self.catalogue();
        let mut skills = catalogue.usable();
        skills.any(|skill| venv::path_in_skill(&skill.path).is_some())
    }

    /// The argument by which a command finds the skill in this folder: its name or path.
    pub fn command_address(&self, name: &str, folder: &Path) -> String {
        if self.is_addressed_by_path {
            folder.to_string_lossy().into_owned()
        } else {
            name.to_string()
        }
    }

    fn opened(&self, name: &str, root: Root, path: PathBuf) -> Skill {
        let address = self.command_address(name, &path);
        let (name, program) = (name.to_string(), self.program.clone());
        let (private, read_rule) = (Rc::clone(&self.private), OnceCell::new());
        Skill { name, address, program, path, root, is_locked: self.is_locked, private, read_rule }
    }
}

/// Whether a skill's folder may have this name.
pub fn is_skill_name(name: &str) -> bool {
    let is_part = !name.bytes().any(|byte| matches!(byte, b'/' | 0));
    !name.is_empty() && !name.starts_with('.') && is_part && name.len() <= 255
}
