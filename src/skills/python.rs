//! Which interpreter runs a skill's scripts, in which environment, and how an
//! interpreter is asked something.
//!
//! The ladder: the skill's `venv`, then its `.venv`; a broken one, or one that
//! is not finished, is an error and no reason to look further. Then
//! `SCRIPT_PYTHON`, then `python3` from the search path. None of them: an error
//! that names the fix. Whether that `python3` is a detour to another is asked only
//! for scripts that run (`shim.rs`).

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{PythonChoice, ScriptSettings, find_program};
use crate::skills::Skill;
use crate::skills::sandbox_grants::GrantRequest;
use crate::skills::venv::{self, BEFORE, SETUP_FOLDER};
use crate::text::quoted;
use crate::world::cancellation::Cancellation;
use crate::world::capture::CaptureLimits;
use crate::world::process::{self, Leftovers, ProcessJob, ProcessOutcome, Restrictions};

/// What runs a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The program.
    pub program: PathBuf,
    /// The skill's own environment, if it has one.
    pub venv: Option<PathBuf>,
    /// The search path of its scripts, where it is not the user's.
    pub search_path: Option<OsString>,
}

impl Interpreter {
    /// Climbs the ladder. The error tells a model, and through it the user,
    /// what to do.
    pub fn of(skill: &Skill, scripts: &ScriptSettings) -> Result<Interpreter, String> {
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        let before = skill.path.join(SETUP_FOLDER).join(BEFORE);
        if is_there(&before) && !is_there(&skill.path.join("venv")) {
            return Err(unfinished(skill));
        }
        if let Some(venv) = venv::of_skill(&skill.path) {
            if venv::is_begun(&venv) {
                return Err(unfinished(skill));
            }
            return in_venv(skill, venv);
        }
        if scripts.python == PythonChoice::Off {
            return Err(format!(
                "the skill `{}` has no venv, and scripts of such skills are switched off \
                 (SCRIPT_PYTHON=off); `{}` makes one",
                skill.name,
                setup_command(&skill.address, &[])
            ));
        }
        Interpreter::without_venv(scripts)
    }

