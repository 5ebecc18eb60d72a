//! The outcome for each skill of a change.

use std::collections::{BTreeMap, HashMap};
use std::io;

use crate::cli::options::ChangeAction;
use crate::cli::skills::install::fetch::fetch;
use crate::cli::skills::install::names::PathSet;
use crate::cli::skills::install::source::Source;
use crate::cli::skills::install::tree::{FoundFiles, FoundSkill, SkillFile, SourceTree};
use crate::cli::skills::install::{Before, Change, Outcome, Planned};
use crate::ui::Output;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::text::{self, shell_quoted};
use host::confined::{OpenError, Root};
use host::files;
use skills::lock_file::{
    FileDigests, LOCK_FILE_NAME, LockedSkill, added, file_digests, first_change, first_edit,
    is_lock_file_name, is_taken,
};
use skills::{SkillSummary, Skills};

/// A skill of a source whose name another one has, too.
struct Twin {
    /// The name of the other one, which may differ in letter case.
    first: String,
    name: String,
    entry: LockedSkill,
    files: Vec<SkillFile>,
}

impl Change<'_> {
    /// Plans the skills of a source.
    pub(super) fn add(&mut self, source: &Source, output: &mut Output) -> Result<()> {
        let tree = fetch(source, None, self.run, output)?;
        let found = self.chosen(source, &tree)?;
        self.offered = tree.skills("", "").into_iter().map(|skill| skill.name).collect();
        let mut wanted: Vec<(String, Vec<_>)> = Vec::new();
        let mut locked: BTreeMap<String, LockedSkill> = BTreeMap::new();
        let mut names = PathSet::default();
        let mut twins = Vec::new();
        let mut count = 0;
        for FoundSkill { name, folder } in found {
            let entry = LockedSkill {
                source: source.text.clone(),
                folder,
                revision: tree.revision.clone(),
                files: FileDigests::new(),
            };
            self.run.cancellation.check()?;
            let files = tree.files(&entry.folder).and_then(|files| {
                let is_free = !is_lock_file_name(&name);
                is_free.then_some(files).ok_or_else(|| "the lock file has this name".into())
            });
            let FoundFiles { files, left_out } = match files {
                Ok(files) => files,
                Err(cause) => {
                    self.plan(name, entry, None, Outcome::Refused(cause));
                    continue;
                }
            };
            // Links may make many files of few.
            count += files.len();
            if count > limits::ARCHIVE_ENTRIES {
                let cause = format!("the skills have more than {} files", limits::ARCHIVE_ENTRIES);
                return Err(copy_error(&source.text, &io::Error::other(cause)));
            }
            if let Err(first) = names.add(&name) {
                twins.push(Twin { first, name, entry, files });
            } else {
                wanted.push((name.clone(), files));
                self.left_out.insert(name.clone(), left_out);
                locked.insert(name, entry);
            }
        }
        self.plan_twins(twins, &tree, &wanted, &source.text)?;
        let mut there = self.names_there();
        for (name, files) in self.stage(&tree, &wanted, &source.text)? {
            let Some(entry) = locked.remove(&name) else { continue };
            let entry = LockedSkill { files, ..entry };
            let outcome = self.outcome_of_adding(&name, &entry, &mut there, &tree);
            let before = if outcome == Outcome::Updated { self.files_now(&name) } else { None };
            self.plan(name, entry, before, outcome);
        }
        Ok(())
    }

    /// Refuses skills whose name another skill of the source has. A copy for another client is no
    /// other skill.
    fn plan_twins(
        &mut self,
        twins: Vec<Twin>,
        tree: &SourceTree,
        wanted: &[(String, Vec<SkillFile>)],
        source: &str,
    ) -> Result<()> {
        let pairs = twins.iter().map(|twin| {
            let first = wanted.iter().find(|(name, _)| *name == twin.name);
            [first.map_or([].as_slice(), |(_, files)| files), twin.files.as_slice()]
        });
        let pairs: Vec<_> = pairs.collect();
        let are_copies = tree.are_copies(&pairs, &self.run.cancellation);
        let are_copies = are_copies.map_err(|error| copy_error(source, &error))?;
        for (Twin { first, name, entry, .. }, is_copy) in twins.into_iter().zip(are_copies) {
            if !is_copy {
                let cause = format!("the source has a skill `{first}` in another folder, too");
                self.plan(name, entry, None, Outcome::Refused(cause));
            }
        }
        Ok(())
    }

    /// The skills of a source that the user chose.
    fn chosen(&self, source: &Source, tree: &SourceTree) -> Result<Vec<FoundSkill>> {
        let whole = tree.whole_skill();
        let name = whole.and_then(|folder| tree.document_name(folder, &self.run.cancellation));
        let root_name = name.as_ref().unwrap_or(&source.root_name);
        let mut found = tree.skills(&source.folder, root_name);
        if let ([only], Some(name)) = (found.as_mut_slice(), &name)
            && Some(only.folder.as_str()) == whole
        {
            // The folder of an archive may have the name of a branch or a commit.
            only.name.clone_from(name);
        }
        let failed = |cause: String| {
            let text = format!("failed to add skills from {}: {cause}", source.text);
            Error::new(ErrorKind::Io, text)
        };
        let names: Vec<&str> = found.iter().map(|skill| skill.name.as_str()).collect();
        let shown = |names: &[&str]| text::one_line_name(&text::first_names(names));
        if names.is_empty() {
            let all = tree.skills("", root_name);
            let folders: Vec<&str> = all.iter().map(|skill| skill.folder.as_str()).collect();
            return Err(match folders.as_slice() {
                [] => failed("no folder in it contains a SKILL.md".into()),
                [""] => failed(format!("the folder `{}` contains no skill", source.folder))
                    .with_hint("all of it is one skill"),
                folders => failed(format!("the folder `{}` contains no skill", source.folder))
                    .with_hint(format!("there are skills in {}", shown(folders))),
            });
        }
        let wanted = &self.command.skills;
        let is_name = |name: &&String| names.contains(&name.as_str());
        let mut aliases = HashMap::new();
        if !wanted.iter().all(|name| is_name(&name)) {
            let folders = found.iter().map(|skill| skill.folder.as_str());
            let read = tree.aliases(folders, &self.run.cancellation);
            aliases = read.map_err(|error| copy_error(&source.text, &error))?;
        }
        // An alias counts where no folder has that name.
        let means = |name: &String, skill: &FoundSkill| {
            let alias = aliases.get(skill.folder.as_str());
            *name == skill.name || !is_name(&name) && alias == Some(name)
        };
        let is_known = |name: &&String| found.iter().any(|skill| means(name, skill));
        if let Some(unknown) = wanted.iter().find(|name| !is_known(name)) {
            return Err(failed(format!("it has no skill `{unknown}`"))
                .with_hint(format!("its skills are {}", shown(&names))));
        }
        let is_wanted =
            |skill: &&FoundSkill| wanted.is_empty() || wanted.iter().any(|name| means(name, skill));
        Ok(found.iter().filter(is_wanted).cloned().collect())
    }

    /// Names in the skills folder.
    pub(super) fn names_there(&self) -> PathSet {
        let mut names = PathSet::default();
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if let Ok(name) = entry.file_name().into_string() {
                // Two that are the same elsewhere may well be here.
                let _ = names.add(&name);
            }
        }
        names
    }

    /// Returns the outcome for a skill that is not to replace another one.
    fn outcome_of_adding(
        &self,
        name: &str,
        entry: &LockedSkill,
        there: &mut PathSet,
        tree: &SourceTree,
    ) -> Outcome {
        let Err(there) = there.add(name) else {
            return Outcome::Added;
        };
        match self.old.skills.get(&there) {
            // It was moved in its source.
            Some(old)
                if old.source == entry.source && there == name && !tree.has_skill(&old.folder) =>
            {
                let before = self.files_now(name);
                let kept = self.kept(&before, old).or_else(|| self.in_the_way(&before, old, entry));
                kept.unwrap_or(Outcome::Updated)
            }
            Some(old) if (&old.source, &old.folder) != (&entry.source, &entry.folder) => {
                let remove = self.command_text("remove", &there);
                Outcome::Refused(format!(
                    "`{there}` is there, from {} (first {remove})",
                    old.source
                ))
            }
            Some(old) if old.files == entry.files => {
                self.kept(&self.files_now(&there), old).unwrap_or(Outcome::Unchanged)
            }
            Some(_) => {
                let update = self.command_text("update", &there);
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
            let before = self.files_now(&name);
            if let Some(outcome) = self.kept(&before, &locked) {
                self.plan(name, locked, None, outcome);
            } else if is_restore && is_same(&before, &locked) {
                self.plan(name, locked, None, Outcome::Unchanged);
            } else {
                let revision = locked.revision.clone().filter(|_| is_restore);
                groups.entry((locked.source.clone(), revision)).or_default().push((name, locked));
            }
        }
        for ((text, revision), skills) in groups {
            let source = Source::parse_locked(&text, self.run);
            let tree =
                source.and_then(|source| fetch(&source, revision.as_deref(), self.run, output));
            let tree = match tree {
                Err(error) if !is_restore && !error.is_stop() => {
                    for (name, locked) in skills {
                        self.plan(name, locked, None, Outcome::Kept(error.message().into()));
                    }
                    continue;
                }
                tree => tree?,
            };
            let mut wanted = Vec::new();
            for (name, locked) in &skills {
                let folder = &locked.folder;
                let files = if tree.has_skill(folder) {
                    tree.files(folder)
                } else {
                    Err(gone(&text, name, folder, &tree))
                };
                match files {
                    Ok(FoundFiles { files, left_out }) => {
                        wanted.push((name.clone(), files));
                        self.left_out.insert(name.clone(), left_out);
                    }
                    Err(cause) if is_restore => return Err(restore_error(name, &cause)),
                    Err(cause) => {
                        self.plan(name.clone(), locked.clone(), None, Outcome::Kept(cause));
                    }
                }
            }
            let mut digests = self.stage(&tree, &wanted, &text)?;
            for (name, locked) in skills {
                let Some(files) = digests.remove(&name) else { continue };
                let new = LockedSkill { revision: tree.revision.clone(), files, ..locked.clone() };
                // It may have been changed in the time that the source took.
                let before = self.files_now(&name);
                let kept = self.kept(&before, &locked);
                let kept = kept.or_else(|| self.in_the_way(&before, &locked, &new));
                let (locked, outcome) = match kept {
                    Some(outcome) => (locked, outcome),
                    None => outcome_of_renewing(&name, locked, new, is_restore, &before)?,
                };
                self.plan(name, locked, before, outcome);
            }
        }
        Ok(())
    }

    /// Plans the removal of skills.
    pub(super) fn remove(&mut self, skills: Vec<(String, LockedSkill)>) {
        for (name, locked) in skills {
            let before = self.files_now(&name);
            let outcome = self.kept(&before, &locked).unwrap_or(Outcome::Removed);
            self.plan(name, locked, before, outcome);
        }
    }

    /// These skills of the lock file, also by the names in their documents where no folder has the
    /// name; without names all of them.
    pub(super) fn named(&self, names: &[String]) -> Result<Vec<(String, LockedSkill)>> {
        let known: Vec<&str> = self.old.skills.keys().map(String::as_str).collect();
        let mut names = names.to_vec();
        let is_known = |name: &String| known.contains(&name.as_str());
        if !names.iter().all(is_known) {
            let catalogue = Skills::new([self.folder.clone()]).catalogue();
            for name in names.iter_mut().filter(|name| !is_known(name)) {
                let is_meant = |skill: &&SkillSummary| {
                    skill.alias.as_ref() == Some(name) && is_known(&skill.name)
                };
                let mut found = catalogue.skills.iter().filter(is_meant);
                if let (Some(only), None) = (found.next(), found.next()) {
                    *name = only.name.clone();
                }
            }
        }
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            let shown = text::one_line_name(unknown);
            let path = self.folder.join(LOCK_FILE_NAME);
            let text = format!("failed to find `{shown}` in {}", path.display());
            let listed = text::one_line_name(&text::first_names(&known));
            let hint = if known.is_empty() {
                "it lists no skill".into()
            } else {
                format!("it lists {listed}")
            };
            return Err(Error::new(ErrorKind::Io, text).with_hint(hint));
        }
        let all = self.old.skills.clone().into_iter();
        Ok(all.filter(|(name, _)| names.is_empty() || names.contains(name)).collect())
    }

    /// A command for a skill of this folder, as a hint has it.
    fn command_text(&self, verb: &str, name: &str) -> String {
        let to = self.command.to.as_ref().map(|to| format!(" --to {}", shell_quoted(to.as_ref())));
        let end = if name.starts_with('-') { "-- " } else { "" };
        let name = shell_quoted(name.as_ref());
        format!("`skills-runner skills {verb}{} {end}{name}`", to.unwrap_or_default())
    }

    /// The outcome of a skill that was changed by hand, unless that is forced. Files that were only
    /// added stay in an update.
    fn kept(&self, before: &Before, locked: &LockedSkill) -> Option<Outcome> {
        let is_exact =
            matches!(self.command.action, ChangeAction::Remove(_) | ChangeAction::Restore);
        let change = match before.as_ref().filter(|_| !self.command.force)? {
            Ok(files) if is_exact => first_change(&locked.files, files)?,
            Ok(files) => first_edit(&locked.files, files)?,
            Err(cause) => cause.clone(),
        };
        let hint = match self.command.action {
            ChangeAction::Add(_) => "",
            ChangeAction::Remove(_) => " (--force removes it)",
            ChangeAction::Update(_) | ChangeAction::Restore => {
                " (--force replaces it; files that you added stay)"
            }
        };
        Some(Outcome::Kept(format!("{change}{hint}")))
    }

    /// The outcome of a skill if the new version needs the place of a file that was added, unless
    /// that is forced.
    fn in_the_way(&self, before: &Before, old: &LockedSkill, new: &LockedSkill) -> Option<Outcome> {
        let files = before.as_ref().filter(|_| !self.command.force)?.as_ref().ok()?;
        let path = added(&old.files, files).find(|path| is_taken(path, &new.files))?;
        let text = format!("`{path}` was added, and the source has it, too");
        Some(Outcome::Kept(match self.command.action {
            ChangeAction::Add(_) => text,
            _ => format!("{text} (--force keeps the added one as `{path}.orig`)"),
        }))
    }

    /// The files of a skill as they are now.
    fn files_now(&self, name: &str) -> Before {
        files_now(self.staging.root()?, name)
    }

    fn stage(
        &self,
        tree: &SourceTree,
        wanted: &[(String, Vec<SkillFile>)],
        source: &str,
    ) -> Result<BTreeMap<String, FileDigests>> {
        let staged = self.staging.add(tree, wanted, &self.run.cancellation);
        staged.map_err(|error| copy_error(source, &error))
    }

    fn plan(&mut self, name: String, locked: LockedSkill, before: Before, outcome: Outcome) {
        // What is refused before anything is prepared has nothing to discard.
        if !outcome.is_installed() {
            self.staging.discard(&name);
        }
        self.planned.push(Planned { name, locked, before, outcome });
    }
}

