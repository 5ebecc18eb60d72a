//! Selection of the interpreter that runs a skill's scripts, their environment, and
//! queries of an interpreter.
//!
//! The order: the skill's `venv`, then its `.venv` (a broken or unfinished one is an error,
//! and the search ends), then `SCRIPT_PYTHON`, then `python3` from the search path. If there
//! is none, the error names the remedy. Whether that `python3` is a shim is found out only
//! for scripts that run (`interpreter_shim.rs`).

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{PythonChoice, ScriptSettings, find_program};
use crate::skills::Skill;
use crate::skills::sandbox_grants::GrantRequest;
use crate::skills::venv::{self, PREVIOUS_VENV, SETUP_FOLDER};
use crate::text::shell_quoted;
use crate::world::cancellation::Cancellation;
use crate::world::capture::CaptureLimits;
use crate::world::process::{self, Leftovers, ProcessJob, ProcessOutcome, Restrictions};

/// Interpreter for a skill's scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The program.
    pub program: PathBuf,
    /// The skill's venv, if it has one.
    pub venv: Option<PathBuf>,
    /// The value of `PATH` for its scripts, if not the user's.
    pub search_path: Option<OsString>,
}

impl Interpreter {
    /// Selects the interpreter for a skill's scripts. The error names the remedy, for a
    /// model and through it for the user.
    pub fn for_skill(skill: &Skill, scripts: &ScriptSettings) -> Result<Interpreter, String> {
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        let before = skill.path.join(SETUP_FOLDER).join(PREVIOUS_VENV);
        if is_there(&before) && !is_there(&skill.path.join("venv")) {
            return Err(unfinished_venv(skill));
        }
        if let Some(venv) = venv::path_in_skill(&skill.path) {
            if venv::is_incomplete(&venv) {
                return Err(unfinished_venv(skill));
            }
            return interpreter_in_venv(skill, venv);
        }
        if scripts.python == PythonChoice::Off {
            return Err(format!(
                "the skill `{}` has no venv, and scripts of skills without a venv are switched off \
                 (SCRIPT_PYTHON=off); `{}` creates one",
                skill.name,
                setup_command(&skill.address, &[])
            ));
        }
        Interpreter::without_venv(scripts)
    }

    /// Selects the interpreter for scripts of skills without a venv.
    pub fn without_venv(scripts: &ScriptSettings) -> Result<Interpreter, String> {
        let program = match &scripts.python {
            PythonChoice::Off => {
                return Err(
                    "scripts of skills without a venv are switched off (SCRIPT_PYTHON=off)".into(),
                );
            }
            PythonChoice::Program(program) if is_executable(program) => program.clone(),
            PythonChoice::Program(program) => {
                return Err(format!(
                    "SCRIPT_PYTHON names {}, which is not an executable file: set it to a Python interpreter",
                    program.display()
                ));
            }
            PythonChoice::Search => {
                let path = scripts.environment.iter().find(|(name, _)| name == "PATH");
                let path = path.map(|(_, value)| value.as_os_str());
                find_program(OsStr::new("python3"), path).ok_or_else(|| {
                    "no Python was found: install python3, or set SCRIPT_PYTHON to an interpreter (is PATH right?)".to_string()
                })?
            }
        };
        Ok(Interpreter { program, venv: None, search_path: None })
    }
}

impl Interpreter {
    /// Error message for an interpreter that cannot be started; that of a venv means that
    /// the venv is broken.
    pub fn start_error(&self, skill: &Skill, cause: &str) -> String {
        match &self.venv {
            Some(venv) if cause.contains("Permission denied") => {
                inaccessible_venv(skill, venv, &self.program)
            }
            Some(venv) => broken_venv(skill, venv, cause),
            None => cause.to_string(),
        }
    }

