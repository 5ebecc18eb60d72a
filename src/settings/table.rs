//! The rows of the table of settings: every variable, what it is for, and who
//! may see it.

use std::ffi::OsStr;

/// One row of the table.
#[derive(Debug)]
pub struct Setting {
    /// The variable's name.
    pub name: &'static str,
    /// Another spelling of it, which wins over `name` within one source.
    first: Option<&'static str>,
    /// What other tools call the same; looked up last, in this order.
    aliases: &'static [&'static str],
    /// The default as the help shows it; empty where there is none.
    pub default: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Who may see the value.
    pub privacy: Privacy,
    /// It guards the user: a stranger's file does not win over a file of the user's.
    pub(super) guards: bool,
}

/// Who may see a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privacy {
    /// Everybody.
    Open,
    /// Everybody but for the login and the query of the address that it is.
    /// Scripts get it whole: they need their proxy.
    Address,
    /// Nobody: it holds a credential and is kept from scripts.
    Secret,
}

impl Setting {
    /// The names under which it is looked up, in their order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let aliases = self.aliases.iter().copied();
        self.first.into_iter().chain([self.name]).chain(aliases)
    }
}

const fn row(name: &'static str, default: &'static str, about: &'static str) -> Setting {
    Setting {
        name,
        first: None,
        aliases: &[],
        default,
        about,
        privacy: Privacy::Open,
        guards: false,
    }
}

const fn guard(name: &'static str, default: &'static str, about: &'static str) -> Setting {
    Setting { guards: true, ..row(name, default, about) }
}

const fn secret(name: &'static str, about: &'static str) -> Setting {
    Setting { privacy: Privacy::Secret, ..row(name, "", about) }
}

const fn proxy(name: &'static str, lower: &'static str, about: &'static str) -> Setting {
    Setting { first: Some(lower), privacy: Privacy::Address, ..row(name, "", about) }
}

/// The value of `LLM_API_KEY` that sends none.
pub(crate) const NO_KEY: &str = "none";

/// The endpoint's credential.
pub(crate) const LLM_API_KEY: &str = "LLM_API_KEY";
/// A file with the credential.
pub(crate) const LLM_API_KEY_FILE: &str = "LLM_API_KEY_FILE";
/// The endpoint's address.
pub(crate) const LLM_API_BASE_URL: &str = "LLM_API_BASE_URL";
/// The model.
pub(crate) const LLM_MODEL_NAME: &str = "LLM_MODEL_NAME";
/// Fields of every request.
pub(crate) const LLM_EXTRA_BODY: &str = "LLM_EXTRA_BODY";
/// Headers of every request.
pub(crate) const LLM_EXTRA_HEADERS: &str = "LLM_EXTRA_HEADERS";
/// Longest silence while reading a reply.
pub(crate) const LLM_TIMEOUT_SECONDS: &str = "LLM_TIMEOUT_SECONDS";
/// Tokens that the model reads at most.
pub(crate) const LLM_CONTEXT_WINDOW: &str = "LLM_CONTEXT_WINDOW";
/// Whether the model sees images.
pub(crate) const LLM_VISION: &str = "LLM_VISION";
/// A file of instructions.
pub(crate) const SYSTEM_PROMPT_PATH: &str = "SYSTEM_PROMPT_PATH";
/// The file of facts.
pub(crate) const MEMORY_PATH: &str = "MEMORY_PATH";
/// The folder of daily notes.
pub(crate) const NOTES_FOLDER_PATH: &str = "NOTES_FOLDER_PATH";
/// The folder of saved conversations.
pub(crate) const SESSIONS_PATH: &str = "SESSIONS_PATH";
/// Folders of skills.
pub(crate) const SKILLS_FOLDER_PATH: &str = "SKILLS_FOLDER_PATH";
/// A script's limit.
pub(crate) const SCRIPT_TIMEOUT_SECONDS: &str = "SCRIPT_TIMEOUT_SECONDS";
/// The interpreter for skills without a venv.
pub(crate) const SCRIPT_PYTHON: &str = "SCRIPT_PYTHON";
/// What happens to processes that a script leaves behind.
pub(crate) const SCRIPT_LEFTOVERS: &str = "SCRIPT_LEFTOVERS";
/// Whether scripts run in a sandbox.
pub(crate) const SCRIPT_SANDBOX: &str = "SCRIPT_SANDBOX";
/// More folders that sandboxed scripts write in.
pub(crate) const SCRIPT_SANDBOX_WRITE: &str = "SCRIPT_SANDBOX_WRITE";
/// More files and folders that sandboxed scripts read.
pub(crate) const SCRIPT_SANDBOX_READ: &str = "SCRIPT_SANDBOX_READ";

