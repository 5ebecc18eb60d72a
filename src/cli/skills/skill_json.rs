//! The JSON form of a skill, for `skills list` and `skills show`.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::run::Run;
use crate::cli::skills::json;
use crate::skills::python::Interpreter;
use crate::skills::{Problem, Rule, Severity, Skill, SkillSummary, Skills, check, venv};

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

impl SkillJson {
    /// Examines one skill of a catalogue.
    pub(super) fn new(summary: &SkillSummary, skills: &Skills, run: &Run) -> SkillJson {
        let mut view = SkillJson {
            name: summary.name.clone(),
            description: summary.description.clone(),
            path: summary.path.clone(),
            document: None,
            venv: None,
            python: None,
            status: "ok",
            problems: Vec::new(),
            error: summary.error.clone(),
            address: skills.command_address(&summary.name, &summary.path),
        };
        let mut problems = match skills.open_listed(summary) {
            Ok(skill) => view.examine(&skill, summary, run),
            Err(error) => vec![unopened_problem(summary, error)],
        };
        // The problem of the catalogue may have disappeared since.
        if let (Some(error), true) = (&summary.error, problems.is_empty()) {
            problems.push(unopened_problem(summary, error.clone()));
        }
        let has_broken_venv = view.venv.is_some() && view.python.is_none();
        if summary.error.is_some() || view.document.is_none() || has_broken_venv {
            view.status = "error";
        } else if !problems.is_empty() {
            view.status = "warning";
        }
        view.problems = problems.into_iter().map(ProblemJson::from).collect();
        view
    }

    /// Sets document and interpreter of the opened skill, and returns its problems.
    fn examine(&mut self, skill: &Skill, summary: &SkillSummary, run: &Run) -> Vec<Problem> {
        let mut problems = check::check(skill);
        match skill.document_file_name() {
            Ok(name) => self.document = Some(name),
            // The document disappeared after the catalogue was read.
            Err(message_for_model) if summary.error.is_none() => {
                problems.push(unopened_problem(summary, message_for_model));
            }
            Err(_) => {}
        }
        match Interpreter::for_skill(skill, &run.config.scripts) {
            Ok(interpreter) => {
                self.venv = interpreter.venv;
                self.python = Some(interpreter.program);
            }
            Err(error) => {
                self.venv = venv::path_in_skill(&summary.path);
                // Without a venv, a missing interpreter is no problem of the skill.
                if self.venv.is_some() {
                    problems.push(check::without_interpreter(skill, &error));
                }
            }
        }
        problems
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
pub(super) fn worst_status(mut severities: impl Iterator<Item = Severity>) -> &'static str {
    match severities.next() {
        None => "ok",
        Some(Severity::Error) => "error",
        Some(Severity::Warning) if severities.any(|other| other == Severity::Error) => "error",
        Some(Severity::Warning) => "warning",
    }
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
