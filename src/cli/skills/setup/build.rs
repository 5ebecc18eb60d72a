//! `skills setup`: creates a skill's own venv with the packages that it declares and that the user
//! requests, and, if the user agrees, those that its documents install; none if there is nothing to
//! install.
//!
//! A venv is created whole: if other packages are needed, it is created again. A venv that no
//! setup created is never changed. `venv_location` ensures that no unfinished venv is ever used, a
//! lock keeps other setups out, `command_runner` runs the installers. Nothing here prints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ::skills::ScriptSettings;
use ::skills::installed::InstalledPackages;
use ::skills::needs::{InferredPackage, installed_for};
use ::skills::packages::{normalized_name, package_name};
use ::skills::python::{Interpreter, PythonChoice, is_executable, setup_command};
use ::skills::venv::{VenvRecord, path_in_skill};
use base::error::{Error, ErrorKind};
use base::secret::mask_url_logins;
use base::text::shell_quoted;

use crate::cli::skills::setup::command_runner::CommandRunner;
use crate::cli::skills::setup::declared::DeclaredNeeds;
use crate::cli::skills::setup::progress::{
    ProgressSink, SetupOutcome, SetupProgress, SetupSummary,
};
use crate::cli::skills::setup::request::{SetupRequest, lock_skill, requested_packages};
use crate::cli::skills::setup::venv_location::VenvLocation;

/// Sets a skill up. On failure the skill is unchanged. Events and errors contain no login of a URL.
pub(super) fn setup(
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
    Setup { request, runner, location, extra }.run(on_progress)
}

/// A running setup.
struct Setup<'s> {
    request: &'s SetupRequest<'s>,
    runner: CommandRunner<'s>,
    location: VenvLocation<'s>,
    /// The requirements that the user requested.
    extra: Vec<String>,
}

