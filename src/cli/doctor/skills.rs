//! The check of the skills: which are usable, and what keeps the others from working. All problems
//! are those that `skills check` finds.

use serde_json::{Value, json};

use crate::cli::doctor::report::DoctorCheck;
use crate::cli::folders::shown_folders;
use crate::cli::run::Run;
use base::error::Fault;
use base::limits;
use base::text;
use skills::check::{self, CheckedSkill};
use skills::python::Interpreter;
use skills::{
    Catalogue, FolderSummary, Problem, ProblemCounts, Rule, Severity, SkillSummary, venv,
};

/// Whether the skill's venv works; `None`: it has none.
pub(super) fn has_working_venv(run: &Run, skill: &SkillSummary) -> Option<bool> {
    let skill = run.skills.open_listed(skill).ok()?;
    venv::path_in_skill(&skill.path)?;
    Some(Interpreter::for_skill(&skill, &run.config.scripts).is_ok())
}

/// The check of the skills: their number, their errors, and what they lack on this machine.
pub(super) fn skills(run: &Run, catalogue: &Catalogue) -> DoctorCheck {
    let mut check = headline(run, catalogue);
    let checked = checked_skills(run, catalogue);
    let of_folders = check::check_catalogue(catalogue);
    let all = checked.iter().flat_map(|one| &one.problems).chain(&of_folders);
    let counts = ProblemCounts::of(all);
    if counts.worst().is_some() {
        check.add_line(format!("{counts}: `{}` lists them", run.skills_command("check")));
    }
    let clashes = catalogue.problems.iter().map(|problem| fault(problem.to_string(), problem));
    let faults = clashes.chain(checked.iter().flat_map(skill_faults));
    for Fault { message, fix } in faults.take(limits::LISTED_NAMES) {
        let fix = fix.unwrap_or_else(|| "correct that line".into());
        check.add_warning(message, fix);
    }
    let rows = checked.iter().map(|one| {
        let name = &one.summary.name;
        json!({
            "name": name,
            "usable": one.summary.error.is_none(),
            "venv": has_working_venv(run, &one.summary),
            "problems": one.problems.iter().map(Problem::to_string).collect::<Vec<_>>(),
        })
    });
    let folders = catalogue.folders.iter().map(|FolderSummary { folder, skills }| {
        json!({"path": folder.path, "named": folder.is_named(), "skills": skills})
    });
    let problems = catalogue.problems.iter().map(Problem::to_string);
    let rows = rows.collect();
    check
        .with_detail("folders", folders.collect::<Vec<_>>())
        .with_detail("problems", problems.collect::<Vec<_>>())
        .with_detail("skills", Value::Array(rows))
}

/// All skills with their problems, as `skills check` finds them.
fn checked_skills(run: &Run, catalogue: &Catalogue) -> Vec<CheckedSkill> {
    let skills = catalogue.skills.iter();
    let mut checked: Vec<CheckedSkill> =
        skills.map(|skill| CheckedSkill::open(skill.clone(), &run.skills)).collect();
    let (scripts, folders) = (&run.config.scripts, run.skills.folders());
    // After a cancellation the report ends early.
    let _ = check::add_python_problems(&mut checked, scripts, folders, &run.cancellation);
    checked
}

/// The number of skills, and the problems of their folders.
fn headline(run: &Run, catalogue: &Catalogue) -> DoctorCheck {
    const NAME: &str = "skills";
    let place = shown_folders(&run.skills);
    let offered = catalogue.skills.iter().filter(|skill| skill.is_offered);
    let all = offered.count();
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
            skills
        } else {
            format!("{} of {skills} can be used", usable.len())
        };
        let mut check = DoctorCheck::ok(NAME, message);
        for FolderSummary { folder, skills } in &catalogue.folders {
            check.add_line(format!("{skills} in {}", folder.path.display()));
        }
        check.add_line(text::first_names(&usable));
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

/// Returns the faults of a skill here: its errors, and what this machine lacks. That there is no
/// Python is reported by the check of Python.
fn skill_faults(checked: &CheckedSkill) -> Vec<Fault> {
    let name = checked.summary.display_name();
    let mut errors = checked.problems.iter().filter(|it| it.severity == Severity::Error);
    if let Some(error) = &checked.summary.error {
        let fix = errors.next().and_then(|problem| problem.fix.clone()).unwrap_or_else(|| {
            "write its SKILL.md, or move the folder out of the skills folder".to_string()
        });
        return vec![Fault::new(format!("`{name}`: cannot be used: {error}"), fix)];
    }
    let lacks = checked.problems.iter().filter(|it| it.rule.is_lack());
    let lacks = lacks.filter(|it| it.rule != Rule::NoPython);
    let found = errors.chain(lacks).map(|problem| {
        // What one command installs or creates is of no single file.
        let is_of_setup = problem.rule.is_lack() || problem.rule == Rule::BrokenVenv;
        let text = if is_of_setup { problem.message.clone() } else { problem.to_string() };
        fault(format!("`{name}`: {text}"), problem)
    });
    found.collect()
}
