//! `skills check [NAME]...`: the linter. One line a problem, as compilers
//! write them, so that editors and CI find the place.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::setup::Run;
use crate::cli::skills::json_path;
use crate::cli::skills::skill_json::{ProblemJson, status, unopened};
use crate::cli::skills::{
    SkillSelection, cause, gone, near, print_json, shown_folders, unusable_folder,
};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::order;
use crate::skills::check::{self, Fixed};
use crate::skills::{Catalogue, Problem, Severity, Skill, SkillSummary, Skills};
use crate::text;
use crate::world::output::{Output, Tone};

/// The report for programs.
#[derive(Serialize)]
struct CheckReportJson {
    status: &'static str,
    exit_code: u8,
    /// How many skills were looked at.
    skills: usize,
    errors: usize,
    warnings: usize,
    problems: Vec<LocatedFinding<ProblemJson>>,
    /// What `--fix` mended.
    fixed: Vec<LocatedFinding<FixJson>>,
}

/// A finding and the skill it belongs to.
#[derive(Serialize)]
struct LocatedFinding<T> {
    /// Null: it is about a folder of skills.
    skill: Option<String>,
    /// The skill's folder, absolute; or that folder of skills.
    #[serde(serialize_with = "json_path::path")]
    path: PathBuf,
    #[serde(flatten)]
    found: T,
}

/// What was mended, for programs.
#[derive(Serialize)]
struct FixJson {
    #[serde(serialize_with = "json_path::path")]
    file: PathBuf,
    line: Option<usize>,
    rule: &'static str,
    /// The old value and the new one, where they say different things.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
}

impl From<Fixed> for FixJson {
    fn from(fixed: Fixed) -> FixJson {
        FixJson { file: fixed.file, line: fixed.line, rule: fixed.rule, change: fixed.change }
    }
}

/// A skill, and what is wrong with it.
struct CheckedSkill {
    summary: SkillSummary,
    skill: Option<Skill>,
    problems: Vec<Problem>,
}

/// Looks at these skills, or at all. The status is 1 if there is an error, or
/// something could not be looked at.
pub(super) fn run(
    run: &Run,
    names: &[&str],
    fix: bool,
    is_json: bool,
    output: &mut Output,
) -> Result<u8> {
    let CheckTargets { mut checked, between } = chosen(run, names)?;
    let mut fixed = Vec::new();
    for one in &mut checked {
        run.cancellation.check()?;
        if fix {
            mend(one, &mut fixed);
        }
        if let Some(skill) = &one.skill {
            one.problems.extend(check::check(skill));
        }
    }
    if run.typed.scripts {
        check_python(&mut checked, run)?;
    }
    let report = CheckReportJson::of(checked, between, fixed);
    if is_json {
        print_json(&report, output);
    } else {
        report.print(run, output);
    }
    Ok(report.exit_code)
}

/// What is to be looked at.
#[derive(Default)]
struct CheckTargets {
    checked: Vec<CheckedSkill>,
    /// What is wrong between the skills of whole folders: clashes of names.
    between: Vec<Problem>,
}

/// The skills that were named, each once, in the order of their folders.
fn chosen(run: &Run, names: &[&str]) -> Result<CheckTargets> {
    let mut chosen = CheckTargets::default();
    if names.is_empty() {
        chosen.add_all(&run.skills)?;
    }
    for name in names {
        let place = SkillSelection::of(name, run)?;
        if place.name.is_none() {
            chosen.add_all(&place.skills)?;
        } else {
            chosen.add_one(&place)?;
        }
    }
    let checked = &mut chosen.checked;
    order::sort_by(checked, &|a, b| a.summary.path.cmp(&b.summary.path));
    checked.dedup_by(|a, b| a.summary.path == b.summary.path);
    Ok(chosen)
}

impl CheckTargets {
    /// All skills of the folders, and what is wrong with these.
    fn add_all(&mut self, skills: &Skills) -> Result<()> {
        let catalogue = skills.catalogue();
        let between = check::between(&catalogue);
        let is_empty = catalogue.skills.is_empty() && catalogue.faults.is_empty();
        if is_empty {
            return Err(nothing(skills, &catalogue));
        }
        self.between.extend(between);
        for summary in catalogue.skills {
            self.checked.push(CheckedSkill::open(summary, skills));
        }
        Ok(())
    }

