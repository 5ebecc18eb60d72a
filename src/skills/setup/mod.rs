//! `skills setup`: a venv of a skill's own, with what its scripts need. It is made
//! also where they need nothing: then it is settled what runs them.
//!
//! What is needed is what the skill declares, what a person asks for, and what
//! its imports show to be missing, as far as the package is known. A venv that a
//! setup made is made anew when that has changed; one that people made is only
//! added to. `place` sees to it that no half-made one is ever used, a lock that
//! two setups do not meet, `tool` runs the installers. Nothing here prints.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::secret::without_logins;
use crate::skills::Skill;
use crate::skills::packages::project;
use crate::skills::python::Interpreter;
use crate::skills::venv::{self, VenvRecord, installed};
use crate::world::confined::OpenError;

mod command_runner;
mod existing_venv;
mod failure;
mod foreign;
mod needs;
mod progress;
mod request;
mod requirements;
mod syntax;
mod venv_location;

use command_runner::{CommandRunner, ProgressSink};
use existing_venv::ExistingVenv;
use needs::InterpreterNeeds;
pub(crate) use progress::{
    ScriptImport, SetupOutcome, SetupProgress, SetupSummary, UndeclaredRequirement,
};
pub(crate) use request::SetupRequest;
use request::{lock, requested_packages, requirements_file};
pub(crate) use requirements::FILE as REQUIREMENTS;
use requirements::{RequirementsFile, level, levelled};
pub(crate) use syntax::is_archive;
use venv_location::VenvLocation;

/// Sets a skill up. When it fails the skill is as before; only a venv that people
/// made keeps what was installed in it by then. No login of a URL is told.
pub(crate) fn setup(
    order: &SetupRequest<'_>,
    tell: &mut ProgressSink<'_>,
) -> Result<SetupSummary, Error> {
    set_up(order, tell).map_err(|error| {
        let told = Error::new(error.kind(), without_logins(error.message()));
        match error.hint() {
            Some(hint) => told.with_hint(without_logins(hint)),
            None => told,
        }
    })
}

fn set_up(order: &SetupRequest<'_>, tell: &mut ProgressSink<'_>) -> Result<SetupSummary, Error> {
    let folder = &order.skill.path;
    // Programs work in it, where a relative path would mean another one.
    if !folder.is_absolute() {
        let text = format!(
            "failed to set up `{}`: the working folder cannot be found out",
            order.skill.name
        );
        return Err(Error::new(ErrorKind::Io, text).with_hint("name the skill by an absolute path"));
    }
    let extra = requested_packages(order)?;
    let lock = lock(order, tell)?;
    let place = VenvLocation::new(folder, order.cancellation);
    if place.is_unfinished() {
        let recovered = place.recover();
        order.cancellation.check()?;
        recovered.map_err(|error| unwritable(folder, &error))?;
        tell(SetupProgress::Recovered);
    }
    let bench = CommandRunner::new(folder, order.scripts, order.cancellation, &lock);
    let (file, added) = requirements_file(order.skill, &extra)?;
    let setup = Setup { order, bench, place, file, added, extra };
    let mut begun = VenvAction::Nothing;
    let done = setup.carry_out(&mut |progress| {
        match progress {
            SetupProgress::Keeps(_) => begun = VenvAction::Adding,
            SetupProgress::Changes(_) | SetupProgress::Makes { .. } => begun = VenvAction::Making,
            _ => {}
        }
        tell(progress);
    });
    if let Err(error) = &done {
        let has_venv = venv::of_skill(folder).is_some();
        match (begun, error.kind()) {
            (VenvAction::Adding, _) => tell(SetupProgress::Partly),
            (VenvAction::Making, _) if !setup.place.is_as_before() => tell(SetupProgress::Remains),
            (VenvAction::Making, _) | (_, ErrorKind::Interrupted(_)) => {
                tell(SetupProgress::AsBefore { has_venv });
            }
            _ => {}
        }
    }
    done
}

/// What a setup has set out to do to the venv.
#[derive(Clone, Copy)]
enum VenvAction {
    Nothing,
    /// A new one is made.
    Making,
    /// People's own is added to.
    Adding,
}

/// Whether a setup would install more of what the skill's requirements files list
/// than the venv has.
pub(crate) fn lacks_listed(skill: &Skill, venv: &Path) -> bool {
    let files = [requirements::FILE, "scripts/requirements.txt"];
    let mut lines = files.iter().flat_map(|file| requirements::lines_of(&skill.root, file));
    if let Some(record) = VenvRecord::of(venv) {
        let declared = levelled(&record.declared);
        return lines.any(|line| !declared.contains(&level(&line)));
    }
    let installed = installed(venv);
    lines.any(|line| !installed.contains(&project(&line)))
}

