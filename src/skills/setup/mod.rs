//! `skills setup`: creates a skill's own venv with the packages that it needs; none if there is
//! nothing to install.
//!
//! The packages are those that the skill declares, those that the user requests, well-known
//! packages for imports that fail, and, if the user agrees, those that install lines
//! and guarded imports name. A venv that a setup created is extended when there are more of them, and
//! recreated when others are declared; the setup only adds to a venv that the user created.
//! `venv_location` ensures that no unfinished venv is ever used, a lock keeps other setups out,
//! `command_runner` runs the installers, `trial` imports what was installed. Nothing here prints.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::secret::mask_url_logins;
use crate::skills::ScriptSettings;
use crate::skills::installed::InstalledPackages;
use crate::skills::needs::Installer;
use crate::skills::python::PythonChoice;
use crate::skills::python::{Interpreter, python_path};
use crate::skills::venv::VenvRecord;
use crate::text::shell_quoted;

mod command_runner;
mod existing_venv;
mod needs;
mod plan;
mod progress;
mod request;
mod trial;
mod venv_location;

use command_runner::CommandRunner;
use existing_venv::{ExistingVenv, find_venv};
use needs::SkillNeeds;
use plan::Plan;
use progress::ProgressSink;
pub(crate) use progress::{MissingModule, SetupOutcome, SetupProgress, SetupSummary};
pub(crate) use request::SetupRequest;
use request::{RequirementsEdit, lock_skill, requested_packages};
use trial::failing_imports;
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
        let note = "an earlier setup did not finish; its leftovers were removed";
        on_progress(SetupProgress::Note(note));
    }
    let runner = CommandRunner::new(folder, request.scripts, request.cancellation, &lock);
    let edit = RequirementsEdit::prepare(request.skill, &extra)?;
    Setup { request, runner, location, edit, extra }.run(on_progress)
}

/// A running setup.
struct Setup<'s> {
    request: &'s SetupRequest<'s>,
    runner: CommandRunner<'s>,
    location: VenvLocation<'s>,
    /// The addition of `extra` to the skill's requirements file.
    edit: RequirementsEdit,
    /// The requirements that the user requested.
    extra: Vec<String>,
}

/// How a venv is created in place of another one.
#[derive(Clone, Copy)]
struct OldVenv<'r> {
    record: &'r VenvRecord,
    /// Its content is copied, and packages are only added.
    is_extended: bool,
    /// Why it is created again otherwise.
    why: &'static str,
}

