//! Assertions that a program decides, without a model.

use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;

use super::unknown_key;
use crate::event::Actions;
use crate::limits;
use crate::text;
use crate::world::confined::{Root, read_whole};

const KEYS: [&str; 6] =
    ["answer_contains", "answer_matches", "files", "skill", "script", "returncode"];
const FILE_KEYS: [&str; 3] = ["path", "contains", "matches"];

/// The assertions of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checks {
    list: Vec<Check>,
}

/// One assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Check {
    /// The answer has this text.
    AnswerContains(String),
    /// The answer matches this regular expression.
    AnswerMatches(String),
    /// This file of the workspace exists.
    File(String),
    /// It has this text.
    FileContains(String, String),
    /// It matches this regular expression.
    FileMatches(String, String),
    /// The document of this skill was read.
    Skill(String),
    /// This script ran.
    Script(String),
    /// The last script ended with this status.
    Returncode(i64),
}

/// What a run did.
pub(crate) struct Observed<'r> {
    /// The final answer.
    pub answer: &'r str,
    /// The actions of the tools.
    pub actions: &'r Actions,
    /// The working folder after the run.
    pub workspace: &'r Root,
}

/// The result of an assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckOutcome {
    /// The assertion, for people.
    pub text: String,
    pub passed: bool,
    /// What was found instead, or where.
    pub evidence: String,
}

/// The place in the checks, and the problem.
type CheckProblem = (String, String);

impl Checks {
    /// Reads the checks of a case.
    pub(super) fn parse(value: &Value) -> Result<Checks, CheckProblem> {
        let Some(object) = value.as_object() else {
            return Err((String::new(), "it is not an object".into()));
        };
        let mut list = Vec::new();
        for (key, value) in object {
            let place = format!(".{key}");
            match key.as_str() {
                "answer_contains" => {
                    list.extend(texts(value, &place)?.into_iter().map(Check::AnswerContains));
                }
                "answer_matches" => {
                    for pattern in patterns(value, &place)? {
                        list.push(Check::AnswerMatches(pattern));
                    }
                }
                "files" => add_files(value, &mut list)?,
                "skill" => list.extend(texts(value, &place)?.into_iter().map(Check::Skill)),
                "script" => list.extend(texts(value, &place)?.into_iter().map(Check::Script)),
                "returncode" => match value.as_i64() {
                    Some(code) => list.push(Check::Returncode(code)),
                    None => return Err((place, "it is not a whole number".into())),
                },
                _ => return Err((place, unknown_key(&KEYS))),
            }
        }
        if list.len() > limits::EVAL_CHECKS {
            let message = format!("there are more than {} of them", limits::EVAL_CHECKS);
            return Err((String::new(), message));
        }
        Ok(Checks { list })
    }

    /// Decides each assertion, without the skill only those about the result: the others would
    /// make every skill look useful.
    pub(crate) fn judge(&self, run: &Observed<'_>, has_skill: bool) -> Vec<CheckOutcome> {
        let is_about_result = |check: &&Check| {
            has_skill || !matches!(check, Check::Skill(_) | Check::Script(_) | Check::Returncode(_))
        };
        self.list.iter().filter(is_about_result).map(|check| check.judge(run)).collect()
    }
}

fn add_files(value: &Value, list: &mut Vec<Check>) -> Result<(), CheckProblem> {
    let Some(files) = value.as_array() else {
        return Err((".files".into(), "it is not a list".into()));
    };
    for (index, file) in files.iter().enumerate() {
        let place = format!(".files[{index}]");
        let Some(object) = file.as_object() else {
            return Err((place, "it is not an object with `path`".into()));
        };
        if let Some(unknown) = object.keys().find(|key| !FILE_KEYS.contains(&key.as_str())) {
            return Err((format!("{place}.{unknown}"), unknown_key(&FILE_KEYS)));
        }
        let Some(path) = object.get("path").and_then(Value::as_str).filter(|it| !it.is_empty())
        else {
            return Err((place, "it has no `path`".into()));
        };
        list.push(Check::File(path.into()));
        if let Some(value) = object.get("contains") {
            let texts = texts(value, &format!("{place}.contains"))?;
            list.extend(texts.into_iter().map(|text| Check::FileContains(path.into(), text)));
        }
        if let Some(value) = object.get("matches") {
            let patterns = patterns(value, &format!("{place}.matches"))?;
            list.extend(patterns.into_iter().map(|it| Check::FileMatches(path.into(), it)));
        }
    }
    Ok(())
}

