//! The sandbox of scripts as it is configured: what it grants beside what it
//! always does, and what it must not grant whatever else is said.

use std::path::{Component, Path, PathBuf};

use crate::config::ConfigReader;
use crate::settings::{self, ValueSource};

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

impl ConfigReader<'_> {
    /// `None` where scripts run without a sandbox.
    pub(super) fn sandbox(&mut self) -> Option<Confinement> {
        let is_on = self.choice(settings::SCRIPT_SANDBOX, &["off", "on"]) == Some(1);
        let read = self.granted(settings::SCRIPT_SANDBOX_READ);
        let write = self.granted(settings::SCRIPT_SANDBOX_WRITE);
        is_on.then(|| Confinement { read, write, hidden: self.private_files() })
    }

    /// Folders that a setting names.
    fn granted(&mut self, name: &'static str) -> Vec<PathBuf> {
        let Some((value, source)) = self.settings.value(name) else {
            return Vec::new();
        };
        let paths = self.paths(&value);
        if let Some(path) = paths.iter().find(|path| self.is_beyond(path, &source)) {
            let ValueSource { origin, .. } = &source;
            self.problems.push(format!(
                "{name} ({origin}) grants {} to scripts, which is no plain folder in the working folder: {}",
                path.display(),
                remedy(name)
            ));
        }
        paths
    }

    /// The file of instructions. With `sends_away` the working folder's own file of
    /// settings names an endpoint on another machine.
    pub(super) fn prompt_file(&mut self, sends_away: bool) -> Option<PathBuf> {
        let name = settings::SYSTEM_PROMPT_PATH;
        let (value, source) = self.settings.value(name)?;
        let path = self.path(&value);
        let is_other = source.is_foreign() && path.metadata().is_ok_and(|meta| !meta.is_file());
        if is_other || sends_away && self.is_beyond(&path, &source) {
            let ValueSource { origin, .. } = &source;
            self.problems.push(format!(
                "{name} ({origin}) sends {} to the endpoint, which is no plain file in the working folder: {}",
                path.display(),
                remedy(name)
            ));
        }
        Some(path)
    }

    /// What is kept elsewhere may be the user's, and so may the file be that says
    /// so: it is told.
    pub(super) fn warn_of_beyond(&mut self, name: &'static str) {
        let Some((value, source)) = self.settings.value(name) else {
            return;
        };
        let path = self.path(&value);
        if self.is_beyond(&path, &source) {
            let ValueSource { origin, .. } = &source;
            self.warnings.push(format!(
                "{name} ({origin}) leads to {}, outside of the working folder, and the same file names the endpoint: {}",
                path.display(),
                remedy(name)
            ));
        }
    }

    /// A stranger's file may name what lies in the working folder, which is the
    /// stranger's as well; but not what programs of the user's go by there, such
    /// as `.git`.
    fn is_beyond(&self, path: &Path, source: &ValueSource) -> bool {
        source.is_foreign() && !lies_openly_in(path, self.user_folder)
    }

    fn private_files(&self) -> Vec<PathBuf> {
        let files = self.settings.files().iter();
        let files = files.map(|file| self.path(file.path.as_os_str()));
        let home = self.settings.xdg_folder("XDG_CONFIG_HOME", ".config");
        let home = home.map(|home| home.join("skills-runner"));
        let keys = self.settings.values(settings::LLM_API_KEY_FILE);
        let keys = keys.iter().map(|(path, _)| self.path(path));
        // One that is not there is nobody's: what it says wins over nothing.
        let usual =
            Some(self.user_folder.join(".env")).filter(|path| path.is_symlink() || path.exists());
        let storage = self.storage();
        let kept = storage.paths().cloned();
        let own = files.chain(usual).chain(home).chain(keys);
        own.chain(kept).collect()
    }
}

fn remedy(name: &str) -> String {
    format!(
        "set {name} in the environment or in ~/.config/skills-runner/.env, or pass the file with --env-file if you trust it"
    )
}

/// Whether it really lies in that folder or is it, links and all, and on the way is
/// no name that begins with a dot. What is missing goes by its name, in the folder
/// that is there.
fn lies_openly_in(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or(path.to_path_buf());
    let Some(there) = path.ancestors().find(|path| path.canonicalize().is_ok()) else {
        return false;
    };
    let missing = path.strip_prefix(there).unwrap_or(path);
    let first = missing.components().next();
    // A link that leads nowhere yet is written through.
    if first.is_some_and(|first| there.join(first).is_symlink()) {
        return false;
    }
    let place = match first {
        Some(_) => real(there).join(missing),
        None => real(there),
    };
    if place.join(".git").exists() {
        return false;
    }
    place.strip_prefix(real(folder)).is_ok_and(|rest| {
        rest.components().all(|part| match part {
            Component::Normal(name) => !name.as_encoded_bytes().starts_with(b"."),
            _ => false,
        })
    })
}
