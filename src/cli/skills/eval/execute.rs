//! One run, in a process of its own.

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::judge;
use super::record::{EvalKind, RunRecord, RunReply};
use super::{PlannedRun, Suite};
use crate::cli::one_shot;
use crate::cli::options::EvalCommand;
use crate::cli::run::Run;
use crate::ui::{Format, Output, TerminalFeatures, Verbosity};
use agent::conversation::Conversation;
use agent::turn;
use base::error::{Error, ErrorKind, FailedPart, Result};
use base::event::{Actions, Event, RunStats};
use base::limits;
use base::text::truncate;
use base::tool::Action;
use host::confined::{Root, identity, read_whole};
use host::signal::{Interrupt, Signal};
use skills::evals::{Assertion, EvalCase, ExpectedSkill, Goal, Observed, Task, TaskFile};

/// Makes the run in this folder, which does not exist yet, and returns the reply as JSON. Called in
/// a forked process: `run` is its own.
pub(super) fn reply_as_json(
    run: &mut Run,
    planned: &PlannedRun<'_>,
    command: &EvalCommand,
    workspace: &Path,
) -> Vec<u8> {
    run.cancellation.interrupt = run.cancellation.interrupt.install_in_child();
    let measured = measure(run, planned, command, workspace);
    if measured.is_err() && run.cancellation.interrupt.pending().is_some() {
        // The parent may have been killed: it deletes nothing then.
        let _ = fs::remove_dir_all(workspace);
        let _ = workspace.parent().map(fs::remove_dir);
    }
    let reply = match measured {
        Ok(record) => RunReply::Record(Box::new(record)),
        Err(error) => RunReply::Failure {
            kind: error.kind().name().into(),
            message: error.message().into(),
            hint: error.hint().map(str::to_string),
        },
    };
    serde_json::to_vec(&reply).unwrap_or_default()
}

fn measure(
    run: &mut Run,
    planned: &PlannedRun<'_>,
    command: &EvalCommand,
    workspace: &Path,
) -> Result<RunRecord> {
    let PlannedRun { suite, case, key } = planned;
    let files = match &case.goal {
        Goal::Trigger(_) => &[],
        Goal::Task(task) => task.files.as_slice(),
    };
    make_workspace(workspace, suite, files)?;
    enter_workspace(run, suite, key.kind, workspace);
    let (mut record, actions) = ask(run, planned)?;
    match &case.goal {
        Goal::Trigger(expected) => {
            let is_expected = is_expected(expected, record.first_skill.as_deref(), suite);
            record.passed = Some(record.error.is_none() && is_expected);
        }
        Goal::Task(task) => {
            record.expectations =
                assertions(run, (&case.prompt, task), &record, &actions, command)?;
            record.passed = verdict(&record, command);
        }
    }
    record.answer = truncate(&record.answer, limits::EVAL_ANSWER_BYTES).into_owned();
    Ok(record)
}

/// Whether the first skill that came into play is the expected one.
fn is_expected(expected: &ExpectedSkill, first: Option<&str>, suite: &Suite) -> bool {
    match expected {
        ExpectedSkill::This => first == Some(&suite.name),
        ExpectedSkill::NotThis => first != Some(&suite.name),
        ExpectedSkill::None => first.is_none(),
        // The name may be an alias.
        ExpectedSkill::Named(name) => {
            let catalogue = suite.skills.catalogue();
            first.is_some() && first == catalogue.find(name).ok().map(|skill| skill.name.as_str())
        }
    }
}

/// A task fails if the model failed or an assertion does not hold, and passes if all hold; if
/// neither is known, it was not judged.
fn verdict(record: &RunRecord, command: &EvalCommand) -> Option<bool> {
    let verdicts = || record.expectations.iter().map(|it| it.passed);
    if record.error.is_some() {
        // Without a judge also a run with an answer may have no verdict.
        let can_be_judged = command.judge.is_some() || verdicts().all(|it| it.is_some());
        return can_be_judged.then_some(false);
    }
    if verdicts().any(|it| it == Some(false)) {
        return Some(false);
    }
    let are_known = !record.expectations.is_empty() && verdicts().all(|it| it.is_some());
    are_known.then_some(true)
}

