//! The endpoint's address: parses what the user wrote, checks it and builds URLs.
//!
//! Quotes, trailing slashes and a trailing `/chat/completions` are removed, since
//! users paste them. Nothing is added to the path, and a query string (Azure's
//! `api-version`) is kept. The addresses of skills are parsed here, too.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Path of a chat request, below the base address.
const CHAT_COMPLETIONS: &str = "/chat/completions";

/// A base address such as `https://api.openai.com/v1`.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    encrypted: bool,
    authority: Authority,
    /// Empty, or starts with a slash. It does not end with one in the address of an endpoint.
    path: String,
    /// Without the question mark.
    query: Option<String>,
}

impl Address {
    /// Parses the address of an endpoint, or returns why it is invalid.
    pub fn parse(text: &str) -> Result<Address, String> {
        let address = Address::exact(text)?;
        let path = address.path.trim_end_matches('/');
        let path = path.strip_suffix(CHAT_COMPLETIONS).unwrap_or(path).trim_end_matches('/');
        Ok(Address { path: path.into(), ..address })
    }

    /// Parses the address of a file or repository, whose path stays as it is.
    pub fn exact(text: &str) -> Result<Address, String> {
        let is_wrapping = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
        let text = text.trim_matches(is_wrapping);
        if let Some(odd) = text.chars().find(|c| c.is_control() || c.is_whitespace()) {
            return Err(format!("it contains the character {odd:?}"));
        }
        let (scheme, rest) =
            text.split_once("://").ok_or("it does not start with https:// or http://")?;
        let encrypted = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            other => return Err(format!("`{other}` is neither http nor https")),
        };
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => {
                (rest, Some(query.to_string()).filter(|query| !query.is_empty()))
            }
            None => (rest, None),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(
                "it contains a user name or password: a key belongs in LLM_API_KEY, with LLM_API_BASE_URL"
                    .into(),
            );
        }
        let authority = Authority::parse(authority)?;
        if !path.is_ascii() || query.as_ref().is_some_and(|query| !query.is_ascii()) {
            return Err("it contains characters that must be percent-encoded".into());
        }
        Ok(Address { encrypted, authority, path: path.into(), query })
    }

    /// URL of chat requests.
    pub fn chat_completions_url(&self) -> String {
        self.join(CHAT_COMPLETIONS)
    }

    /// URL of the endpoint's list of models.
    pub fn models_url(&self) -> String {
        self.join("/models")
    }

    /// URL of a path on the server itself, next to `/v1`. `path` starts with a
    /// slash.
    pub fn server_url(&self, path: &str) -> String {
        let base = self.to_string();
        let base = base.strip_suffix("/v1").unwrap_or(&base);
        format!("{base}{path}")
    }

    /// The URL itself.
    pub fn url(&self) -> String {
        self.join("")
    }

    /// The path, which starts with a slash or is empty.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether there is a query, which may contain credentials.
    pub fn has_query(&self) -> bool {
        self.query.is_some()
    }

    /// The address with another path, which starts with a slash, and no query.
    #[must_use]
    pub fn with_path(&self, path: String) -> Address {
        Address { path, query: None, ..self.clone() }
    }

    /// The address to which a `Location` header (RFC 9110, 10.2.2) leads from this one. A path
    /// that does not start with a slash is not supported.
    pub fn redirected(&self, location: &str) -> Result<Address, String> {
        let scheme = if self.encrypted { "https" } else { "http" };
        if location.starts_with("//") {
            Address::exact(&format!("{scheme}:{location}"))
        } else if location.starts_with('/') {
            Address::exact(&format!("{scheme}://{}{location}", self.authority))
        } else {
            Address::exact(location)
        }
    }

    /// The host, without port; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.authority.host
    }

    /// Host and port, as in an address.
    pub fn host_and_port(&self) -> String {
        let host = self.authority.host.clone();
        Authority { host, port: Some(self.port()) }.to_string()
    }

    /// The port; the default of the scheme if the address has none.
    pub fn port(&self) -> u16 {
        self.authority.port.unwrap_or(if self.encrypted { 443 } else { 80 })
    }

    /// Whether the host is this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(self.host())
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Whether the key is sent in the header `api-key`, as Azure requires.
    pub fn needs_api_key_header(&self) -> bool {
        self.host().to_ascii_lowercase().ends_with(".azure.com")
    }

    fn join(&self, path: &str) -> String {
        let mut url = format!("{self}{path}");
        if let Some(query) = &self.query {
            url.push('?');
            url.push_str(query);
        }
        url
    }
}

