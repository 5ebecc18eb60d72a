//! A skill as `skills list` and `skills show` tell it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::setup::Run;
use crate::skills::python::Interpreter;
use crate::skills::{Problem, Severity, Skills, Summary};

/// A skill for programs; the fields of the interface, in their order.
#[derive(Debug, Serialize)]
pub struct View {
    /// The folder's name.
    pub name: String,
    /// From the frontmatter, or the document's first line of text.
    pub description: String,
    /// The skill's folder, absolute.
    pub path: PathBuf,
    /// The document's file name, in its letter case; null: there is none.
    pub document: Option<String>,
    /// The skill's own environment; null: it has none.
    pub venv: Option<PathBuf>,
    /// The interpreter that its scripts run with; null: none.
    pub python: Option<PathBuf>,
    /// `ok`, `warning`, or `error`: it cannot be used, or a part of it cannot.
    pub status: &'static str,
    /// What is wrong with it.
    pub problems: Vec<ProblemView>,
    /// Why it cannot be used; among the problems too.
    #[serde(skip)]
    pub fault: Option<String>,
}

/// A problem for programs.
#[derive(Debug, Serialize)]
pub struct ProblemView {
    /// Relative to the skill's folder; null: the folder itself.
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

impl View {
    /// Looks at one skill of a catalogue.
    pub fn of(summary: &Summary, skills: &Skills, run: &Run) -> View {
        let mut problems: Vec<Problem> = summary.problems.clone();
        if let Some(fault) = &summary.fault {
            problems.insert(0, unusable(fault));
        }
        let skill = skills.find(&summary.name).ok();
        let document = skill.as_ref().and_then(|skill| skill.document_name().ok());
        let mut venv = None;
        let mut python = None;
        match skill.map(|skill| Interpreter::of(&skill, &run.config.scripts)) {
            Some(Ok(interpreter)) => {
                venv = interpreter.venv;
                python = Some(interpreter.program);
            }
            Some(Err(fault)) => {
                venv = own_venv(&summary.path);
                // Without scripts nobody misses an interpreter.
                if venv.is_some() {
                    problems.push(broken_venv(fault));
                }
            }
            None => {}
        }
        View {
            name: summary.name.clone(),
            description: summary.description.clone(),
            path: summary.path.clone(),
            document,
            venv,
            python,
            status: status(problems.iter().map(|problem| problem.severity)),
            problems: problems.into_iter().map(ProblemView::from).collect(),
            fault: summary.fault.clone(),
        }
    }
}

impl From<Problem> for ProblemView {
    fn from(problem: Problem) -> ProblemView {
        let is_folder = problem.file.as_os_str().is_empty();
        ProblemView {
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
pub fn status(severities: impl Iterator<Item = Severity>) -> &'static str {
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
pub fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn own_venv(skill: &Path) -> Option<PathBuf> {
    let places = ["venv", ".venv"].map(|name| skill.join(name));
    places
        .into_iter()
        .find(|venv| venv.symlink_metadata().is_ok())
}

fn unusable(fault: &str) -> Problem {
    Problem {
        file: PathBuf::new(),
        line: None,
        rule: "unusable",
        severity: Severity::Error,
        message: format!("cannot be used: {fault}"),
        fix: None,
    }
}

fn broken_venv(fault: String) -> Problem {
    Problem {
        file: PathBuf::new(),
        line: None,
        rule: "broken-venv",
        severity: Severity::Error,
        message: fault,
        fix: None,
    }
}
