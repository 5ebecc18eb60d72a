//! How requests travel: `ureq` on our own connections.
//!
//! `ureq` is configured as narrowly as possible: statuses are no errors (their
//! bodies tell what is wrong), redirects are not followed (they would carry
//! the key to another host), and all waiting is ours. This is the only place
//! where a secret is revealed, but for a proxy's login.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use ureq::http::Response;
use ureq::{Agent, RequestBuilder};

use crate::config::Endpoint;
use crate::limits;
use crate::model::http::transport::{Dialer, NoLookup, SharedTransport, SilenceLimit, USER_AGENT};
use crate::secret::MASK;
use crate::world::cancellation::Cancellation;

const JSON: &str = "application/json";

/// A client of one endpoint. It keeps its connection open between requests.
#[derive(Debug)]
pub(super) struct Client {
    /// Whom it asks.
    pub endpoint: Endpoint,
    /// Signals and the deadline of the run.
    pub cancellation: Cancellation,
    silence: Arc<SilenceLimit>,
    agent: Agent,
    /// The last request was answered: its connection may be used again.
    has_answered: Cell<bool>,
}

impl Client {
    /// A client that has not connected yet.
    pub(super) fn new(endpoint: Endpoint, cancellation: Cancellation) -> Client {
        let silence = Arc::new(SilenceLimit::new(endpoint.idle_limit));
        let shared =
            SharedTransport { cancellation: cancellation.clone(), silence: Arc::clone(&silence) };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_connect(Some(limits::CONNECT))
            .input_buffer_size(limits::READ_BYTES)
            .output_buffer_size(limits::READ_BYTES)
            .user_agent(USER_AGENT)
            .build();
        let dialer = Dialer::new(shared, &endpoint.network);
        let agent = Agent::with_parts(config, dialer, NoLookup);
        Client { endpoint, cancellation, silence, agent, has_answered: Cell::new(false) }
    }

    /// Sends a request with a JSON body and waits for the beginning of the reply.
    pub(super) fn post(&self, url: &str, body: &[u8]) -> Result<Response<ureq::Body>, ureq::Error> {
        let result = match self.post_once(url, body) {
            // A connection that was kept open may be closed by the server in
            // the very moment in which it is used again: not a try that failed.
            Err(error) if self.has_answered.get() && self.was_closed(&error) => {
                self.post_once(url, body)
            }
            result => result,
        };
        self.has_answered.set(result.is_ok());
        result
    }

    fn post_once(&self, url: &str, body: &[u8]) -> Result<Response<ureq::Body>, ureq::Error> {
        self.expect_first();
        self.send(url, body)
    }

    /// Whether the other side hung up without a word.
    fn was_closed(&self, error: &ureq::Error) -> bool {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        let ureq::Error::Io(error) = error else {
            return false;
        };
        matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
            && !self.silence.has_been_broken()
    }

    /// Asks what the server knows by heart: its answer is all there soon. A
    /// body makes it a `POST`.
    pub(super) fn query(
        &self,
        url: &str,
        body: Option<&[u8]>,
    ) -> Result<Response<ureq::Body>, ureq::Error> {
        let limit = self.endpoint.idle_limit * limits::FIRST_BYTE_FACTOR;
        self.silence.set_whole(limit.min(limits::INQUIRY));
        match body {
            Some(body) => self.send(url, body),
            None => self.with_headers(self.agent.get(url)).call(),
        }
    }

    fn send(&self, url: &str, body: &[u8]) -> Result<Response<ureq::Body>, ureq::Error> {
        self.with_headers(self.agent.post(url).content_type(JSON)).send(body)
    }

    fn with_headers<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        let headers = self.headers().into_iter();
        headers.fold(request, |request, (name, value)| request.header(name, value))
    }

    /// The first byte may take long: a slow start is normal where a local
    /// model reads a long prompt.
    fn expect_first(&self) {
        let limit = self.endpoint.idle_limit * limits::FIRST_BYTE_FACTOR;
        self.silence.set_whole(limit);
    }

    /// From the first byte on, silence may last as long as the user allows.
    pub(super) fn expect_more(&self) {
        self.silence.set(self.endpoint.idle_limit);
    }

    /// The words of a refusal are short: all of them have to come in that time.
    pub(super) fn expect_words(&self) {
        self.silence.set_whole(self.endpoint.idle_limit);
    }

    /// Everything is there; only the end of the body is to come.
    pub(super) fn expect_end(&self) {
        self.silence.set_whole(limits::AFTER_DONE);
    }

    /// The headers that are the user's: the key, in the form that the endpoint
    /// takes, and the extra ones. An extra header takes the place of ours.
    fn headers(&self) -> Vec<(&str, String)> {
        let extra = &self.endpoint.extra_headers;
        let is_free = |name: &str| !extra.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let (name, scheme) = self.key_header();
        let key = self.endpoint.key.iter().filter(|_| is_free(name));
        let key = key.map(|key| (name, format!("{scheme}{}", key.reveal())));
        let extra = extra.iter().map(|(name, value)| (name.as_str(), value.reveal().to_string()));
        key.chain(extra).collect()
    }

    /// The header of the key, and what stands before the key in it.
    fn key_header(&self) -> (&'static str, &'static str) {
        if self.endpoint.address.wants_api_key_header() {
            ("api-key", "")
        } else {
            ("authorization", "Bearer ")
        }
    }

    /// The same headers with every credential masked, to be shown.
    pub(super) fn shown_headers(&self) -> BTreeMap<String, String> {
        let own = [("content-type", JSON), ("user-agent", USER_AGENT)];
        let own = own.map(|(name, value)| (name.to_string(), value.to_string()));
        let (_, scheme) = self.key_header();
        let secret = self.headers().into_iter().map(|(name, value)| {
            let scheme = if value.starts_with(scheme) { scheme } else { "" };
            (name.to_string(), format!("{scheme}{MASK}"))
        });
        // An extra header takes the place of ours.
        own.into_iter().chain(secret).collect()
    }
}
