//! Where the program keeps what outlives a run.

use std::path::PathBuf;

use crate::config::ConfigReader;
use crate::settings;

/// Folders and files for conversations, facts and notes. None of them has to
/// exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// The folder of saved conversations; `None` only where neither the setting
    /// nor a home says where.
    pub sessions: Option<PathBuf>,
    /// The file of facts; `None`: no memory.
    pub facts: Option<PathBuf>,
    /// The folder of daily notes; `None`: none are written.
    pub notes: Option<PathBuf>,
}

impl Storage {
    /// All of it: nothing that a sandboxed script may read.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.sessions, &self.facts, &self.notes].into_iter().flatten()
    }
}

impl ConfigReader<'_> {
    /// The storage, and a warning where a stranger's file names it and the endpoint
    /// that is told of it: see [`ConfigReader::prompt_file`] for `sends_away`.
    pub(super) fn checked_storage(&mut self, sends_away: bool) -> Storage {
        if sends_away {
            self.warn_of_beyond(settings::SESSIONS_PATH);
            self.warn_of_beyond(settings::MEMORY_PATH);
            self.warn_of_beyond(settings::NOTES_FOLDER_PATH);
        }
        self.storage()
    }

    pub(super) fn storage(&self) -> Storage {
        let state = || self.settings.xdg_folder("XDG_STATE_HOME", ".local/state");
        let usual = || state().map(|folder| folder.join("skills-runner/sessions"));
        Storage {
            sessions: self.place(settings::SESSIONS_PATH).or_else(usual),
            facts: self.place(settings::MEMORY_PATH),
            notes: self.place(settings::NOTES_FOLDER_PATH),
        }
    }
}
