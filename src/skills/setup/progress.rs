//! The progress of a setup, and its summary.

use std::fmt;
use std::path::PathBuf;

use crate::skills::needs::InferredPackage;
use crate::skills::packages::normalized_name;

/// Callback for the progress of a setup.
pub(crate) type ProgressSink<'t> = dyn FnMut(SetupProgress<'_>) + 't;

/// Progress of a setup, as a line without logins of URLs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SetupProgress<'p> {
    /// A step of the setup.
    Note(&'p str),
    /// A problem that does not stop the setup.
    Warning(&'p str),
    /// A line of the installer's output, without terminal control characters.
    OutputLine(&'p str),
}

/// A module that a script needs and that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingModule {
    /// The module's name.
    pub module: String,
    /// The first file that imports it, relative to the skill's folder.
    pub file: PathBuf,
    /// Counted from 1.
    pub line: usize,
    /// The package that provides it, if it is well known.
    pub package: Option<&'static str>,
    /// Whether the skill declares its package.
    pub is_declared: bool,
    /// Why an installed module cannot be imported, or lacks what is imported of it.
    pub reason: Option<String>,
}

/// The result of a setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetupSummary {
    /// The change to the venv.
    pub outcome: SetupOutcome,
    /// The skill's venv; `None`: it has none, as there is nothing to install.
    pub venv: Option<PathBuf>,
    /// The interpreter of the skill's scripts.
    pub python: PathBuf,
    /// Installed requirements that the skill declares or the user requested, including the lines
    /// of its requirements files except options; without logins.
    pub declared: Vec<String>,
    /// Installed packages that the skill does not declare.
    pub undeclared: Vec<String>,
    /// Lines added to the skill's requirements file.
    pub recorded: Vec<String>,
    /// Modules that are still missing, or fail when they are imported.
    pub missing: Vec<MissingModule>,
    /// Packages that install lines and guarded imports name, and that are not installed.
    pub left_out: Vec<InferredPackage>,
}

impl SetupSummary {
    /// Whether the package of this name was left out.
    pub(crate) fn leaves_out(&self, name: &str) -> bool {
        self.left_out.iter().any(|package| package.name == name)
    }

    /// Whether a missing module of the package is reported.
    pub(super) fn reports(&self, package: &InferredPackage) -> bool {
        let packages = self.missing.iter().filter_map(|module| module.package);
        packages.map(normalized_name).any(|name| name == package.name)
    }
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
    /// Missing packages were added to the venv.
    Added,
    /// None: there is nothing to install, and the skill has no venv.
    NothingToInstall,
}

/// The place of the import: `scripts/recalc.py line 3`.
impl fmt::Display for MissingModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.file.display(), self.line)
    }
}
