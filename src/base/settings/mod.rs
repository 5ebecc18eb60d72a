//! The settings: their table, and the source of each value.
//!
//! Each variable is a row of the table. The command line parser, `--help`, the environment,
//! `.env` and a test of `.env.example` and the README use it. [`Settings::values`] alone decides
//! which value takes precedence. The `config` module interprets the values.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::dotenv::Dotenv;
use crate::error::Fault;
use crate::limits;
use crate::secret::HiddenValues;

mod folder_file;
pub mod misspelled;
mod redaction;
mod table;

pub use folder_file::{FolderTrust, TRUST_FIX};
pub use redaction::looks_like_key;
pub use table::*;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A command line option, as the user typed it.
    Flag(&'static str),
    /// The process environment.
    Environment,
    /// A line of an environment file.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The line on which the value ends, from 1.
        line: usize,
        /// False for `./.env`, whose author may not be the user.
        trusted: bool,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Environment => f.write_str("environment"),
            Origin::File { path, line, .. } => write!(f, "{} line {line}", path.display()),
        }
    }
}

/// The source of a value: its variable and its origin. Displayed as `LLM_API_KEY
/// (environment)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSource {
    /// The variable; one of the names in its row.
    pub name: &'static str,
    /// Where the value was found.
    pub origin: Origin,
}

impl ValueSource {
    /// Whether the value is from a file whose author may not be the user.
    pub fn is_untrusted(&self) -> bool {
        matches!(self.origin, Origin::File { trusted: false, .. })
    }
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.origin)
    }
}

/// A setting and its value for display.
#[derive(Debug)]
pub struct ShownSetting {
    /// The row of the table.
    pub setting: &'static Setting,
    /// The value with masked secrets, and its source; `None`: not set.
    pub value: Option<(String, ValueSource)>,
}

/// The contents of an environment file.
#[derive(Debug)]
pub struct EnvFile {
    /// The path, as messages show it.
    pub path: PathBuf,
    /// Whether the file belongs to the user: named with an option, in the configuration folder, or
    /// accepted with `trust`.
    pub trusted: bool,
    /// The parsed contents.
    pub contents: Dotenv,
    /// Notices of omitted contents, with reasons.
    pub notices: Vec<Fault>,
    /// The settings that are not read, as another author may have written the file.
    pub skipped: Vec<&'static str>,
}

impl EnvFile {
    /// The first lines that were skipped.
    pub fn skipped_lines(&self) -> impl Iterator<Item = Fault> {
        let path = self.path.display();
        self.contents.problems.iter().take(limits::LISTED_NAMES).map(move |problem| {
            let message = format!("skipped {path} line {}: {}", problem.line, problem.message);
            Fault::new(message, format!("correct the line in {path}"))
        })
    }

    fn value(&self, name: &'static str) -> Option<(OsString, ValueSource)> {
        let variable = self.contents.variables.iter().find(|v| v.name == name)?;
        let value = variable.value.as_deref().filter(|value| !value.trim().is_empty())?;
        let origin =
            Origin::File { path: self.path.clone(), line: variable.line, trusted: self.trusted };
        Some((OsString::from(value), ValueSource { name, origin }))
    }
}

/// All values before they are interpreted: options, environment and files.
#[derive(Default)]
pub struct Settings {
    flags: Vec<(&'static str, OsString, &'static str)>,
    environment: Vec<(OsString, OsString)>,
    files: Vec<EnvFile>,
}

impl Settings {
    /// Settings from this environment, which scripts also get.
    pub fn new(environment: Vec<(OsString, OsString)>) -> Settings {
        Settings { flags: Vec::new(), environment, files: Vec::new() }
    }

    /// The same from pairs of names and values, for a program that does not read the
    /// environment.
    pub fn from_pairs<N: Into<OsString>, V: Into<OsString>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Settings {
        let pairs = pairs.into_iter();
        Settings::new(pairs.map(|(n, v)| (n.into(), v.into())).collect())
    }

    /// Sets `name` with the option `flag`; the last call takes precedence.
    pub fn set_flag(&mut self, name: &'static str, value: OsString, flag: &'static str) {
        self.flags.push((name, value, flag));
    }

