//! What a setup writes down in the venv, so that the next one knows whether
//! there is anything to do.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::world::files;

const NAME: &str = ".skills-runner.json";

/// What was installed, and by what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// A setup made the venv, and may make it anew; otherwise it is somebody's
    /// own, and only ever added to.
    pub(super) made: bool,
    /// `uv` or `pip`.
    pub(super) tool: String,
    /// The interpreter that the venv was made with, or its own.
    pub(super) python: String,
    /// What the skill declared: the lines of its files.
    pub(super) declared: Vec<String>,
    /// Requirements that it does not declare, found in its imports.
    pub(super) undeclared: Vec<String>,
    /// Modules that were missing all the same: no reason to try again.
    pub(super) missing: Vec<String>,
}

impl Record {
    /// The record of a venv. One that cannot be read is none.
    pub(super) fn of(venv: &Path) -> Option<Record> {
        let bytes = files::read_whole(&venv.join(NAME), limits::SETUP_RECORD_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes it into the venv, whole or not at all.
    pub(super) fn write(&self, venv: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        let new = venv.join(format!("{NAME}.new"));
        fs::write(&new, text + "\n")?;
        fs::rename(new, venv.join(NAME))
    }
}
