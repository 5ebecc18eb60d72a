//! Failures of requests, and what a refusal means: the kind of the error, the remedy, and whether
//! the request is worth sending again. The message for the user is made at the end, by
//! [`RequestFailure::error`].

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::error_text::{has_message, server_message};
use crate::quirks::refusals::{self, Meaning};
use base::error::{Error, ErrorKind, FailedPart};
use base::limits;
use base::secret::Secrets;
use base::text::one_line;

/// A request that failed, perhaps before there was a connection.
#[derive(Debug)]
pub struct RequestFailure {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The cause, without the address of the request.
    pub cause: String,
    /// The remedy, if one is known.
    pub hint: Option<String>,
    /// The part of the setup that the failure points to, if it is known.
    pub(super) part: Option<FailedPart>,
    /// Whether another try may succeed.
    pub is_retryable: bool,
    /// The delay that the server requests before the next try.
    pub retry_after: Option<Duration>,
    /// The response, if there was one.
    pub answer: Option<Box<ErrorResponse>>,
}

/// A refusal as received.
#[derive(Debug)]
pub struct ErrorResponse {
    /// The HTTP status, or the status in an error object.
    pub status: u16,
    /// The part of the body that was read.
    pub body: Vec<u8>,
    /// The same as text in lower case.
    pub words: String,
    /// Whether the request had too many bytes, rather than too many tokens.
    pub is_too_large: bool,
}

impl ErrorResponse {
    /// Creates a response with this status and body.
    pub fn new(status: u16, body: &[u8]) -> ErrorResponse {
        let words = String::from_utf8_lossy(body).to_lowercase();
        ErrorResponse { status, body: body.to_vec(), words, is_too_large: false }
    }
}

impl RequestFailure {
    /// Creates a failure with this cause. It is retried if it is temporary.
    pub fn new(kind: ErrorKind, cause: impl Into<String>) -> RequestFailure {
        RequestFailure {
            kind,
            cause: cause.into(),
            hint: None,
            part: None,
            is_retryable: kind == ErrorKind::Temporary,
            retry_after: None,
            answer: None,
        }
    }

    /// Creates a failure after which another try may succeed.
    pub fn temporary(cause: impl Into<String>) -> RequestFailure {
        RequestFailure::new(ErrorKind::Temporary, cause)
    }

    /// Adds a remedy.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> RequestFailure {
        RequestFailure { hint: Some(hint.into()), ..self }
    }

    /// Adds the part of the setup that the failure points to.
    #[must_use]
    pub(super) fn with_part(self, part: FailedPart) -> RequestFailure {
        RequestFailure { part: Some(part), ..self }
    }

    /// Marks the failure as permanent.
    #[must_use]
    pub fn without_retry(self) -> RequestFailure {
        RequestFailure { is_retryable: false, ..self }
    }

    /// Whether the run must stop, whatever the endpoint does.
    pub fn is_stop(&self) -> bool {
        matches!(self.kind, ErrorKind::Interrupted(_) | ErrorKind::Limit)
    }

    /// The error of a request to this address.
    pub fn error(&self, url: &str) -> Error {
        self.describe("an answer", url)
    }

    /// The error of an answer that is incomplete.
    pub fn truncation_error(&self, url: &str) -> Error {
        self.describe("the whole answer", url)
    }

    fn describe(&self, missing: &str, url: &str) -> Error {
        let message = if self.is_stop() {
            self.cause.clone()
        } else {
            format!("failed to get {missing} from {url}: {}", self.cause)
        };
        let mut error = Error::new(self.kind, message);
        if let Some(hint) = &self.hint {
            error = error.with_hint(hint);
        }
        match self.part {
            Some(part) => error.with_part(part),
            None => error,
        }
    }
}

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for RequestFailure {}

/// The failure of a request during which the run had to stop.
impl From<Error> for RequestFailure {
    fn from(stop: Error) -> RequestFailure {
        let failure = RequestFailure::new(stop.kind(), stop.message());
        RequestFailure { hint: stop.hint().map(Into::into), ..failure.without_retry() }
    }
}

/// The parts of a refusal that decide its meaning.
#[derive(Debug)]
pub(super) struct ErrorFields<'r> {
    /// The HTTP status; 200 for an error object instead of a reply.
    pub status: u16,
    /// The standard name of the status.
    pub status_name: &'r str,
    /// The address of the request.
    pub url: &'r str,
    /// The part of the body that was read.
    pub body: &'r [u8],
    /// The `Location` of a redirect.
    pub location: Option<&'r str>,
    /// The server's id of the request, for its support.
    pub request_id: Option<&'r str>,
    /// The delay that the server requests before the next try.
    pub retry_after: Option<Duration>,
    /// The variable with the endpoint's address.
    pub address_setting: &'r str,
    /// The secrets to mask in the message before it is cut.
    pub secrets: &'r Secrets,
}

