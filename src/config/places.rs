//! Places in the file system: skills folders, what the program stores, and what scripts and tools
//! may and must not access.

use std::path::PathBuf;

use crate::config::ConfigReader;
use agent::memory::Storage;
use base::settings;
use host::confined::identity;
use skills::{FolderOrigin, SandboxConfig, SkillsFolder};

/// Skills folders of a project, relative to the working folder.
const IN_WORKING_FOLDER: [&str; 3] = ["skills", ".agents/skills", ".claude/skills"];

/// Skills folders of a user, relative to the home.
const IN_HOME: [&str; 2] = [".agents/skills", ".claude/skills"];

impl ConfigReader<'_> {
    /// The folders of the setting, else the default ones that exist.
    pub(super) fn skills_folders(&self) -> Vec<SkillsFolder> {
        if let Some((value, _)) = self.settings.value(settings::SKILLS_FOLDER_PATH) {
            return self.resolve_paths(&value).iter().map(|it| SkillsFolder::named(it)).collect();
        }
        // A dangling link is kept, so that it is reported as a mistake.
        let is_there = |folder: &PathBuf| folder.is_dir() || folder.is_symlink();
        let of_user: Vec<PathBuf> = self.of_user().into_iter().filter(is_there).collect();
        let here = IN_WORKING_FOLDER.map(|path| self.user_folder.join(path));
        // In the home, the folders of the project are the user's.
        let is_of_user = |folder: &PathBuf| {
            let found = identity(folder);
            found.is_some() && of_user.iter().any(|other| identity(other) == found)
        };
        let project = here.iter().filter(|folder| is_there(folder) && !is_of_user(folder));
        let with_origin = |path, origin| SkillsFolder { path, origin };
        let project = project.cloned().map(|path| with_origin(path, FolderOrigin::WorkingFolder));
        let mut found: Vec<SkillsFolder> = project.collect();
        found.extend(of_user.into_iter().map(|path| with_origin(path, FolderOrigin::User)));
        found
    }

    /// The default folders, whether they exist or not.
    pub(super) fn default_skills_folders(&self) -> Vec<PathBuf> {
        let here = IN_WORKING_FOLDER.map(|path| self.user_folder.join(path));
        here.into_iter().chain(self.of_user()).collect()
    }

    /// The default folders of the user.
    fn of_user(&self) -> Vec<PathBuf> {
        let shared = self.settings.user_skills_folder();
        let home = self.settings.home();
        let in_home = home.iter().flat_map(|home| IN_HOME.map(|path| home.join(path)));
        shared.into_iter().chain(in_home).collect()
    }

    /// Where sessions, facts, notes and typed lines are kept.
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