    /// The environment of a skill's scripts: the user's, and the variables with the paths
    /// of skill and user.
    pub fn script_environment(
        &self,
        skill: &Skill,
        scripts: &ScriptSettings,
    ) -> Vec<(OsString, OsString)> {
        let mut environment = scripts.environment.clone();
        let mut set = |name: &str, value: OsString| {
            environment.retain(|(known, _)| known != name);
            environment.push((name.into(), value));
        };
        set("SKILL_DIR", skill.path.clone().into());
        set("SKILL_NAME", skill.name.clone().into());
        set("USER_CWD", scripts.user_folder.clone().into());
        for (name, value) in [
            ("PYTHONUTF8", "1"),
            ("PYTHONIOENCODING", "utf-8"),
            ("PYTHONUNBUFFERED", "1"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ] {
            set(name, value.into());
        }
        // Without the skill's folder: entries come before the standard library, and Python
        // runs a `sitecustomize` that it finds there.
        if variable(scripts, "PYTHONPATH").is_some() {
            let own = skill.path.canonicalize().ok();
            let search = python_path(scripts).into_iter();
            let search = search.filter(|folder| own.is_none() || folder.canonicalize().ok() != own);
            let search: Vec<OsString> = search.map(OsString::from).collect();
            set("PYTHONPATH", search.join(OsStr::new(":")));
        }
        if let Some(path) = &self.search_path {
            set("PATH", path.clone());
        }
        if let Some(venv) = &self.venv {
            set("VIRTUAL_ENV", venv.clone().into());
            let programs = self.program.parent().unwrap_or(venv);
            set("PATH", search_path_with(programs, variable(scripts, "PATH")));
            environment.retain(|(name, _)| name != "PYTHONHOME");
        }
        environment
    }

    /// The sandbox for an `InterpreterQuery`, which belongs to no skill; `None` if
    /// scripts run without a sandbox. On an error (no sandbox is possible) the interpreter
    /// must not be started.
    pub fn query_restrictions(
        &self,
        scripts: &ScriptSettings,
        skills_folders: &[PathBuf],
        limit: Duration,
    ) -> Result<Option<Restrictions>, String> {
        let Some(confinement) = &scripts.sandbox else {
            return Ok(None);
        };
        let case = GrantRequest {
            folder: None,
            python: self,
            scripts,
            confinement,
            skills_folders,
            source: None,
            temporary: None,
        };
        case.restrictions(limit).map(Some)
    }

    /// The environment of an `InterpreterQuery`: it finds the installed modules that
    /// scripts find, and no module of a skill replaces one of the standard library.
    pub fn query_environment(&self, scripts: &ScriptSettings) -> Vec<(OsString, OsString)> {
        let places = ["PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE"];
        let mut environment = scripts.environment.clone();
        environment.retain(|(name, _)| {
            let is_home = self.venv.is_some() && name == "PYTHONHOME";
            let is_place = places.iter().any(|place| name == place) && !is_home;
            is_place || !name.as_encoded_bytes().starts_with(b"PYTHON")
        });
        environment.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        environment
    }
}

/// The value of a variable in the environment of all scripts.
pub(crate) fn variable<'s>(scripts: &'s ScriptSettings, name: &str) -> Option<&'s OsStr> {
    let mut environment = scripts.environment.iter();
    let (_, value) = environment.find(|(known, _)| known == name)?;
    Some(value)
}

/// The folders of the user's `PYTHONPATH`, resolved in the user's folder: Python would
/// resolve empty and relative ones in the folder that the script starts in, the skill's.
pub(crate) fn python_path(scripts: &ScriptSettings) -> Vec<PathBuf> {
    let search = variable(scripts, "PYTHONPATH").unwrap_or_default();
    let entries = search.as_bytes().split(|byte| *byte == b':');
    let entries = entries.map(|entry| match entry {
        b"" => scripts.user_folder.clone(),
        entry => scripts.user_folder.join(OsStr::from_bytes(entry)),
    });
    entries.take_while(|_| !search.is_empty()).collect()
}

fn search_path_with(first: &Path, rest: Option<&OsStr>) -> OsString {
    let mut list = first.as_os_str().to_owned();
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        list.push(":");
        list.push(rest);
    }
    list
}

/// A program of skills-runner, to be run by an interpreter.
pub(crate) struct InterpreterQuery<'a> {
    /// The program's text.
    pub source: &'a str,
    /// Its standard input.
    pub stdin: &'a [u8],
    /// Its whole environment.
    pub environment: &'a [(OsString, OsString)],
    /// Its time limit.
    pub limit: Duration,
    /// How much of its output is kept.
    pub output_limits: CaptureLimits,
    /// The sandbox that it runs in, if any.
    pub restrictions: Option<Restrictions>,
}