    /// The skill that was named.
    fn add_one(&mut self, place: &SkillSelection) -> Result<()> {
        let catalogue = place.skills.catalogue();
        let named = place.name.as_deref().and_then(|name| catalogue.named(name));
        let is_none = |summary: &&SkillSummary| summary.no_skill.is_some();
        let summary = match named.filter(is_none) {
            Some(summary) => summary,
            None => {
                let name = place.skill()?.name;
                catalogue.named(&name).ok_or_else(|| gone(&name))?
            }
        };
        self.checked.push(CheckedSkill::open(summary.clone(), &place.skills));
        Ok(())
    }
}

impl CheckedSkill {
    fn open(summary: SkillSummary, skills: &Skills) -> CheckedSkill {
        let (skill, problems) = match skills.find_any(&summary.name) {
            Ok(skill) => (Some(skill), Vec::new()),
            Err(fault) => (None, vec![unopened(&summary, fault)]),
        };
        CheckedSkill { summary, skill, problems }
    }
}

/// A linter that looks at nothing must not be green.
fn nothing(skills: &Skills, catalogue: &Catalogue) -> Error {
    match unusable_folder(catalogue) {
        Some(problem) => cause("failed to check", problem),
        None => Error::new(
            ErrorKind::Io,
            format!("failed to check: there is no skill in {}", shown_folders(skills)),
        )
        .with_hint("--skills DIR names a folder of skills"),
    }
}

fn mend(checked: &mut CheckedSkill, fixed: &mut Vec<LocatedFinding<FixJson>>) {
    let Some(skill) = &checked.skill else {
        return;
    };
    match check::fix(skill) {
        Ok(mended) => fixed.extend(mended.into_iter().map(|one| LocatedFinding {
            skill: Some(skill.name.clone()),
            path: checked.summary.path.clone(),
            found: FixJson::from(one),
        })),
        Err(problem) => checked.problems.push(problem),
    }
}

/// What the interpreters say, each asked once for all its skills.
fn check_python(checked: &mut [CheckedSkill], run: &Run) -> Result<()> {
    let skills: Vec<&Skill> = checked.iter().filter_map(|one| one.skill.as_ref()).collect();
    let found =
        check::python(&skills, &run.config.scripts, run.skills.folders(), &run.cancellation);
    run.cancellation.check()?;
    let found = found.map_err(|cause| {
        Error::new(ErrorKind::Io, format!("failed to look at the skills' Python: {cause}"))
    })?;
    let with_skill = checked.iter_mut().filter(|one| one.skill.is_some());
    for (one, problems) in with_skill.zip(found) {
        one.problems.extend(problems);
    }
    Ok(())
}

impl CheckReportJson {
    fn of(
        checked: Vec<CheckedSkill>,
        between: Vec<Problem>,
        fixed: Vec<LocatedFinding<FixJson>>,
    ) -> CheckReportJson {
        let severities =
            || checked.iter().flat_map(|one| &one.problems).chain(&between).map(|p| p.severity);
        let errors = severities().filter(|severity| *severity == Severity::Error);
        let errors = errors.count();
        let mut report = CheckReportJson {
            status: status(severities()),
            exit_code: u8::from(errors > 0),
            skills: checked.len(),
            errors,
            warnings: severities().count() - errors,
            problems: Vec::new(),
            fixed,
        };
        for mut problem in between {
            report.problems.push(LocatedFinding {
                skill: None,
                path: std::mem::take(&mut problem.file),
                found: ProblemJson::from(problem),
            });
        }
        for one in checked {
            for problem in one.problems {
                report.problems.push(LocatedFinding {
                    skill: Some(one.summary.name.clone()),
                    path: one.summary.path.clone(),
                    found: ProblemJson::from(problem),
                });
            }
        }
        report
    }

    fn print(&self, run: &Run, output: &mut Output) {
        for one in &self.fixed {
            let place = one.place(Some(&one.found.file), one.found.line, &run.folder);
            let change = one.found.change.as_ref();
            let change = change.map_or(String::new(), |change| format!(" ({change})"));
            output.note(&format!("mended {place}: {}{change}", one.found.rule));
        }
        for one in &self.problems {
            let problem = &one.found;
            let place = one.place(problem.file.as_deref(), problem.line, &run.folder);
            let tone = match problem.severity {
                "error" => Tone::Bad,
                _ => Tone::Doubtful,
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

impl<T> LocatedFinding<T> {
    /// `path:line`, as editors read it.
    fn place(&self, file: Option<&Path>, line: Option<usize>, folder: &Path) -> String {
        let path = match file {
            Some(file) => self.path.join(file),
            None => self.path.clone(),
        };
        let path = text::one_name(&near(&path, folder).to_string_lossy());
        match line {
            Some(line) => format!("{path}:{line}"),
            None => path,
        }
    }
}
