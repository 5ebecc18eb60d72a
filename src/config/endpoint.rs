//! Whom to ask: the address, the model, what goes along with every request,
//! and how the endpoint is reached.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::address::Address;
use crate::config::network::Network;
use crate::config::{Reader, is_foreign, is_own};
use crate::limits;
use crate::secret::Secret;
use crate::settings::{self, Origin};

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
    /// Headers sent with every request, each a name and a value; a name that
    /// the program would send itself replaces its value.
    pub extra_headers: Vec<(String, Secret)>,
    /// How the endpoint is reached.
    pub network: Network,
    /// Longest silence while a reply is read.
    pub idle_limit: Duration,
}

impl Reader<'_> {
    pub(super) fn endpoint(&mut self) -> Option<Endpoint> {
        let address = self.address();
        let model = self.text(settings::LLM_MODEL_NAME).map(|(model, _)| model);
        if model.is_none() {
            self.missing(
                settings::LLM_MODEL_NAME,
                "gpt-4.1-mini, or with Ollama qwen3",
            );
        }
        let key = self.key(address.as_ref());
        self.refuse_leaks(address.as_ref());
        let idle_limit = self.seconds(settings::LLM_TIMEOUT_SECONDS, limits::IDLE_SECONDS);
        Some(Endpoint {
            address: address?.0,
            model: model?,
            key,
            extra_body: Map::new(),
            extra_headers: Vec::new(),
            network: Network::default(),
            idle_limit,
        })
    }

    fn address(&mut self) -> Option<(Address, Origin)> {
        let Some((text, origin)) = self.text(settings::LLM_API_BASE_URL) else {
            self.missing(
                settings::LLM_API_BASE_URL,
                "https://api.openai.com/v1, or with Ollama http://localhost:11434/v1",
            );
            return None;
        };
        match Address::parse(&text) {
            Ok(address) => Some((address, origin)),
            Err(fault) => {
                let name = settings::LLM_API_BASE_URL;
                self.problems
                    .push(format!("{name} ({origin}) is no usable address: {fault}"));
                None
            }
        }
    }

    fn key(&mut self, address: Option<&(Address, Origin)>) -> Option<Secret> {
        let name = settings::LLM_API_KEY;
        let loopback = address.is_some_and(|(address, _)| address.is_loopback());
        let Some((key, origin)) = self.secret(name) else {
            if self.text(name).is_none() && !loopback {
                self.problems.push(format!(
                    "{name} is not set: set it in the environment or in .env (`none` for an \
                     endpoint that wants no key)"
                ));
            }
            return None;
        };
        if !key.is_sendable() {
            self.problems.push(format!(
                "{name} ({origin}) holds a line break or another character that no key has: copy it again"
            ));
            return None;
        }
        let (address, address_origin) = address?;
        // A folder somebody else filled could name an address that catches the key.
        if is_foreign(address_origin) && is_own(&origin) && !loopback {
            self.problems.push(format!(
                "{name} ({origin}) is not sent to {}, which only {address_origin} names: set {} where the \
                 key is set, or pass the file with --env-file if you trust it",
                address.host(),
                settings::LLM_API_BASE_URL,
            ));
        }
        if !address.is_encrypted() && !loopback {
            self.warnings.push(format!(
                "{name} goes to {} over plain http: anybody on the way can read it",
                address.host()
            ));
        }
        Some(key)
    }

    /// The same for everything else that is sent: a foreign file must not put
    /// the user's variables into the address or the model's name.
    fn refuse_leaks(&mut self, address: Option<&(Address, Origin)>) {
        let Some((address, origin)) = address else {
            return;
        };
        if !is_foreign(origin) || address.is_loopback() {
            return;
        }
        for name in [settings::LLM_API_BASE_URL, settings::LLM_MODEL_NAME] {
            if let Some((
                _,
                Origin::File {
                    trusted: false,
                    is_dependent: true,
                    line,
                    ..
                },
            )) = self.text(name)
            {
                self.problems.push(format!(
                    "{name} (.env line {line}) puts environment variables into what is sent to {}, which only \
                     .env names: pass the file with --env-file if you trust it",
                    address.host()
                ));
            }
        }
    }

    /// The setting as a secret, trimmed; `none` and unset give `None`.
    pub(super) fn secret(&mut self, name: &'static str) -> Option<(Secret, Origin)> {
        let (text, origin) = self.text(name)?;
        if text == "none" {
            return None;
        }
        // Pasted from a header.
        let text = text.strip_prefix("Bearer ").unwrap_or(&text).trim();
        Some((Secret::new(text)?, origin))
    }
}
