//! One run, in a process of its own.

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::judge;
use super::record::{EvalKind, Expectation, RunRecord, RunReply};
use super::{PlannedRun, Suite};
use crate::agent::{self, TurnOutcome};
use crate::cli::one_shot;
use crate::cli::options::EvalCommand;
use crate::cli::run::Run;
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind, FailedPart, Result};
use crate::event::{Event, RunStats};
use crate::limits;
use crate::model::FinishReason;
use crate::skills::evals::{ExpectedSkill, Observed, TaskCase};
use crate::text::truncate;
use crate::tool::Action;
use crate::world::confined::{Root, identity, read_whole};
use crate::world::output::{Format, Output, TerminalFeatures, Verbosity};
use crate::world::signal::{Interrupt, Signal};

/// Makes the run in this folder, which is new, and returns the reply as JSON. Called in a forked
/// process: `run` is its own.
pub(super) fn reply(
    run: &mut Run,
    planned: &PlannedRun<'_>,
    command: &EvalCommand,
    workspace: &Path,
) -> Vec<u8> {
    run.cancellation.interrupt = run.cancellation.interrupt.install_in_child();
    let record = record(run, planned, command, workspace);
    if run.cancellation.interrupt.pending().is_some() && record.is_err() {
        // The parent may have been killed: it deletes nothing then.
        let _ = fs::remove_dir_all(workspace);
        let _ = workspace.parent().map(fs::remove_dir);
    }
    let reply = match record {
        Ok(record) => RunReply::Record(Box::new(record)),
        Err(error) => RunReply::Failure {
            kind: error.kind().name().into(),
            message: error.message().into(),
            hint: error.hint().map(str::to_string),
        },
    };
    serde_json::to_vec(&reply).unwrap_or_default()
}

fn record(
    run: &mut Run,
    planned: &PlannedRun<'_>,
    command: &EvalCommand,
    workspace: &Path,
) -> Result<RunRecord> {
    let PlannedRun { suite, case, key } = planned;
    let files = match key.kind {
        EvalKind::Trigger => &[],
        EvalKind::Task | EvalKind::Baseline => suite.evals.tasks[*case].files.as_slice(),
    };
    make_workspace(workspace, suite, files.iter().map(|file| (&*file.source, &*file.target)))?;
    enter(run, suite, key.kind, workspace);
    let prompt = key.kind.text(&suite.evals, &key.case).unwrap_or_default();
    let ends_at_skill = key.kind == EvalKind::Trigger;
    let mut made = Made::run(run, prompt, ends_at_skill)?;
    let mut record = RunRecord {
        key: key.clone(),
        digest: suite.digest.clone(),
        passed: None,
        expectations: Vec::new(),
        first_skill: made.first_skill(),
        answer: truncate(&made.answer, limits::EVAL_ANSWER_BYTES).into_owned(),
        error: made.error.take(),
        steps: made.stats.steps,
        tool_calls: made.stats.tool_calls,
        tokens: made.stats.usage.prompt_tokens + made.stats.usage.completion_tokens,
        seconds: made.seconds,
    };
    match key.kind {
        EvalKind::Trigger => {
            let expected = &suite.evals.triggers[*case].expected;
            let first = record.first_skill.as_deref();
            record.passed =
                Some(record.error.is_none() && is_expected(expected, first, &suite.name));
        }
        EvalKind::Task | EvalKind::Baseline => {
            let task = &suite.evals.tasks[*case];
            record.expectations =
                expectations(run, task, &made, command, workspace, key.kind == EvalKind::Task)?;
            record.passed = verdict(&record);
        }
    }
    Ok(record)
}

/// Whether the first skill that was read is the expected one.
pub(super) fn is_expected(expected: &ExpectedSkill, first: Option<&str>, this: &str) -> bool {
    match expected {
        ExpectedSkill::This => first == Some(this),
        ExpectedSkill::NotThis => first != Some(this),
        ExpectedSkill::Named(name) => first == Some(name),
        ExpectedSkill::None => first.is_none(),
    }
}

/// A task passes if every assertion holds, and fails if one does not; if neither is known, it was
/// not judged.
fn verdict(record: &RunRecord) -> Option<bool> {
    let verdicts = || record.expectations.iter().map(|it| it.passed);
    if record.error.is_some() || verdicts().any(|it| it == Some(false)) {
        return Some(false);
    }
    let are_known = !record.expectations.is_empty() && verdicts().all(|it| it.is_some());
    are_known.then_some(true)
}

