//! What a refusal means: the server's words, the kind of error, and whether
//! the request is worth sending again.

use std::time::Duration;

use serde_json::Value;

use crate::error::{Error, Kind};
use crate::limits;
use crate::text::one_line;

/// A request that brought no reply.
#[derive(Debug)]
pub struct Failure {
    /// What to tell the user if this was the last try.
    pub error: Error,
    /// Whether another try may help.
    pub retryable: bool,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure that another try will not change.
    pub fn lasting(error: Error) -> Failure {
        Failure {
            error,
            retryable: false,
            retry_after: None,
        }
    }

    /// A failure that may be over soon.
    pub fn passing(error: Error) -> Failure {
        Failure {
            error,
            retryable: true,
            retry_after: None,
        }
    }
}

/// The parts of a refusal that its meaning follows from.
#[derive(Debug)]
pub struct Refusal<'r> {
    /// The HTTP status; 200 where an error stood in the place of the reply.
    pub status: u16,
    /// The address that was asked.
    pub url: &'r str,
    /// The body, as far as it was read.
    pub body: &'r [u8],
    /// `Location`, of a redirect.
    pub location: Option<&'r str>,
    /// The server's id of the request, for its support.
    pub request_id: Option<&'r str>,
    /// `Retry-After`, read.
    pub retry_after: Option<Duration>,
}

/// Makes the error of a refusal.
pub fn interpret(refusal: &Refusal<'_>) -> Failure {
    let words = words(refusal.body);
    let (kind, retryable, hint) = judge(refusal, &words.to_lowercase());
    let status = match refusal.status {
        200 => "the endpoint reports an error".to_string(),
        status => format!("status {status}{}", reason_phrase(status)),
    };
    let mut message = format!("failed to get an answer from {}: {status}", refusal.url);
    if !words.is_empty() {
        message.push_str(": ");
        message.push_str(&words);
    }
    if let Some(id) = refusal.request_id {
        message.push_str(&format!(" (request {id})"));
    }
    let mut error = Error::new(kind, message);
    if let Some(hint) = hint {
        error = error.with_hint(hint);
    }
    Failure {
        error,
        retryable,
        retry_after: refusal.retry_after,
    }
}

/// Kind, whether another try may help, and the remedy. `words` in lower case.
fn judge(refusal: &Refusal<'_>, words: &str) -> (Kind, bool, Option<String>) {
    let hint = |text: &str| Some(text.to_string());
    if is_context_overflow(words) {
        let text = "the conversation is longer than the model's context window: start a new one or shorten the prompt";
        return (Kind::Context, false, hint(text));
    }
    let is_billing = [
        "insufficient_quota",
        "check your plan",
        "billing",
        "payment required",
    ]
    .iter()
    .any(|phrase| words.contains(phrase));
    match refusal.status {
        401 | 403 => (
            Kind::Auth,
            false,
            hint("check LLM_API_KEY and that LLM_API_BASE_URL is its endpoint"),
        ),
        402 => (
            Kind::Endpoint,
            false,
            hint("the account has no credit left"),
        ),
        429 if is_billing => (
            Kind::Endpoint,
            false,
            hint("the account's quota is used up"),
        ),
        408 | 409 | 429 | 500..=599 => (Kind::Temporary, true, None),
        _ if words.contains("overloaded") => (Kind::Temporary, true, None),
        300..=399 => {
            let target = refusal
                .location
                .unwrap_or("another address")
                .trim_end_matches("/chat/completions");
            (
                Kind::Endpoint,
                false,
                Some(format!(
                    "redirects are not followed: set LLM_API_BASE_URL to {target}"
                )),
            )
        }
        404 if words.contains("model") => (Kind::Endpoint, false, hint("check LLM_MODEL_NAME")),
        404 | 405 => (
            Kind::Endpoint,
            false,
            hint("check LLM_API_BASE_URL: most endpoints want a path such as /v1 at its end"),
        ),
        _ => (Kind::Endpoint, false, None),
    }
}

/// The ways in which endpoints say that the conversation is too long.
fn is_context_overflow(words: &str) -> bool {
    const PHRASES: [&str; 16] = [
        "prompt is too long",
        "input is too long for requested model",
        "exceeds the context window",
        "maximum prompt length is",
        "reduce the length of the messages",
        "maximum context length",
        "exceeds the available context size",
        "greater than the context length",
        "context window exceeds limit",
        "exceeded model token limit",
        "model_context_window_exceeded",
        "context_length_exceeded",
        "context length exceeded",
        "too many tokens",
        "token limit exceeded",
        "exceeds the maximum number of tokens",
    ];
    PHRASES.iter().any(|phrase| words.contains(phrase))
        || (words.contains("input token count") && words.contains("exceeds the maximum"))
}

