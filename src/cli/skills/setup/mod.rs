//! `skills setup NAME [PACKAGE]...`: creates the venv of a skill and installs its packages.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::options::SetupCommand;
use crate::cli::run::Run;
use crate::cli::skills::json::{self, print_json};
use crate::cli::skills::selection::SkillSelection;
use crate::cli::values::usage;
use crate::ui::Output;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::text::shell_quoted;
use host::cancellation::Cancellation;
use host::files::find_program;
use host::terminal;
use skills::Skill;
use skills::needs::{InferredPackage, NamedNeeds, Needs};
use skills::packages::nearly_named;
use skills::programs::install_command;
use skills::python::setup_command;

mod build;
mod command_runner;
mod declared;
mod progress;
mod request;
mod venv_location;

use build::setup;
use progress::{SetupOutcome, SetupProgress, SetupSummary};
use request::SetupRequest;

/// The result in JSON output.
#[derive(Serialize)]
struct SetupReportJson<'d> {
    name: &'d str,
    #[serde(serialize_with = "json::path")]
    path: &'d PathBuf,
    /// `made`, `made_anew`, `up_to_date` or `nothing_to_install`.
    outcome: &'static str,
    /// `null`: there is nothing to install.
    venv: Option<Cow<'d, str>>,
    #[serde(serialize_with = "json::path")]
    python: &'d PathBuf,
    declared: &'d [String],
    undeclared: &'d [String],
    /// Packages that documents install, and that are not there.
    left_out: &'d [&'d str],
    /// Missing packages of npm and programs, which only the user can install.
    npm: &'d BTreeSet<String>,
    programs: &'d BTreeSet<String>,
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

/// Sets up the skill, with its progress on standard error. The status is 1 if packages are left
/// out.
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
        let is_skill = |name: &String| {
            let opened = || place.skills.open_any(name).is_ok_and(|skill| skill.name == *name);
            skills.skill_named(name).is_some() || opened()
        };
        for requirement in requirements {
            if is_skill(requirement) {
                return Err(skill_as_package_error(requirement, run));
            }
        }
    }
    let needs = Needs::of(&skill);
    let inferred: Vec<InferredPackage> = needs.inferred.values().cloned().collect();
    let view = RefCell::new(SetupView { skill: &skill, output, lines: Vec::new() });
    let order = SetupRequest {
        skill: &skill,
        scripts: &run.config.scripts,
        cancellation: &run.cancellation,
        extra: requirements,
        inferred: &inferred,
        agree: &|packages| view.borrow_mut().agree(packages, *yes, &run.cancellation),
    };
    let done = setup(&order, &mut |progress| view.borrow_mut().show(progress));
    if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::Io) {
        view.borrow_mut().show_lines();
    }
    let missing = needs.named.missing(&skill, order.scripts);
    Ok(report(run, &skill, &done?, &missing, is_json, output))
}

/// Reports a setup; returns its status.
fn report(
    run: &Run,
    skill: &Skill,
    done: &SetupSummary,
    missing: &NamedNeeds,
    is_json: bool,
    output: &mut Output,
) -> u8 {
    let NamedNeeds { programs, npm, .. } = missing;
    report_programs(programs, run, output);
    report_npm_packages(npm, skill, output);
    let left_out: Vec<&str> = done.left_out.iter().map(|it| it.name.as_str()).collect();
    if is_json {
        let report = SetupReportJson {
            name: &skill.name,
            path: &skill.path,
            outcome: outcome_name(done.outcome),
            venv: done.venv.as_deref().map(Path::to_string_lossy),
            python: &done.python,
            declared: &done.declared,
            undeclared: &done.undeclared,
            left_out: &left_out,
            npm,
            programs,
        };
        print_json(&report, output);
    } else {
        output.print(&describe(&skill.name, done, run));
    }
    if done.left_out.is_empty() {
        return 0;
    }
    output.error(&left_out_error(skill, &done.left_out));
    ErrorKind::Io.exit_status()
}

/// Output of a setup while it runs.
struct SetupView<'v> {
    skill: &'v Skill,
    output: &'v mut Output,
    /// Lines of programs that only the live line has shown.
    lines: Vec<String>,
}

