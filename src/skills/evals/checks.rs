//! Assertions that a program decides, without a model.

use regex_lite::{Regex, RegexBuilder};

use super::Assertion;
use super::fields::{Field, FieldProblem};
use base::event::Actions;
use base::limits;
use base::text;
use host::confined::{Root, read_whole};

const KEYS: [&str; 6] =
    ["answer_contains", "answer_matches", "files", "skill", "script", "returncode"];
const FILE_KEYS: [&str; 3] = ["path", "contains", "matches"];

/// The assertions of a task.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    list: Vec<Check>,
}

/// One assertion.
#[derive(Clone, Debug)]
enum Check {
    /// The answer, or the file of the working folder at this path, has a text.
    Text { file: Option<String>, wanted: WantedText },
    /// The document of this skill was read.
    Skill(String),
    /// This script ran.
    Script(String),
    /// The last script ended with this status.
    Returncode(i64),
}

/// Condition on a text.
#[derive(Clone, Debug)]
enum WantedText {
    /// Any.
    Any,
    Contains(String),
    /// It matches a regular expression.
    Matches(String),
}

/// A run's result.
pub struct Observed<'r> {
    /// The final answer.
    pub answer: &'r str,
    /// The actions of the tools.
    pub actions: &'r Actions,
    /// The working folder after the run.
    pub workspace: &'r Root,
}

impl Checks {
    /// Reads the checks of a case.
    pub(super) fn parse(checks: &Field<'_>) -> Result<Checks, FieldProblem> {
        checks.object(&[&KEYS])?;
        let mut list = Vec::new();
        add_texts(checks, "answer_", None, &mut list)?;
        for file in checks.list("files")? {
            file.object(&[&FILE_KEYS])?;
            let path = file.get("path").ok_or_else(|| file.problem("it has no `path`"))?.text()?;
            list.push(Check::Text { file: Some(path.into()), wanted: WantedText::Any });
            add_texts(&file, "", Some(path), &mut list)?;
        }
        for (key, check) in
            [("skill", Check::Skill as fn(String) -> Check), ("script", Check::Script)]
        {
            for name in checks.get(key).map_or(Ok(Vec::new()), |names| names.texts())? {
                list.push(check(name.text()?.into()));
            }
        }
        if let Some(code) = checks.get("returncode") {
            let number = code.value.as_i64();
            let number = number.ok_or_else(|| code.problem("it is not a whole number"))?;
            list.push(Check::Returncode(number));
        }
        if list.len() > limits::EVAL_CHECKS {
            return Err(checks.problem(&format!("there are more than {}", limits::EVAL_CHECKS)));
        }
        Ok(Checks { list })
    }

    /// Decides each assertion, without the skill only those about the result: the others would
    /// make every skill look useful.
    pub fn judge(&self, run: &Observed<'_>, has_skill: bool) -> Vec<Assertion> {
        let counts = |check: &&Check| has_skill || matches!(check, Check::Text { .. });
        self.list.iter().filter(counts).map(|check| check.judge(run)).collect()
    }
}

/// Adds the texts and patterns for the answer or a file.
fn add_texts(
    field: &Field<'_>,
    prefix: &str,
    file: Option<&str>,
    list: &mut Vec<Check>,
) -> Result<(), FieldProblem> {
    let texts = |word: &str| {
        field.get(&format!("{prefix}{word}")).map_or(Ok(Vec::new()), |texts| texts.texts())
    };
    let mut add = |wanted| list.push(Check::Text { file: file.map(str::to_string), wanted });
    for text in texts("contains")? {
        add(WantedText::Contains(text.value.as_str().unwrap_or_default().into()));
    }
    for pattern in texts("matches")? {
        let text = pattern.value.as_str().unwrap_or_default();
        regex(text).map_err(|error| {
            pattern.problem(&format!("it is not a regular expression: {error}"))
        })?;
        add(WantedText::Matches(text.into()));
    }
    Ok(())
}

/// `^` and `$` stand for the ends of lines.
fn regex(pattern: &str) -> Result<Regex, regex_lite::Error> {
    let mut builder = RegexBuilder::new(pattern);
    builder.multi_line(true).size_limit(limits::EVAL_REGEX_BYTES).build()
}

impl WantedText {
    fn holds(&self, text: &str) -> bool {
        match self {
            WantedText::Any => true,
            WantedText::Contains(part) => text.contains(part),
            WantedText::Matches(pattern) => regex(pattern).is_ok_and(|regex| regex.is_match(text)),
        }
    }

    fn describe(&self, subject: &str) -> String {
        match self {
            WantedText::Any => format!("{subject} exists"),
            WantedText::Contains(part) => format!("{subject} contains `{part}`"),
            WantedText::Matches(pattern) => format!("{subject} matches `{pattern}`"),
        }
    }
}

impl Check {
    fn judge(&self, run: &Observed<'_>) -> Assertion {
        let (text, passed, evidence) = match self {
            Check::Text { file, wanted } => {
                let (subject, found) = match file {
                    None => ("the answer".to_string(), Ok(run.answer.to_string())),
                    Some(path) => (format!("the file `{path}`"), read_file(run.workspace, path)),
                };
                let passed = found.as_ref().is_ok_and(|text| wanted.holds(text));
                (wanted.describe(&subject), passed, found.map_or_else(|it| it, |text| shown(&text)))
            }
            Check::Skill(name) => {
                let read: Vec<&str> = run.actions.skills_read.iter().map(String::as_str).collect();
                let passed = read.iter().any(|skill| is_named(skill, name));
                (format!("the skill `{name}` was read"), passed, names("read", &read))
            }
            Check::Script(file) => {
                let ran =
                    run.actions.scripts_run.iter().filter_map(|script| script.file.as_deref());
                let ran: Vec<&str> = ran.collect();
                let passed = ran.iter().any(|ran| is_script(ran, file));
                (format!("the script `{file}` ran"), passed, names("ran", &ran))
            }
            Check::Returncode(code) => {
                let last = run.actions.scripts_run.last().map(|run| i64::from(run.returncode));
                let evidence = last.map(|last| format!("it ended with {last}"));
                (
                    format!("the last script ended with {code}"),
                    last == Some(*code),
                    evidence.unwrap_or_else(|| "no script ran".into()),
                )
            }
        };
        Assertion { text, passed: Some(passed), evidence }
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

fn names(verb: &str, names: &[&str]) -> String {
    if names.is_empty() { "none".into() } else { format!("{verb}: {}", names.join(", ")) }
}

/// The text of a file; of a larger one its beginning.
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