/// The server's own words, in one line: the message wherever it stands in the
/// JSON, else the beginning of the body.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let found = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|value| find_message(&value, 0));
    let looks_like_page = text.trim_start().starts_with('<');
    let text = match found {
        Some(message) => message,
        None if looks_like_page => page_title(&text).unwrap_or_else(|| "an HTML page".into()),
        None => text.into_owned(),
    };
    one_line(&text, limits::QUOTED_BYTES)
}

fn find_message(value: &Value, depth: usize) -> Option<String> {
    // Deeper than any known form; also what stops the recursion.
    if depth > 4 {
        return None;
    }
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Array(items) => items.iter().find_map(|item| find_message(item, depth + 1)),
        Value::Object(fields) => [
            "error",
            "message",
            "detail",
            "msg",
            "errors",
            "error_description",
        ]
        .iter()
        .filter_map(|key| fields.get(*key))
        .find_map(|inner| find_message(inner, depth + 1))
        .map(|message| {
            match fields
                .get("code")
                .or_else(|| fields.get("type"))
                .and_then(Value::as_str)
            {
                Some(code) if !message.contains(code) => format!("{message} ({code})"),
                _ => message,
            }
        }),
        _ => None,
    }
}

fn page_title(page: &str) -> Option<String> {
    let start = page.find("<title>")? + "<title>".len();
    let end = page[start..].find("</title>")? + start;
    Some(format!("an HTML page, “{}”", page[start..end].trim()))
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

    fn refusal(status: u16, body: &str) -> Failure {
        interpret(&Refusal {
            status,
            url: "http://h/v1/chat/completions",
            body: body.as_bytes(),
            location: Some("https://h/v1/chat/completions"),
            request_id: None,
            retry_after: None,
        })
    }

    #[test]
    fn the_kind_follows_from_status_and_words() {
        let table = [
            (401, r#"{"error":{"message":"bad key"}}"#, Kind::Auth, false),
            (403, "", Kind::Auth, false),
            (
                429,
                r#"{"error":{"message":"slow down"}}"#,
                Kind::Temporary,
                true,
            ),
            (
                429,
                r#"{"error":{"message":"x","code":"insufficient_quota"}}"#,
                Kind::Endpoint,
                false,
            ),
            (402, "", Kind::Endpoint, false),
            (503, "<html><title>Busy</title>", Kind::Temporary, true),
            (529, "", Kind::Temporary, true),
            (
                400,
                r#"{"error":"overloaded_error"}"#,
                Kind::Temporary,
                true,
            ),
            (
                400,
                r#"{"error":{"message":"maximum context length is 4096 tokens"}}"#,
                Kind::Context,
                false,
            ),
            (400, "{}", Kind::Endpoint, false),
            (
                404,
                r#"{"error":{"message":"model 'x' not found"}}"#,
                Kind::Endpoint,
                false,
            ),
            (301, "", Kind::Endpoint, false),
        ];
        for (status, body, kind, retryable) in table {
            let failure = refusal(status, body);
            assert_eq!(
                (failure.error.kind(), failure.retryable),
                (kind, retryable),
                "{status} {body}"
            );
        }
    }

    #[test]
    fn the_servers_words_are_found_in_every_form() {
        let table = [
            (r#"{"error":{"message":"m","code":"c"}}"#, "m (c)"),
            (r#"[{"error":{"message":"m"}}]"#, "m"),
            (r#"{"error":"m"}"#, "m"),
            (r#"{"detail":"m"}"#, "m"),
            (r#"{"detail":[{"loc":["body"],"msg":"m"}]}"#, "m"),
            (r#"{"object":"error","message":"m"}"#, "m"),
            (r#"{"errors":["m"]}"#, "m"),
            ("plain\n words ", "plain words"),
            (
                "<html><head><title> Sign in </title>",
                "an HTML page, “Sign in”",
            ),
            ("<html>", "an HTML page"),
            ("", ""),
        ];
        for (body, expected) in table {
            assert_eq!(words(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn a_redirect_names_the_right_base_address() {
        let error = refusal(308, "").error;
        assert!(
            error
                .hint()
                .unwrap()
                .ends_with("LLM_API_BASE_URL to https://h/v1"),
            "{error}"
        );
    }
}
