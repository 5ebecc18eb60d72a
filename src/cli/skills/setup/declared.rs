//! A skill's declarations in the probe's result, sorted for a setup.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use crate::cli::skills::setup::request::{SetupRequest, validate};
use ::skills::packages::package_name;
use ::skills::probe::{ProbeResult, probe};
use ::skills::python::Interpreter;
use ::skills::requirements::REQUIREMENTS_FILES;
use ::skills::{Problem, Rule};
use base::error::{Error, ErrorKind};
use base::limits;
use base::secret::mask_url_logins;
use base::text::{one_line, one_line_name};

/// The requirements that a skill declares.
pub(super) struct DeclaredNeeds {
    /// Requirements files that are not empty, relative to the skill's folder.
    pub(super) files: Vec<&'static str>,
    /// Requirements of `pyproject.toml` and of blocks in scripts.
    pub(super) single: Vec<String>,
    /// All of them, without logins.
    pub(super) declared: BTreeSet<String>,
    /// Problems of the skill, each in one line.
    pub(super) problems: Vec<String>,
}

impl DeclaredNeeds {
    /// Reads the skill's files with an interpreter.
    pub(super) fn read(request: &SetupRequest<'_>, python: &Path) -> Result<DeclaredNeeds, Error> {
        let until = Instant::now() + limits::PROBE_TOTAL_TIMEOUT;
        let cancellation = request.cancellation;
        let python = Interpreter { program: python.to_path_buf(), venv: None };
        let answer = probe(&python, &[request.skill], request.scripts, None, cancellation, until);
        // A cancellation takes precedence over the answer.
        cancellation.check()?;
        let mut probed = answer.map_err(|error| {
            let text = format!("failed to determine what the skill `{}` needs", request.skill.name);
            Error::caused_by(ErrorKind::Io, &text, error.fault)
        })?;
        DeclaredNeeds::from_probe(&probed.pop().unwrap_or_default())
    }

    fn from_probe(probed: &ProbeResult) -> Result<DeclaredNeeds, Error> {
        let declared = probed.declared.iter();
        let is_read = |file: &&str| declared.clone().any(|row| row.file == Path::new(*file));
        let files: Vec<&str> = REQUIREMENTS_FILES.into_iter().filter(is_read).collect();
        let mut single: Vec<String> = Vec::new();
        for row in declared.clone().filter(|row| !row.is_listed) {
            if let Err(cause) = validate(&row.requirement) {
                return Err(invalid_requirement(&row.requirement, &row.file, cause));
            }
            if !single.contains(&row.requirement) {
                single.push(row.requirement.clone());
            }
        }
        let problems = probed.problems.iter();
        Ok(DeclaredNeeds {
            problems: problems.map(|problem| shown_problem(problem, &files)).collect(),
            declared: declared.map(|row| mask_url_logins(&row.requirement).into()).collect(),
            files,
            single,
        })
    }

    /// Whether there are any.
    pub(super) fn has_packages(&self) -> bool {
        !(self.files.is_empty() && self.single.is_empty())
    }

    /// The normalized names of the packages.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.declared.iter().filter_map(|requirement| package_name(requirement)).collect()
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
