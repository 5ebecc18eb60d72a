//! Opening of the user's own files, below the working folder, and what is refused.
//!
//! A path is opened first, confined to the folder; what was opened decides: its real path and its
//! identity, not the path that was asked for. A missing file is judged by the real path of its
//! folder and its name.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::tools::consent::{ConsentKind, ConsentRequest, ConsentSection};
use crate::tools::diff::diff;
use crate::tools::{ToolContext, plain_path};
use base::limits;
use base::secret::MASK;
use base::text::{self, counted, one_line};
use base::tool::{Action, Effects};
use host::confined::{FilePlace, FoundFile, OpenError, PRIVATE, PathTarget, Root, real_path};
use host::lock::lock_file;
use skills::ScriptSettings;
use skills::Skill;
use skills::lock_file::is_lock_file_name;
use skills::private::{
    ReadRule, has_private_name, holds_private_key, is_key_file, is_private_name, lies_in, names,
    real_or_missing,
};
use skills::protected;

/// Effects of a tool that writes the user's files.
pub(super) const WRITING: Effects = Effects { is_open_world: false, ..Effects::UNKNOWN };

/// Kind of access to a file by a tool.
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
    /// The read rule. Its folder is the working folder.
    rule: ReadRule,
    /// Whether the working folder is the home, a folder above it, or `/`.
    is_home: bool,
}

/// A file or folder that a tool may read.
pub(super) struct OpenedPath {
    pub target: PathTarget,
    /// An action for the run's result.
    pub action: Option<Action>,
    /// A note for the model that another file was taken.
    pub note: Option<String>,
}

