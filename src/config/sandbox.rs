//! The sandbox of scripts as it is configured: what it grants beside what it
//! always does, and what it must not grant whatever else is said.

use std::path::{Component, Path, PathBuf};

use crate::config::Reader;
use crate::settings::{self, Source};

/// What a sandbox grants and hides beside what every sandbox does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// More files and folders to read.
    pub read: Vec<PathBuf>,
    /// More folders to write in.
    pub write: Vec<PathBuf>,
    /// Files and folders with settings and credentials, whether they exist or not.
    pub hidden: Vec<PathBuf>,
}

impl Reader<'_> {
    /// `None` where scripts run without a sandbox.
    pub(super) fn sandbox(&mut self) -> Option<Confinement> {
        let choice = self.choice(settings::SCRIPT_SANDBOX, &["off", "on"]);
        let read = self.granted(settings::SCRIPT_SANDBOX_READ);
        let write = self.granted(settings::SCRIPT_SANDBOX_WRITE);
        let is_on = choice == Some(1) || self.is_on_against_a_stranger();
        is_on.then(|| Confinement {
            read,
            write,
            hidden: self.private_files(),
        })
    }

    /// A stranger's file does not take away the sandbox that the user has chosen.
    fn is_on_against_a_stranger(&self) -> bool {
        let values = self.settings.values(settings::SCRIPT_SANDBOX);
        values
            .first()
            .is_some_and(|(_, source)| source.is_foreign())
            && values
                .iter()
                .any(|(value, source)| !source.is_foreign() && value == "on")
    }

    /// Folders that a setting names. A stranger's file may name what lies in the
    /// working folder, which is the stranger's as well.
    fn granted(&mut self, name: &'static str) -> Vec<PathBuf> {
        let Some((value, source)) = self.settings.value(name) else {
            return Vec::new();
        };
        let paths = self.paths(&value);
        let is_outside = |path: &&PathBuf| !lies_in(path, self.user_folder);
        if let Some(path) = paths
            .iter()
            .find(is_outside)
            .filter(|_| source.is_foreign())
        {
            let Source { origin, .. } = &source;
            self.problems.push(format!(
                "{name} ({origin}) grants {} to scripts, which is not in the working folder: set \
                 {name} in the environment, or pass the file with --env-file if you trust it",
                path.display()
            ));
        }
        paths
    }

    fn private_files(&self) -> Vec<PathBuf> {
        let files = self.settings.files().iter();
        let files = files.map(|file| self.user_folder.join(&file.path));
        let home = self.settings.xdg_folder("XDG_CONFIG_HOME", ".config");
        let home = home.map(|home| home.join("skills-runner"));
        let key = self.settings.value(settings::LLM_API_KEY_FILE);
        let key = key.map(|(path, _)| self.path(&path));
        let usual = self.user_folder.join(".env");
        files.chain([usual]).chain(home).chain(key).collect()
    }
}

/// Whether it really lies in that folder or is it, links and all. What is missing
/// goes by its name.
fn lies_in(path: &Path, folder: &Path) -> bool {
    let has_parent = path.components().any(|part| part == Component::ParentDir);
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => path.starts_with(folder) && !has_parent,
    }
}
