//! `skills check [NAME]...`: the linter. It prints one line per problem, in the format of
//! compilers, so that editors and CI find the place.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::folders::shown_folders;
use crate::cli::run::Run;
use crate::cli::skills::json::{self, print_json};
use crate::cli::skills::selection::{SkillSelection, deleted_error, folder_error, unusable_folder};
use crate::cli::skills::skill_json::{ProblemJson, unopened_problem, worst_status};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::skills::{Catalogue, Problem, Severity, Skill, SkillSummary, Skills, check};
use crate::text;
use crate::world::output::{Output, Tone};

/// The report in JSON output.
#[derive(Serialize)]
struct CheckReportJson {
    status: &'static str,
    exit_code: u8,
    /// The number of checked skills.
    skills: usize,
    errors: usize,
    warnings: usize,
    problems: Vec<LocatedProblem>,
}

/// A problem with the skill that it belongs to.
#[derive(Serialize)]
struct LocatedProblem {
    /// Null: it belongs to a skills folder.
    skill: Option<String>,
    /// The folder of the skill, or the skills folder; absolute.
    #[serde(serialize_with = "json::path")]
    path: PathBuf,
    #[serde(flatten)]
    problem: ProblemJson,
}

/// A skill and its problems.
struct CheckedSkill {
    summary: SkillSummary,
    skill: Option<Skill>,
    problems: Vec<Problem>,
}

/// Checks these skills, or all. The status is 1 if there is an error, or if something could not
/// be checked.
pub(super) fn run(run: &Run, names: &[String], is_json: bool, output: &mut Output) -> Result<u8> {
    let CheckTargets { mut checked, folder_problems } = select_targets(run, names)?;
    for one in &mut checked {
        run.cancellation.check()?;
        if let Some(skill) = &one.skill {
            one.problems.extend(check::check(skill));
        }
    }
    if run.options.scripts {
        check_python(&mut checked, run)?;
    }
    let report = CheckReportJson::new(checked, folder_problems);
    if is_json {
        print_json(&report, output);
    } else {
        report.print(run, output);
    }
    Ok(report.exit_code)
}

/// The skills to check.
#[derive(Default)]
struct CheckTargets {
    checked: Vec<CheckedSkill>,
    /// Problems of whole skills folders, such as clashes of names.
    folder_problems: Vec<Problem>,
}

/// The selected skills without duplicates, ordered by path.
fn select_targets(run: &Run, names: &[String]) -> Result<CheckTargets> {
    let mut chosen = CheckTargets::default();
    if names.is_empty() {
        chosen.add_all(&run.skills)?;
    }
    for name in names {
        let selection = SkillSelection::parse(name, run)?;
        if selection.name.is_none() {
            chosen.add_all(&selection.skills)?;
        } else {
            chosen.add_one(&selection)?;
        }
    }
    let checked = &mut chosen.checked;
    checked.sort_by(|a, b| a.summary.path.cmp(&b.summary.path));
    checked.dedup_by(|a, b| a.summary.path == b.summary.path);
    Ok(chosen)
}

impl CheckTargets {
    /// Adds all skills of the folders, and the problems of the folders.
    fn add_all(&mut self, skills: &Skills) -> Result<()> {
        let catalogue = skills.catalogue();
        let folder_problems = check::check_catalogue(&catalogue);
        let is_empty = catalogue.skills.is_empty() && catalogue.folder_errors.is_empty();
        if is_empty {
            return Err(no_skills_error(skills, &catalogue));
        }
        self.folder_problems.extend(folder_problems);
        for summary in catalogue.skills {
            self.checked.push(CheckedSkill::open(summary, skills));
        }
        Ok(())
    }

    /// Adds the selected skill, or the folder of this name that is not a skill.
    fn add_one(&mut self, selection: &SkillSelection) -> Result<()> {
        let catalogue = selection.skills.catalogue();
        let named = selection.name.as_deref().and_then(|name| catalogue.skill_named(name));
        let is_not_a_skill = |summary: &&SkillSummary| summary.not_a_skill.is_some();
        let summary = match named.filter(is_not_a_skill) {
            Some(summary) => summary,
            None => {
                let name = selection.skill()?.name;
                catalogue.skill_named(&name).ok_or_else(|| deleted_error(&name))?
            }
        };
        self.checked.push(CheckedSkill::open(summary.clone(), &selection.skills));
        Ok(())
    }
}

