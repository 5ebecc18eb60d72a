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
}

impl Storage {
    /// All paths; sandboxed scripts may read none of them.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.sessions, &self.facts, &self.notes].into_iter().flatten()
    }
}

impl ConfigReader<'_> {
    /// The storage, with warnings for paths that `./.env` sets together with the endpoint.
    /// See [`ConfigReader::prompt_file`] for `sends_away`.
    pub(super) fn checked_storage(&mut self, sends_away: bool) -> Storage {
        if sends_away {
            self.warn_if_outside(settings::SESSIONS_PATH);
            self.warn_if_outside(settings::MEMORY_PATH);
            self.warn_if_outside(settings::NOTES_FOLDER_PATH);
        }
        self.storage()
    }

    pub(super) fn storage(&self) -> Storage {
        let state = || self.settings.xdg_folder("XDG_STATE_HOME", ".local/state");
        let usual = || state().map(|folder| folder.join("skills-runner/sessions"));
        Storage {
            sessions: self.setting_path(settings::SESSIONS_PATH).or_else(usual),
            facts: self.setting_path(settings::MEMORY_PATH),
            notes: self.setting_path(settings::NOTES_FOLDER_PATH),
        }
    }
}
