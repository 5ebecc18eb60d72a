//! Tests with real shells and daemons, one job at a time.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use super::*;
use crate::after_fork::kill;

const SHELL: &str = "/bin/sh";

/// Runs a shell script; `change` adjusts the job.
fn run_shell(script: &str, change: impl FnOnce(&mut ProcessJob<'_>)) -> io::Result<ProcessOutcome> {
    let args = [OsString::from("-c"), OsString::from(script)];
    let environment = [(OsString::from("PATH"), OsString::from("/usr/local/bin:/usr/bin:/bin"))];
    let interrupt = Interrupt::never();
    let mut job = ProcessJob {
        program: Path::new(SHELL),
        args: &args,
        folder: Path::new("/"),
        environment: &environment,
        stdin: b"",
        limit: Duration::from_secs(20),
        leftovers: Leftovers::Kill,
        output_limits: CaptureLimits::halves(64 << 10),
        interrupt: &interrupt,
        scratch: None,
        restrictions: None,
        event_source: None,
    };
    change(&mut job);
    run(&job)
}

fn shell(script: &str) -> ProcessOutcome {
    run_shell(script, |_| {}).expect("the shell starts")
}

fn shell_within(milliseconds: u64, script: &str) -> ProcessOutcome {
    run_shell(script, |job| {
        job.limit = Duration::from_millis(milliseconds);
    })
    .expect("the shell starts")
}

/// Whether the process whose number a script printed is alive.
fn is_alive(pid: &str) -> bool {
    let pid: u32 = pid.trim().parse().expect("a number");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Whether the process ends. Without a guardian its streams may be closed before it has
/// ended.
fn ends_soon(pid: &str) -> bool {
    let since = Instant::now();
    while is_alive(pid) && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    !is_alive(pid)
}

#[test]
fn streams_and_status_are_separate() {
    let outcome = shell("echo out; echo err >&2; exit 7");
    assert_eq!(outcome.exit, ProcessExit::Exited(7));
    assert_eq!((outcome.stdout.text(), outcome.stderr.text()), ("out\n".into(), "err\n".into()));
    assert!(!outcome.timed_out && outcome.interrupted.is_none() && outcome.left_behind == 0);
}

#[test]
fn death_by_signal_is_reported() {
    for signal in [libc::SIGKILL, libc::SIGSEGV, libc::SIGTERM] {
        assert_eq!(shell(&format!("kill -{signal} $$")).exit, ProcessExit::Signaled(signal));
    }
}

#[test]
fn the_environment_is_the_given_one_and_no_descriptor_leaks() {
    let outcome = run_shell("env; ls /proc/self/fd", |job| job.stdin = b"x").expect("starts");
    let text = outcome.stdout.text();
    assert!(!text.contains("HOME=") && !text.contains("CARGO"), "{text}");
    // `ls` itself opens the folder as descriptor 3.
    assert!(text.ends_with("\n0\n1\n2\n3\n"), "{text}");
}

#[test]
fn signals_are_as_in_a_fresh_process() {
    let script =
        "while read -r name mask; do case $name in SigBlk:|SigIgn:) echo $mask;; esac; done";
    let text = shell(&format!("{script} </proc/self/status")).stdout.text();
    let masks: Vec<u64> =
        text.lines().map(|mask| u64::from_str_radix(mask, 16).expect("a mask")).collect();
    // Signal 32 belongs to the C library.
    assert!(masks.len() == 2 && masks.iter().all(|mask| mask.trailing_zeros() >= 31), "{text}");
}

#[test]
fn input_is_written_and_may_stay_unread() {
    static BYTES: [u8; 1 << 20] = [b'x'; 1 << 20];
    let outcome = run_shell("wc -c", |job| job.stdin = &BYTES).expect("starts");
    assert_eq!(outcome.stdout.text().trim(), "1048576");
    let outcome = run_shell("exec <&-; echo done", |job| job.stdin = &BYTES).expect("starts");
    assert_eq!(outcome.stdout.text(), "done\n");
    assert_eq!(shell("cat; echo end").stdout.text(), "end\n");
}

#[test]
fn large_output_is_read_to_its_end() {
    let outcome = shell("yes 0123456 | head -c 8000000; printf END");
    assert_eq!(outcome.exit, ProcessExit::Exited(0));
    assert_eq!(outcome.stdout.total_bytes(), 8_000_003);
    assert!(outcome.stdout.head().starts_with(b"0123456\n"));
    assert!(outcome.stdout.tail().ends_with(b"0123456\nEND"));
}

#[test]
fn the_limit_kills_and_keeps_the_output() {
    let started = Instant::now();
    let outcome = shell_within(1000, "echo before; (setsid sleep 60; :) & sleep 60");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(outcome.timed_out);
    assert_eq!(outcome.exit, ProcessExit::Signaled(libc::SIGKILL));
    assert_eq!(outcome.stdout.text(), "before\n");
    // The limit also ends a stopped script.
    assert!(shell_within(100, "kill -STOP $$").timed_out);
}

#[test]
fn processes_that_outlive_the_script_are_killed_and_counted() {
    // The child is in its own session once it has become `sleep`.
    let script = "setsid sleep 60 & echo $!; until grep -q sleep /proc/$!/comm; do :; done";
    let outcome = shell(script);
    assert_eq!((outcome.exit, outcome.left_behind), (ProcessExit::Exited(0), 1));
    assert!(!is_alive(&outcome.stdout.text()));
    // Children that end soon by themselves do not count as left behind; on a busy machine
    // that may exceed the grace time.
    assert!((0..50).any(|_| {
        let outcome = shell("(sleep 0.01; echo late) & echo early");
        outcome.stdout.text() == "early\nlate\n" && outcome.left_behind == 0
    }));
}

#[test]
fn kept_processes_live_on() {
    let script = "sleep 60 & echo $!";
    let outcome = run_shell(script, |job| job.leftovers = Leftovers::Keep).expect("starts");
    let text = outcome.stdout.text();
    assert_eq!(outcome.left_behind, 1);
    assert!(is_alive(&text));
    let pid = text.trim().parse().expect("a number");
    assert!(kill(pid, libc::SIGKILL));
}

#[test]
fn a_script_that_attacks_its_guardian_is_killed() {
    let outcome = shell("echo $$; kill -9 $PPID; exec sleep 60");
    assert_eq!(outcome.exit, ProcessExit::Unknown);
    assert!(ends_soon(&outcome.stdout.text()));
    let outcome = shell_within(1000, "echo $$; kill -STOP $PPID; exec sleep 60");
    assert!(outcome.timed_out && !is_alive(&outcome.stdout.text()));
}

#[test]
fn a_failed_start_is_an_error_that_names_the_cause() {
    let kind_and_text = |program: &'static str, folder: &'static str| {
        let change = |job: &mut ProcessJob<'_>| {
            job.program = Path::new(program);
            job.folder = Path::new(folder);
        };
        run_shell("", change).map_err(|error| (error.kind(), error.to_string())).err()
    };
    let table = [
        ("/missing", "/", ErrorKind::NotFound, "start `/missing`"),
        ("/etc/passwd", "/", ErrorKind::PermissionDenied, "start `/etc/passwd`"),
        (SHELL, "/missing", ErrorKind::NotFound, "enter folder `/missing`"),
        ("sh", "/", ErrorKind::InvalidInput, "not an absolute path"),
    ];
    for (program, folder, kind, words) in table {
        let (found, text) = kind_and_text(program, folder).expect("cannot start");
        assert!(found == kind && text.contains(words), "{found:?} {text}");
    }
}

#[test]
fn a_script_does_not_run_if_a_restriction_fails() {
    let refuse = Restrictions {
        enter: Arc::new(|| Err(io::Error::from_raw_os_error(libc::EPERM))),
        scopes_signals: false,
    };
    let result = run_shell("echo never", |job| job.restrictions = Some(refuse));
    assert!(matches!(result, Err(error) if error.kind() == ErrorKind::PermissionDenied));
}

#[test]
fn a_program_with_a_limit_of_file_size_sees_why_it_fails() {
    let scratch = Scratch::new(&std::env::temp_dir()).expect("there is room");
    let script = format!("cd {} && head -c 3000 /dev/zero > file", scratch.path().display());
    let outcome = run_shell(&script, |job| job.restrictions = Some(Restrictions::file_size(2000)));
    let outcome = outcome.expect("the shell starts");
    assert_eq!(outcome.exit, ProcessExit::Exited(1), "{}", outcome.stderr.text());
    assert!(outcome.stderr.text().contains("File too large"));
    let length = fs::metadata(scratch.path().join("file")).map(|meta| meta.len());
    assert_eq!(length.expect("it was created"), 2000);
}

#[test]
fn the_sink_gets_all_output_also_what_is_not_kept() {
    // The sink answers each piece of output by creating a file.
    let next = |file| format!("until [ -e {file} ]; do sleep 0.01; done");
    let script = format!("echo one; {}; echo two >&2; {}; echo three", next(1), next(2));
    let args = [OsString::from("-c"), OsString::from(script)];
    let scratch = Scratch::new(&std::env::temp_dir()).expect("there is room");
    let interrupt = Interrupt::never();
    let job = ProcessJob {
        program: Path::new(SHELL),
        args: &args,
        folder: scratch.path(),
        environment: &[("PATH".into(), "/usr/bin:/bin".into())],
        stdin: b"",
        limit: Duration::from_secs(20),
        leftovers: Leftovers::Kill,
        output_limits: CaptureLimits::halves(2),
        interrupt: &interrupt,
        scratch: None,
        restrictions: None,
        event_source: None,
    };
    let mut received = Vec::new();
    let mut sink = |stream, bytes: &[u8]| {
        received.push((stream, String::from_utf8_lossy(bytes).into_owned()));
        let answer = scratch.write_file(&received.len().to_string(), b"");
        answer.expect("there is room");
    };
    let outcome = run_with_output(&job, &mut sink).expect("the shell starts");
    assert!(outcome.stdout.is_truncated());
    let expected = [
        (ScriptStream::Out, "one\n"),
        (ScriptStream::Err, "two\n"),
        (ScriptStream::Out, "three\n"),
    ];
    assert_eq!(received, expected.map(|(stream, text)| (stream, text.to_string())));
}

/// Event source that waits for a pipe, is called every 20 ms, and counts its calls.
struct CountingSource {
    pipe: io::PipeReader,
    events: Cell<u32>,
    calls: Cell<u32>,
    /// Number of calls after which the program is cancelled.
    max_calls: u32,
    /// Created by the sixth call.
    file: PathBuf,
    next: Cell<Instant>,
}

impl EventSource for CountingSource {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (self.events.get() == 0).then(|| self.pipe.as_fd())
    }

    fn next_call(&self) -> Option<Instant> {
        Some(self.next.get())
    }

    fn handle(&self, is_ready: bool) -> bool {
        self.events.set(self.events.get() + u32::from(is_ready));
        self.calls.set(self.calls.get() + 1);
        self.next.set(Instant::now() + Duration::from_millis(20));
        if self.calls.get() == 6 {
            fs::write(&self.file, "").expect("there is room");
        }
        self.calls.get() < self.max_calls
    }
}

