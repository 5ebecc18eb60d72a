//! What happens to each skill of a change.

use std::collections::BTreeMap;

use crate::cli::options::ChangeAction;
use crate::cli::skills::install::fetch::{Fetched, fetch};
use crate::cli::skills::install::source::Source;
use crate::cli::skills::install::{Change, Outcome, Planned};
use crate::error::{Error, ErrorKind, Result};
use crate::skills::install::{FoundSkill, PathSet, SkillFile};
use crate::skills::lock_file::{
    FileDigests, LOCK_FILE_NAME, LockedSkill, file_digests, first_change,
};
use crate::text::{self, shell_quoted};
use crate::world::confined::OpenError;
use crate::world::files;
use crate::world::output::Output;

/// A skill in the folder, compared with the lock file.
enum State {
    Missing,
    Same,
    /// Changed by hand; the first difference.
    Changed(String),
}

impl Change<'_> {
    /// Plans the skills of a source.
    pub(super) fn add(&mut self, source: &Source, output: &mut Output) -> Result<()> {
        let fetched = fetch(source, None, self.run, output)?;
        let found = self.chosen(source, &fetched)?;
        let mut wanted: Vec<(String, Vec<_>)> = Vec::new();
        let mut locked: BTreeMap<String, LockedSkill> = BTreeMap::new();
        let mut names = PathSet::default();
        for FoundSkill { name, folder } in found {
            let entry = LockedSkill {
                source: source.text.clone(),
                folder,
                revision: fetched.revision.clone(),
                files: FileDigests::new(),
            };
            self.run.cancellation.check()?;
            let files = fetched.tree.files(&entry.folder);
            let files = match (names.add(&name), files) {
                (Err(twin), files) => {
                    let first = wanted.iter().find(|(other, _)| *other == twin);
                    // A copy for another client is no other skill.
                    if first.is_some_and(|(_, first)| files.is_ok_and(|it| is_copy(first, &it))) {
                        continue;
                    }
                    Err(format!("the source has a skill `{twin}` in another folder, too"))
                }
                (Ok(()), files) => files,
            };
            match files {
                Err(cause) => self.plan(name, entry, Outcome::Refused(cause)),
                Ok(files) => {
                    wanted.push((name.clone(), files));
                    locked.insert(name, entry);
                }
            }
        }
        let mut there = self.names_there();
        for (name, files) in self.stage(&fetched, &wanted, &source.text)? {
            let Some(entry) = locked.remove(&name) else { continue };
            let entry = LockedSkill { files, ..entry };
            let outcome = self.outcome_of_adding(&name, &entry, &mut there);
            self.plan(name, entry, outcome);
        }
        Ok(())
    }

    /// The skills of a source that the user chose.
    fn chosen(&self, source: &Source, fetched: &Fetched) -> Result<Vec<FoundSkill>> {
        let root_name = fetched.tree.root_name(&self.run.cancellation);
        let root_name = root_name.as_ref().unwrap_or(&source.root_name);
        let found = fetched.tree.skills(&source.folder, root_name);
        let failed = |cause: String| {
            let text = format!("failed to add skills from {}: {cause}", source.text);
            Error::new(ErrorKind::Io, text)
        };
        let names: Vec<&str> = found.iter().map(|skill| skill.name.as_str()).collect();
        let shown = |names: &[&str]| text::one_line_name(&text::first_names(names));
        if names.is_empty() {
            let all = fetched.tree.skills("", root_name);
            let folders: Vec<&str> = all.iter().map(|skill| skill.folder.as_str()).collect();
            return Err(match folders.as_slice() {
                [] => failed("no folder in it contains a SKILL.md".into()),
                folders => failed(format!("the folder `{}` contains no skill", source.folder))
                    .with_hint(format!("there are skills in {}", shown(folders))),
            });
        }
        let wanted = &self.command.skills;
        if let Some(unknown) = wanted.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(failed(format!("it has no skill `{unknown}`"))
                .with_hint(format!("its skills are {}", shown(&names))));
        }
        let is_wanted = |skill: &FoundSkill| wanted.is_empty() || wanted.contains(&skill.name);
        Ok(found.into_iter().filter(is_wanted).collect())
    }

    /// What is in the skills folder.
    fn names_there(&self) -> PathSet {
        let mut names = PathSet::default();
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if let Ok(name) = entry.file_name().into_string() {
                // Two that are the same elsewhere may well be here.
                let _ = names.add(&name);
            }
        }
        names
    }

    /// What happens to a skill that is not to be installed over another one.
    fn outcome_of_adding(&self, name: &str, entry: &LockedSkill, there: &mut PathSet) -> Outcome {
        let Err(there) = there.add(name) else {
            return Outcome::Added;
        };
        match self.old.skills.get(&there) {
            Some(old) if (&old.source, &old.folder) != (&entry.source, &entry.folder) => {
                let remove = self.command_text(&format!("remove {there}"));
                Outcome::Refused(format!(
                    "`{there}` is there, from {} (first {remove})",
                    old.source
                ))
            }
            Some(old) if old.files == entry.files => match self.state(&there) {
                State::Changed(change) => self.kept(&change),
                State::Same | State::Missing => Outcome::Unchanged,
            },
            Some(_) => {
                let update = self.command_text(&format!("update {there}"));
                Outcome::Refused(format!("another version is there, which {update} replaces"))
            }
            None => Outcome::Refused(format!(
                "`{there}` is there, and was not installed by `skills add`"
            )),
        }
    }

    /// Plans the present version of skills, or with `is_restore` the version of the lock file.
    pub(super) fn renew(
        &mut self,
        skills: Vec<(String, LockedSkill)>,
        is_restore: bool,
        output: &mut Output,
    ) -> Result<()> {
        // By source and revision, as each is got once.
        let mut groups: BTreeMap<_, Vec<(String, LockedSkill)>> = BTreeMap::new();
        for (name, locked) in skills {
            match self.state(&name) {
                State::Changed(change) if !self.command.force => {
                    let outcome = self.kept(&change);
                    self.plan(name, locked, outcome);
                }
                State::Same if is_restore => self.plan(name, locked, Outcome::Unchanged),
                _ => {
                    let revision = locked.revision.clone().filter(|_| is_restore);
                    groups
                        .entry((locked.source.clone(), revision))
                        .or_default()
                        .push((name, locked));
                }
            }
        }
        for ((text, revision), skills) in groups {
            let source = Source::parse_locked(&text, self.run);
            let fetched =
                source.and_then(|source| fetch(&source, revision.as_deref(), self.run, output));
            let fetched = match fetched {
                Err(error) if !is_restore && !error.is_stop() => {
                    for (name, locked) in skills {
                        self.plan(name, locked, Outcome::Kept(error.message().into()));
                    }
                    continue;
                }
                fetched => fetched?,
            };
            let mut wanted = Vec::new();
            for (name, locked) in &skills {
                let folder = &locked.folder;
                let found = fetched.tree.skills(folder, name);
                let is_there = found.iter().any(|skill| skill.folder == *folder);
                let gone = || format!("{text} has no skill in the folder `{folder}` any more");
                let files = is_there.then(|| fetched.tree.files(folder));
                let files = files.unwrap_or_else(|| Err(gone()));
                match files {
                    Ok(files) => wanted.push((name.clone(), files)),
                    Err(cause) if is_restore => return Err(restore_error(name, &cause)),
                    Err(cause) => self.plan(name.clone(), locked.clone(), Outcome::Kept(cause)),
                }
            }
            let mut digests = self.stage(&fetched, &wanted, &text)?;
            for (name, locked) in skills {
                let Some(files) = digests.remove(&name) else { continue };
                let new =
                    LockedSkill { revision: fetched.revision.clone(), files, ..locked.clone() };
                // It may have been changed in the time that the source took.
                let (locked, outcome) = match self.state(&name) {
                    State::Changed(change) if !self.command.force => (locked, self.kept(&change)),
                    state => outcome_of_renewing(&name, locked, new, is_restore, &state)?,
                };
                self.plan(name, locked, outcome);
            }
        }
        Ok(())
    }

    /// Plans the removal of skills.
    pub(super) fn remove(&mut self, skills: Vec<(String, LockedSkill)>) {
        for (name, locked) in skills {
            let outcome = match self.state(&name) {
                State::Changed(change) if !self.command.force => self.kept(&change),
                _ => Outcome::Removed,
            };
            self.plan(name, locked, outcome);
        }
    }

    /// These skills of the lock file; without names all of them.
    pub(super) fn named(&self, names: &[String]) -> Result<Vec<(String, LockedSkill)>> {
        let known: Vec<&str> = self.old.skills.keys().map(String::as_str).collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
            let shown = text::one_line_name(unknown);
            let text = format!("failed to find `{shown}` in {}", self.lock_path());
            let listed = text::one_line_name(&text::first_names(&known));
            return Err(Error::new(ErrorKind::Io, text).with_hint(format!("it lists {listed}")));
        }
        let all = self.old.skills.clone().into_iter();
        Ok(all.filter(|(name, _)| names.is_empty() || names.contains(name)).collect())
    }

    /// A command for this folder, as a hint has it.
    fn command_text(&self, words: &str) -> String {
        let to = self.command.to.as_ref().map(|to| format!(" --to {}", shell_quoted(to.as_ref())));
        format!("`skills-runner skills {words}{}`", to.unwrap_or_default())
    }

    /// What happens to a skill that was changed by hand.
    fn kept(&self, change: &str) -> Outcome {
        let is_add = matches!(self.command.action, ChangeAction::Add(_));
        Outcome::Kept(format!("{change}{}", if is_add { "" } else { " (--force replaces it)" }))
    }

    fn lock_path(&self) -> String {
        self.folder.join(LOCK_FILE_NAME).display().to_string()
    }

    /// The files of a skill as they are now, or why they cannot be read; `None`: it is missing.
    pub(super) fn files_now(&self, name: &str) -> Option<std::result::Result<FileDigests, String>> {
        match self.staging.root().linked_folder(name) {
            Err(OpenError::NotFound) => None,
            Err(error) => Some(Err(error.user_message())),
            Ok(skill) => Some(file_digests(&skill)),
        }
    }

    fn state(&self, name: &str) -> State {
        let locked = self.old.skills.get(name).map(|locked| &locked.files);
        match self.files_now(name) {
            None => State::Missing,
            Some(Err(cause)) => State::Changed(cause),
            Some(Ok(files)) => match first_change(locked.unwrap_or(&FileDigests::new()), &files) {
                None => State::Same,
                Some(change) => State::Changed(change),
            },
        }
    }

    fn stage(
        &self,
        fetched: &Fetched,
        wanted: &[(String, Vec<SkillFile>)],
        source: &str,
    ) -> Result<BTreeMap<String, FileDigests>> {
        let staged = self.staging.add(&fetched.tree, wanted, &self.run.cancellation);
        staged.map_err(|error| {
            files::read_error(&error, |cause| {
                Error::new(ErrorKind::Io, format!("failed to copy the skills of {source}: {cause}"))
            })
        })
    }

    fn plan(&mut self, name: String, locked: LockedSkill, outcome: Outcome) {
        // What is refused before anything is prepared has nothing to discard.
        if !outcome.is_installed() {
            self.staging.discard(&name);
        }
        let before = self.files_now(&name);
        self.planned.push(Planned { name, locked, before, outcome });
    }
}

