//! The settings of the endpoint: its address, the model, and the additional data of every request.

use std::iter;

use crate::config::trust::EndpointRoute;
use crate::config::{Config, ConfigProblem, ConfigReader, ollama_host};
use base::address::Address;
use base::error::{Error, ErrorKind, Fault, Result};
use base::limits;
use base::secret::Secrets;
use base::settings::{self, ValueSource};
use chat_api::{Endpoint, EndpointSources, ToolCalling};

/// The name of a model and where it was set.
#[derive(Clone, Debug)]
pub(crate) struct ModelName {
    name: String,
    source: ValueSource,
}

/// An endpoint on this machine whose model is still to be found.
#[derive(Clone, Debug)]
pub(crate) struct EndpointWithoutModel(Endpoint);

impl EndpointWithoutModel {
    /// The endpoint for requests that name no model.
    pub(crate) fn for_queries(&self) -> &Endpoint {
        &self.0
    }

    /// The endpoint with the model that was found there.
    pub(crate) fn with_found_model(self, model: String) -> Endpoint {
        Endpoint { model, ..self.0 }
    }

    fn with_model(self, model: ModelName) -> Endpoint {
        let sources = EndpointSources { model: Some(model.source), ..self.0.sources };
        Endpoint { model: model.name, sources, ..self.0 }
    }
}

impl Config {
    /// Returns the endpoint; [`ErrorKind::Config`] if the configuration was built without
    /// [`ConfigNeeds::Endpoint`](crate::config::ConfigNeeds::Endpoint), or if no model is set for
    /// an endpoint on this machine.
    pub fn endpoint(&self) -> Result<Endpoint> {
        let message = match self.endpoint_without_model {
            Some(_) => "failed to find the model: LLM_MODEL_NAME is not set",
            None => "failed to find the endpoint: none is configured",
        };
        let endpoint = self.endpoint.clone();
        endpoint.ok_or_else(|| Error::new(ErrorKind::Config, message))
    }

    /// Sets the endpoint from what [`ConfigReader::endpoint`] found.
    pub(super) fn set_endpoint(
        &mut self,
        found: Option<(EndpointWithoutModel, Option<ModelName>)>,
    ) {
        match found {
            Some((endpoint, Some(model))) => self.endpoint = Some(endpoint.with_model(model)),
            Some((endpoint, None)) => self.endpoint_without_model = Some(endpoint),
            None => {}
        }
    }
}

impl ConfigReader<'_> {
    /// The endpoint, and what the settings name as its model.
    pub(super) fn endpoint(
        &mut self,
        secrets: &Secrets,
        vision: bool,
    ) -> Option<(EndpointWithoutModel, Option<ModelName>)> {
        let found = self.settings.address_setting();
        let address_setting = found.unwrap_or(settings::LLM_API_BASE_URL);
        let address = match found {
            Some(name) => self.address(name),
            None => {
                self.report_missing_endpoint();
                None
            }
        };
        // An invalid address may have been meant to be on this machine.
        let is_remote = address.as_ref().is_some_and(|(to, _)| !to.is_loopback());
        let model = self.model(address_setting, is_remote);
        let credentials = self.credentials(address_setting, is_remote);
        let extra_body = self.extra_body();
        let idle_limit = self.seconds(settings::LLM_TIMEOUT_SECONDS, limits::IDLE_SECONDS);
        let tool_calling = self.parsed(
            settings::LLM_TOOLS,
            "auto, native, prompted or schema",
            ToolCalling::from_name,
        );
        let (address, source) = address?;
        let (network, mut routes) = self.network(&address);
        let description = format!("to {}", address.host_and_port());
        let to_address = EndpointRoute { description, source: source.clone() };
        self.report_foreign_key(&to_address, &credentials.sources);
        routes.insert(0, to_address);
        let untrusted = routes.iter().find(|route| route.source.is_untrusted());
        self.folder_route = untrusted.map(|route| route.description.clone());
        self.check_trust(&address, &routes, &credentials.sources);
        let endpoint = Endpoint {
            address,
            model: String::new(),
            key: credentials.key,
            extra_body,
            extra_headers: credentials.headers,
            network,
            idle_limit,
            vision,
            tool_calling: tool_calling.unwrap_or_default(),
            parameters: None,
            secrets: secrets.clone(),
            sources: EndpointSources {
                address: source,
                credentials: credentials.sources.into_iter().map(|own| own.source).collect(),
                model: None,
            },
        };
        Some((EndpointWithoutModel(endpoint), model))
    }

    /// The name of the model. Only a remote endpoint must have one: Ollama on this machine may
    /// have a single model.
    fn model(&mut self, address_setting: &str, is_required: bool) -> Option<ModelName> {
        let is_openai = address_setting == settings::OPENAI_BASE_URL;
        let others = is_openai.then_some(settings::OPENAI_MODEL);
        let mut names = iter::once(settings::LLM_MODEL_NAME).chain(others);
        let set = names.find(|name| self.settings.value(name).is_some());
        if set.is_none() && is_required {
            self.report_missing(ConfigProblem::missing_model());
        }
        let (name, source) = self.trimmed_text(set?)?;
        Some(ModelName { name, source })
    }

    /// The address in this setting.
    fn address(&mut self, name: &'static str) -> Option<(Address, ValueSource)> {
        let (text, source) = self.trimmed_text(name)?;
        let parsed = match name {
            settings::OLLAMA_HOST => Address::parse(&ollama_host::ollama_address(&text)),
            _ => Address::parse(&text),
        };
        match parsed {
            Ok(address) => Some((address, source)),
            Err(_) if name != settings::OLLAMA_HOST && settings::looks_like_key(&text) => {
                let key = settings::key_setting(name).unwrap_or_default();
                self.report(Fault::new(
                    format!("{source} is not a valid address: it looks like a key"),
                    format!("set {name} to the endpoint's address, and {key} to the key"),
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
