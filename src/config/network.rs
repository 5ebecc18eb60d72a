//! How the endpoint is reached: directly or through a proxy, and whose
//! certificates are trusted.

use std::path::PathBuf;

use crate::secret::Secret;

/// How the endpoint is reached.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// The proxy for this endpoint; `None`: connections are direct.
    pub proxy: Option<Proxy>,
    /// What to trust instead of the built-in root certificates.
    pub roots: Option<RootFile>,
}

/// A proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// How one speaks to it.
    pub scheme: ProxyScheme,
    /// Its name or address; an IPv6 address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// User name and password, percent-decoded.
    pub login: Option<(String, Secret)>,
}

/// The protocols of proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyScheme {
    /// HTTP: `CONNECT` for https, the absolute form for http (RFC 9110, 9.3.6; RFC 9112, 3.2.2).
    Http,
    /// The same over TLS.
    Https,
    /// SOCKS 5 (RFC 1928); names are looked up here.
    Socks5,
    /// SOCKS 5; the proxy looks names up.
    Socks5h,
}

/// A file of certificates in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootFile {
    /// The file, as a message shows it.
    pub path: PathBuf,
    /// Its contents.
    pub pem: Vec<u8>,
}