#[test]
fn an_event_source_is_served_while_a_program_runs_and_can_end_it() {
    let scratch = Scratch::new(&std::env::temp_dir()).expect("there is room");
    let file = scratch.path().join("file");
    for max_calls in [3, u32::MAX] {
        let (pipe, mut writer) = io::pipe().expect("two descriptors are free");
        writer.write_all(b"x").expect("it has room");
        // Leaked, since the job in `run_shell` may have any lifetime.
        let counting: &CountingSource = Box::leak(Box::new(CountingSource {
            pipe,
            events: Cell::new(0),
            calls: Cell::new(0),
            max_calls,
            file: file.clone(),
            next: Cell::new(Instant::now() + Duration::from_millis(20)),
        }));
        let script = format!("echo on; until [ -e {} ]; do sleep 0.01; done", file.display());
        let outcome = run_shell(&script, |job| job.event_source = Some(counting)).expect("starts");
        let has_ended = outcome.exit == ProcessExit::Exited(0);
        assert_eq!(has_ended, max_calls == u32::MAX, "{:?}", outcome.exit);
        assert_eq!(outcome.cancelled, max_calls == 3);
        assert_eq!(counting.events.get(), 1);
        let calls = counting.calls.get();
        assert!(calls == 3 || max_calls > 3 && calls >= 6, "{calls}");
        assert!(!outcome.timed_out);
    }
}
