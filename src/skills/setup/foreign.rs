//! Venvs that install elsewhere than in the skill: a link to another project's,
//! or an interpreter that is none of a venv. Scripts may run in them, as somebody
//! has arranged it; a setup changes nothing there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::text::{one_name, quoted};

/// The first place that is not in the skill.
pub(super) fn outside<'p>(skill: &Path, places: &'p [PathBuf]) -> Option<&'p Path> {
    let skill = fs::canonicalize(skill).unwrap_or_else(|_| skill.to_path_buf());
    let mut places = places.iter().map(PathBuf::as_path);
    places.find(|place| !place.starts_with(&skill))
}

/// Why such a venv is left alone.
pub(super) fn foreign(venv: &Path, place: &Path) -> Error {
    let (shown, place) = (venv.display(), one_name(&place.to_string_lossy()));
    let text = format!("failed to use `{shown}`: it installs outside the skill, in `{place}`");
    let hint = match fs::read_link(venv) {
        Ok(_) => {
            format!("remove the link, and the skill gets a venv of its own: rm {}", quoted(venv))
        }
        Err(_) => {
            format!("remove it, and the skill gets a venv of its own: rm -r {}", quoted(venv))
        }
    };
    let hint = format!("{hint}; or install there yourself, and the scripts go on using it");
    Error::new(ErrorKind::Io, text).with_hint(hint)
}
