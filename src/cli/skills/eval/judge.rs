//! Assertions in prose, decided by a model. What it judges is data in JSON, and only a reply that is
//! nothing but the verdict counts.

use serde::Deserialize;
use serde_json::{Value, json};

use super::record::Expectation;
use crate::cli::run::Run;
use crate::config::Endpoint;
use crate::error::{ErrorKind, FailedPart, Result};
use crate::limits;
use crate::message::Message;
use crate::model::http::HttpModel;
use crate::model::{Model, ModelRequest};
use crate::skills::evals::{Observed, TaskCase};
use crate::text::{self, single_fence, truncate};
use crate::world::confined::{Root, WalkLimits, read_whole};

/// The instructions of the judge.
const PROMPT: &str = include_str!("judge.txt");

/// The judge's reply.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verdicts {
    expectations: Vec<JudgedExpectation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedExpectation {
    text: String,
    passed: bool,
    evidence: String,
}

/// Asks the model about all assertions in prose, again if it does not answer in its form.
pub(super) fn judge(
    run: &Run,
    model: &str,
    task: &TaskCase,
    observed: &Observed<'_>,
) -> Result<Vec<Expectation>> {
    let endpoint = Endpoint { model: model.to_string(), ..run.config.endpoint()? };
    let judge = HttpModel::new(endpoint, run.options.stream, run.cancellation.clone());
    let messages =
        [Message::System(PROMPT.into()), Message::User(data(task, observed).to_string().into())];
    let request = ModelRequest { messages: &messages, tools: &[] };
    let mut reason = String::new();
    for _ in 0..limits::EVAL_JUDGE_TRIES {
        match judge.complete(&request, &mut |_| {}) {
            Ok(reply) => match verdicts(&reply.message.content, task) {
                Some(verdicts) => return Ok(verdicts),
                None => {
                    let reply = text::one_line(&reply.message.content, limits::EVAL_EVIDENCE_BYTES);
                    reason = format!("the judge did not answer in its form: {reply}");
                }
            },
            Err(error)
                if error.part() == Some(FailedPart::Answer)
                    || matches!(error.kind(), ErrorKind::Context { .. }) =>
            {
                reason = format!("the judge has no answer: {}", error.message());
            }
            Err(error) if error.part() == Some(FailedPart::Model) => {
                return Err(error.with_hint("check --judge"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(undecided(task, &reason))
}

/// The assertions, none of which is decided.
pub(super) fn undecided(task: &TaskCase, reason: &str) -> Vec<Expectation> {
    let all = task.expectations.iter().map(|text| Expectation {
        text: text.clone(),
        passed: None,
        evidence: reason.to_string(),
    });
    all.collect()
}

/// The verdicts of a reply that consists of them alone, in the order and words of the task.
fn verdicts(reply: &str, task: &TaskCase) -> Option<Vec<Expectation>> {
    let json = single_fence(reply).filter(|fence| fence.is_alone).map_or(reply, |fence| fence.body);
    let verdicts: Verdicts = serde_json::from_str(json).ok()?;
    let texts = verdicts.expectations.iter().map(|verdict| verdict.text.trim());
    if !texts.eq(task.expectations.iter().map(|text| text.trim())) {
        return None;
    }
    let all = verdicts.expectations.into_iter().map(|verdict| Expectation {
        text: verdict.text,
        passed: Some(verdict.passed),
        evidence: text::one_line(&verdict.evidence, limits::EVAL_EVIDENCE_BYTES),
    });
    Some(all.collect())
}

/// What the judge gets.
fn data(task: &TaskCase, observed: &Observed<'_>) -> Value {
    let actions = observed.actions;
    let scripts = actions.scripts_run.iter();
    let scripts = scripts.map(|run| json!({"file": run.file, "returncode": run.returncode}));
    let commands = actions.commands_run.iter();
    let commands =
        commands.map(|run| json!({"command": run.command, "returncode": run.returncode}));
    json!({
        "task": task.prompt,
        "expected_output": task.expected_output,
        "answer": truncate(observed.answer, limits::EVAL_RESULT_BYTES),
        "actions": {
            "skills_read": actions.skills_read,
            "scripts_run": scripts.collect::<Vec<_>>(),
            "commands_run": commands.collect::<Vec<_>>(),
        },
        "files": files(observed.workspace),
        "expectations": task.expectations,
    })
}

/// The files of the workspace with their texts, up to a limit.
fn files(workspace: &Root) -> Vec<Value> {
    let most = limits::EVAL_JUDGED_FILES;
    let bounds =
        WalkLimits { depth: limits::WALK_DEPTH, files: most, entries: limits::WALK_ENTRIES };
    let mut left = limits::EVAL_RESULT_BYTES;
    let tree = workspace.walk(bounds).unwrap_or_default();
    let described = tree.files.iter().filter_map(|path| {
        let file = workspace.file(path).ok()?;
        let size = file.metadata().ok()?.len();
        let piece = read_whole(&file, left).ok()?;
        let text = String::from_utf8(piece.bytes).ok().filter(|text| !text.contains('\0'));
        left -= text.as_ref().map_or(0, String::len);
        Some(json!({
            "path": path.to_string_lossy(),
            "bytes": size,
            "text": text,
            "is_cut": piece.has_more,
        }))
    });
    described.collect()
}
