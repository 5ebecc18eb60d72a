//! Whom to ask: the address, the model, what goes along with every request,
//! and how the endpoint is reached.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::address::Address;
use crate::config::network::Network;
use crate::config::trust::EndpointRoute;
use crate::config::{Config, ConfigReader};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::secret::{Secret, Secrets};
use crate::settings::{self, ValueSource};

/// Whom to ask.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where requests go.
    pub address: Address,
    /// The model's name, as the endpoint knows it.
    pub model: String,
    /// The credential; `None` sends none.
    pub key: Option<Secret>,
    /// Fields merged into the body of every request.
    pub extra_body: Map<String, Value>,
    /// Headers sent with every request, each a name in lower case and a value;
    /// a name that the program would send itself replaces its value.
    pub extra_headers: Vec<(String, Secret)>,
    /// How the endpoint is reached.
    pub network: Network,
    /// Longest silence while a reply is read.
    pub idle_limit: Duration,
    /// What is masked where it is quoted.
    pub secrets: Secrets,
    /// Whether the model is shown images, also those of an earlier run.
    pub vision: bool,
}

impl Config {
    /// Whom to ask; [`ErrorKind::Config`] where it was made without
    /// [`Needs::Endpoint`](crate::config::ConfigNeeds::Endpoint).
    pub fn endpoint(&self) -> Result<Endpoint> {
        let none = "failed to find the endpoint: none is configured";
        let endpoint = self.endpoint.clone();
        endpoint.ok_or_else(|| Error::new(ErrorKind::Config, none))
    }
}

impl ConfigReader<'_> {
    pub(super) fn endpoint(&mut self, secrets: &Secrets) -> Option<Endpoint> {
        let address = self.address();
        let model = self.text(settings::LLM_MODEL_NAME).map(|(model, _)| model);
        if model.is_none() {
            self.missing(settings::LLM_MODEL_NAME, "gpt-4.1-mini, or with Ollama qwen3");
        }
        // An address that cannot be read may have been meant to be on this machine.
        let is_key_due = match &address {
            Some((to, _)) => !to.is_loopback(),
            None => self.text(settings::LLM_API_BASE_URL).is_none(),
        };
        let credentials = self.credentials(is_key_due);
        let extra_body = self.extra_body();
        let idle_limit = self.seconds(settings::LLM_TIMEOUT_SECONDS, limits::IDLE_SECONDS);
        let (address, source) = address?;
        let (network, mut routes) = self.network(&address);
        let to_address =
            EndpointRoute { way: format!("to {}", address.host()), source, is_told: true };
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
            vision: self.vision(),
            secrets: secrets.clone(),
        })
    }

    fn address(&mut self) -> Option<(Address, ValueSource)> {
        let Some((text, source)) = self.text(settings::LLM_API_BASE_URL) else {
            self.missing(
                settings::LLM_API_BASE_URL,
                "https://api.openai.com/v1, or with Ollama http://localhost:11434/v1",
            );
            return None;
        };
        match Address::parse(&text) {
            Ok(address) => Some((address, source)),
            Err(fault) => {
                self.problems.push(format!("{source} is no usable address: {fault}"));
                None
            }
        }
    }
}