/// The base address without its query, which may contain a key.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encrypted { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// Same as `Display`: without the query.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Whether a host is `localhost`, `*.localhost` (RFC 6761), in 127.0.0.0/8 or `::1`.
pub fn is_loopback(host: &str) -> bool {
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return address.is_loopback();
    }
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        return address.is_loopback();
    }
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Host and port of an address. `Display` writes them as an address does.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// The host name or IP address; an IPv6 address has no brackets.
    pub host: String,
    /// The port, if it is written.
    pub port: Option<u16>,
}

impl Authority {
    /// Parses `host:port`, `[v6]:port` or a host alone; curl also reads `host:` as `host`. The
    /// error does not quote the text, which may be a login.
    pub fn parse(text: &str) -> Result<Authority, &'static str> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or("a `]` is missing")?;
                if host.parse::<Ipv6Addr>().is_err() {
                    return Err("the text between its brackets is not an IPv6 address");
                }
                (host, port)
            }
            None => {
                let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
                if host.is_empty() {
                    return Err("it has no host");
                }
                if !host.bytes().all(is_name) {
                    return Err(
                        "its host is not a valid host name (an international name needs its xn-- form)",
                    );
                }
                (host, port)
            }
        };
        let port = match port.strip_prefix(':') {
            Some("") => None,
            None if port.is_empty() => None,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => match digits.parse() {
                Ok(number) if number > 0 => Some(number),
                _ => return Err("its port is not a number from 1 to 65535"),
            },
            _ => return Err("the text after its host is not a port"),
        };
        Ok(Authority { host: host.to_string(), port })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bracketed = self.host.contains(':');
        let (open, close) = if is_bracketed { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_addresses_are_cleaned_and_not_extended() {
        let table = [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            (" \"https://api.openai.com/v1/\" ", "https://api.openai.com/v1/chat/completions"),
            ("HTTP://localhost:11434/v1//", "http://localhost:11434/v1/chat/completions"),
            ("https://x.example/v1/chat/completions", "https://x.example/v1/chat/completions"),
            ("https://x.example/v1/chat/completions/", "https://x.example/v1/chat/completions"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/chat/completions"),
            ("http://127.0.0.1:/v1", "http://127.0.0.1/v1/chat/completions"),
            ("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
            (
                "https://g.example/v1beta/openai/",
                "https://g.example/v1beta/openai/chat/completions",
            ),
            (
                "https://a.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
                "https://a.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ),
        ];
        for (text, url) in table {
            assert_eq!(Address::parse(text).unwrap().chat_completions_url(), url, "{text}");
        }
    }

    #[test]
    fn paths_of_files_stay_as_they_are() {
        let base = Address::exact("https://x.example/a/chat/completions").unwrap();
        assert_eq!(base.url(), "https://x.example/a/chat/completions");
        for (location, url) in [
            ("/b/", "https://x.example/b/"),
            ("//y.example/b/chat/completions", "https://y.example/b/chat/completions"),
            ("https://z.example/", "https://z.example/"),
        ] {
            assert_eq!(base.redirected(location).unwrap().url(), url);
        }
    }

    #[test]
    fn urls_for_models_and_the_server_are_built() {
        let table = [
            ("http://h:11434/v1/", "http://h:11434/v1/models", "http://h:11434/api/ps"),
            ("http://h/x/v1", "http://h/x/v1/models", "http://h/x/api/ps"),
            ("http://h", "http://h/models", "http://h/api/ps"),
            ("http://h/v1?a=b", "http://h/v1/models?a=b", "http://h/api/ps"),
        ];
        for (text, models, server) in table {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.models_url(), models);
            assert_eq!(address.server_url("/api/ps"), server);
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_the_reason() {
        let table = [
            ("api.openai.com/v1", "https://"),
            ("ftp://x/v1", "`ftp`"),
            ("https:///v1", "no host"),
            ("https://user:pw@x/v1", "LLM_API_KEY"),
            ("http://x:99999/v1", "1 to 65535"),
            ("http://x:y/v1", "not a port"),
            ("http://[::zz]/v1", "IPv6"),
            ("http://a b/v1", "' '"),
            ("http://bücher.example/v1", "xn--"),
            ("http://x/ü", "percent-encoded"),
        ];
        for (text, reason) in table {
            let error = Address::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn only_hosts_of_this_machine_are_loopback() {
        for host in
            ["localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "localhost.example.com",
            "notlocalhost",
            "128.0.0.1",
            "::2",
            "127.0.0.1.example.com",
            "",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
