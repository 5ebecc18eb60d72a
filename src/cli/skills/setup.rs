//! `skills setup NAME [PACKAGE]...`: creates the venv of a skill and installs its packages.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

use serde::Serialize;

use crate::cli::options::SetupCommand;
use crate::cli::run::Run;
use crate::cli::skills::json::{self, print_json};
use crate::cli::skills::selection::SkillSelection;
use crate::cli::values::usage;
use crate::config::find_program;
use crate::error::{Error, ErrorKind, Result};
use crate::skills::Skill;
use crate::skills::needs::{NamedNeeds, Needs};
use crate::skills::packages::{nearly_named, normalized_name, package_name, package_named};
use crate::skills::programs::install_command;
use crate::skills::setup::{
    MissingModule, SetupOutcome, SetupProgress, SetupRequest, SetupSummary, setup,
};
use crate::text::shell_quoted;
use crate::world::output::Output;

/// The result in JSON output.
#[derive(Serialize)]
struct SetupReportJson<'d> {
    name: &'d str,
    #[serde(serialize_with = "json::path")]
    path: &'d PathBuf,
    /// `made`, `made_anew`, `completed` or `up_to_date`.
    outcome: &'static str,
    #[serde(serialize_with = "json::path")]
    venv: &'d PathBuf,
    #[serde(serialize_with = "json::path")]
    python: &'d PathBuf,
    declared: &'d [String],
    undeclared: &'d [String],
    recorded: &'d [String],
    missing: Vec<MissingModuleJson<'d>>,
    /// Packages that documents and guarded imports name, and that are not installed.
    left_out: &'d [String],
    /// Missing programs, which only the user can install.
    programs: &'d BTreeSet<String>,
}

/// A module that is still missing.
#[derive(Serialize)]
struct MissingModuleJson<'d> {
    module: &'d str,
    #[serde(serialize_with = "json::path")]
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
    command: &SetupCommand,
    is_json: bool,
    output: &mut Output,
) -> Result<u8> {
    let SetupCommand { name, packages: requirements, yes } = command;
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
    let needs = Needs::of(&skill);
    let well_known = needs.installable.iter().filter(|name| package_named(name).is_some());
    let inferred: Vec<String> = well_known.filter(|_| *yes).cloned().collect();
    let order = SetupRequest {
        skill: &skill,
        scripts: &run.config.scripts,
        cancellation: &run.cancellation,
        extra: requirements,
        inferred: &inferred,
    };
    let done = setup(&order, &mut |progress| match progress {
        SetupProgress::Note(text) => output.note(&format!("{}: {text}", skill.name)),
        SetupProgress::Warning(text) => output.warn(text),
        SetupProgress::OutputLine(line) => output.note(line),
    })?;
    let lacks = needs.named.missing(&skill, order.scripts);
    let left_out = left_out(&needs, &lacks, &done);
    report_programs(&lacks.programs, run, output);
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
            missing: done.missing.iter().map(MissingModuleJson::new).collect(),
            left_out: &left_out,
            programs: &lacks.programs,
        };
        print_json(&report, output);
    } else {
        output.print(&describe(&skill.name, &done, run));
    }
    if done.missing.is_empty() && left_out.is_empty() {
        return Ok(0);
    }
    if !done.missing.is_empty() {
        output.error(&missing_modules_error(&skill, &done.missing));
    }
    if !left_out.is_empty() {
        output.error(&left_out_error(&skill, &left_out));
    }
    Ok(ErrorKind::Io.exit_status())
}

/// The missing packages that documents and guarded imports name. What was requested or is reported
/// as a missing module is not repeated.
fn left_out(needs: &Needs, lacks: &NamedNeeds, done: &SetupSummary) -> Vec<String> {
    let is_left_out = |name: &&String| {
        let is_same = |package: &str| normalized_name(package) == **name;
        let is_reported = done.missing.iter().any(|it| it.package.is_some_and(is_same));
        let mut requested = done.declared.iter().chain(&done.undeclared);
        let is_done = requested.any(|it| package_name(it).as_ref() == Some(name));
        needs.installable.contains(*name) && !is_reported && !is_done
    };
    lacks.python.iter().filter(is_left_out).cloned().collect()
}

/// Names the missing programs, with the command that installs them here, if one is known.
fn report_programs(missing: &BTreeSet<String>, run: &Run, output: &mut Output) {
    if missing.is_empty() {
        return;
    }
    let path = run.config.scripts.variable("PATH");
    let is_there = |name: &str| find_program(OsStr::new(name), path).is_some();
    let command = install_command(missing.iter().map(String::as_str), is_there);
    let how = command.map(|it| format!("; to install them: {it}")).unwrap_or_default();
    let names = missing.iter().map(String::as_str).collect::<Vec<_>>().join("`, `");
    output.note(&format!("programs that the skill names are not installed: `{names}`{how}"));
}

/// The error for packages that documents and guarded imports name. They are not installed without
/// being asked for: the text of a skill is not a list of requirements.
fn left_out_error(skill: &Skill, names: &[String]) -> Error {
    let name = &skill.name;
    let list = names.iter().map(|name| {
        match nearly_named(name).filter(|_| package_named(name).is_none()) {
            Some(near) => format!("`{name}` (is `{near}` meant?)"),
            None => format!("`{name}`"),
        }
    });
    let list = list.collect::<Vec<_>>().join(", ");
    let text = format!(
        "failed to set up `{name}` completely: its documents or guarded imports name packages that are not installed: {list}"
    );
    let certain = names.iter().filter(|name| package_named(name).is_some());
    let certain = certain.map(String::as_str).collect::<Vec<_>>().join(" ");
    let address = shell_quoted(skill.address.as_ref());
    let error = Error::new(ErrorKind::Io, text);
    if certain.is_empty() {
        return error
            .with_hint("check the names, then name after the skill what you want to install");
    }
    error.with_hint(format!(
        "to install those that are well known ({certain}): skills-runner skills setup {address} --yes"
    ))
}

impl MissingModuleJson<'_> {
    fn new(module: &MissingModule) -> MissingModuleJson<'_> {
        MissingModuleJson { module: &module.module, file: &module.file, line: module.line }
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
    let venv = run.short_path(&done.venv);
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

/// The error for modules that no installed package provides; only the user can name one.
fn missing_modules_error(skill: &Skill, missing: &[MissingModule]) -> Error {
    let name = &skill.name;
    let lines = missing.iter().map(|module| {
        let why = match (module.is_declared, module.package) {
            (true, _) => "its package is declared, but does not provide it",
            (false, Some(_)) => "its package does not provide it",
            (false, None) => "no package is known for it",
        };
        format!("`{}` ({module}): {why}", module.module)
    });
    let list = lines.collect::<Vec<_>>().join("; ");
    let text = format!("failed to set up `{name}` completely: modules are missing: {list}");
    let address = shell_quoted(skill.address.as_ref());
    Error::new(ErrorKind::Io, text).with_hint(format!(
        "name the packages that contain them: skills-runner skills setup {address} PACKAGE..."
    ))
}
