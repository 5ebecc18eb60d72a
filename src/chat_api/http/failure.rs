//! Failures of requests: refusals, broken connections, invalid replies. Each gets its kind, its
//! hint, and whether it is retried.

use std::io::{self, Read};
use std::time::SystemTime;

use serde_json::Value;
use ureq::http::response::Parts;
use ureq::http::{HeaderMap, StatusCode};

use crate::Endpoint;
use crate::http::client::{Client, without_query};
use crate::http::peer::Peer;
use crate::http::proxy;
use crate::invalid_response::InvalidResponse;
use crate::quirks::refusals;
use crate::request_failure::{
    ErrorFields, ErrorResponse, RequestFailure, address_hint, interpret_refusal,
};
use crate::retry;
use base::error::{Error, ErrorKind, FailedPart};
use base::limits;
use base::settings;
use base::text::one_line;
use host::cancellation::StopReason;

impl Client {
    /// The failure of a response with an error status.
    pub(super) fn refusal_failure(
        &self,
        url: &str,
        parts: &Parts,
        reader: &mut dyn Read,
    ) -> RequestFailure {
        if let Some(proxy) = self.forwarding_proxy()
            && parts.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED
        {
            let offers = parts.headers.get_all("proxy-authenticate").into_iter();
            let offers = offers.filter_map(|offer| offer.to_str().ok());
            return proxy::login_failure(&Peer::from_proxy(proxy), offers, proxy.login.is_some());
        }
        self.limit_error_body();
        let mut body = Vec::new();
        // The part of the body that was received is used, even if the rest is missing.
        let result = reader.take(limits::ERROR_BODY_BYTES as u64).read_to_end(&mut body);
        if let Some(stop) = result.err().as_ref().and_then(stop_error) {
            return stop.into();
        }
        self.interpret(url, parts.status.as_u16(), &parts.headers, &body)
    }

    /// The failure of a response that is not a valid reply, in spite of its status.
    pub(super) fn invalid_response_failure(
        &self,
        url: &str,
        invalid: InvalidResponse,
        parts: &Parts,
    ) -> RequestFailure {
        let status = parts.status.as_u16();
        match invalid {
            InvalidResponse::ErrorObject(mut value) => {
                shorten_texts(&mut value);
                let text = match &value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let mut failure = self.interpret(url, status, &parts.headers, text.as_bytes());
                if text.trim_start().starts_with('<') {
                    let hint = format!(
                        "no API is at this address; {}",
                        address_hint(without_query(url), self.address_setting())
                    );
                    failure = failure.with_hint(hint).with_part(FailedPart::Address);
                }
                failure
            }
            other => {
                let status = match status {
                    200 => String::new(),
                    _ => format!("status {status}, and "),
                };
                let cause = format!("{status}the reply is not a chat completion: {other}");
                RequestFailure::new(ErrorKind::Protocol, cause)
            }
        }
    }

