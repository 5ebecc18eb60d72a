//! JSON output: one object, in whose paths bytes that are not UTF-8 are replaced, so that one odd
//! name does not break a whole report.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::ui::Output;

/// Prints one JSON object.
pub(super) fn print_json(value: &impl Serialize, output: &mut Output) {
    // Structures of strings and numbers always serialize.
    output.print(&serde_json::to_string(value).unwrap_or_default());
}

/// Serializes a path.
pub(super) fn path<S: Serializer>(
    path: &impl AsRef<Path>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref().to_string_lossy().serialize(serializer)
}

/// Serializes a path, or null.
#[allow(clippy::ref_option, reason = "serde passes the field itself")]
pub(super) fn option<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}

/// Serializes a list of paths.
pub(super) fn list<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}
