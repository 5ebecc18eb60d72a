//! The JSON form of a skill, for `skills list` and `skills show`.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::run::Run;
use crate::cli::skills::json;
use crate::skills::python::Interpreter;
use crate::skills::{Problem, Rule, Severity, SkillSummary, Skills, check, venv};

/// A skill in JSON output, with its fields in the documented order.
#[derive(Debug, Serialize)]
pub(super) struct SkillJson {
    /// The folder's name.
    pub name: String,
    /// From the frontmatter, or the document's first line of text.
    pub description: String,
    /// The skill's folder, absolute.
    #[serde(serialize_with = "json::path")]
    pub path: PathBuf,
    /// The document's file name in its own letter case; null: there is none.
    pub document: Option<String>,
    /// The skill's venv; null: it has none.
    #[serde(serialize_with = "json::option")]
    pub venv: Option<PathBuf>,
    /// The interpreter of its scripts; null: none.
    #[serde(serialize_with = "json::option")]
    pub python: Option<PathBuf>,
    /// `ok`; `warning`: it works, and has problems; `error`: it cannot be used,
    /// or its venv is broken.
    pub status: &'static str,
    /// All problems that `check` finds without starting Python.
    pub problems: Vec<ProblemJson>,
    /// Why the skill cannot be used.
    #[serde(skip)]
    pub error: Option<String>,
    /// The argument that selects the skill in commands.
    #[serde(skip)]
    pub address: String,
}

/// A problem in JSON output.
#[derive(Debug, Serialize)]
pub(super) struct ProblemJson {
    /// Relative to the skill's folder; null: the folder itself.
    #[serde(serialize_with = "json::option")]
    pub file: Option<PathBuf>,
    /// Counted from 1; null: the problem has no line.
    pub line: Option<usize>,
    /// The rule's stable name.
    pub rule: &'static str,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// The problem.
    pub message: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// Rules that report a skill without a readable document.
const UNUSABLE: [Rule; 5] = [
    Rule::NoDocument,
    Rule::LinkAbove,
    Rule::UnreadableDocument,
    Rule::UnreadableFile,
    Rule::NameNotUtf8,
];

impl SkillJson {
    /// Examines one skill of a catalogue.
    pub(super) fn new(summary: &SkillSummary, skills: &Skills, run: &Run) -> SkillJson {
        let mut document = None;
        let mut venv = None;
        let mut python = None;
        let mut is_broken = summary.error.is_some();
        let mut problems = match skills.open_listed(summary) {
            Ok(skill) => {
                let mut problems = check::check(&skill);
                match skill.document_file_name() {
                    Ok(name) => document = Some(name),
                    // The document disappeared after the catalogue was read.
                    Err(message_for_model) if summary.error.is_none() => {
                        is_broken = true;
                        problems.push(unopened_problem(summary, message_for_model));
                    }
                    Err(_) => {}
                }
                match Interpreter::for_skill(&skill, &run.config.scripts) {
                    Ok(interpreter) => {
                        venv = interpreter.venv;
                        python = Some(interpreter.program);
                    }
                    Err(error) => {
                        venv = venv::path_in_skill(&summary.path);
                        // Without a venv, a missing interpreter is no problem of the skill.
                        if venv.is_some() {
                            is_broken = true;
                            problems.push(check::without_interpreter(&skill, &error));
                        }
                    }
                }
                problems
            }
            Err(error) => {
                is_broken = true;
                vec![unopened_problem(summary, error)]
            }
        };
        // Report the problem of the catalogue even if it has disappeared since.
        if let Some(error) = &summary.error
            && !problems.iter().any(|problem| UNUSABLE.contains(&problem.rule))
        {
            problems.push(unopened_problem(summary, error.clone()));
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
            error: summary.error.clone(),
            address: skills.command_address(&summary.name, &summary.path),
        }
    }
}

impl From<Problem> for ProblemJson {
    fn from(problem: Problem) -> ProblemJson {
        let is_folder = problem.file.as_os_str().is_empty();
        ProblemJson {
            file: (!is_folder).then_some(problem.file),
            line: problem.line,
            rule: problem.rule.name(),
            severity: severity_name(problem.severity),
            message: problem.message,
            fix: problem.fix,
        }
    }
}

/// The status for the worst of these severities.
pub(super) fn worst_status(severities: impl Iterator<Item = Severity>) -> &'static str {
    let mut worst = "ok";
    for severity in severities {
        if severity == Severity::Error {
            return "error";
        }
        worst = "warning";
    }
    worst
}

/// The name of a severity.
pub(super) fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// The problem of a skill whose folder cannot be opened, or of a folder that is not a skill.
/// `message_for_model` is the message, used if there is no other.
pub(super) fn unopened_problem(summary: &SkillSummary, message_for_model: String) -> Problem {
    if let Some(problem) = &summary.not_a_skill {
        return problem.clone();
    }
    let message = summary.error.clone().unwrap_or(message_for_model);
    Problem::new(Rule::UnreadableFile, "", message)
}
