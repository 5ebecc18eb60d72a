//! The error type: failures that the user must fix.
//!
//! An [`Error`] has a kind for programs (it determines the exit status and
//! `error.kind` of the JSON output) and a text for users. A failure that the model
//! can fix is not an `Error` but a [`crate::tool::ToolResult`].

use std::fmt;

/// Kind of an [`Error`], for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The command line is wrong, or the library was used incorrectly.
    Usage,
    /// A setting is missing or invalid.
    Config,
    /// The endpoint refused the credentials (401, 403).
    Auth,
    /// Network failure, rate limit or overload: a later try may succeed.
    Temporary,
    /// The endpoint refused the request, and would refuse it again.
    Endpoint,
    /// The reply was not a chat completion.
    Protocol,
    /// The conversation is longer than the model's context window.
    Context {
        /// The context window in tokens, if the endpoint names it.
        limit: Option<u64>,
        /// The tokens of the request, if the endpoint names them.
        used: Option<u64>,
    },
    /// `--max-steps` or `--timeout` was reached.
    Limit,
    /// The answer was cut off.
    Truncated,
    /// A signal with this number stopped the program.
    Interrupted(i32),
    /// Reading or writing on this machine failed.
    Io,
    /// The model answered without the skill or script that the user required.
    Skill,
}

/// The cause for a file in a format that this version does not know: a newer version has written
/// it, the one of this number if the file names it. The number of an older one is not shown: that
/// version started the file, and a newer one continued it.
pub fn newer_version_cause(program: Option<&str>) -> String {
    let own = version_numbers(env!("CARGO_PKG_VERSION"));
    // Only numbers: the file may be of another author, whose words would look like ours.
    match program.and_then(version_numbers).filter(|numbers| Some(*numbers) > own) {
        Some([major, minor, patch]) => {
            format!("the newer version {major}.{minor}.{patch} of skills-runner has written it")
        }
        None => "a newer version of skills-runner has written it".to_string(),
    }
}

/// The numbers of a version such as `1.2.3-rc.1`, without what follows them; `None` for any other
/// text.
fn version_numbers(version: &str) -> Option<[u64; 3]> {
    let end = version.find(['-', '+']).unwrap_or(version.len());
    let numbers = version[..end].split('.').map(|number| number.parse().ok());
    numbers.collect::<Option<Vec<u64>>>()?.try_into().ok()
}

impl ErrorKind {
    /// The name of the kind in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Usage => "usage",
            ErrorKind::Config => "config",
            ErrorKind::Auth => "auth",
            ErrorKind::Temporary => "temporary",
            ErrorKind::Endpoint => "endpoint",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Context { .. } => "context",
            ErrorKind::Limit => "limit",
            ErrorKind::Truncated => "truncated",
            ErrorKind::Interrupted(_) => "interrupted",
            ErrorKind::Io => "io",
            ErrorKind::Skill => "skill",
        }
    }

    /// The kind with this name; an unknown one is [`ErrorKind::Io`].
    pub fn from_name(name: &str) -> ErrorKind {
        use ErrorKind::{Auth, Config, Endpoint, Protocol, Skill, Temporary, Usage};
        let kinds = [Usage, Config, Auth, Temporary, Endpoint, Protocol, Skill];
        kinds.into_iter().find(|kind| kind.name() == name).unwrap_or(ErrorKind::Io)
    }

    /// The exit status of a run that ends with this kind. Numbers from 64 on are
    /// those of `sysexits.h`.
    pub fn exit_status(self) -> u8 {
        match self {
            ErrorKind::Usage => 2,
            ErrorKind::Limit => 3,
            ErrorKind::Truncated => 4,
            ErrorKind::Skill => 5,
            ErrorKind::Temporary => 75,
            ErrorKind::Auth => 77,
            ErrorKind::Config => 78,
            ErrorKind::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            ErrorKind::Endpoint
            | ErrorKind::Protocol
            | ErrorKind::Context { .. }
            | ErrorKind::Io => 1,
        }
    }
}

/// A fault of the setup: what is wrong, and what the user can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The problem.
    pub message: String,
    /// The remedy; `None` if the message shows it.
    pub fix: Option<String>,
}

impl Fault {
    /// A fault with its remedy.
    pub fn new(message: impl Into<String>, fix: impl Into<String>) -> Fault {
        Fault { message: message.into(), fix: Some(fix.into()) }
    }

