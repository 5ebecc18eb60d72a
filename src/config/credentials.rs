//! The credentials for the endpoint: the key, from a variable or a file, and the additional
//! headers. Also collects the values of all settings that must be masked.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Map, Value};

use crate::config::trust::Credential;
use crate::config::{ConfigReader, proxy};
use base::dotenv::Variable;
use base::error::Fault;
use base::limits;
use base::secret::{Secret, Secrets};
use base::settings::{self, NO_KEY, Settings, ValueSource};
use base::text::shell_quoted;
use host::files;

/// The credentials that are sent with every request.
pub(super) struct Credentials {
    pub key: Option<Secret>,
    pub headers: Vec<(String, Secret)>,
    /// The source of each credential.
    pub sources: Vec<Credential>,
}

/// Headers that carry a key; each of them replaces `LLM_API_KEY`.
const KEY_HEADERS: [&str; 2] = ["authorization", "api-key"];

/// Headers that only identify the client. Their values are ordinary words that may occur in
/// `PATH` and other variables, so they are not masked.
const PLAIN_HEADERS: [&str; 4] = ["http-referer", "referer", "user-agent", "x-title"];

/// Whether a header of this name, in lower case, carries a key or another login.
fn identifies_account(name: &str) -> bool {
    let variable = name.replace('-', "_");
    KEY_HEADERS.contains(&name) || name == "cookie" || settings::is_secret(OsStr::new(&variable))
}

impl ConfigReader<'_> {
    /// The credentials for the address in this setting. The key and the headers of one address
    /// are not sent to another one, which may belong to another program or account.
    /// `is_key_required`: a missing key is a problem.
    pub(super) fn credentials(
        &mut self,
        address_setting: &'static str,
        is_key_required: bool,
    ) -> Credentials {
        let mut sources = Vec::new();
        let mut headers = Vec::new();
        let mut is_key_required = is_key_required;
        let headers_source = self.settings.value(settings::LLM_EXTRA_HEADERS);
        if address_setting != settings::LLM_API_BASE_URL {
            if let Some((_, source)) = headers_source {
                self.warnings.push(Fault::new(
                    format!("{source} is not sent to the address in {address_setting}"),
                    "set LLM_API_BASE_URL to this address",
                ));
            }
        } else if let Some((found, source)) = self.extra_headers() {
            let is_key = found.iter().any(|(name, _)| identifies_account(name));
            sources.push(Credential { belongs_to_user: !source.is_untrusted(), is_key, source });
            headers = found;
        } else {
            // Invalid headers may have been meant to contain the key.
            is_key_required &= headers_source.is_none();
        }
        let has_key = |(name, _): &(String, Secret)| KEY_HEADERS.contains(&name.as_str());
        let key = settings::key_setting(address_setting)
            .filter(|_| !headers.iter().any(has_key))
            .and_then(|name| self.key(name, is_key_required));
        let key = key.map(|(key, credential)| {
            sources.insert(0, credential);
            key
        });
        Credentials { key, headers, sources }
    }

    /// Reads the key in this setting. The variable takes precedence over the file.
    fn key(&mut self, name: &'static str, is_required: bool) -> Option<(Secret, Credential)> {
        if let Some((text, source)) = self.trimmed_text(name) {
            let key = parse_key(&text).filter(|_| text != NO_KEY)?;
            if !key.is_sendable() {
                let message =
                    format!("{source} holds a line break or another character that no key has");
                self.report(Fault::new(message, "copy it again"));
                return None;
            }
            let belongs_to_user = !source.is_untrusted();
            return Some((key, Credential { source, belongs_to_user, is_key: true }));
        }
        if name == settings::LLM_API_KEY
            && let Some((path, source)) = self.settings.value(settings::LLM_API_KEY_FILE)
        {
            return self.key_from_file(&path, source);
        }
        if is_required && self.settings.value(name).is_none() {
            self.report_missing_key(name);
        }
        None
    }

    /// Reads the key from a file. The contents belong to the user, even if `./.env` names the
    /// file.
    fn key_from_file(&mut self, path: &OsStr, source: ValueSource) -> Option<(Secret, Credential)> {
        let path = self.path(path);
        match read_key(&path) {
            Ok(key) => Some((key, Credential { source, belongs_to_user: true, is_key: true })),
            Err(cause) => {
                self.report(Fault::without_fix(format!(
                    "{source}: failed to read the key file `{}`: {cause}",
                    path.display()
                )));
                None
            }
        }
    }

    /// Warns about files that contain a credential, used or not, and that other users may
    /// read: environment files and key files.
    pub(super) fn warn_about_readable_files(&mut self) {
        for file in self.settings.files() {
            let mut held = file.contents.variables.iter().filter(|variable| {
                let text = variable.value.as_deref().unwrap_or_default().trim();
                settings::is_secret_setting(OsStr::new(&variable.name))
                    // Another program's line in its own file.
                    && variable.name != settings::OPENAI_API_KEY
                    && Secret::new(text).is_some_and(|secret| secret.is_worth_masking())
                    // With `${VAR}` the value itself is in the environment.
                    && !variable.uses_environment
            });
            if let Some(Variable { name, .. }) = held.next() {
                self.warn_if_readable(&file.path, |path| {
                    format!("others may read `{path}`, which holds {name}")
                });
            }
        }
        for (path, source) in self.settings.values(settings::LLM_API_KEY_FILE) {
            if read_key(&self.path(&path)).is_ok_and(|key| key.is_worth_masking()) {
                self.warn_if_readable(Path::new(&path), |path| {
                    format!("{source}: others may read `{path}`")
                });
            }
        }
    }

    /// `path` is the path as the user wrote it.
    fn warn_if_readable(&mut self, path: &Path, problem: impl Fn(&str) -> String) {
        let place = self.path(path.as_os_str());
        if files::is_world_readable(&place) {
            // A shell would misread a path that starts with `-` or `~` in the suggested
            // command.
            let is_bare = path.as_os_str().as_bytes().starts_with(b"-") || path.starts_with("~");
            let path = if is_bare { &place } else { path };
            let message = problem(&path.display().to_string());
            self.warnings.push(Fault::new(message, format!("chmod 600 {}", shell_quoted(path))));
        }
    }

    /// All credentials in the settings, used or not, and all values to mask. The second also
    /// contains what scripts get because they need it (logins of proxies, the key of another
    /// program), and values that may be a key or an ordinary word.
    pub(super) fn secrets(&self) -> (Secrets, Secrets) {
        let mut credentials = Secrets::default();
        for text in text_values(self.settings, settings::LLM_API_KEY) {
            credentials.extend(parse_key(&text).filter(|_| text != NO_KEY));
        }
        let mut tokens = Vec::new();
        for text in text_values(self.settings, settings::OPENAI_API_KEY) {
            let key = parse_key(&text).filter(|_| text != NO_KEY);
            if self.settings.is_endpoint_secret(settings::OPENAI_API_KEY.as_ref()) {
                credentials.extend(key);
            } else {
                tokens.extend(key);
            }
        }
        for (path, _) in self.settings.values(settings::LLM_API_KEY_FILE) {
            credentials.extend(read_key(&self.path(&path)).ok());
        }
        for text in text_values(self.settings, settings::LLM_EXTRA_HEADERS) {
            match serde_json::from_str::<Map<String, Value>>(&text) {
                Ok(fields) => {
                    credentials.extend(fields.iter().flat_map(header_secrets));
                    tokens.extend(fields.iter().filter_map(token_secret));
                }
                Err(_) => credentials.extend(Secret::new(text)),
            }
        }
        let mut masked = credentials.clone();
        masked.extend(tokens);
        for name in [settings::LLM_API_BASE_URL, settings::OPENAI_BASE_URL, settings::OLLAMA_HOST] {
            let texts = text_values(self.settings, name);
            masked.extend(texts.iter().flat_map(|text| query_secrets(text)));
        }
        for name in [settings::HTTPS_PROXY, settings::HTTP_PROXY, settings::ALL_PROXY] {
            let texts = text_values(self.settings, name);
            masked.extend(texts.iter().flat_map(|text| proxy::login_secrets(text)));
        }
        (credentials, masked)
    }
}

