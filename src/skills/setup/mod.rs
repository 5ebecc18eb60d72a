//! `skills setup`: creates a skill's own venv with the packages that its scripts need. An empty
//! venv is useful as well: it determines the interpreter.
//!
//! The packages are those that the skill declares, those that the user requests, and well-known
//! packages for imports that fail. A venv that a setup created is recreated when these change;
//! the setup only adds to a venv that the user created. `venv_location` ensures that no
//! unfinished venv is ever used, a lock keeps other setups out, `command_runner` runs the
//! installers. Nothing here prints.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::secret::mask_url_logins;
use crate::skills::Skill;
use crate::skills::packages::project_name;
use crate::skills::python::Interpreter;
use crate::skills::venv::{self, VenvRecord, installed_packages};
use crate::world::confined::OpenError;

mod command_runner;
mod existing_venv;
mod failure;
mod foreign_venv;
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
use request::{lock_skill, requested_packages, requirements_file};
pub(crate) use requirements::REQUIREMENTS_FILE as REQUIREMENTS;
use requirements::{RequirementsFile, normalize_line, normalize_lines};
pub(crate) use syntax::is_archive;
use venv_location::VenvLocation;

/// Sets a skill up. On failure the skill is unchanged, except that a venv of the user keeps
/// what was installed so far. Events and errors contain no login of a URL.
pub(crate) fn setup(
    request: &SetupRequest<'_>,
    on_progress: &mut ProgressSink<'_>,
) -> Result<SetupSummary, Error> {
    run_setup(request, on_progress).map_err(|error| {
        let masked = Error::new(error.kind(), mask_url_logins(error.message()));
        match error.hint() {
            Some(hint) => masked.with_hint(mask_url_logins(hint)),
            None => masked,
        }
    })
}

fn run_setup(
    request: &SetupRequest<'_>,
    on_progress: &mut ProgressSink<'_>,
) -> Result<SetupSummary, Error> {
    let folder = &request.skill.path;
    // Programs run in this folder, where a relative path would lead elsewhere.
    if !folder.is_absolute() {
        let text =
            format!("failed to set up `{}`: the working folder is unknown", request.skill.name);
        return Err(
            Error::new(ErrorKind::Io, text).with_hint("name the skill by its absolute path")
        );
    }
    let extra = requested_packages(request)?;
    let lock = lock_skill(request, on_progress)?;
    let location = VenvLocation::new(folder, request.cancellation);
    if location.is_unfinished() {
        let recovered = location.recover();
        request.cancellation.check()?;
        recovered.map_err(|error| write_error(folder, &error))?;
        on_progress(SetupProgress::Recovered);
    }
    let runner = CommandRunner::new(folder, request.scripts, request.cancellation, &lock);
    let (file, added) = requirements_file(request.skill, &extra)?;
    let setup = Setup { request, runner, location, file, added, extra };
    let mut action = VenvAction::None;
    let result = setup.run(&mut |progress| {
        match progress {
            SetupProgress::KeepsUserVenv(_) => action = VenvAction::Adding,
            SetupProgress::Recreating(_) | SetupProgress::CreatingVenv { .. } => {
                action = VenvAction::Creating;
            }
            _ => {}
        }
        on_progress(progress);
    });
    if let Err(error) = &result {
        let has_venv = venv::path_in_skill(folder).is_some();
        match (action, error.kind()) {
            (VenvAction::Adding, _) => on_progress(SetupProgress::PartlyInstalled),
            (VenvAction::Creating, _) if !setup.location.is_restored() => {
                on_progress(SetupProgress::CleanupPending);
            }
            (VenvAction::Creating, _) | (_, ErrorKind::Interrupted(_)) => {
                on_progress(SetupProgress::Unchanged { has_venv });
            }
            _ => {}
        }
    }
    result
}

/// The change to the venv that a setup has started.
#[derive(Clone, Copy)]
enum VenvAction {
    None,
    /// Creates a new venv.
    Creating,
    /// Adds to the user's venv.
    Adding,
}

/// Whether a setup would install listed requirements that the venv lacks.
pub(crate) fn lacks_listed_requirements(skill: &Skill, venv: &Path) -> bool {
    let files = [requirements::REQUIREMENTS_FILE, "scripts/requirements.txt"];
    let mut lines = files.iter().flat_map(|file| requirements::read_lines(&skill.root, file));
    if let Some(record) = VenvRecord::read(venv) {
        let declared = normalize_lines(&record.declared);
        return lines.any(|line| !declared.contains(&normalize_line(&line)));
    }
    let installed = installed_packages(venv);
    lines.any(|line| !installed.contains(&project_name(&line)))
}

/// Whether a requirement was declared when a venv was set up.
pub(crate) fn is_recorded(requirement: &str, record: &VenvRecord) -> bool {
    normalize_lines(&record.declared).contains(&normalize_line(requirement))
}

