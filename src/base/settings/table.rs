//! The table of settings: each variable, its description, its privacy, and what `./.env` may do
//! with it.

use std::ffi::OsStr;

/// A setting: one row of the table.
#[derive(Debug)]
pub struct Setting {
    /// The name of the variable.
    pub name: &'static str,
    /// The name and other spellings of it, in the order in which they are looked up.
    names: &'static [&'static str],
    /// The default as the help shows it; empty if there is none.
    pub default: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Which part of the value may be displayed.
    pub privacy: Privacy,
    /// The rule for the setting in `./.env`.
    pub folder_rule: FolderRule,
}

/// What `./.env` may do with a setting: the author of the working folder may not be the user.
/// Options, the environment and other files may do anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderRule {
    /// Nothing, and no other file may set it: the variable belongs to other programs, too, whose
    /// lines in such a file are not meant for this one.
    EnvironmentOnly,
    /// Nothing; the user's own files may set it.
    UserFilesOnly,
    /// Set it to any value.
    Any,
    /// Choose where requests go. The user's own credentials and variables do not go there.
    Destination,
    /// Set a part of each request. If `./.env` chooses a destination, too, the part contains
    /// none of the user's variables.
    Sent,
    /// Name a visible place in the working folder.
    Place,
    /// The same, for a list of folders with skills, which may be in `.agents` or `.claude`.
    SkillsPlaces,
    /// Switch it off.
    SwitchOff,
    /// Switch it on.
    SwitchOn,
    /// Change how scripts run, unless the user's own file does. This value restricts them.
    Scripts(&'static str),
    /// Grant visible paths in the working folder to sandboxed scripts, unless the user's own
    /// file grants others.
    Grant,
}

impl FolderRule {
    /// Whether the user's own file takes precedence over `./.env`.
    pub(super) fn yields_to_user_file(self) -> bool {
        matches!(self, FolderRule::Scripts(_) | FolderRule::Grant)
    }

    /// The value that restricts the program.
    pub(super) fn strict_value(self) -> Option<&'static str> {
        match self {
            FolderRule::SwitchOff => Some("off"),
            FolderRule::SwitchOn => Some("on"),
            FolderRule::Scripts(value) => Some(value),
            _ => None,
        }
    }
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
        let others = self.names.iter().copied();
        others.chain(self.names.is_empty().then_some(self.name))
    }

    /// Whether the endpoint, the network or a tool's result gets the value or what is there.
    pub(super) fn is_disclosed(&self) -> bool {
        use FolderRule::{Grant, Place, Sent, SkillsPlaces};
        let is_place = matches!(self.folder_rule, Grant | Place | SkillsPlaces);
        self.privacy != Privacy::Open || is_place || self.folder_rule == Sent
    }
}

const fn row(
    name: &'static str,
    folder_rule: FolderRule,
    default: &'static str,
    about: &'static str,
) -> Setting {
    Setting { name, names: &[], default, about, privacy: Privacy::Open, folder_rule }
}

impl Setting {
    const fn private(self, privacy: Privacy) -> Setting {
        Setting { privacy, ..self }
    }

    const fn named(self, names: &'static [&'static str]) -> Setting {
        Setting { names, ..self }
    }
}

/// The value of `LLM_API_KEY` that means: send no key.
pub const NO_KEY: &str = "none";

