//! The check of the skills: which are usable, and the problems of the others. All problems are
//! those that discovery and the linter find.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::cli::doctor::report::DoctorCheck;
use crate::cli::run::Run;
use crate::error::Fault;
use crate::limits;
use crate::skills::python::Interpreter;
use crate::skills::{Catalogue, Problem, Rule, Skill, SkillSummary, check, venv};
use crate::text;

/// The linter's rules for a document that cannot be read, or that `get_skill` refuses.
const DOCUMENT_RULES: [Rule; 3] = [Rule::UnreadableDocument, Rule::NotUtf8, Rule::BrokenLink];

/// The linter's rules for a skill that lacks a working venv or packages.
const SETUP_RULES: [Rule; 3] = [Rule::BrokenVenv, Rule::MissingVenv, Rule::MissingImport];

/// Whether the skill's venv works; `None`: it has none.
pub(super) fn has_working_venv(run: &Run, skill: &SkillSummary) -> Option<bool> {
    let skill = run.skills.open_listed(skill).ok()?;
    venv::path_in_skill(&skill.path)?;
    Some(Interpreter::for_skill(&skill, &run.config.scripts).is_ok())
}

/// The check of the skills: their number, and the problems of each.
pub(super) fn skills(run: &Run, catalogue: &Catalogue) -> DoctorCheck {
    let mut check = headline(run, catalogue);
    let mut faults: Vec<Fault> =
        catalogue.problems.iter().map(|problem| fault(problem.to_string(), problem)).collect();
    let setup_problems = setup_problems(run, catalogue);
    let mut rows = Vec::new();
    for skill in &catalogue.skills {
        let mut found = skill_faults(run, skill);
        let setup = setup_problems.get(&skill.name);
        found.extend(setup.map(|problem| fault(problem.message.clone(), problem)));
        rows.push(json!({
            "name": skill.name,
            "usable": skill.error.is_none(),
            "venv": has_working_venv(run, skill),
            "problems": found.iter().map(|fault| &fault.message).collect::<Vec<_>>(),
        }));
        let name = skill.display_name();
        faults.extend(found.into_iter().map(|Fault { message, fix }| {
            let message = format!("`{name}`: {message}");
            Fault { message, fix }
        }));
    }
    let count = faults.len();
    for Fault { message, fix } in faults.into_iter().take(limits::LISTED_NAMES) {
        let fix = fix.unwrap_or_else(|| "correct that line of the document".into());
        check.add_warning(message, fix);
    }
    if count > limits::LISTED_NAMES {
        check.add_warning(
            format!("the skills have {count} problems in total"),
            "`doctor --json` lists them all",
        );
    }
    let folders = run.skills.folders().iter().map(|folder| folder.display().to_string());
    let problems = catalogue.problems.iter().map(Problem::to_string);
    check
        .with_detail("folders", folders.collect::<Vec<_>>())
        .with_detail("problems", problems.collect::<Vec<_>>())
        .with_detail("skills", Value::Array(rows))
}

/// The number of skills, and the problems of their folders.
fn headline(run: &Run, catalogue: &Catalogue) -> DoctorCheck {
    const NAME: &str = "skills";
    let folders = run.skills.folders().iter().map(|folder| folder.display().to_string());
    let place = folders.collect::<Vec<_>>().join(", ");
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
    let fix = if run.options.skills.is_empty() {
        "create the folder, or name another one in SKILLS_FOLDER_PATH"
    } else {
        "create the folder, or name another one with --skills"
    };
    let folder_errors = catalogue.folder_errors.iter().skip(usize::from(usable.is_empty()));
    for problem in
        folder_errors.filter(|problem| missing.is_ok() || !run.is_already_reported(problem))
    {
        check.add_warning(problem.message.as_str(), fix);
    }
    check
}

fn fault(message: String, problem: &Problem) -> Fault {
    Fault { message, fix: problem.fix.clone() }
}

/// For each skill that lacks a working venv or packages its first problem; the linter lists all.
fn setup_problems(run: &Run, catalogue: &Catalogue) -> HashMap<String, Problem> {
    let found = catalogue.usable().map(|skill| run.skills.open(&skill.name));
    let skills: Vec<Skill> = found.filter_map(std::result::Result::ok).collect();
    let opened: Vec<&Skill> = skills.iter().collect();
    // If no Python works, the check of Python has reported it.
    let found =
        check::check_python(&opened, &run.config.scripts, run.skills.folders(), &run.cancellation)
            .unwrap_or_default();
    let is_of_setup = |problem: &Problem| SETUP_RULES.contains(&problem.rule);
    let named = skills.iter().map(|skill| skill.name.clone()).zip(found);
    named
        .filter_map(|(name, problems)| Some((name, problems.into_iter().find(is_of_setup)?)))
        .collect()
}

/// The problems of a skill's document, each with its remedy.
fn skill_faults(run: &Run, skill: &SkillSummary) -> Vec<Fault> {
    if let Some(error) = &skill.error {
        let linted = || document_problem(&run.skills.open_listed(skill).ok()?);
        let cause = skill.not_a_skill.clone().or_else(linted);
        let fix = cause.and_then(|problem| problem.fix).unwrap_or_else(|| {
            "write its SKILL.md, or move the folder out of the skills folder".to_string()
        });
        return vec![Fault::new(format!("cannot be used: {error}"), fix)];
    }
    let refusal = run.skills.open(&skill.name).ok().and_then(|skill| document_refusal(&skill));
    // The refusal reports these with their line.
    let is_refusal =
        |problem: &&Problem| refusal.is_some() && DOCUMENT_RULES.contains(&problem.rule);
    let others = skill.problems.iter().filter(|problem| !is_refusal(problem));
    others.map(|problem| fault(problem.to_string(), problem)).chain(refusal.clone()).collect()
}

/// Why `get_skill` refuses the document of a skill.
fn document_refusal(skill: &Skill) -> Option<Fault> {
    let error = skill.read_document().err()?;
    let refusal = |cause: String| format!("get_skill refuses its document: {cause}");
    Some(match document_problem(skill) {
        Some(problem) => fault(refusal(problem.to_string()), &problem),
        None => Fault::new(refusal(error.clone()), "`skills-runner skills check` describes it"),
    })
}

/// The linter's first problem of a document that cannot be read.
fn document_problem(skill: &Skill) -> Option<Problem> {
    let is_cause = |problem: &Problem| {
        let name = problem.file.to_str().unwrap_or_default();
        let is_document = name.is_empty() || name.eq_ignore_ascii_case("SKILL.md");
        is_document && DOCUMENT_RULES.contains(&problem.rule)
    };
    check::check(skill).into_iter().find(is_cause)
}

/// The first names, and the number of the others.
pub(super) fn joined_names(all: &[&str]) -> String {
    let mut text = all[..all.len().min(limits::LISTED_NAMES)].join(", ");
    if all.len() > limits::LISTED_NAMES {
        text.push_str(&format!(" and {} more", all.len() - limits::LISTED_NAMES));
    }
    text
}
