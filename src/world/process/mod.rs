//! Runs one child program with everything that it starts under control.
//!
//! [`run`] is one thread and one `poll` loop over the program's streams, the
//! interrupt and the guardian's report. The guardian (`guardian`) holds the
//! program's whole family and kills it on demand; `capture` keeps what fits of
//! the output, and [`run_heard`] hands it on as it comes. When `run` returns nothing of the family is left, whatever it
//! tried, unless it was to be kept. What a result means to a model or a user is
//! decided above: nothing here knows of skills or interpreters.
//!
//! Only children that `run` itself started are ever waited for or killed, so a
//! host program may have threads and children of its own.

mod blocked;
mod exec;
mod script_process;
mod streams;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::limits;
use libc::c_int;

use super::capture::{Capture, CaptureLimits};
pub(crate) use super::event_source::{EventSource, ScriptStream};
use super::guardian::GuardianReport;
use super::scratch::Scratch;
use super::signal::{Interrupt, Signal};
pub use script_process::become_subreaper;
pub(super) use script_process::prepare_adoption;
use script_process::{GuardianHandle, kill_adopted};
use streams::{ChildOutput, ChildStdin, is_passing, poll};

/// One program to run.
pub(crate) struct ProcessJob<'a> {
    /// The program's file: an absolute path, never looked up in `PATH`.
    pub program: &'a Path,
    /// Its arguments, without its own name.
    pub args: &'a [OsString],
    /// Its working directory.
    pub folder: &'a Path,
    /// Its whole environment; nothing of ours is added.
    pub environment: &'a [(OsString, OsString)],
    /// What it reads from its standard input; empty for `/dev/null`.
    pub stdin: &'a [u8],
    /// How long it may run.
    pub limit: Duration,
    /// What becomes of processes that outlive it.
    pub leftovers: Leftovers,
    /// How much is kept of each of its output streams.
    pub caps: CaptureLimits,
    /// A signal to the runner kills it.
    pub interrupt: &'a Interrupt,
    /// Its temporary folder, which goes when it and its family are gone, even if
    /// this process does not live to see it.
    pub scratch: Option<&'a Scratch>,
    /// Restrictions that the program puts on itself before it starts.
    pub confine: Option<Restrictions>,
    /// Whoever is served meanwhile.
    pub event_source: Option<&'a dyn EventSource>,
}

/// Restrictions that a program puts on itself.
#[derive(Clone)]
pub struct Restrictions {
    /// Called in the program's process, last before it starts. It runs after a
    /// `fork`: only system calls, no allocation, no locks.
    pub enter: Arc<dyn Fn() -> io::Result<()> + Send + Sync>,
    /// Whether the guardian enters a domain of signals of its own, as far as the
    /// kernel has them: then one call kills all that the program started. Nothing
    /// started there can gain privileges or signal a process outside.
    pub scopes_signals: bool,
}

/// What becomes of processes that outlive the program that started them. At the
/// time limit and at an interrupt they are killed either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// They are killed.
    Kill,
    /// They live on as children of the system's first process, outlive the
    /// runner too, and lose their output streams when `run` returns.
    Keep,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessExit {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Nobody knows: it killed its guardian, or cannot be killed. What it started
    /// is gone too where this process is a subreaper.
    Lost,
}

/// What came of a job.
#[derive(Clone, Debug)]
pub(crate) struct ProcessOutcome {
    /// How the program ended.
    pub ending: ProcessExit,
    /// What it wrote to its standard output.
    pub stdout: Capture,
    /// What it wrote to its standard error.
    pub stderr: Capture,
    /// Its limit was reached and it was killed.
    pub timed_out: bool,
    /// The signal on which it was killed. It stays pending.
    pub interrupted: Option<Signal>,
    /// The event source did not let it go on, and it was killed.
    pub dismissed: bool,
    /// Processes that outlived it, and were killed or kept; 0 where it was
    /// killed together with all that it started.
    pub left_behind: u32,
    /// Some of its output could not be read.
    pub unread: bool,
    /// From its start to its end, and its family's.
    pub duration: Duration,
}

/// Hears a program's output as it comes, in pieces that end anywhere. While it
/// works nothing else is watched, so it must not wait.
pub(crate) type OutputSink<'l> = dyn FnMut(ScriptStream, &[u8]) + 'l;

/// Runs a program to its end, its limit or an interrupt. An error means that it
/// never ran: a missing program or folder, or (`ErrorKind::Interrupted`) a signal
/// that was pending already.
pub(crate) fn run(job: &ProcessJob<'_>) -> io::Result<ProcessOutcome> {
    run_heard(job, &mut |stream, bytes| {
        if let Some(event_source) = job.event_source {
            event_source.hear(stream, bytes);
        }
    })
}

