//! Classification of refusals: the server's message, the kind of error, and whether the request
//! is worth sending again.

use std::time::Duration;

use serde_json::Value;

use crate::error::{Error, ErrorKind, FailedPart};
use crate::limits;
use crate::model::error_text::{has_message, server_message};
use crate::secret::Secrets;
use crate::text::one_line;

/// A request that failed.
#[derive(Debug)]
pub struct RequestFailure {
    /// The error for the user, if this was the last try.
    pub error: Error,
    /// Whether another try may succeed.
    pub is_retryable: bool,
    /// The delay that the server requests before the next try.
    pub retry_after: Option<Duration>,
    /// The response, if there was one.
    pub answer: Option<ErrorResponse>,
}

/// A refusal as received.
#[derive(Debug)]
pub struct ErrorResponse {
    /// The HTTP status, or the status in an error object.
    pub status: u16,
    /// The part of the body that was read.
    pub body: Vec<u8>,
}

impl RequestFailure {
    /// Creates a failure that is not retried.
    pub fn permanent(error: Error) -> RequestFailure {
        RequestFailure { error, is_retryable: false, retry_after: None, answer: None }
    }

    /// Creates a failure that is retried.
    pub fn transient(error: Error) -> RequestFailure {
        RequestFailure { is_retryable: true, ..RequestFailure::permanent(error) }
    }

    /// Whether the request had too many bytes, rather than too many tokens.
    pub fn is_too_large(&self) -> bool {
        let answer = self.answer.as_ref();
        answer.is_some_and(|answer| {
            let words = String::from_utf8_lossy(&answer.body).to_lowercase();
            answer.status == 413 && !self.is_retryable && !is_context_overflow(&words)
        })
    }

    /// Whether the response contains these words.
    pub fn body_contains(&self, words: &str) -> bool {
        let answer = self.answer.as_ref();
        answer.is_some_and(|answer| {
            let text = String::from_utf8_lossy(&answer.body);
            text.to_ascii_lowercase().contains(words)
        })
    }
}

/// The parts of a refusal that decide its meaning.
#[derive(Debug)]
pub(super) struct ErrorFields<'r> {
    /// The HTTP status; 200 for an error object instead of a reply.
    pub status: u16,
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
    /// The secrets to mask in the message before it is cut.
    pub secrets: &'r Secrets,
}

/// Converts a refusal to a failure.
pub(super) fn interpret_refusal(refusal: &ErrorFields<'_>) -> RequestFailure {
    let text = server_message(refusal.body, refusal.secrets);
    let effective = ErrorFields { status: effective_status(refusal), ..*refusal };
    let (kind, is_retryable, hint, part) = classify(&effective, &text.to_lowercase());
    let status = match refusal.status {
        200 => "the endpoint reports an error".to_string(),
        status => format!("status {status}{}", reason_phrase(status)),
    };
    let mut message = format!("failed to get an answer from {}: {status}", refusal.url);
    if !text.is_empty() {
        message.push_str(": ");
        message.push_str(&text);
    }
    if let Some(id) = refusal.request_id {
        let id = refusal.secrets.mask(id);
        message.push_str(&format!(" (request {id})"));
    }
    let mut error = Error::new(kind, message);
    if let Some(hint) = hint {
        error = error.with_hint(hint);
    }
    if let Some(part) = part {
        error = error.with_part(part);
    }
    RequestFailure {
        error,
        is_retryable,
        retry_after: refusal.retry_after,
        answer: Some(ErrorResponse { status: effective.status, body: refusal.body.to_vec() }),
    }
}

/// The effective status: an error object often states its own, as a number or a word.
fn effective_status(refusal: &ErrorFields<'_>) -> u16 {
    if refusal.status != 200 {
        return refusal.status;
    }
    let value: Value = serde_json::from_slice(refusal.body).unwrap_or_default();
    stated_status(&value).unwrap_or(200)
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
        let found = STATUS_WORDS.iter().find(|(word, _)| has(word))?;
        Some(found.1)
    };
    let is_error = |code: &u16| (400..600).contains(code);
    number.filter(is_error).or_else(word)
}

