//! The packages that a skill's scripts need, sorted for a setup from the probe's result.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::secret::mask_url_logins;
use crate::skills::Problem;
use crate::skills::packages::{normalized_name, project_name};
use crate::skills::probe::{self, ProbeResult};
use crate::skills::python::Interpreter;
use crate::skills::setup::command_runner::ProgressSink;
use crate::skills::setup::requirements::{self, REQUIREMENTS_FILE};
use crate::skills::setup::{ScriptImport, SetupProgress, SetupRequest, UndeclaredRequirement};
use crate::skills::venv::VenvRecord;
use crate::text::{one_line, one_line_name};
use crate::world::confined::Root;

/// The requirements of a skill, and those that an interpreter lacks.
pub(super) struct InterpreterNeeds {
    /// Requirements files that are not empty, relative to the skill's folder.
    pub(super) files: Vec<String>,
    /// Requirements of `pyproject.toml` and of blocks in scripts.
    pub(super) declared: Vec<String>,
    /// Missing and not declared, but the package is known.
    pub(super) undeclared: Vec<UndeclaredRequirement>,
    /// Missing although declared.
    pub(super) declared_missing: Vec<ScriptImport>,
    /// Missing, and the package is not known.
    pub(super) unknown: Vec<ScriptImport>,
    /// Other problems of the skill.
    pub(super) problems: Vec<Problem>,
}

impl InterpreterNeeds {
    /// Determines the needs by probing with an interpreter.
    pub(super) fn probe(
        request: &SetupRequest<'_>,
        python: &Interpreter,
    ) -> Result<InterpreterNeeds, Error> {
        let answer = probe::probe(python, &[request.skill], request.scripts, request.cancellation);
        // A cancellation takes precedence over the answer.
        request.cancellation.check()?;
        let mut probed = answer.map_err(|error| {
            let (name, cause) = (&request.skill.name, error.message);
            let text = format!("failed to determine what the skill `{name}` needs: {cause}");
            Error::new(ErrorKind::Io, text).with_hint(error.fix)
        })?;
        InterpreterNeeds::from_probe(probed.pop().unwrap_or_default(), &request.skill.root)
    }

    fn from_probe(probed: ProbeResult, root: &Root) -> Result<InterpreterNeeds, Error> {
        let mut needs = InterpreterNeeds {
            files: Vec::new(),
            declared: Vec::new(),
            undeclared: Vec::new(),
            declared_missing: Vec::new(),
            unknown: Vec::new(),
            problems: probed.problems.into_iter().map(displayed).collect(),
        };
        let mut projects = BTreeSet::new();
        for declared in probed.declared {
            projects.insert(project_name(&declared.requirement));
            if declared.file.file_name().is_some_and(|name| name == REQUIREMENTS_FILE) {
                let file = declared.file.to_string_lossy().into_owned();
                if !needs.files.contains(&file) {
                    if let Some((line, cause)) = requirements::first_invalid_line(root, &file) {
                        return Err(invalid_requirement(&line, &declared.file, cause));
                    }
                    // Including the files that it names.
                    let lines = requirements::read_lines(root, &file);
                    projects.extend(lines.iter().map(|line| project_name(line)));
                    needs.files.push(file);
                }
            } else if let Err(cause) = requirements::validate(&declared.requirement) {
                return Err(invalid_requirement(&declared.requirement, &declared.file, cause));
            } else if !needs.declared.contains(&declared.requirement) {
                needs.declared.push(declared.requirement);
            }
        }
        for import in probed.imports {
            if !import.is_missing || import.is_optional {
                continue;
            }
            let is_of = |name: &str| projects.contains(&normalized_name(name));
            let is_declared = is_of(&import.module) || import.package.is_some_and(is_of);
            let place = ScriptImport {
                module: import.module,
                // The path is only displayed.
                file: one_line_name(&import.file.to_string_lossy()).into(),
                line: import.line,
                is_declared: is_declared || import.package.is_some(),
            };
            match import.package {
                _ if is_declared => needs.declared_missing.push(place),
                Some(package) => needs.add_undeclared(package, place),
                None => needs.unknown.push(place),
            }
        }
        Ok(needs)
    }

    /// Adds a missing package with its first import.
    fn add_undeclared(&mut self, package: &str, import: ScriptImport) {
        if !self.undeclared.iter().any(|known| known.requirement == package) {
            self.undeclared.push(UndeclaredRequirement { requirement: package.into(), import });
        }
    }

    /// Whether an earlier setup already tried to install everything that is missing.
    pub(super) fn are_covered_by(&self, record: &VenvRecord) -> bool {
        let known = self.undeclared.iter().map(|found| &found.import);
        known.chain(&self.declared_missing).all(|import| record.missing.contains(&import.module))
    }

    pub(super) fn report_problems(&self, on_progress: &mut ProgressSink<'_>) {
        for problem in &self.problems {
            on_progress(SetupProgress::SkillProblem(problem));
        }
    }

    /// Returns all missing imports.
    pub(super) fn into_missing(self) -> Vec<ScriptImport> {
        let known = self.undeclared.into_iter().map(|found| found.import);
        known.chain(self.declared_missing).chain(self.unknown).collect()
    }
}

/// Makes a problem safe to display: it quotes text of the skill's author. A file that could not
/// be read whole is not installed at all, except a requirements file, which the installer reads.
fn displayed(mut problem: Problem) -> Problem {
    problem.file = one_line_name(&problem.file.to_string_lossy()).into();
    problem.message = one_line(&problem.message, limits::SETUP_REASON_BYTES);
    if problem.rule == "unreadable-requirements" && !problem.file.ends_with(REQUIREMENTS_FILE) {
        problem.message.push_str("; the setup installs nothing from it");
    }
    problem
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
