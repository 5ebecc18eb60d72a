//! `skills add`, `update`, `remove` and `restore`: installed skills, and the lock file beside them.
//!
//! First everything is prepared in a folder of its own ([`Staging`]); then the user sees what will
//! change, and agrees; then it is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::folders::NEWER_LOCK_FILE_HINT;
use crate::cli::options::{ChangeAction, ChangeCommand};
use crate::cli::run::Run;
use crate::cli::skills::json::{self, print_json};
use crate::cli::values::usage;
use crate::ui::Output;
use base::error::{Error, ErrorKind, Result};
use base::text::{self, shell_quoted};
use host::confined::Root;
use host::files;
use host::terminal;
use skills::lock_file::{FileDigests, LOCK_FILE_NAME, LockFile, LockFileError, LockedSkill};

mod fetch;
mod git;
mod names;
mod plan;
mod record;
mod source;
pub(super) mod staging;
mod tree;
mod view;

use plan::files_now;
use source::Source;
use staging::{StagedChange, Staging, StagingPlaces};

/// A change of a skills folder.
struct Change<'r> {
    run: &'r Run,
    command: &'r ChangeCommand,
    /// The skills folder.
    folder: PathBuf,
    staging: Staging,
    /// The lock file before the change.
    old: LockFile,
    planned: Vec<Planned>,
    /// The names of all skills of the source.
    offered: BTreeSet<String>,
    /// Files not copied of each skill, with the reasons.
    left_out: BTreeMap<String, Vec<String>>,
}

/// The files of a skill before the change, or why they cannot be read; `None`: it is missing, or it
/// is not changed.
type Before = Option<std::result::Result<FileDigests, String>>;

/// A skill that the change is about.
struct Planned {
    name: String,
    /// Its entry in the lock file; for a skill that is removed, the old one.
    locked: LockedSkill,
    before: Before,
    outcome: Outcome,
}

/// Outcome for a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Added,
    Updated,
    Restored,
    Removed,
    Unchanged,
    /// It is there, and stays as it is, for this reason.
    Kept(String),
    /// It is not installed, for this reason.
    Refused(String),
}

/// The result in JSON output.
#[derive(Serialize)]
struct ChangeReport<'p> {
    skills: Vec<ChangedSkill<'p>>,
    dry_run: bool,
}

/// A skill in JSON output.
#[derive(Serialize)]
struct ChangedSkill<'p> {
    name: &'p str,
    #[serde(serialize_with = "json::path")]
    path: PathBuf,
    source: &'p str,
    revision: Option<&'p str>,
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'p str>,
}

/// Changes the skills folder. The status is 1 if a skill was left as it is or refused, or if the
/// user does not agree.
pub(super) fn run(
    run: &Run,
    command: &ChangeCommand,
    is_json: bool,
    output: &mut Output,
) -> Result<u8> {
    let source = match &command.action {
        ChangeAction::Add(text) => Some(Source::parse(text, run)?),
        _ => None,
    };
    let folder = skills_folder(run, command)?;
    let wait = format!("waiting for another command that changes {}", folder.display());
    let places = StagingPlaces {
        folder: &folder,
        temporary: &run.config.scripts.temporary_folder,
        data: run.config.storage.state.as_deref(),
    };
    let staging = Staging::open(&places, &run.cancellation, &mut || output.note(&wait));
    let staging = staging.map_err(|error| folder_error(&folder, &error))?;
    let old = staging.lock_file().map_err(|error| lock_file_error(&folder, &error))?;
    if source.is_none() && !folder.join(LOCK_FILE_NAME).exists() {
        let folder = folder.display();
        let text =
            format!("failed to find installed skills: `skills add` has added none to {folder}");
        return Err(Error::new(ErrorKind::Io, text).with_hint(other_folder_hint(run, command)));
    }
    let (planned, offered, left_out) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    let mut change = Change { run, command, folder, staging, old, planned, offered, left_out };
    match (&command.action, &source) {
        (_, Some(source)) => change.add(source, output)?,
        (ChangeAction::Update(names), None) => {
            change.renew(change.named(names)?, false, output)?;
        }
        (ChangeAction::Remove(names), None) => change.remove(change.named(names)?),
        (_, None) => change.renew(change.named(&[])?, true, output)?,
    }
    change.finish(is_json, output)
}

