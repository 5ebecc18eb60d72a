//! What a skill's scripts need, as `probe` tells it, in the words of a setup.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::secret::without_logins;
use crate::skills::Problem;
use crate::skills::packages::{normalized, project};
use crate::skills::probe::{self, ProbeResult};
use crate::skills::python::Interpreter;
use crate::skills::setup::command_runner::ProgressSink;
use crate::skills::setup::requirements::{self, FILE};
use crate::skills::setup::{ScriptImport, SetupProgress, SetupRequest, UndeclaredRequirement};
use crate::skills::venv::VenvRecord;
use crate::text::{one_line, one_name};
use crate::world::confined::Root;

/// What an interpreter has to have, and what of it it lacks.
pub(super) struct InterpreterNeeds {
    /// Files of requirements that are not empty, relative to the skill's folder.
    pub(super) files: Vec<String>,
    /// Requirements of `pyproject.toml` and of blocks in scripts.
    pub(super) declared: Vec<String>,
    /// Missing, not declared, and in a package that is known.
    pub(super) known: Vec<UndeclaredRequirement>,
    /// Missing although it is declared.
    pub(super) lost: Vec<ScriptImport>,
    /// Missing, and nobody knows what brings it.
    pub(super) unknown: Vec<ScriptImport>,
    /// What is wrong with the skill besides.
    pub(super) faults: Vec<Problem>,
}

impl InterpreterNeeds {
    /// Asks an interpreter.
    pub(super) fn of(
        order: &SetupRequest<'_>,
        python: &Interpreter,
    ) -> Result<InterpreterNeeds, Error> {
        let answer = probe::probe(python, &[order.skill], order.scripts, order.cancellation);
        // Stopped, whatever the answer says of it.
        order.cancellation.check()?;
        let failure = |cause: &str| {
            let name = &order.skill.name;
            Error::new(
                ErrorKind::Io,
                format!("failed to find out what the skill `{name}` needs: {cause}"),
            )
        };
        let mut probed = answer.map_err(|cause| failure(&cause))?;
        probed
            .pop()
            .ok_or_else(|| failure("no answer"))
            .and_then(|probed| InterpreterNeeds::sorted(probed, &order.skill.root))
    }

    fn sorted(probed: ProbeResult, root: &Root) -> Result<InterpreterNeeds, Error> {
        let mut needs = InterpreterNeeds {
            files: Vec::new(),
            declared: Vec::new(),
            known: Vec::new(),
            lost: Vec::new(),
            unknown: Vec::new(),
            faults: probed.faults.into_iter().map(told).collect(),
        };
        let mut projects = BTreeSet::new();
        for declared in probed.declared {
            projects.insert(project(&declared.requirement));
            if declared.file.file_name().is_some_and(|name| name == FILE) {
                let file = declared.file.to_string_lossy().into_owned();
                if !needs.files.contains(&file) {
                    if let Some((line, cause)) = requirements::fault_in(root, &file) {
                        return Err(no_requirement(&line, &declared.file, cause));
                    }
                    // Also what stands in the files that it names.
                    let lines = requirements::lines_of(root, &file);
                    projects.extend(lines.iter().map(|line| project(line)));
                    needs.files.push(file);
                }
            } else if let Err(cause) = requirements::check(&declared.requirement) {
                return Err(no_requirement(&declared.requirement, &declared.file, cause));
            } else if !needs.declared.contains(&declared.requirement) {
                needs.declared.push(declared.requirement);
            }
        }
        for import in probed.imports {
            if !import.is_missing || import.is_optional {
                continue;
            }
            let is_of = |name: &str| projects.contains(&normalized(name));
            let is_declared = is_of(&import.module) || import.package.is_some_and(is_of);
            let place = ScriptImport {
                module: import.module,
                // Only ever shown.
                file: one_name(&import.file.to_string_lossy()).into(),
                line: import.line,
                is_declared: is_declared || import.package.is_some(),
            };
            match import.package {
                _ if is_declared => needs.lost.push(place),
                Some(package) => needs.know(package, place),
                None => needs.unknown.push(place),
            }
        }
        Ok(needs)
    }

    /// A package is missing; the first import of it stands for all.
    fn know(&mut self, package: &str, import: ScriptImport) {
        if !self.known.iter().any(|known| known.requirement == package) {
            self.known.push(UndeclaredRequirement { requirement: package.into(), import });
        }
    }

    /// Whether a setup has already done what it could for all that is missing.
    pub(super) fn are_known_to(&self, record: &VenvRecord) -> bool {
        let known = self.known.iter().map(|found| &found.import);
        known.chain(&self.lost).all(|import| record.missing.contains(&import.module))
    }

    pub(super) fn tell_faults(&self, tell: &mut ProgressSink<'_>) {
        for fault in &self.faults {
            tell(SetupProgress::Fault(fault));
        }
    }

    /// All that is missing.
    pub(super) fn into_missing(self) -> Vec<ScriptImport> {
        let known = self.known.into_iter().map(|found| found.import);
        known.chain(self.lost).chain(self.unknown).collect()
    }
}

/// A fault as it is told: each quotes a stranger's text. What could not be read
/// whole is not installed, also not in part; a requirements file is the
/// installer's to read.
fn told(mut fault: Problem) -> Problem {
    fault.file = one_name(&fault.file.to_string_lossy()).into();
    fault.message = one_line(&fault.message, limits::SETUP_REASON_BYTES);
    if fault.rule == "unreadable-requirements" && !fault.file.ends_with(FILE) {
        fault.message.push_str("; a setup installs nothing of it");
    }
    fault
}

/// What is declared cannot be installed; the text of strangers, in one line.
fn no_requirement(requirement: &str, file: &Path, cause: &str) -> Error {
    let file = one_name(&file.to_string_lossy());
    let what = without_logins(requirement).escape_debug().to_string();
    let what = one_line(&what, limits::QUOTED_BYTES);
    let text = format!("failed to install `{what}`, which {file} declares: {cause}");
    Error::new(ErrorKind::Io, text).with_hint(format!("mend it in {file}, and run the setup again"))
}
