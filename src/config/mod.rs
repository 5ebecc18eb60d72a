//! The configuration: a value built once from the settings and passed by reference.
//!
//! All settings are checked before the first request. All problems are reported together,
//! each with its variable, the source of its value, and the remedy. This module does not read
//! the environment; `main.rs` has done that.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::memory::Storage;
use agent::tools::ToolContext;
use base::error::{Fault, Result};
use base::limits;
use base::secret::Secrets;
use base::settings::{self, Settings, TRUST_FIX, ValueSource};
use chat_api::Endpoint;
use host::cancellation::Cancellation;
use host::confined::identity;
use host::files::{find_program, split_path_list};
use skills::python::PythonChoice;
use skills::{ScriptSettings, Skills, SkillsFolder};

mod credentials;
mod endpoint;
mod extra;
mod missing;
mod network;
mod no_proxy;
mod ollama_host;
mod places;
mod proxy;
#[cfg(test)]
mod tests;
mod trust;

pub(crate) use endpoint::EndpointWithoutModel;
pub(crate) use missing::{SettingLine, configuration_error};
pub(crate) use network::network_for_download;
pub(crate) use ollama_host::ollama_address;

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The endpoint; `None` for commands that send no requests.
    pub endpoint: Option<Endpoint>,
    /// The endpoint if it is on this machine and no model is set; `endpoint` is `None` then.
    pub(crate) endpoint_without_model: Option<EndpointWithoutModel>,
    /// The skills folders; of two skills with the same name, the first is used.
    pub skills_folders: Vec<SkillsFolder>,
    /// The size of the model's context in tokens, if set.
    pub context_window: Option<u64>,
    /// Whether images are sent to the model.
    pub vision: bool,
    /// The file that replaces the built-in system prompt.
    pub prompt_file: Option<PathBuf>,
    /// Where sessions, facts and notes are stored.
    pub storage: Storage,
    /// How scripts run.
    pub scripts: ScriptSettings,
    /// Whether only `./.env` decides where requests go: what belongs to the user is held back.
    pub(crate) has_folder_endpoint: bool,
    /// The skills folders that are not used because of that.
    pub(crate) held_back_skills: Vec<SkillsFolder>,
    /// The key and all other values that are masked in every output.
    pub secrets: Secrets,
    /// Warnings for the user; they do not stop the run.
    pub warnings: Vec<Fault>,
}

/// A problem that makes the configuration invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigProblem {
    /// The problem and its remedy.
    pub fault: Fault,
    /// The lines to copy, if a required setting is missing.
    pub lines: Vec<SettingLine>,
}

/// The parts of the configuration that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigNeeds {
    /// The endpoint.
    Endpoint,
    /// Only skills and scripts.
    Skills,
}

impl Config {
    /// Builds the configuration, or returns one error that lists all problems. `user_folder`
    /// is the working directory, absolute.
    pub fn resolve(settings: &Settings, user_folder: &Path, needs: ConfigNeeds) -> Result<Config> {
        let (config, problems) = Config::examine(settings, user_folder, needs);
        if problems.is_empty() {
            return Ok(config);
        }
        Err(configuration_error(&problems, &settings::misspelled::warnings(settings)))
    }

    /// Like [`Config::resolve`], but returns the problems separately. A setting that cannot
    /// be read has its default; the endpoint must not be used while there are problems.
    pub(crate) fn examine(
        settings: &Settings,
        user_folder: &Path,
        needs: ConfigNeeds,
    ) -> (Config, Vec<ConfigProblem>) {
        let mut reader = ConfigReader::new(settings, user_folder);
        // Credentials are masked and kept from scripts even if no endpoint is needed.
        let (credentials, secrets) = reader.secrets();
        reader.warn_about_readable_files();
        let vision = reader.choice(settings::LLM_VISION, ["on", "off"]) != Some(true);
        let found = match needs {
            ConfigNeeds::Endpoint => reader.endpoint(&secrets, vision),
            ConfigNeeds::Skills => None,
        };
        reader.check_places();
        let sandbox = reader.sandbox();
        let python = reader.program(settings::SCRIPT_PYTHON);
        let installer_environment = installer_environment(settings, &credentials);
        let scripts = ScriptSettings {
            limit: reader.seconds(settings::SCRIPT_TIMEOUT_SECONDS, limits::SCRIPT_SECONDS),
            shell: reader.shell(&python),
            python,
            keep_leftovers: reader.keeps_leftovers(sandbox.is_some()),
            sandbox,
            private_files: reader.private_files(),
            writable_folders: reader.writable_folders(),
            environment: reader.script_environment(&installer_environment),
            installer_environment,
            user_folder: user_folder.to_path_buf(),
            user_folder_identity: identity(user_folder),
            default_skills_folders: reader.default_skills_folders(),
            // Absolute, because scripts start in a different folder.
            temporary_folder: user_folder
                .join(settings.variable("TMPDIR").unwrap_or("/tmp".as_ref())),
            skills_locked: reader.skills_locked(),
        };
        let mut config = Config {
            endpoint: None,
            endpoint_without_model: None,
            skills_folders: reader.skills_folders(),
            context_window: reader.positive_number(settings::LLM_CONTEXT_WINDOW),
            vision,
            prompt_file: reader.setting_path(settings::SYSTEM_PROMPT_PATH),
            storage: reader.storage(),
            scripts,
            has_folder_endpoint: reader.folder_route.is_some(),
            held_back_skills: Vec::new(),
            secrets,
            warnings: std::mem::take(&mut reader.warnings),
        };
        config.set_endpoint(found);
        if let Some(way) = &reader.folder_route {
            config.hold_back_user_data(way, settings, user_folder);
        }
        (config, reader.problems)
    }
}

