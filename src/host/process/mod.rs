//! Runs a child program and controls all processes that it starts.
//!
//! [`run`] is one `poll` loop in one thread over the program's streams, the interrupt and the
//! guardian's report. The guardian (`guardian`) watches the program and all its descendants and
//! kills them on demand. `capture` keeps a limited part of the output; [`run_with_output`]
//! passes all of it to a sink as it arrives. When `run` returns no descendant is left, whatever
//! they tried, unless they are to be kept. The meaning of a result is decided by callers: this
//! module has no notion of skills or interpreters.
//!
//! Only children that `run` itself started are waited for or killed, so a host program may have
//! threads and children of its own.

mod exec;
mod script_process;
mod streams;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::limits;
use libc::c_int;

use super::capture::{Capture, CaptureLimits};
pub use super::event_source::{EventSource, ScriptStream};
use super::files::is_transient;
use super::guardian::GuardianReport;
pub use super::guardian::is_in_script;
use super::poll::Readiness;
use super::sandbox::limit_file_size;
use super::scratch::Scratch;
use super::signal::{Interrupt, Signal};
use super::subreaper::adopt_orphans;
use script_process::GuardianHandle;
pub use script_process::is_guardian_error;
use streams::ChildOutput;

/// Program to run, with its limits.
pub struct ProcessJob<'a> {
    /// The program's file: an absolute path. `PATH` is not searched.
    pub program: &'a Path,
    /// Its arguments, without the program name.
    pub args: &'a [OsString],
    /// Its working directory.
    pub folder: &'a Path,
    /// Its complete environment; nothing is added.
    pub environment: &'a [(OsString, OsString)],
    /// Its standard input; `/dev/null` if empty.
    pub stdin: &'a [u8],
    /// Its time limit.
    pub limit: Duration,
    /// Treatment of processes that outlive it.
    pub leftovers: Leftovers,
    /// Limits on the kept part of each output stream.
    pub output_limits: CaptureLimits,
    /// Pending signal of the runner, which kills the program.
    pub interrupt: &'a Interrupt,
    /// Its temporary folder. The guardian clears it after the program and its descendants
    /// have ended, even if the runner has been killed.
    pub scratch: Option<&'a Scratch>,
    /// Restrictions that the program's process applies to itself.
    pub restrictions: Option<Restrictions>,
    /// Event source that is served during the run.
    pub event_source: Option<&'a dyn EventSource>,
}

/// Restrictions that a process applies to itself before it executes the program.
#[derive(Clone)]
pub struct Restrictions {
    /// Called in the program's process, directly before `execve`. It runs after a `fork`: only
    /// system calls, no allocation, no locks.
    pub enter: Arc<dyn Fn() -> io::Result<()> + Send + Sync>,
    /// Whether the guardian enters its own signal scope, if the kernel supports that: then one
    /// call kills all processes of the program. They can neither gain privileges nor signal a
    /// process outside.
    pub scopes_signals: bool,
}

impl Restrictions {
    /// No file that is larger than this many bytes can be written.
    pub fn file_size(bytes: u64) -> Restrictions {
        Restrictions { enter: Arc::new(move || limit_file_size(bytes)), scopes_signals: false }
    }
}

/// Treatment of processes that outlive the program. At the time limit and at an interrupt they
/// are always killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// They are killed.
    Kill,
    /// They continue as children of the system's first process and outlive the runner too.
    /// Their output pipes are closed when `run` returns.
    Keep,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessExit {
    /// It exited with this status.
    Exited(i32),
    /// This signal killed it.
    Signaled(i32),
    /// The status is unknown: the program killed its guardian, or cannot be killed. Its
    /// descendants have been killed too if this process is a subreaper.
    Unknown,
}

/// Result of a job.
#[derive(Clone, Debug)]
pub struct ProcessOutcome {
    /// How the program ended.
    pub exit: ProcessExit,
    /// Its standard output.
    pub stdout: Capture,
    /// Its standard error.
    pub stderr: Capture,
    /// Whether it reached its time limit and was killed.
    pub timed_out: bool,
    /// The runner's pending signal for which it was killed. The signal stays pending.
    pub interrupted: Option<Signal>,
    /// Whether it was killed on behalf of the event source.
    pub cancelled: bool,
    /// Number of processes that outlived it and were killed or kept; 0 if it was killed
    /// together with its descendants.
    pub left_behind: u32,
    /// Whether some of its output could not be read.
    pub is_output_incomplete: bool,
    /// Time from its start until it and its descendants had ended.
    pub duration: Duration,
}

