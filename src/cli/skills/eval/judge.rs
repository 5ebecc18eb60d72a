//! Assertions in prose, decided by a model. What it judges is data in JSON, and only a reply that
//! is nothing but the verdict counts.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::run::Run;
use base::error::{ErrorKind, FailedPart, Result};
use base::limits;
use base::message::Message;
use base::text::{self, single_fence, truncate};
use chat_api::Endpoint;
use chat_api::http::HttpModel;
use chat_api::{Model, ModelRequest};
use host::confined::{Root, WalkLimits, read_whole};
use skills::evals::{Assertion, Observed, Task};

/// The instructions of the judge.
const PROMPT: &str = include_str!("judge.txt");

/// The judge's reply.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verdicts {
    expectations: Vec<JudgedAssertion>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedAssertion {
    text: String,
    passed: bool,
    evidence: String,
}

/// Asks the model, once, about all assertions in prose.
pub(super) fn judge(
    run: &Run,
    model: &str,
    task: &Task,
    prompt: &str,
    observed: &Observed<'_>,
) -> Result<Vec<Assertion>> {
    let endpoint = Endpoint { model: model.to_string(), ..run.config.endpoint()? };
    let judge = HttpModel::new(endpoint, run.options.stream, run.cancellation.clone());
    let messages = [
        Message::System(PROMPT.into()),
        Message::User(data(task, prompt, observed).to_string().into()),
    ];
    let request = ModelRequest::of_messages(&messages);
    match judge.complete(&request, &mut |_| {}) {
        Ok(reply) => Ok(verdicts(&reply.message.content, task)),
        Err(error)
            if matches!(error.part(), Some(FailedPart::Answer(_)))
                || matches!(error.kind(), ErrorKind::Context { .. }) =>
        {
            Ok(undecided(task, &format!("the judge has no answer: {}", error.message())))
        }
        Err(error) if error.part() == Some(FailedPart::Model) => {
            Err(error.with_hint("check --judge"))
        }
        Err(error) => Err(error),
    }
}

/// The assertions in prose, none of which is decided.
pub(super) fn undecided(task: &Task, reason: &str) -> Vec<Assertion> {
    let all = task.expectations.iter().map(|text| Assertion {
        text: text.clone(),
        passed: None,
        evidence: reason.to_string(),
    });
    all.collect()
}

/// The verdicts of a reply that consists of them alone, in the order and words of the statements.
fn verdicts(reply: &str, task: &Task) -> Vec<Assertion> {
    let json = single_fence(reply).filter(|fence| fence.is_alone).map_or(reply, |fence| fence.body);
    let parsed = serde_json::from_str::<Verdicts>(json).map(|verdicts| verdicts.expectations);
    let is_complete = |verdicts: &Vec<JudgedAssertion>| {
        let texts = verdicts.iter().map(|verdict| words(&verdict.text));
        texts.eq(task.expectations.iter().map(|text| words(text)))
    };
    let Some(verdicts) = parsed.ok().filter(is_complete) else {
        let reply = text::one_line(reply, limits::EVAL_EVIDENCE_BYTES);
        return undecided(task, &format!("the judge did not answer in its form: {reply}"));
    };
    let all = verdicts.into_iter().zip(&task.expectations).map(|(verdict, text)| Assertion {
        text: text.clone(),
        passed: Some(verdict.passed),
        evidence: text::one_line(&verdict.evidence, limits::EVAL_EVIDENCE_BYTES),
    });
    all.collect()
}

/// The words of a statement: models change its signs and capitals when they repeat it.
fn words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The judge's input.
fn data(task: &Task, prompt: &str, observed: &Observed<'_>) -> Value {
    let actions = observed.actions;
    let scripts = actions.scripts_run.iter();
    let scripts = scripts.map(|run| json!({"file": run.file, "returncode": run.returncode}));
    let commands = actions.commands_run.iter();
    let commands =
        commands.map(|run| json!({"command": run.command, "returncode": run.returncode}));
    json!({
        "task": prompt,
        "expected_output": task.expected_output,
        "answer": truncate(observed.answer, limits::EVAL_RESULT_BYTES),
        "actions": {
            "skills_read": actions.skills_read,
            "scripts_run": scripts.collect::<Vec<_>>(),
            "commands_run": commands.collect::<Vec<_>>(),
        },
        "files": files(task, observed.workspace),
        "expectations": task.expectations,
    })
}

/// The files of the workspace with their texts, up to a limit: those that the run has made first.
fn files(task: &Task, workspace: &Root) -> Vec<Value> {
    let files = limits::EVAL_JUDGED_FILES;
    let bounds = WalkLimits { depth: limits::WALK_DEPTH, files, entries: limits::WALK_ENTRIES };
    let mut paths = workspace.walk(bounds).unwrap_or_default().files;
    let is_given = |path: &std::path::PathBuf| {
        task.files.iter().any(|file| std::path::Path::new(&file.target) == path)
    };
    paths.sort_by_key(is_given);
    let mut left = limits::EVAL_RESULT_BYTES;
    let described = paths.iter().filter_map(|path| {
        let file = workspace.file(path).ok()?;
        let size = file.metadata().ok()?.len();
        let piece = read_whole(&file, left).ok()?;
        // A character may be cut at the end.
        let text = String::from_utf8_lossy(&piece.bytes);
        let text = Some(text.trim_end_matches('\u{fffd}'))
            .filter(|text| !text.contains(['\0', '\u{fffd}']));
        left -= text.map_or(0, str::len).min(left);
        Some(json!({
            "path": path.to_string_lossy(),
            "bytes": size,
            "text": text,
            "is_cut": piece.has_more,
        }))
    });
    described.collect()
}
