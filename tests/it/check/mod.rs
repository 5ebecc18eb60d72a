//! `skills check`: the rules of the linter, with the machine's real Python.

mod documents;
mod python;
mod references;
mod severities;

use crate::harness::{Test, seconds};
use skills::ScriptSettings;
use skills::check;
use skills::python::PythonChoice;
use skills_runner::Cancellation;
use skills_runner::{Problem, Skill, Skills};
use std::fs;
use std::path::PathBuf;

fn scripts(test: &Test, python: PythonChoice) -> ScriptSettings {
    ScriptSettings {
        limit: seconds(30.0),
        python,
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

/// The Python problems of these skills.
fn problems(test: &Test, python: PythonChoice, names: &[&str]) -> Vec<Vec<Problem>> {
    let skills = Skills::new(vec![test.path("skills")]);
    let open = |name: &&str| {
        fs::write(test.path(format!("skills/{name}/SKILL.md")), "Do it.").unwrap();
        skills.open(name).expect("the test wrote it")
    };
    let skills: Vec<Skill> = names.iter().map(open).collect();
    let skills: Vec<&Skill> = skills.iter().collect();
    let scripts = scripts(test, python);
    check::check_python(&skills, &scripts, &[], &Cancellation::never()).expect("nobody interrupts")
}
