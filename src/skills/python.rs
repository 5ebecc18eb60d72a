//! Which interpreter runs a skill's scripts.
//!
//! The ladder: the skill's `venv`, then its `.venv`; a broken one is an error
//! and no reason to look further. Then `SCRIPT_PYTHON`, then `python3` from
//! the search path. None of them: an error that names the fix.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::config::{Python, Scripts, find_program};
use crate::skills::Skill;

/// What runs a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The program.
    pub program: PathBuf,
    /// The skill's own environment, if it has one.
    pub venv: Option<PathBuf>,
}

impl Interpreter {
    /// Climbs the ladder. The error tells a model, and through it the user,
    /// what to do.
    pub fn of(skill: &Skill, scripts: &Scripts) -> Result<Interpreter, String> {
        for name in ["venv", ".venv"] {
            let venv = skill.path.join(name);
            // Also a dangling link is a venv: a broken one.
            if venv.symlink_metadata().is_ok() {
                return in_venv(&skill.name, venv);
            }
        }
        if scripts.python == Python::Off {
            return Err(format!(
                "the skill `{}` has no venv, and scripts of such skills are switched off \
                 (SCRIPT_PYTHON=off): {}",
                skill.name,
                venv_command(&skill.path)
            ));
        }
        Interpreter::without_venv(scripts)
    }

    /// What runs the scripts of skills without a venv.
    pub fn without_venv(scripts: &Scripts) -> Result<Interpreter, String> {
        let program = match &scripts.python {
            Python::Off => return Err("SCRIPT_PYTHON=off switches it off".into()),
            Python::Program(program) if is_executable(program) => program.clone(),
            Python::Program(program) => {
                return Err(format!(
                    "SCRIPT_PYTHON names {}, which is no program: set it to a Python interpreter",
                    program.display()
                ));
            }
            Python::Search => {
                let path = scripts.environment.iter().find(|(name, _)| name == "PATH");
                let path = path.map(|(_, value)| value.as_os_str());
                find_program(OsStr::new("python3"), path).ok_or_else(|| {
                    "no Python was found: install python3, or set SCRIPT_PYTHON to an interpreter (is PATH set?)".to_string()
                })?
            }
        };
        Ok(Interpreter {
            program,
            venv: None,
        })
    }
}

impl Interpreter {
    /// What to do when the interpreter cannot be started: a venv's that cannot
    /// is broken.
    pub fn explain(&self, skill: &str, cause: &str) -> String {
        match &self.venv {
            Some(venv) => broken(skill, venv, cause),
            None => cause.to_string(),
        }
    }
}

fn in_venv(skill: &str, venv: PathBuf) -> Result<Interpreter, String> {
    let programs = ["bin/python", "bin/python3", "Scripts/python.exe"];
    match programs
        .iter()
        .map(|program| venv.join(program))
        .find(|program| is_executable(program))
    {
        Some(program) => Ok(Interpreter {
            program,
            venv: Some(venv),
        }),
        None => {
            let cause = format!(
                "{} is missing or cannot be run",
                venv.join(programs[0]).display()
            );
            Err(broken(skill, &venv, &cause))
        }
    }
}

fn broken(skill: &str, venv: &Path, cause: &str) -> String {
    format!(
        "the venv of the skill `{skill}` is broken: {cause}; remove {} and make it again: {}",
        venv.display(),
        venv_command(venv.parent().unwrap_or(venv)),
    )
}

/// The command that makes a skill's venv.
pub fn venv_command(skill: &Path) -> String {
    format!("python3 -m venv {}", quoted(&skill.join("venv")))
}

/// A path as a shell takes it.
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%:,".contains(c);
    if text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