impl CheckedSkill {
    fn open(summary: SkillSummary, skills: &Skills) -> CheckedSkill {
        let (skill, problems) = match skills.open_listed(&summary) {
            Ok(skill) => (Some(skill), Vec::new()),
            Err(error) => (None, vec![unopened_problem(&summary, error)]),
        };
        CheckedSkill { summary, skill, problems }
    }
}

/// The error if there is nothing to check: a linter without input must not succeed.
fn no_skills_error(skills: &Skills, catalogue: &Catalogue) -> Error {
    match unusable_folder(catalogue) {
        Some(problem) => folder_error("failed to check", problem),
        None => Error::new(
            ErrorKind::Io,
            format!("failed to check: there are no skills in {}", shown_folders(skills)),
        )
        .with_hint("use --skills DIR"),
    }
}

/// Adds the problems that the Python interpreters find; each interpreter is started once.
fn check_python(checked: &mut [CheckedSkill], run: &Run) -> Result<()> {
    let skills: Vec<&Skill> = checked.iter().filter_map(|one| one.skill.as_ref()).collect();
    let found =
        check::check_python(&skills, &run.config.scripts, run.skills.folders(), &run.cancellation);
    run.cancellation.check()?;
    let found = found.map_err(|cause| {
        Error::new(ErrorKind::Io, format!("failed to check the skills' Python: {cause}"))
    })?;
    let with_skill = checked.iter_mut().filter(|one| one.skill.is_some());
    for (one, problems) in with_skill.zip(found) {
        one.problems.extend(problems);
    }
    Ok(())
}

impl CheckReportJson {
    fn new(checked: Vec<CheckedSkill>, folder_problems: Vec<Problem>) -> CheckReportJson {
        let severities = || {
            checked.iter().flat_map(|one| &one.problems).chain(&folder_problems).map(|p| p.severity)
        };
        let errors = severities().filter(|severity| *severity == Severity::Error);
        let errors = errors.count();
        let mut report = CheckReportJson {
            status: worst_status(severities()),
            exit_code: u8::from(errors > 0),
            skills: checked.len(),
            errors,
            warnings: severities().count() - errors,
            problems: Vec::new(),
        };
        for mut problem in folder_problems {
            report.problems.push(LocatedProblem {
                skill: None,
                path: std::mem::take(&mut problem.file),
                problem: ProblemJson::from(problem),
            });
        }
        for one in checked {
            for problem in one.problems {
                report.problems.push(LocatedProblem {
                    skill: Some(one.summary.name.clone()),
                    path: one.summary.path.clone(),
                    problem: ProblemJson::from(problem),
                });
            }
        }
        report
    }

    fn print(&self, run: &Run, output: &mut Output) {
        for one in &self.problems {
            let problem = &one.problem;
            let place = one.place(run);
            let tone = match problem.severity {
                "error" => Tone::Bad,
                _ => Tone::Warning,
            };
            let message = text::one_line(&problem.message, limits::LINE_BYTES);
            output.print_located(
                &format!("{place}: "),
                problem.severity,
                tone,
                &format!("[{}]: {message}", problem.rule),
            );
            if let Some(fix) = &problem.fix {
                output.print(&format!("  fix: {}", text::one_line(fix, limits::LINE_BYTES)));
            }
        }
        output.note(&format!(
            "{} checked: {}, {}",
            text::counted(self.skills, "skill"),
            text::counted(self.errors, "error"),
            text::counted(self.warnings, "warning")
        ));
    }
}

impl LocatedProblem {
    /// The place as `path:line`, which editors can open.
    fn place(&self, run: &Run) -> String {
        let path = match &self.problem.file {
            Some(file) => self.path.join(file),
            None => self.path.clone(),
        };
        let path = text::one_line_name(&run.short_path(&path).to_string_lossy());
        match self.problem.line {
            Some(line) => format!("{path}:{line}"),
            None => path,
        }
    }
}
