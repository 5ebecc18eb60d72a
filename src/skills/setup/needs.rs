//! What a skill's scripts need, sorted for a setup from the probe's result.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::progress::MissingModule;
use super::request::{SetupRequest, validate};
use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::secret::mask_url_logins;
use crate::skills::installed::InstalledPackages;
use crate::skills::needs::{InferredPackage, Installer, SourceLine};
use crate::skills::packages::normalized_name;
use crate::skills::probe::{Declaration, ProbeResult, is_sample_file, probe};
use crate::skills::python::Interpreter;
use crate::skills::requirements::REQUIREMENTS_FILES;
use crate::skills::venv::VenvRecord;
use crate::skills::{Problem, Rule};
use crate::text::{one_line, one_line_name};

/// The requirements of a skill, and the modules that an interpreter lacks.
pub(super) struct SkillNeeds {
    /// Requirements files that are not empty, relative to the skill's folder.
    pub(super) files: Vec<&'static str>,
    /// Requirements of `pyproject.toml` and of blocks in scripts.
    pub(super) single: Vec<String>,
    /// All declared requirements, without logins.
    pub(super) declared: BTreeSet<String>,
    /// Modules that scripts need.
    pub(super) missing: Vec<MissingModule>,
    /// What scripts import of modules that are there, by dotted names.
    pub(super) found: Vec<MissingModule>,
    /// Packages of missing modules without which scripts do less.
    pub(super) optional: Vec<InferredPackage>,
    /// Problems of the skill, each in one line.
    pub(super) problems: Vec<String>,
}

impl SkillNeeds {
    /// Determines the needs by probing with an interpreter.
    pub(super) fn probe(
        request: &SetupRequest<'_>,
        python: &Interpreter,
    ) -> Result<SkillNeeds, Error> {
        let until = Instant::now() + limits::PROBE_TOTAL_TIMEOUT;
        let cancellation = request.cancellation;
        let answer = probe(python, &[request.skill], request.scripts, None, cancellation, until);
        // A cancellation takes precedence over the answer.
        cancellation.check()?;
        let mut probed = answer.map_err(|error| {
            let text = format!("failed to determine what the skill `{}` needs", request.skill.name);
            Error::caused_by(ErrorKind::Io, &text, error.fault)
        })?;
        SkillNeeds::from_probe(&probed.pop().unwrap_or_default())
    }

    fn from_probe(probed: &ProbeResult) -> Result<SkillNeeds, Error> {
        let declared = probed.declared.iter();
        let is_read = |file: &&str| declared.clone().any(|row| row.file == Path::new(*file));
        let files: Vec<&str> = REQUIREMENTS_FILES.into_iter().filter(is_read).collect();
        let problems = probed.problems.iter();
        let mut needs = SkillNeeds {
            problems: problems.map(|problem| shown_problem(problem, &files)).collect(),
            files,
            single: Vec::new(),
            declared: declared
                .clone()
                .map(|row| mask_url_logins(&row.requirement).into())
                .collect(),
            missing: Vec::new(),
            found: Vec::new(),
            optional: Vec::new(),
        };
        for row in declared.filter(|row| !row.is_listed) {
            if let Err(cause) = validate(&row.requirement) {
                return Err(invalid_requirement(&row.requirement, &row.file, cause));
            }
            if !needs.single.contains(&row.requirement) {
                needs.single.push(row.requirement.clone());
            }
        }
        for import in &probed.imports {
            // The path is only displayed.
            let file = PathBuf::from(&*one_line_name(&import.file.to_string_lossy()));
            let module = MissingModule {
                module: import.module.clone(),
                file: file.clone(),
                line: import.line,
                package: import.package,
                is_declared: probed.declaration_of(import) == Declaration::Yes,
                reason: None,
            };
            match (import.is_missing, import.is_optional, import.package) {
                (true, false, _) => needs.missing.push(module),
                (false, false, _) => needs.found.extend(
                    import
                        .names
                        .iter()
                        .map(|name| MissingModule { module: name.clone(), ..module.clone() }),
                ),
                (true, true, Some(package)) if !is_sample_file(&import.file) => {
                    needs.optional.push(InferredPackage {
                        installer: Installer::Python,
                        name: normalized_name(package),
                        requirement: None,
                        line: SourceLine {
                            file,
                            number: import.line,
                            text: format!("import {}", import.module),
                        },
                    });
                }
                _ => {}
            }
        }
        Ok(needs)
    }

    /// Whether the skill declares packages.
    pub(super) fn has_declared(&self) -> bool {
        !(self.files.is_empty() && self.single.is_empty())
    }

    /// The missing packages that are known and not declared, each with its first import.
    pub(super) fn undeclared(&self) -> Vec<(&'static str, &MissingModule)> {
        let mut found: Vec<(&str, &MissingModule)> = Vec::new();
        for module in self.missing.iter().filter(|module| !module.is_declared) {
            if let Some(package) = module.package
                && !found.iter().any(|(known, _)| *known == package)
            {
                found.push((package, module));
            }
        }
        found
    }

    /// Whether modules of packages that are there are missing, since the setup of the record.
    pub(super) fn lacks_modules_of(
        &self,
        installed: &InstalledPackages,
        record: &VenvRecord,
    ) -> bool {
        let mut new = self.missing.iter().filter(|it| !record.missing.contains(&it.module));
        new.any(|it| installed.names.contains(&normalized_name(it.package.unwrap_or(&it.module))))
    }

    /// Whether an earlier setup has already installed, or tried to install, all of it.
    pub(super) fn are_covered_by(&self, record: &VenvRecord) -> bool {
        let can_install = |module: &&MissingModule| module.is_declared || module.package.is_some();
        let mut missing = self.missing.iter().filter(can_install);
        self.declared == record.declared && missing.all(|it| record.missing.contains(&it.module))
    }
}

/// A problem as a line: it quotes text of the skill's author. The installer reads `files` itself.
fn shown_problem(problem: &Problem, files: &[&str]) -> String {
    let is_left_out = problem.rule == Rule::UnreadableRequirements
        && !files.iter().any(|file| problem.file == Path::new(file));
    let problem = Problem {
        file: one_line_name(&problem.file.to_string_lossy()).into(),
        message: one_line(&problem.message, limits::SETUP_REASON_BYTES),
        ..problem.clone()
    };
    let effect = if is_left_out { "; the setup installs nothing from it" } else { "" };
    format!("{problem}{effect}")
}

/// Returns the error for an invalid declared requirement, quoted on one line.
fn invalid_requirement(requirement: &str, file: &Path, cause: &str) -> Error {
    let file = one_line_name(&file.to_string_lossy());
    let what = mask_url_logins(requirement).escape_debug().to_string();
    let what = one_line(&what, limits::QUOTED_BYTES);
    let text = format!("failed to install `{what}`, which {file} declares: {cause}");
    Error::new(ErrorKind::Io, text)
        .with_hint(format!("correct it in {file}, and run the setup again"))
}