/// The key alone, even if it was pasted with the header's `Bearer `.
fn parse_key(text: &str) -> Option<Secret> {
    let text = text.trim();
    Secret::new(text.strip_prefix("Bearer ").unwrap_or(text).trim())
}

/// Reads a file that contains only the key. The error never shows the contents.
fn read_key(path: &Path) -> Result<Secret, String> {
    let bytes = files::read_whole(path, limits::KEY_FILE_BYTES)?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
    // Some editors write a byte order mark.
    let key = parse_key(text.trim_start_matches('\u{feff}')).ok_or("it is empty")?;
    if !key.is_sendable() {
        return Err(
            "it holds more than a key: a line break or another character that no key has".into()
        );
    }
    Ok(key)
}

/// A header's value with and without its scheme: `Bearer x` and `x`.
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

/// The token after a scheme in any header: `x` of `Token x`.
fn token_secret((name, value): (&String, &Value)) -> Option<Secret> {
    if PLAIN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return None;
    }
    let (scheme, token) = value.as_str()?.trim().split_once(' ')?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphabetic());
    Secret::new(token).filter(|_| is_scheme && !token.contains(' '))
}

/// The values in the query of an address, encoded and decoded, except Azure's version.
fn query_secrets(address: &str) -> Vec<Secret> {
    let address = address.split('#').next().unwrap_or_default();
    let query = address.split_once('?').map_or("", |(_, query)| query);
    let fields = query.split('&').filter_map(|part| part.split_once('='));
    let values = fields.filter(|(name, _)| *name != "api-version");
    let written = values.map(|(_, value)| value.trim_end_matches(['"', '\'', '`', '>']));
    written
        .flat_map(|value| [Some(value.to_string()), proxy::decode_login(value).ok()])
        .flatten()
        // Shorter values are names, such as that of a model.
        .filter(|value| value.len() >= limits::QUERY_SECRET_BYTES)
        .filter_map(Secret::new)
        .collect()
}

/// All values of a setting that are UTF-8 text, also in files that may not set it.
fn text_values(settings: &Settings, name: &'static str) -> Vec<String> {
    let values = settings.values(name).into_iter().chain(settings.file_values(name));
    values
        .filter_map(|(value, _)| value.into_string().ok())
        .map(|text| text.trim().to_string())
        .collect()
}
