//! What the settings mean: a value, built once and passed by reference.
//!
//! Everything is checked before the first request, and all problems are told
//! at once, each with the variable, where its value came from, and the fix.
//! Nothing here reads the environment: that has been done.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::secret::{HiddenValues, Secrets};
use crate::settings::{self, Settings, ValueSource};

mod credentials;
mod endpoint;
mod extra;
mod network;
mod no_proxy;
mod proxy;
mod sandbox;
mod storage;
#[cfg(test)]
mod tests;
mod trust;

pub use endpoint::Endpoint;
pub(crate) use network::{CertificateFile, Network, Proxy, ProxyScheme};
pub(crate) use sandbox::Confinement;
pub(crate) use storage::Storage;

/// Which interpreter runs the scripts of a skill that has no venv.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PythonChoice {
    /// `python3` from the search path.
    Search,
    /// This one.
    Program(PathBuf),
    /// None: such skills cannot run scripts.
    Off,
}

/// How scripts run.
#[derive(Clone)]
pub struct ScriptSettings {
    /// Longest run of one script.
    pub limit: Duration,
    /// Interpreter for skills without a venv.
    pub python: PythonChoice,
    /// Processes left behind after a normal end live on.
    pub keep_leftovers: bool,
    /// The sandbox that they run in; `None`: they run without one.
    pub sandbox: Option<Confinement>,
    /// The environment that scripts get, without any credential of ours.
    pub environment: Vec<(OsString, OsString)>,
    /// Where the user works; scripts find it in `USER_CWD`.
    pub user_folder: PathBuf,
    /// Where temporary files go.
    pub temporary_folder: PathBuf,
}

impl fmt::Debug for ScriptSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripts")
            .field("limit", &self.limit)
            .field("python", &self.python)
            .field("environment", &HiddenValues(&self.environment))
            .finish_non_exhaustive()
    }
}

/// Everything a run needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whom to ask; `None` for commands that ask nobody.
    pub endpoint: Option<Endpoint>,
    /// Folders of skills; the first wins a name.
    pub skills_folders: Vec<PathBuf>,
    /// Tokens that the model reads at most, where that is set.
    pub context_window: Option<u64>,
    /// Whether the model is shown images.
    pub vision: bool,
    /// A file of instructions instead of the built-in ones.
    pub prompt_file: Option<PathBuf>,
    /// Where conversations, facts and notes are kept.
    pub storage: Storage,
    /// How scripts run.
    pub scripts: ScriptSettings,
    /// The key and all else that is masked wherever it would show.
    pub secrets: Secrets,
    /// Things the user should know that stop nothing.
    pub warnings: Vec<String>,
}

/// What a command needs to be configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigNeeds {
    /// An endpoint to ask.
    Endpoint,
    /// Only skills and scripts.
    Skills,
}

impl Config {
    /// Makes sense of the settings, or tells everything that is wrong.
    /// `user_folder` is the working directory, absolute.
    pub fn resolve(settings: &Settings, user_folder: &Path, needs: ConfigNeeds) -> Result<Config> {
        let (config, problems) = Config::examine(settings, user_folder, needs);
        if problems.is_empty() { Ok(config) } else { Err(all_at_once(&problems, needs)) }
    }

