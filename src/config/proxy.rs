//! Parser of proxy addresses, with the rules of curl.
//!
//! An invalid address is an error, because a direct connection could bypass a required proxy.
//! No message shows any part of the login.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;

use base::address::Authority;
use base::limits;
use base::secret::Secret;
use chat_api::{Proxy, ProxyScheme};

/// The default port, as in curl.
const DEFAULT_PORT: u16 = 1080; // not a limit

/// Parses `[scheme://][user[:password]@]host[:port][/]`. The error is a sentence
/// about the address (`it …`).
pub(super) fn parse(text: &str) -> Result<Proxy, String> {
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("it contains white space or a control character".into());
    }
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (parse_scheme(scheme)?, rest),
        None => (ProxyScheme::Http, text),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if !matches!(path, "" | "/") {
        return Err(
            "text follows its host and port (in a password, / ? # are written %2F %3F %23)".into(),
        );
    }
    let (login, host) = match authority.rsplit_once('@') {
        Some((login, host)) => (parse_login(login, scheme)?, host),
        None => (None, authority),
    };
    let authority = Authority::parse(host)?;
    let port = authority.port.unwrap_or(DEFAULT_PORT);
    Ok(Proxy { scheme, host: authority.host, port, login })
}

/// Returns the secrets in a proxy's address, even if it is invalid: percent-encoded, decoded,
/// and as sent in the header. A user name without a password is a token.
pub(super) fn login_secrets(text: &str) -> Vec<Secret> {
    let (_, rest) = text.split_once("://").unwrap_or(("", text));
    let Some((login, _)) = rest.rsplit_once('@') else {
        return Vec::new();
    };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let encoded = if password.is_empty() { user } else { password };
    let plain = decode_login(encoded).ok().filter(|plain| plain != encoded);
    let pair = decode_login(user).ok().zip(decode_login(password).ok());
    let sent = pair.map(|(user, password)| BASE64_STANDARD.encode(format!("{user}:{password}")));
    let all = [Some(encoded.to_string()), plain, sent];
    all.into_iter().flatten().filter_map(Secret::new).collect()
}

fn parse_scheme(name: &str) -> Result<ProxyScheme, String> {
    match name.to_ascii_lowercase().as_str() {
        "http" => Ok(ProxyScheme::Http),
        "socks5" | "socks5h" => Ok(ProxyScheme::Socks),
        "https" => Err("TLS to a proxy is not supported: use http:// or socks5h://".into()),
        other if !other.is_empty() && other.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            Err(format!("`{other}` is not http, socks5h or socks5"))
        }
        // The message does not quote the text, which may be a login.
        _ => Err("it does not start with http://, socks5h:// or socks5://".into()),
    }
}

/// Parses user name and password; `None` if both are empty.
fn parse_login(
    text: &str,
    scheme: ProxyScheme,
) -> Result<Option<(String, Option<Secret>)>, String> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let (user, password) = (decode_login(user)?, decode_login(password)?);
    let longest = user.len().max(password.len());
    if scheme == ProxyScheme::Socks && longest > limits::SOCKS_LOGIN_BYTES {
        return Err(format!(
            "its user name or password is longer than the {} bytes that SOCKS allows",
            limits::SOCKS_LOGIN_BYTES
        ));
    }
    if user.is_empty() && password.is_empty() {
        return Ok(None);
    }
    Ok(Some((user, Secret::new(password))))
}

/// Percent-decodes a text once; a `%` that does not start a code is kept.
pub(super) fn decode_login(text: &str) -> Result<String, String> {
    let plain = percent_decode_str(text).decode_utf8();
    let plain = plain.map_err(|_| "its login is not UTF-8 text")?;
    if plain.chars().any(char::is_control) {
        return Err("its login contains a control character".into());
    }
    Ok(plain.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_in_curl() {
        let table = [
            ("http://proxy.example:3128", "http://proxy.example:3128", ""),
            ("HTTP://proxy.example/", "http://proxy.example:1080", ""),
            ("proxy.example:8080", "http://proxy.example:8080", ""),
            ("proxy", "http://proxy:1080", ""),
            ("proxy:", "http://proxy:1080", ""),
            ("socks5://10.0.0.1", "socks5h://10.0.0.1:1080", ""),
            ("socks5h://h:9", "socks5h://h:9", ""),
            ("http://[::1]:8080", "http://[::1]:8080", ""),
            ("[fe80::1]", "http://[fe80::1]:1080", ""),
            ("http://u:p@h:1", "http://h:1", "u:p"),
            ("u:p@h:1", "http://h:1", "u:p"),
            ("http://u%40x:p%3a%25%2525@h:1", "http://h:1", "u@x:p:%%25"),
            ("http://u:p@w:x@h:1", "http://h:1", "u:p@w:x"),
            ("http://u:50%off@h:1", "http://h:1", "u:50%off"),
            ("http://token@h:1", "http://h:1", "token:"),
            ("http://token:@h:1", "http://h:1", "token:"),
            ("http://@h:1", "http://h:1", ""),
            ("http://:p@h:1", "http://h:1", ":p"),
        ];
        for (text, shown, login) in table {
            let proxy = parse(text).unwrap();
            assert_eq!(proxy.to_string(), shown, "{text}");
            assert_eq!(format!("{proxy:?}"), shown);
            let found = proxy.login.map(|(user, password)| {
                let password = password.map_or(String::new(), |p| p.reveal().to_string());
                format!("{user}:{password}")
            });
            assert_eq!(found.unwrap_or_default(), login, "{text}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused_and_their_login_is_not_shown() {
        let long = format!("socks5://letmein:{}@h", "x".repeat(256));
        let table = [
            ("https://letmein@h:1", "TLS to a proxy is not supported"),
            ("socks4://letmein@h:1", "`socks4`"),
            ("socks://h", "`socks`"),
            ("ftp://letmein:letmein@h", "`ftp`"),
            ("letmein:letmein@http://h", "does not start with"),
            ("http://", "no host"),
            ("://h", "does not start with"),
            ("http://letmein:letmein@:80", "no host"),
            ("http://h:0", "1 to 65535"),
            ("http://h:65536", "1 to 65535"),
            ("http://h:99999999999999999999", "1 to 65535"),
            ("http://letmein:letmein", "not a port"),
            ("http://h:80:90", "not a port"),
            ("http://h:+80", "not a port"),
            ("http://::1:80", "no host"),
            ("http://[::1", "`]`"),
            ("http://[::1]80", "not a port"),
            ("http://[letmeout]:80", "not an IPv6 address"),
            ("http://h h:80", "white space"),
            ("http://h\u{7}", "control"),
            ("http://h/path", "follows"),
            ("http://u:letmein/letmein@h:80", "%2F"),
            ("http://u:letmein?@h:80", "%3F"),
            ("http://u:letmein%0d%0a@h", "control"),
            ("http://u:letmein%ff@h", "UTF-8"),
            ("http://b\u{fc}cher.example", "not a valid host name"),
            (long.as_str(), "255 bytes"),
        ];
        for (text, reason) in table {
            let cause = parse(text).unwrap_err();
            assert!(cause.contains(reason), "{text}: {cause}");
            assert!(!cause.contains("letmein"), "{text}: {cause}");
        }
    }
}
