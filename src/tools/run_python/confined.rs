//! A script's sandbox, as far as it is a script of a skill: its grants, what its
//! environment says of them, and what to tell one that ran into a wall.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::Scripts;
use crate::skills::grants::Case;
use crate::skills::python::Interpreter;
use crate::skills::{Skill, Skills};
use crate::world::process::Confine;
use crate::world::scratch::Scratch;

/// The sandbox of one run; without one, nothing.
#[derive(Default)]
pub struct Confined {
    /// What the script's process does before it starts.
    pub confine: Option<Confine>,
    /// What a script that was refused something should know.
    pub advice: Option<String>,
    temporary: Option<PathBuf>,
}

/// Variables that name the folder for temporary files, and those in which programs
/// keep things in a home: they take a folder that they may not enter for broken.
const TEMPORARY: [&str; 7] = [
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// The same for git's settings, which may hold passwords besides.
const GIT_SETTINGS: (&str, &str) = ("GIT_CONFIG_GLOBAL", "/dev/null");

/// How a refusal shows in a traceback, or in what a program says.
const REFUSALS: [&str; 3] = [
    "PermissionError",
    "Permission denied",
    "Operation not permitted",
];

impl Confined {
    /// Prepares it for a script that has `limit`, or tells why there can be none.
    pub fn of(
        skill: &Skill,
        python: &Interpreter,
        scripts: &Scripts,
        skills: &Skills,
        scratch: &Scratch,
        limit: Duration,
    ) -> Result<Confined, String> {
        let Some(confinement) = &scripts.sandbox else {
            return Ok(Confined::default());
        };
        let temporary = scratch
            .folder("tmp")
            .map_err(|error| format!("its temporary folder cannot be made: {error}"))?;
        let case = Case {
            folder: Some(&skill.path),
            python,
            scripts,
            confinement,
            skills_folders: skills.folders(),
            source: Some(scratch.path()),
            temporary: Some(&temporary),
        };
        Ok(Confined {
            confine: Some(case.confine(limit)?),
            advice: Some(case.explain()),
            temporary: Some(temporary),
        })
    }

    /// Tells the script where it may put things.
    pub fn add_to(&self, environment: &mut Vec<(OsString, OsString)>) {
        let Some(folder) = &self.temporary else {
            return;
        };
        let (git, none) = GIT_SETTINGS;
        let is_own = |name: &OsString| name == git || TEMPORARY.iter().any(|own| name == own);
        environment.retain(|(name, _)| !is_own(name));
        environment.extend(TEMPORARY.map(|name| (name.into(), folder.clone().into())));
        environment.push((git.into(), none.into()));
    }

    /// The advice for a script that failed, if its last words tell of a refusal.
    pub fn advice_for(&self, stderr: &str) -> Option<&str> {
        let is_refused = REFUSALS.iter().any(|words| stderr.contains(words));
        self.advice.as_deref().filter(|_| is_refused)
    }
}
