//! Replies that are not chat completions: the reasons, and the errors made of them.

use serde_json::Value;

use crate::error::Error;
use crate::model::request_failure::states_error;
use crate::model::wire::LooseValue;

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

impl From<InvalidResponse> for Error {
    fn from(invalid: InvalidResponse) -> Error {
        let kind = crate::error::ErrorKind::Protocol;
        match invalid {
            InvalidResponse::ErrorObject(value) => Error::new(kind, value.to_string()),
            InvalidResponse::TooLarge(part) => {
                Error::new(kind, format!("the reply's {part} is too large"))
            }
            InvalidResponse::TooMany(part) => {
                Error::new(kind, format!("the reply has too many {part}"))
            }
            InvalidResponse::NoChoices => Error::new(kind, EXPECTED_CHOICES),
            InvalidResponse::Unfinished => {
                Error::new(kind, "it ends in the middle of a JSON value")
            }
            InvalidResponse::Malformed(reason) => Error::new(kind, reason),
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
