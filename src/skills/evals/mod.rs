//! What authors test in a skill: the JSON files in its `evals` folder.
//!
//! Three dialects are read: `evals.json` of <https://agentskills.io> and of the skill
//! `skill-creator` (tasks with files and assertions), lists of `query` with `should_trigger`, and
//! lists of `question` with `expected_skill`. A field that none of them defines is a problem: a
//! test that is silently not made would look as if it had passed.

mod checks;
mod dialects;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::limits;
use crate::skills::Skill;
use crate::world::confined::{EntryKind, FolderEntry, OpenError, PathTarget, read_whole};

pub(crate) use checks::{Checks, Observed};

/// The folder of the files.
pub(crate) const FOLDER: &str = "evals";
/// The file with tasks, which must be one of the dialects; other files may be data.
const TASKS_FILE: &str = "evals.json";

/// The tests of a skill.
#[derive(Clone, Debug, Default)]
pub(crate) struct SkillEvals {
    /// Questions that say whether the skill comes into play.
    pub triggers: Vec<TriggerCase>,
    /// Tasks that say whether it helps.
    pub tasks: Vec<TaskCase>,
    /// What is wrong with the files.
    pub problems: Vec<EvalsProblem>,
}

/// A question, and the skill that it should bring into play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TriggerCase {
    /// The name of the case, unique among the skill's triggers.
    pub id: String,
    /// The question.
    pub query: String,
    /// What should happen.
    pub expected: ExpectedSkill,
}

/// The first skill that the model should read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedSkill {
    /// The skill that the test belongs to.
    This,
    /// Another one or none.
    NotThis,
    /// The one with this name.
    Named(String),
    /// None.
    None,
}

/// A task, and what its result must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskCase {
    /// The name of the case, unique among the skill's tasks.
    pub id: String,
    /// What the user asks for.
    pub prompt: String,
    /// What a good result is, for the judge.
    pub expected_output: String,
    /// The files of the workspace.
    pub files: Vec<TaskFile>,
    /// Assertions in prose, which only a judge can decide.
    pub expectations: Vec<String>,
    /// Assertions that a program decides.
    pub checks: Checks,
}

/// A file of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskFile {
    /// Its path in the skill.
    pub source: String,
    /// Its path in the workspace.
    pub target: String,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EvalsProblem {
    /// The file, relative to the skill.
    pub file: PathBuf,
    /// The value in it, such as `evals[2].files`; empty for the whole file.
    pub place: String,
    /// The problem.
    pub message: String,
}

impl std::fmt::Display for EvalsProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let separator = if self.place.is_empty() { "" } else { ": " };
        write!(f, "{}{separator}{}: {}", self.file.display(), self.place, self.message)
    }
}

impl SkillEvals {
    /// Reads the tests of a skill; none if it has no such folder.
    pub(crate) fn read(skill: &Skill) -> SkillEvals {
        let mut evals = SkillEvals::default();
        let problem =
            |file: PathBuf, message: String| EvalsProblem { file, place: String::new(), message };
        let folder = match skill.root.open_target(FOLDER) {
            Ok(PathTarget::Folder(folder)) => folder.entries(limits::FOLDER_ENTRIES),
            Ok(PathTarget::File(_)) | Err(OpenError::NotFound) => return evals,
            Err(error) => Err(error),
        };
        let entries = match folder {
            Ok(found) if found.omitted == 0 && !found.is_incomplete => found.entries,
            Ok(_) => {
                evals.problems.push(problem(FOLDER.into(), "it has too many files".into()));
                return evals;
            }
            Err(error) => {
                let message = format!("it cannot be read: {}", error.user_message());
                evals.problems.push(problem(FOLDER.into(), message));
                return evals;
            }
        };
        let is_json = |entry: &&FolderEntry| {
            let extension = Path::new(&entry.name).extension();
            extension.is_some_and(|it| it.eq_ignore_ascii_case("json"))
        };
        for link in entries.iter().filter(is_json).filter(|it| it.kind == EntryKind::Link) {
            let file = Path::new(FOLDER).join(&link.name);
            evals.problems.push(problem(file, "it is a link, which is not followed".into()));
        }
        let mut names: Vec<String> = entries
            .iter()
            .filter(is_json)
            .filter(|entry| entry.kind == EntryKind::File)
            .filter_map(|entry| entry.name.clone().into_string().ok())
            .collect();
        names.sort();
        for name in names {
            let file = PathBuf::from(FOLDER).join(&name);
            match read_json(skill, &file) {
                Ok(value) => evals.add_file(&value, name == TASKS_FILE, &file, skill),
                Err(message) => {
                    evals.problems.push(problem(file, message));
                }
            }
        }
        evals
    }

    /// Adds the cases of a file; none of them if any is invalid.
    fn add_file(&mut self, value: &Value, is_tasks_file: bool, file: &Path, skill: &Skill) {
        let (triggers, tasks) = (self.triggers.len(), self.tasks.len());
        let problems = self.problems.len();
        dialects::add_cases(value, is_tasks_file, file, skill, self);
        if self.problems.len() > problems {
            self.triggers.truncate(triggers);
            self.tasks.truncate(tasks);
        }
    }

    /// Whether there is nothing to test.
    pub(crate) fn is_empty(&self) -> bool {
        self.triggers.is_empty() && self.tasks.is_empty() && self.problems.is_empty()
    }
}

fn read_json(skill: &Skill, file: &Path) -> Result<Value, String> {
    let opened = skill.root.file(file).map_err(|error| error.user_message())?;
    let piece = read_whole(&opened, limits::EVALS_FILE_BYTES).map_err(|error| error.to_string())?;
    if piece.has_more {
        return Err(format!("it is larger than {} MiB", limits::EVALS_FILE_BYTES >> 20));
    }
    let bytes = piece.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&piece.bytes);
    serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))
}

/// The message about a key that is not one of these, which say what is tested.
fn unknown_key(known: &[&str]) -> String {
    format!("this key is not defined here; what is tested stands in {}", known.join(", "))
}