    /// Whether the response is from a proxy that forwards plain http.
    fn is_from_proxy(&self, headers: &HeaderMap) -> bool {
        let server = headers.get("server").and_then(|name| name.to_str().ok());
        let is_known = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.starts_with("squid") || name.starts_with("tinyproxy")
        };
        self.forwarding_proxy().is_some()
            && (headers.contains_key("x-squid-error") || server.is_some_and(is_known))
    }

    /// The hint for refused credentials.
    fn credentials_hint(&self) -> String {
        let Endpoint { key, extra_headers, sources, .. } = &self.endpoint;
        let is_key = |name: &str| matches!(name, "authorization" | "api-key");
        let address = self.address_setting();
        match (key, settings::key_setting(address)) {
            _ if extra_headers.iter().any(|(name, _)| is_key(name)) => {
                "check the header in LLM_EXTRA_HEADERS that replaces LLM_API_KEY".into()
            }
            (Some(_), _) => {
                let name = sources.credentials.first().map_or("the key", |source| source.name);
                format!("check {name}, and that {address} is the endpoint it is for")
            }
            (None, Some(settings::LLM_API_KEY)) => {
                "no key was sent: set LLM_API_KEY or LLM_API_KEY_FILE".into()
            }
            (None, Some(name)) => format!("no key was sent: set {name}"),
            (None, None) => format!(
                "no key is sent to the address in {address}: set LLM_API_BASE_URL and LLM_API_KEY"
            ),
        }
    }

    /// The variable with the endpoint's address.
    fn address_setting(&self) -> &'static str {
        self.endpoint.sources.address.name
    }

    fn interpret(
        &self,
        url: &str,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> RequestFailure {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        // Rate limits are reported with every response; they count only if one is exhausted.
        let is_limited = status == StatusCode::TOO_MANY_REQUESTS.as_u16();
        let limit = |name: &str| header(name).filter(|_| is_limited || name.contains("retry"));
        let requested = retry::requested_delay(&limit, body, SystemTime::now());
        let status_name = StatusCode::from_u16(status).ok().and_then(|it| it.canonical_reason());
        let mut failure = interpret_refusal(&ErrorFields {
            status,
            status_name: status_name.unwrap_or_default(),
            url: without_query(url),
            body,
            location: header("location"),
            request_id: refusals::REQUEST_ID_HEADERS.iter().find_map(|name| header(name)),
            retry_after: requested,
            address_setting: self.address_setting(),
            secrets: &self.endpoint.secrets,
        });
        if failure.kind == ErrorKind::Auth {
            failure = failure.with_hint(self.credentials_hint());
        }
        if self.is_from_proxy(headers) && matches!(status, 401 | 403) {
            let hint = "the proxy answered this, not the endpoint: check its login and whether it allows this address";
            failure = failure.with_hint(hint).with_part(FailedPart::Route);
        }
        if let Some(requested) = requested.filter(|requested| {
            *requested > self.cancellation.capped_by_deadline(limits::RETRY_AFTER_MAX)
        }) {
            let hint = format!("retry after {} s", requested.as_secs().max(1));
            failure = failure.with_hint(hint).without_retry();
        }
        failure
    }
}

/// A failure before the first request passes through `ureq` inside an I/O error, as a
/// [`StopReason`] does; `transport_failure` takes it out again.
impl From<RequestFailure> for io::Error {
    fn from(failure: RequestFailure) -> io::Error {
        io::Error::other(failure)
    }
}

impl From<RequestFailure> for ureq::Error {
    fn from(failure: RequestFailure) -> ureq::Error {
        ureq::Error::Io(failure.into())
    }
}

/// The failure of a success without a body.
pub(super) fn empty_reply_failure() -> RequestFailure {
    let failure = RequestFailure::temporary("the reply is empty");
    RequestFailure { answer: Some(Box::new(ErrorResponse::new(200, b""))), ..failure }
}

/// The failure of a request without a response: network, time limits, signals.
pub(super) fn transport_failure(error: ureq::Error) -> RequestFailure {
    let error = match error {
        ureq::Error::Io(error) => error,
        ureq::Error::Protocol(_) | ureq::Error::Http(_) | ureq::Error::LargeResponseHeader(..) => {
            let cause = format!("the reply is not HTTP: {error}");
            return RequestFailure::new(ErrorKind::Protocol, cause);
        }
        other => io::Error::other(other),
    };
    let error = match error.downcast::<RequestFailure>() {
        Ok(failure) => return failure,
        Err(error) => error,
    };
    if let Some(stop) = stop_error(&error) {
        return stop.into();
    }
    if let Some(stop) = StopReason::from_io_error(&error) {
        // Not retried: a local model would read the whole prompt again.
        return RequestFailure::temporary(stop.to_string())
            .with_hint("a slow model needs a larger LLM_TIMEOUT_SECONDS")
            .without_retry();
    }
    let cause = match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the connection was closed before the reply was complete".into()
        }
        _ => one_line(&error.to_string(), limits::QUOTED_BYTES),
    };
    RequestFailure::temporary(cause)
}

/// The error of a run that must stop, if the I/O error contains such a reason.
pub(super) fn stop_error(error: &io::Error) -> Option<Error> {
    match StopReason::from_io_error(error)? {
        StopReason::Silence(_) | StopReason::Incomplete(_) | StopReason::KeepAlives(_) => None,
        stop => Some(stop.into()),
    }
}

/// Cuts long texts: only the first words of an error are shown.
fn shorten_texts(value: &mut Value) {
    match value {
        Value::String(text) => {
            text.truncate(text.floor_char_boundary(limits::ERROR_BODY_BYTES));
            text.shrink_to_fit();
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_texts),
        Value::Object(fields) => fields.values_mut().for_each(shorten_texts),
        _ => {}
    }
}