/// The folder of installed skills: `--to`, else the first named skills folder, else the one of the
/// user's data.
fn skills_folder(run: &Run, command: &ChangeCommand) -> Result<PathBuf> {
    let named = run.skills.folders().first().filter(|_| run.has_named_folders);
    let folder = match (&command.to, named) {
        (Some(folder), _) => Some(run.settings.path(folder, &run.folder)),
        (None, Some(folder)) => Some(folder.path.clone()),
        (None, None) => run.settings.user_skills_folder(),
    };
    let error = || usage("there is no folder for skills: HOME is not set");
    // Without a slash at the end, which would follow a link.
    let folder: PathBuf = folder
        .ok_or_else(|| error().with_hint("name a folder with --to DIR"))?
        .components()
        .collect();
    let creates = matches!(command.action, ChangeAction::Add(_) | ChangeAction::Restore);
    if !creates && !folder.is_dir() {
        let cause = files::dead_link(&folder).unwrap_or_else(|| "there is no such folder".into());
        let text = format!("failed to open {}: {cause}", folder.display());
        return Err(Error::new(ErrorKind::Config, text).with_hint(other_folder_hint(run, command)));
    }
    Ok(folder)
}

/// The hint where a folder has no installed skills: another one that has some.
fn other_folder_hint(run: &Run, command: &ChangeCommand) -> String {
    let folders = run.skills.folders().iter().map(|folder| &folder.path);
    let mut others = folders.filter(|folder| folder.join(LOCK_FILE_NAME).is_file());
    match others.next().filter(|_| command.to.is_none()) {
        Some(folder) => {
            format!("for those of this folder: --to {}", shell_quoted(&run.short_path(folder)))
        }
        None => "--to DIR names the skills folder".into(),
    }
}

/// The error for a lock file in this folder that cannot be used.
fn lock_file_error(folder: &Path, error: &LockFileError) -> Error {
    let path = folder.join(LOCK_FILE_NAME);
    let hint = match error {
        LockFileError::Newer { .. } => NEWER_LOCK_FILE_HINT,
        LockFileError::Invalid(_) => {
            "bring it back from version control, or delete it and add the skills again"
        }
    };
    Error::new(ErrorKind::Config, format!("failed to read {}: {error}", path.display()))
        .with_hint(hint)
}

fn folder_error(folder: &Path, error: &io::Error) -> Error {
    if let Some(error) = error.get_ref().and_then(|error| error.downcast_ref()) {
        return lock_file_error(folder, error);
    }
    files::read_error(error, |cause| {
        let dead_link = files::dead_link(folder);
        let cause = if folder.is_file() { "it is not a folder" } else { cause };
        let cause = dead_link.as_deref().unwrap_or(cause);
        let text = format!("failed to change the skills folder {}: {cause}", folder.display());
        Error::new(ErrorKind::Io, text)
    })
}

