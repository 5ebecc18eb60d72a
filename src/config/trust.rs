//! Trust in environment files: no data of the user goes to a destination that only `./.env`
//! sets.
//!
//! The folder's owner wrote `./.env`, and this may be another person. It may set an address
//! with a key of its own; it must not capture the user's key, files or variables. This also
//! holds for an endpoint on this machine: any local user may listen there.

use crate::address::Address;
use crate::config::ConfigReader;
use crate::settings::{self, ValueSource};

/// A setting that decides where data goes: the address, the proxy, or the certificates.
pub(super) struct EndpointRoute {
    /// The route in words, such as `to api.example.com`.
    pub description: String,
    /// The source of the setting.
    pub source: ValueSource,
    /// Whether third parties see the value itself, as name servers see the host name.
    pub is_value_disclosed: bool,
}

/// A key or header that identifies the user.
pub(super) struct Credential {
    /// The variable that contains it or names its file.
    pub source: ValueSource,
    /// Whether it belongs to the user, even if `./.env` names it.
    pub belongs_to_user: bool,
}

impl ConfigReader<'_> {
    /// Reports credentials that would go to an untrusted destination, and warns about
    /// unencrypted connections.
    pub(super) fn check_trust(
        &mut self,
        address: &Address,
        routes: &[EndpointRoute],
        credentials: &[Credential],
    ) {
        for route in routes.iter().filter(|route| route.source.is_untrusted()) {
            let EndpointRoute { description: way, source, .. } = route;
            for own in credentials.iter().filter(|credential| credential.belongs_to_user) {
                self.problems.push(format!(
                    "{} is not sent {way}, which only {} sets: set {} where the key is set, or pass the file \
                     with --env-file if you trust it",
                    own.source, source.origin, source.name
                ));
            }
        }
        self.refuse_leaks(routes);
        if !address.is_encrypted() && !address.is_loopback() {
            let names: Vec<&str> = credentials.iter().map(|c| c.source.name).collect();
            let verb = match names.as_slice() {
                [] => return,
                [_] => "goes",
                _ => "go",
            };
            self.warnings.push(format!(
                "{} {verb} to {} over plain http: others on the network can read it",
                names.join(" and "),
                address.host()
            ));
        }
    }

    /// The same for other data: `./.env` must not put the user's variables into a request,
    /// the address or the proxy.
    fn refuse_leaks(&mut self, routes: &[EndpointRoute]) {
        let foreign = routes.iter().find(|route| route.source.is_untrusted());
        let Some(EndpointRoute { description: way, source, .. }) = foreign else {
            return;
        };
        let disclosed = routes.iter().filter(|route| route.is_value_disclosed);
        let disclosed = disclosed.map(|route| route.source.clone());
        let sent = [settings::LLM_MODEL_NAME, settings::LLM_EXTRA_BODY]
            .into_iter()
            .filter_map(|name| self.settings.value(name))
            .map(|(_, source)| source);
        let leaks: Vec<String> = disclosed
            .chain(sent)
            .filter(|leak| leak.is_untrusted() && leak.uses_environment())
            .map(|leak| {
                format!(
                    "{leak} puts environment variables into data that is sent {way}, which only {} sets: pass the \
                     file with --env-file if you trust it",
                    source.origin
                )
            })
            .collect();
        self.problems.extend(leaks);
    }
}
