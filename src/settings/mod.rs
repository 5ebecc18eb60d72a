//! The table of settings, and where each value comes from.
//!
//! One row a variable: the parser of the command line, `--help`, the
//! environment, `.env` and the test that reads `.env.example` and the README
//! all go by this table. Flags win over the environment, the environment over
//! `.env`, `.env` over the defaults. What the values mean is `config.rs`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::dotenv::Dotenv;
use crate::order;
use crate::secret::HiddenValues;

mod hiding;
mod table;

pub(crate) use hiding::LIKE_A_KEY;
pub use table::*;

/// Where a value was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An option of the command line, as typed there.
    Flag(&'static str),
    /// The process environment.
    Environment,
    /// A line of an environment file.
    File {
        /// The file.
        path: PathBuf,
        /// The line on which the value ends, counted from 1.
        line: usize,
        /// False for `./.env`, which the folder's owner wrote and not
        /// necessarily the user.
        trusted: bool,
        /// The value holds something of the process environment (`${VAR}`).
        is_dependent: bool,
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

/// Whence a value came: the name under which it was found, and where. It shows
/// itself as `LLM_API_KEY (environment)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSource {
    /// One of the names of its row.
    pub name: &'static str,
    /// Where.
    pub origin: Origin,
}

impl ValueSource {
    /// Whether it stands in a file whose owner may be a stranger.
    pub fn is_foreign(&self) -> bool {
        matches!(self.origin, Origin::File { trusted: false, .. })
    }

    /// Whether it holds something of the user's environment though it stands
    /// in a file.
    pub fn is_dependent(&self) -> bool {
        matches!(self.origin, Origin::File { is_dependent: true, .. })
    }

    /// Whether it is the user's: set by the user, or taken from the user's
    /// environment by a reference.
    pub fn is_own(&self) -> bool {
        !self.is_foreign() || self.is_dependent()
    }
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.origin)
    }
}

/// A row with what is set for it, fit to be shown.
#[derive(Debug)]
pub struct ShownSetting {
    /// The row.
    pub setting: &'static Setting,
    /// The value, credentials masked, and whence it came; `None`: not set.
    pub value: Option<(String, ValueSource)>,
}

/// An environment file that has been read.
#[derive(Debug)]
pub struct EnvFile {
    /// Its path, as a message shows it.
    pub path: PathBuf,
    /// Whether the user named it or keeps it at home.
    pub trusted: bool,
    /// What it says.
    pub contents: Dotenv,
    /// Names whose values hold something of the process environment.
    pub dependent: Vec<String>,
}

impl EnvFile {
    fn value(&self, name: &'static str) -> Option<(OsString, ValueSource)> {
        let variable = self.contents.variables.iter().find(|v| v.name == name)?;
        let value = variable.value.as_deref().filter(|v| !v.is_empty())?;
        let origin = Origin::File {
            path: self.path.clone(),
            line: variable.line,
            trusted: self.trusted,
            is_dependent: self.dependent.iter().any(|dependent| dependent == name),
        };
        Some((OsString::from(value), ValueSource { name, origin }))
    }
}

/// All values before they mean anything: flags, environment and files.
#[derive(Default)]
pub struct Settings {
    flags: Vec<(&'static str, OsString, &'static str)>,
    environment: Vec<(OsString, OsString)>,
    files: Vec<EnvFile>,
}

impl Settings {
    /// The environment to look things up in, and to hand to scripts.
    pub fn new(environment: Vec<(OsString, OsString)>) -> Settings {
        Settings { flags: Vec::new(), environment, files: Vec::new() }
    }

    /// The same of names and values, for a program that reads no environment.
    pub fn from_pairs<N: Into<OsString>, V: Into<OsString>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Settings {
        let pairs = pairs.into_iter();
        Settings::new(pairs.map(|(n, v)| (n.into(), v.into())).collect())
    }

    /// Sets `name` by the option `flag`; the last one wins.
    pub fn set_flag(&mut self, name: &'static str, value: OsString, flag: &'static str) {
        self.flags.push((name, value, flag));
    }

    /// Adds a file; earlier files win.
    pub fn add_file(&mut self, file: EnvFile) {
        self.files.push(file);
    }

    /// The files, in the order in which they win.
    pub fn files(&self) -> &[EnvFile] {
        &self.files
    }

    /// The process environment.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// A variable of the process environment itself, set and not empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let (_, value) = self.environment.iter().find(|(key, _)| key == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// The value of a setting and its source. Empty counts as unset.
    pub fn value(&self, name: &'static str) -> Option<(OsString, ValueSource)> {
        self.values(name).into_iter().next()
    }

