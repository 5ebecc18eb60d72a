//! A script's sandbox, as far as it is a script of a skill: its grants, what its
//! environment says of them, and what to tell one that ran into a wall.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::ScriptSettings;
use crate::skills::python::{Interpreter, variable};
use crate::skills::sandbox_grants::GrantRequest;
use crate::skills::{Skill, Skills};
use crate::world::confined::identity;
use crate::world::process::Restrictions;
use crate::world::scratch::Scratch;

/// The sandbox of one run; without one, nothing.
#[derive(Default)]
pub(super) struct RunSandbox {
    /// What the script's process does before it starts.
    pub confine: Option<Restrictions>,
    /// What a script that was refused something should know.
    pub advice: Option<String>,
    temporary: Option<PathBuf>,
    /// What the user grants.
    granted: Vec<PathBuf>,
}

/// Variables that name the folder for temporary files.
const TEMPORARY: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// Variables that name folders in a home, and which: programs take one that they may
/// not enter for broken.
const OF_HOME: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// The same for git's settings, which may hold passwords besides.
const GIT_SETTINGS: (&str, &str) = ("GIT_CONFIG_GLOBAL", ".gitconfig");

/// How a refusal shows in a traceback, or in what a program says.
const REFUSALS: [&str; 3] = ["PermissionError", "Permission denied", "Operation not permitted"];

impl RunSandbox {
    /// Prepares it for a script that has `limit`, or tells why there can be none.
    pub(super) fn of(
        skill: &Skill,
        python: &Interpreter,
        scripts: &ScriptSettings,
        skills: &Skills,
        scratch: &Scratch,
        limit: Duration,
    ) -> Result<RunSandbox, String> {
        let Some(confinement) = &scripts.sandbox else {
            return Ok(RunSandbox::default());
        };
        // What is granted goes by paths: they must lead to what was opened.
        if identity(&skill.path) != skill.root.identity().ok() {
            return Err("another folder has taken the place of the skill's; try again".into());
        }
        let temporary = scratch
            .folder("tmp")
            .map_err(|error| format!("its temporary folder cannot be made: {error}"))?;
        let case = GrantRequest {
            folder: Some(&skill.path),
            python,
            scripts,
            confinement,
            skills_folders: skills.folders(),
            source: Some(scratch.path()),
            temporary: Some(&temporary),
        };
        Ok(RunSandbox {
            confine: Some(case.confine(limit)?),
            advice: Some(case.explain()),
            temporary: Some(temporary),
            granted: [&confinement.read[..], &confinement.write].concat(),
        })
    }

    /// Tells the script where it may put things, and where it finds what else it would
    /// look for in a home, unless that is granted.
    pub(super) fn add_to(
        &self,
        environment: &mut Vec<(OsString, OsString)>,
        scripts: &ScriptSettings,
    ) {
        let Some(folder) = &self.temporary else {
            return;
        };
        let home = variable(scripts, "HOME").map(PathBuf::from);
        let home = home.unwrap_or_default();
        let mut set = |name: &str, value: PathBuf| {
            environment.retain(|(known, _)| known != name);
            environment.push((name.into(), value.into()));
        };
        for name in TEMPORARY {
            set(name, folder.clone());
        }
        let git = (GIT_SETTINGS, folder.join("gitconfig"));
        let of_home = OF_HOME.map(|names| (names, folder.clone()));
        for ((name, usual), instead) in of_home.into_iter().chain([git]) {
            let place = variable(scripts, name).map(PathBuf::from);
            let place = place.unwrap_or_else(|| home.join(usual));
            let is_granted = |path: &PathBuf| path.starts_with(&place) || place.starts_with(path);
            if !self.granted.iter().any(is_granted) {
                set(name, instead);
            }
        }
    }

    /// The advice for a script that failed, if its last words tell of a refusal.
    pub(super) fn advice_for(&self, stderr: &str) -> Option<&str> {
        let is_refused = REFUSALS.iter().any(|words| stderr.contains(words));
        self.advice.as_deref().filter(|_| is_refused)
    }
}