fn restore_error(name: &str, cause: &str) -> Error {
    let text = format!("failed to restore `{name}`, so nothing was changed: {cause}");
    Error::new(ErrorKind::Io, text).with_hint("`skills update` takes the present files")
}

/// What happens to a skill that was got again, and its entry in the lock file.
fn outcome_of_renewing(
    name: &str,
    old: LockedSkill,
    new: LockedSkill,
    is_restore: bool,
    state: &State,
) -> Result<(LockedSkill, Outcome)> {
    let change = first_change(&old.files, &new.files);
    let is_same_revision = new.revision.is_some() && new.revision == old.revision;
    Ok(match change {
        Some(change) if is_restore => {
            let cause = format!("its source has other files: {change}");
            return Err(restore_error(name, &cause));
        }
        None if is_restore => (old, Outcome::Restored),
        Some(change) if is_same_revision => {
            let cause = format!("the source has other files for the same revision: {change}");
            (old, Outcome::Kept(cause))
        }
        Some(_) => (new, Outcome::Updated),
        None if matches!(state, State::Same) => (old, Outcome::Unchanged),
        None => (old, Outcome::Restored),
    })
}

/// Whether two skills have files of the same paths and sizes.
fn is_copy(one: &[SkillFile], other: &[SkillFile]) -> bool {
    let same =
        |(one, other): (&SkillFile, &SkillFile)| (&one.path, one.size) == (&other.path, other.size);
    one.len() == other.len() && one.iter().zip(other).all(same)
}
