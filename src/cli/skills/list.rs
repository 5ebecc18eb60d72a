//! `skills list`: every skill in a line, with what is wrong with it.

use serde::Serialize;

use crate::cli::setup::Run;
use crate::cli::skills::print_json;
use crate::cli::skills::skill_json::{ProblemJson, SkillJson};
use crate::error::Result;
use crate::limits;
use crate::skills::{Catalogue, check};
use crate::text::{self, quoted};
use crate::world::output::Output;

/// The list for programs.
#[derive(Serialize)]
struct SkillListJson {
    skills: Vec<SkillJson>,
    /// What is wrong with the skills folders, and between skills.
    problems: Vec<ProblemJson>,
}

/// Lists them. A terminal gets lines that fit it, anything else whole
/// descriptions behind a tab.
pub(super) fn run(run: &Run, is_json: bool, output: &mut Output) -> Result<u8> {
    let catalogue = run.skills.catalogue();
    let mut views = Vec::new();
    for summary in &catalogue.skills {
        run.cancellation.check()?;
        views.push(SkillJson::of(summary, &run.skills, run));
    }
    if is_json {
        let list = SkillListJson { skills: views, problems: of_folders(&catalogue) };
        print_json(&list, output);
        return Ok(0);
    }
    let faults = catalogue.faults.iter();
    for fault in faults.filter(|fault| !run.has_reported(fault)) {
        let fix = match &fault.fix {
            Some(fix) => format!(": {fix}"),
            None => String::new(),
        };
        output.warn(&format!("{}{fix}", fault.message));
    }
    for problem in catalogue.problems.iter().take(limits::NAMES) {
        output.note(&text::one_line(&problem.with_fix(), limits::LINE_BYTES));
    }
    if views.is_empty() && catalogue.faults.is_empty() && catalogue.problems.is_empty() {
        output.note(&format!("there is no skill: `{}` writes one", run.skills_command("new NAME")));
    }
    // A control character is shown as one other.
    let width = views.iter().map(|view| view.name.chars().count());
    let width = width.max().unwrap_or(0).min(limits::REPORT_COLUMNS / 3);
    for view in &views {
        output.print(&line(view, width, output.is_on_terminal()));
    }
    tell_problems(&views, run, output);
    Ok(0)
}

/// A line for each skill that works and has problems, for the first of them.
fn tell_problems(views: &[SkillJson], run: &Run, output: &mut Output) {
    let is_told = |view: &&SkillJson| view.fault.is_none() && !view.problems.is_empty();
    let mut told = views.iter().filter(is_told);
    for view in told.by_ref().take(limits::NAMES) {
        output.note(&format!(
            "the skill `{}` has {}: `skills-runner skills show {}` tells {}",
            text::one_name(&view.name),
            text::counted(view.problems.len(), "problem"),
            quoted(text::one_name(&view.address).as_ref()),
            if view.problems.len() == 1 { "it" } else { "them" }
        ));
    }
    let more = told.count();
    if more > 0 {
        let have = if more == 1 { "has" } else { "have" };
        output.note(&format!(
            "… and {} {have} problems: `{}` lists them",
            text::counted(more, "more skill"),
            run.skills_command("check")
        ));
    }
}

/// What is wrong with folders, in one shape.
fn of_folders(catalogue: &Catalogue) -> Vec<ProblemJson> {
    let found = check::between(catalogue).into_iter();
    found.map(ProblemJson::from).collect()
}

/// One skill in a line: what it does, or why it cannot be used.
fn line(view: &SkillJson, width: usize, is_on_terminal: bool) -> String {
    let about = match &view.fault {
        Some(fault) => format!("(cannot be used: {fault})"),
        None => view.description.clone(),
    };
    let name = text::one_name(&view.name);
    if !is_on_terminal {
        return format!("{name}\t{}", text::one_line(&about, limits::DESCRIPTION_BYTES));
    }
    let used = width.max(name.chars().count()) + 2;
    let room = limits::REPORT_COLUMNS.saturating_sub(used);
    format!("{name:width$}  {}", text::one_line(&about, room))
}
