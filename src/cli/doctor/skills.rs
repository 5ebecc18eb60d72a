//! The check of the skills: which are usable, and the problems of the others.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::doctor::report::DoctorCheck;
use crate::cli::run::Run;
use crate::limits;
use crate::skills::python::{Interpreter, InterpreterError};
use crate::skills::{Catalogue, Problem, Rule, Skill, SkillSummary, check, venv};
use crate::text::{self, shell_quoted};

/// Whether the skill's venv works; `None`: it has none.
pub(super) fn venv_status(
    run: &Run,
    skill: &SkillSummary,
) -> Option<std::result::Result<(), InterpreterError>> {
    let skill = run.skills.open_listed(skill).ok()?;
    venv::path_in_skill(&skill.path)?;
    Some(Interpreter::for_skill(&skill, &run.config.scripts).map(drop))
}

/// The check of the skills: their number, and the problems of each.
pub(super) fn skills(run: &Run, catalogue: &Catalogue) -> DoctorCheck {
    const NAME: &str = "skills";
    let folders: Vec<String> =
        run.skills.folders().iter().map(|folder| folder.display().to_string()).collect();
    let place = folders.join(", ");
    let all = catalogue.skills.len();
    let usable: Vec<_> = catalogue.usable().map(SkillSummary::display_name).collect();
    let usable: Vec<&str> = usable.iter().map(AsRef::as_ref).collect();
    let mut check = if usable.is_empty() {
        let message = match catalogue.folder_errors.first() {
            Some(problem) => problem.message.clone(),
            None if all == 0 => format!("there are no skills in {place}"),
            None => format!("none of the {all} skills in {place} can be used"),
        };
        let fix = "set a folder of skills with `--skills DIR` or SKILLS_FOLDER_PATH; without skills the model gets no tools";
        DoctorCheck::warning(NAME, message, fix)
    } else {
        let skills = text::counted(all, "skill");
        let message = if usable.len() == all {
            format!("{skills} in {place}")
        } else {
            format!("{} of {skills} in {place} can be used", usable.len())
        };
        let mut check = DoctorCheck::ok(NAME, message);
        check.add_line(joined_names(&usable));
        check
    };
    let missing = run.missing_folders();
    if let Err(error) = &missing {
        check = DoctorCheck::from_error(NAME, error);
    }
    let reported = usize::from(usable.is_empty());
    let folder_errors = catalogue.folder_errors.iter().skip(reported);
    for problem in
        folder_errors.filter(|problem| missing.is_ok() || !run.is_already_reported(problem))
    {
        let fix = if run.options.skills.is_empty() {
            "create the folder, or name another one in SKILLS_FOLDER_PATH"
        } else {
            "create the folder, or name another one with --skills"
        };
        check.add_warning(problem.message.as_str(), fix);
    }
    let problems: Vec<String> = catalogue.problems.iter().map(Problem::to_string).collect();
    let mut rows = Vec::new();
    let mut count = 0;
    for problem in &catalogue.problems {
        count += 1;
        if count <= limits::LISTED_NAMES {
            check.add_warning(problem.to_string(), problem.fix.as_deref().unwrap_or_default());
        }
    }
    let unmet = missing_packages(run, catalogue);
    for skill in &catalogue.skills {
        let venv = venv_status(run, skill);
        let mut found = skill_problems(run, skill, venv.as_ref());
        let packages = unmet.iter().filter(|(name, _)| *name == skill.name);
        found.extend(packages.map(|(_, problem)| {
            let fix = problem.fix.as_deref().unwrap_or_default();
            (problem.message.clone(), fix.to_string())
        }));
        rows.push(json!({
            "name": skill.name,
            "usable": skill.error.is_none(),
            "venv": venv.as_ref().map(std::result::Result::is_ok),
            "problems": found.iter().map(|(message, _)| message).collect::<Vec<_>>(),
        }));
        count += found.len();
        if count <= limits::LISTED_NAMES {
            for (message, fix) in found {
                check.add_warning(format!("`{}`: {message}", skill.display_name()), fix);
            }
        }
    }
    if count > limits::LISTED_NAMES {
        check.add_warning(
            format!("the skills have {count} problems in total"),
            "`doctor --json` lists them all",
        );
    }
    check
        .with_detail("folders", folders)
        .with_detail("problems", problems)
        .with_detail("skills", Value::Array(rows))
}