/// The endpoint's key.
pub const LLM_API_KEY: &str = "LLM_API_KEY";
/// The file that contains the key.
pub const LLM_API_KEY_FILE: &str = "LLM_API_KEY_FILE";
/// The endpoint's address.
pub const LLM_API_BASE_URL: &str = "LLM_API_BASE_URL";
/// The endpoint's address, as OpenAI's own library reads it.
pub const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";
/// The key for that address.
pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";
/// The name of the model at that address.
pub const OPENAI_MODEL: &str = "OPENAI_MODEL";
/// The address of Ollama, as Ollama reads it.
pub const OLLAMA_HOST: &str = "OLLAMA_HOST";
/// The name of the model.
pub const LLM_MODEL_NAME: &str = "LLM_MODEL_NAME";
/// Additional fields for every request.
pub const LLM_EXTRA_BODY: &str = "LLM_EXTRA_BODY";
/// Additional headers for every request.
pub const LLM_EXTRA_HEADERS: &str = "LLM_EXTRA_HEADERS";
/// How the model calls tools.
pub const LLM_TOOLS: &str = "LLM_TOOLS";
/// The longest silence while a reply is read.
pub const LLM_TIMEOUT_SECONDS: &str = "LLM_TIMEOUT_SECONDS";
/// The size of the model's context in tokens.
pub const LLM_CONTEXT_WINDOW: &str = "LLM_CONTEXT_WINDOW";
/// Whether images are sent to the model.
pub const LLM_VISION: &str = "LLM_VISION";
/// The file that replaces the built-in system prompt.
pub const SYSTEM_PROMPT_PATH: &str = "SYSTEM_PROMPT_PATH";
/// The facts file.
pub const MEMORY_PATH: &str = "MEMORY_PATH";
/// The folder of daily notes.
pub const NOTES_FOLDER_PATH: &str = "NOTES_FOLDER_PATH";
/// The folder of sessions.
pub const SESSIONS_PATH: &str = "SESSIONS_PATH";
/// The history of typed lines.
pub const HISTORY_PATH: &str = "HISTORY_PATH";
/// The skills folders.
pub const SKILLS_FOLDER_PATH: &str = "SKILLS_FOLDER_PATH";
/// Whether only skills are used that are as the lock file beside them lists them.
pub const SKILLS_LOCKED: &str = "SKILLS_LOCKED";
/// The time limit of a script.
pub const SCRIPT_TIMEOUT_SECONDS: &str = "SCRIPT_TIMEOUT_SECONDS";
/// The interpreter for skills without a venv.
pub const SCRIPT_PYTHON: &str = "SCRIPT_PYTHON";
/// The shell for commands.
pub const SCRIPT_SHELL: &str = "SCRIPT_SHELL";
/// Treatment of processes that a script leaves behind.
pub const SCRIPT_LEFTOVERS: &str = "SCRIPT_LEFTOVERS";
/// Whether scripts run in a sandbox.
pub const SCRIPT_SANDBOX: &str = "SCRIPT_SANDBOX";
/// Variables that scripts get although they look like credentials.
pub const SCRIPT_ENV: &str = "SCRIPT_ENV";
/// Additional folders that sandboxed scripts may write in.
pub const SCRIPT_SANDBOX_WRITE: &str = "SCRIPT_SANDBOX_WRITE";
/// Additional files and folders that sandboxed scripts may read.
pub const SCRIPT_SANDBOX_READ: &str = "SCRIPT_SANDBOX_READ";

/// The file of trusted certificates.
pub const SSL_CERT_FILE: &str = "SSL_CERT_FILE";
/// The proxy for https endpoints.
pub const HTTPS_PROXY: &str = "HTTPS_PROXY";
/// The proxy for http endpoints.
pub const HTTP_PROXY: &str = "HTTP_PROXY";
/// The proxy if the variable for the endpoint's scheme is not set.
pub const ALL_PROXY: &str = "ALL_PROXY";
/// Hosts that are reached without a proxy.
pub const NO_PROXY: &str = "NO_PROXY";

