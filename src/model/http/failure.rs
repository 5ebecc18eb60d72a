//! What failed, in the words of the house: a refusal, a broken connection, a
//! reply that is none. Each gets its kind, its remedy, and whether another try
//! may help.

use std::io::{self, Read};
use std::time::SystemTime;

use serde_json::Value;
use ureq::http::response::Parts;
use ureq::http::{HeaderMap, StatusCode};

use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::model::http::client::Client;
use crate::model::http::connect_error::{ConnectError, no_answer, shown};
use crate::model::invalid_response::InvalidResponse;
use crate::model::request_failure::{
    ErrorFields, ErrorResponse, RequestFailure, address_hint, interpret,
};
use crate::model::retry;
use crate::text::one_line;
use crate::world::cancellation::StopReason;

/// Where servers put their id of a request.
const REQUEST_IDS: [&str; 4] =
    ["x-request-id", "request-id", "apim-request-id", "x-amzn-requestid"];

impl Client {
    /// The meaning of a reply whose status is no success.
    pub(super) fn refused(
        &self,
        url: &str,
        parts: &Parts,
        reader: &mut dyn Read,
    ) -> RequestFailure {
        self.expect_words();
        let mut body = Vec::new();
        // What came of the body serves, even if its end did not.
        let result = reader.take(limits::ERROR_BODY_BYTES as u64).read_to_end(&mut body);
        if let Some(stop) = result.err().as_ref().and_then(stop_of) {
            return RequestFailure::lasting(stop);
        }
        self.interpret(url, parts.status.as_u16(), &parts.headers, &body)
    }

    /// The meaning of a reply that is none, in spite of its status.
    pub(super) fn faulty(
        &self,
        url: &str,
        fault: InvalidResponse,
        parts: &Parts,
    ) -> RequestFailure {
        let status = parts.status.as_u16();
        match fault {
            InvalidResponse::Refused(mut value) => {
                shorten(&mut value);
                let text = match &value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let mut failure = self.interpret(url, status, &parts.headers, text.as_bytes());
                if text.trim_start().starts_with('<') {
                    let hint = format!("that is no API: {}", address_hint(shown(url)));
                    failure.error = failure.error.with_hint(hint);
                }
                failure
            }
            other => {
                let reason = Error::from(other);
                let text = match status {
                    200 => format!("the reply is no chat completion: {}", reason.message()),
                    _ => format!("status {status}, and no chat completion: {}", reason.message()),
                };
                RequestFailure::lasting(no_answer(url, ErrorKind::Protocol, &text))
            }
        }
    }

    /// Whether a proxy that passes plain http on answered by itself.
    fn is_from_proxy(&self, headers: &HeaderMap) -> bool {
        let server = headers.get("server").and_then(|name| name.to_str().ok());
        let is_known = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.starts_with("squid") || name.starts_with("tinyproxy")
        };
        self.endpoint.network.proxy.is_some()
            && !self.endpoint.address.is_encrypted()
            && (headers.contains_key("x-squid-error") || server.is_some_and(is_known))
    }

    /// What to look at when the endpoint does not know who asks.
    fn credentials_hint(&self) -> &'static str {
        let endpoint = &self.endpoint;
        let is_key = |name: &str| matches!(name, "authorization" | "api-key");
        if endpoint.extra_headers.iter().any(|(name, _)| is_key(name)) {
            "check the header in LLM_EXTRA_HEADERS that takes the place of LLM_API_KEY"
        } else if endpoint.key.is_none() {
            "no key was sent: set LLM_API_KEY or LLM_API_KEY_FILE"
        } else {
            "check LLM_API_KEY and that LLM_API_BASE_URL is its endpoint"
        }
    }

    fn interpret(
        &self,
        url: &str,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> RequestFailure {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        // Limits are told with every reply; only where one is used up they count.
        let is_limited = status == StatusCode::TOO_MANY_REQUESTS.as_u16();
        let limit = |name: &str| header(name).filter(|_| is_limited || name.contains("retry"));
        let asked = retry::requested_delay(&limit, body, SystemTime::now());
        let mut failure = interpret(&ErrorFields {
            status,
            url: shown(url),
            body,
            location: header("location"),
            request_id: REQUEST_IDS.iter().find_map(|name| header(name)),
            retry_after: asked,
            secrets: &self.endpoint.secrets,
        });
        if failure.error.kind() == ErrorKind::Auth {
            failure.error = failure.error.with_hint(self.credentials_hint());
        }
        if self.is_from_proxy(headers) && matches!(status, 401 | 403) {
            let hint = "the proxy said so, not the endpoint: check its login, and whether it allows that address";
            failure.error = failure.error.with_hint(hint);
        }
        if let Some(asked) =
            asked.filter(|asked| *asked > self.cancellation.limited_to(limits::RETRY_AFTER_MAX))
        {
            failure.retryable = false;
            failure.error =
                failure.error.with_hint(format!("retry after {} s", asked.as_secs().max(1)));
        }
        failure
    }
}

/// The meaning of a success without a body.
pub(super) fn nothing(url: &str) -> RequestFailure {
    let mut failure =
        RequestFailure::passing(no_answer(url, ErrorKind::Temporary, "the reply is empty"));
    failure.answer = Some(ErrorResponse { status: 200, body: Vec::new() });
    failure
}

/// No reply at all: network, time, signals.
pub(super) fn broken(url: &str, error: ureq::Error) -> RequestFailure {
    let error = match error {
        ureq::Error::Io(error) => error,
        ureq::Error::Protocol(_) | ureq::Error::Http(_) | ureq::Error::LargeResponseHeader(..) => {
            let text = format!("the reply is no HTTP: {error}");
            return RequestFailure::lasting(no_answer(url, ErrorKind::Protocol, &text));
        }
        other => io::Error::other(other),
    };
    let error = match error.downcast::<ConnectError>() {
        Ok(obstacle) => return obstacle.into_failure(url),
        Err(error) => error,
    };
    if let Some(stop) = stop_of(&error) {
        return RequestFailure::lasting(stop);
    }
    if let Some(stop @ (StopReason::Silence(_) | StopReason::Dripping(_))) =
        StopReason::within(&error)
    {
        // Not tried again: a local model would read the whole prompt once more.
        let error = no_answer(url, ErrorKind::Temporary, &stop.to_string());
        return RequestFailure::lasting(
            error.with_hint("a slow model needs a larger LLM_TIMEOUT_SECONDS"),
        );
    }
    let text = match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the connection was closed before the reply was complete".into()
        }
        _ => one_line(&error.to_string(), limits::QUOTED_BYTES),
    };
    RequestFailure::passing(no_answer(url, ErrorKind::Temporary, &text))
}

/// The error of a run that is to stop, if this I/O error says so.
pub(super) fn stop_of(error: &io::Error) -> Option<Error> {
    match StopReason::within(error)? {
        StopReason::Silence(_) | StopReason::Dripping(_) => None,
        stop => Some(stop.into()),
    }
}

/// Cuts long texts: only the first words of an error are ever shown.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => {
            text.truncate(text.floor_char_boundary(limits::ERROR_BODY_BYTES));
            text.shrink_to_fit();
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}
