//! The venv that a skill already has.

use std::fs;
use std::path::{Path, PathBuf};

use super::command_runner::CommandRunner;
use crate::error::{Error, ErrorKind};
use crate::skills::Skill;
use crate::skills::python::setup_command;
use crate::skills::venv::VenvRecord;
use crate::text::{one_line_name, shell_quoted};

/// The venv that a skill already has.
pub(super) struct ExistingVenv {
    pub(super) path: PathBuf,
    /// Its interpreter. Only a venv that a setup created, and may create again, can lack one.
    pub(super) python: Option<PathBuf>,
    /// The record of the last setup.
    pub(super) record: VenvRecord,
}

/// Finds the venv in which the skill's scripts run.
pub(super) fn find_venv(
    skill: &Skill,
    runner: &CommandRunner<'_>,
) -> Result<Option<ExistingVenv>, Error> {
    let venv = skill.path.join("venv");
    if venv.symlink_metadata().is_ok() {
        let python = working_python(&skill.path, &venv, runner)?;
        let record = VenvRecord::read(&venv).unwrap_or_default();
        if python.is_none() && !record.is_from_setup {
            let shown = venv.display();
            let text = format!(
                "failed to use the venv `{shown}`: its bin/python does not run for this user"
            );
            let hint = format!(
                "a setup does not change a venv that it did not create: run `rm -r {}`, then `{}`",
                shell_quoted(&venv),
                setup_command(skill, &[])
            );
            return Err(Error::new(ErrorKind::Io, text).with_hint(hint));
        }
        return Ok(Some(ExistingVenv { path: venv, python, record }));
    }
    // Scripts run in `.venv` if there is no `venv`; no setup creates one.
    let path = skill.path.join(".venv");
    let python = working_python(&skill.path, &path, runner)?;
    Ok(python.map(|python| {
        let record = VenvRecord::read(&path).unwrap_or_default();
        let record = VenvRecord { is_from_setup: false, ..record };
        ExistingVenv { path, python: Some(python), record }
    }))
}

/// Returns the interpreter of a venv if it starts. A venv that installs outside the skill (a
/// link to another project's, an interpreter without a venv) is an error: scripts run in it, but
/// a setup changes nothing there.
fn working_python(
    skill: &Path,
    venv: &Path,
    runner: &CommandRunner<'_>,
) -> Result<Option<PathBuf>, Error> {
    let skill = fs::canonicalize(skill).unwrap_or_else(|_| skill.to_path_buf());
    for name in ["bin/python", "bin/python3"] {
        let python = venv.join(name);
        if !python.is_file() {
            continue;
        }
        if let Some(places) = runner.install_paths(&python)? {
            return match places.iter().find(|place| !place.starts_with(&skill)) {
                None => Ok(Some(python)),
                Some(place) => Err(foreign_venv_error(venv, place)),
            };
        }
    }
    Ok(None)
}

fn foreign_venv_error(venv: &Path, place: &Path) -> Error {
    let (shown, place) = (venv.display(), one_line_name(&place.to_string_lossy()));
    let text = format!("failed to use `{shown}`: it installs outside the skill, in `{place}`");
    let (what, command) = match fs::read_link(venv) {
        Ok(_) => ("the link", "rm"),
        Err(_) => ("it", "rm -r"),
    };
    Error::new(ErrorKind::Io, text).with_hint(format!(
        "remove {what} to get a venv of the skill's own: {command} {}; or install the packages \
         there yourself: scripts keep using it",
        shell_quoted(venv)
    ))
}