/// Creates the working folder with copies of files of the skill.
fn make_workspace<'f>(
    workspace: &Path,
    suite: &Suite,
    files: impl Iterator<Item = (&'f str, &'f str)>,
) -> Result<()> {
    let failure = |cause: String| {
        let folder = workspace.display();
        Error::new(ErrorKind::Io, format!("failed to prepare the folder `{folder}`: {cause}"))
    };
    fs::create_dir(workspace).map_err(|error| failure(error.to_string()))?;
    let skill = Root::open(&suite.path).map_err(|error| failure(error.user_message()))?;
    for (source, target) in files {
        let copied = skill.file(source).map_err(|error| error.user_message()).and_then(|file| {
            let target = workspace.join(target);
            let piece = read_whole(&file, limits::EVAL_FILE_BYTES).map_err(|e| e.to_string())?;
            if piece.has_more {
                return Err(format!("it is larger than {} MiB", limits::EVAL_FILE_BYTES >> 20));
            }
            let folder = target.parent().unwrap_or(workspace);
            fs::create_dir_all(folder).map_err(|error| error.to_string())?;
            fs::write(&target, piece.bytes).map_err(|error| error.to_string())
        });
        copied.map_err(|cause| failure(format!("`{source}`: {cause}")))?;
    }
    Ok(())
}

/// Makes the workspace the user's folder, and leaves out what must not differ between runs: the
/// user's memory and notes, and in a baseline the skill.
fn enter(run: &mut Run, suite: &Suite, kind: EvalKind, workspace: &Path) {
    run.folder = workspace.to_path_buf();
    run.config.scripts.user_folder = workspace.to_path_buf();
    run.config.scripts.user_folder_identity = identity(workspace);
    (run.config.storage.facts, run.config.storage.notes) = (None, None);
    run.skills = suite.skills.clone();
    if kind == EvalKind::Baseline {
        run.skills = run.skills.clone().without(&suite.path);
    }
}

/// A turn that has ended.
struct Made {
    answer: String,
    /// Why it is no answer, or not a whole one.
    error: Option<String>,
    stats: RunStats,
    seconds: f64,
}

impl Made {
    /// The first skill that came into play: its document was read, or a script of it ran.
    fn first_skill(&self) -> Option<String> {
        let actions = &self.stats.actions;
        let scripts = || actions.scripts_run.iter().find_map(|script| script.skill.clone());
        actions.skills_read.first().cloned().or_else(scripts)
    }

    /// Asks the model. An error is one of the endpoint or of this machine, not of the model.
    fn run(run: &Run, prompt: &str, ends_at_skill: bool) -> Result<Made> {
        let mut output = Output::new(
            Format::Text,
            Verbosity::Quiet,
            TerminalFeatures::default(),
            Interrupt::never(),
        );
        let start = Instant::now();
        let (system_prompt, tools) = run.prepare_model_input(prompt, &mut output);
        let model = one_shot::new_model(run)?;
        let mut conversation = Conversation::new(&system_prompt);
        conversation.add_question(prompt);
        let mut stats = RunStats::default();
        let mut was_read = false;
        let interrupt = &run.cancellation.interrupt;
        let outcome = agent::run_turn(
            &mut conversation,
            &model,
            &tools,
            &run.turn_limits(),
            &mut stats,
            &mut |event| {
                if let Event::ToolResult { result, .. } = event
                    && ends_at_skill
                    && matches!(result.action, Some(Action::ReadSkill(_)))
                {
                    was_read = true;
                    interrupt.raise(Signal::TERM);
                }
            },
        );
        let seconds = start.elapsed().as_secs_f64();
        let answer = conversation.answer_text().to_string();
        let error = match outcome {
            _ if was_read => None,
            Ok(outcome) => incompleteness(&outcome),
            Err(error) if is_of_the_model(&error) => Some(error.message().to_string()),
            Err(error) => return Err(error),
        };
        Ok(Made { answer, error, stats, seconds })
    }
}

/// Why an answer is not a whole one.
fn incompleteness(outcome: &TurnOutcome) -> Option<String> {
    match (&outcome.cause, outcome.finish) {
        (Some(cause), _) => Some(cause.message().to_string()),
        (None, FinishReason::Complete) => None,
        (None, finish) => one_shot::incomplete_error(finish).map(|it| it.message().to_string()),
    }
}

/// Whether a failure counts as one of the model: another try would have the same chance.
fn is_of_the_model(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Limit | ErrorKind::Context { .. } | ErrorKind::Truncated => true,
        _ => error.part() == Some(FailedPart::Answer),
    }
}

/// The assertions of a task, each decided if that is possible.
fn expectations(
    run: &Run,
    task: &TaskCase,
    made: &Made,
    command: &EvalCommand,
    workspace: &Path,
    has_skill: bool,
) -> Result<Vec<Expectation>> {
    let root =
        Root::open(workspace).map_err(|error| Error::new(ErrorKind::Io, error.user_message()))?;
    let observed =
        Observed { answer: &made.answer, actions: &made.stats.actions, workspace: &root };
    let checks = task.checks.judge(&observed, has_skill).into_iter();
    let mut expectations: Vec<Expectation> = checks
        .map(|check| Expectation {
            text: check.text,
            passed: Some(check.passed),
            evidence: check.evidence,
        })
        .collect();
    let judged = match &command.judge {
        Some(model) if !task.expectations.is_empty() && made.error.is_none() => {
            judge::judge(run, model, task, &observed)?
        }
        _ => judge::undecided(task, "there is no --judge"),
    };
    expectations.extend(judged);
    Ok(expectations)
}
