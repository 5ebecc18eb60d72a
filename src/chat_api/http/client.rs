//! The HTTP client: `ureq` on our own connections.
//!
//! `ureq` is configured as narrowly as possible: error statuses are ordinary responses (their
//! bodies contain the reason), redirects are not followed (they would send the key to another
//! host), and all waiting is done by our transport. Secrets are
//! revealed only here and for the login of a proxy.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use ureq::http::Response;
use ureq::{Agent, RequestBuilder};

use crate::http::proxy::basic_authorization;
use crate::http::transport::{Dialer, NoLookup, SharedTransport, SilenceLimit, USER_AGENT};
use crate::{Endpoint, Proxy, ProxyScheme};
use base::limits;
use base::secret::MASK;
use host::cancellation::Cancellation;

const JSON: &str = "application/json";

/// A client of one endpoint. It keeps its connection open between requests.
#[derive(Debug)]
pub(super) struct Client {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Signals and the deadline of the run.
    pub cancellation: Cancellation,
    silence: Arc<SilenceLimit>,
    agent: Agent,
    /// Whether the last request was answered: its connection may be reused.
    has_answered: Cell<bool>,
}

impl Client {
    /// Creates a client without connecting.
    pub(super) fn new(endpoint: Endpoint, cancellation: Cancellation) -> Client {
        let silence = Arc::new(SilenceLimit::new(endpoint.idle_limit));
        let shared =
            SharedTransport { cancellation: cancellation.clone(), silence: Arc::clone(&silence) };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_connect(Some(limits::CONNECT_TIMEOUT))
            .input_buffer_size(limits::READ_BYTES)
            .output_buffer_size(limits::READ_BYTES)
            .user_agent(USER_AGENT)
            .build();
        let dialer = Dialer::new(shared, &endpoint);
        let agent = Agent::with_parts(config, dialer, NoLookup);
        Client { endpoint, cancellation, silence, agent, has_answered: Cell::new(false) }
    }

    /// Sends a request with a JSON body and waits for the start of the reply.
    pub(super) fn post(&self, url: &str, body: &[u8]) -> Result<Response<ureq::Body>, ureq::Error> {
        let result = match self.post_once(url, body) {
            // The server may close an open connection just when it is reused: that does not
            // count as a failed try.
            Err(error) if self.has_answered.get() && self.was_closed_by_server(&error) => {
                self.post_once(url, body)
            }
            result => result,
        };
        self.has_answered.set(result.is_ok());
        result
    }

    fn post_once(&self, url: &str, body: &[u8]) -> Result<Response<ureq::Body>, ureq::Error> {
        self.limit_first_byte();
        self.send(url, body)
    }

    /// Whether the server closed the connection without a response.
    fn was_closed_by_server(&self, error: &ureq::Error) -> bool {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        let ureq::Error::Io(error) = error else {
            return false;
        };
        matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
            && !self.silence.has_received()
    }

    /// Sends a query that the server can answer quickly, so the whole answer has a short limit.
    /// A body makes it a `POST`.
    pub(super) fn query(
        &self,
        url: &str,
        body: Option<&[u8]>,
    ) -> Result<Response<ureq::Body>, ureq::Error> {
        let limit = self.endpoint.idle_limit * limits::FIRST_BYTE_FACTOR;
        self.silence.set_total(limit.min(limits::METADATA_TIMEOUT));
        match body {
            Some(body) => self.send(url, body),
            None => self.with_headers(self.agent.get(url)).call(),
        }
    }

    /// Requests a file, and waits for the start of the response.
    pub(super) fn get(&self, url: &str) -> Result<Response<ureq::Body>, ureq::Error> {
        self.silence.set_total(limits::DOWNLOAD_WINDOW);
        self.with_headers(self.agent.get(url)).call()
    }

    fn send(&self, url: &str, body: &[u8]) -> Result<Response<ureq::Body>, ureq::Error> {
        self.with_headers(self.agent.post(url).content_type(JSON)).send(body)
    }

    fn with_headers<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        let login = self.forwarding_proxy().and_then(|proxy| proxy.login.as_ref());
        let login = login.map(|login| ("proxy-authorization", basic_authorization(login)));
        let headers = self.headers().into_iter().chain(login);
        headers.fold(request, |request, (name, value)| request.header(name, value))
    }

    /// The proxy that reads and forwards each request: an HTTP proxy without a tunnel.
    pub(super) fn forwarding_proxy(&self) -> Option<&Proxy> {
        let proxy = self.endpoint.network.proxy.as_ref();
        let is_http = |proxy: &&Proxy| proxy.scheme == ProxyScheme::Http;
        proxy.filter(is_http).filter(|_| !self.endpoint.address.is_encrypted())
    }

    /// Allows a long wait for the first byte, since local models read long prompts slowly.
    fn limit_first_byte(&self) {
        let limit = self.endpoint.idle_limit * limits::FIRST_BYTE_FACTOR;
        self.silence.set_total(limit);
    }

    /// Limits each silence after the first byte.
    pub(super) fn limit_silence(&self) {
        self.silence.set_silence(self.endpoint.idle_limit);
    }

    /// Limits silence, and the time until the next content of a reply.
    pub(super) fn limit_keep_alives(&self) {
        self.silence.set_content(self.endpoint.idle_limit);
    }

    /// Limits the time for the whole body of a refusal, which is short.
    pub(super) fn limit_error_body(&self) {
        self.silence.set_total(self.endpoint.idle_limit);
    }

    /// Limits the time for the end of the body after the end marker.
    pub(super) fn limit_stream_end(&self) {
        self.silence.set_total(limits::DRAIN_AFTER_DONE);
    }

    /// The headers from the configuration: the key, in the form that the endpoint expects, and
    /// the extra ones. An extra header replaces ours.
    fn headers(&self) -> Vec<(&str, String)> {
        let extra = &self.endpoint.extra_headers;
        let is_free = |name: &str| !extra.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let (name, scheme) = self.key_header();
        let key = self.endpoint.key.iter().filter(|_| is_free(name));
        let key = key.map(|key| (name, format!("{scheme}{}", key.reveal())));
        let extra = extra.iter().map(|(name, value)| (name.as_str(), value.reveal().to_string()));
        key.chain(extra).collect()
    }

    /// The header for the key, and the text before the key in it.
    fn key_header(&self) -> (&'static str, &'static str) {
        if self.endpoint.address.needs_api_key_header() {
            ("api-key", "")
        } else {
            ("authorization", "Bearer ")
        }
    }

    /// The headers with every credential masked, for display.
    pub(super) fn masked_headers(&self) -> BTreeMap<String, String> {
        let own = [("content-type", JSON), ("user-agent", USER_AGENT)];
        let own = own.map(|(name, value)| (name.to_string(), value.to_string()));
        let (_, scheme) = self.key_header();
        let secret = self.headers().into_iter().map(|(name, value)| {
            let scheme = if value.starts_with(scheme) { scheme } else { "" };
            (name.to_string(), format!("{scheme}{MASK}"))
        });
        // An extra header replaces ours.
        own.into_iter().chain(secret).collect()
    }
}

/// The address without its query, which may contain credentials.
pub(super) fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(before, _)| before)
}
