//! The value of `OLLAMA_HOST`: an address in the short forms that Ollama reads.

use std::net::Ipv6Addr;

use chat_api::http::OLLAMA_PORT;

/// Ollama's own service, which is reached with https.
const OLLAMA_SERVICE: &str = "ollama.com";

/// The OpenAI-compatible address, as text to be parsed, for a value of `OLLAMA_HOST`; for none
/// that of Ollama on this machine. A server listens at `0.0.0.0` or `[::]` on all addresses of its
/// machine, so a client connects to loopback.
pub(crate) fn ollama_address(value: &str) -> String {
    let value = value.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    let (scheme, rest, default_port) = match value.split_once("://") {
        None if value == OLLAMA_SERVICE => ("https", value, None),
        None => ("http", value, Some(OLLAMA_PORT)),
        Some((scheme, rest)) => (scheme, rest, None),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = split_authority(authority);
    let host = match host {
        "" | "0.0.0.0" | "::" => "127.0.0.1".to_string(),
        host if host.parse::<Ipv6Addr>().is_ok() => format!("[{host}]"),
        host => host.to_string(),
    };
    let port = match (port, default_port) {
        ("", None) => String::new(),
        ("", Some(port)) => format!(":{port}"),
        (port, _) => format!(":{port}"),
    };
    let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
    let path = path.strip_suffix("/v1").unwrap_or(path);
    format!("{scheme}://{host}{port}{path}/v1")
}

/// Host and port, either of which may be empty. The host has no brackets.
fn split_authority(authority: &str) -> (&str, &str) {
    if authority.parse::<Ipv6Addr>().is_ok() {
        return (authority, "");
    }
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
        None => authority.rsplit_once(':').unwrap_or((authority, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::address::Address;

    #[test]
    fn every_form_that_ollama_reads_becomes_an_address() {
        let table = [
            ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
            ("http://0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
            ("1.2.3.4", "http://1.2.3.4:11434/v1"),
            (":11434", "http://127.0.0.1:11434/v1"),
            (":1234", "http://127.0.0.1:1234/v1"),
            (":", "http://127.0.0.1:11434/v1"),
            ("example.com", "http://example.com:11434/v1"),
            ("example.com:56789", "http://example.com:56789/v1"),
            ("example.com:", "http://example.com:11434/v1"),
            ("[::1]", "http://[::1]:11434/v1"),
            ("[::1]:1337", "http://[::1]:1337/v1"),
            ("::1", "http://[::1]:11434/v1"),
            ("[::]", "http://127.0.0.1:11434/v1"),
            ("[::]:1337", "http://127.0.0.1:1337/v1"),
            ("::", "http://127.0.0.1:11434/v1"),
            (" \" 1.2.3.4 \" ", "http://1.2.3.4:11434/v1"),
            ("'1.2.3.4'", "http://1.2.3.4:11434/v1"),
            ("http://1.2.3.4", "http://1.2.3.4/v1"),
            ("http://1.2.3.4:4321", "http://1.2.3.4:4321/v1"),
            ("https://1.2.3.4/", "https://1.2.3.4/v1"),
            ("https://1.2.3.4:4321", "https://1.2.3.4:4321/v1"),
            ("https://example.com/ollama", "https://example.com/ollama/v1"),
            ("example.com/ollama/", "http://example.com:11434/ollama/v1"),
            ("http://localhost:11434/v1", "http://localhost:11434/v1"),
            ("ollama.com", "https://ollama.com/v1"),
        ];
        for (value, expected) in table {
            let address = Address::parse(&ollama_address(value)).unwrap();
            assert_eq!(address.to_string(), expected, "{value}");
        }
        for (value, reason) in [
            (":66000", "1 to 65535"),
            ("machine:x", "not a port"),
            ("ftp://machine", "neither http nor https"),
            ("me:pw@machine", "user name or password"),
            ("a b", "' '"),
        ] {
            let error = Address::parse(&ollama_address(value)).unwrap_err();
            assert!(error.contains(reason), "{value}: {error}");
        }
    }
}
