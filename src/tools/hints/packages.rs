//! Missing packages, with the command that installs them.

use super::HintRequest;
use crate::skills::Skill;
use crate::skills::packages::{known_module, package_of};
use crate::skills::python::{Interpreter, setup_command};
use crate::skills::venv::lacks_listed_requirements;
use crate::text::last_line;

pub(super) fn hint(request: &HintRequest<'_>) -> Option<String> {
    let (skill, python) = (request.skill?, request.python?);
    // A module of the skill itself cannot be installed.
    let is_own = |module: &&str| {
        let name = module.split('.').next().unwrap_or(module);
        let path = skill.path.join(name);
        path.is_dir() || path.with_extension("py").is_file()
    };
    let module = missing_module(request.stderr).filter(|module| !is_own(module))?;
    Some(install_command(skill, python, module))
}

/// Returns the missing module if the last line names one.
fn missing_module(stderr: &str) -> Option<&str> {
    let line = last_line(stderr);
    // Scripts that catch the error print only its message.
    let name = line.split_once("No module named '")?.1.split('\'').next()?;
    Some(name).filter(|name| !known_module(name).is_empty())
}

/// Returns the hint with the command that installs a module. The package of a module that is not
/// well known is not guessed.
fn install_command(skill: &Skill, python: &Interpreter, module: &str) -> String {
    let place = match &python.venv {
        Some(_) => " in the skill's venv",
        None => "",
    };
    let missing = format!("`{}` is not installed{place}", known_module(module));
    let is_listed = match &python.venv {
        Some(venv) => lacks_listed_requirements(skill, venv),
        None => skill.root.file("requirements.txt").is_ok(),
    };
    let command = |packages: &[&str]| setup_command(skill, packages);
    match package_of(module) {
        Some(package) => format!("{missing}: `{}` installs it", command(&[package])),
        None if is_listed => format!(
            "{missing}: `{}` installs what the skill's requirements.txt lists",
            command(&[])
        ),
        None => format!(
            "{missing}: `{}` installs it, where PACKAGE is the package that provides it",
            command(&["PACKAGE"])
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_module_is_named_by_its_package() {
        let trace = "Traceback (most recent call last):\n  File \"x\"\nModuleNotFoundError: No module named 'PIL.Image'\n";
        assert_eq!(missing_module(trace), Some("PIL.Image"));
        assert_eq!(
            missing_module("ModuleNotFoundError: No module named 'a'\nbut it was caught\n"),
            None
        );
    }
}
