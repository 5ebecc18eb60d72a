//! A skill of a catalogue with all its problems. Every command that counts problems takes them
//! from here, so that all count alike.

use super::{check, check_python};
use crate::needs::{NamedNeeds, Needs};
use crate::packages::any_module_of;
use crate::{Problem, Rule, Skill, SkillSummary, Skills};
use crate::{ScriptSettings, SkillsFolder};
use host::cancellation::Cancellation;

/// A skill of a catalogue, and its problems.
#[derive(Debug)]
pub struct CheckedSkill {
    /// Its entry in the catalogue.
    pub summary: SkillSummary,
    /// The opened skill; `None`: it cannot be opened, or is not a skill.
    pub skill: Option<Skill>,
    /// Its problems, sorted by file and line.
    pub problems: Vec<Problem>,
    /// Its needs.
    pub needs: Needs,
}

impl CheckedSkill {
    /// Checks everything except Python.
    pub fn open(summary: SkillSummary, skills: &Skills) -> CheckedSkill {
        let (skill, mut problems) = match skills.open_listed(&summary) {
            Ok(skill) => {
                let problems = check(&skill);
                (Some(skill), problems)
            }
            Err(error) => (None, vec![unopened_problem(&summary, error)]),
        };
        // The problem of the catalogue may have disappeared since.
        if let (Some(error), true) = (&summary.error, problems.is_empty()) {
            problems.push(unopened_problem(&summary, error.clone()));
        }
        let needs = skill.as_ref().map(Needs::of).unwrap_or_default();
        CheckedSkill { summary, skill, problems, needs }
    }
}

/// The problem of a skill whose folder cannot be opened, or of a folder that is not a skill.
/// `message_for_model` is the message, used if there is no other.
fn unopened_problem(summary: &SkillSummary, message_for_model: String) -> Problem {
    if let Some(problem) = &summary.not_a_skill {
        return problem.clone();
    }
    let message = summary.error.clone().unwrap_or(message_for_model);
    Problem::new(summary.error_rule, "", message)
}

/// Adds the Python problems of the skills, and what this machine lacks for them; every interpreter
/// is started once.
///
/// # Errors
///
/// The run was cancelled; the text says why.
pub fn add_python_problems(
    checked: &mut [CheckedSkill],
    scripts: &ScriptSettings,
    skills_folders: &[SkillsFolder],
    cancellation: &Cancellation,
) -> Result<(), String> {
    let skills: Vec<&Skill> = checked.iter().filter_map(|one| one.skill.as_ref()).collect();
    let found = check_python(&skills, scripts, skills_folders, cancellation)?;
    let with_skill = checked.iter_mut().filter(|one| one.skill.is_some());
    for (one, problems) in with_skill.zip(found) {
        one.problems.extend(problems);
        if let Some(skill) = &one.skill {
            let missing = one.needs.named.missing(skill, scripts);
            let problem = missing_need(missing, &one.problems);
            one.problems.extend(problem);
        }
        one.problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    }
    Ok(())
}

/// Rules whose problems mean that all Python packages may be missing.
const NO_PACKAGES: [Rule; 4] =
    [Rule::NoPython, Rule::BrokenVenv, Rule::StaleVenv, Rule::MissingVenv];

/// The problem of a skill for which this machine lacks something, without the Python packages that
/// other problems are about.
fn missing_need(mut missing: NamedNeeds, problems: &[Problem]) -> Option<Problem> {
    if problems.iter().any(|problem| NO_PACKAGES.contains(&problem.rule)) {
        missing.python.clear();
    }
    let is_named = |module: &str| {
        let quoted = format!("`{module}`");
        problems.iter().any(|problem| problem.message.contains(&quoted))
    };
    missing.python.retain(|package| !any_module_of(package, is_named));
    let kinds = missing.kinds().into_iter().map(|(kind, names)| format!("{kind} {names}"));
    let list = kinds.collect::<Vec<_>>().join("; ");
    let message = || format!("it names what is not here: {list}");
    (!list.is_empty()).then(|| Problem::new(Rule::MissingNeed, "", message()))
}