    /// A fault whose message shows what to correct.
    pub fn without_fix(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), fix: None }
    }
}

/// Message and remedy on one line.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.fix {
            Some(fix) => write!(f, ": {fix}"),
            None => Ok(()),
        }
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> String {
        fault.to_string()
    }
}

/// The part of setup or reply that a failed request points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedPart {
    /// The address: it is not that of an endpoint.
    Address,
    /// The server: it does not run, or at another address.
    Server,
    /// The way to the server: the proxy, or a certificate that the server requires.
    Route,
    /// The model: the endpoint does not have it.
    Model,
    /// The list of models: the credentials may be valid for answers.
    ModelList,
    /// The answer: it is empty. With the tokens of the request and of the reply.
    Answer([u32; 2]),
}

/// A failure that the user must fix: a kind, a message of one sentence and, if there
/// is a remedy, a hint.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    fault: Fault,
    part: Option<FailedPart>,
}

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error. The message reads `failed to <verb> <noun>: <cause>`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, fault: Fault::without_fix(message), part: None }
    }

    /// Creates the error for a fault.
    pub fn from_fault(kind: ErrorKind, fault: Fault) -> Error {
        Error { kind, fault, part: None }
    }

    /// Creates an error with the remedy of a fault, whose message becomes the cause.
    pub fn caused_by(kind: ErrorKind, message: &str, fault: Fault) -> Error {
        let message = format!("{message}: {}", fault.message);
        Error::from_fault(kind, Fault { message, ..fault })
    }

    /// Creates the error for a signal that stopped the program.
    pub fn interrupted(signal: i32) -> Error {
        let message = match signal {
            libc::SIGTERM => "terminated",
            libc::SIGHUP => "hung up",
            _ => "interrupted",
        };
        Error::new(ErrorKind::Interrupted(signal), message)
    }

    /// Adds a remedy, which is shown on a separate line.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.fault.fix = Some(hint.into());
        self
    }

    /// Adds the part of the setup that the failure points to.
    #[must_use]
    pub fn with_part(mut self, part: FailedPart) -> Error {
        self.part = Some(part);
        self
    }

    /// Whether the run must stop, whatever the cause of other failures.
    pub fn is_stop(&self) -> bool {
        matches!(self.kind, ErrorKind::Interrupted(_) | ErrorKind::Limit)
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message, without the hint.
    pub fn message(&self) -> &str {
        &self.fault.message
    }

    /// The remedy, if one is known.
    pub fn hint(&self) -> Option<&str> {
        self.fault.fix.as_deref()
    }

    /// Message and remedy.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// The part of the setup that the failure points to, if it is known.
    pub fn part(&self) -> Option<FailedPart> {
        self.part
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        match self.hint() {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Same as `Display`, because Rust prints this form of an error that `main` or a test returns.
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
    fn every_kind_has_the_documented_name_and_status() {
        let table = [
            (ErrorKind::Usage, "usage", 2),
            (ErrorKind::Config, "config", 78),
            (ErrorKind::Auth, "auth", 77),
            (ErrorKind::Temporary, "temporary", 75),
            (ErrorKind::Endpoint, "endpoint", 1),
            (ErrorKind::Protocol, "protocol", 1),
            (ErrorKind::Context { limit: None, used: None }, "context", 1),
            (ErrorKind::Limit, "limit", 3),
            (ErrorKind::Truncated, "truncated", 4),
            (ErrorKind::Interrupted(libc::SIGINT), "interrupted", 130),
            (ErrorKind::Interrupted(libc::SIGTERM), "interrupted", 143),
            (ErrorKind::Interrupted(libc::SIGHUP), "interrupted", 129),
            (ErrorKind::Io, "io", 1),
            (ErrorKind::Skill, "skill", 5),
        ];
        for (kind, name, status) in table {
            assert_eq!((kind.name(), kind.exit_status()), (name, status));
        }
    }

    #[test]
    fn a_hint_is_on_a_separate_line() {
        let error = Error::new(ErrorKind::Config, "failed to read `x`: no such file")
            .with_hint("create it");
        assert_eq!(format!("{error}"), "failed to read `x`: no such file\nhint: create it");
        assert_eq!(format!("{error:?}"), format!("{error}"));
    }
}
