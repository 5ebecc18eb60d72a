//! What `doctor` looks at in the skills folders: what the model can use, and
//! what is wrong with the rest.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::doctor::remedy::remedy;
use crate::cli::doctor::report::DoctorCheck;
use crate::cli::setup::Run;
use crate::limits;
use crate::skills::python::Interpreter;
use crate::skills::{Catalogue, Problem, Skill, SkillSummary, check, venv};
use crate::text::{self, quoted};

/// Whether the skill's own environment works; `None`: it has none.
pub(super) fn venv(run: &Run, skill: &SkillSummary) -> Option<std::result::Result<(), String>> {
    let skill = run.skills.find_any(&skill.name).ok()?;
    venv::of_skill(&skill.path)?;
    Some(Interpreter::of(&skill, &run.config.scripts).map(drop))
}

/// The skills: how many, and what is wrong with each.
pub(super) fn skills(run: &Run, catalogue: &Catalogue) -> DoctorCheck {
    const NAME: &str = "skills";
    let folders: Vec<String> =
        run.skills.folders().iter().map(|folder| folder.display().to_string()).collect();
    let place = folders.join(", ");
    let all = catalogue.skills.len();
    let usable: Vec<_> = catalogue.usable().map(SkillSummary::shown_name).collect();
    let usable: Vec<&str> = usable.iter().map(AsRef::as_ref).collect();
    let mut check = if usable.is_empty() {
        let message = match catalogue.faults.first() {
            Some(fault) => fault.message.clone(),
            None if all == 0 => format!("there is no skill in {place}"),
            None => format!("none of the {all} skills in {place} can be used"),
        };
        let fix = "name a folder of skills with `--skills DIR` or SKILLS_FOLDER_PATH; without one the model gets no tools";
        DoctorCheck::warning(NAME, message, fix)
    } else {
        let skills = text::counted(all, "skill");
        let message = if usable.len() == all {
            format!("{skills} in {place}")
        } else {
            format!("{} of {skills} in {place} can be used", usable.len())
        };
        let mut check = DoctorCheck::ok(NAME, message);
        check.add_line(names(&usable));
        check
    };
    let missing = run.missing_folders();
    if let Err(error) = &missing {
        check = DoctorCheck::failed(NAME, error);
    }
    let told = usize::from(usable.is_empty());
    let faults = catalogue.faults.iter().skip(told);
    for fault in faults.filter(|fault| missing.is_ok() || !run.has_reported(fault)) {
        let fix = if run.typed.skills.is_empty() {
            "make the folder, or name another one in SKILLS_FOLDER_PATH"
        } else {
            "make the folder, or name another one with --skills"
        };
        check.add_warning(fault.message.as_str(), fix);
    }
    let problems: Vec<String> = catalogue.problems.iter().map(Problem::to_string).collect();
    let mut rows = Vec::new();
    let mut faults = 0;
    for problem in &catalogue.problems {
        faults += 1;
        if faults <= limits::NAMES {
            check.add_warning(problem.to_string(), problem.fix.as_deref().unwrap_or_default());
        }
    }
    let lacking = packages(run, catalogue);
    for skill in &catalogue.skills {
        let venv = venv(run, skill);
        let mut found = faults_of(run, skill, venv.as_ref());
        let packages = lacking.iter().filter(|(name, _)| *name == skill.name);
        found.extend(packages.map(|(_, problem)| {
            let fix = problem.fix.as_deref().unwrap_or_default();
            (problem.message.clone(), fix.to_string())
        }));
        rows.push(json!({
            "name": skill.name,
            "usable": skill.fault.is_none(),
            "venv": venv.as_ref().map(std::result::Result::is_ok),
            "problems": found.iter().map(|(message, _)| message).collect::<Vec<_>>(),
        }));
        faults += found.len();
        if faults <= limits::NAMES {
            for (message, fix) in found {
                check.add_warning(format!("`{}`: {message}", skill.shown_name()), fix);
            }
        }
    }
    if faults > limits::NAMES {
        check.add_warning(
            format!("{faults} problems of skills in all"),
            "`doctor --json` lists each",
        );
    }
    check.with("folders", folders).with("problems", problems).with("skills", Value::Array(rows))
}

/// Skills whose scripts need packages that are not there. One finding a skill
/// is enough here: the linter tells them all.
fn packages(run: &Run, catalogue: &Catalogue) -> Vec<(String, Problem)> {
    let found = catalogue.usable().map(|skill| run.skills.find(&skill.name));
    let skills: Vec<Skill> = found.filter_map(std::result::Result::ok).collect();
    let opened: Vec<&Skill> = skills.iter().collect();
    // Where no Python answers, that has been told.
    let found =
        check::python(&opened, &run.config.scripts, run.skills.folders(), &run.cancellation)
            .unwrap_or_default();
    let is_it = |problem: &Problem| ["missing-venv", "missing-import"].contains(&problem.rule);
    let named = skills.iter().map(|skill| skill.name.clone());
    named
        .zip(found)
        .filter_map(|(name, problems)| Some((name, problems.into_iter().find(is_it)?)))
        .collect()
}

/// What is wrong with a skill, each with its fix.
fn faults_of(
    run: &Run,
    skill: &SkillSummary,
    venv: Option<&std::result::Result<(), String>>,
) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    if let Some(fault) = &skill.fault {
        faults.push((format!("cannot be used: {fault}"), remedy_of_unusable(run, skill)));
    }
    let refused = refused(run, skill);
    // Told with the line, where the document is looked at as a whole.
    let is_told = |problem: &&Problem| refused.is_some() && REFUSED.contains(&problem.rule);
    for problem in skill.problems.iter().filter(|problem| !is_told(problem)) {
        let fix = problem.fix.as_deref();
        let fix = fix.unwrap_or("correct that line of the document");
        faults.push((problem.to_string(), fix.to_string()));
    }
    faults.extend(refused);
    if let Some(Err(cause)) = venv {
        let (message, fix) = remedy(cause);
        faults.push((message.to_string(), fix.to_string()));
    }
    faults
}

/// The linter's rules that say why `get_skill` refuses a document.
const REFUSED: [&str; 3] = ["large-document", "not-utf8", "unreadable-document"];

/// Why the model cannot have the document of a skill that can be used else.
fn refused(run: &Run, skill: &SkillSummary) -> Option<(String, String)> {
    if !skill.is_usable() {
        return None;
    }
    let opened = run.skills.find(&skill.name).ok()?;
    let told = opened.document().err()?.to_string();
    let problems = check::check(&opened).into_iter();
    let cause = problems
        .filter(|problem| REFUSED.contains(&problem.rule))
        .map(|problem| problem.to_string())
        .next();
    let cause = cause.unwrap_or(told);
    let address = quoted(Path::new(&opened.address));
    Some((
        format!("get_skill refuses its document: {cause}"),
        format!("`skills-runner skills check {address}` tells what to do"),
    ))
}

/// What makes a skill usable: the linter knows it where it knows the cause.
fn remedy_of_unusable(run: &Run, skill: &SkillSummary) -> String {
    const CAUSES: [&str; 3] = ["unreadable-document", "link-outside", "broken-link"];
    if let Some(problem) = &skill.no_skill {
        return problem.fix.clone().unwrap_or_default();
    }
    let opened = run.skills.find_any(&skill.name);
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

/// Some names, and how many more there are.
pub(super) fn names(all: &[&str]) -> String {
    let mut text = all[..all.len().min(limits::NAMES)].join(", ");
    if all.len() > limits::NAMES {
        text.push_str(&format!(" and {} more", all.len() - limits::NAMES));
    }
    text
}