/// Callback for a program's output as it arrives, in arbitrary pieces. Nothing else is watched
/// while it runs, so it must not block.
pub(crate) type OutputSink<'l> = dyn FnMut(ScriptStream, &[u8]) + 'l;

/// Runs a program until its end, its time limit or an interrupt. An error means that it did not
/// run: a missing program or folder, or (`ErrorKind::Interrupted`) a signal that was already
/// pending.
pub fn run(job: &ProcessJob<'_>) -> io::Result<ProcessOutcome> {
    run_with_output(job, &mut |_, _| {})
}

/// Like [`run`], but passes the whole output to `sink`, also the part that is not kept.
pub fn run_with_output(
    job: &ProcessJob<'_>,
    sink: &mut OutputSink<'_>,
) -> io::Result<ProcessOutcome> {
    if job.interrupt.pending().is_some() {
        return Err(io::Error::new(ErrorKind::Interrupted, "a signal is pending"));
    }
    if !job.program.is_absolute() {
        let text = format!("failed to start `{}`: not an absolute path", job.program.display());
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    adopt_orphans(job.leftovers == Leftovers::Kill);
    let mut supervisor = ProcessSupervisor::start(job)?;
    let mut chunk = vec![0; limits::SCRIPT_READ_BYTES];
    while !supervisor.is_over() {
        supervisor.wait_and_serve(&mut chunk, sink);
    }
    Ok(supervisor.finish())
}

/// Phase of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProcessPhase {
    Running,
    /// The guardian has been ordered to kill.
    Killing,
    /// The guardian did not report in time, and the runner kills too.
    KillingDirectly,
    /// The program has ended; only its output is still read.
    Draining,
}

/// Supervisor of a running program.
struct ProcessSupervisor<'a> {
    job: &'a ProcessJob<'a>,
    started: Instant,
    guardian: GuardianHandle,
    phase: ProcessPhase,
    /// Deadline of the phase; `None` if it is beyond the clock's range. While the program runs
    /// it is a little later than the time limit, which the guardian enforces.
    until: Option<Instant>,
    outputs: [ChildOutput; 2],
    report: Option<GuardianReport>,
    duration: Duration,
    timed_out: bool,
    interrupted: Option<Signal>,
    cancelled: bool,
}

