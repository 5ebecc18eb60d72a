//! What proves to the endpoint who the user is: the key, from a variable or a
//! file, and the extra headers. And what of all settings must not be shown.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Map, Value};

use crate::config::trust::Credential;
use crate::config::{ConfigReader, proxy};
use crate::dotenv::Variable;
use crate::limits;
use crate::secret::{Secret, Secrets};
use crate::settings::{self, NO_KEY, Settings, ValueSource};
use crate::text::quoted;
use crate::world::files;

/// What is sent with every request to prove who asks.
pub(super) struct Credentials {
    pub key: Option<Secret>,
    pub headers: Vec<(String, Secret)>,
    /// Whence all of it came.
    pub sources: Vec<Credential>,
}

/// Headers that carry a key: one of them takes the place of ours.
const KEY_HEADERS: [&str; 2] = ["authorization", "api-key"];

/// Headers that only say which program asks. Their values are ordinary words,
/// which may stand in `PATH` and everywhere else: they are not masked.
const PLAIN_HEADERS: [&str; 4] = ["http-referer", "referer", "user-agent", "x-title"];

impl ConfigReader<'_> {
    /// `is_key_due`: a key that is nowhere is a problem.
    pub(super) fn credentials(&mut self, is_key_due: bool) -> Credentials {
        let mut sources = Vec::new();
        // Headers that cannot be read may have been meant to carry the key.
        let are_headers_set = self.settings.value(settings::LLM_EXTRA_HEADERS).is_some();
        let headers = match self.extra_headers() {
            Some((headers, source)) => {
                let is_own = source.is_own();
                sources.push(Credential { source, is_own });
                headers
            }
            None => Vec::new(),
        };
        let has_key = |(name, _): &(String, Secret)| KEY_HEADERS.contains(&name.as_str());
        let key = if headers.iter().any(has_key) {
            None
        } else {
            self.key(is_key_due && (!are_headers_set || !sources.is_empty()))
        };
        let key = key.map(|(key, credential)| {
            sources.insert(0, credential);
            key
        });
        Credentials { key, headers, sources }
    }

    /// The variable wins over the file, as it is the nearer of the two.
    fn key(&mut self, is_due: bool) -> Option<(Secret, Credential)> {
        let name = settings::LLM_API_KEY;
        if let Some((text, source)) = self.text(name) {
            let key = key_of(&text).filter(|_| text != NO_KEY)?;
            if !key.is_sendable() {
                self.problems.push(format!(
                    "{source} holds a line break or another character that no key has: copy it again"
                ));
                return None;
            }
            let is_own = source.is_own();
            return Some((key, Credential { source, is_own }));
        }
        if let Some((path, source)) = self.settings.value(settings::LLM_API_KEY_FILE) {
            return self.key_from_file(&path, source);
        }
        // A value that is there but unreadable has been told already.
        let is_told = |problem: &String| problem.starts_with("LLM_API_KEY (");
        if is_due && !self.problems.iter().any(is_told) {
            self.problems.push(format!(
                "{name} is not set: set it in the environment or in .env (`none` for an endpoint that wants no \
                 key), or name a file that holds it with {}",
                settings::LLM_API_KEY_FILE
            ));
        }
        None
    }

    /// Whoever named the file, what it holds is the user's.
    fn key_from_file(&mut self, path: &OsStr, source: ValueSource) -> Option<(Secret, Credential)> {
        let path = self.path(path);
        match read_key(&path) {
            Ok(key) => {
                let is_own = true;
                Some((key, Credential { source, is_own }))
            }
            Err(cause) => {
                self.problems.push(format!(
                    "{source}: failed to read the key `{}`: {cause}",
                    path.display()
                ));
                None
            }
        }
    }

    /// Warns of files that hold a credential, in use or not, and that others may
    /// read: environment files and such as hold nothing but the key.
    pub(super) fn warn_of_open_files(&mut self) {
        for file in self.settings.files() {
            let mut held = file.contents.variables.iter().filter(|variable| {
                let text = variable.value.as_deref().unwrap_or_default().trim();
                settings::is_secret(OsStr::new(&variable.name))
                    && Secret::new(text).is_some_and(|secret| secret.is_worth_masking())
                    // Its value may stand elsewhere: `${VAR}`.
                    && !file.dependent.contains(&variable.name)
            });
            if let Some(Variable { name, .. }) = held.next() {
                self.warn_if_open(&file.path, |path| {
                    format!("others may read `{path}`, which holds {name}")
                });
            }
        }
        for (path, source) in self.settings.values(settings::LLM_API_KEY_FILE) {
            if read_key(&self.path(&path)).is_ok_and(|key| key.is_worth_masking()) {
                self.warn_if_open(Path::new(&path), |path| {
                    format!("{source}: others may read `{path}`")
                });
            }
        }
    }

    /// `path` as it was written.
    fn warn_if_open(&mut self, path: &Path, fault: impl Fn(&str) -> String) {
        let place = self.path(path.as_os_str());
        if files::is_open_to_others(&place) {
            // What a shell would not take for this file is told in full.
            let is_bare = path.as_os_str().as_bytes().starts_with(b"-") || path.starts_with("~");
            let path = if is_bare { &place } else { path };
            let fault = fault(&path.display().to_string());
            self.warnings.push(format!("{fault}: chmod 600 {}", quoted(path)));
        }
    }

    /// Every credential that a setting holds, in use or not, and what is
    /// masked beyond: the proxies' logins, which scripts get, as they need
    /// their proxy; and what may be a key and may be a word as well.
    pub(super) fn secrets(&self) -> (Secrets, Secrets) {
        let mut credentials = Secrets::default();
        for text in texts(self.settings, settings::LLM_API_KEY) {
            credentials.extend(key_of(&text).filter(|_| text != NO_KEY));
        }
        for (path, _) in self.settings.values(settings::LLM_API_KEY_FILE) {
            credentials.extend(read_key(&self.path(&path)).ok());
        }
        for text in texts(self.settings, settings::LLM_EXTRA_HEADERS) {
            match serde_json::from_str::<Map<String, Value>>(&text) {
                Ok(fields) => credentials.extend(fields.iter().flat_map(header_secrets)),
                Err(_) => credentials.extend(Secret::new(text)),
            }
        }
        let mut masked = credentials.clone();
        for text in texts(self.settings, settings::LLM_EXTRA_HEADERS) {
            let fields: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
            masked.extend(fields.iter().filter_map(token_secret));
        }
        for text in texts(self.settings, settings::LLM_API_BASE_URL) {
            masked.extend(query_secrets(&text));
        }
        for name in [settings::HTTPS_PROXY, settings::HTTP_PROXY, settings::ALL_PROXY] {
            let texts = texts(self.settings, name);
            masked.extend(texts.iter().flat_map(|text| proxy::login_secrets(text)));
        }
        (credentials, masked)
    }
}

