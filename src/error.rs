//! The error of everything that the user has to mend.
//!
//! One opaque type with a kind that programs can act on (the exit status and
//! `error.kind` of the JSON output follow from it) and a text for people. What
//! the model can mend is no `Error`: it is a [`crate::tool::ToolResult`].

use std::fmt;

/// What went wrong, as far as a program needs to tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The command line was wrong; in a program of its own, the use of the crate.
    Usage,
    /// A setting is missing or invalid.
    Config,
    /// The endpoint refused the credentials (401, 403).
    Auth,
    /// Network, rate limit, overload: worth trying again later.
    Temporary,
    /// The endpoint refused the request for good.
    Endpoint,
    /// The reply was no chat completion.
    Protocol,
    /// The conversation is longer than the model's context window.
    Context,
    /// `--max-steps` or `--timeout` was reached.
    Limit,
    /// The answer was cut off.
    Truncated,
    /// A signal, by its number, asked the program to stop.
    Interrupted(i32),
    /// Reading or writing on this machine failed.
    Io,
}

impl ErrorKind {
    /// The word for it in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Usage => "usage",
            ErrorKind::Config => "config",
            ErrorKind::Auth => "auth",
            ErrorKind::Temporary => "temporary",
            ErrorKind::Endpoint => "endpoint",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Context => "context",
            ErrorKind::Limit => "limit",
            ErrorKind::Truncated => "truncated",
            ErrorKind::Interrupted(_) => "interrupted",
            ErrorKind::Io => "io",
        }
    }

    /// The exit status of a run that ends with it. The numbers from 64 on are
    /// those of `sysexits.h`.
    pub fn exit_status(self) -> u8 {
        match self {
            ErrorKind::Usage => 2,
            ErrorKind::Limit => 3,
            ErrorKind::Truncated => 4,
            ErrorKind::Temporary => 75,
            ErrorKind::Auth => 77,
            ErrorKind::Config => 78,
            ErrorKind::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            ErrorKind::Endpoint | ErrorKind::Protocol | ErrorKind::Context | ErrorKind::Io => 1,
        }
    }
}

/// A failure that the user has to know of: a kind, one sentence, and a hint
/// where there is a remedy.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

/// The result of everything that can fail for a reason the user must mend.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error whose text reads `failed to <verb> <noun>: <cause>`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), hint: None }
    }

    /// The program was asked to stop by the signal with this number.
    pub fn interrupted(signal: i32) -> Error {
        let what = match signal {
            libc::SIGTERM => "terminated",
            libc::SIGHUP => "hung up",
            _ => "interrupted",
        };
        Error::new(ErrorKind::Interrupted(signal), what)
    }

    /// The same with a remedy, shown on a line of its own.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The sentence, without the hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// As `Display`: what a test or a `main` that returns it prints is for people.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_word_and_the_documented_status() {
        let table = [
            (ErrorKind::Usage, "usage", 2),
            (ErrorKind::Config, "config", 78),
            (ErrorKind::Auth, "auth", 77),
            (ErrorKind::Temporary, "temporary", 75),
            (ErrorKind::Endpoint, "endpoint", 1),
            (ErrorKind::Protocol, "protocol", 1),
            (ErrorKind::Context, "context", 1),
            (ErrorKind::Limit, "limit", 3),
            (ErrorKind::Truncated, "truncated", 4),
            (ErrorKind::Interrupted(libc::SIGINT), "interrupted", 130),
            (ErrorKind::Interrupted(libc::SIGTERM), "interrupted", 143),
            (ErrorKind::Interrupted(libc::SIGHUP), "interrupted", 129),
            (ErrorKind::Io, "io", 1),
        ];
        for (kind, name, status) in table {
            assert_eq!((kind.name(), kind.exit_status()), (name, status));
        }
    }

    #[test]
    fn a_hint_stands_on_a_line_of_its_own() {
        let error = Error::new(ErrorKind::Config, "failed to read `x`: no such file")
            .with_hint("create it");
        assert_eq!(format!("{error}"), "failed to read `x`: no such file\nhint: create it");
        assert_eq!(format!("{error:?}"), format!("{error}"));
    }
}