/// Whether a requirement was declared when a venv was set up.
pub(crate) fn is_recorded(requirement: &str, record: &VenvRecord) -> bool {
    levelled(&record.declared).contains(&level(requirement))
}

/// A setup under way.
struct Setup<'s> {
    order: &'s SetupRequest<'s>,
    bench: CommandRunner<'s>,
    place: VenvLocation<'s>,
    /// The skill's requirements file as it will be; `None` if it has none.
    file: Option<RequirementsFile>,
    /// Those of `extra` that the file did not name yet.
    added: Vec<String>,
    extra: Vec<String>,
}

impl Setup<'_> {
    fn carry_out(&self, tell: &mut ProgressSink<'_>) -> Result<SetupSummary, Error> {
        match self.find()? {
            ExistingVenv::Nothing(base) => self.first(&base, tell),
            ExistingVenv::Ours(record, python) => self.again(&record, python, tell),
            ExistingVenv::Theirs(venv, python) => self.add_to(&venv, &python, tell),
        }
    }

    /// There is no venv yet: one is made, also where nothing goes into it.
    fn first(&self, base: &Path, tell: &mut ProgressSink<'_>) -> Result<SetupSummary, Error> {
        let needs = self.needs(base, None)?;
        needs.tell_faults(tell);
        self.make(base, &needs, None, tell)
    }

    /// An earlier setup made the venv.
    fn again(
        &self,
        record: &VenvRecord,
        python: Option<PathBuf>,
        tell: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let Some(python) = python else {
            let base = self.base()?;
            tell(SetupProgress::Changes("its bin/python does not run"));
            let needs = self.needs(&base, None)?;
            needs.tell_faults(tell);
            return self.make(&base, &needs, Some(record), tell);
        };
        let venv = self.place.venv();
        let needs = self.needs(&python, Some(&venv))?;
        needs.tell_faults(tell);
        let declared = self.declared(&needs);
        let is_same = levelled(&declared) == levelled(&record.declared);
        if is_same && self.added.is_empty() && needs.are_known_to(record) {
            return Ok(up_to_date(record, declared, venv, python, needs));
        }
        let why = if is_same { "modules are missing" } else { "what is needed has changed" };
        tell(SetupProgress::Changes(why));
        self.make(&self.base()?, &needs, Some(record), tell)
    }

    /// Makes a venv with all that is needed, in place of the one that `old` is
    /// the record of.
    fn make(
        &self,
        base: &Path,
        needs: &InterpreterNeeds,
        old: Option<&VenvRecord>,
        tell: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let folder = &self.order.skill.path;
        let outcome = old.map_or(SetupOutcome::Made, |_| SetupOutcome::MadeAnew);
        let others = old.map(|old| old.packages_since(&self.place.venv()));
        let making = self.place.begin().map_err(|error| unwritable(folder, &error))?;
        let venv = self.place.venv();
        self.bench.make_venv(base, &venv, tell)?;
        let python = venv.join("bin/python");
        let mut done = self.fill(&venv, &python, needs, &[], outcome, tell)?;
        let record = self.record(true, base, &done);
        done.declared.retain(|line| is_shown(line));
        let lost = others.unwrap_or_default();
        let lost: Vec<String> = lost.difference(&record.packages).cloned().collect();
        if !lost.is_empty() {
            tell(SetupProgress::Lost(&lost));
        }
        let written = record.write(&venv);
        written.map_err(|error| unwritable(&venv, &error))?;
        done.recorded = self.record_extra()?;
        making.finish().map_err(|error| unwritable(&venv, &error))?;
        Ok(done)
    }

    /// People made the venv; nothing of it goes.
    fn add_to(
        &self,
        venv: &Path,
        python: &Path,
        tell: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let needs = self.needs(python, Some(venv))?;
        needs.tell_faults(tell);
        let declared = self.declared(&needs);
        let record = VenvRecord::of(venv).unwrap_or_default();
        let is_same = levelled(&declared) == levelled(&record.declared);
        if is_same && self.added.is_empty() && needs.are_known_to(&record) {
            let (venv, python) = (venv.to_path_buf(), python.to_path_buf());
            return Ok(up_to_date(&record, declared, venv, python, needs));
        }
        tell(SetupProgress::Keeps(venv));
        let mut done =
            self.fill(venv, python, &needs, &record.undeclared, SetupOutcome::Added, tell)?;
        let written = self.record(false, python, &done).write(venv);
        done.declared.retain(|line| is_shown(line));
        written.map_err(|error| unwritable(venv, &error))?;
        let recorded = self.record_extra();
        // Nothing is under way here: only the working folder goes.
        let _ = self.place.recover();
        done.recorded = recorded?;
        Ok(done)
    }

    fn record(&self, made: bool, python: &Path, done: &SetupSummary) -> VenvRecord {
        let missing = done.missing.iter().map(|import| import.module.clone());
        VenvRecord {
            made,
            tool: self.bench.tool().into(),
            python: python.display().to_string(),
            declared: done.declared.clone(),
            undeclared: done.undeclared.clone(),
            missing: missing.collect(),
            packages: installed(&done.venv),
        }
    }

    /// Installs what is declared, then what the imports still lack.
    fn fill(
        &self,
        venv: &Path,
        python: &Path,
        needs: &InterpreterNeeds,
        already: &[String],
        outcome: SetupOutcome,
        tell: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        // The extra requirements stand in the file only at the end.
        let mut wanted = needs.declared.clone();
        wanted.extend(self.extra.iter().cloned());
        if !(needs.files.is_empty() && wanted.is_empty()) {
            self.bench.install(python, &needs.files, &wanted, tell)?;
        }
        let mut after = self.needs(python, Some(venv))?;
        let mut undeclared = already.to_vec();
        if !after.known.is_empty() {
            for found in &after.known {
                tell(SetupProgress::Undeclared(found));
                undeclared.push(found.requirement.clone());
            }
            crate::order::sort(&mut undeclared);
            undeclared.dedup();
            // All of them again, so that one does not undo the other.
            wanted.extend(undeclared.iter().cloned());
            self.bench.install(python, &needs.files, &wanted, tell)?;
            after = self.needs(python, Some(venv))?;
        }
        Ok(SetupSummary {
            outcome,
            venv: venv.to_path_buf(),
            python: python.to_path_buf(),
            declared: self.declared(&after),
            undeclared,
            recorded: Vec::new(),
            missing: after.into_missing(),
        })
    }

    /// All that is declared once the setup is done, to tell a change by and to
    /// be told.
    fn declared(&self, needs: &InterpreterNeeds) -> Vec<String> {
        let root = &self.order.skill.root;
        let mut declared = needs.declared.clone();
        for path in needs.files.iter().filter(|path| *path != requirements::FILE) {
            declared.extend(requirements::lines_of(root, path));
        }
        declared.extend(self.file.iter().flat_map(|file| file.lines(root)));
        for line in &mut declared {
            *line = without_logins(line).into_owned();
        }
        crate::order::sort(&mut declared);
        declared.dedup();
        declared
    }

    /// Writes what was asked for into the skill's requirements file.
    fn record_extra(&self) -> Result<Vec<String>, Error> {
        let folder = &self.order.skill.path;
        if let Some(file) = self.file.as_ref().filter(|_| !self.added.is_empty()) {
            let place = &self.place;
            let written = place
                .prepare()
                .map_err(OpenError::from)
                .and_then(|()| file.write(&self.order.skill.root, folder, &place.work()));
            written.map_err(|error| {
                let path = folder.join(requirements::FILE);
                Error::new(ErrorKind::Io, format!("failed to write `{}`: {error}", path.display()))
            })?;
        }
        let told = self.added.iter().map(|line| without_logins(line));
        Ok(told.map(Cow::into_owned).collect())
    }

    fn needs(&self, python: &Path, venv: Option<&Path>) -> Result<InterpreterNeeds, Error> {
        let python = Interpreter {
            program: python.to_path_buf(),
            venv: venv.map(Path::to_path_buf),
            search_path: None,
        };
        InterpreterNeeds::of(self.order, &python)
    }
}

/// Whether a line is told: one that names something to install, not how, and
/// can be read.
fn is_shown(line: &str) -> bool {
    let is_option = line.starts_with('-');
    let is_editable = line.starts_with("-e") || line.starts_with("--editable");
    let is_unread = line.contains(|c: char| c == '\u{fffd}' || (c.is_control() && c != '\t'));
    (!is_option || is_editable) && !is_unread
}

fn up_to_date(
    record: &VenvRecord,
    mut declared: Vec<String>,
    venv: PathBuf,
    python: PathBuf,
    needs: InterpreterNeeds,
) -> SetupSummary {
    declared.retain(|line| is_shown(line));
    SetupSummary {
        outcome: SetupOutcome::UpToDate,
        venv,
        python,
        declared,
        undeclared: record.undeclared.clone(),
        recorded: Vec::new(),
        missing: needs.into_missing(),
    }
}

fn unwritable(folder: &Path, error: &std::io::Error) -> Error {
    let text = format!("failed to write in `{}`: {error}", folder.display());
    Error::new(ErrorKind::Io, text).with_hint("a setup needs to write in the skill's folder: copy the skill to a folder of your own, or ask its owner")
}