impl Setup<'_> {
    fn run(&self, on_progress: &mut ProgressSink<'_>) -> Result<SetupSummary, Error> {
        let base = self.base_python()?;
        let needs = DeclaredNeeds::read(self.request, &base)?;
        for problem in &needs.problems {
            on_progress(SetupProgress::Warning(problem));
        }
        let old = self.old_record();
        let undeclared = self.undeclared(&needs, old.as_ref())?;
        let venv = self.location.venv();
        let is_current = |old: &VenvRecord| {
            let is_whole = old.packages.is_subset(&InstalledPackages::in_venv(&venv).names)
                && is_executable(&venv.join("bin/python"));
            is_whole && old.declared == needs.declared && old.undeclared == undeclared
        };
        let (outcome, record) = match old {
            Some(old) if is_current(&old) => (SetupOutcome::UpToDate, old),
            None if !self.needs_venv(&needs) && undeclared.is_empty() => {
                (SetupOutcome::NothingToInstall, VenvRecord::default())
            }
            old => {
                let record =
                    self.create_venv(&base, &needs, &undeclared, old.as_ref(), on_progress);
                (old.map_or(SetupOutcome::Created, |_| SetupOutcome::Recreated), record?)
            }
        };
        let python = Interpreter::for_skill(self.request.skill, self.request.scripts);
        Ok(SetupSummary {
            outcome,
            venv: (outcome != SetupOutcome::NothingToInstall).then_some(venv),
            python: python.map_or(base, |python| python.program),
            declared: shown_requirements(&record),
            left_out: self.left_out(&needs, &record),
            undeclared: record.undeclared,
        })
    }

    /// The record of the venv that an earlier setup created.
    fn old_record(&self) -> Option<VenvRecord> {
        let venv = self.location.venv();
        // A link may lead to the venv of another skill.
        let is_folder = venv.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        VenvRecord::read(&venv).filter(|record| is_folder && record.is_from_setup)
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

    /// Whether a skill gets a venv, whatever its documents install.
    fn needs_venv(&self, needs: &DeclaredNeeds) -> bool {
        let has_no_python = matches!(self.request.scripts.python, PythonChoice::Off)
            && path_in_skill(&self.request.skill.path).is_none();
        has_no_python || needs.has_packages() || !self.extra.is_empty()
    }

    /// The packages that the skill does not declare: those of the venv of an earlier setup, those
    /// that the user requested, and those that documents install and the user agrees to.
    fn undeclared(
        &self,
        needs: &DeclaredNeeds,
        old: Option<&VenvRecord>,
    ) -> Result<Vec<String>, Error> {
        let declared = needs.names();
        let mut undeclared: Vec<String> = Vec::new();
        let earlier = old.map(|old| old.undeclared.as_slice()).unwrap_or_default();
        for requirement in earlier.iter().chain(&self.extra) {
            if undeclared.contains(requirement) {
                continue;
            }
            // With other versions, or again with its login, it replaces the earlier one.
            let (name, masked) = (package_name(requirement), mask_url_logins(requirement));
            undeclared.retain(|it| *it != masked && (name.is_none() || package_name(it) != name));
            undeclared.push(requirement.clone());
        }
        undeclared.retain(|requirement| !declared.contains(&normalized_name(requirement)));
        let given: BTreeSet<String> = undeclared.iter().filter_map(|it| package_name(it)).collect();
        let named = self.request.inferred.iter().filter(|package| package.to_install().is_some());
        let named = named.filter(|it| !declared.contains(&it.name) && !given.contains(&it.name));
        let mut offered: Vec<&InferredPackage> = named.collect();
        let is_new = old.is_some() || !undeclared.is_empty() || self.needs_venv(needs);
        // A new venv hides the packages of the system, so it gets all of them.
        if !is_new && let Some(installed) = self.installed() {
            offered.retain(|package| !installed.has(&package.name));
        }
        if is_new || !offered.is_empty() {
            self.check_place(old)?;
        }
        if !offered.is_empty() && (self.request.agree)(&offered)? {
            undeclared.extend(offered.iter().filter_map(|it| it.to_install()).map(str::to_string));
        }
        Ok(undeclared)
    }

    /// Refuses to change a venv that no setup created.
    fn check_place(&self, old: Option<&VenvRecord>) -> Result<(), Error> {
        let venv = self.location.venv();
        let Some(meta) = venv.symlink_metadata().ok().filter(|_| old.is_none()) else {
            return Ok(());
        };
        let text = format!(
            "failed to set up `{}`: no setup created `{}`, so it is not changed",
            self.request.skill.name,
            venv.display()
        );
        let remove = if meta.is_dir() { "rm -r" } else { "rm" };
        let place = shell_quoted(&venv);
        let command = setup_command(self.request.skill, &[]);
        Err(Error::new(ErrorKind::Io, text).with_hint(format!(
            "install the packages there yourself; or run `{remove} {place}`, then `{command}`"
        )))
    }

    /// The packages that the skill's scripts find; `None`: unknown.
    fn installed(&self) -> Option<InstalledPackages> {
        installed_for(self.request.skill, self.request.scripts)
    }

    /// The packages that documents install and that are not there.
    fn left_out(&self, needs: &DeclaredNeeds, record: &VenvRecord) -> Vec<InferredPackage> {
        let mut names = needs.names();
        names.extend(record.undeclared.iter().filter_map(|it| package_name(it)));
        let installed = self.installed();
        let is_there = |name: &str| {
            names.contains(name) || installed.as_ref().is_some_and(|installed| installed.has(name))
        };
        let left_out = self.request.inferred.iter().filter(|package| !is_there(&package.name));
        left_out.cloned().collect()
    }

    /// Creates a venv with all packages, in place of the old one. On failure that is restored.
    fn create_venv(
        &self,
        base: &Path,
        needs: &DeclaredNeeds,
        undeclared: &[String],
        old: Option<&VenvRecord>,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<VenvRecord, Error> {
        let venv = self.location.venv();
        let by_hand = old.map(|old| old.packages_installed_since(&venv)).unwrap_or_default();
        let build = self.location.start_build();
        let build = build.map_err(|error| write_error(&self.request.skill.path, &error))?;
        let finished = self.fill(base, needs, undeclared, on_progress).and_then(|record| {
            build.finish().map_err(|error| write_error(&venv, &error))?;
            Ok(record)
        });
        match &finished {
            Ok(record) => {
                let lost = by_hand.difference(&record.packages).map(String::as_str);
                let lost: Vec<&str> = lost.collect();
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

    /// Creates the venv in its place, installs all packages together and records them.
    fn fill(
        &self,
        base: &Path,
        needs: &DeclaredNeeds,
        undeclared: &[String],
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<VenvRecord, Error> {
        let venv = self.location.venv();
        self.runner.create_venv(base, &venv, on_progress)?;
        let packages = [needs.single.as_slice(), undeclared].concat();
        self.runner.install(&venv.join("bin/python"), &needs.files, &packages, on_progress)?;
        let undeclared = undeclared.iter().map(|it| mask_url_logins(it).into_owned());
        let record = VenvRecord {
            is_from_setup: true,
            declared: needs.declared.clone(),
            undeclared: undeclared.collect(),
            packages: InstalledPackages::in_venv(&venv).names,
        };
        record.write(&venv).map_err(|error| write_error(&venv, &error))?;
        Ok(record)
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
