//! `skills list`: one line per skill, as discovery reads it, so that thousands take milliseconds;
//! in JSON output with all problems, which takes as long as `skills check`. With a query only the
//! skills that fit it best, in this order.

use serde::Serialize;

use crate::cli::run::Run;
use crate::cli::skills::check::check_all;
use crate::cli::skills::json::print_json;
use crate::cli::skills::skill_json::{ProblemJson, SkillJson};
use crate::ui::Output;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::text;
use skills::ranking::Ranking;
use skills::{Catalogue, SkillSummary, Skills, check};

/// The list in JSON output.
#[derive(Serialize)]
struct SkillListJson {
    skills: Vec<SkillJson>,
    /// Problems of the skills folders, and between skills.
    problems: Vec<ProblemJson>,
    /// The note about a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Lists the skills that fit a query best, or all. On a terminal the lines are cut to fit;
/// elsewhere whole descriptions follow a tab.
pub(super) fn run(
    run: &Run,
    query: Option<&str>,
    is_json: bool,
    output: &mut Output,
) -> Result<()> {
    let mut catalogue = run.skills.catalogue();
    let found = query.and_then(|query| FoundSkills::new(&catalogue, query, &run.skills));
    let problems = if is_json { folder_problems(&catalogue) } else { Vec::new() };
    let note = found.map(|FoundSkills { found, note }| {
        catalogue.skills = found;
        note
    });
    if is_json {
        let skills = checked_skills(catalogue.skills.clone(), run)?;
        print_json(&SkillListJson { skills, problems, note: note.clone() }, output);
    } else {
        report_folders(&catalogue, note.is_some(), run, output);
        print_lines(&catalogue.skills, output);
    }
    match note {
        Some(note) if catalogue.skills.is_empty() => {
            Err(Error::new(ErrorKind::Io, format!("failed to find a skill: {note}")))
        }
        Some(note) => {
            output.note(&note);
            Ok(())
        }
        None if is_json => Ok(()),
        None => {
            report_faulty(&catalogue, run, output);
            Ok(())
        }
    }
}

/// The skills that fit a query best, in this order, and the note about them.
struct FoundSkills {
    found: Vec<SkillSummary>,
    note: String,
}

impl FoundSkills {
    /// `None` if there is nothing to search for or in.
    fn new(catalogue: &Catalogue, query: &str, skills: &Skills) -> Option<FoundSkills> {
        let candidates: Vec<&SkillSummary> = catalogue.skills.iter().collect();
        let ranking = Ranking::new(skills, &candidates, query)?;
        let found = ranking.found().iter().map(|skill| (*skill).clone()).collect();
        Some(FoundSkills { found, note: ranking.note(&candidates) })
    }
}

/// Reports skills folders that cannot be read and, unless it is a search, all other problems.
fn report_folders(catalogue: &Catalogue, is_search: bool, run: &Run, output: &mut Output) {
    let folder_errors = catalogue.folder_errors.iter();
    for error in folder_errors.filter(|error| !run.is_already_reported(error)) {
        let fix = match &error.fix {
            Some(fix) => format!(": {fix}"),
            None => String::new(),
        };
        output.warn(&format!("{}{fix}", error.message));
    }
    if is_search {
        return;
    }
    for problem in catalogue.problems.iter().take(limits::LISTED_NAMES) {
        output.note(&text::one_line(&problem.with_remedy(), limits::LINE_BYTES));
    }
    if catalogue.skills.is_empty()
        && catalogue.folder_errors.is_empty()
        && catalogue.problems.is_empty()
    {
        output.note(&format!(
            "there are no skills: `{}` creates one",
            run.skills_command("new NAME")
        ));
    }
}

fn print_lines(skills: &[SkillSummary], output: &mut Output) {
    let room = Output::columns().filter(|_| output.is_on_terminal());
    let width = skills.iter().map(|skill| text::columns(&skill.display_name()));
    let width = width.max().unwrap_or(0).min(room.unwrap_or_default() / 3);
    for skill in skills {
        output.print(&skill_line(skill, width, room));
    }
}

/// Names the skills whose documents have problems.
fn report_faulty(catalogue: &Catalogue, run: &Run, output: &mut Output) {
    let is_faulty = |skill: &&SkillSummary| skill.error.is_none() && !skill.problems.is_empty();
    let faulty: Vec<_> =
        catalogue.skills.iter().filter(is_faulty).map(SkillSummary::display_name).collect();
    if !faulty.is_empty() {
        let names: Vec<&str> = faulty.iter().map(AsRef::as_ref).collect();
        output.note(&format!(
            "problems in the documents of {}: `{}` lists them",
            text::first_names(&names),
            run.skills_command("check")
        ));
    }
}

/// All skills with all their problems.
fn checked_skills(skills: Vec<SkillSummary>, run: &Run) -> Result<Vec<SkillJson>> {
    let targets = skills.into_iter().map(|summary| (summary, run.skills.clone()));
    let checked = check_all(targets, run)?.into_iter();
    Ok(checked.map(|one| SkillJson::new(one, run)).collect())
}

/// The problems of skills folders and between skills.
fn folder_problems(catalogue: &Catalogue) -> Vec<ProblemJson> {
    let found = check::check_catalogue(catalogue).into_iter();
    found.map(ProblemJson::from).collect()
}

/// One line: the name and description of a skill, or why it cannot be used.
/// `room`: the columns of the terminal; `None`: there is no terminal.
fn skill_line(skill: &SkillSummary, width: usize, room: Option<usize>) -> String {
    let about = match &skill.error {
        Some(error) => format!("(cannot be used: {error})"),
        None => skill.description.clone(),
    };
    let name = skill.display_name();
    let about = text::one_line(&about, limits::DESCRIPTION_BYTES);
    let Some(room) = room else {
        return format!("{name}\t{about}");
    };
    let padding = width.saturating_sub(text::columns(&name)) + 2;
    text::shortened(&format!("{name}{:padding$}{about}", ""), room).into_owned()
}
