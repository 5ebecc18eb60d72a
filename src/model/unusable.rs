//! Why a reply is no reply.

use serde_json::Value;

use crate::error::Error;
use crate::model::fault::states_error;
use crate::model::wire::Loose;

/// Why a reply is no reply.
#[derive(Debug)]
pub enum Fault {
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
pub const EXPECTED: &str = "expected `choices` with a message";

impl From<super::sse::TooLarge> for Fault {
    fn from(_: super::sse::TooLarge) -> Fault {
        Fault::TooLarge("event")
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        let kind = crate::error::Kind::Protocol;
        match fault {
            Fault::Refused(value) => Error::new(kind, value.to_string()),
            Fault::TooLarge(what) => Error::new(kind, format!("the reply's {what} is too large")),
            Fault::TooMany(what) => Error::new(kind, format!("the reply has too many {what}")),
            Fault::NoChoices => Error::new(kind, EXPECTED),
            Fault::Unfinished => Error::new(kind, "it ends in the middle"),
            Fault::Malformed(reason) => Error::new(kind, reason),
        }
    }
}

/// An error that stands in the place of a reply, as the body of a refusal has it.
pub fn refused<const N: usize>(fields: [(&str, Loose<'_>); N]) -> Fault {
    // `json!` would copy the values, and they may be megabytes.
    let fields = fields.map(|(name, value)| (name.to_owned(), value.into_value()));
    Fault::Refused(Value::Object(fields.into_iter().collect()))
}

/// JSON that is no reply: an error in some form, if it has words or a status.
pub fn not_a_reply(value: Value) -> Fault {
    if states_error(&value) { Fault::Refused(value) } else { Fault::NoChoices }
}
