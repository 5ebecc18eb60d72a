//! The forms of cases in the files of authors.

use std::mem::discriminant;
use std::path::Path;

use serde_json::Value;

use super::checks::Checks;
use super::fields::{Field, FieldProblem};
use super::{EvalCase, ExpectedSkill, FOLDER, Goal, Task, TaskFile};
use crate::Skill;
use crate::private::has_private_name;
use base::limits;
use base::text;
use host::confined::{OpenError, PathTarget};

/// Keys under which an object holds the cases.
const LISTS: [&str; 3] = ["evals", "cases", "queries"];
/// Key of further facts about a file.
const METADATA: &str = "metadata";
/// Keys that describe a case for people.
const NOTES: [&str; 16] = [
    "id",
    "eval_name",
    "name",
    "title",
    "description",
    "note",
    "notes",
    "comment",
    "why",
    "reason",
    "kind",
    "category",
    "group",
    "tags",
    "type",
    "expected_output",
];
/// Further keys of a case with `question`, which say how a good answer is found.
const QUESTION_NOTES: [&str; 4] =
    ["ground_truth", "expected_behavior", "expected_script", "expected_references"];
/// Keys of a trigger: what is asked, and what makes a case a trigger.
const TRIGGER_KEYS: [&str; 5] = ["query", "question", "prompt", "should_trigger", "expected_skill"];
/// How many of them are keys of the question.
const QUERIES: usize = 3;
/// Keys of a task.
const TASK_KEYS: [&str; 5] = ["prompt", "files", "assertions", "expectations", "checks"];
/// Keys of an assertion that is an object.
const ASSERTION_KEYS: [&str; 4] = ["text", "description", "id", "name"];
/// Folders of files for the working folder, in which their paths start there.
const FILE_FOLDERS: [&str; 2] = ["evals/files/", "evals/"];

/// Adds the cases of a file, and returns its problems. `is_tasks_file`: another file without any
/// case is data.
pub(super) fn add_cases(
    value: &Value,
    is_tasks_file: bool,
    file: &Path,
    skill: &Skill,
    cases: &mut Vec<EvalCase>,
) -> Vec<FieldProblem> {
    let root = Field { value, place: String::new() };
    let is_list = |key: &&&str| value.get(**key).is_some_and(Value::is_array);
    let lists: Vec<&str> = LISTS.iter().filter(is_list).copied().collect();
    let list = match lists.as_slice() {
        _ if value.is_array() => root,
        [key] => Field { value: &value[*key], place: (*key).to_string() },
        [] if !is_tasks_file => return Vec::new(),
        [] => return vec!["there is no list of cases: the file itself, `evals` or `cases`".into()],
        _ => return vec![format!("there are several lists of cases: {}", lists.join(", "))],
    };
    let items = list.items().unwrap_or_default();
    let has_key = |item: &Field<'_>| TRIGGER_KEYS.iter().any(|key| item.value.get(key).is_some());
    if !is_tasks_file && !items.iter().any(has_key) {
        return Vec::new();
    }
    if cases.len() + items.len() > limits::EVAL_CASES {
        let most = limits::EVAL_CASES;
        return vec![list.problem(&format!("with it there are more than {most} cases"))];
    }
    let mut problems = Vec::new();
    if let Some(object) = value.as_object() {
        let is_data = |(key, value): &(&String, &Value)| {
            **key != list.place && *key != METADATA && (value.is_array() || value.is_object())
        };
        let unknown = object.iter().filter(is_data);
        problems.extend(unknown.map(|(key, _)| {
            format!("{key}: it is not defined beside the cases in `{}`", list.place)
        }));
    }
    for (index, item) in items.iter().enumerate() {
        let number = if is_tasks_file {
            (index + 1).to_string()
        } else {
            format!("{}-{}", file.file_stem().unwrap_or_default().display(), index + 1)
        };
        match case(item, number, skill, cases) {
            Ok(case) => cases.push(case),
            Err(problem) => problems.push(problem),
        }
    }
    problems
}

/// A case; without an id it has this number as its name.
fn case(
    field: &Field<'_>,
    number: String,
    skill: &Skill,
    others: &[EvalCase],
) -> Result<EvalCase, FieldProblem> {
    let Some(object) = field.value.as_object() else {
        return Err(field.problem("it is not an object"));
    };
    let is_trigger = TRIGGER_KEYS[QUERIES..].iter().any(|key| object.contains_key(*key));
    let (prompt, goal) = if is_trigger {
        field.object(&[&TRIGGER_KEYS, &NOTES, &QUESTION_NOTES])?;
        let mut queries = TRIGGER_KEYS[..QUERIES].iter().filter_map(|key| field.get(key));
        match (queries.next(), queries.next()) {
            (Some(query), None) => (query.text()?, Goal::Trigger(expected_skill(field, skill)?)),
            _ => return Err(field.problem("it needs one of `query`, `question`, `prompt`")),
        }
    } else if let Some(prompt) = field.get("prompt") {
        field.object(&[&TASK_KEYS, &NOTES])?;
        (prompt.text()?, Goal::Task(task(field, skill)?))
    } else {
        let keys: Vec<&str> = object.keys().map(String::as_str).collect();
        return Err(field.problem(&format!(
            "it has neither `prompt` nor `should_trigger` or `expected_skill`, but {}",
            text::first_names(&keys)
        )));
    };
    let id = match field.get("id").map(|id| (id.value, id)) {
        None => number,
        Some((Value::String(id), _)) if !id.trim().is_empty() => id.clone(),
        Some((Value::Number(id), _)) => id.to_string(),
        Some((_, id)) => return Err(id.problem("it is neither a text nor a number")),
    };
    let is_same =
        |other: &EvalCase| other.id == id && discriminant(&other.goal) == discriminant(&goal);
    if others.iter().any(is_same) {
        let id = text::one_line(&id, limits::SUMMARY_CHARS);
        return Err(format!("{}.id: another case has the id `{id}`", field.place));
    }
    Ok(EvalCase { id, prompt: prompt.to_string(), goal })
}

