//! The existing venv of a skill, and the interpreter that creates a new one.

use std::path::{Path, PathBuf};

use super::Setup;
use super::foreign_venv::{first_outside, foreign_venv_error};
use crate::config::{PythonChoice, ScriptSettings};
use crate::error::{Error, ErrorKind};
use crate::skills::python::{Interpreter, setup_command};
use crate::skills::venv::VenvRecord;
use crate::text::shell_quoted;

/// The venv that a skill has.
pub(super) enum ExistingVenv {
    /// There is no venv; this interpreter can create one.
    Missing(PathBuf),
    /// A venv that a setup created, and its interpreter if it works.
    FromSetup(VenvRecord, Option<PathBuf>),
    /// A venv that the user created, and its interpreter.
    FromUser(PathBuf, PathBuf),
}

impl Setup<'_> {
    /// Finds the skill's venv.
    pub(super) fn find_venv(&self) -> Result<ExistingVenv, Error> {
        let venv = self.location.venv();
        if venv.symlink_metadata().is_ok() {
            let python = self.working_python(&venv)?;
            return match (VenvRecord::read(&venv), python) {
                (Some(record), python) if record.is_from_setup => {
                    Ok(ExistingVenv::FromSetup(record, python))
                }
                (_, Some(python)) => Ok(ExistingVenv::FromUser(venv, python)),
                (_, None) => {
                    let text = format!(
                        "failed to use the venv `{}`: its bin/python does not run for this user",
                        venv.display()
                    );
                    let hint = format!(
                        "a setup does not change a venv that it did not create: run `rm -r {}`, then `{}`",
                        shell_quoted(&venv),
                        setup_command(&self.request.skill.address, &[])
                    );
                    Err(Error::new(ErrorKind::Io, text).with_hint(hint))
                }
            };
        }
        // Scripts run in `.venv` if there is no `venv`.
        let hidden = self.request.skill.path.join(".venv");
        match self.working_python(&hidden)? {
            Some(python) => Ok(ExistingVenv::FromUser(hidden, python)),
            None => Ok(ExistingVenv::Missing(self.base_python()?)),
        }
    }

    /// Returns the interpreter of a venv if it starts. A venv that installs elsewhere is an
    /// error: its packages may be those of another project.
    fn working_python(&self, venv: &Path) -> Result<Option<PathBuf>, Error> {
        for name in ["bin/python", "bin/python3"] {
            let python = venv.join(name);
            if !python.is_file() {
                continue;
            }
            if let Some(places) = self.runner.install_paths(&python)? {
                return match first_outside(&self.request.skill.path, &places) {
                    None => Ok(Some(python)),
                    Some(place) => Err(foreign_venv_error(venv, place)),
                };
            }
        }
        Ok(None)
    }

    /// Returns the interpreter that creates venvs.
    pub(super) fn base_python(&self) -> Result<PathBuf, Error> {
        let scripts = self.request.scripts;
        // `off` is about scripts without a venv; this skill is getting one.
        let python = if scripts.python == PythonChoice::Off {
            Interpreter::without_venv(&ScriptSettings {
                python: PythonChoice::Search,
                ..scripts.clone()
            })
        } else {
            Interpreter::without_venv(scripts)
        };
        let name = &self.request.skill.name;
        python.map(|python| python.program).map_err(|error| {
            let text = format!("failed to set up the skill `{name}`: {}", error.message);
            Error::new(ErrorKind::Config, text).with_hint(error.fix)
        })
    }
}