const CONTEXT_HINT: &str = "the conversation is longer than the model's context window: start a new one, shorten the prompt, or give the server a larger context";

/// Converts a refusal to a failure.
pub(super) fn interpret_refusal(refusal: &ErrorFields<'_>) -> RequestFailure {
    let value: Value = serde_json::from_slice(refusal.body).unwrap_or_default();
    let message = server_message(refusal.body, refusal.secrets);
    // An error object instead of a reply often states its own status.
    let stated = stated_status(&value).filter(|_| refusal.status == 200);
    let status = stated.unwrap_or(refusal.status);
    let meaning = refusals::meaning(status, &message.to_lowercase());
    let failure = |kind| RequestFailure::new(kind, refusal_cause(refusal, &message));
    let lasting = |hint: &str| failure(ErrorKind::Endpoint).with_hint(hint);
    let is_context_full = meaning == Meaning::ContextFull
        || meaning == Meaning::TooLarge
        // Cerebras refuses a conversation that is too long with an empty body.
        || status == 400 && refusal.body.is_empty();
    let failure = match meaning {
        _ if is_context_full => {
            let (limit, used) = context_size(&value, &message);
            failure(ErrorKind::Context { limit, used }).with_hint(CONTEXT_HINT)
        }
        Meaning::Billing if refusal.retry_after.is_none() => lasting(refusals::QUOTA_HINT),
        Meaning::Temporary | Meaning::Billing => failure(ErrorKind::Temporary),
        Meaning::Credentials => failure(ErrorKind::Auth),
        // The next reply of the model may be readable.
        Meaning::UnreadCall(hint) if status >= 500 => failure(ErrorKind::Temporary).with_hint(hint),
        Meaning::Lasting(hint) | Meaning::NoTools(hint) | Meaning::UnreadCall(hint) => {
            lasting(hint)
        }
        Meaning::Setup(part, hint) => lasting(hint).with_part(part),
        Meaning::Redirect => lasting(&redirect_hint(refusal)).with_part(FailedPart::Address),
        Meaning::NoEndpoint => {
            let hint = address_hint(refusal.url, refusal.address_setting);
            lasting(&hint).with_part(FailedPart::Address)
        }
        _ => failure(ErrorKind::Endpoint),
    };
    let is_too_large = meaning == Meaning::TooLarge;
    let answer = ErrorResponse { is_too_large, ..ErrorResponse::new(status, refusal.body) };
    RequestFailure { retry_after: refusal.retry_after, answer: Some(Box::new(answer)), ..failure }
}

/// The cause of a failure: the status, the server's message, and its id of the request.
fn refusal_cause(refusal: &ErrorFields<'_>, message: &str) -> String {
    let mut cause = match refusal.status {
        200 => "the endpoint reports an error".to_string(),
        status => format!("status {status} {}", refusal.status_name).trim_end().to_string(),
    };
    if !message.is_empty() {
        cause.push_str(&format!(": {message}"));
    }
    if let Some(id) = refusal.request_id {
        cause.push_str(&format!(" (request {})", refusal.secrets.mask(id)));
    }
    cause
}

/// The context window and the tokens of the request: from the error's own fields, or else from
/// the first two numbers of its message. Every endpoint that names a number names the window,
/// some also the request's tokens, in either order.
fn context_size(value: &Value, message: &str) -> (Option<u64>, Option<u64>) {
    let (limit_field, used_field) = refusals::CONTEXT_FIELDS;
    let is_size = |number: &u64| *number >= limits::CONTEXT_TOKENS_MIN;
    if let Some(limit) = value["error"][limit_field].as_u64().filter(is_size) {
        return (Some(limit), value["error"][used_field].as_u64());
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ',');
    let mut numbers = message
        .split(|c| !is_part(c))
        .filter_map(|word| word.trim_end_matches(['.', ',']).replace(',', "").parse().ok())
        .filter(is_size);
    match (numbers.next(), numbers.next()) {
        (Some(one), Some(other)) if one != other => (Some(one.min(other)), Some(one.max(other))),
        (limit, _) => (limit, None),
    }
}

/// Whether a JSON value is an error: it has a message or a status.
pub(super) fn states_error(value: &Value) -> bool {
    has_message(value) || stated_status(value).is_some()
}

