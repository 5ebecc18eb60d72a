//! `skills setup`: creates a skill's own venv with the packages that its scripts need. An empty
//! venv is useful as well: it determines the interpreter.
//!
//! The packages are those that the skill declares, those that the user requests, and well-known
//! packages for imports that fail. A venv that a setup created is recreated when these change;
//! the setup only adds to a venv that the user created. `venv_location` ensures that no
//! unfinished venv is ever used, a lock keeps other setups out, `command_runner` runs the
//! installers. Nothing here prints.

use std::path::{Path, PathBuf};

use crate::config::{PythonChoice, ScriptSettings};
use crate::error::{Error, ErrorKind};
use crate::secret::mask_url_logins;
use crate::skills::python::Interpreter;
use crate::skills::venv::{VenvRecord, installed_packages};
use crate::text::shell_quoted;

mod command_runner;
mod existing_venv;
mod needs;
mod progress;
mod request;
mod venv_location;

use command_runner::CommandRunner;
use existing_venv::{ExistingVenv, find_venv};
use needs::SkillNeeds;
use progress::ProgressSink;
pub(crate) use progress::{MissingModule, SetupOutcome, SetupProgress, SetupSummary};
pub(crate) use request::SetupRequest;
use request::{RequirementsEdit, lock_skill, requested_packages};
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

impl Setup<'_> {
    fn run(&self, on_progress: &mut ProgressSink<'_>) -> Result<SetupSummary, Error> {
        let Some(existing) = find_venv(self.request.skill, &self.runner)? else {
            let base = self.base_python()?;
            let needs = self.probe(&base, None, on_progress)?;
            return self.create_venv(&base, &needs, None, on_progress);
        };
        let record = &existing.record;
        let Some(python) = &existing.python else {
            let base = self.base_python()?;
            let note = "recreating the venv: its bin/python does not run";
            on_progress(SetupProgress::Note(note));
            let needs = self.probe(&base, None, on_progress)?;
            return self.create_venv(&base, &needs, Some(record), on_progress);
        };
        let needs = self.probe(python, Some(&existing.path), on_progress)?;
        let installed = installed_packages(&existing.path);
        let has_inferred = self.request.inferred.iter().all(|name| installed.contains(name));
        if self.edit.added.is_empty() && has_inferred && needs.are_covered_by(record) {
            return Ok(up_to_date(&existing, python, needs));
        }
        if !record.is_from_setup {
            return self.add_to_user_venv(&existing, python, &needs, on_progress);
        }
        let is_same = needs.declared == record.declared && self.edit.added.is_empty();
        let why = if is_same { "modules are missing" } else { "the requirements have changed" };
        on_progress(SetupProgress::Note(&format!("recreating the venv: {why}")));
        self.create_venv(&self.base_python()?, &needs, Some(record), on_progress)
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

    /// Creates a venv with all packages, replacing the one with the record `old`. On failure the
    /// old one is restored.
    fn create_venv(
        &self,
        base: &Path,
        needs: &SkillNeeds,
        old: Option<&VenvRecord>,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let venv = self.location.venv();
        let added_later = old.map(|old| old.packages_installed_since(&venv)).unwrap_or_default();
        let build = self.location.start_build();
        let build = build.map_err(|error| write_error(&self.request.skill.path, &error))?;
        let outcome = old.map_or(SetupOutcome::Created, |_| SetupOutcome::Recreated);
        let filled = self.runner.create_venv(base, &venv, on_progress).and_then(|()| {
            let python = venv.join("bin/python");
            self.install(&venv, &python, needs, outcome, on_progress)
        });
        let finished = filled.and_then(|summary| {
            build.finish().map_err(|error| write_error(&venv, &error))?;
            Ok(summary)
        });
        match &finished {
            Ok(_) => {
                let now = installed_packages(&venv);
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
        needs: &SkillNeeds,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let venv = &existing.path;
        on_progress(SetupProgress::Note(&format!(
            "{} was not created by a setup: it stays, missing packages are added",
            shell_quoted(venv)
        )));
        let done = self.install(venv, python, needs, SetupOutcome::Added, on_progress);
        if done.is_err() {
            on_progress(SetupProgress::Note("the venv keeps what was installed so far"));
        }
        done
    }

    /// Installs the declared packages, then those of imports that are still missing, and
    /// records both.
    fn install(
        &self,
        venv: &Path,
        python: &Path,
        needs: &SkillNeeds,
        outcome: SetupOutcome,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<SetupSummary, Error> {
        let mut packages = needs.single.clone();
        packages.extend(self.extra.iter().cloned());
        packages.extend(self.request.inferred.iter().cloned());
        if !(needs.files.is_empty() && packages.is_empty()) {
            self.runner.install(python, &needs.files, &packages, on_progress)?;
        }
        let mut after = self.needs(python, Some(venv))?;
        let mut undeclared = Vec::new();
        for (package, module) in after.undeclared() {
            on_progress(SetupProgress::Note(&format!(
                "not declared by the skill, found in its imports: {package} ({module})"
            )));
            undeclared.push(package.to_string());
        }
        if !undeclared.is_empty() {
            // All of them together, so that no install reverts another.
            packages.extend(undeclared.iter().cloned());
            self.runner.install(python, &needs.files, &packages, on_progress)?;
            after = self.needs(python, Some(venv))?;
        }
        undeclared.extend(self.request.inferred.iter().cloned());
        let mut declared = after.declared;
        declared.extend(self.edit.shown());
        let record = VenvRecord {
            is_from_setup: outcome != SetupOutcome::Added,
            declared,
            undeclared,
            missing: after.missing.iter().map(|module| module.module.clone()).collect(),
            packages: installed_packages(venv),
        };
        record.write(venv).map_err(|error| write_error(venv, &error))?;
        self.edit.write(self.request.skill)?;
        Ok(SetupSummary {
            outcome,
            venv: venv.to_path_buf(),
            python: python.to_path_buf(),
            declared: shown_requirements(&record),
            undeclared: record.undeclared,
            recorded: self.edit.shown().collect(),
            missing: after.missing,
        })
    }
}

fn up_to_date(existing: &ExistingVenv, python: &Path, needs: SkillNeeds) -> SetupSummary {
    SetupSummary {
        outcome: SetupOutcome::UpToDate,
        venv: existing.path.clone(),
        python: python.to_path_buf(),
        declared: shown_requirements(&existing.record),
        undeclared: existing.record.undeclared.clone(),
        recorded: Vec::new(),
        missing: needs.missing,
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
