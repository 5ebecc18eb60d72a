//! The endpoint: its address, the model, the additional data of every request, and the
//! network route.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::address::Address;
use crate::config::network::Network;
use crate::config::trust::EndpointRoute;
use crate::config::{Config, ConfigReader};
use crate::error::{Error, ErrorKind, Fault, Result};
use crate::limits;
use crate::secret::{Secret, Secrets};
use crate::settings::{self, ValueSource};

/// The endpoint and how requests are sent to it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where requests go.
    pub address: Address,
    /// The model's name, as the endpoint lists it.
    pub model: String,
    /// The key; `None`: no key is sent.
    pub key: Option<Secret>,
    /// Fields merged into the body of every request.
    pub extra_body: Map<String, Value>,
    /// Headers sent with every request: a name in lower case and a value. A header that the
    /// program would send itself is replaced.
    pub extra_headers: Vec<(String, Secret)>,
    /// The proxy and certificates for the endpoint.
    pub network: Network,
    /// The longest silence while a reply is read.
    pub idle_limit: Duration,
    /// Values that are masked in quoted text.
    pub secrets: Secrets,
    /// Whether images are sent to the model, including those of an earlier run.
    pub vision: bool,
}

impl Config {
    /// Returns the endpoint; [`ErrorKind::Config`] if the configuration was built without
    /// [`ConfigNeeds::Endpoint`](crate::config::ConfigNeeds::Endpoint).
    pub fn endpoint(&self) -> Result<Endpoint> {
        let message = "failed to find the endpoint: none is configured";
        let endpoint = self.endpoint.clone();
        endpoint.ok_or_else(|| Error::new(ErrorKind::Config, message))
    }
}

impl ConfigReader<'_> {
    pub(super) fn endpoint(&mut self, secrets: &Secrets, vision: bool) -> Option<Endpoint> {
        let address = self.address();
        let model = self.model();
        // An invalid address may have been meant to be on this machine.
        let is_key_due = match &address {
            Some((to, _)) => !to.is_loopback(),
            None => self.settings.value(settings::LLM_API_BASE_URL).is_none(),
        };
        let credentials = self.credentials(is_key_due);
        let extra_body = self.extra_body();
        let idle_limit = self.seconds(settings::LLM_TIMEOUT_SECONDS, limits::IDLE_SECONDS);
        let (address, source) = address?;
        let (network, mut routes) = self.network(&address);
        let to_address = EndpointRoute {
            description: format!("to {}", address.host()),
            source,
            is_value_disclosed: true,
        };
        routes.insert(0, to_address);
        self.check_trust(&address, &routes, &credentials.sources);
        Some(Endpoint {
            address,
            model: model?,
            key: credentials.key,
            extra_body,
            extra_headers: credentials.headers,
            network,
            idle_limit,
            vision,
            secrets: secrets.clone(),
        })
    }

    fn model(&mut self) -> Option<String> {
        let name = settings::LLM_MODEL_NAME;
        if self.settings.value(name).is_none() {
            self.report_missing(name, ", for example gpt-4.1-mini, or with Ollama qwen3");
        }
        Some(self.trimmed_text(name)?.0)
    }

    fn address(&mut self) -> Option<(Address, ValueSource)> {
        let name = settings::LLM_API_BASE_URL;
        if self.settings.value(name).is_none() {
            let example = "https://api.openai.com/v1, or with Ollama http://localhost:11434/v1";
            self.report_missing(name, &format!(", for example {example}"));
        }
        let (text, source) = self.trimmed_text(name)?;
        match Address::parse(&text) {
            Ok(address) => Some((address, source)),
            Err(_) if settings::looks_like_key(&text) => {
                self.report(Fault::new(
                    format!("{source} is not a valid address: it looks like a key"),
                    format!("set {name} to the endpoint's address, and LLM_API_KEY to the key"),
                ));
                None
            }
            Err(cause) => {
                let message = format!("{source} is not a valid address: {cause}");
                self.report(Fault::without_fix(message));
                None
            }
        }
    }
}
