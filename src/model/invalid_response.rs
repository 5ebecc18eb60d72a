//! Why a reply is no reply.

use serde_json::Value;

use crate::error::Error;
use crate::model::request_failure::states_error;
use crate::model::wire::LooseValue;

/// Why a reply is no reply.
#[derive(Debug)]
pub enum InvalidResponse {
    /// An error object stands where the reply should be.
    Refused(Value),
    /// It is larger than the named bound.
    TooLarge(&'static str),
    /// There are more of the named things than the bound allows.
    TooMany(&'static str),
    /// It is JSON, and neither a reply nor an error.
    NoChoices,
    /// It ends in the middle of a JSON value.
    Unfinished,
    /// It is not what chat completions look like: the reason, in words.
    Malformed(String),
}

/// What every reply has.
pub(super) const EXPECTED: &str = "expected `choices` with a message";

impl From<super::sse::EventTooLarge> for InvalidResponse {
    fn from(_: super::sse::EventTooLarge) -> InvalidResponse {
        InvalidResponse::TooLarge("event")
    }
}

impl From<InvalidResponse> for Error {
    fn from(fault: InvalidResponse) -> Error {
        let kind = crate::error::ErrorKind::Protocol;
        match fault {
            InvalidResponse::Refused(value) => Error::new(kind, value.to_string()),
            InvalidResponse::TooLarge(what) => {
                Error::new(kind, format!("the reply's {what} is too large"))
            }
            InvalidResponse::TooMany(what) => {
                Error::new(kind, format!("the reply has too many {what}"))
            }
            InvalidResponse::NoChoices => Error::new(kind, EXPECTED),
            InvalidResponse::Unfinished => Error::new(kind, "it ends in the middle"),
            InvalidResponse::Malformed(reason) => Error::new(kind, reason),
        }
    }
}

/// An error that stands in the place of a reply, as the body of a refusal has it.
pub(super) fn refused<const N: usize>(fields: [(&str, LooseValue<'_>); N]) -> InvalidResponse {
    // `json!` would copy the values, and they may be megabytes.
    let fields = fields.map(|(name, value)| (name.to_owned(), value.into_value()));
    InvalidResponse::Refused(Value::Object(fields.into_iter().collect()))
}

/// JSON that is no reply: an error in some form, if it has words or a status.
pub(super) fn not_a_reply(value: Value) -> InvalidResponse {
    if states_error(&value) { InvalidResponse::Refused(value) } else { InvalidResponse::NoChoices }
}
