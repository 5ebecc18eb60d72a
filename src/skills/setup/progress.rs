//! The progress events of a setup, and its summary.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::secret::mask_url_logins;
use crate::skills::Problem;
use crate::text::shell_quoted;

/// Progress event of a setup; `Display` is a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SetupProgress<'p> {
    /// Waits for another setup of this skill.
    Waiting,
    /// The folder's file system has no locks.
    Unlocked,
    /// The leftovers of an unfinished setup were removed.
    Recovered,
    /// A problem of the skill that does not stop the setup.
    SkillProblem(&'p Problem),
    /// The existing venv is recreated, for this reason.
    Recreating(&'p str),
    /// The user's venv stays, and packages are added.
    KeepsUserVenv(&'p Path),
    /// A venv is created.
    CreatingVenv {
        /// Path of the venv.
        venv: &'p Path,
        /// The interpreter that creates it.
        python: &'p Path,
        /// `uv` or `pip`.
        tool: &'static str,
    },
    /// A missing package that the skill does not declare.
    Undeclared(&'p UndeclaredRequirement),
    /// Requirements are installed.
    Installing {
        /// Requirements files.
        files: &'p [String],
        /// Further requirements.
        requirements: &'p [String],
    },
    /// Undeclared packages that the user had added to the previous venv; the new one lacks them.
    PackagesLost(&'p [String]),
    /// The setup failed or was stopped; the skill is unchanged.
    Unchanged {
        /// Whether it has a venv.
        has_venv: bool,
    },
    /// The setup failed or was stopped; the user's venv keeps what was installed so far.
    PartlyInstalled,
    /// The setup failed or was stopped, and could not remove everything.
    CleanupPending,
    /// A line of the installer's output, without terminal control characters.
    OutputLine(&'p str),
}

/// A requirement that a skill does not declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UndeclaredRequirement {
    /// The package to install.
    pub requirement: String,
    /// The import that needs it.
    pub import: ScriptImport,
}

/// An import in one of a skill's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptImport {
    /// The module's name.
    pub module: String,
    /// Relative to the skill's folder.
    pub file: PathBuf,
    /// Counted from 1.
    pub line: usize,
    /// Whether a package that should provide it is declared or known; if it is still missing,
    /// that package does not provide it here.
    pub is_declared: bool,
}

/// The result of a setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetupSummary {
    /// The change to the venv.
    pub outcome: SetupOutcome,
    /// The skill's venv.
    pub venv: PathBuf,
    /// The interpreter of the skill's scripts.
    pub python: PathBuf,
    /// Installed requirements that the skill declares or the user requested, including the lines
    /// of its requirements file except options; without logins.
    pub declared: Vec<String>,
    /// Installed requirements that the skill does not declare.
    pub undeclared: Vec<String>,
    /// Lines added to the skill's requirements file.
    pub recorded: Vec<String>,
    /// Imports whose module is still missing.
    pub missing: Vec<ScriptImport>,
}

/// Change of a setup to the venv.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetupOutcome {
    /// None: everything was installed.
    UpToDate,
    /// A venv was created.
    Created,
    /// The venv of an earlier setup was replaced.
    Recreated,
    /// Missing packages were added to the user's venv.
    Added,
}

impl fmt::Display for SetupProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupProgress::Waiting => f.write_str("waiting for another setup of this skill"),
            SetupProgress::Unlocked => f.write_str(
                "cannot lock the skill's folder: do not run another setup of it at the same time",
            ),
            SetupProgress::Recovered => {
                f.write_str("an earlier setup did not finish; its leftovers were removed")
            }
            SetupProgress::Recreating(why) => write!(f, "recreating the venv: {why}"),
            SetupProgress::KeepsUserVenv(venv) => write!(
                f,
                "{} was not created by a setup: it stays, missing packages are added",
                shell_quoted(venv)
            ),
            SetupProgress::CreatingVenv { venv, python, tool } => {
                let (venv, python) = (shell_quoted(venv), shell_quoted(python));
                match *tool {
                    "uv" => write!(f, "creating {venv} with uv and {python}"),
                    _ => write!(f, "creating {venv} with {python}"),
                }
            }
            SetupProgress::Undeclared(found) => write!(
                f,
                "not declared by the skill, found in its imports: {} ({})",
                found.requirement, found.import
            ),
            SetupProgress::SkillProblem(problem) => write!(f, "{problem}"),
            SetupProgress::Installing { files, requirements } => {
                let files = files.iter().map(|file| format!("what {file} lists"));
                let list: Vec<String> = files.chain(requirements.iter().cloned()).collect();
                write!(f, "installing {}", mask_url_logins(&list.join(", ")))
            }
            SetupProgress::PackagesLost(packages) => write!(
                f,
                "the previous venv also had {}, which nothing declares: name them after the \
                 skill to install them again",
                packages.join(", ")
            ),
            SetupProgress::Unchanged { has_venv: true } => {
                f.write_str("the skill and its venv are unchanged")
            }
            SetupProgress::Unchanged { has_venv: false } => {
                f.write_str("the skill is unchanged: it has no venv")
            }
            SetupProgress::PartlyInstalled => {
                f.write_str("the venv keeps what was installed so far")
            }
            SetupProgress::CleanupPending => {
                f.write_str("the next setup removes what is left of it")
            }
            SetupProgress::OutputLine(line) => f.write_str(&mask_url_logins(line)),
        }
    }
}

/// The place of the import: `scripts/recalc.py line 3`.
impl fmt::Display for ScriptImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.file.display(), self.line)
    }
}