/// The same, with somebody who hears the whole output, also what is not kept.
pub(crate) fn run_heard(
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
    prepare_adoption(job.leftovers);
    let mut watch = ProcessWatch::start(job)?;
    let mut chunk = vec![0; limits::SCRIPT_READ_BYTES];
    while !watch.is_over() {
        let ready = watch.wait()?;
        watch.serve(ready, &mut chunk, sink);
    }
    Ok(watch.finish())
}

/// Where a run stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProcessPhase {
    Running,
    /// The guardian was told to kill.
    Killing,
    /// It did not in time; the runner lends a hand.
    Helping,
    /// The script has ended; only its output is still awaited.
    Draining,
}

/// A run under way.
struct ProcessWatch<'a> {
    job: &'a ProcessJob<'a>,
    started: Instant,
    guardian: GuardianHandle,
    phase: ProcessPhase,
    /// When the phase ends by itself; `None` for a limit beyond all time. While the
    /// program runs that is a little later than its limit, which the guardian keeps.
    until: Option<Instant>,
    stdin: ChildStdin<'a>,
    outputs: [ChildOutput; 2],
    report: Option<GuardianReport>,
    duration: Duration,
    timed_out: bool,
    interrupted: Option<Signal>,
    dismissed: bool,
}

/// Which descriptors have something to say.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "one for each descriptor")]
struct ReadyDescriptors {
    outputs: [bool; 2],
    channel: bool,
    stdin: bool,
    interrupt: bool,
    event_source: bool,
}

