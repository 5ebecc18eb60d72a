//! Selection of the interpreter that runs a skill's scripts, their environment, and
//! queries of an interpreter.
//!
//! The order: the skill's `venv`, then its `.venv` (a broken or unfinished one is an error,
//! and the search ends), then `SCRIPT_PYTHON`, then `python3` from the search path. If there
//! is none, the error has the remedy.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ScriptSettings;
use crate::Skill;
use crate::venv::{self, PREVIOUS_VENV, SETUP_FOLDER};
use base::error::Fault;
use base::text::shell_quoted;
use host::cancellation::Cancellation;
use host::capture::CaptureLimits;
use host::files::find_program;
use host::process::{self, Leftovers, ProcessJob, ProcessOutcome, Restrictions};

/// The interpreter for scripts of a skill without a venv.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PythonChoice {
    /// `python3` from `PATH`.
    Search,
    /// The program at this path.
    Program(PathBuf),
    /// No interpreter: skills without a venv cannot run scripts.
    Off,
}

/// Interpreter for a skill's scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The program.
    pub program: PathBuf,
    /// The skill's venv, if it has one.
    pub venv: Option<PathBuf>,
}

/// The remedy for an interpreter that does not work.
pub const PYTHON_FIX: &str = "set SCRIPT_PYTHON to a Python 3 interpreter";

/// Why no interpreter can run a skill's scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterpreterError {
    /// The defect of the skill's venv; `None`: it has no venv.
    pub defect: Option<VenvDefect>,
    /// The problem and its remedy.
    pub fault: Fault,
}

/// Defect of a venv.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VenvDefect {
    /// A setup of it is under way, or was interrupted.
    Unfinished,
    /// Only other users may run this interpreter.
    Inaccessible(PathBuf),
    /// Its interpreter does not work, for this reason.
    Broken(String),
}

impl InterpreterError {
    /// A setup repairs a venv that a setup created; it does not change one of the user.
    fn of_venv(skill: &Skill, venv: &Path, defect: VenvDefect) -> InterpreterError {
        let name = &skill.name;
        let message = match &defect {
            VenvDefect::Unfinished => format!(
                "the venv of the skill `{name}` is not finished, a setup of it is under way or was \
                 interrupted"
            ),
            VenvDefect::Inaccessible(program) => format!(
                "the venv of the skill `{name}` cannot be used: {} is not executable for this user",
                program.display()
            ),
            VenvDefect::Broken(cause) => {
                format!("the venv of the skill `{name}` is broken: {cause}")
            }
        };
        let command = setup_command(skill, &[]);
        // A `.venv` is ignored once a setup has created `venv`.
        let is_hidden = !venv.ends_with("venv");
        let is_replaced = is_hidden || venv::is_made_by_setup(venv) || venv::is_incomplete(venv);
        let fix = match &defect {
            VenvDefect::Unfinished => format!("`{command}` waits for that one and finishes it"),
            VenvDefect::Inaccessible(_) if !is_replaced => {
                "its owner has to make it executable for this user".to_string()
            }
            VenvDefect::Broken(_) if !is_replaced => {
                let venv = shell_quoted(venv);
                format!(
                    "`rm -r {venv}` (no setup created it) and then `{command}` creates it again"
                )
            }
            _ if is_hidden => format!("`{command}` creates a `venv`, which is used instead"),
            _ => format!("`{command}` creates it again"),
        };
        InterpreterError { defect: Some(defect), fault: Fault::new(message, fix) }
    }
}

/// The fault if a program was not started because its guardian could not be.
pub fn guardian_fault(error: &io::Error) -> Option<Fault> {
    let fix = match error.kind() {
        ErrorKind::InvalidInput => "scripts need Linux itself, not an emulator of its system calls",
        _ => "check the limits of processes and memory (`ulimit -a`)",
    };
    process::is_guardian_error(error).then(|| Fault::new(error.to_string(), fix))
}

impl From<Fault> for InterpreterError {
    fn from(fault: Fault) -> InterpreterError {
        InterpreterError { defect: None, fault }
    }
}

impl Interpreter {
    /// Selects the interpreter for a skill's scripts.
    pub fn for_skill(
        skill: &Skill,
        scripts: &ScriptSettings,
    ) -> Result<Interpreter, InterpreterError> {
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        let (venv, before) =
            (skill.path.join("venv"), skill.path.join(SETUP_FOLDER).join(PREVIOUS_VENV));
        if is_there(&before) && !is_there(&venv) {
            return Err(InterpreterError::of_venv(skill, &venv, VenvDefect::Unfinished));
        }
        if let Some(venv) = venv::path_in_skill(&skill.path) {
            return interpreter_in_venv(&venv)
                .map_err(|defect| InterpreterError::of_venv(skill, &venv, defect));
        }
        if scripts.python == PythonChoice::Off {
            let command = setup_command(skill, &[]);
            let message = format!("the skill `{}` has no venv, and {SWITCHED_OFF}", skill.name);
            return Err(Fault::new(message, format!("`{command}` creates one")).into());
        }
        Ok(Interpreter::without_venv(scripts)?)
    }

