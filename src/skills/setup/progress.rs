//! What a setup tells while it works, and what has come of it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::secret::without_logins;
use crate::skills::Problem;
use crate::text::quoted;

/// One thing that a person who waits wants to know; `Display` is a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SetupProgress<'p> {
    /// Somebody else sets this skill up; their end is waited for.
    Waits,
    /// The folder's file system knows no locks.
    Unlocked,
    /// A setup before did not finish; its remains are gone.
    Recovered,
    /// Something is wrong with the skill, and stops nothing.
    Fault(&'p Problem),
    /// Why the venv that is there does not stay as it is.
    Changes(&'p str),
    /// A venv that people made stays, and is added to.
    Keeps(&'p Path),
    /// A venv is made.
    Makes {
        /// Where.
        venv: &'p Path,
        /// The interpreter that makes it.
        python: &'p Path,
        /// `uv` or `pip`.
        tool: &'static str,
    },
    /// Something is missing that the skill does not declare.
    Undeclared(&'p UndeclaredRequirement),
    /// Requirements are installed.
    Installs {
        /// Files of requirements.
        files: &'p [String],
        /// Requirements beside those of the files.
        requirements: &'p [String],
    },
    /// Packages that somebody had installed in the venv before, and that nothing
    /// declares: the new one lacks them.
    Lost(&'p [String]),
    /// The setup failed or was stopped, and the skill is as before.
    AsBefore {
        /// Whether it has a venv.
        has_venv: bool,
    },
    /// The setup failed or was stopped; people's own venv keeps what was
    /// installed in it by then.
    Partly,
    /// The setup failed or was stopped, and could not clear up.
    Remains,
    /// A line of the program that works: text of strangers, without commands to
    /// a terminal.
    Line(&'p str),
}

/// A requirement that a skill does not declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UndeclaredRequirement {
    /// What is installed.
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
    /// A package that should bring it is declared, or known; if it is missing
    /// all the same, that package does not bring it here.
    pub is_declared: bool,
}

/// What has come of a setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetupSummary {
    /// What was done.
    pub outcome: SetupOutcome,
    /// The skill's venv.
    pub venv: PathBuf,
    /// What runs the skill's scripts.
    pub python: PathBuf,
    /// What the venv holds because the skill declares it or a person asked for
    /// it: requirements, and lines of its requirements file but options; without
    /// logins.
    pub declared: Vec<String>,
    /// What it holds although the skill does not declare it.
    pub undeclared: Vec<String>,
    /// What was added to the skill's requirements file.
    pub recorded: Vec<String>,
    /// Imports that still find no module.
    pub missing: Vec<ScriptImport>,
}

/// What a setup did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetupOutcome {
    /// All was there already.
    UpToDate,
    /// A venv was made.
    Made,
    /// The one of an earlier setup was replaced.
    MadeAnew,
    /// People's own venv got what was missing.
    Added,
}

impl fmt::Display for SetupProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupProgress::Waits => f.write_str("waits for another setup of this skill"),
            SetupProgress::Unlocked => {
                f.write_str("cannot lock the skill's folder: run no other setup of it meanwhile")
            }
            SetupProgress::Recovered => {
                f.write_str("an earlier setup did not finish; what it left is cleared up")
            }
            SetupProgress::Changes(why) => write!(f, "makes the venv anew: {why}"),
            SetupProgress::Keeps(venv) => write!(
                f,
                "{} was not made by a setup: it stays, and gets what is missing",
                quoted(venv)
            ),
            SetupProgress::Makes { venv, python, tool } => {
                let (venv, python) = (quoted(venv), quoted(python));
                match *tool {
                    "uv" => write!(f, "makes {venv} with uv and {python}"),
                    _ => write!(f, "makes {venv} with {python}"),
                }
            }
            SetupProgress::Undeclared(found) => write!(
                f,
                "not declared by the skill, found in its imports: {} ({})",
                found.requirement, found.import
            ),
            SetupProgress::Fault(problem) => write!(f, "{problem}"),
            SetupProgress::Installs { files, requirements } => {
                let files = files.iter().map(|file| format!("what {file} lists"));
                let list: Vec<String> = files.chain(requirements.iter().cloned()).collect();
                write!(f, "installs {}", without_logins(&list.join(", ")))
            }
            SetupProgress::Lost(packages) => write!(
                f,
                "the venv before also had {}, which nothing declares: name them behind the \
                 skill to have them again",
                packages.join(", ")
            ),
            SetupProgress::AsBefore { has_venv: true } => {
                f.write_str("the skill is as before, and the venv is as before")
            }
            SetupProgress::AsBefore { has_venv: false } => {
                f.write_str("the skill is as before: it has no venv")
            }
            SetupProgress::Partly => f.write_str("the venv keeps what was installed by then"),
            SetupProgress::Remains => {
                f.write_str("what is left of it is cleared up by the next setup")
            }
            SetupProgress::Line(line) => f.write_str(&without_logins(line)),
        }
    }
}

/// Where it stands: `scripts/recalc.py line 3`.
impl fmt::Display for ScriptImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.file.display(), self.line)
    }
}
