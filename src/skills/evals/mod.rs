//! Authors' tests of a skill: the JSON files in its `evals` folder.
//!
//! Three dialects are read: `evals.json` of <https://agentskills.io> and of the skill
//! `skill-creator` (tasks with files and assertions), lists of `query` with `should_trigger`, and
//! lists of `question` with `expected_skill`. A field that none of them defines is a problem: a
//! test that is silently not made would look as if it had passed.

mod checks;
mod dialects;
mod fields;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Skill;
use base::limits;
use host::confined::{EntryKind, FolderEntry, OpenError, PathTarget, read_whole};

pub use checks::{Checks, Observed};

/// The folder of the files.
pub const FOLDER: &str = "evals";
/// The file with tasks, which must be one of the dialects; other files may be data.
const TASKS_FILE: &str = "evals.json";

/// The tests of a skill.
#[derive(Clone, Debug, Default)]
pub struct SkillEvals {
    /// The cases of all files.
    pub cases: Vec<EvalCase>,
    /// Problems of the files.
    pub problems: Vec<EvalsProblem>,
}

/// A test.
#[derive(Clone, Debug)]
pub struct EvalCase {
    /// Its name, unique among the triggers or the tasks of the skill.
    pub id: String,
    /// The model's prompt.
    pub prompt: String,
    /// Expected result.
    pub goal: Goal,
}

/// Expected result of a test.
#[derive(Clone, Debug)]
pub enum Goal {
    /// This skill comes into play.
    Trigger(ExpectedSkill),
    /// The result of a task is correct.
    Task(Task),
}

/// The first skill that the model should use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedSkill {
    /// The skill that the test belongs to.
    This,
    /// Another one or none.
    NotThis,
    /// The one with this name.
    Named(String),
    /// None.
    None,
}

/// Files and expectations of a task.
#[derive(Clone, Debug)]
pub struct Task {
    /// A good result, for the judge.
    pub expected_output: String,
    /// The files of the working folder.
    pub files: Vec<TaskFile>,
    /// Assertions in prose, which only a judge can decide.
    pub expectations: Vec<String>,
    /// Assertions that a program decides.
    pub checks: Checks,
}

/// A file of the working folder.
#[derive(Clone, Debug)]
pub struct TaskFile {
    /// Its path in the skill.
    pub source: String,
    /// Its path in the working folder.
    pub target: String,
}

/// An assertion about a run, and whether it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    /// The statement.
    pub text: String,
    /// `None`: it was not judged.
    pub passed: Option<bool>,
    /// The evidence, or why it was not judged.
    pub evidence: String,
}

/// Problem of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalsProblem {
    /// The file, relative to the skill.
    pub file: PathBuf,
    /// The problem, behind the value in the file that has it, such as `evals[2].files`.
    pub message: String,
}

impl SkillEvals {
    /// Reads the tests of a skill; none if it has no such folder.
    pub fn read(skill: &Skill) -> SkillEvals {
        let mut evals = SkillEvals::default();
        let entries = match skill.root.open_target(FOLDER) {
            Ok(PathTarget::Folder(folder)) => folder.entries(limits::FOLDER_ENTRIES),
            Ok(PathTarget::File(_)) | Err(OpenError::NotFound) => return evals,
            Err(error) => Err(error),
        };
        let mut entries: Vec<FolderEntry> = match entries {
            Ok(found) if found.omitted == 0 && !found.is_incomplete => found.entries,
            Ok(_) => return evals.with_problem(FOLDER.into(), "it has too many files"),
            Err(error) => {
                let message = format!("it cannot be read: {}", error.user_message());
                return evals.with_problem(FOLDER.into(), &message);
            }
        };
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        for entry in entries {
            let file = Path::new(FOLDER).join(&entry.name);
            if !file.extension().is_some_and(|it| it.eq_ignore_ascii_case("json")) {
                continue;
            }
            let read = match entry.kind {
                EntryKind::File => read_json(skill, &file),
                EntryKind::Link => Err("it is a link, which is not followed".into()),
                _ => continue,
            };
            evals = match read {
                Ok(value) => evals.with_file(&value, &file, skill),
                Err(message) => evals.with_problem(file, &message),
            };
        }
        evals
    }

    fn with_problem(mut self, file: PathBuf, message: &str) -> SkillEvals {
        self.problems.push(EvalsProblem { file, message: message.into() });
        self
    }

    /// Adds the cases of a file; none of them if any is invalid.
    fn with_file(mut self, value: &Value, file: &Path, skill: &Skill) -> SkillEvals {
        let count = self.cases.len();
        let is_tasks_file = file.file_name().is_some_and(|name| name == TASKS_FILE);
        let problems = dialects::add_cases(value, is_tasks_file, file, skill, &mut self.cases);
        if !problems.is_empty() {
            self.cases.truncate(count);
        }
        let problems = problems.into_iter();
        self.problems.extend(problems.map(|message| EvalsProblem { file: file.into(), message }));
        self
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