impl Setup<'_> {
    fn run(&self, on_progress: &mut ProgressSink<'_>) -> Result<SetupSummary, Error> {
        let existing = find_venv(self.request.skill, &self.runner)?;
        let working = existing.as_ref().and_then(|it| Some((it, it.python.as_ref()?)));
        let (python, venv) = match working {
            Some((existing, python)) => (python.clone(), Some(existing.path.as_path())),
            None => (self.base_python()?, None),
        };
        let needs = self.probe(&python, venv, on_progress)?;
        let inferred = self.inferred(&needs);
        let old = existing.as_ref().and_then(|existing| self.old_venv(existing, &needs));
        let is_kept = working.is_some() && old.is_none_or(|old| old.is_extended);
        let record = existing.as_ref().map(|existing| &existing.record);
        let agreed = self.agreed(&needs, &inferred, &python, (is_kept, record))?;
        let plan = Plan { needs, agreed };
        let has_more = !(self.edit.added.is_empty() && plan.agreed.is_empty());
        let summary = match (working, record) {
            (Some((existing, _)), Some(record))
                if !has_more && plan.needs.are_covered_by(record) =>
            {
                self.unchanged(Some(existing), &python, plan.needs)
            }
            (Some((existing, _)), _) if old.is_none() => {
                self.add_to_user_venv(existing, &python, &plan, on_progress)
            }
            (Some(_), _) => self.create_venv(&self.base_python()?, &plan, old, on_progress),
            (None, Some(_)) => self.create_venv(&python, &plan, old, on_progress),
            (None, None) if self.needs_venv(&plan.needs) || has_more => {
                self.create_venv(&python, &plan, None, on_progress)
            }
            (None, None) => self.unchanged(None, &python, plan.needs),
        };
        let mut summary = summary?;
        let missing = self.missing(&inferred, &summary.python)?;
        summary.left_out = missing.into_iter().filter(|it| !summary.reports(it)).cloned().collect();
        Ok(summary)
    }

    /// How a venv that a setup created is replaced if it has to change; `None`: it is the user's.
    fn old_venv<'e>(&self, existing: &'e ExistingVenv, needs: &SkillNeeds) -> Option<OldVenv<'e>> {
        let record = &existing.record;
        let installed = InstalledPackages::in_venv(&existing.path);
        // Of a package that is there, the installer does not repair what was deleted.
        let is_damaged = needs.lacks_modules_of(&installed, record);
        let is_extended = existing.python.is_some()
            && record.declared.is_subset(&needs.declared)
            && !is_damaged
            && self.runner.can_install_with(&installed);
        let why = match existing.python {
            None => "its bin/python does not run",
            Some(_) if is_damaged => "modules are missing",
            Some(_) => "the requirements have changed",
        };
        record.is_from_setup.then_some(OldVenv { record, is_extended, why })
    }

    /// Returns the interpreter that creates venvs.
    fn base_python(&self) -> Result<PathBuf, Error> {
        let scripts = self.request.scripts;
        let python = match scripts.python {
            // That is about scripts without a venv; this skill is getting one.
            PythonChoice::Off => Interpreter::without_venv(&ScriptSettings {
                python: PythonChoice::Search,
                ..scripts.clone()
            }),
            _ => Interpreter::without_venv(scripts),
        };
        python.map(|python| python.program).map_err(|fault| {
            let text = format!("failed to set up the skill `{}`", self.request.skill.name);
            Error::caused_by(ErrorKind::Config, &text, fault)
        })
    }

    /// Determines the needs before a change, and reports the skill's problems.
    fn probe(
        &self,
        python: &Path,
        venv: Option<&Path>,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SkillNeeds, Error> {
        let needs = self.needs(python, venv)?;
        for problem in &needs.problems {
            on_progress(SetupProgress::Warning(problem));
        }
        Ok(needs)
    }

    fn needs(&self, python: &Path, venv: Option<&Path>) -> Result<SkillNeeds, Error> {
        let (program, venv) = (python.to_path_buf(), venv.map(Path::to_path_buf));
        SkillNeeds::probe(self.request, &Interpreter { program, venv })
    }

    /// Creates a venv with all packages, in place of the old one. On failure that is restored.
    fn create_venv(
        &self,
        base: &Path,
        plan: &Plan<'_>,
        old: Option<OldVenv<'_>>,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let venv = self.location.venv();
        let added_later = old.map(|old| old.record.packages_installed_since(&venv));
        let added_later = added_later.unwrap_or_default();
        let extended = old.filter(|old| old.is_extended).map(|old| old.record);
        let build = self.location.start_build();
        let build = build.map_err(|error| write_error(&self.request.skill.path, &error))?;
        let (outcome, started) = match extended {
            Some(_) => {
                let copied = self.location.copy_previous();
                self.request.cancellation.check()?;
                (SetupOutcome::Added, copied.map_err(|error| write_error(&venv, &error)))
            }
            None => {
                if let Some(old) = &old {
                    let note = format!("recreating the venv: {}", old.why);
                    on_progress(SetupProgress::Note(&note));
                }
                let outcome =
                    old.as_ref().map_or(SetupOutcome::Created, |_| SetupOutcome::Recreated);
                (outcome, self.runner.create_venv(base, &venv, on_progress))
            }
        };
        let filled = started.and_then(|()| {
            let python = venv.join("bin/python");
            self.install(&python, plan, (outcome, &venv, extended), on_progress)
        });
        let finished = filled.and_then(|summary| {
            build.finish().map_err(|error| write_error(&venv, &error))?;
            Ok(summary)
        });
        match &finished {
            Ok(_) => {
                let now = InstalledPackages::in_venv(&venv).names;
                let lost: Vec<&str> = added_later.difference(&now).map(String::as_str).collect();
                if !lost.is_empty() {
                    on_progress(SetupProgress::Warning(&format!(
                        "the previous venv also had {}, which nothing declares: name them after \
                         the skill to install them again",
                        lost.join(", ")
                    )));
                }
            }
            Err(_) if !self.location.is_restored() => {
                on_progress(SetupProgress::Note("the next setup removes what is left of it"));
            }
            Err(_) if old.is_some() => {
                on_progress(SetupProgress::Note("the skill and its venv are unchanged"));
            }
            Err(_) => {
                on_progress(SetupProgress::Note("the skill is unchanged: it has no venv"));
            }
        }
        finished
    }

    /// Adds packages to the user's venv; removes nothing.
    fn add_to_user_venv(
        &self,
        existing: &ExistingVenv,
        python: &Path,
        plan: &Plan<'_>,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let venv = &existing.path;
        on_progress(SetupProgress::Note(&format!(
            "{} was not created by a setup: it stays, missing packages are added",
            shell_quoted(venv)
        )));
        let record = Some(&existing.record);
        let done = self.install(python, plan, (SetupOutcome::Added, venv, record), on_progress);
        if done.is_err() {
            on_progress(SetupProgress::Note("the venv keeps what was installed so far"));
        }
        done
    }

    /// Installs the declared packages and those that were agreed to, then those of imports that are
    /// still missing, and records them. `change`: the outcome, the venv, and the record of what is
    /// in it already.
    fn install(
        &self,
        python: &Path,
        plan: &Plan<'_>,
        change: (SetupOutcome, &Path, Option<&VenvRecord>),
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let (outcome, venv, old) = change;
        let earlier = old.map(|old| old.undeclared.clone()).unwrap_or_default();
        // What the user installed by hand stays known as that.
        let by_hand = old.map(|old| old.packages_installed_since(venv)).unwrap_or_default();
        let files = &plan.needs.files;
        let mut packages = plan.needs.single.clone();
        packages.extend(self.extra.iter().chain(&earlier).cloned());
        let agreed = plan.to_install(Installer::Python).map(str::to_string).collect();
        let mut undeclared = earlier;
        undeclared.extend(self.install_all(python, files, &mut packages, agreed, on_progress)?);
        let mut after = self.needs(python, Some(venv))?;
        let mut imported = Vec::new();
        for (package, module) in after.undeclared() {
            on_progress(SetupProgress::Note(&format!(
                "not declared by the skill, found in its imports: {package} ({module})"
            )));
            imported.push(package.to_string());
        }
        if !imported.is_empty() {
            let installed =
                self.install_all(python, files, &mut packages, imported, on_progress)?;
            undeclared.extend(installed);
            after = self.needs(python, Some(venv))?;
        }
        let after = self.tried(after, python)?;
        let mut npm = old.map(|old| old.npm.clone()).unwrap_or_default();
        npm.extend(self.install_from_npm(venv, plan, on_progress)?);
        let mut declared = after.declared;
        declared.extend(self.edit.shown());
        let record = VenvRecord {
            is_from_setup: old.is_none_or(|old| old.is_from_setup),
            declared,
            undeclared,
            npm,
            missing: after.missing.iter().map(|module| module.module.clone()).collect(),
            packages: &InstalledPackages::in_venv(venv).names - &by_hand,
        };
        record.write(venv).map_err(|error| write_error(venv, &error))?;
        self.edit.write(self.request.skill)?;
        Ok(SetupSummary {
            outcome,
            venv: Some(venv.to_path_buf()),
            python: python.to_path_buf(),
            declared: shown_requirements(&record),
            undeclared: [record.undeclared, record.npm].concat(),
            recorded: self.edit.shown().collect(),
            missing: after.missing,
            left_out: Vec::new(),
        })
    }

    /// Installs packages, and more of them that are not declared, of which one that fails prevents
    /// no other. All together, so that no install reverts another. Returns those of the others
    /// that are installed, and adds them to `packages`.
    fn install_all(
        &self,
        python: &Path,
        files: &[&str],
        packages: &mut Vec<String>,
        others: Vec<String>,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<Vec<String>, Error> {
        let all = [packages.as_slice(), &others].concat();
        let failed = match self.runner.install(python, files, &all, on_progress) {
            Err(error) if error.kind() == ErrorKind::Io && !others.is_empty() => error,
            done => {
                *packages = all;
                return done.map(|()| others);
            }
        };
        on_progress(SetupProgress::Warning(failed.message()));
        on_progress(SetupProgress::Note("trying the packages one by one"));
        self.runner.install(python, files, packages, on_progress)?;
        let mut installed = Vec::new();
        for package in others {
            packages.push(package.clone());
            if succeeds(self.runner.install(python, files, packages, on_progress), on_progress)? {
                installed.push(package);
            } else {
                packages.pop();
            }
        }
        Ok(installed)
    }

    /// Installs the packages of npm that were agreed to; returns them.
    fn install_from_npm(
        &self,
        venv: &Path,
        plan: &Plan<'_>,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<Vec<String>, Error> {
        let mut installed = Vec::new();
        let Some(npm) = self.npm() else { return Ok(installed) };
        for package in plan.to_install(Installer::Npm) {
            let done = self.runner.install_from_npm(&npm, venv, package, on_progress);
            if succeeds(done, on_progress)? {
                installed.push(package.to_string());
            }
        }
        Ok(installed)
    }

    /// The needs, with the imports that fail when they are tried as missing modules.
    fn tried(&self, mut needs: SkillNeeds, python: &Path) -> Result<SkillNeeds, Error> {
        let folders = python_path(self.request.scripts);
        let search = folders.iter().map(|folder| folder.to_string_lossy()).collect::<Vec<_>>();
        let failing = failing_imports(&self.runner, python, &search.join(":"), &needs.found)?;
        needs.missing.extend(failing);
        Ok(needs)
    }

    /// The summary if nothing is to be installed.
    fn unchanged(
        &self,
        existing: Option<&ExistingVenv>,
        python: &Path,
        needs: SkillNeeds,
    ) -> Result<SetupSummary, Error> {
        let record = existing.map(|existing| existing.record.clone()).unwrap_or_default();
        Ok(SetupSummary {
            outcome: existing.map_or(SetupOutcome::NothingToInstall, |_| SetupOutcome::UpToDate),
            venv: existing.map(|existing| existing.path.clone()),
            python: python.to_path_buf(),
            declared: shown_requirements(&record),
            undeclared: [record.undeclared, record.npm].concat(),
            recorded: Vec::new(),
            missing: self.tried(needs, python)?.missing,
            left_out: Vec::new(),
        })
    }
}

/// Whether an installation succeeded. A failure is a warning.
fn succeeds(done: Result<(), Error>, on_progress: &mut ProgressSink<'_>) -> Result<bool, Error> {
    match done {
        Err(error) if error.kind() == ErrorKind::Io => {
            on_progress(SetupProgress::Warning(error.message()));
            Ok(false)
        }
        done => done.map(|()| true),
    }
}

/// The requirements that are readable and no options, such as `-r more.txt`.
fn shown_requirements(record: &VenvRecord) -> Vec<String> {
    let is_unreadable = |c: char| c == '\u{fffd}' || (c.is_control() && c != '\t');
    let declared = record.declared.iter();
    let shown = declared.filter(|line| !line.starts_with('-') && !line.contains(is_unreadable));
    shown.cloned().collect()
}

fn write_error(folder: &Path, error: &std::io::Error) -> Error {
    let text = format!("failed to write in `{}`: {error}", folder.display());
    Error::new(ErrorKind::Io, text).with_hint(
        "a setup writes in the skill's folder: copy the skill to a folder of your own, or ask its \
         owner",
    )
}
