//! `skills setup NAME [PACKAGE]...`: creates the venv of a skill and installs its packages.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::args::usage;
use crate::cli::setup::Run;
use crate::cli::skills::json_path;
use crate::cli::skills::{SkillSelection, print_json, short_path};
use crate::error::{Error, ErrorKind, Result};
use crate::skills::Skill;
use crate::skills::setup::{
    ScriptImport, SetupOutcome, SetupProgress, SetupRequest, SetupSummary, setup,
};
use crate::text::shell_quoted;
use crate::world::output::Output;

/// The result in JSON output.
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

/// The error for a second skill name in place of a package: do not install a package that merely
/// has the name of a skill.
fn skill_as_package_error(name: &str, run: &Run) -> Error {
    let text = format!("`{name}` is a skill; a setup takes one skill, then packages");
    let command = run.skills_command(&format!("setup {name}"));
    usage(text).with_hint(format!(
        "`{command}` sets up that skill; to install a package of this name, write `{name}>=0`"
    ))
}

/// Sets up the skill, with its progress on standard error. The status is 1 if modules are still
/// missing.
pub(super) fn run(
    run: &Run,
    name: &str,
    requirements: &[&str],
    is_json: bool,
    output: &mut Output,
) -> Result<u8> {
    let place = SkillSelection::parse(name, run)?;
    let skill = place.skill()?;
    if !requirements.is_empty() {
        let skills = place.skills.catalogue();
        for requirement in requirements {
            if skills.skill_named(requirement).is_some() {
                return Err(skill_as_package_error(requirement, run));
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
        SetupProgress::SkillProblem(_)
        | SetupProgress::Unlocked
        | SetupProgress::PackagesLost { .. } => {
            output.warn(&progress.to_string());
        }
        SetupProgress::OutputLine(_) => output.note(&progress.to_string()),
        _ => output.note(&format!("{}: {progress}", skill.name)),
    })?;
    if is_json {
        let report = SetupReportJson {
            name: &skill.name,
            path: &skill.path,
            outcome: outcome_name(done.outcome),
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
    output.error(&missing_imports_error(&skill, &done.missing));
    Ok(ErrorKind::Io.exit_status())
}

impl MissingImport<'_> {
    fn of(import: &ScriptImport) -> MissingImport<'_> {
        MissingImport { module: &import.module, file: &import.file, line: import.line }
    }
}

fn outcome_name(outcome: SetupOutcome) -> &'static str {
    match outcome {
        SetupOutcome::UpToDate => "up_to_date",
        SetupOutcome::Created => "made",
        SetupOutcome::Recreated => "made_anew",
        SetupOutcome::Added => "completed",
    }
}

/// The result in one line.
fn describe(name: &str, done: &SetupSummary, run: &Run) -> String {
    let venv = short_path(&done.venv, &run.folder);
    let held: Vec<&str> =
        done.declared.iter().chain(&done.undeclared).map(String::as_str).collect();
    let holds = if held.is_empty() { String::new() } else { format!(" with {}", held.join(", ")) };
    let venv = venv.display();
    let what = match done.outcome {
        SetupOutcome::Recreated => format!("recreated {venv}{holds}"),
        SetupOutcome::Added => format!("completed {venv}{holds}"),
        SetupOutcome::UpToDate => format!("{venv} is up to date{holds}"),
        SetupOutcome::Created => format!("created {venv}{holds}"),
    };
    format!("{name}: {what}")
}

/// The error for imported modules whose packages only the user can name.
fn missing_imports_error(skill: &Skill, missing: &[ScriptImport]) -> Error {
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
        [_] => "the package that contains it",
        _ => "the packages that contain them",
    };
    Error::new(ErrorKind::Io, format!("failed to set up `{name}` completely: {causes}")).with_hint(
        format!(
            "name {what}: skills-runner skills setup {} PACKAGE...",
            shell_quoted(skill.address.as_ref())
        ),
    )
}