    /// Adds a file, which yields to the files before it.
    pub fn add_file(&mut self, file: EnvFile) {
        self.files.push(file);
    }

    /// The files, the one with the highest precedence first.
    pub fn files(&self) -> &[EnvFile] {
        &self.files
    }

    /// The process environment.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// A variable of the process environment; `None` if it is unset or empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let (_, value) = self.environment.iter().find(|(key, _)| key == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// The value of a setting and its source. An empty or blank value counts as unset.
    pub fn value(&self, name: &'static str) -> Option<(OsString, ValueSource)> {
        self.values(name).into_iter().next()
    }

    /// All values of a setting, the one with the highest precedence first: options, the
    /// environment, `./.env`, the user's `.env`; within each of these in the order of the
    /// setting's names. For settings that protect the user, `./.env` comes last; a destination that
    /// the user sets, too, is the user's choice.
    pub fn values(&self, name: &'static str) -> Vec<(OsString, ValueSource)> {
        let row = setting(name);
        debug_assert!(row.is_some(), "{name} is not in the table");
        let mut found = Vec::new();
        let flags = self.flags.iter().rev().filter(|(key, ..)| *key == name);
        for (_, value, flag) in flags {
            let origin = Origin::Flag(flag);
            found.push((value.clone(), ValueSource { name, origin }));
        }
        let names = || row.into_iter().flat_map(Setting::names);
        for name in names() {
            let value = self.variable(name);
            if let Some(value) = value.filter(|value| !value.as_bytes().trim_ascii().is_empty()) {
                let origin = Origin::Environment;
                found.push((value.to_owned(), ValueSource { name, origin }));
            }
        }
        if row.is_some_and(|row| row.folder_rule != FolderRule::EnvironmentOnly) {
            found.extend(self.file_values(name));
        }
        if row.is_some_and(|row| row.folder_rule.yields_to_user_file()) {
            found.sort_by_key(|(_, source)| source.is_untrusted());
        }
        if row.is_some_and(|row| row.folder_rule == FolderRule::Destination) {
            let is_first =
                |(value, _): &(OsString, _)| found.first().is_some_and(|it| it.0 == *value);
            let own = found.iter().position(|it| is_first(it) && !it.1.is_untrusted());
            if let Some(own) = own {
                found.swap(0, own);
            }
        }
        found
    }

    /// The values in files, also of a setting that is read from the environment only.
    pub fn file_values(&self, name: &'static str) -> Vec<(OsString, ValueSource)> {
        let names = || setting(name).into_iter().flat_map(Setting::names);
        let values = |file: &EnvFile| names().filter_map(|name| file.value(name)).collect();
        self.files.iter().flat_map(|file| -> Vec<_> { values(file) }).collect()
    }

