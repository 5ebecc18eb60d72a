//! The configured sandbox for scripts: additional grants; and the files that no sandboxed script
//! and no tool may access.

use std::path::PathBuf;

use crate::config::ConfigReader;
use crate::settings;

/// The configured part of the sandbox, in addition to its fixed rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Additional files and folders that scripts may read.
    pub read: Vec<PathBuf>,
    /// Additional folders that scripts may write in.
    pub write: Vec<PathBuf>,
}

impl ConfigReader<'_> {
    /// Reads the sandbox; `None`: scripts run without one.
    pub(super) fn sandbox(&mut self) -> Option<SandboxConfig> {
        let is_on = self.choice(settings::SCRIPT_SANDBOX, ["off", "on"]) == Some(true);
        is_on.then(|| SandboxConfig {
            read: self.granted_paths(settings::SCRIPT_SANDBOX_READ),
            write: self.granted_paths(settings::SCRIPT_SANDBOX_WRITE),
        })
    }

    fn granted_paths(&self, name: &'static str) -> Vec<PathBuf> {
        self.settings.value(name).map_or(Vec::new(), |(value, _)| self.resolve_paths(&value))
    }

    /// The real paths of the folders that the user lets tools write in. Resolved before any script
    /// runs, which could replace one of them by a link.
    pub(super) fn writable_folders(&mut self) -> Vec<PathBuf> {
        let folders = self.granted_paths(settings::SCRIPT_SANDBOX_WRITE).into_iter();
        folders.map(|folder| folder.canonicalize().unwrap_or(folder)).collect()
    }

    /// The files and folders with settings, credentials and stored data, whether they exist or
    /// not.
    pub(super) fn private_files(&self) -> Vec<PathBuf> {
        let files = self.settings.files().iter();
        let files = files.map(|file| self.path(file.path.as_os_str()));
        let home = self.settings.xdg_folder("XDG_CONFIG_HOME", ".config");
        let home = home.map(|home| home.join("skills-runner"));
        let keys = self.settings.values(settings::LLM_API_KEY_FILE);
        let keys = keys.iter().map(|(path, _)| self.path(path));
        // A missing `./.env` contains nothing to hide.
        let usual =
            Some(self.user_folder.join(".env")).filter(|path| path.is_symlink() || path.exists());
        let storage = self.storage();
        let kept = storage.paths().cloned();
        // Also the user's own, if `./.env` sets others.
        let places = [
            settings::MEMORY_PATH,
            settings::NOTES_FOLDER_PATH,
            settings::SESSIONS_PATH,
            settings::HISTORY_PATH,
        ];
        let all = places.into_iter().flat_map(|name| self.settings.values(name));
        let all = all.filter(|(value, _)| value != "off").map(|(value, _)| self.path(&value));
        let own = files.chain(usual).chain(home).chain(keys);
        own.chain(kept).chain(all).collect()
    }
}