/// The key alone, also where it was pasted from a header.
fn key_of(text: &str) -> Option<Secret> {
    let text = text.trim();
    Secret::new(text.strip_prefix("Bearer ").unwrap_or(text).trim())
}

/// The key that is all that a file holds; the reason never shows any of it.
fn read_key(path: &Path) -> Result<Secret, String> {
    let bytes = files::read_whole(path, limits::KEY_FILE_BYTES)?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
    // Editors put a byte order mark in front.
    let key = key_of(text.trim_start_matches('\u{feff}')).ok_or("it is empty")?;
    if !key.is_sendable() {
        return Err(
            "it holds more than a key: a line break or another character that no key has".into()
        );
    }
    Ok(key)
}

/// A header's value, and without the scheme in front: `Bearer x` and `x`.
fn header_secrets((name, value): (&String, &Value)) -> Vec<Secret> {
    let name = name.to_ascii_lowercase();
    if PLAIN_HEADERS.contains(&name.as_str()) {
        return Vec::new();
    }
    let text = match value {
        Value::String(text) => text.trim().to_string(),
        Value::Number(number) => number.to_string(),
        _ => return Vec::new(),
    };
    let bare = match text.split_once(' ') {
        Some((_, rest)) if name.ends_with("authorization") => rest.trim(),
        _ => "",
    };
    let bare = Secret::new(bare);
    Secret::new(text).into_iter().chain(bare).collect()
}

/// What stands behind a scheme in a header of any name: `Token x`.
fn token_secret((name, value): (&String, &Value)) -> Option<Secret> {
    if PLAIN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return None;
    }
    let (scheme, token) = value.as_str()?.trim().split_once(' ')?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphabetic());
    Secret::new(token).filter(|_| is_scheme && !token.contains(' '))
}

/// The values in the query of an address, written and decoded, but for Azure's
/// version.
fn query_secrets(address: &str) -> Vec<Secret> {
    let address = address.split('#').next().unwrap_or_default();
    let query = address.split_once('?').map_or("", |(_, query)| query);
    let fields = query.split('&').filter_map(|part| part.split_once('='));
    let values = fields.filter(|(name, _)| *name != "api-version");
    let written = values.map(|(_, value)| value.trim_end_matches(['"', '\'', '`', '>']));
    written
        .flat_map(|value| [Some(value.to_string()), proxy::decoded(value).ok()])
        .flatten()
        // Shorter ones are names, such as a model's.
        .filter(|value| value.len() >= limits::QUERY_SECRET_BYTES)
        .filter_map(Secret::new)
        .collect()
}

/// All values of a setting that are text.
fn texts(settings: &Settings, name: &'static str) -> Vec<String> {
    let values = settings.values(name).into_iter();
    values
        .filter_map(|(value, _)| value.into_string().ok())
        .map(|text| text.trim().to_string())
        .collect()
}
