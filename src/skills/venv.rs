//! A skill's venv, as its files tell it: whether a setup is at work on it, what the
//! last one wrote down (so that the next one knows whether there is anything to do),
//! and what others have installed in it meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::skills::packages::project;
use crate::world::files;

/// Where a venv has its [`VenvRecord`].
const NAME: &str = ".skills-runner.json";

/// Lies in a venv from the moment it is begun until all is installed in it.
pub const INCOMPLETE: &str = ".skills-runner-incomplete";

/// Lies in a skill's folder only while a setup works there.
pub(crate) const SETUP_FOLDER: &str = ".skills-runner-setup";

/// Where a setup keeps the venv before, below [`SETUP_FOLDER`].
pub(crate) const BEFORE: &str = "before";

/// What was installed, and by what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VenvRecord {
    /// A setup made the venv, and may make it anew; otherwise it is somebody's
    /// own, and only ever added to.
    pub made: bool,
    /// `uv` or `pip`.
    pub tool: String,
    /// The interpreter that the venv was made with, or its own.
    pub python: String,
    /// What the skill declared: the lines of its files, without logins.
    pub declared: Vec<String>,
    /// Requirements that it does not declare, found in its imports.
    pub undeclared: Vec<String>,
    /// Modules that were missing all the same: no reason to try again.
    pub missing: Vec<String>,
    /// The names of all packages in the venv when the setup was done.
    pub packages: BTreeSet<String>,
}

impl VenvRecord {
    /// The record of a venv. One that cannot be read is none.
    pub(crate) fn of(venv: &Path) -> Option<VenvRecord> {
        let bytes = files::read_whole(&venv.join(NAME), limits::SETUP_RECORD_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Packages that somebody has installed in the venv since.
    pub(crate) fn packages_since(&self, venv: &Path) -> BTreeSet<String> {
        installed(venv).difference(&self.packages).cloned().collect()
    }

    /// Writes it into the venv, whole or not at all.
    pub(crate) fn write(&self, venv: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        let new = venv.join(format!("{NAME}.new"));
        files::write_new(&new, (text + "\n").as_bytes())?;
        fs::rename(new, venv.join(NAME))
    }
}

/// The venv of the skill in this folder, the first of the names that it may have; a
/// dangling link is one too, a broken one.
pub(crate) fn of_skill(skill: &Path) -> Option<PathBuf> {
    let places = ["venv", ".venv"].map(|name| skill.join(name));
    let mut places = places.into_iter();
    places.find(|venv| venv.symlink_metadata().is_ok())
}

/// Whether a setup has begun to fill the venv, and has not finished.
pub(crate) fn is_begun(venv: &Path) -> bool {
    venv.join(INCOMPLETE).symlink_metadata().is_ok()
}

/// Whether a setup made the venv, and so may make it anew.
pub(crate) fn is_made(venv: &Path) -> bool {
    VenvRecord::of(venv).is_some_and(|record| record.made)
}

/// The names of the packages in a venv, as their folders of metadata tell them.
pub(crate) fn installed(venv: &Path) -> BTreeSet<String> {
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