fn stated_status(value: &Value) -> Option<u16> {
    let value = value.get(0).unwrap_or(value);
    let error = value.get("error").unwrap_or(value);
    let codes = ["code", "status", "type"].map(|key| match &error[key] {
        Value::Number(code) => code.to_string(),
        Value::String(code) => code.to_ascii_lowercase(),
        _ => String::new(),
    });
    let number = codes.iter().find_map(|code| code.parse().ok());
    let word = || {
        let has = |word: &str| codes.iter().any(|code| code.contains(word));
        let found = refusals::STATUS_WORDS.iter().find(|(word, _)| has(word))?;
        Some(found.1)
    };
    let is_error = |code: &u16| (400..600).contains(code);
    number.filter(is_error).or_else(word)
}

/// The hint for a redirect: its target is often the intended address.
fn redirect_hint(refusal: &ErrorFields<'_>) -> String {
    let setting = refusal.address_setting;
    let location = refusal.secrets.mask(refusal.location.unwrap_or_default());
    let target = redirected_base(refusal.url, &location);
    let target = one_line(&target, limits::QUOTED_BYTES);
    let scheme = target.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme {
        "http" | "https" => {
            format!("redirects are not followed: set {setting} to {target}")
        }
        _ if target.is_empty() => format!("redirects are not followed: check {setting}"),
        _ => format!("redirects are not followed, and this one leads to {target}: check {setting}"),
    }
}

/// The base address that a redirect leads to; the location may be only a path.
fn redirected_base(url: &str, location: &str) -> String {
    let path = location.split(['?', '#']).next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    let base = path.strip_suffix("/chat/completions").unwrap_or(path);
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split('/').next().unwrap_or_default();
    if base.starts_with("//") {
        format!("{scheme}:{base}")
    } else if base.starts_with('/') {
        format!("{scheme}://{authority}{base}")
    } else {
        base.to_string()
    }
}

