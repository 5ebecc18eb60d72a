//! How the endpoint is reached: directly or through a proxy, and whose
//! certificates are trusted.
//!
//! Only what would be used for this endpoint is looked at: a broken proxy
//! stops nobody whose endpoint is on this machine, or is excepted by
//! `NO_PROXY`.

use std::fmt;
use std::path::PathBuf;

use crate::address::Address;
use crate::config::trust::EndpointRoute;
use crate::config::{ConfigReader, no_proxy};
use crate::limits;
use crate::secret::Secret;
use crate::settings::{self, ValueSource};
use crate::world::files;

/// How the endpoint is reached.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// The proxy for this endpoint; `None`: connections are direct.
    pub proxy: Option<Proxy>,
    /// What to trust instead of the built-in root certificates.
    pub roots: Option<CertificateFile>,
}

/// A proxy. It shows itself without its login, also in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// How one speaks to it.
    pub scheme: ProxyScheme,
    /// Its name or address; an IPv6 address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// User name and password, percent-decoded; the password may be empty,
    /// where the user name is a token.
    pub login: Option<(String, Option<Secret>)>,
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

impl ProxyScheme {
    /// As it stands in an address.
    pub fn name(self) -> &'static str {
        match self {
            ProxyScheme::Http => "http",
            ProxyScheme::Https => "https",
            ProxyScheme::Socks5 => "socks5",
            ProxyScheme::Socks5h => "socks5h",
        }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme.name();
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A file of certificates in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFile {
    /// The file, as a message shows it.
    pub path: PathBuf,
    /// Its contents.
    pub pem: Vec<u8>,
}

/// What each certificate of a file begins with.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

impl ConfigReader<'_> {
    /// The way to this endpoint, and what of it may be a stranger's choice.
    pub(super) fn network(&mut self, address: &Address) -> (Network, Vec<EndpointRoute>) {
        let mut network = Network::default();
        let mut routes = Vec::new();
        if let Some((proxy, source)) = self.proxy(address) {
            let way = format!("through the proxy {proxy}");
            let is_told = true;
            routes.push(EndpointRoute { way, source, is_told });
            network.proxy = Some(proxy);
        }
        let is_tls = |proxy: &Proxy| proxy.scheme == ProxyScheme::Https;
        if (address.is_encrypted() || network.proxy.as_ref().is_some_and(is_tls))
            && let Some((roots, source)) = self.roots()
        {
            let way = format!("on the word of the certificates `{}`", roots.path.display());
            let is_told = false;
            routes.push(EndpointRoute { way, source, is_told });
            network.roots = Some(roots);
        }
        (network, routes)
    }

    /// The scheme's own variable comes first, then that for all.
    fn proxy(&mut self, address: &Address) -> Option<(Proxy, ValueSource)> {
        if address.is_loopback() {
            return None;
        }
        let own = if address.is_encrypted() { settings::HTTPS_PROXY } else { settings::HTTP_PROXY };
        let (text, source) = self.text(own).or_else(|| self.text(settings::ALL_PROXY))?;
        let exceptions = self.text(settings::NO_PROXY);
        if exceptions.is_some_and(|(list, _)| no_proxy::covers(&list, address)) {
            return None;
        }
        match Proxy::parse(&text) {
            Ok(proxy) => Some((proxy, source)),
            Err(fault) => {
                let problem = format!("{source} is no usable proxy: {fault}");
                self.problems.push(problem);
                None
            }
        }
    }

    /// Whether the certificates are any good is seen where they are used.
    fn roots(&mut self) -> Option<(CertificateFile, ValueSource)> {
        let (value, source) = self.settings.value(settings::SSL_CERT_FILE)?;
        let path = self.path(&value);
        let is_pem = |pem: &[u8]| pem.windows(CERTIFICATE.len()).any(|part| part == CERTIFICATE);
        let cause = match files::read_whole(&path, limits::CERTIFICATES_BYTES) {
            Ok(pem) if is_pem(&pem) => return Some((CertificateFile { path, pem }, source)),
            Ok(_) => "it holds no certificate in PEM form".into(),
            Err(cause) => cause,
        };
        self.problems.push(format!(
            "{source}: failed to read the certificates `{}`: {cause}",
            path.display()
        ));
        None
    }
}