    /// The same with the problems beside it: what could not be read has its
    /// default, and an endpoint must not be asked while there is any problem.
    pub fn examine(
        settings: &Settings,
        user_folder: &Path,
        needs: ConfigNeeds,
    ) -> (Config, Vec<String>) {
        let mut reader =
            ConfigReader { settings, user_folder, problems: Vec::new(), warnings: Vec::new() };
        // What is set is kept from scripts and masked also where no endpoint is needed.
        let (credentials, secrets) = reader.secrets();
        reader.warn_of_open_files();
        let endpoint = match needs {
            ConfigNeeds::Endpoint => reader.endpoint(&secrets),
            ConfigNeeds::Skills => None,
        };
        // A stranger's file may name whom to tell as well as what.
        let address = reader.settings.value(settings::LLM_API_BASE_URL);
        let sends_away = address.is_some_and(|(_, source)| source.is_foreign())
            && endpoint.as_ref().is_some_and(|endpoint| !endpoint.address.is_loopback());
        let skills_folders = reader.skills_folders();
        let sandbox = reader.sandbox();
        let scripts = ScriptSettings {
            limit: reader.seconds(settings::SCRIPT_TIMEOUT_SECONDS, limits::SCRIPT_SECONDS),
            python: reader.python(),
            keep_leftovers: reader.keeps_leftovers(sandbox.is_some()),
            sandbox,
            environment: script_environment(settings, &credentials),
            user_folder: user_folder.to_path_buf(),
            // Absolute, since scripts start in another folder than the user.
            temporary_folder: user_folder
                .join(settings.variable("TMPDIR").unwrap_or("/tmp".as_ref())),
        };
        let config = Config {
            endpoint,
            skills_folders,
            context_window: reader.number(settings::LLM_CONTEXT_WINDOW),
            vision: reader.vision(),
            prompt_file: reader.prompt_file(sends_away),
            storage: reader.checked_storage(sends_away),
            scripts,
            secrets,
            warnings: reader.warnings,
        };
        (config, reader.problems)
    }
}

/// Several problems as one error, a line each.
fn all_at_once(problems: &[String], needs: ConfigNeeds) -> Error {
    let message = match problems {
        [one] => format!("failed to read the configuration: {one}"),
        several => {
            let mut text = format!("failed to read the configuration: {} problems", several.len());
            for problem in several {
                text.push_str("\n  ");
                text.push_str(problem);
            }
            text
        }
    };
    let error = Error::new(ErrorKind::Config, message);
    let is_missing = problems.iter().any(|problem| problem.contains("is not set"));
    match needs {
        ConfigNeeds::Endpoint if is_missing => {
            error.with_hint("`skills-runner demo` shows the whole loop without any setting")
        }
        _ => error,
    }
}

/// The user's environment without our credentials, under whatever name they stand.
fn script_environment(settings: &Settings, credentials: &Secrets) -> Vec<(OsString, OsString)> {
    let is_secret = |name: &OsStr, value: &OsStr| {
        settings::is_secret(name) || credentials.is_within(value.as_bytes())
    };
    settings.environment().iter().filter(|(name, value)| !is_secret(name, value)).cloned().collect()
}

/// Reads values one by one and collects what is wrong with them.
struct ConfigReader<'s> {
    settings: &'s Settings,
    user_folder: &'s Path,
    problems: Vec<String>,
    warnings: Vec<String>,
}