impl Change<'_> {
    /// Shows what will change, asks, changes it, and reports it.
    fn finish(mut self, is_json: bool, output: &mut Output) -> Result<u8> {
        self.planned.sort_by(|one, other| one.name.cmp(&other.name));
        let is_cut = view::show(&self, false, output)?;
        view::warn_of_siblings(&self, output);
        let changing = self.planned.iter().filter(|planned| planned.outcome.is_change());
        let changing: Vec<String> = changing.map(|planned| planned.name.clone()).collect();
        let is_left = |planned: &Planned| planned.outcome.reason().is_some();
        let status = u8::from(self.planned.iter().any(is_left));
        let Change { run, command, folder, .. } = &self;
        if !changing.is_empty() && !command.dry_run {
            if !command.yes && !self.agrees(changing.len(), is_cut, output)? {
                output.note_always("nothing was changed");
                return Ok(1);
            }
            self.commit(&changing, output)?;
        }
        let skills = self.planned.iter().map(|planned| ChangedSkill {
            name: &planned.name,
            path: folder.join(&planned.name),
            source: &planned.locked.source,
            revision: planned.locked.revision.as_deref(),
            action: planned.outcome.name(),
            reason: planned.outcome.reason(),
        });
        if is_json {
            let report = ChangeReport { skills: skills.collect(), dry_run: command.dry_run };
            print_json(&report, output);
            return Ok(status);
        }
        for ChangedSkill { action, path, .. } in skills {
            let is_left = matches!(action, "unchanged" | "kept" | "refused");
            let would = if command.dry_run && !is_left { "would be " } else { "" };
            let path = run.short_path(&path);
            output.print(&format!(
                "{would}{action}: {}",
                text::one_line_name(&path.to_string_lossy())
            ));
        }
        Ok(status)
    }

    /// Asks whether the skills may be changed. What was cut is shown if the user wants it.
    fn agrees(&self, changes: usize, is_cut: bool, output: &mut Output) -> Result<bool> {
        if !Output::can_ask() {
            let text = "nothing was changed: there is no terminal to ask on";
            return Err(Error::new(ErrorKind::Usage, text)
                .with_hint("--yes changes the skills without asking, --dry-run only shows them"));
        }
        let folder = self.run.short_path(&self.folder);
        let (verb, skills) = (self.command.action.name(), text::counted(changes, "skill"));
        let more = if is_cut { ", s: show all of it" } else { "" };
        let question = format!("{verb} {skills} in {}? [y/N{more}] ", folder.display());
        loop {
            let reply = terminal::ask(&question, &self.run.cancellation, false)?.to_lowercase();
            match reply.as_str() {
                "s" if is_cut => view::show(self, true, output)?,
                reply => return Ok(["y", "yes"].contains(&reply)),
            };
        }
    }

    /// Changes these skills and the lock file, if they are still as the user saw them. Others may
    /// have been changed meanwhile.
    fn commit(&self, changing: &[String], output: &mut Output) -> Result<()> {
        let changes = || self.planned.iter().filter(|planned| planned.outcome.is_change());
        let renew = |root: &Root, mut lock: LockFile| {
            let mut there = self.names_there();
            for Planned { name, locked, before, outcome } in changes() {
                let is_listed_as_before = lock.skills.get(name) == self.old.skills.get(name);
                let is_same = is_listed_as_before && files_now(root, name) == *before;
                if !is_same || *outcome == Outcome::Added && there.add(name).is_err() {
                    return None;
                }
                match outcome {
                    Outcome::Removed => lock.skills.remove(name),
                    _ => lock.skills.insert(name.clone(), locked.clone()),
                };
            }
            Some(lock)
        };
        let installed = changes().filter(|planned| planned.outcome.is_installed());
        let installed = installed.map(|it| (it.name.as_str(), &it.locked.files)).collect();
        let change = StagedChange { installed, changed: changing, renew: &renew };
        let mut on_wait = || output.note("waiting for another command or the setup of a skill");
        let done = self.staging.commit(&change, &self.run.cancellation, &mut on_wait);
        done.map_err(|error| folder_error(&self.folder, &error))
    }
}

impl Outcome {
    fn name(&self) -> &'static str {
        match self {
            Outcome::Added => "added",
            Outcome::Updated => "updated",
            Outcome::Restored => "restored",
            Outcome::Removed => "removed",
            Outcome::Unchanged => "unchanged",
            Outcome::Kept(_) => "kept",
            Outcome::Refused(_) => "refused",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Outcome::Kept(reason) | Outcome::Refused(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether the prepared files are put in their place.
    fn is_installed(&self) -> bool {
        matches!(self, Outcome::Added | Outcome::Updated | Outcome::Restored)
    }

    fn is_change(&self) -> bool {
        self.is_installed() || *self == Outcome::Removed
    }
}
