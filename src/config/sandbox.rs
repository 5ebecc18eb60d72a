//! The configured sandbox for scripts: additional grants, and the files that it must always
//! hide. Also checks which paths `./.env` may set.

use std::path::{Component, Path, PathBuf};

use crate::config::ConfigReader;
use crate::settings::{self, ValueSource};

/// The configured part of the sandbox, in addition to its fixed rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Additional files and folders that scripts may read.
    pub read: Vec<PathBuf>,
    /// Additional folders that scripts may write in.
    pub write: Vec<PathBuf>,
    /// Hidden files and folders: settings, credentials and stored data, whether they exist or
    /// not.
    pub hidden: Vec<PathBuf>,
}

impl ConfigReader<'_> {
    /// Reads the sandbox; `None`: scripts run without one.
    pub(super) fn sandbox(&mut self) -> Option<SandboxConfig> {
        let is_on = self.choice_index(settings::SCRIPT_SANDBOX, &["off", "on"]) == Some(1);
        let read = self.granted_paths(settings::SCRIPT_SANDBOX_READ);
        let write = self.granted_paths(settings::SCRIPT_SANDBOX_WRITE);
        is_on.then(|| SandboxConfig { read, write, hidden: self.private_files() })
    }

    /// The paths in a setting that grants access.
    fn granted_paths(&mut self, name: &'static str) -> Vec<PathBuf> {
        let Some((value, source)) = self.settings.value(name) else {
            return Vec::new();
        };
        let paths = self.resolve_paths(&value);
        if let Some(path) = paths.iter().find(|path| self.is_untrusted_outside(path, &source)) {
            let ValueSource { origin, .. } = &source;
            self.problems.push(format!(
                "{name} ({origin}) grants scripts access to {}, which is not a visible folder in the working folder: {}",
                path.display(),
                trust_hint(name)
            ));
        }
        paths
    }

    /// The system prompt file. `sends_away`: `./.env` sets an endpoint on another machine.
    pub(super) fn prompt_file(&mut self, sends_away: bool) -> Option<PathBuf> {
        let name = settings::SYSTEM_PROMPT_PATH;
        let (value, source) = self.settings.value(name)?;
        let path = self.path(&value);
        let is_other = source.is_untrusted() && path.metadata().is_ok_and(|meta| !meta.is_file());
        if is_other || sends_away && self.is_untrusted_outside(&path, &source) {
            let ValueSource { origin, .. } = &source;
            self.problems.push(format!(
                "{name} ({origin}) names {}, which is not a visible file in the working folder and would be sent to the endpoint: {}",
                path.display(),
                trust_hint(name)
            ));
        }
        Some(path)
    }

    /// Warns if `./.env` sets a path outside the working folder. That path may belong to the
    /// user, and the author of the file may be the user too, so it is no error.
    pub(super) fn warn_if_outside(&mut self, name: &'static str) {
        let Some((value, source)) = self.settings.value(name) else {
            return;
        };
        let path = self.path(&value);
        if self.is_untrusted_outside(&path, &source) {
            let ValueSource { origin, .. } = &source;
            self.warnings.push(format!(
                "{name} ({origin}) is {}, outside the working folder, and the same file sets the endpoint: {}",
                path.display(),
                trust_hint(name)
            ));
        }
    }

    /// Whether `./.env`, which may have another author, sets a path outside the working
    /// folder. Hidden files in it, such as `.git`, count as outside, because other programs
    /// of the user trust them.
    fn is_untrusted_outside(&self, path: &Path, source: &ValueSource) -> bool {
        source.is_untrusted() && !is_plain_path_within(path, self.user_folder)
    }

    fn private_files(&self) -> Vec<PathBuf> {
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
        let own = files.chain(usual).chain(home).chain(keys);
        own.chain(kept).collect()
    }
}

fn trust_hint(name: &str) -> String {
    format!(
        "set {name} in the environment or in ~/.config/skills-runner/.env, or pass the file with --env-file if you trust it"
    )
}

/// Whether the path, with links resolved, is `folder` or in it, and has no hidden name on the
/// way. The missing part of a path is appended to its existing part.
fn is_plain_path_within(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or(path.to_path_buf());
    let Some(there) = path.ancestors().find(|path| path.canonicalize().is_ok()) else {
        return false;
    };
    let missing = path.strip_prefix(there).unwrap_or(path);
    let first = missing.components().next();
    // A write would follow a dangling link.
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
