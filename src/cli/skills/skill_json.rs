//! The JSON form of a skill, for `skills list` and `skills show`.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::run::Run;
use crate::cli::skills::json;
use skills::check::CheckedSkill;
use skills::needs::{NamedNeeds, Needs};
use skills::python::Interpreter;
use skills::{Problem, ProblemCounts, Severity, venv};

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
    /// The severity of the worst problem, or `ok`.
    pub status: &'static str,
    /// All problems that `check` finds.
    pub problems: Vec<ProblemJson>,
    /// Its needs.
    pub needs: Needs,
    /// Those that are not on this machine.
    pub missing: NamedNeeds,
    /// The number of problems.
    #[serde(skip)]
    pub counts: ProblemCounts,
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
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// The problem.
    pub message: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl SkillJson {
    /// The JSON form of a checked skill.
    pub(super) fn new(checked: CheckedSkill, run: &Run) -> SkillJson {
        let CheckedSkill { summary, skill, problems, needs } = checked;
        let mut view = SkillJson {
            name: summary.name,
            description: summary.description,
            document: None,
            venv: None,
            python: None,
            status: status_name(ProblemCounts::of(&problems)),
            counts: ProblemCounts::of(&problems),
            problems: problems.into_iter().map(ProblemJson::from).collect(),
            needs,
            missing: NamedNeeds::default(),
            path: summary.path,
        };
        let Some(skill) = skill else { return view };
        view.missing = view.needs.named.missing(&skill, &run.config.scripts);
        view.document = skill.document_file_name().ok();
        match Interpreter::for_skill(&skill, &run.config.scripts) {
            Ok(interpreter) => {
                view.venv = interpreter.venv;
                view.python = Some(interpreter.program);
            }
            Err(_) => view.venv = venv::path_in_skill(&view.path),
        }
        view
    }
}

impl From<Problem> for ProblemJson {
    fn from(problem: Problem) -> ProblemJson {
        let is_folder = problem.file.as_os_str().is_empty();
        ProblemJson {
            file: (!is_folder).then_some(problem.file),
            line: problem.line,
            rule: problem.rule.name(),
            severity: problem.severity.name(),
            message: problem.message,
            fix: problem.fix,
        }
    }
}

/// The name of the worst severity, or `ok`.
pub(super) fn status_name(counts: ProblemCounts) -> &'static str {
    counts.worst().map_or("ok", Severity::name)
}