/// Words in error objects, and the status they mean.
const STATUS_WORDS: [(&str, u16); 11] = [
    ("rate_limit", 429),
    ("resource_exhausted", 429),
    ("insufficient_quota", 429),
    ("overloaded", 529),
    ("server_error", 500),
    ("internal_error", 500),
    ("internalservererror", 500),
    ("unavailable", 503),
    ("authentication", 401),
    ("invalid_api_key", 401),
    ("permission", 403),
];

pub(super) const KEY_HINT: &str =
    "check LLM_API_KEY, and that LLM_API_BASE_URL is the endpoint it is for";

const MODEL_HINT: &str = "check LLM_MODEL_NAME; `skills-runner doctor` lists similar names";

/// The kind of a refusal, whether the request is retried, the hint, and the part of the setup
/// that it points to.
type RefusalClass = (ErrorKind, bool, Option<String>, Option<FailedPart>);

/// Classifies a refusal. `words` is the message in lower case.
fn classify(refusal: &ErrorFields<'_>, words: &str) -> RefusalClass {
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    let lasting = |hint: &str| (ErrorKind::Endpoint, false, Some(hint.to_string()), None);
    let caused_by =
        |part, hint: &str| (ErrorKind::Endpoint, false, Some(hint.to_string()), Some(part));
    let temporary = (ErrorKind::Temporary, true, None, None);
    // Cerebras refuses a conversation that is too long with an empty body.
    let is_without_body = refusal.status == 400 && refusal.body.is_empty();
    // A web server in front of the endpoint has its own limits, and answers with a page.
    let is_page = words.starts_with("an html page");
    if refusal.status == 413 && is_page {
        return lasting(
            "the request is larger than the web server in front of the endpoint allows",
        );
    }
    // A limit of tokens per minute is not the context limit, even if its words look like it.
    let is_throttled = refusal.status == 429 || has(&THROTTLED);
    if refusal.status == 413 && is_throttled {
        return temporary;
    }
    if !is_throttled && (is_context_overflow(words) || refusal.status == 413 || is_without_body) {
        let text = "the conversation is longer than the model's context window: start a new one, shorten the prompt, or give the server a larger context";
        return (ErrorKind::Context, false, Some(text.into()), None);
    }
    if let Some(hint) = tools_hint(words) {
        return lasting(hint);
    }
    match refusal.status {
        401 | 403 => (ErrorKind::Auth, false, Some(KEY_HINT.into()), None),
        402 if words.contains("max_tokens") => {
            lasting("lower max_tokens in LLM_EXTRA_BODY, or add credit to the account")
        }
        402 => lasting("the account has no credit left"),
        400 if has(&BAD_KEY) => (ErrorKind::Auth, false, Some(KEY_HINT.into()), None),
        _ if has(&THROTTLED) && refusal.status < 500 => temporary,
        400 if words.contains("to https port") || words.contains("to an https") => {
            let hint = "set LLM_API_BASE_URL to the same address with https://";
            caused_by(FailedPart::Address, hint)
        }
        400 if words.contains("required ssl certificate") => {
            let hint =
                "the server requires a client certificate, which this program does not support";
            caused_by(FailedPart::Route, hint)
        }
        // LiteLLM without a database, after a request with an unknown key.
        400 if words.contains("no connected db") => {
            let hint = "the gateway does not accept this key: check LLM_API_KEY";
            (ErrorKind::Auth, false, Some(hint.into()), None)
        }
        407 => caused_by(
            FailedPart::Route,
            "the proxy requires a login: write http://user:password@host:port as its address",
        ),
        429 if has(&QUOTA_EXHAUSTED) || (has(&BILLING) && refusal.retry_after.is_none()) => {
            lasting("the account's quota is used up")
        }
        408 | 409 | 429 | 500..=599 => temporary,
        _ if has(&OVERLOADED) => temporary,
        300..=399 => caused_by(FailedPart::Address, &redirect_hint(refusal)),
        400 if has(&UNKNOWN_MODEL) => caused_by(FailedPart::Model, MODEL_HINT),
        404 if words.contains("model") => caused_by(FailedPart::Model, MODEL_HINT),
        404 | 405 => caused_by(FailedPart::Address, &address_hint(refusal.url)),
        _ => (ErrorKind::Endpoint, false, None, None),
    }
}

