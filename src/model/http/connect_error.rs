//! Errors of connecting, described where they occur: a refused address, a proxy that requires a
//! login, a certificate that is not trusted.
//!
//! They pass through `ureq` inside an I/O error, as a
//! [`StopReason`](crate::world::cancellation::StopReason) does.

use std::fmt;
use std::io;

use crate::error::{ErrorKind, FailedPart};
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

    /// Makes the failure of a request.
    pub fn into_failure(self) -> RequestFailure {
        let failure = RequestFailure::new(self.kind, self.cause);
        RequestFailure { hint: self.hint, part: self.part, ..failure }
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

/// The address without its query, which may contain credentials.
pub(super) fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(before, _)| before)
}
