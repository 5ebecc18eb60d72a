//! What keeps a connection from being made, in the words of the place that
//! knows: an address that refuses, a proxy that wants a login, a certificate
//! that nobody vouches for.
//!
//! It travels through `ureq` inside an I/O error, as a
//! [`StopReason`](crate::world::cancellation::StopReason) does.

use std::fmt;
use std::io;

use crate::error::{Error, ErrorKind};
use crate::model::request_failure::RequestFailure;

/// Why there is no connection.
#[derive(Debug)]
pub struct ConnectError {
    kind: ErrorKind,
    cause: String,
    hint: Option<String>,
}

impl ConnectError {
    /// Another try may help: nobody listens, nobody answers.
    pub fn passing(cause: impl Into<String>) -> ConnectError {
        ConnectError::lasting(ErrorKind::Temporary, cause)
    }

    /// Another try will meet the same, unless the kind is [`ErrorKind::Temporary`].
    pub fn lasting(kind: ErrorKind, cause: impl Into<String>) -> ConnectError {
        ConnectError { kind, cause: cause.into(), hint: None }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> ConnectError {
        self.hint = Some(hint.into());
        self
    }

    /// The failure of the request to this address.
    pub fn into_failure(self, url: &str) -> RequestFailure {
        let mut error = no_answer(url, self.kind, &self.cause);
        if let Some(hint) = self.hint {
            error = error.with_hint(hint);
        }
        if self.kind == ErrorKind::Temporary {
            RequestFailure::passing(error)
        } else {
            RequestFailure::lasting(error)
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for ConnectError {}

impl From<ConnectError> for io::Error {
    fn from(obstacle: ConnectError) -> io::Error {
        io::Error::other(obstacle)
    }
}

impl From<ConnectError> for ureq::Error {
    fn from(obstacle: ConnectError) -> ureq::Error {
        ureq::Error::Io(obstacle.into())
    }
}

/// An error in the words that every failed request shares.
pub(super) fn no_answer(url: &str, kind: ErrorKind, cause: &str) -> Error {
    Error::new(kind, format!("failed to get an answer from {}: {cause}", shown(url)))
}

/// The address without its query, which may hold what should not be shown.
pub(super) fn shown(url: &str) -> &str {
    url.split_once('?').map_or(url, |(before, _)| before)
}
