//! Relative path, parsed before the system gets it.
//!
//! Paths that are invalid by their text alone are refused here, so that both mechanisms (see
//! `open`) refuse the same ones. `..` is refused even where it would stay inside. Names that
//! only look like it (`...`, `..hidden`, `．．`) are ordinary, and so is a backslash.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::OpenError;
use crate::limits;

/// Relative path without empty components, `.` and `..`.
pub(super) struct RelativePath {
    /// The components; none for the folder itself.
    pub names: Vec<CString>,
    /// Whether the end of the text (`/`, `/.`) requires a folder.
    pub requires_folder: bool,
}

impl RelativePath {
    pub(super) fn parse(path: &OsStr) -> Result<RelativePath, OpenError> {
        let bytes = path.as_bytes();
        if bytes.contains(&0) {
            return Err(OpenError::Nul);
        }
        if bytes.len() > limits::PATH_BYTES {
            return Err(OpenError::NameTooLong);
        }
        if bytes.first() == Some(&b'/') {
            return Err(OpenError::Absolute);
        }
        let mut names = Vec::new();
        let mut folder_due = true;
        for part in bytes.split(|&byte| byte == b'/') {
            folder_due = matches!(part, b"" | b".");
            match part {
                b"" | b"." => {}
                b".." => return Err(OpenError::Parent),
                name => names.push(CString::new(name).map_err(|_| OpenError::Nul)?),
            }
        }
        Ok(RelativePath { names, requires_folder: folder_due })
    }

    /// The path as one string for the kernel.
    #[cfg(target_os = "linux")]
    pub(super) fn joined(&self) -> CString {
        let mut bytes = Vec::new();
        for name in &self.names {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(b'/');
        }
        if !self.requires_folder {
            bytes.pop();
        }
        if bytes.is_empty() {
            bytes.push(b'.');
        }
        // No name contains NUL, so the default, an empty path, is never used. The kernel
        // would refuse it.
        CString::new(bytes).unwrap_or_default()
    }
}

/// The rest of the absolute path `text` after `folder`, compared by components:
/// `/a/skill-evil` is not in `/a/skill`. The rest is returned unchanged.
pub(super) fn strip_folder<'a>(folder: &Path, text: &'a str) -> Option<&'a str> {
    let mut rest = text;
    for wanted in folder.as_os_str().as_bytes().split(|&byte| byte == b'/') {
        if matches!(wanted, b"" | b".") {
            continue;
        }
        let (name, after) = first_name(rest)?;
        if name.as_bytes() != wanted {
            return None;
        }
        rest = after;
    }
    Some(rest.trim_start_matches('/'))
}

/// The first component that is not empty or `.`, and the text after it.
fn first_name(mut text: &str) -> Option<(&str, &str)> {
    while !text.is_empty() {
        let (name, after) = text.split_once('/').unwrap_or((text, ""));
        if !matches!(name, "" | ".") {
            return Some((name, after));
        }
        text = after;
    }
    None
}
