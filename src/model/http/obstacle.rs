//! What keeps a connection from being made, in the words of the place that
//! knows: an address that refuses, a proxy that wants a login, a certificate
//! that nobody vouches for.
//!
//! It travels through `ureq` inside an I/O error, as a
//! [`Stop`](crate::world::patience::Stop) does.

use std::fmt;
use std::io;

use crate::error::{Error, Kind};
use crate::model::fault::Failure;

/// Why there is no connection.
#[derive(Debug)]
pub struct Obstacle {
    kind: Kind,
    cause: String,
    hint: Option<String>,
}

impl Obstacle {
    /// Another try may help: nobody listens, nobody answers.
    pub fn passing(cause: impl Into<String>) -> Obstacle {
        Obstacle::lasting(Kind::Temporary, cause)
    }

    /// Another try will meet the same, unless the kind is [`Kind::Temporary`].
    pub fn lasting(kind: Kind, cause: impl Into<String>) -> Obstacle {
        Obstacle { kind, cause: cause.into(), hint: None }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Obstacle {
        self.hint = Some(hint.into());
        self
    }

    /// The failure of the request to this address.
    pub fn into_failure(self, url: &str) -> Failure {
        let mut error = no_answer(url, self.kind, &self.cause);
        if let Some(hint) = self.hint {
            error = error.with_hint(hint);
        }
        if self.kind == Kind::Temporary { Failure::passing(error) } else { Failure::lasting(error) }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for Obstacle {}

impl From<Obstacle> for io::Error {
    fn from(obstacle: Obstacle) -> io::Error {
        io::Error::other(obstacle)
    }
}

impl From<Obstacle> for ureq::Error {
    fn from(obstacle: Obstacle) -> ureq::Error {
        ureq::Error::Io(obstacle.into())
    }
}

/// An error in the words that every failed request shares.
pub(super) fn no_answer(url: &str, kind: Kind, cause: &str) -> Error {
    Error::new(kind, format!("failed to get an answer from {}: {cause}", shown(url)))
}

/// The address without its query, which may hold what should not be shown.
pub(super) fn shown(url: &str) -> &str {
    url.split_once('?').map_or(url, |(before, _)| before)
}