/// A running setup.
struct Setup<'s> {
    request: &'s SetupRequest<'s>,
    runner: CommandRunner<'s>,
    location: VenvLocation<'s>,
    /// The skill's future requirements file; `None` if it has none.
    file: Option<RequirementsFile>,
    /// The requirements in `extra` that the file did not contain.
    added: Vec<String>,
    /// The requirements that the user requested.
    extra: Vec<String>,
}

impl Setup<'_> {
    fn run(&self, on_progress: &mut ProgressSink<'_>) -> Result<SetupSummary, Error> {
        match self.find_venv()? {
            ExistingVenv::Missing(base) => self.create_first_venv(&base, on_progress),
            ExistingVenv::FromSetup(record, python) => {
                self.update_venv(&record, python, on_progress)
            }
            ExistingVenv::FromUser(venv, python) => {
                self.add_to_user_venv(&venv, &python, on_progress)
            }
        }
    }

    /// Creates the first venv, even an empty one.
    fn create_first_venv(
        &self,
        base: &Path,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let needs = self.probe_needs(base, None)?;
        needs.report_problems(on_progress);
        self.create_venv(base, &needs, None, on_progress)
    }

    /// Recreates the venv of an earlier setup if necessary.
    fn update_venv(
        &self,
        record: &VenvRecord,
        python: Option<PathBuf>,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let Some(python) = python else {
            let base = self.base_python()?;
            on_progress(SetupProgress::Recreating("its bin/python does not run"));
            let needs = self.probe_needs(&base, None)?;
            needs.report_problems(on_progress);
            return self.create_venv(&base, &needs, Some(record), on_progress);
        };
        let venv = self.location.venv();
        let needs = self.probe_needs(&python, Some(&venv))?;
        needs.report_problems(on_progress);
        let declared = self.declared_requirements(&needs);
        let is_same = normalize_lines(&declared) == normalize_lines(&record.declared);
        if is_same && self.added.is_empty() && needs.are_covered_by(record) {
            return Ok(up_to_date(record, declared, venv, python, needs));
        }
        let why = if is_same { "modules are missing" } else { "the requirements have changed" };
        on_progress(SetupProgress::Recreating(why));
        self.create_venv(&self.base_python()?, &needs, Some(record), on_progress)
    }

    /// Creates a venv with all packages, replacing the one with the record `old`.
    fn create_venv(
        &self,
        base: &Path,
        needs: &InterpreterNeeds,
        old: Option<&VenvRecord>,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let folder = &self.request.skill.path;
        let outcome = old.map_or(SetupOutcome::Created, |_| SetupOutcome::Recreated);
        let added_later = old.map(|old| old.packages_installed_since(&self.location.venv()));
        let build = self.location.start_build().map_err(|error| write_error(folder, &error))?;
        let venv = self.location.venv();
        self.runner.create_venv(base, &venv, on_progress)?;
        let python = venv.join("bin/python");
        let mut summary = self.install_needed(&venv, &python, needs, &[], outcome, on_progress)?;
        let record = self.new_record(true, base, &summary);
        summary.declared.retain(|line| is_displayed(line));
        let lost = added_later.unwrap_or_default();
        let lost: Vec<String> = lost.difference(&record.packages).cloned().collect();
        if !lost.is_empty() {
            on_progress(SetupProgress::PackagesLost(&lost));
        }
        let written = record.write(&venv);
        written.map_err(|error| write_error(&venv, &error))?;
        summary.recorded = self.write_extra_requirements()?;
        build.finish().map_err(|error| write_error(&venv, &error))?;
        Ok(summary)
    }

    /// Adds packages to the user's venv; removes nothing.
    fn add_to_user_venv(
        &self,
        venv: &Path,
        python: &Path,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let needs = self.probe_needs(python, Some(venv))?;
        needs.report_problems(on_progress);
        let declared = self.declared_requirements(&needs);
        let record = VenvRecord::read(venv).unwrap_or_default();
        let is_same = normalize_lines(&declared) == normalize_lines(&record.declared);
        if is_same && self.added.is_empty() && needs.are_covered_by(&record) {
            let (venv, python) = (venv.to_path_buf(), python.to_path_buf());
            return Ok(up_to_date(&record, declared, venv, python, needs));
        }
        on_progress(SetupProgress::KeepsUserVenv(venv));
        let mut summary = self.install_needed(
            venv,
            python,
            &needs,
            &record.undeclared,
            SetupOutcome::Added,
            on_progress,
        )?;
        let written = self.new_record(false, python, &summary).write(venv);
        summary.declared.retain(|line| is_displayed(line));
        written.map_err(|error| write_error(venv, &error))?;
        let recorded = self.write_extra_requirements();
        // No venv is being created: this only removes the working folder.
        let _ = self.location.recover();
        summary.recorded = recorded?;
        Ok(summary)
    }

    fn new_record(&self, is_from_setup: bool, python: &Path, summary: &SetupSummary) -> VenvRecord {
        let missing = summary.missing.iter().map(|import| import.module.clone());
        VenvRecord {
            is_from_setup,
            tool: self.runner.installer().into(),
            python: python.display().to_string(),
            declared: summary.declared.clone(),
            undeclared: summary.undeclared.clone(),
            missing: missing.collect(),
            packages: installed_packages(&summary.venv),
        }
    }

    /// Installs the declared packages, then those of imports that are still missing.
    fn install_needed(
        &self,
        venv: &Path,
        python: &Path,
        needs: &InterpreterNeeds,
        earlier_undeclared: &[String],
        outcome: SetupOutcome,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        // The extra requirements are added to the file only at the end.
        let mut to_install = needs.declared.clone();
        to_install.extend(self.extra.iter().cloned());
        if !(needs.files.is_empty() && to_install.is_empty()) {
            self.runner.install(python, &needs.files, &to_install, on_progress)?;
        }
        let mut after = self.probe_needs(python, Some(venv))?;
        let mut undeclared = earlier_undeclared.to_vec();
        if !after.undeclared.is_empty() {
            for found in &after.undeclared {
                on_progress(SetupProgress::Undeclared(found));
                undeclared.push(found.requirement.clone());
            }
            undeclared.sort();
            undeclared.dedup();
            // All of them together, so that no install reverts another.
            to_install.extend(undeclared.iter().cloned());
            self.runner.install(python, &needs.files, &to_install, on_progress)?;
            after = self.probe_needs(python, Some(venv))?;
        }
        Ok(SetupSummary {
            outcome,
            venv: venv.to_path_buf(),
            python: python.to_path_buf(),
            declared: self.declared_requirements(&after),
            undeclared,
            recorded: Vec::new(),
            missing: after.into_missing(),
        })
    }

    /// Returns all requirements that are declared after the setup, to detect changes and for the
    /// summary.
    fn declared_requirements(&self, needs: &InterpreterNeeds) -> Vec<String> {
        let root = &self.request.skill.root;
        let mut declared = needs.declared.clone();
        for path in needs.files.iter().filter(|path| *path != requirements::REQUIREMENTS_FILE) {
            declared.extend(requirements::read_lines(root, path));
        }
        declared.extend(self.file.iter().flat_map(|file| file.lines(root)));
        for line in &mut declared {
            *line = mask_url_logins(line).into_owned();
        }
        declared.sort();
        declared.dedup();
        declared
    }

    /// Adds the requested packages to the skill's requirements file.
    fn write_extra_requirements(&self) -> Result<Vec<String>, Error> {
        let folder = &self.request.skill.path;
        if let Some(file) = self.file.as_ref().filter(|_| !self.added.is_empty()) {
            let location = &self.location;
            let written = location.create_work_folder().map_err(OpenError::from).and_then(|()| {
                file.write(&self.request.skill.root, folder, &location.work_folder())
            });
            written.map_err(|error| {
                let path = folder.join(requirements::REQUIREMENTS_FILE);
                Error::new(ErrorKind::Io, format!("failed to write `{}`: {error}", path.display()))
            })?;
        }
        let masked = self.added.iter().map(|line| mask_url_logins(line));
        Ok(masked.map(Cow::into_owned).collect())
    }

    fn probe_needs(&self, python: &Path, venv: Option<&Path>) -> Result<InterpreterNeeds, Error> {
        let python =
            Interpreter { program: python.to_path_buf(), venv: venv.map(Path::to_path_buf) };
        InterpreterNeeds::probe(self.request, &python)
    }
}

/// Whether the summary shows a line: it must be readable and name a package, not an option.
fn is_displayed(line: &str) -> bool {
    let is_option = line.starts_with('-');
    let is_editable = line.starts_with("-e") || line.starts_with("--editable");
    let is_unreadable = line.contains(|c: char| c == '\u{fffd}' || (c.is_control() && c != '\t'));
    (!is_option || is_editable) && !is_unreadable
}

fn up_to_date(
    record: &VenvRecord,
    mut declared: Vec<String>,
    venv: PathBuf,
    python: PathBuf,
    needs: InterpreterNeeds,
) -> SetupSummary {
    declared.retain(|line| is_displayed(line));
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

fn write_error(folder: &Path, error: &std::io::Error) -> Error {
    let text = format!("failed to write in `{}`: {error}", folder.display());
    Error::new(ErrorKind::Io, text).with_hint("a setup writes in the skill's folder: copy the skill to a folder of your own, or ask its owner")
}