/// Certificates to trust.
pub(crate) const SSL_CERT_FILE: &str = "SSL_CERT_FILE";
/// The proxy for https endpoints.
pub(crate) const HTTPS_PROXY: &str = "HTTPS_PROXY";
/// The proxy for http endpoints.
pub(crate) const HTTP_PROXY: &str = "HTTP_PROXY";
/// The proxy where neither of these is set.
pub(crate) const ALL_PROXY: &str = "ALL_PROXY";
/// Hosts that are reached without a proxy.
pub(crate) const NO_PROXY: &str = "NO_PROXY";

/// Every variable that the program reads.
pub static SETTINGS: &[Setting] = &[
    secret(LLM_API_KEY, "the endpoint's key; a loopback endpoint needs none; `none` sends none"),
    row(LLM_API_KEY_FILE, "", "a file that holds the key, where LLM_API_KEY is not set"),
    Setting {
        privacy: Privacy::Address,
        ..row(LLM_API_BASE_URL, "", "the endpoint's address, such as https://api.openai.com/v1")
    },
    row(LLM_MODEL_NAME, "", "the model, as the endpoint names it"),
    row(
        LLM_EXTRA_BODY,
        "",
        "JSON object of fields for every request, such as {\"temperature\": 0}",
    ),
    secret(LLM_EXTRA_HEADERS, "JSON object of headers for every request; the values are secret"),
    row(
        LLM_TIMEOUT_SECONDS,
        "120",
        "longest silence while reading a reply; five times that before its first byte",
    ),
    row(
        LLM_CONTEXT_WINDOW,
        "",
        "tokens that the model reads; when set, a conversation is summarized at 80 % of it",
    ),
    row(LLM_VISION, "on", "`off`: the model sees no images, and they are refused with a message"),
    row(
        SYSTEM_PROMPT_PATH,
        "",
        "a file of instructions instead of the built-in ones, with placeholders",
    ),
    row(MEMORY_PATH, "", "the file of facts that the model remembers; unset: no memory"),
    row(NOTES_FOLDER_PATH, "", "the folder of daily notes, YYYY-MM-DD.md; unset: none"),
    row(
        SESSIONS_PATH,
        "$XDG_STATE_HOME/skills-runner/sessions",
        "the folder of saved conversations",
    ),
    row(
        SKILLS_FOLDER_PATH,
        "./skills, then $XDG_DATA_HOME/skills-runner/skills, then those that came with the program",
        "the skills folder; several are separated as in PATH, the first wins a name",
    ),
    row(SCRIPT_TIMEOUT_SECONDS, "30", "longest run of a script, in seconds"),
    row(
        SCRIPT_PYTHON,
        "python3 from PATH",
        "interpreter for skills without a venv; `off`: such skills cannot run scripts",
    ),
    guard(
        SCRIPT_LEFTOVERS,
        "kill",
        "`keep`: processes that a script leaves behind after a normal end live on",
    ),
    guard(
        SCRIPT_SANDBOX,
        "off",
        "`on`: scripts write in their skill only, read little else, and have no network",
    ),
    guard(
        SCRIPT_SANDBOX_WRITE,
        "",
        "more folders for sandboxed scripts to read and write in, separated as in PATH",
    ),
    guard(
        SCRIPT_SANDBOX_READ,
        "",
        "more files and folders for sandboxed scripts to read, separated as in PATH",
    ),
    Setting {
        aliases: &["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"],
        ..row(SSL_CERT_FILE, "", "certificates (PEM) to trust instead of the built-in ones")
    },
    proxy(
        HTTPS_PROXY,
        "https_proxy",
        "proxy for https endpoints: http://, https://, socks5://, socks5h://",
    ),
    proxy(HTTP_PROXY, "http_proxy", "proxy for http endpoints"),
    proxy(ALL_PROXY, "all_proxy", "proxy where the one above for the endpoint is not set"),
    Setting {
        first: Some("no_proxy"),
        ..row(
            NO_PROXY,
            "",
            "hosts, domains and networks without a proxy; this machine never has one",
        )
    },
];

/// The row with this name.
pub(crate) fn setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|row| row.name == name)
}

/// Whether this is a name of a setting that holds a credential.
pub fn is_secret(name: &OsStr) -> bool {
    let mut rows = SETTINGS.iter().filter(|row| row.privacy == Privacy::Secret);
    rows.any(|row| row.names().any(|own| name == own))
}
