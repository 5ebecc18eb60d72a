//! Imports and declared packages of skill scripts, as reported by the machine's real Python.

mod declarations;
mod interpreters;

use crate::harness::{Test, interpreter, seconds};
use skills::ScriptSettings;
use skills::probe::{ProbeResult, probe};
use skills::python::Interpreter;
use skills::python::PythonChoice;
use skills::requirements::DeclaredPackage;
use skills_runner::Cancellation;
use skills_runner::{Problem, Skill, Skills};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn scripts(test: &Test) -> ScriptSettings {
    ScriptSettings {
        limit: seconds(30.0),
        python: PythonChoice::Program(interpreter().to_path_buf()),
        keep_leftovers: false,
        sandbox: None,
        shell: None,
        private_files: Vec::new(),
        writable_folders: Vec::new(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        installer_environment: Vec::new(),
        user_folder: test.path(""),
        user_folder_identity: None,
        default_skills_folders: Vec::new(),
        temporary_folder: PathBuf::from("/tmp"),
        skills_locked: false,
    }
}

fn open(test: &Test, names: &[&str]) -> Vec<Skill> {
    // A folder without a document is not a skill.
    for name in names {
        let document = test.path(format!("skills/{name}/SKILL.md"));
        if !document.exists() {
            fs::write(document, "No Python in here.\n").expect("the folder exists");
        }
    }
    let skills = Skills::new(vec![test.path("skills")]);
    let opened = names.iter().map(|name| skills.open(name));
    opened.map(|skill| skill.expect("the test wrote it")).collect()
}

fn python(program: impl AsRef<Path>) -> Interpreter {
    Interpreter { program: program.as_ref().to_path_buf(), venv: None }
}

fn probe_with(
    program: &Interpreter,
    scripts: &ScriptSettings,
    skills: &[Skill],
) -> Result<Vec<ProbeResult>, String> {
    let skills: Vec<&Skill> = skills.iter().collect();
    let until = Instant::now() + seconds(240.0);
    let probed = probe(program, &skills, scripts, None, &Cancellation::never(), until);
    probed.map_err(|error| error.fault.to_string())
}

/// Lists `module line`, with `?` for an optional import and `!` for a missing module.
fn imports(probed: &ProbeResult) -> Vec<String> {
    let mark = |is: bool, mark: &'static str| if is { mark } else { "" };
    let rows = probed.imports.iter().map(|row| {
        let (optional, missing) = (mark(row.is_optional, "?"), mark(row.is_missing, "!"));
        format!("{} {}{optional}{missing}", row.module, row.line)
    });
    rows.collect()
}

fn shown(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn rows(declared: &[DeclaredPackage]) -> Vec<String> {
    let rows = declared.iter().map(|row| {
        let line = row.line.unwrap_or_default();
        format!("{}:{line} {}", row.file.display(), row.requirement)
    });
    rows.collect()
}
