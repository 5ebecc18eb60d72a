//! The venv that a skill has, and the interpreter that makes it one.

use std::path::{Path, PathBuf};

use super::Setup;
use super::foreign::{foreign, outside};
use crate::config::{PythonChoice, ScriptSettings};
use crate::error::{Error, ErrorKind};
use crate::skills::python::{Interpreter, setup_command};
use crate::skills::venv::VenvRecord;
use crate::text::quoted;

/// The venv that a skill has.
pub(super) enum ExistingVenv {
    /// None; this interpreter can make one.
    Nothing(PathBuf),
    /// One that a setup made, and its interpreter, if that works.
    Ours(VenvRecord, Option<PathBuf>),
    /// One that people made, with its interpreter.
    Theirs(PathBuf, PathBuf),
}

impl Setup<'_> {
    /// Looks at what is there.
    pub(super) fn find(&self) -> Result<ExistingVenv, Error> {
        let venv = self.place.venv();
        if venv.symlink_metadata().is_ok() {
            let python = self.working(&venv)?;
            return match (VenvRecord::of(&venv), python) {
                (Some(record), python) if record.made => Ok(ExistingVenv::Ours(record, python)),
                (_, Some(python)) => Ok(ExistingVenv::Theirs(venv, python)),
                (_, None) => {
                    let text = format!(
                        "failed to use `{}`: its bin/python does not run for this user",
                        venv.display()
                    );
                    let hint = format!(
                        "no setup made it, so it is left alone: `rm -r {}`, and then `{}`",
                        quoted(&venv),
                        setup_command(&self.order.skill.address, &[])
                    );
                    Err(Error::new(ErrorKind::Io, text).with_hint(hint))
                }
            };
        }
        // Scripts run in it as long as there is no `venv`.
        let hidden = self.order.skill.path.join(".venv");
        match self.working(&hidden)? {
            Some(python) => Ok(ExistingVenv::Theirs(hidden, python)),
            None => Ok(ExistingVenv::Nothing(self.base()?)),
        }
    }

    /// The interpreter of a venv, if it can be started. One whose packages lie
    /// elsewhere is an error: they may be those of another project.
    fn working(&self, venv: &Path) -> Result<Option<PathBuf>, Error> {
        for name in ["bin/python", "bin/python3"] {
            let python = venv.join(name);
            if !python.is_file() {
                continue;
            }
            if let Some(places) = self.bench.places(&python)? {
                return match outside(&self.order.skill.path, &places) {
                    None => Ok(Some(python)),
                    Some(place) => Err(foreign(venv, place)),
                };
            }
        }
        Ok(None)
    }

    /// The interpreter that venvs are made with.
    pub(super) fn base(&self) -> Result<PathBuf, Error> {
        let scripts = self.order.scripts;
        // `off` is about scripts without a venv; one is about to be made.
        let python = if scripts.python == PythonChoice::Off {
            Interpreter::without_venv(&ScriptSettings {
                python: PythonChoice::Search,
                ..scripts.clone()
            })
        } else {
            Interpreter::without_venv(scripts)
        };
        let name = &self.order.skill.name;
        python.map(|python| python.program).map_err(|cause| {
            Error::new(ErrorKind::Config, format!("failed to set up the skill `{name}`: {cause}"))
        })
    }
}