impl ConfigReader<'_> {
    fn skills_folders(&mut self) -> Vec<PathBuf> {
        match self.settings.value(settings::SKILLS_FOLDER_PATH) {
            Some((value, _)) => self.paths(&value),
            None => {
                let here = self.user_folder.join("skills");
                let shared = self.settings.xdg_folder("XDG_DATA_HOME", ".local/share");
                let shared = shared.map(|folder| folder.join("skills-runner/skills"));
                // A link that leads nowhere is somebody's mistake, and is told.
                let is_there = |folder: &PathBuf| folder.is_dir() || folder.is_symlink();
                let both = [Some(here.clone()), shared].into_iter().flatten();
                let found: Vec<PathBuf> = both.filter(is_there).collect();
                if found.is_empty() { vec![here] } else { found }
            }
        }
    }

    /// In a sandbox not because a stranger's file asks for it: what lives on changes
    /// the skill when nobody looks any more.
    fn keeps_leftovers(&mut self, is_sandboxed: bool) -> bool {
        let keeps = self.choice(settings::SCRIPT_LEFTOVERS, &["kill", "keep"]) == Some(1);
        let source = self.settings.value(settings::SCRIPT_LEFTOVERS);
        let is_foreign = source.is_some_and(|(_, source)| source.is_foreign());
        keeps && !(is_sandboxed && is_foreign)
    }

    fn python(&mut self) -> PythonChoice {
        match self.settings.value(settings::SCRIPT_PYTHON) {
            None => PythonChoice::Search,
            Some((value, _)) if value == "off" => PythonChoice::Off,
            // A bare name is looked up as a shell would.
            Some((value, _)) if !value.as_bytes().contains(&b'/') => {
                let found = find_program(&value, self.settings.variable("PATH"));
                PythonChoice::Program(found.unwrap_or_else(|| PathBuf::from(value)))
            }
            Some((value, _)) => PythonChoice::Program(self.path(&value)),
        }
    }

    /// Several paths, separated as in `PATH`.
    fn paths(&self, value: &OsStr) -> Vec<PathBuf> {
        let named = parts(value).filter(|part| !part.is_empty());
        named.map(|part| self.path(part)).collect()
    }

    fn vision(&mut self) -> bool {
        self.choice(settings::LLM_VISION, &["on", "off"]) != Some(1)
    }

    /// The path that a setting names.
    fn place(&self, name: &'static str) -> Option<PathBuf> {
        let (value, _) = self.settings.value(name)?;
        Some(self.path(&value))
    }

    fn path(&self, value: &OsStr) -> PathBuf {
        self.settings.path(value, self.user_folder)
    }

    fn seconds(&mut self, name: &'static str, default: u64) -> Duration {
        let Some((text, ValueSource { origin, .. })) = self.text(name) else {
            return Duration::from_secs(default);
        };
        match text.parse::<u64>() {
            Ok(seconds) if (1..=limits::MAX_SECONDS).contains(&seconds) => {
                Duration::from_secs(seconds)
            }
            _ => {
                self.problems.push(format!(
                    "{name}={text} ({origin}) is no whole number of seconds from 1 to {}",
                    limits::MAX_SECONDS
                ));
                Duration::from_secs(default)
            }
        }
    }

    /// A count from 1 on.
    fn number(&mut self, name: &'static str) -> Option<u64> {
        let (text, ValueSource { origin, .. }) = self.text(name)?;
        match text.parse::<u64>() {
            Ok(number) if number > 0 => Some(number),
            _ => {
                self.problems
                    .push(format!("{name}={text} ({origin}) is no whole number from 1 on"));
                None
            }
        }
    }

    /// The position of the value among `choices`.
    fn choice(&mut self, name: &'static str, choices: &[&str]) -> Option<usize> {
        let (text, ValueSource { origin, .. }) = self.text(name)?;
        let found = choices.iter().position(|choice| *choice == text);
        let problem = format!("{name}={text} ({origin}) is not {}", choices.join(" or "));
        if found.is_none() && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
        found
    }

    /// A value as trimmed text; what is no UTF-8 is a problem.
    fn text(&mut self, name: &'static str) -> Option<(String, ValueSource)> {
        let (value, source) = self.settings.value(name)?;
        match value.into_string() {
            Ok(text) => {
                let trimmed = text.trim();
                (!trimmed.is_empty()).then(|| (trimmed.to_string(), source))
            }
            Err(_) => {
                let problem = format!("{source} is not UTF-8 text");
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
                None
            }
        }
    }

    fn missing(&mut self, name: &str, example: &str) {
        // A value that is there but unreadable has been told already.
        if !self.problems.iter().any(|problem| problem.starts_with(name)) {
            self.problems.push(format!(
                "{name} is not set: set it in the environment or in .env, for example {example}"
            ));
        }
    }
}

/// The parts of a list as in `PATH`.
pub(crate) fn parts(list: &OsStr) -> impl Iterator<Item = &OsStr> {
    let parts = list.as_bytes().split(|&byte| byte == b':');
    parts.map(OsStr::from_bytes)
}

/// The first executable regular file of that name in the search path.
pub(crate) fn find_program(name: &OsStr, search_path: Option<&OsStr>) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let is_executable = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    parts(search_path?)
        .map(|folder| Path::new(folder).join(name))
        .filter(|path| path.is_absolute())
        .find(is_executable)
}