/// The files of a skill in a skills folder.
pub(super) fn files_now(root: &Root, name: &str) -> Before {
    match root.linked_folder(name) {
        Err(OpenError::NotFound) => None,
        Err(error) => Some(Err(error.user_message())),
        Ok(skill) if skill.is_linked() => Some(Err("it is a link".into())),
        Ok(skill) => Some(file_digests(&skill)),
    }
}

fn copy_error(source: &str, error: &io::Error) -> Error {
    files::read_error(error, |cause| {
        Error::new(ErrorKind::Io, format!("failed to copy the skills of {source}: {cause}"))
    })
}

/// Why there are no new files of a skill: its folder is not in the source any more.
fn gone(source: &str, name: &str, folder: &str, tree: &SourceTree) -> String {
    let text = format!("{source} has no skill in the folder `{folder}` any more");
    match tree.skills("", name).into_iter().find(|skill| skill.name == name) {
        Some(moved) => format!("{text}, but one in `{}`, which `skills add` takes", moved.folder),
        None => text,
    }
}

fn restore_error(name: &str, cause: &str) -> Error {
    let text = format!("failed to restore `{name}`, so nothing was changed: {cause}");
    Error::new(ErrorKind::Io, text).with_hint("`skills update` takes the present files")
}

/// Returns the lock entry and the outcome of a skill that was got again.
fn outcome_of_renewing(
    name: &str,
    old: LockedSkill,
    new: LockedSkill,
    is_restore: bool,
    before: &Before,
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
        None if is_same(before, &old) => (old, Outcome::Unchanged),
        None => (old, Outcome::Restored),
    })
}

/// Whether a skill has all files that the lock file lists.
fn is_same(before: &Before, locked: &LockedSkill) -> bool {
    matches!(before, Some(Ok(files)) if first_edit(&locked.files, files).is_none())
}
