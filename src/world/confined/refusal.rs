//! Why something below a folder was not opened, in words a language model can
//! act on, and in words for a person.
//!
//! One line each, made to stand behind ``failed to read `thing`: ``; never a
//! path of this machine. Nothing here opens anything.

use std::{error, fmt, io};

/// Why something below a folder was not opened.
#[derive(Debug)]
pub enum OpenError {
    /// Nothing has this name; also a link inside the folder that leads nowhere.
    NotFound,
    /// An absolute path that does not lie in the folder.
    Absolute,
    /// The path has a component `..`, wherever it would lead.
    Parent,
    /// A link leads outside. An absolute link counts as such, wherever it leads.
    Outside,
    /// A link on the way, where the system has no safe way to follow it.
    Link,
    /// Links in a circle, too many of them, or one that only the kernel can follow.
    TooManyLinks,
    /// Not a regular file but this: `a folder`, `a FIFO`, `a socket`, `a device`.
    NotAFile(&'static str),
    /// A folder is due, or the path goes on, where there is none.
    NotAFolder,
    /// The user who runs this may not open it.
    Denied,
    /// The path, or one name in it, is longer than the system takes.
    NameTooLong,
    /// The path has a NUL character.
    Nul,
    /// It was replaced again and again while it was being opened.
    Changing,
    /// Not root's or this user's, or others may have put it there.
    Foreign,
    /// Anything else the system said.
    Io(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            OpenError::NotFound => "no such file or folder; list the folder to see what it holds",
            OpenError::Absolute => {
                "an absolute path that is not in the folder; use a path relative to the folder"
            }
            OpenError::Parent => "a path must not contain `..`; use a path relative to the folder",
            OpenError::Outside => {
                "a link leads out of the folder (an absolute link counts as such); \
                 only what lies in the folder can be opened"
            }
            OpenError::Link => {
                "a link, and this system cannot follow links safely; \
                 use the path of what it leads to"
            }
            OpenError::TooManyLinks => {
                "too many links, or links that lead in a circle; use another path"
            }
            OpenError::NotAFile("a folder") => "a folder, not a file; ask for one of its files",
            OpenError::NotAFile(kind) => {
                return write!(f, "{kind}, not a regular file; use another file");
            }
            OpenError::NotAFolder => {
                "a file where the path needs a folder; end the path at the file"
            }
            OpenError::Denied => "permission denied; the user has to allow it",
            OpenError::NameTooLong => "the path, or a name in it, is too long; use a shorter one",
            OpenError::Nul => "a path must not contain a NUL character",
            OpenError::Changing => "it keeps changing while it is opened; try again",
            OpenError::Foreign => {
                "it belongs to another user, others may write in it, or a link leads there"
            }
            OpenError::Io(error) => return write!(f, "{error}"),
        };
        f.write_str(text)
    }
}

impl OpenError {
    /// What it is, without the advice that only helps a model.
    pub fn for_people(&self) -> String {
        let text = match self {
            OpenError::NotFound => "no such file or folder",
            OpenError::Outside => {
                "a link leads out of the folder (an absolute link counts as such)"
            }
            OpenError::TooManyLinks => "too many links, or links that lead in a circle",
            OpenError::NotAFile("a folder") => "a folder, not a file",
            OpenError::NotAFile(kind) => return format!("{kind}, not a regular file"),
            OpenError::NotAFolder => "a file where the path needs a folder",
            OpenError::Denied => "permission denied",
            OpenError::NameTooLong => "the path, or a name in it, is too long",
            OpenError::Changing => "it keeps changing while it is opened",
            other => return other.to_string(),
        };
        text.to_string()
    }

    /// What a person does about a file that others are to read.
    pub fn remedy(&self) -> Option<&'static str> {
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
    /// What the system's answer to an `open` or a `read` means.
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
