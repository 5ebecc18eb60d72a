//! State of a skill's venv, read from its files: whether a setup is unfinished, what the
//! last setup installed (so that the next one can skip work), and which packages were
//! installed in it since or are still lacking.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Skill;
use crate::installed::InstalledPackages;
use crate::packages::project_name;
use crate::requirements::listed_requirements;
use base::limits;
use base::secret::mask_url_logins;
use host::files;

/// Name of the file in a venv that holds its [`VenvRecord`].
const RECORD_NAME: &str = ".skills-runner.json";

/// Marker file in a venv while a setup creates it and installs packages.
pub const INCOMPLETE: &str = ".skills-runner-incomplete";

/// Working folder of a setup in the skill's folder; exists only while a setup runs.
pub const SETUP_FOLDER: &str = ".skills-runner-setup";

/// Name of the folder below [`SETUP_FOLDER`] that keeps the previous venv during a setup.
pub const PREVIOUS_VENV: &str = "before";

/// Record of what a setup installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VenvRecord {
    /// A setup created the venv and may recreate it; otherwise it is the user's own.
    #[serde(rename = "made")]
    pub is_from_setup: bool,
    /// The requirements that the skill declared: the lines of its files, without logins.
    pub declared: BTreeSet<String>,
    /// Requirements that the user gave, or agreed to; without logins.
    pub undeclared: Vec<String>,
    /// The names of all packages in the venv when the setup finished.
    pub packages: BTreeSet<String>,
}

impl VenvRecord {
    /// Reads the record of a venv; `None` if it is missing or cannot be read.
    pub fn read(venv: &Path) -> Option<VenvRecord> {
        let bytes = files::read_whole(&venv.join(RECORD_NAME), limits::SETUP_RECORD_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Whether a requirement was declared when the venv was set up.
    pub(crate) fn has_declared(&self, requirement: &str) -> bool {
        self.declared.contains(&*mask_url_logins(requirement))
    }

    /// Packages that were installed in the venv since the setup.
    pub fn packages_installed_since(&self, venv: &Path) -> BTreeSet<String> {
        InstalledPackages::in_venv(venv).names.difference(&self.packages).cloned().collect()
    }

    /// Writes the record into the venv, atomically.
    pub fn write(&self, venv: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        let new = venv.join(format!("{RECORD_NAME}.new"));
        files::write_new(&new, (text + "\n").as_bytes())?;
        fs::rename(new, venv.join(RECORD_NAME))
    }
}

/// The path of a skill's venv: `venv`, or else `.venv`. A dangling link counts as a
/// (broken) venv.
pub fn path_in_skill(skill: &Path) -> Option<PathBuf> {
    let places = ["venv", ".venv"].map(|name| skill.join(name));
    let mut places = places.into_iter();
    places.find(|venv| venv.symlink_metadata().is_ok())
}

/// Whether a setup of the venv has started and not finished.
pub fn is_incomplete(venv: &Path) -> bool {
    venv.join(INCOMPLETE).symlink_metadata().is_ok()
}

/// Whether a setup created the venv, and so may recreate it.
pub(crate) fn is_made_by_setup(venv: &Path) -> bool {
    VenvRecord::read(venv).is_some_and(|record| record.is_from_setup)
}

/// Whether a setup would install listed requirements that the venv lacks.
pub fn lacks_listed_requirements(skill: &Skill, venv: &Path) -> bool {
    let listed = listed_requirements(&skill.root);
    let mut lines = listed.iter().map(|row| row.requirement.as_str());
    if let Some(record) = VenvRecord::read(venv) {
        return lines.any(|line| !record.has_declared(line));
    }
    let installed = InstalledPackages::in_venv(venv).names;
    lines.any(|line| !installed.contains(&project_name(line)))
}
