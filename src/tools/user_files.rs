//! Opening of the user's own files, below the working folder, and what is refused.
//!
//! A path is opened first, confined to the folder; what was opened decides: its real path and its
//! identity, not the path that was asked for. A missing file is judged by the real path of its
//! folder and its name.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::config::{IN_WORKING_FOLDER, ScriptSettings};
use crate::limits;
use crate::skills::{Skill, protected};
use crate::text::{counted, one_line};
use crate::tool::{Action, Effects};
use crate::tools::consent::{ConsentKind, ConsentRequest, ConsentSection};
use crate::tools::diff::diff;
use crate::tools::{ToolContext, plain_path};
use crate::world::confined::{
    FilePlace, FoundFile, Identity, OpenError, PathTarget, Root, WalkLimits, identity, real_path,
};

/// Effects of a tool that writes the user's files.
pub(super) const WRITING: Effects = Effects { is_open_world: false, ..Effects::UNKNOWN };

/// Name of a plugin's lock file, in lower case.
const LOCK_FILE: &str = "skills-runner.lock";

/// What a tool is about to do with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The user's files, as the tools may use them.
pub(super) struct UserFiles<'c> {
    context: &'c ToolContext<'c>,
    scripts: &'c ScriptSettings,
    root: Root,
    /// The real path of the working folder.
    folder: PathBuf,
    /// Whether the working folder is the home, a folder above it, or `/`.
    is_home: bool,
    private: Vec<PathBuf>,
}

/// A place that a tool may write.
pub(super) struct UserFile {
    /// The real path, relative to the working folder.
    pub path: String,
    pub place: FilePlace,
}

