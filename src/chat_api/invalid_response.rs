//! Replies that are not chat completions: the reasons, and the errors made of them.

use std::fmt;

use serde_json::Value;

use crate::request_failure::states_error;
use crate::wire::LooseValue;

/// The reason why a reply is invalid.
#[derive(Debug)]
pub enum InvalidResponse {
    /// An error object instead of a reply.
    ErrorObject(Value),
    /// The named part is larger than its limit.
    TooLarge(&'static str),
    /// There are more of the named things than the limit.
    TooMany(&'static str),
    /// JSON that is neither a reply nor an error.
    NoChoices,
    /// It ends in the middle of a JSON value.
    Unfinished,
    /// It does not have the form of a chat completion, for this reason.
    Malformed(String),
}

/// The requirement that a reply without choices misses.
pub(super) const EXPECTED_CHOICES: &str = "expected `choices` with a message";

impl From<super::sse::EventTooLarge> for InvalidResponse {
    fn from(_: super::sse::EventTooLarge) -> InvalidResponse {
        InvalidResponse::TooLarge("event")
    }
}

impl fmt::Display for InvalidResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidResponse::ErrorObject(value) => write!(f, "{value}"),
            InvalidResponse::TooLarge(part) => write!(f, "the reply's {part} is too large"),
            InvalidResponse::TooMany(part) => write!(f, "the reply has too many {part}"),
            InvalidResponse::NoChoices => f.write_str(EXPECTED_CHOICES),
            InvalidResponse::Unfinished => f.write_str("it ends in the middle of a JSON value"),
            InvalidResponse::Malformed(reason) => f.write_str(reason),
        }
    }
}

/// An error object made of these fields, as in the body of a refusal.
pub(super) fn error_object<const N: usize>(fields: [(&str, LooseValue); N]) -> InvalidResponse {
    // `json!` would copy the values, and they may be megabytes.
    let fields = fields.map(|(name, value)| (name.to_owned(), value.into_value()));
    InvalidResponse::ErrorObject(Value::Object(fields.into_iter().collect()))
}

/// Classifies JSON that is not a reply: it is an error object if it has a message or a status.
pub(super) fn classify_non_reply(value: Value) -> InvalidResponse {
    if states_error(&value) {
        InvalidResponse::ErrorObject(value)
    } else {
        InvalidResponse::NoChoices
    }
}