/// The hint for a redirect: its target is often the intended address.
fn redirect_hint(refusal: &ErrorFields<'_>) -> String {
    let location = refusal.secrets.mask(refusal.location.unwrap_or_default());
    let target = redirected_base(refusal.url, &location);
    let target = one_line(&target, limits::QUOTED_BYTES);
    let scheme = target.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme {
        "http" | "https" => {
            format!("redirects are not followed: set LLM_API_BASE_URL to {target}")
        }
        _ if target.is_empty() => "redirects are not followed: check LLM_API_BASE_URL".into(),
        _ => format!(
            "redirects are not followed, and this one leads to {target}: check LLM_API_BASE_URL"
        ),
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

/// Phrases for an account without credit, where waiting does not help.
const QUOTA_EXHAUSTED: [&str; 5] = [
    "insufficient_quota",
    "insufficient balance",
    "insufficient credit",
    "credit balance is too low",
    "payment required",
];

/// Phrases with the same meaning, unless the endpoint requests a delay.
const BILLING: [&str; 2] = ["check your plan", "billing"];

/// Phrases for an unknown model.
const UNKNOWN_MODEL: [&str; 4] =
    ["invalid model", "unknown model", "model_not_found", "model not found"];

/// Phrases for a refused key with status 400.
const BAD_KEY: [&str; 5] = [
    "api key not valid",
    "api_key_invalid",
    "incorrect api key",
    "invalid api key",
    "invalid_api_key",
];

/// Phrases for a rate limit, whatever the status.
const THROTTLED: [&str; 6] = [
    "rate limit",
    "rate_limit",
    "please wait before",
    "per minute",
    "slow down",
    "too many requests",
];

/// Phrases for an overload, whatever the status.
const OVERLOADED: [&str; 4] =
    ["overloaded", "over capacity", "temporarily unavailable", "server is busy"];

/// The hint for a server or a model that cannot call tools.
fn tools_hint(words: &str) -> Option<&'static str> {
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    if has(&["--enable-auto-tool-choice", "--tool-call-parser"]) {
        return Some(
            "start vLLM with --enable-auto-tool-choice and the --tool-call-parser of the model",
        );
    }
    if words.contains("--jinja") {
        return Some("start llama.cpp's server with --jinja");
    }
    let cannot = [
        "does not support tools",
        "does not support tool",
        "support tool use",
        "does not support function",
        "tool use is not supported",
        "tools are not supported",
        "tool calling is not supported",
    ];
    has(&cannot).then_some("this model cannot call tools: use one that can (LLM_MODEL_NAME)")
}

/// The hint for an address where there is no endpoint.
pub(super) fn address_hint(url: &str) -> String {
    let base = url.trim_end_matches("/chat/completions");
    let Some((scheme, rest)) = base.split_once("://") else {
        return "check LLM_API_BASE_URL".into();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let guess = match path.split_once("/v1/") {
        // A path of the API was pasted, such as /v1/models.
        Some((before, _)) => format!("{before}/v1"),
        None if path.ends_with("/v1") || path.contains("/openai/") => {
            return "check LLM_API_BASE_URL: its path is not that of an endpoint".into();
        }
        None if path.is_empty() => "/v1".into(),
        // The path is wrong; most endpoints have `/v1`.
        None => {
            return format!(
                "check LLM_API_BASE_URL: did you mean {base}/v1, or {scheme}://{host}/v1?"
            );
        }
    };
    format!("check LLM_API_BASE_URL: did you mean {scheme}://{host}{guess}?")
}

/// Whether the message says that the conversation is too long.
fn is_context_overflow(words: &str) -> bool {
    const PHRASES: [&str; 18] = [
        "contextwindowexceeded",
        "prompt is too long",
        "input is too long for requested model",
        "exceeds the context window",
        "reduce the length of the messages",
        "maximum context length",
        "exceeds the available context size",
        "greater than the context length",
        "context window exceeds limit",
        "exceeded model token limit",
        "model_context_window_exceeded",
        "context_length_exceeded",
        "context length exceeded",
        "context_length exceeded",
        "context length_exceeded",
        "too many tokens",
        "token limit exceeded",
        "exceeds the maximum number of tokens",
    ];
    let before_number = |phrase: &str| {
        words.match_indices(phrase).any(|(at, _)| {
            let after = words[at + phrase.len()..].trim_start();
            after.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    PHRASES.iter().any(|phrase| words.contains(phrase))
        || before_number("maximum prompt length is")
        || before_number("exceeds the limit of")
        || (words.contains("input token count") && words.contains("exceeds the maximum"))
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        400 => " Bad Request",
        401 => " Unauthorized",
        402 => " Payment Required",
        403 => " Forbidden",
        404 => " Not Found",
        405 => " Method Not Allowed",
        408 => " Request Timeout",
        413 => " Content Too Large",
        422 => " Unprocessable Content",
        429 => " Too Many Requests",
        500 => " Internal Server Error",
        502 => " Bad Gateway",
        503 => " Service Unavailable",
        504 => " Gateway Timeout",
        529 => " Overloaded",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, body: &str) -> RequestFailure {
        interpret_refusal(&ErrorFields {
            status,
            url: "http://h/v1/chat/completions",
            body: body.as_bytes(),
            location: Some("https://h/v1/chat/completions"),
            request_id: None,
            retry_after: None,
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
                ErrorKind::Context,
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
            (413, "", ErrorKind::Context, false),
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
            assert_eq!(
                (failure.error.kind(), failure.is_retryable),
                (kind, retryable),
                "{status} {body}"
            );
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
        let error = refusal(308, "").error;
        assert!(error.hint().unwrap().ends_with("LLM_API_BASE_URL to https://h/v1"), "{error}");
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
            assert_eq!(refusal(status, words).error.kind(), kind, "{words}");
        }
    }

    #[test]
    fn recognizes_every_phrase_for_a_full_context() {
        for words in [
            "prompt is too long: 5 tokens",
            "Input is too long for requested model.",
            "the request exceeds the context window",
            "The input token count (5) exceeds the maximum number",
            "This model's maximum prompt length is 131072",
            "Please reduce the length of the messages",
            "maximum context length is 8192 tokens",
            "Input length 5 exceeds the limit of 4",
            "the request exceeds the available context size",
            "it is greater than the context length",
            "context window exceeds limit",
            "exceeded model token limit",
            "too large for model with 8192 maximum context length",
            "model_context_window_exceeded",
            "context_length_exceeded",
            "too many tokens",
            "token limit exceeded",
        ] {
            let failure = refusal(400, words);
            assert_eq!(failure.error.kind(), ErrorKind::Context, "{words}");
        }
        assert_ne!(
            refusal(400, "an image exceeds the limit of the server").error.kind(),
            ErrorKind::Context
        );
    }

    #[test]
    fn suggests_the_path_of_an_address() {
        for (url, hint) in [
            ("http://h/chat/completions", "did you mean http://h/v1?"),
            ("http://h/v1/chat/completions", "not that of an endpoint"),
            ("http://h/v1/models/chat/completions", "did you mean http://h/v1?"),
            ("http://h/api/chat/completions", "did you mean http://h/api/v1, or http://h/v1?"),
        ] {
            assert!(address_hint(url).contains(hint), "{url}");
        }
    }

    #[test]
    fn suggests_https_or_a_client_certificate() {
        for (words, hint) in [
            ("The plain HTTP request was sent to HTTPS port", "https://"),
            ("No required SSL certificate was sent", "client certificate"),
        ] {
            let error = refusal(400, words).error;
            assert!(error.hint().unwrap().contains(hint), "{error}");
        }
    }
}