impl<'c> UserFiles<'c> {
    /// Opens the working folder.
    pub(super) fn open(context: &'c ToolContext<'c>) -> Result<UserFiles<'c>, String> {
        let Some(scripts) = context.user_scripts() else {
            return Err("the tools for the user's files are turned off: answer without them, or \
                        tell the user (--no-scripts; with mcp they need --user-files)"
                .into());
        };
        let failed = |error: &dyn std::fmt::Display| {
            format!("the working folder cannot be opened: {error}; tell the user")
        };
        let root = Root::open(&scripts.user_folder).map_err(|error| failed(&error))?;
        let folder = real_path(&root).map_err(|error| failed(&error))?;
        let found = root.identity().map_err(|error| failed(&error))?;
        let is_home = protected::is_home_or_above(scripts, found);
        // A folder of notes may be that in which the user works.
        let notes = context.storage.notes.as_ref().and_then(protected::real_or_missing);
        let notes = notes.filter(|notes| folder.starts_with(notes));
        let private = protected::private_paths(scripts);
        let private = private.filter(|path| Some(path) != notes.as_ref()).collect();
        Ok(UserFiles { context, scripts, root, folder, is_home, private })
    }

    /// Opens a file or folder for reading. Also returns what the result of the run lists.
    pub(super) fn target(&self, path: &str) -> Result<(PathTarget, Option<Action>), String> {
        let relative = match self.root.relative_path(&self.without_tilde(path)) {
            Err(OpenError::Absolute) => match self.skill_of(path) {
                Some((skill, relative)) => return self.target_in_skill(path, &skill, &relative),
                None => return Err(self.error(path, "read", &OpenError::Absolute)),
            },
            relative => relative.map_err(|error| self.error(path, "read", &error))?,
        };
        self.check_names(path, Path::new(&relative), Access::Read)?;
        let target = self.root.open_target(&relative);
        let target = target.map_err(|error| self.error(path, "read", &error))?;
        let (real, found) = examine(&target).map_err(|error| self.error(path, "read", &error))?;
        self.check(path, &real, found.as_ref(), Access::Read)?;
        Ok((target, None))
    }

    /// Finds a file that may be written, or the place for it.
    pub(super) fn file(&self, path: &str) -> Result<UserFile, String> {
        let asked = self.without_tilde(path);
        let relative =
            self.root.relative_path(&asked).map_err(|error| match self.skill_of(path) {
                Some(_) => self.refusal(path, Refusal::Skill),
                None => self.error(path, "written", &error),
            })?;
        self.check_names(path, Path::new(&relative), Access::Write)?;
        let place = self.root.place(&relative);
        let place = place.map_err(|error| self.error(path, "written", &error))?;
        let real = self.check_place(path, &place)?;
        let below = real.strip_prefix(&self.folder).unwrap_or(&real);
        Ok(UserFile { path: below.to_string_lossy().into_owned(), place })
    }

    /// Writes a file, and creates its folders. Returns the user's consent, if requested. With
    /// `old`, a file whose content is different by now is kept.
    pub(super) fn write(
        &self,
        file: UserFile,
        old: Option<&[u8]>,
        content: &[u8],
    ) -> Result<Option<&'static str>, String> {
        let failed = |error: OpenError| self.error(&file.path, "written", &error);
        let mut before = None;
        if old.is_none() && self.context.consent.is_some() && file.place.found().is_some() {
            let piece = file.place.read(limits::EDITED_FILE_BYTES).map_err(failed)?;
            before = Some(piece.bytes).filter(|_| !piece.has_more);
        }
        let old = old.or(before.as_deref());
        let answer = self.consent_request(&file, old, content).obtain(self.context)?;
        let place = file.place.create_folders().map_err(failed)?;
        // What was missing may have been created meanwhile, elsewhere.
        self.check_place(&file.path, &place)?;
        place.write(old, content).map_err(failed)?;
        Ok(answer)
    }

    fn consent_request(&self, file: &UserFile, old: Option<&[u8]>, new: &[u8]) -> ConsentRequest {
        let (state, title) = match (file.place.found(), old) {
            (None, _) => ("a new file", "content".to_string()),
            (_, Some(old)) => {
                ("a change of the file", format!("{} before", counted(old.len(), "byte")))
            }
            (_, None) => ("a change of the large file", "all of its content becomes".to_string()),
        };
        let text = match self.context.consent {
            Some(_) => diff(old.unwrap_or_default(), new),
            None => String::new(),
        };
        ConsentRequest {
            kind: ConsentKind::File,
            head: format!("{state} `{}` in the working folder", shown(&file.path)),
            sections: vec![ConsentSection::new(&title, text)],
        }
    }

    /// Returns the real path of a place, if it may be read and written.
    fn check_place(&self, path: &str, place: &FilePlace) -> Result<PathBuf, String> {
        let real = place.real_path();
        let real = real.map_err(|error| self.error(path, "written", &error.into()))?;
        self.check(path, &real, place.found(), Access::Read)?;
        self.check(path, &real, place.found(), Access::Write)?;
        Ok(real)
    }

    /// The text for a path that could not be opened.
    pub(super) fn error(&self, path: &str, verb: &str, error: &OpenError) -> String {
        match error {
            OpenError::Absolute | OpenError::Parent | OpenError::Outside => {
                self.refusal(path, Refusal::Elsewhere)
            }
            error => format!("`{}` cannot be {verb}: {error}", shown(path)),
        }
    }

    /// Replaces `~` by the home.
    fn without_tilde(&self, path: &str) -> String {
        let home = self.scripts.variable("HOME").and_then(OsStr::to_str);
        match (path.strip_prefix('~'), home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                format!("{home}{rest}")
            }
            _ => path.to_string(),
        }
    }

    /// The skill in which an absolute path lies, and the path in it.
    fn skill_of(&self, path: &str) -> Option<(Skill, String)> {
        self.context.skills.open_containing(Path::new(&self.without_tilde(path)))
    }

    fn target_in_skill(
        &self,
        path: &str,
        skill: &Skill,
        relative: &str,
    ) -> Result<(PathTarget, Option<Action>), String> {
        let failed = |error: OpenError| skill.file_error("the file", "read", relative, &error);
        let target = skill.root.open_target(relative).map_err(failed)?;
        let (real, found) = examine(&target).map_err(failed)?;
        let root = real_path(&skill.root).map_err(|error| failed(error.into()))?;
        let below = real.strip_prefix(&root).unwrap_or(&real);
        if has_private_name(below) || self.is_private(&real, found.as_ref()) {
            return Err(self.refusal(path, Refusal::Private));
        }
        let is_document = Ok(plain_path(relative)) == skill.document_file_name();
        Ok((target, is_document.then(|| Action::ReadSkill(skill.name.clone()))))
    }

    /// Refuses what is clear from the names alone.
    fn check_names(&self, path: &str, below: &Path, access: Access) -> Result<(), String> {
        let refusal = if has_private_name(below) {
            Refusal::Private
        } else if self.is_home && names(below).any(|name| name.starts_with('.')) {
            Refusal::HiddenInHome
        } else if access == Access::Write && names(below).any(|name| is_name(&name, LOCK_FILE)) {
            Refusal::Skill
        } else {
            return Ok(());
        };
        Err(self.refusal(path, refusal))
    }

    /// Refuses an opened file or folder, or a place, that the tools must not touch.
    fn check(
        &self,
        path: &str,
        real: &Path,
        found: Option<&FoundFile>,
        access: Access,
    ) -> Result<(), String> {
        let Ok(below) = real.strip_prefix(&self.folder) else {
            return Err(self.refusal(path, Refusal::Elsewhere));
        };
        self.check_names(path, below, access)?;
        let is_granted = |folders: &[PathBuf]| folders.iter().any(|it| real.starts_with(it));
        let has_sandbox = self.scripts.sandbox.as_ref();
        let refusal = if self.is_private(real, found) {
            Refusal::Private
        } else if access == Access::Write && lies_in(real, &self.skill_places()) {
            Refusal::Skill
        } else if is_granted(&self.scripts.writable_folders) {
            return Ok(());
        } else if access == Access::Write && (self.is_home || has_sandbox.is_some()) {
            Refusal::NotGranted
        } else if let Some(sandbox) = has_sandbox.filter(|_| self.is_home)
            && !is_granted(&sandbox.read)
        {
            Refusal::NotGranted
        } else {
            return Ok(());
        };
        Err(self.refusal(path, refusal))
    }

    /// The folders with skills, also default ones that are missing: a later run would use them.
    fn skill_places(&self) -> Vec<PathBuf> {
        let folders = self.context.skills.folders().iter().map(|folder| folder.path.clone());
        let folders = folders.chain(IN_WORKING_FOLDER.map(|path| self.folder.join(path)));
        let real = folders.map(|path| protected::real_or_missing(&path).unwrap_or(path));
        protected::skill_places(self.scripts, real.collect())
    }

    /// Whether this is a private file, lies in a private folder or in git's, or is the same file
    /// as one of them by another name.
    fn is_private(&self, real: &Path, found: Option<&FoundFile>) -> bool {
        let is_of_git = names(real).any(|name| is_git_name(&name));
        let is_known = |found: &FoundFile| {
            let mut private = self.private.iter();
            private.any(|path| identity(path) == Some(found.identity))
                || found.has_other_names && self.has_private_other_name(found.identity)
        };
        is_of_git
            || real.starts_with("/proc")
            || lies_in(real, &self.private)
            || found.is_some_and(is_known)
    }

    /// Whether a file with several names has a private one, or that cannot be known.
    fn has_private_other_name(&self, file: Identity) -> bool {
        let is_same = |root: &Root, path: &Path| identity(root.path().join(path)) == Some(file);
        let files = |root: &Root, depth: usize| {
            let files = limits::LINKED_FILE_ENTRIES;
            root.walk(WalkLimits { depth, files, entries: files }).ok()
        };
        let in_folder = files(&self.root, limits::PATH_BYTES).is_none_or(|tree| {
            let mut files = tree.files.iter().filter(|path| has_private_name(path));
            tree.is_cut || files.any(|path| is_same(&self.root, path))
        });
        let git = self.root.folder(".git").ok();
        let private = self.private.iter().filter_map(|path| Root::open(path).ok());
        in_folder
            || git.into_iter().chain(private).any(|root| {
                let tree = files(&root, limits::PRIVATE_FOLDER_DEPTH).unwrap_or_default();
                tree.files.iter().any(|path| is_same(&root, path))
            })
    }

    /// The text for the model.
    fn refusal(&self, path: &str, refusal: Refusal) -> String {
        let path = shown(path);
        let folder = self.folder.display();
        match refusal {
            Refusal::Elsewhere => format!(
                "`{path}` is not below the working folder `{folder}`: use run_command for files elsewhere"
            ),
            Refusal::Private => format!(
                "`{path}` is private (.env files, keys, sessions, memory, log, .git): no tool may touch it; \
                 go on without it"
            ),
            Refusal::Skill => format!(
                "`{path}` belongs to the skills, which are only read: write the user's files elsewhere in \
                 `{folder}`"
            ),
            Refusal::HiddenInHome => format!(
                "`{path}`: hidden files are not touched where the working folder is the home or above it; \
                 go on without it"
            ),
            Refusal::NotGranted => {
                let why = if self.is_home {
                    "the working folder is the home or above it"
                } else {
                    "SCRIPT_SANDBOX is on"
                };
                let folders = self.scripts.writable_folders.iter();
                let folders = folders.map(|folder| folder.display().to_string());
                let advice = match folders.collect::<Vec<_>>().join(", ") {
                    none if none.is_empty() => "no folder: tell the user".to_string(),
                    some => format!("{some}: write there, or tell the user"),
                };
                format!(
                    "`{path}` is not in a folder that the user allows: {why}, and SCRIPT_SANDBOX_WRITE names \
                     {advice}"
                )
            }
        }
    }
}