    /// Selects the interpreter for scripts of skills without a venv.
    pub fn without_venv(scripts: &ScriptSettings) -> Result<Interpreter, Fault> {
        let program = match &scripts.python {
            PythonChoice::Off => return Err(Fault::without_fix(SWITCHED_OFF)),
            PythonChoice::Program(program) if is_executable(program) => program.clone(),
            PythonChoice::Program(program) => {
                let program = program.display();
                let message =
                    format!("SCRIPT_PYTHON names {program}, which is not an executable file");
                return Err(Fault::new(message, PYTHON_FIX));
            }
            PythonChoice::Search => find_program(OsStr::new("python3"), scripts.variable("PATH"))
                .ok_or_else(|| {
                Fault::new(
                    "no Python was found",
                    "install python3, or set SCRIPT_PYTHON to an interpreter (is PATH right?)",
                )
            })?,
        };
        Ok(Interpreter { program, venv: None })
    }

    /// The error for an interpreter that does not start; that of a venv means that the venv is
    /// broken.
    pub fn start_error(&self, skill: Option<&Skill>, error: &io::Error) -> InterpreterError {
        if let Some(fault) = guardian_fault(error) {
            return fault.into();
        }
        let (Some(venv), Some(skill)) = (&self.venv, skill) else {
            return Fault::new(error.to_string(), PYTHON_FIX).into();
        };
        let defect = match error.kind() {
            ErrorKind::PermissionDenied => VenvDefect::Inaccessible(self.program.clone()),
            _ => VenvDefect::Broken(error.to_string()),
        };
        InterpreterError::of_venv(skill, venv, defect)
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

/// The environment of a script or a command: the user's, and the variables with the paths of
/// skill and user. `python`: the interpreter, whose venv is used.
pub fn script_environment(
    skill: Option<&Skill>,
    python: Option<&Interpreter>,
    scripts: &ScriptSettings,
) -> Vec<(OsString, OsString)> {
    let mut environment = scripts.environment.clone();
    let mut set = |name: &str, value: OsString| {
        environment.retain(|(known, _)| known != name);
        environment.push((name.into(), value));
    };
    if let Some(skill) = skill {
        set("SKILL_DIR", skill.path.clone().into());
        set("SKILL_NAME", skill.name.clone().into());
    }
    set("USER_CWD", scripts.user_folder.clone().into());
    for (name, value) in [
        ("PYTHONUTF8", "1"),
        ("PYTHONIOENCODING", "utf-8"),
        ("PYTHONUNBUFFERED", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ] {
        set(name, value.into());
    }
    // pip installs only into venvs: what a skill needs is installed by its user.
    if scripts.variable("PIP_REQUIRE_VIRTUALENV").is_none() {
        set("PIP_REQUIRE_VIRTUALENV", "1".into());
    }
    if scripts.skills_locked {
        // Compiled files, which no lock file lists, are neither read nor written: no path is below
        // a file.
        set("PYTHONPYCACHEPREFIX", "/dev/null".into());
    }
    // Without the skill's folder: entries come before the standard library, and Python
    // runs a `sitecustomize` that it finds there.
    if scripts.variable("PYTHONPATH").is_some() {
        let own = skill.and_then(|skill| skill.path.canonicalize().ok());
        let search = python_path(scripts).into_iter();
        let search = search.filter(|folder| own.is_none() || folder.canonicalize().ok() != own);
        let search: Vec<OsString> = search.map(OsString::from).collect();
        set("PYTHONPATH", search.join(OsStr::new(":")));
    }
    if let Some((python, venv)) = python.and_then(|python| Some((python, python.venv.as_ref()?))) {
        set("VIRTUAL_ENV", venv.clone().into());
        let programs = python.program.parent().unwrap_or(venv);
        set("PATH", search_path_with(programs, scripts.variable("PATH")));
        environment.retain(|(name, _)| name != "PYTHONHOME");
    }
    environment
}

/// The folders of the user's `PYTHONPATH`, resolved in the user's folder: Python would
/// resolve empty and relative ones in the folder that the script starts in, the skill's.
pub(crate) fn python_path(scripts: &ScriptSettings) -> Vec<PathBuf> {
    let search = scripts.variable("PYTHONPATH").unwrap_or_default();
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
pub struct InterpreterQuery<'a> {
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
    pub fn run(&self, program: &Path, cancellation: &Cancellation) -> io::Result<ProcessOutcome> {
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
        process::run(&job)
    }
}

const SWITCHED_OFF: &str = "scripts of skills without a venv are switched off (SCRIPT_PYTHON=off)";

fn interpreter_in_venv(venv: &Path) -> Result<Interpreter, VenvDefect> {
    if venv::is_incomplete(venv) {
        return Err(VenvDefect::Unfinished);
    }
    let programs = ["bin/python", "bin/python3", "Scripts/python.exe"];
    let programs = programs.map(|program| venv.join(program));
    if let Some(program) = programs.iter().find(|program| is_executable(program)) {
        return Ok(Interpreter { program: program.clone(), venv: Some(venv.to_path_buf()) });
    }
    let is_inaccessible = |program: &&PathBuf| {
        let error = program.metadata().err();
        error.is_some_and(|error| error.kind() == ErrorKind::PermissionDenied)
    };
    Err(match programs.iter().find(is_inaccessible) {
        Some(program) => VenvDefect::Inaccessible(program.clone()),
        None => {
            let program = programs[0].display();
            VenvDefect::Broken(format!("{program} is missing or cannot be run"))
        }
    })
}

/// The command that creates a skill's venv, with the packages that the skill declares and
/// these.
pub fn setup_command(skill: &Skill, packages: &[&str]) -> String {
    let mut command = format!("{} skills setup", skill.program);
    for word in [skill.address.as_str()].iter().chain(packages) {
        command.push(' ');
        command.push_str(&shell_quoted(Path::new(word)));
    }
    command
}

/// Whether the path is an executable file.
pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