fn expected_skill(case: &Field<'_>, skill: &Skill) -> Result<ExpectedSkill, FieldProblem> {
    let should = case.get("should_trigger");
    let should = should.map(|field| {
        field.value.as_bool().ok_or_else(|| field.problem("it is neither true nor false"))
    });
    let should = should.transpose()?;
    let named = match case.value.get("expected_skill") {
        None => None,
        Some(Value::Null) => Some(ExpectedSkill::None),
        Some(Value::String(name)) if *name == skill.name || *name == skill.folder_name() => {
            Some(ExpectedSkill::This)
        }
        Some(Value::String(name)) => Some(ExpectedSkill::Named(name.clone())),
        Some(_) => {
            return Err(format!("{}.expected_skill: it is neither a name nor null", case.place));
        }
    };
    match (should, named) {
        (Some(true), None | Some(ExpectedSkill::This)) => Ok(ExpectedSkill::This),
        (Some(false), None) => Ok(ExpectedSkill::NotThis),
        (None, Some(named)) => Ok(named),
        (Some(false), Some(named)) if named != ExpectedSkill::This => Ok(named),
        _ => Err(format!("{}.should_trigger: it contradicts `expected_skill`", case.place)),
    }
}

fn task(case: &Field<'_>, skill: &Skill) -> Result<Task, FieldProblem> {
    let mut expectations = Vec::new();
    for key in ["assertions", "expectations"] {
        for entry in case.list(key)? {
            expectations.push(assertion(&entry)?.to_string());
        }
    }
    let mut files: Vec<TaskFile> = Vec::new();
    for entry in case.list("files")? {
        let path = entry.value.as_str().ok_or_else(|| entry.problem("it is not a path"))?;
        let file = task_file(path, skill).map_err(|message| entry.problem(&message))?;
        if files.iter().any(|other| other.target == file.target) {
            return Err(entry.problem(&format!("another file has the place `{}`", file.target)));
        }
        files.push(file);
    }
    let expected_output = case.get("expected_output").map(|output| output.text());
    Ok(Task {
        expected_output: expected_output.transpose()?.unwrap_or_default().to_string(),
        files,
        expectations,
        checks: case
            .get("checks")
            .map(|checks| Checks::parse(&checks))
            .transpose()?
            .unwrap_or_default(),
    })
}

/// An assertion in prose: a text, or an object that holds one and names.
fn assertion<'v>(entry: &Field<'v>) -> Result<&'v str, FieldProblem> {
    if entry.value.is_string() {
        return entry.text();
    }
    let object = entry.value.as_object().ok_or_else(|| entry.problem("it has no text"))?;
    if let Some(unknown) = object.keys().find(|key| !ASSERTION_KEYS.contains(&key.as_str())) {
        return Err(entry.problem(&format!(
            "`{unknown}` is not defined for an assertion; assertions that a program decides are `checks`"
        )));
    }
    let text = entry.get("text").or(entry.get("description"));
    text.ok_or_else(|| entry.problem("it has no text"))?.text()
}

/// A file of the skill, and its place in the working folder.
fn task_file(path: &str, skill: &Skill) -> Result<TaskFile, String> {
    let source = skill.root.relative_path(path).map_err(|error| error.user_message())?;
    let mut failure = None;
    for place in [source.clone(), format!("{FOLDER}/{source}")] {
        let opened = match skill.open_readable(&place) {
            // The copy has a private name, too.
            Err(OpenError::Private) if has_private_name(Path::new(&place)) => {
                skill.root.open_target(&place)
            }
            opened => opened,
        };
        match opened {
            Ok(PathTarget::File(_)) => {
                let target = FILE_FOLDERS.iter().find_map(|folder| place.strip_prefix(folder));
                let target = target.unwrap_or(&place).to_string();
                return Ok(TaskFile { source: place, target });
            }
            Ok(PathTarget::Folder(_)) => return Err("it is a folder; name its files".into()),
            Err(error) => failure = failure.or(Some(error.user_message())),
        }
    }
    let cause = failure.unwrap_or_default();
    Err(format!("`{}` cannot be opened in the skill: {cause}", text::one_line_name(path)))
}