/// Creates the working folder with copies of files of the skill.
fn make_workspace(workspace: &Path, suite: &Suite, files: &[TaskFile]) -> Result<()> {
    let failure = |cause: String| {
        let folder = workspace.display();
        Error::new(ErrorKind::Io, format!("failed to prepare the folder `{folder}`: {cause}"))
    };
    fs::create_dir(workspace).map_err(|error| failure(error.to_string()))?;
    let skill = Root::open(&suite.path).map_err(|error| failure(error.user_message()))?;
    for TaskFile { source, target } in files {
        let copied = skill.file(source).map_err(|error| error.user_message()).and_then(|file| {
            let target = workspace.join(target);
            let piece = read_whole(&file, limits::EVAL_FILE_BYTES).map_err(|e| e.to_string())?;
            if piece.has_more {
                return Err(format!("it is larger than {} MiB", limits::EVAL_FILE_BYTES >> 20));
            }
            let folder = target.parent().unwrap_or(workspace);
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&target, piece.bytes))
                .map_err(|error| error.to_string())
        });
        copied.map_err(|cause| failure(format!("`{source}`: {cause}")))?;
    }
    Ok(())
}

/// Makes the workspace the user's folder, and leaves out what must not differ between runs: the
/// user's memory and notes, and in a baseline the skill.
fn enter_workspace(run: &mut Run, suite: &Suite, kind: EvalKind, workspace: &Path) {
    run.folder = workspace.to_path_buf();
    run.config.scripts.user_folder = workspace.to_path_buf();
    run.config.scripts.user_folder_identity = identity(workspace);
    (run.config.storage.facts, run.config.storage.notes) = (None, None);
    run.skills = suite.skills.clone();
    if kind == EvalKind::Baseline {
        run.skills = run.skills.clone().without(&suite.path);
    }
}

/// Asks the model; a trigger ends when a document has been read. An error is one of the endpoint or
/// of this machine, not of the model.
fn ask(run: &Run, planned: &PlannedRun<'_>) -> Result<(RunRecord, Actions)> {
    let PlannedRun { suite, case: EvalCase { prompt, .. }, key } = planned;
    let (format, features) = (Format::Text, TerminalFeatures::default());
    let mut output = Output::new(format, Verbosity::Quiet, features, Interrupt::never());
    let start = Instant::now();
    let model = one_shot::new_model(run)?;
    let (system_prompt, tools) = run.prepare_model_input(prompt, &model, &mut output);
    let mut conversation = Conversation::new(&system_prompt);
    conversation.add_question(prompt.as_str());
    let (mut stats, mut was_read) = (RunStats::default(), false);
    let limits = run.turn_limits();
    let mut end_at_document = |event: Event<'_>| {
        if let Event::ToolResult { result, .. } = event
            && key.kind == EvalKind::Trigger
            && matches!(result.action, Some(Action::ReadSkill(_)))
        {
            was_read = true;
            run.cancellation.interrupt.raise(Signal::TERM);
        }
    };
    let outcome = turn::run_turn(
        &mut conversation,
        &model,
        &tools,
        &limits,
        &mut stats,
        &mut end_at_document,
    );
    let error = match outcome {
        _ if was_read => None,
        Ok(outcome) => outcome.cause.or_else(|| one_shot::incomplete_error(outcome.finish)),
        Err(error) if is_of_the_model(&error) => Some(error),
        Err(error) => return Err(error),
    };
    let RunStats { steps, tool_calls, usage, actions, .. } = stats;
    let script_skill = || actions.scripts_run.iter().find_map(|script| script.skill.clone());
    let record = RunRecord {
        key: key.clone(),
        digest: suite.digest.clone(),
        passed: None,
        expectations: Vec::new(),
        first_skill: actions.skills_read.first().cloned().or_else(script_skill),
        answer: conversation.answer_text().to_string(),
        error: error.map(|error| error.message().to_string()),
        steps,
        tool_calls,
        tokens: usage.prompt_tokens.saturating_add(usage.completion_tokens),
        seconds: start.elapsed().as_secs_f64(),
    };
    Ok((record, actions))
}

/// Whether a failure counts as one of the model: another try would have the same chance.
fn is_of_the_model(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Limit | ErrorKind::Context { .. } | ErrorKind::Truncated => true,
        _ => matches!(error.part(), Some(FailedPart::Answer(_))),
    }
}

/// The assertions of a task, each decided if that is possible.
fn assertions(
    run: &Run,
    (prompt, task): (&str, &Task),
    record: &RunRecord,
    actions: &Actions,
    command: &EvalCommand,
) -> Result<Vec<Assertion>> {
    let root = Root::open(&run.folder);
    let root = root.map_err(|error| Error::new(ErrorKind::Io, error.user_message()))?;
    let observed = Observed { answer: &record.answer, actions, workspace: &root };
    let mut assertions = task.checks.judge(&observed, record.key.kind == EvalKind::Task);
    assertions.extend(match (&command.judge, &record.error) {
        (_, Some(_)) => judge::undecided(task, "the run has no whole answer"),
        (None, None) => judge::undecided(task, "there is no --judge"),
        (Some(model), None) if !task.expectations.is_empty() => {
            judge::judge(run, model, task, prompt, &observed)?
        }
        (Some(_), None) => Vec::new(),
    });
    Ok(assertions)
}
