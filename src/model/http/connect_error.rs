//! Errors of connecting, described where they occur: a refused address, a proxy that requires a
//! login, a certificate that is not trusted.
//!
//! They pass through `ureq` inside an I/O error, as a
//! [`StopReason`](crate::world::cancellation::StopReason) does.

use std::fmt;
use std::io;

use crate::error::{Error, ErrorKind, FailedPart};
use crate::model::request_failure::RequestFailure;

/// The reason why there is no connection.
#[derive(Debug)]
pub struct ConnectError {
    kind: ErrorKind,
    cause: String,
    hint: Option<String>,
    part: Option<FailedPart>,
}

impl ConnectError {
    /// Creates an error that is retried, such as a refused connection or a timeout.
    pub fn transient(cause: impl Into<String>) -> ConnectError {
        ConnectError::new(ErrorKind::Temporary, cause)
    }

    /// Creates an error of this kind; it is retried only if the kind is
    /// [`ErrorKind::Temporary`].
    pub fn new(kind: ErrorKind, cause: impl Into<String>) -> ConnectError {
        ConnectError { kind, cause: cause.into(), hint: None, part: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> ConnectError {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the part of the setup that the failure points to.
    #[must_use]
    pub(crate) fn with_part(mut self, part: FailedPart) -> ConnectError {
        self.part = Some(part);
        self
    }

    /// Makes the failure of a request to this address.
    pub fn into_failure(self, url: &str) -> RequestFailure {
        let mut error = request_error(url, self.kind, &self.cause);
        if let Some(hint) = self.hint {
            error = error.with_hint(hint);
        }
        if let Some(part) = self.part {
            error = error.with_part(part);
        }
        if self.kind == ErrorKind::Temporary {
            RequestFailure::transient(error)
        } else {
            RequestFailure::permanent(error)
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
    fn from(connect_error: ConnectError) -> io::Error {
        io::Error::other(connect_error)
    }
}

impl From<ConnectError> for ureq::Error {
    fn from(connect_error: ConnectError) -> ureq::Error {
        ureq::Error::Io(connect_error.into())
    }
}

/// The error of a failed request to this address.
pub(super) fn request_error(url: &str, kind: ErrorKind, cause: &str) -> Error {
    Error::new(kind, format!("failed to get an answer from {}: {cause}", without_query(url)))
}

/// The address without its query, which may contain credentials.
pub(super) fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(before, _)| before)
}
