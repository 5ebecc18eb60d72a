//! The plan of a setup: which packages of those that the skill does not declare are installed, by
//! the user's answer.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Setup;
use super::needs::SkillNeeds;
use crate::error::Error;
use crate::skills::needs::{InferredPackage, Installer, npm_folders};
use crate::skills::packages::{normalized_name, package_name};
use crate::skills::python::PythonChoice;
use crate::skills::venv::VenvRecord;
use crate::world::files::find_program;

/// What is to be installed.
pub(super) struct Plan<'p> {
    pub(super) needs: SkillNeeds,
    /// Packages that the skill does not declare, and to which the user has agreed.
    pub(super) agreed: Vec<&'p InferredPackage>,
}

impl Plan<'_> {
    /// What an installer gets for the packages that were agreed to.
    pub(super) fn to_install(&self, installer: Installer) -> impl Iterator<Item = &str> {
        let agreed = self.agreed.iter().filter(move |package| package.installer == installer);
        agreed.filter_map(|package| package.to_install())
    }
}

impl Setup<'_> {
    /// Those of the packages that scripts do not find.
    pub(super) fn missing<'p>(
        &self,
        packages: &'p [InferredPackage],
        python: &Path,
    ) -> Result<Vec<&'p InferredPackage>, Error> {
        if packages.is_empty() {
            return Ok(Vec::new());
        }
        let installed = self.runner.installed_packages(python)?;
        let folders = npm_folders(self.request.skill, self.request.scripts);
        let is_missing = |package: &&InferredPackage| match package.installer {
            Installer::Python => !installed.has(&package.name),
            Installer::Npm => !folders.iter().any(|it| it.join(&package.name).is_dir()),
        };
        Ok(packages.iter().filter(is_missing).collect())
    }

    /// Whether a skill without a venv gets one for what is installed without being asked.
    pub(super) fn needs_venv(&self, needs: &SkillNeeds) -> bool {
        let is_only_python = matches!(self.request.scripts.python, PythonChoice::Off);
        let has_packages = needs.has_declared() || !self.extra.is_empty();
        is_only_python || has_packages || !needs.undeclared().is_empty()
    }

    /// The packages that install lines and guarded imports name, and that are not declared.
    pub(super) fn inferred(&self, needs: &SkillNeeds) -> Vec<InferredPackage> {
        let declared = needs.declared.iter().chain(&self.extra);
        let mut declared: BTreeSet<String> = declared.filter_map(|it| package_name(it)).collect();
        // Without being asked for.
        declared.extend(needs.undeclared().iter().map(|(package, _)| normalized_name(package)));
        let mut inferred: Vec<InferredPackage> = Vec::new();
        for package in self.request.inferred.iter().chain(&needs.optional) {
            let is_python = package.installer == Installer::Python;
            let is_same = |known: &InferredPackage| {
                known.installer == package.installer && known.name == package.name
            };
            if !(is_python && declared.contains(&package.name) || inferred.iter().any(is_same)) {
                inferred.push(package.clone());
            }
        }
        inferred
    }

    /// Those of the packages to install that the user agrees to, or has agreed to when the venv was
    /// set up that is created again. A new venv hides the packages of the system, so it gets all of
    /// them. `kept`: the interpreter of a venv whose packages stay.
    pub(super) fn agreed<'p>(
        &self,
        needs: &SkillNeeds,
        inferred: &'p [InferredPackage],
        python: &Path,
        (kept, old): (bool, Option<&VenvRecord>),
    ) -> Result<Vec<&'p InferredPackage>, Error> {
        let missing = self.missing(inferred, python)?;
        let is_new = !kept && (old.is_some() || self.needs_venv(needs) || !missing.is_empty());
        let mut offered = if is_new { inferred.iter().collect() } else { missing };
        offered.retain(|it| {
            it.to_install().is_some() && (it.installer != Installer::Npm || self.npm().is_some())
        });
        let was_agreed = |package: &&InferredPackage| {
            let known =
                |old: &VenvRecord, what| old.undeclared.contains(what) || old.npm.contains(what);
            let what = package.to_install().unwrap_or_default().to_string();
            old.is_some_and(|old| known(old, &what))
        };
        let (mut agreed, asked): (Vec<_>, Vec<_>) =
            offered.into_iter().partition(|package| !kept && was_agreed(package));
        if !asked.is_empty() && (self.request.agree)(&asked)? {
            agreed.extend(asked);
        }
        Ok(agreed)
    }

    /// The program `npm`.
    pub(super) fn npm(&self) -> Option<PathBuf> {
        find_program(OsStr::new("npm"), self.request.scripts.variable("PATH"))
    }
}
