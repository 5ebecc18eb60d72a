//! The forms of cases in the files of authors.

use std::path::Path;

use serde_json::{Map, Value};

use super::checks::Checks;
use super::{
    EvalsProblem, ExpectedSkill, FOLDER, SkillEvals, TaskCase, TaskFile, TriggerCase, unknown_key,
};
use crate::limits;
use crate::skills::Skill;
use crate::text;
use crate::world::confined::PathTarget;

/// Keys under which an object holds the cases.
const LISTS: [&str; 3] = ["evals", "cases", "queries"];
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
/// Keys of the text that is asked.
const QUERIES: [&str; 3] = ["query", "question", "prompt"];
/// Keys that make a case a trigger.
const TRIGGER_KEYS: [&str; 2] = ["should_trigger", "expected_skill"];
/// Keys of a task.
const TASK_KEYS: [&str; 5] = ["prompt", "files", "assertions", "expectations", "checks"];
/// Folders of files for the workspace, in which their paths start there.
const FILE_FOLDERS: [&str; 2] = ["evals/files/", "evals/"];

/// Why a case cannot be used: the place in it, and the problem.
type CaseProblem = (String, String);

/// Adds the cases of a file. `is_tasks_file`: another file without any case is data.
pub(super) fn add_cases(
    value: &Value,
    is_tasks_file: bool,
    file: &Path,
    skill: &Skill,
    evals: &mut SkillEvals,
) {
    let problem =
        |place: String, message: String| EvalsProblem { file: file.to_path_buf(), place, message };
    let (key, cases) = match list_of(value) {
        Ok((key, cases)) => (key, cases),
        Err(_) if !is_tasks_file => return,
        Err(message) => return evals.problems.push(problem(String::new(), message)),
    };
    let has_case =
        |case: &Value| TRIGGER_KEYS.iter().chain(&QUERIES).any(|key| case.get(key).is_some());
    if !is_tasks_file && !cases.iter().any(has_case) {
        return;
    }
    if let Some(object) = value.as_object()
        && let Some((unknown, _)) =
            object.iter().find(|(name, value)| *name != key && value.is_array())
    {
        let message = format!("this list is not defined beside `{key}`");
        evals.problems.push(problem(unknown.clone(), message));
    }
    let count = evals.triggers.len() + evals.tasks.len() + cases.len();
    if count > limits::EVAL_CASES {
        let message = format!("with it there are more than {} cases", limits::EVAL_CASES);
        return evals.problems.push(problem(key.to_string(), message));
    }
    for (index, case) in cases.iter().enumerate() {
        let place = format!("{key}[{index}]");
        let number = if is_tasks_file {
            (index + 1).to_string()
        } else {
            format!("{}-{}", file.file_stem().unwrap_or_default().display(), index + 1)
        };
        let added = add_case(case, number, skill, evals);
        if let Err((inside, message)) = added {
            evals.problems.push(problem(place + &inside, message));
        }
    }
}

/// The cases of a file, and the key under which they are; empty for a bare list.
fn list_of(value: &Value) -> Result<(&str, &[Value]), String> {
    if let Some(list) = value.as_array() {
        return Ok(("", list));
    }
    let keys = LISTS.iter().filter_map(|key| Some((*key, value.get(key)?.as_array()?.as_slice())));
    match keys.collect::<Vec<_>>().as_slice() {
        [one] => Ok(*one),
        [] => {
            Err("there is no list of cases: neither the file itself nor `evals` or `cases`".into())
        }
        _ => Err("there are several lists of cases".into()),
    }
}

fn add_case(
    case: &Value,
    number: String,
    skill: &Skill,
    evals: &mut SkillEvals,
) -> Result<(), CaseProblem> {
    let Some(case) = case.as_object() else {
        return Err((String::new(), "it is not an object".into()));
    };
    let id = case_id(case, number)?;
    let is_trigger = TRIGGER_KEYS.iter().any(|key| case.contains_key(*key));
    if is_trigger {
        let trigger = trigger(case, id, skill)?;
        if evals.triggers.iter().any(|other| other.id == trigger.id) {
            return Err((".id".into(), same_id(&trigger.id)));
        }
        evals.triggers.push(trigger);
    } else {
        let task = task(case, id, skill)?;
        if evals.tasks.iter().any(|other| other.id == task.id) {
            return Err((".id".into(), same_id(&task.id)));
        }
        evals.tasks.push(task);
    }
    Ok(())
}

fn same_id(id: &str) -> String {
    format!("another case has the id `{}`", text::one_line(id, limits::SUMMARY_CHARS))
}

/// The id of a case; without one its number, from 1, which in other files than `evals.json` follows
/// the file's name.
fn case_id(case: &Map<String, Value>, number: String) -> Result<String, CaseProblem> {
    match case.get("id") {
        None => Ok(number),
        Some(Value::String(id)) if !id.trim().is_empty() => Ok(id.clone()),
        Some(Value::Number(id)) => Ok(id.to_string()),
        Some(_) => Err((".id".into(), "it is neither a text nor a number".into())),
    }
}

