//! The table of settings: each variable, its description, and its privacy.

use std::ffi::OsStr;

/// A setting: one row of the table.
#[derive(Debug)]
pub struct Setting {
    /// The name of the variable.
    pub name: &'static str,
    /// Another spelling, which takes precedence over `name` within one source.
    preferred_spelling: Option<&'static str>,
    /// Names of the same setting in other tools; looked up last, in this order.
    aliases: &'static [&'static str],
    /// The default as the help shows it; empty if there is none.
    pub default: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Which part of the value may be displayed.
    pub privacy: Privacy,
    /// Whether the setting protects the user: `./.env` does not override the user's own file.
    pub(super) protects_user: bool,
}

/// Which part of a value may be displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privacy {
    /// All of it.
    Open,
    /// All except the login and the query of an address. Scripts get the whole value: they
    /// need their proxy.
    Address,
    /// Nothing: the value is a credential, which scripts do not get.
    Secret,
}

impl Setting {
    /// The names of the setting, in the order in which they are looked up.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let aliases = self.aliases.iter().copied();
        self.preferred_spelling.into_iter().chain([self.name]).chain(aliases)
    }
}

const fn row(name: &'static str, default: &'static str, about: &'static str) -> Setting {
    Setting {
        name,
        preferred_spelling: None,
        aliases: &[],
        default,
        about,
        privacy: Privacy::Open,
        protects_user: false,
    }
}

const fn protective_row(name: &'static str, default: &'static str, about: &'static str) -> Setting {
    Setting { protects_user: true, ..row(name, default, about) }
}

const fn secret(name: &'static str, about: &'static str) -> Setting {
    Setting { privacy: Privacy::Secret, ..row(name, "", about) }
}

const fn proxy(name: &'static str, lower: &'static str, about: &'static str) -> Setting {
    Setting { preferred_spelling: Some(lower), privacy: Privacy::Address, ..row(name, "", about) }
}

/// The value of `LLM_API_KEY` that means: send no key.
pub(crate) const NO_KEY: &str = "none";

/// The endpoint's key.
pub(crate) const LLM_API_KEY: &str = "LLM_API_KEY";
/// The file that contains the key.
pub(crate) const LLM_API_KEY_FILE: &str = "LLM_API_KEY_FILE";
/// The endpoint's address.
pub(crate) const LLM_API_BASE_URL: &str = "LLM_API_BASE_URL";
/// The name of the model.
pub(crate) const LLM_MODEL_NAME: &str = "LLM_MODEL_NAME";
/// Additional fields for every request.
pub(crate) const LLM_EXTRA_BODY: &str = "LLM_EXTRA_BODY";
/// Additional headers for every request.
pub(crate) const LLM_EXTRA_HEADERS: &str = "LLM_EXTRA_HEADERS";
/// The longest silence while a reply is read.
pub(crate) const LLM_TIMEOUT_SECONDS: &str = "LLM_TIMEOUT_SECONDS";
/// The size of the model's context in tokens.
pub(crate) const LLM_CONTEXT_WINDOW: &str = "LLM_CONTEXT_WINDOW";
/// Whether images are sent to the model.
pub(crate) const LLM_VISION: &str = "LLM_VISION";
/// The file that replaces the built-in system prompt.
pub(crate) const SYSTEM_PROMPT_PATH: &str = "SYSTEM_PROMPT_PATH";
/// The facts file.
pub(crate) const MEMORY_PATH: &str = "MEMORY_PATH";
/// The folder of daily notes.
pub(crate) const NOTES_FOLDER_PATH: &str = "NOTES_FOLDER_PATH";
/// The folder of sessions.
pub(crate) const SESSIONS_PATH: &str = "SESSIONS_PATH";
/// The skills folders.
pub(crate) const SKILLS_FOLDER_PATH: &str = "SKILLS_FOLDER_PATH";
/// The time limit of a script.
pub(crate) const SCRIPT_TIMEOUT_SECONDS: &str = "SCRIPT_TIMEOUT_SECONDS";
/// The interpreter for skills without a venv.
pub(crate) const SCRIPT_PYTHON: &str = "SCRIPT_PYTHON";
/// What happens to processes that a script leaves behind.
pub(crate) const SCRIPT_LEFTOVERS: &str = "SCRIPT_LEFTOVERS";
/// Whether scripts run in a sandbox.
pub(crate) const SCRIPT_SANDBOX: &str = "SCRIPT_SANDBOX";
/// Additional folders that sandboxed scripts may write in.
pub(crate) const SCRIPT_SANDBOX_WRITE: &str = "SCRIPT_SANDBOX_WRITE";
/// Additional files and folders that sandboxed scripts may read.
pub(crate) const SCRIPT_SANDBOX_READ: &str = "SCRIPT_SANDBOX_READ";

