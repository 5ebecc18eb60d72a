//! Venvs that install outside the skill: a link to another project's venv, or an interpreter
//! without a venv. Scripts run in them, but a setup changes nothing there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::text::{one_line_name, shell_quoted};

/// Returns the first folder that is not in the skill.
pub(super) fn first_outside<'p>(skill: &Path, places: &'p [PathBuf]) -> Option<&'p Path> {
    let skill = fs::canonicalize(skill).unwrap_or_else(|_| skill.to_path_buf());
    let mut places = places.iter().map(PathBuf::as_path);
    places.find(|place| !place.starts_with(&skill))
}

/// Returns the error for such a venv.
pub(super) fn foreign_venv_error(venv: &Path, place: &Path) -> Error {
    let (shown, place) = (venv.display(), one_line_name(&place.to_string_lossy()));
    let text = format!("failed to use `{shown}`: it installs outside the skill, in `{place}`");
    let hint = match fs::read_link(venv) {
        Ok(_) => {
            format!("remove the link to get a venv of the skill's own: rm {}", shell_quoted(venv))
        }
        Err(_) => {
            format!("remove it to get a venv of the skill's own: rm -r {}", shell_quoted(venv))
        }
    };
    let hint = format!("{hint}; or install the packages there yourself: scripts keep using it");
    Error::new(ErrorKind::Io, text).with_hint(hint)
}