fn trigger(
    case: &Map<String, Value>,
    id: String,
    skill: &Skill,
) -> Result<TriggerCase, CaseProblem> {
    check_keys(case, &[&QUERIES[..], &TRIGGER_KEYS].concat(), &QUESTION_NOTES)?;
    let mut texts = QUERIES.iter().filter(|key| case.contains_key(**key));
    let query = match (texts.next(), texts.next()) {
        (Some(key), None) => text_of(case, key)?,
        _ => return Err((String::new(), "it needs one of `query`, `question`, `prompt`".into())),
    };
    let should = match case.get("should_trigger") {
        None => None,
        Some(Value::Bool(should)) => Some(*should),
        Some(_) => return Err((".should_trigger".into(), "it is neither true nor false".into())),
    };
    let is_this = |name: &str| name == skill.name || name == skill.folder_name();
    let named = match case.get("expected_skill") {
        None => None,
        Some(Value::Null) => Some(ExpectedSkill::None),
        Some(Value::String(name)) if is_this(name) => Some(ExpectedSkill::This),
        Some(Value::String(name)) => Some(ExpectedSkill::Named(name.clone())),
        Some(_) => return Err((".expected_skill".into(), "it is neither a name nor null".into())),
    };
    let expected = match (should, named) {
        (Some(true), None | Some(ExpectedSkill::This)) => ExpectedSkill::This,
        (Some(false), None) => ExpectedSkill::NotThis,
        (None | Some(false), Some(named)) if should.is_none() || named != ExpectedSkill::This => {
            named
        }
        _ => {
            let message = "it contradicts `expected_skill`";
            return Err((".should_trigger".into(), message.into()));
        }
    };
    Ok(TriggerCase { id, query, expected })
}

fn task(case: &Map<String, Value>, id: String, skill: &Skill) -> Result<TaskCase, CaseProblem> {
    if !case.contains_key("prompt") {
        let keys: Vec<&str> = case.keys().map(String::as_str).collect();
        let keys = text::first_names(&keys);
        return Err((
            String::new(),
            format!("it has neither `prompt` nor `should_trigger` or `expected_skill`, but {keys}"),
        ));
    }
    check_keys(case, &TASK_KEYS, &[])?;
    let mut expectations = Vec::new();
    for key in ["assertions", "expectations"] {
        for (index, entry) in list(case, key)?.iter().enumerate() {
            let place = || format!(".{key}[{index}]");
            expectations.push(expectation(entry).map_err(|message| (place(), message))?);
        }
    }
    let mut files = Vec::new();
    for (index, entry) in list(case, "files")?.iter().enumerate() {
        let place = || format!(".files[{index}]");
        let Some(path) = entry.as_str() else {
            return Err((place(), "it is not a path".into()));
        };
        files.push(task_file(path, skill).map_err(|message| (place(), message))?);
    }
    let checks = match case.get("checks") {
        None => Checks::default(),
        Some(value) => Checks::parse(value)
            .map_err(|(inside, message)| (format!(".checks{inside}"), message))?,
    };
    Ok(TaskCase {
        id,
        prompt: text_of(case, "prompt")?,
        expected_output: match case.get("expected_output") {
            None => String::new(),
            Some(_) => text_of(case, "expected_output")?,
        },
        files,
        expectations,
        checks,
    })
}

/// An assertion in prose: a text, or an object that holds one and names.
fn expectation(entry: &Value) -> Result<String, String> {
    let known = ["text", "description", "id", "name"];
    let text = match entry {
        Value::String(text) => Some(text.as_str()),
        Value::Object(object) => {
            if let Some(unknown) = object.keys().find(|key| !known.contains(&key.as_str())) {
                return Err(format!(
                    "`{unknown}` is not defined for an assertion; assertions that a program decides are `checks`"
                ));
            }
            object.get("text").or(object.get("description")).and_then(Value::as_str)
        }
        _ => None,
    };
    match text {
        Some(text) if !text.trim().is_empty() => Ok(text.to_string()),
        _ => Err("it has no text".into()),
    }
}

/// A file of the skill, and its place in the workspace.
fn task_file(path: &str, skill: &Skill) -> Result<TaskFile, String> {
    let source = skill.root.relative_path(path).map_err(|error| error.user_message())?;
    let places = [source.clone(), format!("{FOLDER}/{source}")];
    let mut failure = None;
    for place in places {
        match skill.root.open_target(&place) {
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

fn list<'c>(case: &'c Map<String, Value>, key: &str) -> Result<&'c [Value], CaseProblem> {
    match case.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err((format!(".{key}"), "it is not a list".into())),
    }
}

fn text_of(case: &Map<String, Value>, key: &str) -> Result<String, CaseProblem> {
    match case.get(key).and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => Ok(text.to_string()),
        _ => Err((format!(".{key}"), "it is not a text, or empty".into())),
    }
}

/// Checks that every key is defined. `notes`: further ones that describe the case.
fn check_keys(
    case: &Map<String, Value>,
    known: &[&str],
    notes: &[&str],
) -> Result<(), CaseProblem> {
    let is_known = |key: &&str| [known, notes, &NOTES].iter().any(|keys| keys.contains(key));
    match case.keys().map(String::as_str).find(|key| !is_known(key)) {
        Some(unknown) => Err((format!(".{unknown}"), unknown_key(known))),
        None => Ok(()),
    }
}