/// All settings.
pub static SETTINGS: &[Setting] = &[
    row(
        LLM_API_KEY,
        FolderRule::Any,
        "",
        "key of the endpoint; not needed on loopback; `none`: send no key",
    )
    .private(Privacy::Secret),
    row(
        LLM_API_KEY_FILE,
        FolderRule::Any,
        "",
        "file that contains the key, used if LLM_API_KEY is not set",
    ),
    row(
        LLM_API_BASE_URL,
        FolderRule::Destination,
        "",
        "address of the endpoint, such as https://api.openai.com/v1",
    )
    .private(Privacy::Address),
    row(
        LLM_MODEL_NAME,
        FolderRule::Sent,
        "",
        "name of the model, as the endpoint lists it; not needed if Ollama on this machine has one",
    ),
    row(
        OPENAI_BASE_URL,
        FolderRule::EnvironmentOnly,
        "",
        "address if LLM_API_BASE_URL is not set; this and the next three: not from .env",
    )
    .private(Privacy::Address),
    row(
        OPENAI_API_KEY,
        FolderRule::EnvironmentOnly,
        "",
        "key for OPENAI_BASE_URL only; LLM_API_KEY is for LLM_API_BASE_URL only",
    )
    .private(Privacy::Secret),
    row(
        OPENAI_MODEL,
        FolderRule::EnvironmentOnly,
        "",
        "model at OPENAI_BASE_URL if LLM_MODEL_NAME is not set",
    ),
    row(
        OLLAMA_HOST,
        FolderRule::EnvironmentOnly,
        "",
        "Ollama's address, used if no other is set; no key is sent to it",
    )
    .private(Privacy::Address),
    row(
        LLM_EXTRA_BODY,
        FolderRule::Sent,
        "",
        "JSON object of additional fields for every request, such as {\"temperature\": 0}",
    ),
    row(
        LLM_EXTRA_HEADERS,
        FolderRule::Any,
        "",
        "JSON object of additional headers for every request; the values are secret",
    )
    .private(Privacy::Secret),
    row(
        LLM_TOOLS,
        FolderRule::Any,
        "auto",
        "calls in the API's fields (`native`), in text (`prompted`), in constrained replies (`schema`), or as fits",
    ),
    row(
        LLM_TIMEOUT_SECONDS,
        FolderRule::Any,
        "120",
        "longest silence while a reply is read; five times that before its first byte",
    ),
    row(
        LLM_CONTEXT_WINDOW,
        FolderRule::Any,
        "",
        "size of the model's context in tokens; conversations are summarized at 80 % of it",
    ),
    row(
        LLM_VISION,
        FolderRule::Any,
        "on",
        "`off`: images are not sent to the model; they are refused with a message",
    ),
    row(
        SYSTEM_PROMPT_PATH,
        FolderRule::Place,
        "",
        "file that replaces the built-in system prompt; it may contain placeholders",
    ),
    row(
        MEMORY_PATH,
        FolderRule::Place,
        "",
        "file of facts that the model remembers; unset: no memory",
    ),
    row(
        NOTES_FOLDER_PATH,
        FolderRule::Place,
        "",
        "folder of daily notes, YYYY-MM-DD.md; unset: no notes",
    ),
    row(
        SESSIONS_PATH,
        FolderRule::Place,
        "$XDG_STATE_HOME/skills-runner/sessions",
        "folder of saved conversations",
    ),
    row(
        HISTORY_PATH,
        FolderRule::Place,
        "$XDG_STATE_HOME/skills-runner/history",
        "file of lines typed in conversations; `off`: none are kept",
    ),
    row(
        SKILLS_FOLDER_PATH,
        FolderRule::SkillsPlaces,
        "skills, .agents/skills and .claude/skills here, then those of the user and of the program",
        "skills folders, separated as in PATH and searched below; the first wins a name",
    ),
    row(
        SKILLS_LOCKED,
        FolderRule::SwitchOn,
        "off",
        "`on`: only skills that skills-runner.lock beside them lists, with exactly these files",
    ),
    row(
        SCRIPT_TIMEOUT_SECONDS,
        FolderRule::Any,
        "30",
        "time limit of a script or command, in seconds",
    ),
    row(
        SCRIPT_PYTHON,
        FolderRule::SwitchOff,
        "python3 from PATH",
        "interpreter for skills without a venv; `off`: they cannot run scripts",
    ),
    row(
        SCRIPT_SHELL,
        FolderRule::SwitchOff,
        "bash, else sh; off if SCRIPT_PYTHON is off",
        "shell for commands; `off`: no commands",
    ),
    row(
        SCRIPT_ENV,
        FolderRule::UserFilesOnly,
        "",
        "names of variables, with commas, that scripts get although they look like credentials",
    ),
    row(
        SCRIPT_LEFTOVERS,
        FolderRule::Scripts("kill"),
        "kill",
        "`keep`: processes that a script leaves running after a normal end are not killed",
    ),
    row(
        SCRIPT_SANDBOX,
        FolderRule::Scripts("on"),
        "off",
        "`on`: scripts write only in their skill's folder, read little else, and have no network",
    ),
    row(
        SCRIPT_SANDBOX_WRITE,
        FolderRule::Grant,
        "",
        "folders that sandboxed scripts may also read and write in, separated as in PATH",
    ),
    row(
        SCRIPT_SANDBOX_READ,
        FolderRule::Grant,
        "",
        "files and folders that sandboxed scripts may also read, separated as in PATH",
    ),
    row(
        SSL_CERT_FILE,
        FolderRule::Destination,
        "",
        "file of certificates (PEM) that replace the built-in ones",
    )
    .named(&["ssl_cert_file", SSL_CERT_FILE, "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]),
    row(
        HTTPS_PROXY,
        FolderRule::Destination,
        "",
        "proxy for https endpoints: http://, socks5h://, socks5://",
    )
    .named(&["https_proxy", HTTPS_PROXY])
    .private(Privacy::Address),
    row(HTTP_PROXY, FolderRule::Destination, "", "proxy for http endpoints")
        .named(&["http_proxy", HTTP_PROXY])
        .private(Privacy::Address),
    row(
        ALL_PROXY,
        FolderRule::Destination,
        "",
        "proxy if the variable for the endpoint's scheme is not set",
    )
    .named(&["all_proxy", ALL_PROXY])
    .private(Privacy::Address),
    row(
        NO_PROXY,
        FolderRule::Any,
        "",
        "hosts, domains and networks without a proxy; loopback never uses one",
    )
    .named(&["no_proxy", NO_PROXY]),
];

/// The setting with the key for the address in this setting; `None`: no key is sent there.
pub fn key_setting(address_setting: &str) -> Option<&'static str> {
    match address_setting {
        LLM_API_BASE_URL => Some(LLM_API_KEY),
        OPENAI_BASE_URL => Some(OPENAI_API_KEY),
        _ => None,
    }
}

/// Returns the setting with this name.
pub fn setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|row| row.name == name)
}

/// Whether this is the name of a setting that contains a credential.
pub fn is_secret_setting(name: &OsStr) -> bool {
    let mut rows = SETTINGS.iter().filter(|row| row.privacy == Privacy::Secret);
    rows.any(|row| row.names().any(|own| name == own))
}

/// Whether a variable of this name contains a credential, of this or of another program. Letter
/// case aside, the name or its last word is KEY or TOKEN, or it contains SECRET, PASSWORD or
/// CREDENTIAL, or it is one of the names by which a cloud gives access.
pub fn is_secret(name: &OsStr) -> bool {
    const LAST_WORDS: [&str; 2] = ["KEY", "TOKEN"];
    const PARTS: [&str; 3] = ["SECRET", "PASSWORD", "CREDENTIAL"];
    const OTHERS: [&str; 2] = ["AWS_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_ID"];
    let upper = name.to_string_lossy().to_ascii_uppercase();
    let last = upper.rsplit('_').next().unwrap_or_default();
    is_secret_setting(name)
        || LAST_WORDS.contains(&last)
        || PARTS.iter().any(|part| upper.contains(part))
        || OTHERS.contains(&&*upper)
}
