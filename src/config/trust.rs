//! Who may learn what: nothing of the user's goes where only a stranger's
//! file sends it.
//!
//! `./.env` was written by the folder's owner. It may name an address of its
//! own for a key of its own; it must not be able to catch the user's key, a
//! file of the user's or the user's variables. That holds for an endpoint on
//! this machine too: anybody who works here may listen.

use crate::address::Address;
use crate::config::ConfigReader;
use crate::settings::{self, ValueSource};

/// What decides who learns what is sent: the address, the proxy, the
/// certificates.
pub(super) struct EndpointRoute {
    /// How it goes, as `to api.example.com`.
    pub way: String,
    /// Who says so.
    pub source: ValueSource,
    /// Whether somebody on the way learns the value itself, as name servers
    /// do the host's name.
    pub is_told: bool,
}

/// Something that proves who the user is.
pub(super) struct Credential {
    /// The variable that holds it, or names its file.
    pub source: ValueSource,
    /// Whether it is the user's, whoever named it.
    pub is_own: bool,
}

impl ConfigReader<'_> {
    /// Refuses what would be sent to strangers, and warns where all can read it.
    pub(super) fn check_trust(
        &mut self,
        address: &Address,
        routes: &[EndpointRoute],
        credentials: &[Credential],
    ) {
        for route in routes.iter().filter(|route| route.source.is_foreign()) {
            let EndpointRoute { way, source, .. } = route;
            for own in credentials.iter().filter(|credential| credential.is_own) {
                self.problems.push(format!(
                    "{} is not sent {way}, which only {} names: set {} where the key is set, or pass the file \
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
                "{} {verb} to {} over plain http: anybody on the way can read it",
                names.join(" and "),
                address.host()
            ));
        }
    }

    /// The same for everything else that is sent: a foreign file must not put
    /// the user's variables into a request, nor into the address or the proxy.
    fn refuse_leaks(&mut self, routes: &[EndpointRoute]) {
        let foreign = routes.iter().find(|route| route.source.is_foreign());
        let Some(EndpointRoute { way, source, .. }) = foreign else {
            return;
        };
        let told = routes.iter().filter(|route| route.is_told);
        let told = told.map(|route| route.source.clone());
        let sent = [settings::LLM_MODEL_NAME, settings::LLM_EXTRA_BODY]
            .into_iter()
            .filter_map(|name| self.settings.value(name))
            .map(|(_, source)| source);
        let leaks: Vec<String> = told
            .chain(sent)
            .filter(|leak| leak.is_foreign() && leak.is_dependent())
            .map(|leak| {
                format!(
                    "{leak} puts environment variables into what is sent {way}, which only {} names: pass the \
                     file with --env-file if you trust it",
                    source.origin
                )
            })
            .collect();
        self.problems.extend(leaks);
    }
}
