//! The network route to the endpoint: a direct connection or a proxy, and the trusted
//! certificates.
//!
//! Only the settings for this endpoint are checked: an invalid proxy is not a problem if the
//! endpoint is on this machine or excluded by `NO_PROXY`.

use std::path::Path;

use crate::config::trust::EndpointRoute;
use crate::config::{ConfigReader, configuration_error, no_proxy, proxy};
use base::address::Address;
use base::error::{Fault, Result};
use base::limits;
use base::settings::{self, Settings, ValueSource};
use chat_api::{CertificateFile, Network, Proxy};
use host::files;

/// The first line of each certificate in a file.
const CERTIFICATE_START: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// The network settings for a download from this address. `./.env`, whose author may not be
/// the user, must not choose the route: it could replace what is downloaded.
pub(crate) fn network_for_download(
    settings: &Settings,
    user_folder: &Path,
    address: &Address,
) -> Result<Network> {
    let mut reader = ConfigReader::new(settings, user_folder);
    let (network, routes) = reader.network(address);
    for EndpointRoute { description: way, source, .. } in routes {
        if source.is_untrusted() {
            reader.report(Fault::new(
                format!("nothing is downloaded {way}, which only {} sets", source.origin),
                format!("set {} in the environment or in your own .env", source.name),
            ));
        }
    }
    match reader.problems.as_slice() {
        [] => Ok(network),
        problems => Err(configuration_error(problems, &[])),
    }
}

impl ConfigReader<'_> {
    /// The network settings for this endpoint, and the routes whose source must be checked.
    pub(super) fn network(&mut self, address: &Address) -> (Network, Vec<EndpointRoute>) {
        let mut network = Network::default();
        let mut routes = Vec::new();
        match self.proxy(address) {
            Ok((proxy, source)) => {
                let way = format!("through the proxy {proxy}");
                routes.push(EndpointRoute { description: way, source });
                network.proxy = Some(proxy);
            }
            Err(reason) => {
                let proxies = [settings::HTTPS_PROXY, settings::HTTP_PROXY, settings::ALL_PROXY];
                let is_any_set = proxies.iter().any(|name| self.settings.value(name).is_some());
                network.direct_reason = is_any_set.then_some(reason);
            }
        }
        if address.is_encrypted()
            && let Some((roots, source)) = self.roots()
        {
            let way = format!("with the trusted certificates `{}`", roots.path.display());
            routes.push(EndpointRoute { description: way, source });
            network.roots = Some(roots);
        }
        (network, routes)
    }

    /// Reads the proxy: the variable for the address's scheme, then `ALL_PROXY`. Returns
    /// otherwise why there is none.
    fn proxy(
        &mut self,
        address: &Address,
    ) -> std::result::Result<(Proxy, ValueSource), &'static str> {
        if address.is_loopback() {
            return Err("loopback");
        }
        let (own, unset) = if address.is_encrypted() {
            (settings::HTTPS_PROXY, "no proxy for https is set")
        } else {
            (settings::HTTP_PROXY, "no proxy for http is set")
        };
        let found = self.trimmed_text(own).or_else(|| self.trimmed_text(settings::ALL_PROXY));
        let (text, source) = found.ok_or(unset)?;
        let exceptions = self.trimmed_text(settings::NO_PROXY);
        if exceptions.is_some_and(|(list, _)| no_proxy::covers(&list, address)) {
            return Err(settings::NO_PROXY);
        }
        proxy::parse(&text).map(|proxy| (proxy, source.clone())).map_err(|cause| {
            self.report(Fault::without_fix(format!("{source} is not a valid proxy: {cause}")));
            "it is not valid"
        })
    }

    /// Reads the certificates. They are checked when they are used.
    fn roots(&mut self) -> Option<(CertificateFile, ValueSource)> {
        let (value, source) = self.settings.value(settings::SSL_CERT_FILE)?;
        let path = self.path(&value);
        let is_pem =
            |pem: &[u8]| pem.windows(CERTIFICATE_START.len()).any(|part| part == CERTIFICATE_START);
        let cause = match files::read_whole(&path, limits::CERTIFICATES_BYTES) {
            Ok(pem) if is_pem(&pem) => return Some((CertificateFile { path, pem }, source)),
            Ok(_) => "it holds no certificate in PEM form".into(),
            Err(cause) => cause,
        };
        self.report(Fault::without_fix(format!(
            "{source}: failed to read the certificates `{}`: {cause}",
            path.display()
        )));
        None
    }
}