    /// What runs the scripts of skills without a venv.
    pub fn without_venv(scripts: &ScriptSettings) -> Result<Interpreter, String> {
        let program = match &scripts.python {
            PythonChoice::Off => return Err("SCRIPT_PYTHON=off switches it off".into()),
            PythonChoice::Program(program) if is_executable(program) => program.clone(),
            PythonChoice::Program(program) => {
                return Err(format!(
                    "SCRIPT_PYTHON names {}, which is no program: set it to a Python interpreter",
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
    /// What to do when the interpreter cannot be started: a venv's that cannot
    /// is broken.
    pub fn explain(&self, skill: &Skill, cause: &str) -> String {
        match &self.venv {
            Some(venv) if cause.contains("Permission denied") => closed(skill, venv, &self.program),
            Some(venv) => broken(skill, venv, cause),
            None => cause.to_string(),
        }
    }

    /// The environment of a skill's scripts: the user's, and what tells them
    /// where they are.
    pub fn environment(
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
        // No folder of a skill stands in it: it goes before the standard library, and
        // Python runs a `sitecustomize` that it finds there.
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
            set("PATH", joined(programs, variable(scripts, "PATH")));
            environment.retain(|(name, _)| name != "PYTHONHOME");
        }
        environment
    }

    /// The sandbox for a program of our own in this interpreter, which belongs to no
    /// skill; `None` where scripts run without one. The error says why there can be
    /// none, and then the interpreter must not be started.
    pub fn confine(
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
        case.confine(limit).map(Some)
    }

    /// The environment of a program of our own in this interpreter: it finds
    /// the installed modules that scripts find, and no module of a skill takes
    /// the place of one of the standard library.
    pub fn own_environment(&self, scripts: &ScriptSettings) -> Vec<(OsString, OsString)> {
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

/// The folders of the user's `PYTHONPATH` as the user's folder understands them: Python
/// takes an empty or relative one for one in the folder that the script starts in, which
/// is the skill's.
pub(crate) fn python_path(scripts: &ScriptSettings) -> Vec<PathBuf> {
    let search = variable(scripts, "PYTHONPATH").unwrap_or_default();
    let entries = search.as_bytes().split(|byte| *byte == b':');
    let entries = entries.map(|entry| match entry {
        b"" => scripts.user_folder.clone(),
        entry => scripts.user_folder.join(OsStr::from_bytes(entry)),
    });
    entries.take_while(|_| !search.is_empty()).collect()
}

fn joined(first: &Path, rest: Option<&OsStr>) -> OsString {
    let mut list = first.as_os_str().to_owned();
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        list.push(":");
        list.push(rest);
    }
    list
}

/// A program of our own for an interpreter.
pub(crate) struct InterpreterQuery<'a> {
    /// The program's text.
    pub source: &'a str,
    /// What it reads.
    pub stdin: &'a [u8],
    /// Its whole environment.
    pub environment: &'a [(OsString, OsString)],
    /// How long it may take.
    pub limit: Duration,
    /// How much is kept of what it says.
    pub caps: CaptureLimits,
    /// The sandbox that it runs in, if in one.
    pub confine: Option<Restrictions>,
}

impl InterpreterQuery<'_> {
    /// Lets an interpreter run it, in a folder that is nobody's.
    pub(crate) fn run(
        &self,
        program: &Path,
        cancellation: &Cancellation,
    ) -> Result<ProcessOutcome, String> {
        let args = [OsString::from("-c"), OsString::from(self.source)];
        let job = ProcessJob {
            program,
            args: &args,
            // The user's may be closed to its user, and scripts do not start there.
            folder: Path::new("/"),
            environment: self.environment,
            stdin: self.stdin,
            limit: cancellation.limited_to(self.limit),
            leftovers: Leftovers::Kill,
            caps: self.caps,
            interrupt: &cancellation.interrupt,
            scratch: None,
            confine: self.confine.clone(),
            event_source: None,
        };
        process::run(&job).map_err(|error| format!("cannot be started: {error}"))
    }
}

fn in_venv(skill: &Skill, venv: PathBuf) -> Result<Interpreter, String> {
    let programs = ["bin/python", "bin/python3", "Scripts/python.exe"];
    let programs = programs.map(|program| venv.join(program));
    if let Some(program) = programs.iter().find(|program| is_executable(program)) {
        return Ok(Interpreter { program: program.clone(), venv: Some(venv), search_path: None });
    }
    if let Some(program) = programs.iter().find(|program| is_closed(program)) {
        return Err(closed(skill, &venv, program));
    }
    let cause = format!("{} is missing or cannot be run", programs[0].display());
    Err(broken(skill, &venv, &cause))
}

fn unfinished(skill: &Skill) -> String {
    format!(
        "the venv of the skill `{}` is not finished, a setup of it is under way or was \
         interrupted: `{}` waits for that one and finishes it",
        skill.name,
        setup_command(&skill.address, &[])
    )
}

/// The venv may be whole: others run it.
fn closed(skill: &Skill, venv: &Path, program: &Path) -> String {
    let remedy = match remedy(skill, venv) {
        Some(command) => format!("{command} makes one of this user's own"),
        None => "whoever made it has to open its Python to this user".into(),
    };
    format!(
        "the venv of the skill `{}` cannot be used: {} is not executable for this user; {remedy}",
        skill.name,
        program.display()
    )
}

/// Whether something is there that this user is kept from.
fn is_closed(program: &Path) -> bool {
    let denied = |error: &io::Error| error.kind() == ErrorKind::PermissionDenied;
    program.metadata().as_ref().err().is_some_and(denied)
}

/// The commands that put a venv without a working interpreter right: a setup
/// leaves alone what people made. `None`: only who made it can.
pub(crate) fn remedy(skill: &Skill, venv: &Path) -> Option<String> {
    let command = format!("`{}`", setup_command(&skill.address, &[]));
    // Of another name, it is passed over for the one that a setup makes.
    let is_replaced = !venv.ends_with("venv") || venv::is_made(venv);
    if is_replaced || venv::is_begun(venv) {
        return Some(command);
    }
    if is_closed(&venv.join("bin/python")) {
        return None;
    }
    let venv = quoted(venv);
    Some(format!("`rm -r {venv}`, as no setup made it, and then {command}"))
}

fn broken(skill: &Skill, venv: &Path, cause: &str) -> String {
    let name = &skill.name;
    match remedy(skill, venv) {
        Some(command) if venv.ends_with("venv") => {
            format!("the venv of the skill `{name}` is broken: {cause}; {command} makes it again")
        }
        Some(command) => format!(
            "the venv of the skill `{name}` is broken: {cause}; {command} makes a `venv`, which \
             is used in its place"
        ),
        None => format!("the venv of the skill `{name}` cannot be used: {cause}"),
    }
}

/// The command that gives the skill with this address its venv, with what it
/// declares and these packages in it.
pub(crate) fn setup_command(address: &str, packages: &[&str]) -> String {
    let mut command = "skills-runner skills setup".to_string();
    for word in [address].iter().chain(packages) {
        command.push(' ');
        command.push_str(&quoted(Path::new(word)));
    }
    command
}

/// Whether it is a file that somebody may run.
pub(crate) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