/// The file that an inexact path means.
pub(super) struct MeantFile {
    pub path: String,
    /// A note for the model.
    pub note: String,
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
        scripts.check_user_folder(Some(found))?;
        let is_home = protected::is_home_or_above(scripts, found);
        // A folder of notes may be that in which the user works.
        let notes = context.storage.notes.as_ref().and_then(real_or_missing);
        let notes = notes.filter(|notes| folder.starts_with(notes));
        let private = protected::private_paths(scripts);
        let private = private.filter(|path| Some(path) != notes.as_ref()).collect();
        let (searched, most) = (vec![folder.clone()], limits::LINKED_FILE_ENTRIES);
        let rule = ReadRule { folder, private, searched, most, entries: OnceCell::new() };
        Ok(UserFiles { context, scripts, root, rule, is_home })
    }

    /// Opens a file or folder for reading.
    pub(super) fn open_to_read(&self, path: &str) -> Result<OpenedPath, String> {
        let failed = |error: OpenError| self.error(path, "read", &error);
        let in_skill = |place: &Path| {
            let (skill, inside) = self.context.skills.open_containing(place)?;
            Some(open_in_skill(&skill, &inside))
        };
        let absolute = self.without_tilde(path);
        let relative = self.root.relative_path(&absolute);
        if matches!(relative, Err(OpenError::Absolute))
            && let Some(opened) = in_skill(Path::new(&absolute))
        {
            return opened;
        }
        let relative = relative.map_err(failed)?;
        self.check_names(path, Path::new(&relative), Access::Read)?;
        let (target, note) = match self.root.open_target(&relative) {
            Err(OpenError::NotFound) => {
                let meant = self.meant(path, &relative, "read")?;
                (self.root.open_target(&meant.path), Some(meant.note))
            }
            target => (target, None),
        };
        // The folder of a skill may be a link.
        if matches!(target, Err(OpenError::Outside))
            && let Some(opened) = in_skill(&self.scripts.user_folder.join(&relative))
        {
            return opened;
        }
        let target = target.map_err(failed)?;
        let (real, found) = examine(&target).map_err(failed)?;
        self.check(path, &real, found.as_ref(), Access::Read)?;
        if let PathTarget::File(open) = &target
            && is_key_file(&real, &open.file)
        {
            return Err(self.refusal(path, Refusal::Private));
        }
        Ok(OpenedPath { target, action: None, note })
    }

    /// Whether a relative path leads to nothing in the working folder.
    pub(super) fn is_missing(&self, path: &str) -> bool {
        let relative = self.root.relative_path(path);
        relative.is_ok_and(|it| matches!(self.root.open_target(&it), Err(OpenError::NotFound)))
    }

    /// Opens a file of the skill that was read last.
    pub(super) fn open_in_recent_skill(&self, relative: &str) -> Option<OpenedPath> {
        let recent = self.context.history.recent_skill.borrow();
        let skill = self.context.skills.open(recent.as_ref()?).ok()?;
        let note = Some(format!("read `{}` of the skill {}", shown(relative), skill.name));
        open_in_skill(&skill, relative).ok().map(|opened| OpenedPath { note, ..opened })
    }

    /// The file that a path means of which only the letter case of the name differs. The error
    /// names similar files.
    pub(super) fn meant(
        &self,
        path: &str,
        relative: &str,
        verb: &str,
    ) -> Result<MeantFile, String> {
        let asked = Path::new(relative);
        let (parent, name) = (asked.parent().unwrap_or(Path::new("")), asked.file_name());
        let name = name.unwrap_or_default().to_string_lossy();
        let entries = self.root.folder(parent).and_then(|it| it.entries(limits::FOLDER_ENTRIES));
        let entries = entries.map(|found| found.entries).unwrap_or_default();
        let names: Vec<_> = entries.iter().map(|entry| entry.name.to_string_lossy()).collect();
        let names = names.iter().map(AsRef::as_ref).filter(|name| !is_private_name(name));
        let same = names.clone().filter(|it: &&str| it.to_lowercase() == name.to_lowercase());
        if let [meant] = same.collect::<Vec<_>>()[..] {
            let path = parent.join(meant).to_string_lossy().into_owned();
            let note = format!("{verb} `{}`, there is no `{}`", shown(&path), shown(relative));
            return Ok(MeantFile { path, note });
        }
        let error = self.error(path, verb, &OpenError::NotFound);
        Err(match text::similar_names(&name, names, 1).first() {
            Some(near) => {
                let near = parent.join(near).to_string_lossy().into_owned();
                format!(
                    "`{}` cannot be {verb}: no such file or folder (did you mean `{}`?)",
                    shown(path),
                    shown(&near)
                )
            }
            None => error,
        })
    }

    /// Finds a file that may be written, or the place for it.
    pub(super) fn file(&self, path: &str) -> Result<UserFile, String> {
        if path.trim().is_empty() {
            return Err("`path` is empty".into());
        }
        let asked = self.without_tilde(path);
        let in_skill = || self.context.skills.open_containing(Path::new(&asked));
        let relative = self.root.relative_path(&asked).map_err(|error| match in_skill() {
            Some(_) => self.refusal(path, Refusal::Skill),
            None => self.error(path, "written", &error),
        })?;
        self.check_names(path, Path::new(&relative), Access::Write)?;
        let place = self.root.place(&relative);
        let place = place.map_err(|error| self.error(path, "written", &error))?;
        let real = self.check_place(path, &place)?;
        let below = real.strip_prefix(&self.rule.folder).unwrap_or(&real);
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
        self.check_masked(&file, content)?;
        let answer = self.consent_request(&file, old, content).obtain(self.context)?;
        let place = file.place.create_folders().map_err(failed)?;
        // Other runners change no file of the folder between the comparison and the replacement.
        let lock = place.open_folder();
        if let Ok(folder) = &lock {
            let wait = limits::USER_FILE_LOCK_WAIT;
            lock_file(folder, wait, self.context.cancellation).map_err(|it| failed(it.into()))?;
        }
        // What was missing may have been created meanwhile, elsewhere.
        self.check_place(&file.path, &place)?;
        place.write(old, content).map_err(|error| match error {
            OpenError::Changing => {
                format!(
                    "`{}` has changed since it was read: nothing was written; read it again",
                    shown(&file.path)
                )
            }
            error => failed(error),
        })?;
        Ok(answer)
    }

    /// Returns an error if the mark for a masked secret would replace the secret itself.
    fn check_masked(&self, file: &UserFile, content: &[u8]) -> Result<(), String> {
        let has_mark = |text: &[u8]| memmem::find(text, MASK.as_bytes()).is_some();
        if file.place.found().is_none() || !has_mark(content) {
            return Ok(());
        }
        let failed = |error: OpenError| self.error(&file.path, "written", &error);
        let piece = file.place.read(limits::EDITED_FILE_BYTES).map_err(failed)?;
        let text = String::from_utf8_lossy(&piece.bytes);
        if has_mark(&piece.bytes) || !has_mark(self.context.secrets.mask(&text).as_bytes()) {
            return Ok(());
        }
        Err(format!(
            "`{}` has a secret that is not shown: {MASK} would replace it; change other parts with edit_file",
            shown(&file.path)
        ))
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
        let start = place.found().map(|_| place.read(limits::KEY_SEARCH_BYTES));
        if start.is_some_and(|it| it.is_ok_and(|it| holds_private_key(&real, &it.bytes))) {
            return Err(self.refusal(path, Refusal::Private));
        }
        Ok(real)
    }

    /// The text for a path that could not be opened.
    pub(super) fn error(&self, path: &str, verb: &str, error: &OpenError) -> String {
        match error {
            OpenError::Parent if !Path::new(path).starts_with("..") => {
                format!("`{}` cannot be {verb}: give the path without `..`", shown(path))
            }
            OpenError::Parent | OpenError::Absolute | OpenError::Outside => {
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

    /// Refuses what is clear from the names alone.
    fn check_names(&self, path: &str, below: &Path, access: Access) -> Result<(), String> {
        let refusal = if has_private_name(below) {
            Refusal::Private
        } else if self.is_home && names(below).any(|name| name.starts_with('.')) {
            Refusal::HiddenInHome
        } else if access == Access::Write && names(below).any(|name| is_lock_file_name(&name)) {
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
        let Ok(below) = real.strip_prefix(&self.rule.folder) else {
            return Err(self.refusal(path, Refusal::Elsewhere));
        };
        self.check_names(path, below, access)?;
        let is_granted = |folders: &[PathBuf]| folders.iter().any(|it| real.starts_with(it));
        let has_sandbox = self.scripts.sandbox.as_ref();
        let refusal = if access == Access::Read
            && let Some(refusal) = self.private_refusal(real, found)
        {
            // Whatever is written is checked for reading, too.
            refusal
        } else if access == Access::Write && self.is_of_skills(real) {
            Refusal::Skill
        } else if is_granted(&self.scripts.writable_folders) {
            return Ok(());
        } else if access == Access::Write && (self.is_home || has_sandbox.is_some()) {
            Refusal::NotGranted(Access::Write)
        } else if let Some(sandbox) = has_sandbox.filter(|_| self.is_home)
            && !is_granted(&sandbox.read)
        {
            Refusal::NotGranted(Access::Read)
        } else {
            return Ok(());
        };
        Err(self.refusal(path, refusal))
    }

    /// Whether a path lies in a folder of skills, also a default one that is missing: a later run
    /// would use it. A document where a link in such a folder leads would make a skill there.
    fn is_of_skills(&self, real: &Path) -> bool {
        let folders = self.context.skills.places();
        let folders = folders.chain(self.scripts.default_skills_folders.iter().cloned());
        let folders: Vec<PathBuf> =
            folders.map(|path| real_or_missing(&path).unwrap_or(path)).collect();
        let is_document = names(real).last().is_some_and(|name| name == "skill.md");
        let mut targets = protected::targets_of_links(&folders).into_iter();
        is_document && targets.any(|target| real.parent() == Some(&target))
            || lies_in(real, &protected::skill_places(self.scripts, folders))
    }

    /// Why something that is private, or may be, must not be touched.
    fn private_refusal(&self, real: &Path, found: Option<&FoundFile>) -> Option<Refusal> {
        match self.rule.is_private(real, found) {
            Some(true) => Some(Refusal::Private),
            None => Some(Refusal::OtherNames),
            Some(false) => None,
        }
    }

    /// The text for the model.
    fn refusal(&self, path: &str, refusal: Refusal) -> String {
        let path = shown(path);
        let folder = self.rule.folder.display();
        match refusal {
            Refusal::Elsewhere => {
                let is_open = self.context.allows_commands() && self.scripts.sandbox.is_none();
                let advice = if is_open { "use run_command for it" } else { "go on without it" };
                format!("`{path}` is not below the working folder `{folder}`: {advice}")
            }
            Refusal::Private => {
                format!("`{path}` {PRIVATE}: the tools for files never touch it; go on without it")
            }
            Refusal::OtherNames => format!(
                "`{path}` has another name (a hard link), and this folder has too many files to know that \
                 it is not a private one: use run_command"
            ),
            Refusal::Skill => format!(
                "`{path}` belongs to the skills, which are only read: write the user's files elsewhere in \
                 `{folder}`"
            ),
            Refusal::HiddenInHome => format!(
                "`{path}`: hidden files are not touched where the working folder is the home or above it; \
                 go on without it"
            ),
            Refusal::NotGranted(access) => {
                let why = if self.is_home {
                    "the working folder is the home or above it"
                } else {
                    "SCRIPT_SANDBOX is on"
                };
                let (setting, folders) = match (access, &self.scripts.sandbox) {
                    (Access::Read, Some(sandbox)) => ("SCRIPT_SANDBOX_READ", &sandbox.read),
                    _ => ("SCRIPT_SANDBOX_WRITE", &self.scripts.writable_folders),
                };
                let folders = folders.iter().map(|folder| folder.display().to_string());
                let advice = match folders.collect::<Vec<_>>().join(", ") {
                    none if none.is_empty() => "no folder: tell the user".to_string(),
                    some => format!("{some}: use that, or tell the user"),
                };
                format!(
                    "`{path}` is not in a folder that the user allows: {why}, and {setting} names {advice}"
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
    OtherNames,
    Skill,
    HiddenInHome,
    NotGranted(Access),
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

/// Opens a file or folder of a skill for reading.
fn open_in_skill(skill: &Skill, relative: &str) -> Result<OpenedPath, String> {
    let target = skill.open_readable(relative);
    let target = target.map_err(|error| skill.file_error("the file", "read", relative, &error))?;
    let is_document = Ok(plain_path(relative)) == skill.document_file_name();
    let action = is_document.then(|| Action::ReadSkill(skill.name.clone()));
    Ok(OpenedPath { target, action, note: None })
}