impl InterpreterQuery<'_> {
    /// Runs it with an interpreter, in the root folder.
    pub(crate) fn run(
        &self,
        program: &Path,
        cancellation: &Cancellation,
    ) -> Result<ProcessOutcome, String> {
        let args = [OsString::from("-c"), OsString::from(self.source)];
        let job = ProcessJob {
            program,
            args: &args,
            // The user's folder may be inaccessible, and scripts do not start there.
            folder: Path::new("/"),
            environment: self.environment,
            stdin: self.stdin,
            limit: cancellation.capped_by_deadline(self.limit),
            leftovers: Leftovers::Kill,
            output_limits: self.output_limits,
            interrupt: &cancellation.interrupt,
            scratch: None,
            restrictions: self.restrictions.clone(),
            event_source: None,
        };
        process::run(&job).map_err(|error| format!("cannot be started: {error}"))
    }
}

fn interpreter_in_venv(skill: &Skill, venv: PathBuf) -> Result<Interpreter, String> {
    let programs = ["bin/python", "bin/python3", "Scripts/python.exe"];
    let programs = programs.map(|program| venv.join(program));
    if let Some(program) = programs.iter().find(|program| is_executable(program)) {
        return Ok(Interpreter { program: program.clone(), venv: Some(venv), search_path: None });
    }
    if let Some(program) = programs.iter().find(|program| is_inaccessible(program)) {
        return Err(inaccessible_venv(skill, &venv, program));
    }
    let cause = format!("{} is missing or cannot be run", programs[0].display());
    Err(broken_venv(skill, &venv, &cause))
}

fn unfinished_venv(skill: &Skill) -> String {
    format!(
        "the venv of the skill `{}` is not finished, a setup of it is under way or was \
         interrupted: `{}` waits for that one and finishes it",
        skill.name,
        setup_command(&skill.address, &[])
    )
}

/// Error for a venv with an interpreter that only other users may run.
fn inaccessible_venv(skill: &Skill, venv: &Path, program: &Path) -> String {
    let remedy = match venv_remedy(skill, venv) {
        Some(command) => format!("{command} creates one for this user"),
        None => "its owner has to make it executable for this user".into(),
    };
    format!(
        "the venv of the skill `{}` cannot be used: {} is not executable for this user; {remedy}",
        skill.name,
        program.display()
    )
}

/// Whether this user has no permission to access the program.
fn is_inaccessible(program: &Path) -> bool {
    let denied = |error: &io::Error| error.kind() == ErrorKind::PermissionDenied;
    program.metadata().as_ref().err().is_some_and(denied)
}

/// The commands that repair a venv without a working interpreter: a setup does not change
/// a venv that the user created. `None`: only the owner of the venv can repair it.
pub(crate) fn venv_remedy(skill: &Skill, venv: &Path) -> Option<String> {
    let command = format!("`{}`", setup_command(&skill.address, &[]));
    // A `.venv` is ignored once a setup has created `venv`.
    let is_replaced = !venv.ends_with("venv") || venv::is_made_by_setup(venv);
    if is_replaced || venv::is_incomplete(venv) {
        return Some(command);
    }
    if is_inaccessible(&venv.join("bin/python")) {
        return None;
    }
    let venv = shell_quoted(venv);
    Some(format!("`rm -r {venv}` (no setup created it) and then {command}"))
}

fn broken_venv(skill: &Skill, venv: &Path, cause: &str) -> String {
    let name = &skill.name;
    match venv_remedy(skill, venv) {
        Some(command) if venv.ends_with("venv") => {
            format!("the venv of the skill `{name}` is broken: {cause}; {command} creates it again")
        }
        Some(command) => format!(
            "the venv of the skill `{name}` is broken: {cause}; {command} creates a `venv`, \
             which is used instead"
        ),
        None => format!("the venv of the skill `{name}` cannot be used: {cause}"),
    }
}

/// The command that creates a skill's venv, with the packages that the skill declares and
/// these.
pub(crate) fn setup_command(address: &str, packages: &[&str]) -> String {
    let mut command = "skills-runner skills setup".to_string();
    for word in [address].iter().chain(packages) {
        command.push(' ');
        command.push_str(&shell_quoted(Path::new(word)));
    }
    command
}

/// Whether the path is an executable file.
pub(crate) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
