//! Where the program stores data between runs.

use std::path::PathBuf;

use crate::config::ConfigReader;
use crate::settings;

/// Paths of sessions, facts and notes. They may not exist yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// The folder of sessions; `None` only if neither the setting nor a home folder is set.
    pub sessions: Option<PathBuf>,
    /// The facts file; `None`: no memory.
    pub facts: Option<PathBuf>,
    /// The folder of daily notes; `None`: no notes are written.
    pub notes: Option<PathBuf>,
    /// The file of lines typed in conversations; `None`: none are kept.
    pub history: Option<PathBuf>,
    /// The folder of the program's other data; `None` only without a home folder.
    pub(crate) state: Option<PathBuf>,
}

impl Storage {
    /// All paths; sandboxed scripts may read none of them.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.sessions, &self.facts, &self.notes, &self.history, &self.state].into_iter().flatten()
    }
}

impl ConfigReader<'_> {
    pub(super) fn storage(&self) -> Storage {
        let state = self.settings.xdg_folder("XDG_STATE_HOME", ".local/state");
        let state = state.map(|folder| folder.join("skills-runner"));
        let usual = |name| state.as_ref().map(|folder| folder.join(name));
        let value = self.settings.value(settings::HISTORY_PATH);
        let is_off = value.is_some_and(|(value, _)| value == "off");
        let history = || self.setting_path(settings::HISTORY_PATH).or_else(|| usual("history"));
        Storage {
            sessions: self.setting_path(settings::SESSIONS_PATH).or_else(|| usual("sessions")),
            facts: self.setting_path(settings::MEMORY_PATH),
            notes: self.setting_path(settings::NOTES_FOLDER_PATH),
            history: if is_off { None } else { history() },
            state: state.clone(),
        }
    }
}