impl<'a> ProcessSupervisor<'a> {
    fn start(job: &'a ProcessJob<'a>) -> io::Result<ProcessSupervisor<'a>> {
        let started = Instant::now();
        let mut guardian = GuardianHandle::start(job)?;
        let child = &mut guardian.child;
        let stdout = ChildOutput::new(child.stdout.take().map(OwnedFd::from), job.output_limits)?;
        let stderr = ChildOutput::new(child.stderr.take().map(OwnedFd::from), job.output_limits)?;
        Ok(ProcessSupervisor {
            job,
            started,
            guardian,
            phase: ProcessPhase::Running,
            until: started
                .checked_add(job.limit)
                .and_then(|limit| limit.checked_add(limits::GUARDIAN_EXTRA_TIME)),
            outputs: [stdout, stderr],
            report: None,
            duration: Duration::ZERO,
            timed_out: false,
            interrupted: None,
            cancelled: false,
        })
    }

    fn is_over(&self) -> bool {
        self.phase == ProcessPhase::Draining
            && (self.outputs.iter().all(|output| output.pipe.is_none())
                || self.until.is_none_or(|until| Instant::now() >= until))
    }

    /// Waits until a descriptor is ready or the phase is over, and serves what is ready. The
    /// interrupt and the event source are served only while the program runs: all later phases
    /// are short.
    fn wait_and_serve(&mut self, chunk: &mut [u8], sink: &mut OutputSink<'_>) {
        let is_running = self.phase == ProcessPhase::Running;
        let never = Interrupt::never();
        let interrupt = if is_running { self.job.interrupt } else { &never };
        let event_source = self.job.event_source.filter(|_| is_running);
        let channel = (self.phase != ProcessPhase::Draining).then(|| self.guardian.channel.as_fd());
        let events = event_source.and_then(EventSource::descriptor);
        let next_call = event_source.and_then(EventSource::next_call);
        let until = self.until.into_iter().chain(next_call).min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let [stdout, stderr] = &self.outputs;
        let watched = [
            stdout.watched(),
            stderr.watched(),
            channel.map(|channel| (channel, Readiness::Read)),
            events.map(|events| (events, Readiness::Read)),
        ];
        let [stdout, stderr, has_report, has_event] = interrupt.poll(watched, left);

        let streams = [(ScriptStream::Out, stdout), (ScriptStream::Err, stderr)];
        for (output, (stream, is_ready)) in self.outputs.iter_mut().zip(streams) {
            if is_ready {
                match output.read(chunk) {
                    [] => {}
                    bytes => {
                        interrupt.show_output(bytes);
                        sink(stream, bytes);
                    }
                }
            }
        }
        if has_report {
            self.read_report();
        }
        if self.phase == ProcessPhase::Running {
            self.interrupted = interrupt.pending();
            self.cancelled = event_source.is_some_and(|source| !source.handle_if_due(has_event));
            if self.interrupted.is_some() || self.cancelled {
                self.kill();
            }
        }
        if self.until.is_some_and(|until| Instant::now() >= until) {
            self.end_phase();
        }
    }

    /// Orders the guardian to kill the program and its descendants.
    fn kill(&mut self) {
        self.guardian.order_kill();
        self.guardian.stop_descendants();
        self.enter(ProcessPhase::Killing, limits::GUARDIAN_REPORT);
    }

    fn enter(&mut self, phase: ProcessPhase, limit: Duration) {
        self.phase = phase;
        self.until = Instant::now().checked_add(limit);
    }

    /// Reads the guardian's report, or detects that there will be none.
    fn read_report(&mut self) {
        let mut bytes = [0; GuardianReport::BYTES];
        match self.guardian.channel.read(&mut bytes) {
            Ok(GuardianReport::BYTES) => {
                let report = GuardianReport::from_bytes(bytes);
                self.timed_out |= report.timed_out;
                self.report = Some(report);
            }
            Err(error) if is_transient(&error) => return,
            // The guardian sends no report but may be alive: order it to kill.
            Ok(_) | Err(_) => self.guardian.order_kill(),
        }
        self.conclude();
    }

    /// Handles the deadline of the phase. A guardian that does not report is stopped or gets
    /// no processor. As long as it lives its descendants can be identified, so it gets a second
    /// chance.
    fn end_phase(&mut self) {
        match self.phase {
            ProcessPhase::Running => {
                self.timed_out = true;
                self.kill();
            }
            ProcessPhase::Killing => {
                self.guardian.kill_descendants();
                self.enter(ProcessPhase::KillingDirectly, limits::GUARDIAN_LAST_REPORT);
            }
            ProcessPhase::KillingDirectly => {
                self.guardian.kill_descendants();
                self.guardian.kill();
                self.conclude();
            }
            ProcessPhase::Draining => {}
        }
    }

    /// Notes that the program has ended or cannot be reached any more.
    fn conclude(&mut self) {
        self.duration = self.started.elapsed();
        if self.report.is_none_or(|report| report.status.is_none()) {
            self.guardian.reap();
            self.guardian.kill_adopted();
        }
        self.enter(ProcessPhase::Draining, limits::SCRIPT_DRAIN);
    }

    fn finish(mut self) -> ProcessOutcome {
        self.guardian.reap();
        let unread = self.outputs.iter().any(|output| output.has_failed);
        let [stdout, stderr] = self.outputs.map(|output| output.capture);
        ProcessOutcome {
            exit: self
                .report
                .and_then(|report| report.status)
                .map_or(ProcessExit::Unknown, exit_of_status),
            stdout,
            stderr,
            timed_out: self.timed_out,
            interrupted: self.interrupted,
            cancelled: self.cancelled,
            left_behind: self.report.map_or(0, |report| report.left_behind),
            is_output_incomplete: unread,
            duration: self.duration,
        }
    }
}

fn exit_of_status(status: c_int) -> ProcessExit {
    if libc::WIFSIGNALED(status) {
        ProcessExit::Signaled(libc::WTERMSIG(status))
    } else {
        ProcessExit::Exited(libc::WEXITSTATUS(status))
    }
}

#[cfg(test)]
mod tests;