/// Why a file must not be touched.
#[derive(Clone, Copy)]
enum Refusal {
    Elsewhere,
    Private,
    Skill,
    HiddenInHome,
    NotGranted,
}

/// The real path of what was opened; and of a file, what it is.
fn examine(target: &PathTarget) -> Result<(PathBuf, Option<FoundFile>), OpenError> {
    Ok(match target {
        PathTarget::File(open) => (real_path(&open.file)?, Some(FoundFile::of(&open.file)?)),
        PathTarget::Folder(root) => (real_path(root)?, None),
    })
}

/// A path in messages: one line.
pub(super) fn shown(path: &str) -> String {
    one_line(path, limits::SUMMARY_CHARS)
}

/// The names in a path, in lower case.
fn names(path: &Path) -> impl Iterator<Item = String> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
        _ => None,
    })
}

/// Some file systems ignore dots and blanks at the end of a name.
fn is_name(name: &str, expected: &str) -> bool {
    name.trim_end_matches(['.', ' ']) == expected
}

fn is_git_name(name: &str) -> bool {
    is_name(name, ".git")
}

fn has_private_name(below: &Path) -> bool {
    names(below).any(|name| name.starts_with(".env") || is_git_name(&name))
}

/// Whether a real path is one of these places or in one, also by another path to the same folder.
fn lies_in(real: &Path, places: &[PathBuf]) -> bool {
    let found: Vec<Identity> = places.iter().filter_map(identity).collect();
    let is_same = |path: &Path| identity(path).is_some_and(|it| found.contains(&it));
    places.iter().any(|place| real.starts_with(place)) || real.ancestors().any(is_same)
}