    /// The setting with the address of the endpoint; `None` if no address is set. Which key and
    /// which model name count depends on it.
    pub fn address_setting(&self) -> Option<&'static str> {
        let settings = [LLM_API_BASE_URL, OPENAI_BASE_URL, OLLAMA_HOST];
        settings.into_iter().find(|name| self.value(name).is_some())
    }

    /// Whether this variable contains a credential for the endpoint. The key of another program
    /// that is not sent there is none.
    pub fn is_endpoint_secret(&self, name: &OsStr) -> bool {
        is_secret_setting(name)
            && (name != OPENAI_API_KEY || self.address_setting() == Some(OPENAI_BASE_URL))
    }

    /// All settings with their values, secrets masked.
    pub fn display_values(&self) -> impl Iterator<Item = ShownSetting> {
        SETTINGS.iter().map(|setting| ShownSetting {
            setting,
            value: self
                .value(setting.name)
                .map(|(value, source)| (setting.display_value(&value), source)),
        })
    }

    /// The user's home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// Resolves a path that the user wrote, relative to the working directory. Expands `~`
    /// and `~/`, because a shell leaves them as they are in `--option=~/x`.
    pub fn path(&self, value: &OsStr, user_folder: &Path) -> PathBuf {
        let bytes = value.as_bytes();
        let below_home = bytes.strip_prefix(b"~/").or((bytes == b"~").then_some(b""));
        match (below_home, self.home()) {
            (Some(rest), Some(home)) => home.join(OsStr::from_bytes(rest)),
            _ => user_folder.join(value),
        }
    }

    /// The folder of the user's skills, whether it exists or not.
    pub fn user_skills_folder(&self) -> Option<PathBuf> {
        let shared = self.xdg_folder("XDG_DATA_HOME", ".local/share")?;
        Some(shared.join("skills-runner/skills"))
    }

    /// A base folder of the XDG specification: the variable, or its default below the home
    /// folder. The specification says to ignore relative values.
    pub fn xdg_folder(&self, variable: &str, default: &str) -> Option<PathBuf> {
        match self.variable(variable).map(Path::new) {
            Some(path) if path.is_absolute() => Some(path.to_path_buf()),
            _ => self.home().map(|home| home.join(default)),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("environment", &HiddenValues(&self.environment))
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::redaction::LOOKS_LIKE_KEY;
    use super::*;
    use crate::dotenv;
    use crate::secret::MASK;

    fn file(text: &str, path: &str, trusted: bool) -> EnvFile {
        let contents = dotenv::parse(text, &|_| None);
        EnvFile { path: path.into(), trusted, contents, notices: Vec::new(), skipped: Vec::new() }
    }

    #[test]
    fn flags_take_precedence_over_the_environment_and_the_environment_over_files() {
        let mut settings = Settings::new(vec![(LLM_MODEL_NAME.into(), "from-environment".into())]);
        settings.add_file(file("LLM_MODEL_NAME=a\nLLM_API_BASE_URL=first\n", ".env", false));
        settings.add_file(file("SCRIPT_PYTHON=p\nLLM_API_BASE_URL=second", "home", true));
        let text = |name| settings.value(name).map(|(value, _)| value.into_string().unwrap());
        assert_eq!(text(LLM_MODEL_NAME).as_deref(), Some("from-environment"));
        assert_eq!(text(LLM_API_BASE_URL).as_deref(), Some("first"));
        assert_eq!(text(SCRIPT_PYTHON).as_deref(), Some("p"));
        assert_eq!(text(LLM_API_KEY), None);
        settings.set_flag(LLM_MODEL_NAME, "from-flag".into(), "--model");
        let (value, source) = settings.value(LLM_MODEL_NAME).unwrap();
        assert_eq!((value, source.origin), ("from-flag".into(), Origin::Flag("--model")));
    }

    #[test]
    fn empty_values_are_ignored() {
        let mut settings = Settings::new(vec![(LLM_MODEL_NAME.into(), OsString::new())]);
        settings.add_file(file("LLM_MODEL_NAME=\n", ".env", false));
        settings.add_file(file("\nLLM_MODEL_NAME=m\n", "home", true));
        let (value, source) = settings.value(LLM_MODEL_NAME).unwrap();
        assert_eq!(value, "m");
        assert_eq!(source.to_string(), "LLM_MODEL_NAME (home line 2)");
    }

    #[test]
    fn destination_that_the_user_sets_too_is_trusted() {
        for (own, is_trusted) in [("http://a/v1", true), ("http://b/v1", false)] {
            let mut settings = Settings::new(Vec::new());
            settings.add_file(file("LLM_API_BASE_URL=http://a/v1\nLLM_API_KEY=k\n", ".env", false));
            let lines = format!("LLM_API_BASE_URL={own}\nLLM_API_KEY=k\n");
            settings.add_file(file(&lines, "home", true));
            let (value, source) = settings.value(LLM_API_BASE_URL).unwrap();
            assert_eq!((value, !source.is_untrusted()), ("http://a/v1".into(), is_trusted));
            assert!(settings.value(LLM_API_KEY).unwrap().1.is_untrusted(), "no destination");
        }
    }

    #[test]
    fn variables_of_other_programs_are_read_from_the_environment_only() {
        let mut settings = Settings::new(vec![(OLLAMA_HOST.into(), "h".into())]);
        let lines = "OPENAI_BASE_URL=u\nOPENAI_API_KEY=k\nOPENAI_MODEL=m\nOLLAMA_HOST=i\n";
        settings.add_file(file(lines, "home", true));
        for name in [OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL] {
            assert_eq!(settings.value(name), None);
            assert_eq!(settings.file_values(name).len(), 1);
        }
        assert_eq!(settings.address_setting(), Some(OLLAMA_HOST));
        assert_eq!(settings.value(OLLAMA_HOST).unwrap().0, "h");
    }

    #[test]
    fn a_source_takes_precedence_over_the_next_for_all_names() {
        let mut settings = Settings::new(vec![
            ("https_proxy".into(), OsString::new()),
            ("HTTPS_PROXY".into(), "upper".into()),
            ("CURL_CA_BUNDLE".into(), "curl".into()),
        ]);
        let names = |settings: &Settings, name| {
            let values = settings.values(name).into_iter();
            values.map(|(_, source)| source.to_string()).collect::<Vec<_>>()
        };
        settings.add_file(file(
            "HTTPS_PROXY=a\nhttps_proxy=b\nREQUESTS_CA_BUNDLE=c\nSSL_CERT_FILE=d\nssl_cert_file=e\n",
            ".env",
            false,
        ));
        assert_eq!(
            names(&settings, HTTPS_PROXY),
            ["HTTPS_PROXY (environment)", "https_proxy (.env line 2)", "HTTPS_PROXY (.env line 1)"]
        );
        assert_eq!(
            names(&settings, SSL_CERT_FILE),
            [
                "CURL_CA_BUNDLE (environment)",
                "ssl_cert_file (.env line 5)",
                "SSL_CERT_FILE (.env line 4)",
                "REQUESTS_CA_BUNDLE (.env line 3)"
            ]
        );
    }

    #[test]
    fn displayed_values_contain_no_credential() {
        let table = [
            (LLM_API_KEY, "sk-1", MASK),
            (LLM_API_KEY, " none ", "none"),
            (LLM_API_BASE_URL, "sk-abcdef123456", LOOKS_LIKE_KEY),
            (LLM_API_BASE_URL, " 'sk-a.b/c:d'", LOOKS_LIKE_KEY),
            (LLM_API_BASE_URL, "AIzaSy-_0123", LOOKS_LIKE_KEY),
            (LLM_API_BASE_URL, "Bearer eyJh.eyJ.x", LOOKS_LIKE_KEY),
            (LLM_API_BASE_URL, "api.example.com", "api.example.com"),
            (LLM_API_BASE_URL, "host:8080", "host:8080"),
            (LLM_API_BASE_URL, "host/v1", "host/v1"),
            (LLM_API_BASE_URL, "localhost", "localhost"),
            (OPENAI_BASE_URL, "sk-abcdef123456", LOOKS_LIKE_KEY),
            (OPENAI_BASE_URL, "https://u:p@h/v1?key=1", "https://[secret]@h/v1?[secret]"),
            (OPENAI_API_KEY, "sk-1", MASK),
            (OLLAMA_HOST, "u:p@machine", "[secret]@machine"),
            (OLLAMA_HOST, "machine", "machine"),
            (HTTP_PROXY, "proxyhost", "proxyhost"),
            (LLM_EXTRA_HEADERS, "{\"a\": \"b\"}", MASK),
            (LLM_API_KEY_FILE, "~/key", "~/key"),
            (HTTPS_PROXY, "http://u:p@host:3128", "http://[secret]@host:3128"),
            (ALL_PROXY, "u:p@x@host", "[secret]@host"),
            (HTTP_PROXY, "u:a://b@host", "[secret]@host"),
            (HTTP_PROXY, "sk://host", "sk://host"),
            (LLM_API_BASE_URL, "https://h/v1?key=1", "https://h/v1?[secret]"),
            (NO_PROXY, "a, b", "a, b"),
        ];
        for (name, value, expected) in table {
            let settings = Settings::new(vec![(name.into(), value.into())]);
            for row in settings.display_values() {
                let expected = (row.setting.name == name).then_some(expected);
                let value = row.value.as_ref().map(|(value, _)| value.as_str());
                assert_eq!(value, expected, "{name}={value:?}");
            }
        }
    }
}
