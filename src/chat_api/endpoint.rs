//! The endpoint: its address, the model, the additional data of every request, and the network
//! route: a direct connection or a proxy, and the trusted certificates.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use base::address::{Address, Authority};
use base::limits;
use base::secret::{Secret, Secrets};
use base::settings::{Origin, ValueSource};

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
    /// How the model calls tools, as it is set.
    pub tool_calling: ToolCalling,
    /// The number of the model's parameters, if the endpoint has reported it.
    pub parameters: Option<u64>,
    /// Where these settings come from.
    pub sources: EndpointSources,
}

/// How a model is offered tools, and calls them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolCalling {
    /// In the fields of the API; in text once the endpoint says that it has no tools, and by
    /// constrained replies if the model is small.
    #[default]
    Auto,
    /// In the fields of the API.
    Native,
    /// In text: the system message describes them.
    Prompted,
    /// Each reply is one JSON object, a call or the answer: the endpoint is given its schema.
    Schema,
}

impl ToolCalling {
    /// The value with this name in `LLM_TOOLS`.
    pub fn from_name(name: &str) -> Option<ToolCalling> {
        match name {
            "auto" => Some(ToolCalling::Auto),
            "native" => Some(ToolCalling::Native),
            "prompted" => Some(ToolCalling::Prompted),
            "schema" => Some(ToolCalling::Schema),
            _ => None,
        }
    }
}

/// Where the parts of an [`Endpoint`] were set.
#[derive(Clone, Debug)]
pub struct EndpointSources {
    /// The address.
    pub address: ValueSource,
    /// The key and the additional headers that are sent.
    pub credentials: Vec<ValueSource>,
    /// The name of the model; `None`: it is the only one that the endpoint has.
    pub model: Option<ValueSource>,
}

impl EndpointSources {
    /// The settings whose credentials are sent; `None` if none are.
    pub fn credentials_text(&self) -> Option<String> {
        let names = self.credentials.iter().map(ToString::to_string);
        let names = names.collect::<Vec<_>>().join(" and ");
        (!names.is_empty()).then_some(names)
    }
}

impl Endpoint {
    /// How this model calls tools: a small one by constrained replies, if nothing else is set.
    #[must_use]
    pub fn calling(&self) -> ToolCalling {
        if self.is_small() { ToolCalling::Schema } else { self.tool_calling }
    }

    /// Whether the size of the model decides, and it is small.
    pub fn is_small(&self) -> bool {
        let is_small = self.parameters.is_some_and(|count| count <= limits::SMALL_MODEL_PARAMETERS);
        self.tool_calling == ToolCalling::Auto && is_small
    }

    /// Whether the size of the model decides how it calls tools: a server on this machine may
    /// report it.
    pub fn calls_by_size(&self) -> bool {
        self.tool_calling == ToolCalling::Auto && self.address.is_loopback()
    }

    /// A server for downloads: it gets no credentials. `setting` is what the user typed the address
    /// for, in hints.
    pub fn for_download(address: Address, network: Network, setting: &'static str) -> Endpoint {
        Endpoint {
            address,
            model: String::new(),
            key: None,
            extra_body: Map::new(),
            extra_headers: Vec::new(),
            network,
            idle_limit: limits::DOWNLOAD_WINDOW,
            secrets: Secrets::default(),
            vision: false,
            tool_calling: ToolCalling::Native,
            parameters: None,
            sources: EndpointSources {
                address: ValueSource { name: setting, origin: Origin::Flag(setting) },
                credentials: Vec::new(),
                model: None,
            },
        }
    }
}

/// The proxy and the trusted certificates for an endpoint.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// The proxy; `None`: connections are direct.
    pub proxy: Option<Proxy>,
    /// Why connections are direct although a proxy is set.
    pub direct_reason: Option<&'static str>,
    /// Certificates that replace the built-in root certificates.
    pub roots: Option<CertificateFile>,
}

/// A proxy. `Display` and `Debug` omit the login.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The protocol.
    pub scheme: ProxyScheme,
    /// The host name or address; an IPv6 address has no brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// User name and password, percent-decoded. The password is missing if the user name is a
    /// token.
    pub login: Option<(String, Option<Secret>)>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyScheme {
    /// HTTP: `CONNECT` for https, the absolute form for http (RFC 9110, 9.3.6; RFC 9112, 3.2.2).
    Http,
    /// SOCKS 5 (RFC 1928); the proxy looks names up.
    Socks,
}

impl ProxyScheme {
    /// The scheme as in an address.
    pub fn name(self) -> &'static str {
        match self {
            ProxyScheme::Http => "http",
            ProxyScheme::Socks => "socks5h",
        }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = Authority { host: self.host.clone(), port: Some(self.port) };
        write!(f, "{}://{authority}", self.scheme.name())
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
    /// The file, as messages show it.
    pub path: PathBuf,
    /// The contents of the file.
    pub pem: Vec<u8>,
}
