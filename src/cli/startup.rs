//! The environment that the program was started in.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::ui::TerminalFeatures;
use base::secret::HiddenValues;
use host::hardening::IsSecret;
use host::signal::Interrupt;

/// The environment that the program was started in.
pub struct Startup {
    /// The process environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The working folder, absolute.
    pub folder: PathBuf,
    /// The program as it was started (`argv[0]`), for commands that are suggested to the user.
    pub program: PathBuf,
    /// Signals that request a stop.
    pub interrupt: Interrupt,
    /// Removes credentials from the environment of the process itself. A library that runs in
    /// another program passes a function that does nothing.
    pub erase_credentials: fn(IsSecret<'_>),
    /// Returns the path of the program's own file, if known.
    pub program_path: fn() -> Option<PathBuf>,
}

/// Starts in the root folder, without environment variables and signals.
impl Default for Startup {
    fn default() -> Startup {
        Startup {
            environment: Vec::new(),
            folder: "/".into(),
            program: PathBuf::new(),
            interrupt: Interrupt::never(),
            erase_credentials: |_| {},
            program_path: || None,
        }
    }
}

impl fmt::Debug for Startup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Startup")
            .field("environment", &HiddenValues(&self.environment))
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Startup {
    /// The value of an environment variable.
    pub(super) fn variable(&self, name: &str) -> Option<&OsString> {
        let (_, value) = self.environment.iter().find(|(key, _)| key == name)?;
        Some(value)
    }

    /// Reads terminal features from variables.
    pub(super) fn terminal_features(&self) -> TerminalFeatures {
        let is_refused = self.variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let can_move = self.variable("TERM").is_some_and(|term| term != "dumb");
        TerminalFeatures { has_color: can_move && !is_refused, can_move }
    }
}