/// Skills whose scripts need missing packages, with the first problem each; the linter lists all.
fn missing_packages(run: &Run, catalogue: &Catalogue) -> Vec<(String, Problem)> {
    let found = catalogue.usable().map(|skill| run.skills.open(&skill.name));
    let skills: Vec<Skill> = found.filter_map(std::result::Result::ok).collect();
    let opened: Vec<&Skill> = skills.iter().collect();
    // If no Python works, the check of Python has reported it.
    let found =
        check::check_python(&opened, &run.config.scripts, run.skills.folders(), &run.cancellation)
            .unwrap_or_default();
    let is_setup_problem =
        |problem: &Problem| [Rule::MissingVenv, Rule::MissingImport].contains(&problem.rule);
    let named = skills.iter().map(|skill| skill.name.clone());
    named
        .zip(found)
        .filter_map(|(name, problems)| Some((name, problems.into_iter().find(is_setup_problem)?)))
        .collect()
}

/// The problems of a skill, each with its remedy.
fn skill_problems(
    run: &Run,
    skill: &SkillSummary,
    venv: Option<&std::result::Result<(), InterpreterError>>,
) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    if let Some(error) = &skill.error {
        problems.push((format!("cannot be used: {error}"), unusable_skill_fix(run, skill)));
    }
    let refused = document_refusal(run, skill);
    // `document_refusal` reports these with their line.
    let is_reported_below =
        |problem: &&Problem| refused.is_some() && REFUSAL_RULES.contains(&problem.rule);
    for problem in skill.problems.iter().filter(|problem| !is_reported_below(problem)) {
        let fix = problem.fix.as_deref();
        let fix = fix.unwrap_or("correct that line of the document");
        problems.push((problem.to_string(), fix.to_string()));
    }
    problems.extend(refused);
    if let Some(Err(error)) = venv {
        problems.push((error.fault.message.clone(), error.fault.fix.clone().unwrap_or_default()));
    }
    problems
}

/// The linter's rules for documents that `get_skill` refuses.
const REFUSAL_RULES: [Rule; 2] = [Rule::NotUtf8, Rule::UnreadableDocument];

/// Why the model cannot read the document of an otherwise usable skill, with a remedy.
fn document_refusal(run: &Run, skill: &SkillSummary) -> Option<(String, String)> {
    if !skill.is_usable() {
        return None;
    }
    let opened = run.skills.open(&skill.name).ok()?;
    let read_error = opened.read_document().err()?.to_string();
    let problems = check::check(&opened).into_iter();
    let cause = problems
        .filter(|problem| REFUSAL_RULES.contains(&problem.rule))
        .map(|problem| problem.to_string())
        .next();
    let cause = cause.unwrap_or(read_error);
    let address = shell_quoted(Path::new(&opened.address));
    Some((
        format!("get_skill refuses its document: {cause}"),
        format!("`skills-runner skills check {address}` shows the remedy"),
    ))
}

/// The remedy for an unusable skill, from the linter if it finds the cause.
fn unusable_skill_fix(run: &Run, skill: &SkillSummary) -> String {
    const CAUSES: [Rule; 2] = [Rule::UnreadableDocument, Rule::BrokenLink];
    if let Some(problem) = &skill.not_a_skill {
        return problem.fix.clone().unwrap_or_default();
    }
    let opened = run.skills.open_listed(skill);
    let problems = opened.map(|skill| check::check(&skill)).unwrap_or_default();
    let is_cause = |problem: &&Problem| {
        let name = problem.file.to_str().unwrap_or_default();
        CAUSES.contains(&problem.rule) && (name.is_empty() || name.eq_ignore_ascii_case("SKILL.md"))
    };
    let mut causes = problems.iter().filter(is_cause);
    match causes.find_map(|problem| problem.fix.clone()) {
        Some(fix) => fix,
        None => "write its SKILL.md, or move the folder out of the skills folder".to_string(),
    }
}

/// The first names, and the number of the others.
pub(super) fn joined_names(all: &[&str]) -> String {
    let mut text = all[..all.len().min(limits::LISTED_NAMES)].join(", ");
    if all.len() > limits::LISTED_NAMES {
        text.push_str(&format!(" and {} more", all.len() - limits::LISTED_NAMES));
    }
    text
}
