//! `skills list`: one line per skill, and the problems.

use serde::Serialize;

use crate::cli::run::Run;
use crate::cli::skills::json::print_json;
use crate::cli::skills::skill_json::{ProblemJson, SkillJson};
use crate::error::Result;
use crate::limits;
use crate::skills::{Catalogue, check};
use crate::text::{self, shell_quoted};
use crate::world::output::Output;

/// The list in JSON output.
#[derive(Serialize)]
struct SkillListJson {
    skills: Vec<SkillJson>,
    /// Problems of the skills folders, and between skills.
    problems: Vec<ProblemJson>,
}

/// Lists the skills. On a terminal the lines are cut to fit; elsewhere whole descriptions follow
/// a tab.
pub(super) fn run(run: &Run, is_json: bool, output: &mut Output) -> Result<()> {
    let catalogue = run.skills.catalogue();
    let mut views = Vec::new();
    for summary in &catalogue.skills {
        run.cancellation.check()?;
        views.push(SkillJson::new(summary, &run.skills, run));
    }
    if is_json {
        let list = SkillListJson { skills: views, problems: folder_problems(&catalogue) };
        print_json(&list, output);
        return Ok(());
    }
    let folder_errors = catalogue.folder_errors.iter();
    for error in folder_errors.filter(|error| !run.is_already_reported(error)) {
        let fix = match &error.fix {
            Some(fix) => format!(": {fix}"),
            None => String::new(),
        };
        output.warn(&format!("{}{fix}", error.message));
    }
    for problem in catalogue.problems.iter().take(limits::LISTED_NAMES) {
        output.note(&text::one_line(&problem.with_remedy(), limits::LINE_BYTES));
    }
    if views.is_empty() && catalogue.folder_errors.is_empty() && catalogue.problems.is_empty() {
        output.note(&format!(
            "there are no skills: `{}` creates one",
            run.skills_command("new NAME")
        ));
    }
    // A control character is shown as one character.
    let width = views.iter().map(|view| view.name.chars().count());
    let width = width.max().unwrap_or(0).min(limits::REPORT_COLUMNS / 3);
    for view in &views {
        output.print(&skill_line(view, width, output.is_on_terminal()));
    }
    report_problems(&views, run, output);
    Ok(())
}

/// Prints a line for each of the first usable skills with problems.
fn report_problems(views: &[SkillJson], run: &Run, output: &mut Output) {
    let has_problems = |view: &&SkillJson| view.error.is_none() && !view.problems.is_empty();
    let mut with_problems = views.iter().filter(has_problems);
    for view in with_problems.by_ref().take(limits::LISTED_NAMES) {
        output.note(&format!(
            "the skill `{}` has {}: `skills-runner skills show {}` shows {}",
            text::one_line_name(&view.name),
            text::counted(view.problems.len(), "problem"),
            shell_quoted(text::one_line_name(&view.address).as_ref()),
            if view.problems.len() == 1 { "it" } else { "them" }
        ));
    }
    let more = with_problems.count();
    if more > 0 {
        let have = if more == 1 { "has" } else { "have" };
        output.note(&format!(
            "… and {} {have} problems: `{}` lists them",
            text::counted(more, "more skill"),
            run.skills_command("check")
        ));
    }
}

/// The problems of skills folders and between skills.
fn folder_problems(catalogue: &Catalogue) -> Vec<ProblemJson> {
    let found = check::check_catalogue(catalogue).into_iter();
    found.map(ProblemJson::from).collect()
}

/// One line: the name and description of a skill, or why it cannot be used.
fn skill_line(view: &SkillJson, width: usize, is_on_terminal: bool) -> String {
    let about = match &view.error {
        Some(error) => format!("(cannot be used: {error})"),
        None => view.description.clone(),
    };
    let name = text::one_line_name(&view.name);
    if !is_on_terminal {
        return format!("{name}\t{}", text::one_line(&about, limits::DESCRIPTION_BYTES));
    }
    let used = width.max(name.chars().count()) + 2;
    let room = limits::REPORT_COLUMNS.saturating_sub(used);
    format!("{name:width$}  {}", text::one_line(&about, room))
}