impl<'a> ProcessWatch<'a> {
    fn start(job: &'a ProcessJob<'a>) -> io::Result<ProcessWatch<'a>> {
        let started = Instant::now();
        let mut guardian = GuardianHandle::start(job)?;
        let child = &mut guardian.child;
        let stdin = ChildStdin::new(child.stdin.take().map(OwnedFd::from), job.stdin)?;
        let stdout = ChildOutput::new(child.stdout.take().map(OwnedFd::from), job.caps)?;
        let stderr = ChildOutput::new(child.stderr.take().map(OwnedFd::from), job.caps)?;
        Ok(ProcessWatch {
            job,
            started,
            guardian,
            phase: ProcessPhase::Running,
            until: started
                .checked_add(job.limit)
                .and_then(|limit| limit.checked_add(limits::GUARDIAN_SPARE)),
            stdin,
            outputs: [stdout, stderr],
            report: None,
            duration: Duration::ZERO,
            timed_out: false,
            interrupted: None,
            dismissed: false,
        })
    }

    fn is_over(&self) -> bool {
        self.phase == ProcessPhase::Draining
            && (self.outputs.iter().all(|output| output.pipe.is_none())
                || self.until.is_none_or(|until| Instant::now() >= until))
    }

    /// Waits until a descriptor has something to say or the phase is over.
    fn wait(&self) -> io::Result<ReadyDescriptors> {
        let entry = |fd: Option<BorrowedFd<'_>>, events| libc::pollfd {
            // `poll` passes over negative numbers.
            fd: fd.map_or(-1, |fd| fd.as_raw_fd()),
            events,
            revents: 0,
        };
        let [stdout, stderr] = &self.outputs;
        let channel = (self.phase != ProcessPhase::Draining).then(|| self.guardian.channel.as_fd());
        let interrupt = self.job.interrupt.as_fd().filter(|_| self.phase == ProcessPhase::Running);
        let event_source = self.event_source();
        let due = event_source.and_then(EventSource::due);
        let until = self.until.into_iter().chain(due).min();
        let mut fds = [
            entry(stdout.pipe.as_ref().map(AsFd::as_fd), libc::POLLIN),
            entry(stderr.pipe.as_ref().map(AsFd::as_fd), libc::POLLIN),
            entry(channel, libc::POLLIN),
            entry(self.stdin.pipe.as_ref().map(AsFd::as_fd), libc::POLLOUT),
            entry(interrupt, libc::POLLIN),
            entry(event_source.and_then(EventSource::descriptor), libc::POLLIN),
        ];
        poll(&mut fds, until)?;
        let [stdout, stderr, channel, stdin, interrupt, event_source] =
            fds.map(|fd| fd.revents != 0);
        Ok(ReadyDescriptors { outputs: [stdout, stderr], channel, stdin, interrupt, event_source })
    }

    /// Moves what can be moved, then looks at the clock.
    fn serve(&mut self, ready: ReadyDescriptors, chunk: &mut [u8], sink: &mut OutputSink<'_>) {
        let streams = [ScriptStream::Out, ScriptStream::Err].into_iter().zip(ready.outputs);
        for (output, (stream, ready)) in self.outputs.iter_mut().zip(streams) {
            if ready {
                match output.read(chunk) {
                    [] => {}
                    bytes => sink(stream, bytes),
                }
            }
        }
        if ready.stdin {
            self.stdin.write();
        }
        if ready.channel {
            self.listen();
        }
        if self.phase == ProcessPhase::Running && ready.interrupt {
            // A stale byte without a signal would keep the descriptor readable.
            let interrupt = self.job.interrupt;
            self.interrupted = interrupt.pending().or_else(|| interrupt.take());
            if self.interrupted.is_some() {
                self.kill();
            }
        }
        if self.phase == ProcessPhase::Running {
            self.attend(ready.event_source);
        }
        if self.until.is_some_and(|until| Instant::now() >= until) {
            match self.phase {
                ProcessPhase::Running => {
                    self.timed_out = true;
                    self.kill();
                }
                ProcessPhase::Killing | ProcessPhase::Helping => self.lose_patience(),
                ProcessPhase::Draining => {}
            }
        }
    }

    /// Who is attended to: only while the program runs, all that comes later is short.
    fn event_source(&self) -> Option<&'a dyn EventSource> {
        self.job.event_source.filter(|_| self.phase == ProcessPhase::Running)
    }

    fn attend(&mut self, is_ready: bool) {
        let event_source = self.event_source();
        if event_source.is_some_and(|event_source| !event_source.serve(is_ready)) {
            self.dismissed = true;
            self.kill();
        }
    }

    /// Tells the guardian to kill.
    fn kill(&mut self) {
        self.guardian.order_kill();
        self.guardian.stop_family();
        self.enter(ProcessPhase::Killing, limits::GUARDIAN_REPORT);
    }

    fn enter(&mut self, phase: ProcessPhase, limit: Duration) {
        self.phase = phase;
        self.until = Instant::now().checked_add(limit);
        self.stdin.pipe = None;
    }

    /// Takes the guardian's report, or notes that there will be none.
    fn listen(&mut self) {
        let mut bytes = [0; GuardianReport::BYTES];
        match self.guardian.channel.read(&mut bytes) {
            Ok(GuardianReport::BYTES) => {
                let report = GuardianReport::from_bytes(bytes);
                self.timed_out |= report.timed_out;
                self.report = Some(report);
            }
            Err(error) if is_passing(&error) => return,
            // It has no more to say, but may live: its time is over.
            Ok(_) | Err(_) => self.guardian.order_kill(),
        }
        self.conclude();
    }

    /// The guardian does not answer: stopped, or starved. As long as it lives its
    /// family can be told from everybody else's, so it gets a second chance.
    fn lose_patience(&mut self) {
        if self.phase == ProcessPhase::Killing {
            self.guardian.help();
            self.enter(ProcessPhase::Helping, limits::GUARDIAN_LAST_REPORT);
        } else {
            self.guardian.help();
            self.guardian.kill();
            self.conclude();
        }
    }

    /// The script has ended, or is out of reach.
    fn conclude(&mut self) {
        self.duration = self.started.elapsed();
        if self.report.is_none_or(|report| report.status.is_none()) {
            self.guardian.reap();
            kill_adopted(&self.guardian);
        }
        self.enter(ProcessPhase::Draining, limits::SCRIPT_DRAIN);
    }

    fn finish(mut self) -> ProcessOutcome {
        self.guardian.reap();
        let unread = self.outputs.iter().any(|output| output.is_broken);
        let [stdout, stderr] = self.outputs.map(|output| output.kept);
        ProcessOutcome {
            ending: self.report.and_then(|report| report.status).map_or(ProcessExit::Lost, ending),
            stdout,
            stderr,
            timed_out: self.timed_out,
            interrupted: self.interrupted,
            dismissed: self.dismissed,
            left_behind: self.report.map_or(0, |report| report.left_behind),
            unread,
            duration: self.duration,
        }
    }
}

fn ending(status: c_int) -> ProcessExit {
    if libc::WIFSIGNALED(status) {
        ProcessExit::Signaled(libc::WTERMSIG(status))
    } else {
        ProcessExit::Exited(libc::WEXITSTATUS(status))
    }
}

#[cfg(test)]
mod tests;
