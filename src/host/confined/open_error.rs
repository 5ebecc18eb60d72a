//! Errors of opening a path below a folder, with one text for models and one for users.
//!
//! Each text is one line that follows ``failed to read `thing`: ``, and never contains a path
//! of this machine.

use std::borrow::Cow;
use std::{error, fmt, io};

/// Reason why a path below a folder was not opened.
#[derive(Debug)]
pub enum OpenError {
    /// The name does not exist, or is a dangling link inside the folder.
    NotFound,
    /// An absolute path that is not in the folder.
    Absolute,
    /// The path has a component `..`, even if it would stay inside.
    Parent,
    /// A link leads outside. Every absolute link counts as such.
    Outside,
    /// The path contains a link where links are not followed: for writing, and on systems that
    /// cannot follow them safely.
    Link,
    /// A link that leads to nothing, where a file is to be written.
    DeadLink,
    /// Links in a circle, too many links, or a link that only the kernel can follow.
    TooManyLinks,
    /// Not a regular file. The value says what it is: `a folder`, `a FIFO`, `a socket`, `a device`.
    NotAFile(&'static str),
    /// A component that must be a folder is not one.
    NotAFolder,
    /// The user has no permission to open it.
    Denied,
    /// The path, or one name in it, is longer than the system allows.
    NameTooLong,
    /// The path contains a NUL character.
    Nul,
    /// It was replaced repeatedly while it was being opened.
    Changing,
    /// It is not owned by root or this user, other users can write in it, or it is reached
    /// through a link.
    Foreign,
    /// A file or folder that is not read for a model or client.
    Private,
    /// Any other system error.
    Io(io::Error),
}

/// Why nothing reads a private file for a model or client.
pub const PRIVATE: &str = "is private (.env files, keys, sessions, memory, notes, log, .git)";

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cause, advice) = self.cause_and_advice();
        f.write_str(&cause)?;
        if advice.is_empty() { Ok(()) } else { write!(f, "; {advice}") }
    }
}

impl OpenError {
    /// The cause, and the advice for a model.
    fn cause_and_advice(&self) -> (Cow<'static, str>, &'static str) {
        let (cause, advice) = match self {
            OpenError::NotFound => {
                ("no such file or folder", "list the folder to see what it holds")
            }
            OpenError::Absolute => (
                "an absolute path that is not in the folder; use a path relative to the folder",
                "",
            ),
            OpenError::Parent => {
                ("a path must not contain `..`; use a path relative to the folder", "")
            }
            OpenError::Outside => (
                "a link leads out of the folder, or has an absolute target",
                "use a file in the folder instead",
            ),
            OpenError::Link => (
                "a link, and this system cannot follow links safely; \
                 use the path of what it leads to",
                "",
            ),
            OpenError::DeadLink => ("a link that leads to nothing", "use another path"),
            OpenError::TooManyLinks => {
                ("too many links, or links that lead in a circle", "use another path")
            }
            OpenError::NotAFile("a folder") => ("a folder, not a file", "ask for one of its files"),
            OpenError::NotAFile(kind) => {
                return (format!("{kind}, not a regular file").into(), "use another file");
            }
            OpenError::NotAFolder => {
                ("a file where the path needs a folder", "end the path at the file")
            }
            OpenError::Denied => ("permission denied", "the user has to allow it"),
            OpenError::NameTooLong => {
                ("the path, or a name in it, is too long", "use a shorter one")
            }
            OpenError::Nul => ("a path must not contain a NUL character", ""),
            OpenError::Changing => ("it keeps changing while it is opened", "try again"),
            OpenError::Foreign => {
                ("it belongs to another user, others may write in it, or a link leads there", "")
            }
            OpenError::Private => return (format!("it {PRIVATE}").into(), "go on without it"),
            OpenError::Io(error) => return (error.to_string().into(), ""),
        };
        (cause.into(), advice)
    }

    /// The text for users, without the advice for a model.
    pub fn user_message(&self) -> String {
        self.cause_and_advice().0.into_owned()
    }

    /// The hint for the author of a skill.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            OpenError::NotAFile("a folder") => {
                Some("rename the folder, and write a file of this name in its place")
            }
            OpenError::NotAFile(_) => Some("put a regular file in its place"),
            OpenError::Denied => Some("make it readable with `chmod u+rX`, and its folder, too"),
            _ => None,
        }
    }
}

impl error::Error for OpenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            OpenError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for OpenError {
    /// Converts the error of an `open` or a `read`.
    fn from(error: io::Error) -> OpenError {
        match error.raw_os_error() {
            Some(libc::ENOENT) => OpenError::NotFound,
            Some(libc::EXDEV) => OpenError::Outside,
            Some(libc::ELOOP) => OpenError::TooManyLinks,
            Some(libc::ENOTDIR) => OpenError::NotAFolder,
            Some(libc::EISDIR) => OpenError::NotAFile("a folder"),
            Some(libc::ENXIO | libc::ENODEV) => OpenError::NotAFile("a device or a socket"),
            Some(libc::EACCES | libc::EPERM) => OpenError::Denied,
            Some(libc::ENAMETOOLONG) => OpenError::NameTooLong,
            Some(libc::EAGAIN) => OpenError::Changing,
            _ => OpenError::Io(error),
        }
    }
}
