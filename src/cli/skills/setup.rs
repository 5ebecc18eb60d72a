//! `skills setup NAME [PACKAGE]...`: a venv for a skill, with what it needs.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::args::usage;
use crate::cli::setup::Run;
use crate::cli::skills::json_path;
use crate::cli::skills::{SkillSelection, near, print_json};
use crate::error::{Error, ErrorKind, Result};
use crate::skills::Skill;
use crate::skills::setup::{
    ScriptImport, SetupOutcome, SetupProgress, SetupRequest, SetupSummary, setup,
};
use crate::text::quoted;
use crate::world::output::Output;

/// What has come of it, for programs.
#[derive(Serialize)]
struct SetupReportJson<'d> {
    name: &'d str,
    #[serde(serialize_with = "json_path::path")]
    path: &'d PathBuf,
    /// `made`, `made_anew`, `completed` or `up_to_date`.
    outcome: &'static str,
    #[serde(serialize_with = "json_path::path")]
    venv: &'d PathBuf,
    #[serde(serialize_with = "json_path::path")]
    python: &'d PathBuf,
    declared: &'d [String],
    undeclared: &'d [String],
    recorded: &'d [String],
    missing: Vec<MissingImport<'d>>,
}

/// An import for which no package is known.
#[derive(Serialize)]
struct MissingImport<'d> {
    module: &'d str,
    #[serde(serialize_with = "json_path::path")]
    file: &'d PathBuf,
    line: usize,
}

/// Somebody who names two skills wants no package of a stranger's.
fn no_package(name: &str, run: &Run) -> Error {
    let text = format!("`{name}` is a skill; a setup takes one skill, and then packages");
    let command = run.skills_command(&format!("setup {name}"));
    usage(text).with_hint(format!(
        "`{command}` sets that one up; a package of this name is meant by `{name}>=0`"
    ))
}

/// Sets the skill up, with its progress on standard error. The status is 1 if
/// imports are left that find no module.
pub(super) fn run(
    run: &Run,
    name: &str,
    requirements: &[&str],
    is_json: bool,
    output: &mut Output,
) -> Result<u8> {
    let place = SkillSelection::of(name, run)?;
    let skill = place.skill()?;
    if !requirements.is_empty() {
        let skills = place.skills.catalogue();
        for requirement in requirements {
            if skills.named(requirement).is_some() {
                return Err(no_package(requirement, run));
            }
        }
    }
    let extra: Vec<String> = requirements.iter().map(ToString::to_string).collect();
    let order = SetupRequest {
        skill: &skill,
        scripts: &run.config.scripts,
        cancellation: &run.cancellation,
        extra: &extra,
    };
    let done = setup(&order, &mut |progress| match progress {
        SetupProgress::Fault(_) | SetupProgress::Unlocked | SetupProgress::Lost { .. } => {
            output.warn(&progress.to_string());
        }
        SetupProgress::Line(_) => output.note(&progress.to_string()),
        _ => output.note(&format!("{}: {progress}", skill.name)),
    })?;
    if is_json {
        let report = SetupReportJson {
            name: &skill.name,
            path: &skill.path,
            outcome: name_of(done.outcome),
            venv: &done.venv,
            python: &done.python,
            declared: &done.declared,
            undeclared: &done.undeclared,
            recorded: &done.recorded,
            missing: done.missing.iter().map(MissingImport::of).collect(),
        };
        print_json(&report, output);
    } else {
        output.print(&describe(&skill.name, &done, run));
    }
    if done.missing.is_empty() {
        return Ok(0);
    }
    output.error(&unknown(&skill, &done.missing));
    Ok(ErrorKind::Io.exit_status())
}

impl MissingImport<'_> {
    fn of(import: &ScriptImport) -> MissingImport<'_> {
        MissingImport { module: &import.module, file: &import.file, line: import.line }
    }
}

fn name_of(outcome: SetupOutcome) -> &'static str {
    match outcome {
        SetupOutcome::UpToDate => "up_to_date",
        SetupOutcome::Made => "made",
        SetupOutcome::MadeAnew => "made_anew",
        SetupOutcome::Added => "completed",
    }
}

/// The result in a line.
fn describe(name: &str, done: &SetupSummary, run: &Run) -> String {
    let venv = near(&done.venv, &run.folder);
    let held: Vec<&str> =
        done.declared.iter().chain(&done.undeclared).map(String::as_str).collect();
    let holds = if held.is_empty() { String::new() } else { format!(" with {}", held.join(", ")) };
    let venv = venv.display();
    let what = match done.outcome {
        SetupOutcome::MadeAnew => format!("made {venv} anew{holds}"),
        SetupOutcome::Added => format!("completed {venv}{holds}"),
        SetupOutcome::UpToDate => format!("{venv} is up to date{holds}"),
        SetupOutcome::Made => format!("made {venv}{holds}"),
    };
    format!("{name}: {what}")
}

/// What only a person can know: which package brings a module.
fn unknown(skill: &Skill, missing: &[ScriptImport]) -> Error {
    let (declared, unknown): (Vec<_>, Vec<_>) =
        missing.iter().partition(|import| import.is_declared);
    let list = |imports: &[&ScriptImport]| {
        let imports = imports.iter();
        let list: Vec<_> =
            imports.map(|import| format!("`{}` ({import})", import.module)).collect();
        match list.as_slice() {
            [one] => format!("the module {one}"),
            list => format!("the modules {}", list.join(", ")),
        }
    };
    let mut causes = Vec::new();
    if !unknown.is_empty() {
        causes.push(format!("no package is known for {}", list(&unknown)));
    }
    if !declared.is_empty() {
        let (is, whose) = match declared.as_slice() {
            [_] => ("is", "its package is"),
            _ => ("are", "their packages are"),
        };
        let list = list(&declared);
        causes.push(format!("{list} {is} missing although {whose} declared"));
    }
    let (name, causes) = (&skill.name, causes.join("; "));
    let what = match missing {
        [_] => "the package that brings it",
        _ => "the packages that bring them",
    };
    Error::new(ErrorKind::Io, format!("failed to set `{name}` up whole: {causes}")).with_hint(
        format!(
            "name {what}: skills-runner skills setup {} PACKAGE...",
            quoted(skill.address.as_ref())
        ),
    )
}
