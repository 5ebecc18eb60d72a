//! A skill as `skills list` and `skills show` tell it.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::setup::Run;
use crate::cli::skills::json_path;
use crate::skills::python::Interpreter;
use crate::skills::{Problem, Severity, SkillSummary, Skills, check, venv};

/// A skill for programs; the fields of the interface, in their order.
#[derive(Debug, Serialize)]
pub(super) struct SkillJson {
    /// The folder's name.
    pub name: String,
    /// From the frontmatter, or the document's first line of text.
    pub description: String,
    /// The skill's folder, absolute.
    #[serde(serialize_with = "json_path::path")]
    pub path: PathBuf,
    /// The document's file name, in its letter case; null: there is none.
    pub document: Option<String>,
    /// The skill's own environment; null: it has none.
    #[serde(serialize_with = "json_path::option")]
    pub venv: Option<PathBuf>,
    /// The interpreter that its scripts run with; null: none.
    #[serde(serialize_with = "json_path::option")]
    pub python: Option<PathBuf>,
    /// `ok`; `warning`: it works, and has problems; `error`: it cannot be used,
    /// or its venv is broken.
    pub status: &'static str,
    /// What is wrong with it: all that `check` finds without starting a Python.
    pub problems: Vec<ProblemJson>,
    /// Why it cannot be used.
    #[serde(skip)]
    pub fault: Option<String>,
    /// How a command names it.
    #[serde(skip)]
    pub address: String,
}

/// A problem for programs.
#[derive(Debug, Serialize)]
pub(super) struct ProblemJson {
    /// Relative to the skill's folder; null: the folder itself.
    #[serde(serialize_with = "json_path::option")]
    pub file: Option<PathBuf>,
    /// Counted from 1; null: it belongs to no line.
    pub line: Option<usize>,
    /// The rule's stable name.
    pub rule: &'static str,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// Rules whose breach leaves a skill without a document.
const UNUSABLE: [&str; 5] =
    ["no-document", "link-above", "unreadable-document", "unreadable-file", "name-not-utf8"];

impl SkillJson {
    /// Looks at one skill of a catalogue.
    pub(super) fn of(summary: &SkillSummary, skills: &Skills, run: &Run) -> SkillJson {
        let mut document = None;
        let mut venv = None;
        let mut python = None;
        let mut is_broken = summary.fault.is_some();
        let mut problems = match skills.find_any(&summary.name) {
            Ok(skill) => {
                let mut problems = check::check(&skill);
                match skill.document_name() {
                    Ok(name) => document = Some(name),
                    // It was there when the catalogue was made.
                    Err(told) if summary.fault.is_none() => {
                        is_broken = true;
                        problems.push(unopened(summary, told));
                    }
                    Err(_) => {}
                }
                match Interpreter::of(&skill, &run.config.scripts) {
                    Ok(interpreter) => {
                        venv = interpreter.venv;
                        python = Some(interpreter.program);
                    }
                    Err(reason) => {
                        venv = venv::of_skill(&summary.path);
                        // Without scripts nobody misses an interpreter.
                        if venv.is_some() {
                            is_broken = true;
                            problems.extend(check::refused(&skill, &reason));
                        }
                    }
                }
                problems
            }
            Err(fault) => {
                is_broken = true;
                vec![unopened(summary, fault)]
            }
        };
        // What kept the catalogue from it may have passed: it is told all the same.
        if let Some(fault) = &summary.fault
            && !problems.iter().any(|problem| UNUSABLE.contains(&problem.rule))
        {
            problems.push(unopened(summary, fault.clone()));
        }
        SkillJson {
            name: summary.name.clone(),
            description: summary.description.clone(),
            path: summary.path.clone(),
            document,
            venv,
            python,
            status: match problems.as_slice() {
                _ if is_broken => "error",
                [] => "ok",
                _ => "warning",
            },
            problems: problems.into_iter().map(ProblemJson::from).collect(),
            fault: summary.fault.clone(),
            address: skills.address(&summary.name, &summary.path),
        }
    }
}

impl From<Problem> for ProblemJson {
    fn from(problem: Problem) -> ProblemJson {
        let is_folder = problem.file.as_os_str().is_empty();
        ProblemJson {
            file: (!is_folder).then_some(problem.file),
            line: problem.line,
            rule: problem.rule,
            severity: severity_name(problem.severity),
            message: problem.message,
            fix: problem.fix,
        }
    }
}

/// The worst of some problems, in a word.
pub(super) fn status(severities: impl Iterator<Item = Severity>) -> &'static str {
    let mut worst = "ok";
    for severity in severities {
        if severity == Severity::Error {
            return "error";
        }
        worst = "warning";
    }
    worst
}

/// How bad a problem is, in a word.
pub(super) fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// What is wrong with a skill whose folder cannot be opened, or with a folder that is
/// no skill: `told` is what a model reads.
pub(super) fn unopened(summary: &SkillSummary, told: String) -> Problem {
    if let Some(problem) = &summary.no_skill {
        return problem.clone();
    }
    let message = summary.fault.clone().unwrap_or(told);
    Problem {
        file: PathBuf::new(),
        line: None,
        rule: "unreadable-file",
        severity: Severity::Error,
        message,
        fix: None,
    }
}
