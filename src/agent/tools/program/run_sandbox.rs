//! The sandbox of a script or a command: its grants, the environment variables for them, and the
//! advice after a refused access.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::tools::program::{ProgramRun, StartFolder, for_model};
use host::confined::identity;
use host::files::find_program;
use host::process::Restrictions;
use skills::ScriptSettings;
use skills::Skill;
use skills::python::Interpreter;
use skills::sandbox_grants::GrantRequest;

/// The sandbox of one run; empty if the sandbox is off.
#[derive(Default)]
pub(super) struct RunSandbox {
    /// Restrictions that the script's process applies before it starts.
    pub restrictions: Option<Restrictions>,
    /// Advice for the model after a refused access.
    pub advice: Option<String>,
    temporary: Option<PathBuf>,
    /// Paths that the user granted.
    granted: Vec<PathBuf>,
}

/// Variables that name the folder for temporary files.
const TEMPORARY: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// Variables that name folders in the home, and their defaults. Without these variables programs
/// fail at folders that they must not open.
const OF_HOME: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// The same for git's settings, which may contain passwords.
const GIT_SETTINGS: (&str, &str) = ("GIT_CONFIG_GLOBAL", ".gitconfig");

/// Texts of a refused access in tracebacks and messages.
const REFUSALS: [&str; 7] = [
    "PermissionError",
    "Permission denied",
    "Operation not permitted",
    "not a git repository",
    "name resolution",
    "resolve host",
    "Network is unreachable",
];

/// Functions of Python that report no refusal: they find nothing in a folder that cannot be listed.
const SILENT: [&str; 2] = ["glob(", "walk("];

impl RunSandbox {
    /// Prepares the sandbox for a program with the time limit `limit`; the error says why it cannot
    /// be created.
    pub(super) fn prepare(run: &ProgramRun<'_>, limit: Duration) -> Result<RunSandbox, String> {
        let Some(confinement) = &run.scripts.sandbox else {
            return Ok(RunSandbox::default());
        };
        // Grants use paths, which must lead to the folder that was opened.
        let is_replaced = |skill: &Skill| identity(&skill.path) != skill.root.identity().ok();
        if run.skill.is_some_and(is_replaced) {
            return Err("the skill's folder was replaced by another one; try again".into());
        }
        let temporary = (run.scratch.create_folder("tmp"))
            .map_err(|error| format!("its temporary folder cannot be created: {error}"))?;
        // A command may start Python, too.
        let usual = find_program("python3".as_ref(), run.scripts.variable("PATH"));
        let usual = usual.map(|program| Interpreter { program, venv: None });
        let case = GrantRequest {
            folder: run.skill.map(|skill| skill.path.as_path()),
            python: run.python.or(usual.as_ref()),
            reads_user_folder: run.start == StartFolder::User,
            scripts: run.scripts,
            confinement,
            skills_folders: run.context.skills.folders(),
            source: Some(run.scratch.path()),
            temporary: Some(&temporary),
        };
        Ok(RunSandbox {
            restrictions: Some(case.restrictions(limit).map_err(|fault| for_model(&fault))?),
            advice: Some(case.denial_hint()),
            temporary: Some(temporary),
            granted: [&confinement.read[..], &confinement.write].concat(),
        })
    }

    /// Sets the variables of temporary folders, and of folders in the home that are not granted.
    pub(super) fn set_variables(
        &self,
        environment: &mut Vec<(OsString, OsString)>,
        scripts: &ScriptSettings,
    ) {
        let Some(folder) = &self.temporary else {
            return;
        };
        let home = scripts.variable("HOME").map(PathBuf::from);
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
            let place = scripts.variable(name).map(PathBuf::from);
            let place = place.unwrap_or_else(|| home.join(usual));
            let is_granted = |path: &PathBuf| path.starts_with(&place) || place.starts_with(path);
            if !self.granted.iter().any(is_granted) {
                set(name, instead);
            }
        }
    }

    /// Returns the advice for a run if its output shows a refused access, or may hide one.
    pub(super) fn advice_on_refusal(&self, run: &ProgramRun<'_>, stderr: &str) -> Option<&str> {
        let lists =
            run.start == StartFolder::User && SILENT.iter().any(|it| run.source.contains(it));
        let is_refused = lists || REFUSALS.iter().any(|words| stderr.contains(words));
        self.advice.as_deref().filter(|_| is_refused)
    }
}
