//! Relative path, parsed before the system gets it.
//!
//! Paths that are invalid by their text alone are refused here, so that both mechanisms (see
//! `open`) refuse the same ones. `..` is refused even where it would stay inside. Names that
//! only look like it (`...`, `..hidden`, `．．`) are ordinary, and so is a backslash.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use super::OpenError;
use base::limits;

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
        let mut requires_folder = true;
        for part in bytes.split(|&byte| byte == b'/') {
            requires_folder = matches!(part, b"" | b".");
            match part {
                b"" | b"." => {}
                b".." => return Err(OpenError::Parent),
                name => names.push(CString::new(name).map_err(|_| OpenError::Nul)?),
            }
        }
        Ok(RelativePath { names, requires_folder })
    }

    /// Parses the name of an entry that is directly in the folder.
    pub(super) fn single_name(name: &OsStr) -> Result<CString, OpenError> {
        match RelativePath::parse(name)?.names.pop() {
            Some(only) if only.as_bytes() == name.as_bytes() => Ok(only),
            _ => Err(OpenError::NotFound),
        }
    }

    /// The path as one string for the kernel.
    pub(super) fn joined(&self) -> CString {
        let names: Vec<&[u8]> = self.names.iter().map(CString::as_bytes).collect();
        let bytes = if names.is_empty() { b".".to_vec() } else { names.join(&b'/') };
        // No name contains NUL, so the default, an empty path, is never used. The kernel
        // would refuse it.
        CString::new(bytes).unwrap_or_default()
    }
}