/// A text or a list of texts.
fn texts(value: &Value, place: &str) -> Result<Vec<String>, CheckProblem> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(String::from);
    let all = match value {
        Value::Array(list) => list.iter().map(text).collect(),
        one => text(one).map(|text| vec![text]),
    };
    match all {
        Some(texts) if !texts.is_empty() => Ok(texts),
        _ => Err((place.into(), "it is neither a text nor a list of texts".into())),
    }
}

fn patterns(value: &Value, place: &str) -> Result<Vec<String>, CheckProblem> {
    let texts = texts(value, place)?;
    for text in &texts {
        regex(text).map_err(|error| {
            (place.to_string(), format!("it is not a regular expression: {error}"))
        })?;
    }
    Ok(texts)
}

/// `^` and `$` stand for the ends of lines.
fn regex(pattern: &str) -> Result<Regex, regex_lite::Error> {
    RegexBuilder::new(pattern).multi_line(true).size_limit(limits::EVAL_REGEX_BYTES).build()
}

fn is_match(pattern: &str, text: &str) -> bool {
    regex(pattern).is_ok_and(|regex| regex.is_match(text))
}

impl Check {
    fn judge(&self, run: &Observed<'_>) -> CheckOutcome {
        let (text, passed, evidence) = match self {
            Check::AnswerContains(text) => {
                let passed = run.answer.contains(text);
                (format!("the answer contains `{text}`"), passed, shown(run.answer))
            }
            Check::AnswerMatches(pattern) => {
                let passed = is_match(pattern, run.answer);
                (format!("the answer matches `{pattern}`"), passed, shown(run.answer))
            }
            Check::File(path) => {
                let found = read_file(run.workspace, path);
                let evidence = match &found {
                    Ok(text) => text::counted(text.len(), "byte"),
                    Err(error) => error.clone(),
                };
                (format!("the file `{path}` exists"), found.is_ok(), evidence)
            }
            Check::FileContains(path, text) => {
                let found = read_file(run.workspace, path);
                let passed = found.as_ref().is_ok_and(|found| found.contains(text));
                let evidence = found.map_or_else(|error| error, |found| shown(&found));
                (format!("the file `{path}` contains `{text}`"), passed, evidence)
            }
            Check::FileMatches(path, pattern) => {
                let found = read_file(run.workspace, path);
                let passed = found.as_ref().is_ok_and(|found| is_match(pattern, found));
                let evidence = found.map_or_else(|error| error, |found| shown(&found));
                (format!("the file `{path}` matches `{pattern}`"), passed, evidence)
            }
            Check::Skill(name) => {
                let read = &run.actions.skills_read;
                let passed = read.iter().any(|skill| is_named(skill, name));
                (format!("the skill `{name}` was read"), passed, names("read", read.iter()))
            }
            Check::Script(file) => {
                let files: Vec<&String> =
                    run.actions.scripts_run.iter().filter_map(|run| run.file.as_ref()).collect();
                let passed = files.iter().any(|ran| is_script(ran, file));
                (format!("the script `{file}` ran"), passed, names("ran", files.into_iter()))
            }
            Check::Returncode(code) => {
                let last = run.actions.scripts_run.last().map(|run| i64::from(run.returncode));
                let evidence = match last {
                    Some(last) => format!("it ended with {last}"),
                    None => "no script ran".into(),
                };
                (format!("the last script ended with {code}"), last == Some(*code), evidence)
            }
        };
        CheckOutcome { text, passed, evidence }
    }
}

/// Whether a skill's name, which may have its plugin before it, is this one.
fn is_named(skill: &str, name: &str) -> bool {
    skill == name || skill.rsplit_once(':').is_some_and(|(_, last)| last == name)
}

/// Whether a script's path in its skill is this one, or ends with it.
fn is_script(ran: &str, file: &str) -> bool {
    ran == file || ran.strip_suffix(file).is_some_and(|folder| folder.ends_with('/'))
}

fn names<'n>(verb: &str, names: impl Iterator<Item = &'n String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { "none".into() } else { format!("{verb}: {}", names.join(", ")) }
}

fn read_file(workspace: &Root, path: &str) -> Result<String, String> {
    let file = workspace.file(path).map_err(|error| error.user_message())?;
    let piece = read_whole(&file, limits::EVAL_CHECKED_BYTES).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&piece.bytes).into_owned())
}

/// The beginning of a text, in one line.
fn shown(text: &str) -> String {
    match text::one_line(text, limits::EVAL_EVIDENCE_BYTES) {
        empty if empty.is_empty() => "it is empty".into(),
        line => line,
    }
}