    /// All values of a setting, in the order in which they win: flags, the
    /// environment, the files; in each of these, its names in their order. What
    /// guards the user wins over a stranger's.
    pub fn values(&self, name: &'static str) -> Vec<(OsString, ValueSource)> {
        let row = setting(name);
        debug_assert!(row.is_some(), "{name} is no row of the table");
        let mut found = Vec::new();
        let flags = self.flags.iter().rev().filter(|(key, ..)| *key == name);
        for (_, value, flag) in flags {
            let origin = Origin::Flag(flag);
            found.push((value.clone(), ValueSource { name, origin }));
        }
        let names = || row.into_iter().flat_map(Setting::names);
        for name in names() {
            if let Some(value) = self.variable(name) {
                let origin = Origin::Environment;
                found.push((value.to_owned(), ValueSource { name, origin }));
            }
        }
        for file in &self.files {
            found.extend(names().filter_map(|name| file.value(name)));
        }
        if row.is_some_and(|row| row.guards) {
            order::sort_by_key(&mut found, |(_, source)| source.is_foreign());
        }
        found
    }

    /// Every row of the table with what is set for it, credentials masked.
    pub fn shown(&self) -> impl Iterator<Item = ShownSetting> {
        SETTINGS.iter().map(|setting| ShownSetting {
            setting,
            value: self.value(setting.name).map(|(value, source)| (setting.shown(&value), source)),
        })
    }

    /// The user's home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// The path that a person wrote: `~` and `~/` expanded, which a shell leaves
    /// as they are in `--option=~/x`, and relative to the working directory.
    pub fn path(&self, value: &OsStr, user_folder: &Path) -> PathBuf {
        let bytes = value.as_bytes();
        let below_home = bytes.strip_prefix(b"~/").or((bytes == b"~").then_some(b""));
        match (below_home, self.home()) {
            (Some(rest), Some(home)) => home.join(OsStr::from_bytes(rest)),
            _ => user_folder.join(value),
        }
    }

    /// A base folder of the XDG specification: the variable, or its default
    /// below the home folder. Relative values are to be ignored.
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
    use super::*;
    use crate::dotenv;
    use crate::secret::MASK;

    fn file(text: &str, path: &str, trusted: bool) -> EnvFile {
        let contents = dotenv::parse(text, &|_| None);
        EnvFile { path: path.into(), trusted, contents, dependent: Vec::new() }
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_files_in_their_order() {
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
    fn an_empty_value_is_no_value() {
        let mut settings = Settings::new(vec![(LLM_MODEL_NAME.into(), OsString::new())]);
        settings.add_file(file("LLM_MODEL_NAME=\n", ".env", false));
        settings.add_file(file("\nLLM_MODEL_NAME=m\n", "home", true));
        let (value, source) = settings.value(LLM_MODEL_NAME).unwrap();
        assert_eq!(value, "m");
        assert_eq!(source.to_string(), "LLM_MODEL_NAME (home line 2)");
    }

    #[test]
    fn a_source_wins_over_the_next_whatever_the_name_in_it() {
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
            "HTTPS_PROXY=a\nhttps_proxy=b\nREQUESTS_CA_BUNDLE=c\nSSL_CERT_FILE=d\n",
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
                "SSL_CERT_FILE (.env line 4)",
                "REQUESTS_CA_BUNDLE (.env line 3)"
            ]
        );
    }

    #[test]
    fn what_is_shown_holds_no_credential() {
        let table = [
            (LLM_API_KEY, "sk-1", MASK),
            (LLM_API_KEY, " none ", "none"),
            (LLM_API_BASE_URL, "sk-abcdef123456", LIKE_A_KEY),
            (LLM_API_BASE_URL, " 'sk-a.b/c:d'", LIKE_A_KEY),
            (LLM_API_BASE_URL, "AIzaSy-_0123", LIKE_A_KEY),
            (LLM_API_BASE_URL, "Bearer eyJh.eyJ.x", LIKE_A_KEY),
            (LLM_API_BASE_URL, "api.example.com", "api.example.com"),
            (LLM_API_BASE_URL, "host:8080", "host:8080"),
            (LLM_API_BASE_URL, "host/v1", "host/v1"),
            (LLM_API_BASE_URL, "localhost", "localhost"),
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
            for row in settings.shown() {
                let expected = (row.setting.name == name).then_some(expected);
                let value = row.value.as_ref().map(|(value, _)| value.as_str());
                assert_eq!(value, expected, "{name}={value:?}");
            }
        }
    }
}
