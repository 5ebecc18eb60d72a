//! What a setup writes down in the venv, so that the next one knows whether
//! there is anything to do, and what others have done to the venv meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::skills::setup::requirements::project;
use crate::world::files;

const NAME: &str = ".skills-runner.json";

/// What was installed, and by what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
    /// The names of all packages in the venv when the setup was done.
    pub(super) packages: BTreeSet<String>,
}

impl Record {
    /// The record of a venv. One that cannot be read is none.
    pub(super) fn of(venv: &Path) -> Option<Record> {
        let bytes = files::read_whole(&venv.join(NAME), limits::SETUP_RECORD_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Packages that somebody has installed in the venv since.
    pub(super) fn packages_since(&self, venv: &Path) -> BTreeSet<String> {
        installed(venv)
            .difference(&self.packages)
            .cloned()
            .collect()
    }

    /// Writes it into the venv, whole or not at all.
    pub(super) fn write(&self, venv: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        let new = venv.join(format!("{NAME}.new"));
        fs::write(&new, text + "\n")?;
        fs::rename(new, venv.join(NAME))
    }
}

/// The names of the packages in a venv, as their folders of metadata tell them.
pub(super) fn installed(venv: &Path) -> BTreeSet<String> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let versions = entries(&venv.join("lib")).take(limits::NAMES);
    let packages = versions.flat_map(|version| entries(&version.path().join("site-packages")));
    let names = packages.take(limits::ENTRIES_READ).filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let (name, _) = name.strip_suffix(".dist-info")?.split_once('-')?;
        Some(project(name))
    });
    names.collect()
}