/// The file of trusted certificates.
pub(crate) const SSL_CERT_FILE: &str = "SSL_CERT_FILE";
/// The proxy for https endpoints.
pub(crate) const HTTPS_PROXY: &str = "HTTPS_PROXY";
/// The proxy for http endpoints.
pub(crate) const HTTP_PROXY: &str = "HTTP_PROXY";
/// The proxy if the variable for the endpoint's scheme is not set.
pub(crate) const ALL_PROXY: &str = "ALL_PROXY";
/// Hosts that are reached without a proxy.
pub(crate) const NO_PROXY: &str = "NO_PROXY";

/// All settings.
pub static SETTINGS: &[Setting] = &[
    secret(LLM_API_KEY, "key of the endpoint; not needed on loopback; `none`: send no key"),
    row(LLM_API_KEY_FILE, "", "file that contains the key, used if LLM_API_KEY is not set"),
    Setting {
        privacy: Privacy::Address,
        ..row(LLM_API_BASE_URL, "", "address of the endpoint, such as https://api.openai.com/v1")
    },
    row(LLM_MODEL_NAME, "", "name of the model, as the endpoint lists it"),
    row(
        LLM_EXTRA_BODY,
        "",
        "JSON object of additional fields for every request, such as {\"temperature\": 0}",
    ),
    secret(
        LLM_EXTRA_HEADERS,
        "JSON object of additional headers for every request; the values are secret",
    ),
    row(
        LLM_TIMEOUT_SECONDS,
        "120",
        "longest silence while a reply is read; five times that before its first byte",
    ),
    row(
        LLM_CONTEXT_WINDOW,
        "",
        "size of the model's context in tokens; if set, conversations are summarized at 80 % of it",
    ),
    row(
        LLM_VISION,
        "on",
        "`off`: images are not sent to the model; they are refused with a message",
    ),
    row(
        SYSTEM_PROMPT_PATH,
        "",
        "file that replaces the built-in system prompt; it may contain placeholders",
    ),
    row(MEMORY_PATH, "", "file of facts that the model remembers; unset: no memory"),
    row(NOTES_FOLDER_PATH, "", "folder of daily notes, YYYY-MM-DD.md; unset: no notes"),
    row(SESSIONS_PATH, "$XDG_STATE_HOME/skills-runner/sessions", "folder of saved conversations"),
    row(
        SKILLS_FOLDER_PATH,
        "./skills, then $XDG_DATA_HOME/skills-runner/skills, then those installed with the program",
        "skills folders, separated as in PATH; of skills with the same name the first is used",
    ),
    row(SCRIPT_TIMEOUT_SECONDS, "30", "time limit of a script, in seconds"),
    row(
        SCRIPT_PYTHON,
        "python3 from PATH",
        "interpreter for skills without a venv; `off`: they cannot run scripts",
    ),
    protective_row(
        SCRIPT_LEFTOVERS,
        "kill",
        "`keep`: processes that a script leaves running after a normal end are not killed",
    ),
    protective_row(
        SCRIPT_SANDBOX,
        "off",
        "`on`: scripts write only in their skill's folder, read little else, and have no network",
    ),
    protective_row(
        SCRIPT_SANDBOX_WRITE,
        "",
        "folders that sandboxed scripts may also read and write in, separated as in PATH",
    ),
    protective_row(
        SCRIPT_SANDBOX_READ,
        "",
        "files and folders that sandboxed scripts may also read, separated as in PATH",
    ),
    Setting {
        aliases: &["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"],
        ..row(SSL_CERT_FILE, "", "file of certificates (PEM) that replace the built-in ones")
    },
    proxy(
        HTTPS_PROXY,
        "https_proxy",
        "proxy for https endpoints: http://, https://, socks5://, socks5h://",
    ),
    proxy(HTTP_PROXY, "http_proxy", "proxy for http endpoints"),
    proxy(ALL_PROXY, "all_proxy", "proxy if the variable for the endpoint's scheme is not set"),
    Setting {
        preferred_spelling: Some("no_proxy"),
        ..row(NO_PROXY, "", "hosts, domains and networks without a proxy; loopback never uses one")
    },
];

/// Returns the setting with this name.
pub(crate) fn setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|row| row.name == name)
}

/// Whether this is the name of a setting that contains a credential.
pub fn is_secret(name: &OsStr) -> bool {
    let mut rows = SETTINGS.iter().filter(|row| row.privacy == Privacy::Secret);
    rows.any(|row| row.names().any(|own| name == own))
}
