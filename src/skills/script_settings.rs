//! The settings for scripts: how they start, what they may use, and what is kept from them.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::python::PythonChoice;
use base::secret::HiddenValues;
use host::confined::Identity;

/// The settings for scripts.
#[derive(Clone)]
pub struct ScriptSettings {
    /// The time limit of one script or command.
    pub limit: Duration,
    /// The interpreter for skills without a venv.
    pub python: PythonChoice,
    /// The shell for commands; `None`: there are no commands.
    pub shell: Option<PathBuf>,
    /// Whether processes that a script leaves behind after a normal end keep running.
    pub keep_leftovers: bool,
    /// The sandbox for scripts; `None`: scripts run without one.
    pub sandbox: Option<SandboxConfig>,
    /// Files and folders with settings, credentials and stored data, whether they exist or not: no
    /// sandboxed script and no tool for the user's files may access them.
    pub private_files: Vec<PathBuf>,
    /// The real paths of the folders of `SCRIPT_SANDBOX_WRITE`, with and without a sandbox.
    pub writable_folders: Vec<PathBuf>,
    /// The environment for scripts, without credentials.
    pub environment: Vec<(OsString, OsString)>,
    /// The environment for programs that the user starts with a command (pip, git): without the
    /// endpoint's credentials.
    pub installer_environment: Vec<(OsString, OsString)>,
    /// The user's working folder; scripts get it as `USER_CWD`.
    pub user_folder: PathBuf,
    /// The folder that was there at the start: a script could put another one in its place.
    pub user_folder_identity: Option<Identity>,
    /// The default folders of skills, whether they exist or not.
    pub default_skills_folders: Vec<PathBuf>,
    /// The folder for temporary files.
    pub temporary_folder: PathBuf,
    /// Whether only skills are used that are as the lock file beside them lists them.
    pub skills_locked: bool,
}

impl ScriptSettings {
    /// Returns an error if the folder at the path of the working folder, this one, is not that of
    /// the start.
    pub fn check_user_folder(&self, found: Option<Identity>) -> std::result::Result<(), String> {
        if found == self.user_folder_identity {
            return Ok(());
        }
        let folder = self.user_folder.display();
        Err(format!("the working folder {folder} was replaced by another one: tell the user"))
    }

    /// The value of a variable in the environment of all scripts.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let mut environment = self.environment.iter();
        let (_, value) = environment.find(|(known, _)| known == name)?;
        Some(value)
    }

    /// The names of the user's variables that scripts do not get because they look like
    /// credentials. `SCRIPT_ENV` names those that scripts get.
    pub fn withheld_names(&self) -> impl Iterator<Item = &str> {
        let all = self.installer_environment.iter().filter_map(|(name, _)| name.to_str());
        all.filter(|name| self.variable(name).is_none())
    }
}

impl fmt::Debug for ScriptSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptSettings")
            .field("limit", &self.limit)
            .field("python", &self.python)
            .field("environment", &HiddenValues(&self.environment))
            .finish_non_exhaustive()
    }
}

/// The configured part of the sandbox, in addition to its fixed rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Additional files and folders that scripts may read.
    pub read: Vec<PathBuf>,
    /// Additional folders that scripts may write in.
    pub write: Vec<PathBuf>,
}