/// The hint for an address where there is no endpoint.
pub(super) fn address_hint(url: &str, setting: &str) -> String {
    let base = url.trim_end_matches("/chat/completions");
    let Some((scheme, rest)) = base.split_once("://") else {
        return format!("check {setting}");
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let guess = match path.split_once("/v1/") {
        // A path of the API was pasted, such as /v1/models.
        Some((before, _)) => format!("{before}/v1"),
        None if path.ends_with("/v1") || path.contains("/openai/") => {
            return format!("check {setting}: its path is not that of an endpoint");
        }
        None if path.is_empty() => "/v1".into(),
        // The path is wrong; most endpoints have `/v1`.
        None => {
            return format!("check {setting}: did you mean {base}/v1, or {scheme}://{host}/v1?");
        }
    };
    format!("check {setting}: did you mean {scheme}://{host}{guess}?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, body: &str) -> RequestFailure {
        interpret_refusal(&ErrorFields {
            status,
            status_name: "",
            url: "http://h/v1/chat/completions",
            body: body.as_bytes(),
            location: Some("https://h/v1/chat/completions"),
            request_id: None,
            retry_after: None,
            address_setting: "LLM_API_BASE_URL",
            secrets: &Secrets::default(),
        })
    }

    #[test]
    fn the_kind_follows_from_status_and_words() {
        let table = [
            (401, r#"{"error":{"message":"bad key"}}"#, ErrorKind::Auth, false),
            (403, "", ErrorKind::Auth, false),
            (429, r#"{"error":{"message":"slow down"}}"#, ErrorKind::Temporary, true),
            (
                429,
                r#"{"error":{"message":"x","code":"insufficient_quota"}}"#,
                ErrorKind::Endpoint,
                false,
            ),
            (402, "", ErrorKind::Endpoint, false),
            (503, "<html><title>Busy</title>", ErrorKind::Temporary, true),
            (529, "", ErrorKind::Temporary, true),
            (400, r#"{"error":"overloaded_error"}"#, ErrorKind::Temporary, true),
            (
                400,
                r#"{"error":{"message":"maximum context length is 4096 tokens"}}"#,
                ErrorKind::Context { limit: Some(4096), used: None },
                false,
            ),
            (400, "{}", ErrorKind::Endpoint, false),
            (404, r#"{"error":{"message":"model 'x' not found"}}"#, ErrorKind::Endpoint, false),
            (301, "", ErrorKind::Endpoint, false),
            (
                200,
                r#"{"error":{"message":"x","type":"rate_limit_error"}}"#,
                ErrorKind::Temporary,
                true,
            ),
            (413, "", ErrorKind::Context { limit: None, used: None }, false),
            (
                429,
                "You exceeded your current quota, please check your plan",
                ErrorKind::Endpoint,
                false,
            ),
            (200, r#"{"error":{"message":"x","code":503}}"#, ErrorKind::Temporary, true),
            (200, r#"{"error":{"message":"x","code":"401"}}"#, ErrorKind::Auth, false),
            (200, r#"{"error":{"message":"x"}}"#, ErrorKind::Endpoint, false),
            (404, "No endpoints found that support tool use", ErrorKind::Endpoint, false),
        ];
        for (status, body, kind, retryable) in table {
            let failure = refusal(status, body);
            assert_eq!((failure.kind, failure.is_retryable), (kind, retryable), "{status} {body}");
        }
    }

    #[test]
    fn reads_redirects_in_every_form() {
        for (location, base) in [
            ("https://o/v1/chat/completions", "https://o/v1"),
            ("https://o/v1/chat/completions/?a#b", "https://o/v1"),
            ("//o/v1/chat/completions", "http://o/v1"),
            ("/api/chat/completions", "http://h:1/api"),
            ("https://o/login", "https://o/login"),
        ] {
            let url = "http://h:1/v1/chat/completions";
            assert_eq!(redirected_base(url, location), base, "{location}");
        }
    }

    #[test]
    fn a_redirect_names_the_right_base_address() {
        let hint = refusal(308, "").hint.unwrap();
        assert!(hint.ends_with("LLM_API_BASE_URL to https://h/v1"), "{hint}");
    }

    #[test]
    fn rate_limits_and_bad_keys_are_not_mistaken() {
        for (status, words, kind) in [
            (429, "Too many tokens, please wait before trying again.", ErrorKind::Temporary),
            (
                200,
                r#"{"error":"Too many tokens, please wait before trying again."}"#,
                ErrorKind::Temporary,
            ),
            (413, "Request too large: tokens per minute (TPM)", ErrorKind::Temporary),
            (400, "API key not valid. Please pass a valid API key.", ErrorKind::Auth),
            (400, "Incorrect API key provided: x", ErrorKind::Auth),
        ] {
            assert_eq!(refusal(status, words).kind, kind, "{words}");
        }
    }

    /// The window and the tokens of the request; 0 where they are not named.
    #[test]
    fn a_full_context_is_recognized_with_its_numbers() {
        for (words, window, tokens) in [
            ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000),
            ("Input is too long for requested model.", 0, 0),
            ("the request exceeds the context window", 0, 0),
            (
                "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
                1_048_575,
                1_196_265,
            ),
            ("model gpt-35-16384: maximum prompt length is 131072.", 131_072, 0),
            ("Please reduce the length of the messages", 0, 0),
            (
                "maximum context length is 8192 tokens. However, you requested 9100 tokens (8588 in the messages, 512 in the completion)",
                8192,
                9100,
            ),
            ("Input length 131393 exceeds the limit of 131072", 131_072, 131_393),
            (
                "request (9,012 tokens) exceeds the available context size (8,192 tokens)",
                8192,
                9012,
            ),
            (
                r#"{"error":{"message":"the request exceeds the available context size","n_prompt_tokens":9012,"n_ctx":8192}}"#,
                8192,
                9012,
            ),
            ("it is greater than the context length", 0, 0),
            ("context window exceeds limit (2013)", 2013, 0),
            ("exceeded model token limit: 262144 (requested: 262300)", 262_144, 262_300),
            ("too large for model with 32768 maximum context length", 32_768, 0),
            ("model_context_window_exceeded", 0, 0),
            ("context_length_exceeded", 0, 0),
            ("too many tokens", 0, 0),
            ("Token limit exceeded, request req_12345678", 0, 0),
        ] {
            let some = |number| Some(number).filter(|number| *number > 0);
            let kind = ErrorKind::Context { limit: some(window), used: some(tokens) };
            assert_eq!(refusal(400, words).kind, kind, "{words}");
        }
        let other = refusal(400, "an image exceeds the limit of the server").kind;
        assert_eq!(other, ErrorKind::Endpoint);
    }

    #[test]
    fn suggests_the_path_of_an_address() {
        for (url, hint) in [
            ("http://h/chat/completions", "did you mean http://h/v1?"),
            ("http://h/v1/chat/completions", "not that of an endpoint"),
            ("http://h/v1/models/chat/completions", "did you mean http://h/v1?"),
            ("http://h/api/chat/completions", "did you mean http://h/api/v1, or http://h/v1?"),
        ] {
            assert!(address_hint(url, "X").contains(hint), "{url}");
        }
    }

    #[test]
    fn suggests_https_or_a_client_certificate() {
        for (words, hint) in [
            ("The plain HTTP request was sent to HTTPS port", "https://"),
            ("No required SSL certificate was sent", "client certificate"),
        ] {
            assert!(refusal(400, words).hint.unwrap().contains(hint), "{words}");
        }
    }
}
