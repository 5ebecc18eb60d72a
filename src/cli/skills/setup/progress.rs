//! The progress of a setup, and its summary.

use std::path::PathBuf;

use ::skills::needs::InferredPackage;

/// Callback for the progress of a setup.
pub(super) type ProgressSink<'t> = dyn FnMut(SetupProgress<'_>) + 't;

/// Progress of a setup, as a line without logins of URLs.
#[derive(Clone, Copy, Debug)]
pub(super) enum SetupProgress<'p> {
    /// A step of the setup.
    Note(&'p str),
    /// A problem that does not stop the setup.
    Warning(&'p str),
    /// A line of the installer's output, without terminal control characters.
    OutputLine(&'p str),
}

/// The result of a setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetupSummary {
    /// The change to the venv.
    pub outcome: SetupOutcome,
    /// The skill's venv; `None`: it has none, as there is nothing to install.
    pub venv: Option<PathBuf>,
    /// The interpreter of the skill's scripts.
    pub python: PathBuf,
    /// Installed requirements that the skill declares, including the lines of its requirements
    /// files except options; without logins.
    pub declared: Vec<String>,
    /// Installed packages that the skill does not declare; without logins.
    pub undeclared: Vec<String>,
    /// Packages that documents install, and that are not there.
    pub left_out: Vec<InferredPackage>,
}

/// Change of a setup to the venv.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetupOutcome {
    /// None: everything was installed.
    UpToDate,
    /// A venv was created.
    Created,
    /// The venv of an earlier setup was replaced.
    Recreated,
    /// None: there is nothing to install, and the skill has no venv.
    NothingToInstall,
}
