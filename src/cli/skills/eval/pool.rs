//! Makes the runs, several at a time, each in a process of its own.

use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::execute;
use super::record::{RunRecord, RunReply};
use super::store::{Store, create_below};
use super::{PlannedRun, write_error};
use crate::cli::options::EvalCommand;
use crate::cli::run::Run;
use crate::ui::Output;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::text::{counted, group_digits, one_line};
use host::scratch::Scratch;
use host::signal::Signal;
use host::worker::Worker;

/// A run in progress.
struct RunningRun {
    worker: Worker,
    workspace: PathBuf,
    /// Where the workspace is kept: in a folder below another one. `None`: it is deleted.
    kept: Option<(PathBuf, PathBuf)>,
}

/// Makes the planned runs, and stores each result at once. Ends early if the endpoint fails or the
/// run is interrupted.
pub(super) fn run_all(
    run: &mut Run,
    planned: &[PlannedRun<'_>],
    command: &EvalCommand,
    store: &mut Store,
    output: &mut Output,
) -> Result<()> {
    let failure = |error| Error::new(ErrorKind::Io, format!("failed to start a run: {error}"));
    let temporary = run.config.scripts.temporary_folder.clone();
    // A file system renames only within itself.
    let device = |folder: &Path| folder.metadata().ok().map(|metadata| metadata.dev());
    let other_device = store.folder().filter(|folder| device(folder) != device(&temporary));
    let scratch = Scratch::new(other_device.unwrap_or(&temporary)).map_err(failure)?;
    let mut progress = Progress::new(planned.len());
    let mut waiting = planned.iter().enumerate();
    let mut running: Vec<RunningRun> = Vec::new();
    let result = loop {
        while running.len() < command.jobs
            && let Some((number, planned)) = waiting.next()
        {
            // The path is in the system prompt: it says nothing about the test.
            let workspace = scratch.path().join(number.to_string());
            let kept = store.outputs(&planned.key);
            let reply = || execute::reply_as_json(run, planned, command, &workspace);
            let worker = Worker::start(Signal::TERM, reply).map_err(failure)?;
            running.push(RunningRun { worker, workspace, kept });
        }
        if running.is_empty() {
            break Ok(());
        }
        output.show_live(&progress.line());
        let pipes: Vec<BorrowedFd<'_>> = running.iter().map(|run| run.worker.pipe()).collect();
        let ready = match run.cancellation.wait_for_any(&pipes, limits::EVAL_PROGRESS) {
            Ok(ready) => ready,
            Err(stop) => break Err(stop.into()),
        };
        // All that were measured are stored, also if one of them failed.
        let stored = take_replies(&mut running, &ready).into_iter().map(|reply| {
            let record = reply?;
            progress.count(&record, output);
            store.add(record)
        });
        let stored: Vec<Result<()>> = stored.collect();
        if let Some(failed) = stored.into_iter().find(Result::is_err) {
            break failed;
        }
    };
    output.clear_live();
    end_all(running);
    progress.report_end(&result, store, output);
    result
}

/// The replies of the runs that have ended, which are removed.
fn take_replies(running: &mut Vec<RunningRun>, ready: &[bool]) -> Vec<Result<RunRecord>> {
    let mut replies = Vec::new();
    for index in (0..running.len()).rev().filter(|index| ready[*index]) {
        let bytes = match running[index].worker.read() {
            Ok(None) => continue,
            Ok(Some(bytes)) => bytes,
            Err(_) => Vec::new(),
        };
        let ended = running.swap_remove(index);
        replies.push(match serde_json::from_slice(&bytes) {
            Ok(RunReply::Record(record)) => ended.keep_workspace().map(|()| *record),
            Ok(RunReply::Failure { kind, message, hint }) => {
                let error = Error::new(ErrorKind::from_name(&kind), message);
                Err(match hint {
                    Some(hint) => error.with_hint(hint),
                    None => error,
                })
            }
            Err(_) => {
                Err(Error::new(ErrorKind::Io, "failed to run a test: its process was killed"))
            }
        });
    }
    replies
}

/// Ends the runs in progress; their results are not used.
fn end_all(running: Vec<RunningRun>) {
    let until = Instant::now() + limits::EVAL_END_WAIT;
    for run in &running {
        run.worker.request_end();
    }
    for mut run in running {
        run.worker.wait_for_end(until);
    }
}

impl RunningRun {
    /// Moves the workspace, or deletes it.
    fn keep_workspace(self) -> Result<()> {
        // The process has ended: nothing writes there any more.
        drop(self.worker);
        let Some((folder, below)) = &self.kept else {
            let _ = fs::remove_dir_all(&self.workspace);
            return Ok(());
        };
        let kept = folder.join(below).join("outputs");
        let moved = create_below(folder, below).and_then(|()| {
            let _ = fs::remove_dir_all(&kept);
            fs::rename(&self.workspace, &kept)
        });
        moved.map_err(|error| write_error(&kept, &error))
    }
}

/// Counts of the runs so far.
struct Progress {
    planned: usize,
    done: usize,
    passed: usize,
    failed: usize,
    tokens: u64,
    start: Instant,
    /// Why a run was not judged.
    unjudged_reason: Option<String>,
}

impl Progress {
    fn new(planned: usize) -> Progress {
        let start = Instant::now();
        Progress { planned, done: 0, passed: 0, failed: 0, tokens: 0, start, unjudged_reason: None }
    }

    /// Counts a run, and reports one that failed.
    fn count(&mut self, record: &RunRecord, output: &mut Output) {
        self.done += 1;
        // An endpoint may report any number.
        self.tokens = self.tokens.saturating_add(record.tokens);
        match record.passed {
            Some(true) => self.passed += 1,
            Some(false) => {
                self.failed += 1;
                let reason = one_line(&record.reason(), limits::EVAL_EVIDENCE_BYTES);
                output.note(&format!("failed: {}: {reason}", record.key));
            }
            None => {
                self.unjudged_reason =
                    Some(one_line(&record.reason(), limits::EVAL_EVIDENCE_BYTES));
            }
        }
    }

    /// Reports what is missing.
    fn report_end(&self, result: &Result<()>, store: &Store, output: &mut Output) {
        if result.is_err() {
            let advice = match store.folder() {
                Some(_) => "; the same command goes on from there",
                None => "; with --out DIR the same command goes on from there",
            };
            let planned = counted(self.planned, "run");
            output.note(&format!("stopped after {} of {planned}{advice}", self.done));
        }
        if let Some(reason) = &self.unjudged_reason {
            output
                .note(&format!("some runs were not judged, so their cases do not count: {reason}"));
        }
    }

    fn line(&self) -> String {
        let left = self.planned - self.done;
        let mut line = format!(
            "… {} of {}, {} failed, {left} left",
            self.done,
            counted(self.planned, "run"),
            self.failed
        );
        if let Some(percent) = (100 * self.passed).checked_div(self.passed + self.failed) {
            line += &format!(", {percent} % passed");
        }
        if self.tokens > 0 {
            line += &format!(", {} tokens", group_digits(self.tokens));
        }
        if self.done > 0 {
            let each = self.start.elapsed() / u32::try_from(self.done).unwrap_or(u32::MAX);
            let time = each * u32::try_from(left).unwrap_or(u32::MAX);
            line += &format!(", about {} s to go", time.as_secs());
        }
        line
    }
}