/// The user's environment without any variable that contains a credential of the endpoint,
/// whatever its name.
fn installer_environment(settings: &Settings, credentials: &Secrets) -> Vec<(OsString, OsString)> {
    let is_secret = |name: &OsStr, value: &OsStr| {
        settings.is_endpoint_secret(name) || credentials.occur_in(value.as_bytes())
    };
    settings.environment().iter().filter(|(name, value)| !is_secret(name, value)).cloned().collect()
}

/// Reads the settings one by one and collects problems and warnings.
struct ConfigReader<'s> {
    settings: &'s Settings,
    user_folder: &'s Path,
    problems: Vec<ConfigProblem>,
    warnings: Vec<Fault>,
    /// Where requests go, if only `./.env` decides that.
    folder_route: Option<String>,
}

impl<'s> ConfigReader<'s> {
    fn new(settings: &'s Settings, user_folder: &'s Path) -> ConfigReader<'s> {
        ConfigReader {
            settings,
            user_folder,
            problems: Vec::new(),
            warnings: Vec::new(),
            folder_route: None,
        }
    }
}

impl ConfigReader<'_> {
    /// Whether leftover processes are kept. In a sandbox `./.env` cannot allow that: such a
    /// process could change the skill after the run.
    fn keeps_leftovers(&mut self, is_sandboxed: bool) -> bool {
        let name = settings::SCRIPT_LEFTOVERS;
        let keeps = self.choice(name, ["kill", "keep"]) == Some(true);
        keeps && !(is_sandboxed && self.is_untrusted(name))
    }

    /// The variables that are no credentials or that `SCRIPT_ENV` names.
    fn script_environment(&mut self, all: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let list = self.trimmed_text(settings::SCRIPT_ENV);
        let named: Vec<&str> =
            list.iter().flat_map(|(list, _)| list.split(',')).map(str::trim).collect();
        let is_name = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if let (Some(invalid), Some((_, source))) = (named.iter().find(|it| !is_name(it)), &list) {
            let message = format!("{source} has `{invalid}`, which is not the name of a variable");
            self.report(Fault::new(message, "separate the names with commas"));
        }
        let is_granted = |name: &OsStr| named.iter().any(|it| name == *it);
        let kept = all.iter().filter(|(name, _)| !settings::is_secret(name) || is_granted(name));
        kept.cloned().collect()
    }

    /// Whether skills are locked. `./.env` can only switch it on.
    fn skills_locked(&mut self) -> bool {
        for (value, source) in self.settings.values(settings::SKILLS_LOCKED) {
            match value.to_str().map(str::trim) {
                Some("on") => return true,
                Some("off") if source.is_untrusted() => {}
                Some("off") => return false,
                _ => self.report(Fault::without_fix(format!("{source} is not on or off"))),
            }
        }
        false
    }

    /// The program in a setting. `./.env` can only switch it off.
    fn program(&mut self, name: &'static str) -> PythonChoice {
        let values = self.settings.values(name);
        let is_off = |value: &OsStr| value.eq_ignore_ascii_case("off");
        if values.first().is_some_and(|(value, source)| source.is_untrusted() && !is_off(value)) {
            let message = format!("{name} in ./.env is ignored: it may only be `off` there");
            let fix = format!("set it in ~/.config/skills-runner/.env; {TRUST_FIX}");
            self.warnings.push(Fault::new(message, fix));
        }
        let mut values = values.into_iter();
        let found = values.find(|(value, source)| is_off(value) || !source.is_untrusted());
        match found {
            None => PythonChoice::Search,
            Some((value, _)) if is_off(&value) => PythonChoice::Off,
            Some((value, _)) if value.as_bytes().contains(&b'/') => {
                PythonChoice::Program(self.path(&value))
            }
            // A name without a slash is looked up in `PATH`, as in a shell.
            Some((value, _)) => {
                let found = find_program(&value, self.settings.variable("PATH"));
                PythonChoice::Program(found.unwrap_or_else(|| PathBuf::from(value)))
            }
        }
    }

    fn shell(&mut self, python: &PythonChoice) -> Option<PathBuf> {
        let find = |name: &str| find_program(name.as_ref(), self.settings.variable("PATH"));
        match self.program(settings::SCRIPT_SHELL) {
            PythonChoice::Program(path) => Some(path),
            PythonChoice::Search if *python != PythonChoice::Off => {
                find("bash").or_else(|| find("sh"))
            }
            PythonChoice::Off | PythonChoice::Search => None,
        }
    }

    /// Resolves a list of paths, separated as in `PATH`.
    fn resolve_paths(&self, value: &OsStr) -> Vec<PathBuf> {
        let named = split_path_list(value).filter(|part| !part.is_empty());
        named.map(|part| self.path(part)).collect()
    }

    /// The path in a setting.
    fn setting_path(&self, name: &'static str) -> Option<PathBuf> {
        let (value, _) = self.settings.value(name)?;
        Some(self.path(&value))
    }

    fn path(&self, value: &OsStr) -> PathBuf {
        self.settings.path(value, self.user_folder)
    }

    /// Whether `./.env` sets the value, whose author may not be the user.
    fn is_untrusted(&self, name: &'static str) -> bool {
        self.settings.value(name).is_some_and(|(_, source)| source.is_untrusted())
    }

    fn seconds(&mut self, name: &'static str, default: u64) -> Duration {
        let most = limits::MAX_SECONDS;
        let expected = format!("a whole number of seconds from 1 to {most}");
        let number = |text: &str| text.parse().ok().filter(|number| (1..=most).contains(number));
        Duration::from_secs(self.parsed(name, &expected, number).unwrap_or(default))
    }

    /// A whole number of at least 1.
    fn positive_number(&mut self, name: &'static str) -> Option<u64> {
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        self.parsed(name, "a positive whole number", number)
    }

    /// Whether the value is the second of two words.
    fn choice(&mut self, name: &'static str, words: [&str; 2]) -> Option<bool> {
        let position = |text: &str| words.iter().position(|word| *word == text);
        self.parsed(name, &words.join(" or "), |text| Some(position(text)? == 1))
    }

    /// The value as `parse` returns it; `None`, which is a problem, if it is not as `expected`.
    fn parsed<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let (text, ValueSource { origin, .. }) = self.trimmed_text(name)?;
        let value = parse(&text);
        if value.is_none() {
            let message = format!("{name}={text} ({origin}) is not {expected}");
            self.report(Fault::without_fix(message));
        }
        value
    }

    /// The trimmed text of a value. A value that is not UTF-8 is a problem.
    fn trimmed_text(&mut self, name: &'static str) -> Option<(String, ValueSource)> {
        let (value, source) = self.settings.value(name)?;
        match value.to_str() {
            Some(text) => Some((text.trim().to_string(), source)),
            None => {
                self.report(Fault::without_fix(format!("{source} is not UTF-8 text")));
                None
            }
        }
    }

    fn report(&mut self, fault: Fault) {
        self.problems.push(ConfigProblem { fault, lines: Vec::new() });
    }
}

impl Config {
    /// Its skills. Links to the home, or to a folder above the home or the working folder, are
    /// refused.
    pub fn skills(&self) -> Skills {
        Skills::of_folders(&self.skills_folders, &self.scripts, self.has_folder_endpoint)
    }

    /// The context of its tools: scripts run without consent, no conversation.
    pub fn tool_context<'w>(
        &'w self,
        skills: &'w Skills,
        cancellation: &'w Cancellation,
    ) -> ToolContext<'w> {
        ToolContext {
            scripts: Some(&self.scripts),
            vision: self.vision,
            window: self.context_window,
            ..ToolContext::of_parts(skills, &self.storage, &self.secrets, cancellation)
        }
    }
}