impl SetupView<'_> {
    fn show(&mut self, progress: SetupProgress<'_>) {
        match progress {
            SetupProgress::Note(text) => self.output.note(&format!("{}: {text}", self.skill.name)),
            SetupProgress::Warning(text) => self.output.warn(text),
            SetupProgress::OutputLine(line) if self.output.has_live_line() => {
                if self.lines.len() < limits::SETUP_OUTPUT_LINES {
                    self.lines.push(line.to_string());
                }
                self.output.show_live(line);
            }
            SetupProgress::OutputLine(line) => self.output.note(line),
        }
    }

    /// Shows the lines of a setup that failed.
    fn show_lines(&mut self) {
        for line in std::mem::take(&mut self.lines) {
            self.output.note(&line);
        }
    }

    /// Lists packages that the skill does not declare, and asks whether to install them. Without a
    /// terminal the answer is no.
    fn agree(
        &mut self,
        packages: &[&InferredPackage],
        is_agreed: bool,
        cancellation: &Cancellation,
    ) -> Result<bool> {
        if !(is_agreed || Output::can_ask()) {
            return Ok(false);
        }
        self.output.note_always(&format!(
            "{}: these packages are not declared, but its documents install them:",
            self.skill.name
        ));
        for package in packages {
            let what = package.to_install().unwrap_or_default();
            let line = &package.line;
            self.output.row(&format!("{what} ({line}: {})", line.text));
        }
        if is_agreed {
            return Ok(true);
        }
        let question = "install them into its venv? [y/N] ";
        let reply = terminal::ask(question, cancellation, false)?.to_lowercase();
        Ok(["y", "yes"].contains(&reply.as_str()))
    }
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

/// Names the missing packages of npm, with the command that installs them for the skill's scripts.
fn report_npm_packages(missing: &BTreeSet<String>, skill: &Skill, output: &mut Output) {
    if missing.is_empty() {
        return;
    }
    let names = missing.iter().map(String::as_str).collect::<Vec<_>>();
    output.note(&format!(
        "packages of npm that the skill names are not installed: `{}`; to install them: npm install \
         --prefix {} {}",
        names.join("`, `"),
        shell_quoted(&skill.path),
        names.join(" ")
    ));
}

/// The error for packages that documents install. They are not installed without being asked for:
/// the text of a skill is not a list of requirements.
fn left_out_error(skill: &Skill, packages: &[InferredPackage]) -> Error {
    let list = packages.iter().map(|package| match nearly_named(&package.name) {
        Some(near) => format!("{package}, is `{near}` meant?"),
        None => package.to_string(),
    });
    let list = list.collect::<Vec<_>>().join(", ");
    let text = format!(
        "failed to set up `{}` completely: its documents name packages that are not installed: \
         {list}",
        skill.name
    );
    let certain: Vec<&str> = packages.iter().filter_map(InferredPackage::to_install).collect();
    let error = Error::new(ErrorKind::Io, text);
    if certain.is_empty() {
        return error
            .with_hint("check the names, then name after the skill what you want to install");
    }
    let command = setup_command(skill, &["--yes"]);
    error.with_hint(format!("to install {}: {command}", certain.join(" ")))
}

fn outcome_name(outcome: SetupOutcome) -> &'static str {
    match outcome {
        SetupOutcome::UpToDate => "up_to_date",
        SetupOutcome::Created => "made",
        SetupOutcome::Recreated => "made_anew",
        SetupOutcome::NothingToInstall => "nothing_to_install",
    }
}

/// The result in one line.
fn describe(name: &str, done: &SetupSummary, run: &Run) -> String {
    let Some(venv) = &done.venv else {
        let python = shell_quoted(&done.python);
        let is_complete = done.left_out.is_empty();
        let what = if is_complete { "nothing to install" } else { "nothing installed" };
        return format!("{name}: {what}; its scripts run with {python}");
    };
    let venv = run.short_path(venv);
    let held: Vec<&str> =
        done.declared.iter().chain(&done.undeclared).map(String::as_str).collect();
    let holds = if held.is_empty() { String::new() } else { format!(" with {}", held.join(", ")) };
    let venv = venv.display();
    let what = match done.outcome {
        SetupOutcome::Recreated => format!("recreated {venv}{holds}"),
        SetupOutcome::UpToDate => format!("{venv} is up to date{holds}"),
        _ => format!("created {venv}{holds}"),
    };
    format!("{name}: {what}")
}
