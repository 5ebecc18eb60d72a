//! `skills check [NAME]...`: the linter. It prints one line per problem, in the format of
//! compilers, so that editors and CI find the place.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::folders::shown_folders;
use crate::cli::options::CheckCommand;
use crate::cli::run::Run;
use crate::cli::skills::json::{self, print_json};
use crate::cli::skills::selection::SkillSelection;
use crate::cli::skills::skill_json::{ProblemJson, status_name};
use crate::ui::{Output, Tone};
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::text;
use skills::check::{self, CheckedSkill};
use skills::{Problem, ProblemCounts, Severity, SkillSummary, Skills};

/// The report in JSON output.
#[derive(Serialize)]
struct CheckReportJson {
    status: &'static str,
    exit_code: u8,
    /// The number of checked skills.
    skills: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
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

/// Checks these skills, or all. The status is 1 if there is an error, or if something could not
/// be checked.
pub(super) fn run(
    run: &Run,
    command: &CheckCommand,
    is_json: bool,
    output: &mut Output,
) -> Result<u8> {
    let CheckTargets { targets, folder_problems } = select_targets(run, &command.names)?;
    let mut checked = check_all(targets, run)?;
    if command.here {
        let lacks = checked.iter_mut().flat_map(|one| &mut one.problems);
        lacks.filter(|it| it.rule.is_lack()).for_each(|it| it.severity = Severity::Error);
    }
    let mut report = CheckReportJson::new(checked, folder_problems);
    // A linter without input must not succeed.
    if report.errors > 0 || report.skills == 0 || (command.strict && report.warnings > 0) {
        report.exit_code = 1;
    }
    if is_json {
        print_json(&report, output);
    } else {
        report.print(run, output);
    }
    Ok(report.exit_code)
}

/// The skills to check, each with the folders that it was found in.
#[derive(Default)]
struct CheckTargets {
    targets: Vec<(SkillSummary, Skills)>,
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
    let targets = &mut chosen.targets;
    targets.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    targets.dedup_by(|(a, _), (b, _)| a.path == b.path);
    Ok(chosen)
}

impl CheckTargets {
    /// Adds all skills of the folders, and the problems of the folders.
    fn add_all(&mut self, skills: &Skills) -> Result<()> {
        let catalogue = skills.catalogue();
        let folder_problems = check::check_catalogue(&catalogue);
        if catalogue.skills.is_empty() && folder_problems.is_empty() {
            let message =
                format!("failed to check: there are no skills in {}", shown_folders(skills));
            return Err(Error::new(ErrorKind::Io, message).with_hint("use --skills DIR"));
        }
        self.folder_problems.extend(folder_problems);
        let found = catalogue.skills.into_iter();
        self.targets.extend(found.map(|summary| (summary, skills.clone())));
        Ok(())
    }

    /// Adds the selected skill.
    fn add_one(&mut self, selection: &SkillSelection) -> Result<()> {
        self.targets.push(selection.entry(&selection.skill()?)?);
        Ok(())
    }
}

/// Checks skills, and with `--no-scripts` everything except their Python.
pub(super) fn check_all(
    targets: impl IntoIterator<Item = (SkillSummary, Skills)>,
    run: &Run,
) -> Result<Vec<CheckedSkill>> {
    let mut checked = Vec::new();
    for (summary, skills) in targets {
        run.cancellation.check()?;
        checked.push(CheckedSkill::open(summary, &skills));
    }
    if run.options.scripts {
        let (scripts, folders) = (&run.config.scripts, run.skills.folders());
        let done = check::add_python_problems(&mut checked, scripts, folders, &run.cancellation);
        run.cancellation.check()?;
        done.map_err(|cause| {
            Error::new(ErrorKind::Io, format!("failed to check the skills' Python: {cause}"))
        })?;
    }
    Ok(checked)
}

impl CheckReportJson {
    fn new(checked: Vec<CheckedSkill>, folder_problems: Vec<Problem>) -> CheckReportJson {
        let problems = checked.iter().flat_map(|one| &one.problems).chain(&folder_problems);
        let counts = ProblemCounts::of(problems);
        let mut report = CheckReportJson {
            status: status_name(counts),
            exit_code: 0,
            skills: checked.iter().filter(|one| one.summary.not_a_skill.is_none()).count(),
            errors: counts.errors,
            warnings: counts.warnings,
            notes: counts.notes,
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
                "warning" => Tone::Warning,
                _ => Tone::Neutral,
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
        let CheckReportJson { errors, warnings, notes, .. } = *self;
        let counts = ProblemCounts { errors, warnings, notes };
        output.note(&format!("{} checked: {counts}", text::counted(self.skills, "skill")));
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
