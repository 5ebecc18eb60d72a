//! The table of settings, and where each value comes from.
//!
//! One row a variable: the parser of the command line, `--help`, the
//! environment, `.env` and the test that reads `.env.example` and the README
//! all go by this table. Flags win over the environment, the environment over
//! `.env`, `.env` over the defaults. What the values mean is `config.rs`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::dotenv::Dotenv;

/// One row of the table.
#[derive(Debug)]
pub struct Setting {
    /// The variable's name.
    pub name: &'static str,
    /// The default as the help shows it; empty where there is none.
    pub default: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Kept out of the environment of scripts: it holds a credential.
    pub secret: bool,
}

const fn row(name: &'static str, default: &'static str, about: &'static str) -> Setting {
    Setting {
        name,
        default,
        about,
        secret: false,
    }
}

const fn secret(name: &'static str, about: &'static str) -> Setting {
    Setting {
        name,
        default: "",
        about,
        secret: true,
    }
}

/// The endpoint's credential.
pub const LLM_API_KEY: &str = "LLM_API_KEY";
/// The endpoint's address.
pub const LLM_API_BASE_URL: &str = "LLM_API_BASE_URL";
/// The model.
pub const LLM_MODEL_NAME: &str = "LLM_MODEL_NAME";
/// Longest silence while reading a reply.
pub const LLM_TIMEOUT_SECONDS: &str = "LLM_TIMEOUT_SECONDS";
/// Folders of skills.
pub const SKILLS_FOLDER_PATH: &str = "SKILLS_FOLDER_PATH";
/// A script's limit.
pub const SCRIPT_TIMEOUT_SECONDS: &str = "SCRIPT_TIMEOUT_SECONDS";
/// The interpreter for skills without a venv.
pub const SCRIPT_PYTHON: &str = "SCRIPT_PYTHON";
/// What happens to processes that a script leaves behind.
pub const SCRIPT_LEFTOVERS: &str = "SCRIPT_LEFTOVERS";

/// Every variable that the program reads.
pub static SETTINGS: &[Setting] = &[
    secret(
        LLM_API_KEY,
        "the endpoint's key; a loopback endpoint needs none; `none` sends none",
    ),
    row(
        LLM_API_BASE_URL,
        "",
        "the endpoint's address, such as https://api.openai.com/v1",
    ),
    row(LLM_MODEL_NAME, "", "the model, as the endpoint names it"),
    row(
        LLM_TIMEOUT_SECONDS,
        "120",
        "longest silence while reading a reply; five times that before its first byte",
    ),
    row(
        SKILLS_FOLDER_PATH,
        "./skills, then $XDG_DATA_HOME/skills-runner/skills",
        "the skills folder; several are separated as in PATH, the first wins a name",
    ),
    row(
        SCRIPT_TIMEOUT_SECONDS,
        "30",
        "longest run of a script, in seconds",
    ),
    row(
        SCRIPT_PYTHON,
        "python3 from PATH",
        "interpreter for skills without a venv; `off`: such skills cannot run scripts",
    ),
    row(
        SCRIPT_LEFTOVERS,
        "kill",
        "`keep`: processes that a script leaves behind after a normal end live on",
    ),
];

/// The row with this name.
pub fn setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|row| row.name == name)
}

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

/// All values before they mean anything: flags, environment and files.
#[derive(Debug, Default)]
pub struct Settings {
    flags: Vec<(&'static str, OsString, &'static str)>,
    environment: Vec<(OsString, OsString)>,
    files: Vec<EnvFile>,
}

impl Settings {
    /// The environment to look things up in, and to hand to scripts.
    pub fn new(environment: Vec<(OsString, OsString)>) -> Settings {
        Settings {
            flags: Vec::new(),
            environment,
            files: Vec::new(),
        }
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

    /// The value of a setting and its origin. Empty counts as unset.
    pub fn value(&self, name: &str) -> Option<(OsString, Origin)> {
        debug_assert!(setting(name).is_some(), "{name} is no row of the table");
        if let Some((_, value, flag)) = self.flags.iter().rev().find(|(key, ..)| *key == name) {
            return Some((value.clone(), Origin::Flag(flag)));
        }
        if let Some(value) = self.variable(name) {
            return Some((value.to_owned(), Origin::Environment));
        }
        self.files.iter().find_map(|file| {
            let variable = file.contents.variables.iter().find(|v| v.name == name)?;
            let value = variable
                .value
                .as_deref()
                .filter(|value| !value.is_empty())?;
            let origin = Origin::File {
                path: file.path.clone(),
                line: variable.line,
                trusted: file.trusted,
                is_dependent: file.dependent.iter().any(|dependent| dependent == name),
            };
            Some((OsString::from(value), origin))
        })
    }

    /// The user's home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.variable("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dotenv;

    fn file(text: &str, path: &str, trusted: bool) -> EnvFile {
        let contents = dotenv::parse(text, &|_| None);
        EnvFile {
            path: path.into(),
            trusted,
            contents,
            dependent: Vec::new(),
        }
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_files_in_their_order() {
        let mut settings = Settings::new(vec![(LLM_MODEL_NAME.into(), "from-environment".into())]);
        settings.add_file(file(
            "LLM_MODEL_NAME=a\nLLM_API_BASE_URL=first\n",
            ".env",
            false,
        ));
        settings.add_file(file(
            "SCRIPT_PYTHON=p\nLLM_API_BASE_URL=second",
            "home",
            true,
        ));
        let text = |name| {
            settings
                .value(name)
                .map(|(value, _)| value.into_string().unwrap())
        };
        assert_eq!(text(LLM_MODEL_NAME).as_deref(), Some("from-environment"));
        assert_eq!(text(LLM_API_BASE_URL).as_deref(), Some("first"));
        assert_eq!(text(SCRIPT_PYTHON).as_deref(), Some("p"));
        assert_eq!(text(LLM_API_KEY), None);
        settings.set_flag(LLM_MODEL_NAME, "from-flag".into(), "--model");
        let (value, origin) = settings.value(LLM_MODEL_NAME).unwrap();
        assert_eq!(
            (value, origin),
            ("from-flag".into(), Origin::Flag("--model"))
        );
    }

    #[test]
    fn an_empty_value_is_no_value() {
        let mut settings = Settings::new(vec![(LLM_MODEL_NAME.into(), OsString::new())]);
        settings.add_file(file("LLM_MODEL_NAME=\n", ".env", false));
        settings.add_file(file("\nLLM_MODEL_NAME=m\n", "home", true));
        let (value, origin) = settings.value(LLM_MODEL_NAME).unwrap();
        assert_eq!(value, "m");
        assert_eq!(origin.to_string(), "home line 2");
    }
}
