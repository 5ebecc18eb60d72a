//! Scripts: whatever a script does, the result arrives in time and describes what happened, and no
//! process or file is left.
//!
//! Most tests are tables of scripts for `tool run_python_script`; some include an endpoint.
//! `SCRIPT_PYTHON` is the machine's interpreter, except in tests of the interpreter's choice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use serde_json::{Value, json};

use crate::harness::{
    CANARY, Outcome, RefusedSyscall, Reply, Running, Server, Stopwatch, Test, interpreter,
    is_alive, program_refusing_syscalls, report_skipped, seconds, wait_until,
};
use crate::paths::as_an_ordinary_user;

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";
/// The first line of every script in the tables.
const IMPORTS: &str = "import ctypes, json, os, shutil, signal, subprocess, sys, threading, time\n";
/// Becomes a daemon by double fork: `daemon()`.
const DAEMON: &str = "
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    os.wait()
";
/// The guaranteed limit of one second, and one for a busy machine.
const SLACK: f64 = 2.0;
/// Time limit for the end of an interrupted run on a busy machine.
const INTERRUPT_LIMIT: Duration = Duration::from_millis(1500);
const PEAK_KIB: u64 = 20 << 10;
const KEPT: usize = 64 << 10;

/// A test with a skill `s` and a temporary folder that can be inspected.
fn test_with_skill() -> Test {
    let test = Test::new().skill("s", DOCUMENT).folder("tmp");
    let temporary = test.path("tmp");
    test.env("TMPDIR", temporary).env("SCRIPT_PYTHON", interpreter())
}

/// The result of a script, and the run that printed it.
struct Ran {
    result: Value,
    run: Outcome,
}

impl Ran {
    #[track_caller]
    fn check(&self, is_met: bool, message: &str) -> &Ran {
        self.run.check(is_met, message);
        self
    }

    /// Asserts that a field of the result has this value.
    #[track_caller]
    fn is(&self, key: &str, expected: impl Into<Value>) -> &Ran {
        let expected = expected.into();
        let is_met = self.result[key] == expected;
        self.check(is_met, &format!("`{key}` is not {expected}"))
    }

    /// Asserts that a text of the result contains this.
    #[track_caller]
    fn has(&self, key: &str, expected: &str) -> &Ran {
        let is_met = self.text(key).contains(expected);
        self.check(is_met, &format!("`{key}` lacks {expected:?}"))
    }

    fn text(&self, key: &str) -> &str {
        self.result[key].as_str().unwrap_or_default()
    }
}

/// A test that will run `tool run_python_script` with these arguments.
fn tool(test: &Test, arguments: &Value) -> Test {
    let mut arguments = arguments.clone();
    arguments["skill_name"] = "s".into();
    let command = ["tool", "run_python_script", "-"];
    test.next_run().args(command).stdin(arguments.to_string())
}

/// Runs the tool and makes the checks that apply to each result, except the check for leftovers.
#[track_caller]
fn call(test: &Test, arguments: &Value) -> Ran {
    let watch = Stopwatch::start();
    let run = tool(test, arguments).run();
    let result = run.stdout_json();
    let is_good = result["returncode"] == 0 && result["error"].is_null();
    let has_status = run.status == i32::from(!is_good);
    run.check(has_status, "the exit status does not match the result");
    if let Some(duration) = result["duration_ms"].as_u64() {
        let late = run.elapsed.saturating_sub(Duration::from_millis(duration));
        let late = watch.adjusted_for_limit(late, seconds(SLACK));
        run.check(late <= seconds(SLACK), "the result is late");
    }
    Ran { result, run }
}

/// The same, and checks that no process or file is left.
#[track_caller]
fn run(test: &Test, arguments: &Value) -> Ran {
    let ran = call(test, arguments);
    ran.check(is_clean(test), "a process or file is left");
    ran
}

/// The source after the imports.
fn source(text: &str) -> Value {
    json!({"script": format!("{IMPORTS}{text}")})
}

/// The same with a time limit of one second.
fn with_short_limit(text: &str) -> Value {
    json!({"script": format!("{IMPORTS}{text}"), "timeout_seconds": 1})
}

/// Whether no temporary file or process is left; those that are ending get some time.
fn is_clean(test: &Test) -> bool {
    let no_file = || fs::read_dir(test.path("tmp")).map_or(true, |mut list| list.next().is_none());
    is_soon(|| no_file() && test.processes().is_empty())
}

/// Whether the condition becomes true in the time that an idle machine needs.
fn is_soon(condition: impl FnMut() -> bool) -> bool {
    let since = Stopwatch::start();
    let slack = seconds(SLACK);
    wait_until(seconds(20.0), condition) && since.elapsed_for_limit(slack) <= slack
}

/// Checks the rows of a table, a few in parallel, because most of them wait.
fn for_each<T: Sync>(rows: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(row);
                }
            });
        }
    });
}

enum End {
    /// This return code, long before the time limit.
    Exit(i32),
    /// Stopped at its time limit of one second.
    Limit,
    /// The script killed its guardian.
    Lost,
}

/// Each row: the source, its end, all of stdout, a part of stderr.
#[test]
#[rustfmt::skip]
fn script_results_are_reported_in_time() {
    use End::{Exit, Limit, Lost};
    let table: &[(&str, End, &str, &str)] = &[
        ("", Exit(0), "", ""),
        ("print('ü€𝄞'); print('err', file=sys.stderr)", Exit(0), "ü€𝄞\n", "err\n"),
        // The end of the script.
        ("os._exit(3)", Exit(3), "", ""),
        ("sys.exit('text')", Exit(1), "", "text\n"),
        ("sys.exit(256)", Exit(0), "", ""),
        ("sys.exit(-1)", Exit(255), "", ""),
        ("print('begun'); os.kill(0, 9)", Exit(-9), "begun\n", ""),
        ("os.kill(os.getpid(), signal.SIGKILL)", Exit(-9), "", ""),
        ("os.kill(os.getpid(), signal.SIGSEGV)", Exit(-11), "", ""),
        ("ctypes.string_at(0)", Exit(-11), "", ""),
        ("os.abort()", Exit(-6), "", ""),
        ("print(", Exit(1), "", "SyntaxError: '(' was never closed"),
        ("1 / 0  # not a number", Exit(1), "", "    1 / 0  # not a number\n"),
        ("def again(): again()\nagain()", Exit(1), "", "RecursionError"),
        ("import resource as r\nr.setrlimit(r.RLIMIT_AS, (200 << 20,) * 2)\nbytearray(1 << 30)", Exit(1), "", "MemoryError"),
        ("input('name? ')", Exit(1), "name? ", "EOFError"),
        // Output streams.
        ("[os.close(fd) for fd in range(3)]; time.sleep(0.3); os._exit(7)", Exit(7), "", ""),
        ("print('a'); sys.stdout.close(); print('b')", Exit(1), "a\n", "ValueError: I/O operation on closed file"),
        ("sys.stdout.buffer.write(b'\\0\\xff\\x1b[31m\\r\\n\\x07\\xc3')", Exit(0), "\0\u{fffd}\x1b[31m\r\n\x07\u{fffd}", ""),
        ("os.write(0, b'x')", Exit(1), "", "OSError"),
        // Environment.
        ("os.chdir('/'); print(os.getcwd())", Exit(0), "/\n", ""),
        ("shutil.rmtree(os.getcwd()); print('gone')", Exit(0), "gone\n", ""),
        ("shutil.rmtree(os.environ['TMPDIR']); print('gone')", Exit(0), "gone\n", ""),
        ("import resource as r\nr.setrlimit(r.RLIMIT_NOFILE, (64, 64))\ntry:\n    while True: os.dup(0)\nexcept OSError: print('full')", Exit(0), "full\n", ""),
        ("os.setsid()", Exit(1), "", "PermissionError"),
        // Time.
        ("print('begun'); time.sleep(60)", Limit, "begun\n", ""),
        ("print('begun')\nwhile True: pass", Limit, "begun\n", ""),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: time.sleep(60)", Limit, "", ""),
        ("for n in {*range(1, 32)} - {9, 19}: signal.signal(n, signal.SIG_IGN)\nwhile True: time.sleep(60)", Limit, "", ""),
        ("print('begun'); os.kill(os.getpid(), signal.SIGSTOP)", Limit, "begun\n", ""),
        ("threading.Thread(target=time.sleep, args=[60]).start()", Limit, "", ""),
        ("os.execvp('sleep', ['sleep', '60'])", Limit, "", ""),
        ("if os.fork() == 0: os.setsid(); time.sleep(60)\nos.wait()", Limit, "", ""),
        ("open('/proc/self/comm', 'w').write(') Z 1 1 1')\ntime.sleep(60)", Limit, "", ""),
        // Guardian.
        ("for n in {*range(1, 32)} - {9, 19}: os.kill(os.getppid(), n)\nprint('still here')", Exit(0), "still here\n", ""),
        ("os.kill(os.getppid(), signal.SIGSTOP); print('begun'); time.sleep(60)", Limit, "begun\n", ""),
        ("os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)", Lost, "", ""),
        ("if os.fork() == 0: os.setsid(); time.sleep(60)\nos.kill(os.getppid(), signal.SIGKILL); time.sleep(60)", Lost, "", ""),
    ];
    for_each(table, |(text, end, stdout, stderr)| {
        let is_limited = matches!(end, Limit);
        let ran = run(&test_with_skill(), &if is_limited { with_short_limit(text) } else { source(text) });
        let (code, error) = match end {
            Exit(code) => (*code, Value::Null),
            Limit => (-9, json!("stopped at the time limit of 1 s")),
            Lost => (-9, json!("the script killed its guardian process; everything that it started was killed")),
        };
        ran.is("returncode", code).is("error", error).is("timed_out", is_limited)
            .is("stdout", *stdout).has("stderr", stderr)
            .is("skill_name", "s").is("truncated", Value::Null);
        let has_gone = text.starts_with("shutil.rmtree(os.getcwd())");
        ran.check(ran.result["hint"].is_null() != has_gone, "a hint only if the document was deleted");
        let is_silent = stderr.is_empty() && !ran.text("stderr").is_empty();
        ran.check(!is_silent, "stderr must be empty");
        if is_limited {
            let duration = ran.result["duration_ms"].as_u64().unwrap_or_default();
            ran.check((1000..3000).contains(&duration), "the duration is not about one second");
        }
    });
}

/// Processes that outlive their script are killed and counted, and at the time limit killed with
/// it.
#[test]
fn leftover_processes_are_killed_and_counted() {
    let one = "1 process that the script left behind was";
    #[rustfmt::skip]
    let table: &[(&str, &str)] = &[
        (one, "if os.fork() == 0: time.sleep(60)"),
        (one, "if os.fork() == 0: os.closerange(0, 9); time.sleep(60)"),
        (one, "if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)"),
        (one, "if os.fork() == 0: os.setpgid(0, 0); open('/proc/self/comm', 'w').write(') S 1 1 ('); time.sleep(60)"),
        // Processes of another user, if that is possible.
        (one, "if os.fork() == 0: os.getuid() or os.setuid(65534); time.sleep(60)"),
        ("10 processes that the script left behind were", "for _ in range(10): daemon()"),
        // With their own subreaper.
        ("4 processes that the script left behind were", "if os.fork() == 0: ctypes.CDLL(None).prctl(36, 1); [daemon() for _ in range(3)]; open('up', 'w'); time.sleep(60)
while not os.path.exists('up'): time.sleep(0.01)"),
        // Processes that replace themselves repeatedly.
        ("", "if os.fork() == 0:
    end = time.time() + 10
    while time.time() < end:
        if os.fork(): os._exit(0)
        os.setsid()"),
        // Each process starts two more.
        ("255 processes that the script left behind were", "bomb = 'b() { if [ $1 -gt 0 ]; then b $(($1 - 1)) & b $(($1 - 1)) & fi; echo >> up; exec sleep 60; }; b 7'
subprocess.Popen(['sh', '-c', bomb])
while not os.path.exists('up') or os.stat('up').st_size < 255: time.sleep(0.01)"),
    ];
    for_each(table, |(count, text)| {
        let end = "print(time.time()); sys.stdout.flush(); os._exit(5)";
        let test = test_with_skill();
        let watch = Stopwatch::start();
        let ran = call(&test, &source(&format!("{DAEMON}{text}\n{end}")));
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let ended = ran.text("stdout").trim().parse().expect("the time");
        let late = now.expect("a consistent clock").saturating_sub(seconds(ended));
        let late = watch.adjusted_for_limit(late, seconds(SLACK));
        ran.check(late <= seconds(SLACK), "the result is late");
        ran.check(is_clean(&test), "a process or file is left");
        ran.is("returncode", 5);
        if !count.is_empty() {
            ran.is("hint", format!("{count} ended"));
        }

        let forever = with_short_limit(&format!("{DAEMON}{text}\ntime.sleep(60)"));
        let ran = run(&test_with_skill(), &forever);
        ran.is("timed_out", true).is("returncode", -9);
        ran.is("hint", Value::Null);
    });
}

/// `SCRIPT_LEFTOVERS=keep`: a daemon survives its script, but not a time limit.
#[test]
fn kept_leftovers_survive_until_the_time_limit() {
    let test = test_with_skill().env("SCRIPT_LEFTOVERS", "keep");
    let fork = "pid = os.fork()\nif pid == 0: os.setsid(); time.sleep(30)\nprint(pid)\n";
    let ran = call(&test, &source(fork));
    let pid: i32 = ran.text("stdout").trim().parse().expect("a process number");
    let is_alone = is_alive(pid) && test.processes() == [pid];
    // SAFETY: a plain call; the process is this test's, and existed a moment ago.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    ran.check(is_alone, "not exactly the daemon is left");
    ran.has("hint", "1 process that the script left behind keeps running");
    ran.is("returncode", 0);
    ran.check(is_clean(&test), "a process or file is left");
    run(&test, &with_short_limit(&format!("{fork}time.sleep(30)"))).is("timed_out", true);
}

/// The start and the end are exact, and memory use is constant.
#[test]
fn large_output_is_shortened_in_the_middle() {
    let flood = "
out, size = [open(int(fd), 'wb') for fd in sys.argv[1]], int(sys.argv[2])
whole = b''.join(b'%015d\\n' % i for i in range(8192))
for at in [0] if size <= len(whole) else [0, *[None] * ((size - len(whole)) >> 16), 65536]:
    block = b'x' * 65536 if at is None else whole[:size] if size <= len(whole) else whole[at : at + 65536]
    for stream in out: stream.write(block)
for stream in out: stream.close()
";
    let lines: Vec<String> = (0..8192).map(|line| format!("{line:015}\n")).collect();
    let full = lines.concat();
    let table = [
        ("1", KEPT, None),
        ("2", KEPT, None),
        ("1", KEPT + 1, Some("1")),
        ("12", KEPT + 1, Some("1")),
        ("1", 200 << 20, Some("209,649,664")),
        ("2", 200 << 20, Some("209,649,664")),
        ("12", 64 << 20, Some("67,043,328")),
    ];
    for_each(&table, |(streams, size, missing)| {
        let mut arguments = source(flood);
        arguments["args"] = json!([streams, size.to_string()]);
        let ran = run(&test_with_skill(), &arguments);
        let end = (*size).min(full.len());
        let expected = match missing {
            None => full[..*size].to_owned(),
            Some(missing) => format!(
                "{}[… {missing} bytes left out …]\n{}",
                &full[..KEPT / 2],
                &full[end - KEPT / 2..end]
            ),
        };
        for (stream, number) in [("stdout", '1'), ("stderr", '2')] {
            let output = ran.text(stream);
            let is_met =
                if streams.contains(number) { output == expected } else { output.is_empty() };
            ran.check(is_met, &format!("{stream} is wrong"));
        }
        ran.is("returncode", 0).is("truncated", missing.map(|_| true));
        ran.run.memory_at_most(PEAK_KIB);
    });

    let ran = run(&test_with_skill(), &source("print('a' + 'é' * 40000, end='')"));
    let (head, tail) = ("é".repeat(16383), "é".repeat(16384));
    let expected = format!("a{head}\n[… 14,466 bytes left out …]\n{tail}");
    ran.is("stdout", expected);

    let endless = "while True: os.write(1, b'y' * 65536); os.write(2, b'n\\n' * 9)";
    let ran = run(&test_with_skill(), &with_short_limit(&format!("print('first')\n{endless}")));
    ran.is("timed_out", true).is("truncated", true);
    let stdout = ran.text("stdout");
    ran.check(stdout.starts_with("first\nyyy"), "the start is lost");
    ran.check(stdout.ends_with(&"y".repeat(KEPT / 2)), "the end is lost");
    ran.run.memory_at_most(PEAK_KIB);
}

/// Standard input is the argument, or empty without it.
#[test]
fn stdin_of_a_script_is_exactly_the_argument() {
    let read = "data = sys.stdin.buffer.read(); print(len(data), data == eval(sys.argv[1]))";
    #[rustfmt::skip]
    let table = [
        (read, Value::Null, "b''", "0 True\n"),
        (read, json!(""), "b''", "0 True\n"),
        (read, json!("a\r\nü\0\n"), "'a\\r\\nü\\0\\n'.encode()", "7 True\n"),
        (read, json!("0123456789".repeat(100_000)), "b'0123456789' * 100000", "1000000 True\n"),
        ("print(input(), input())", json!("1\n2"), "", "1 2\n"),
        ("print(sys.stdin.isatty(), open('/proc/self/stat').read().split()[6])", Value::Null, "", "False 0\n"),
        // More than a pipe holds, unread and half read.
        ("print('deaf')", json!("x".repeat(1 << 20)), "", "deaf\n"),
        ("print(len(os.read(0, 10))); os.close(0); time.sleep(0.2)", json!("x".repeat(1 << 20)), "", "10\n"),
    ];
    for_each(&table, |(text, stdin, expected, stdout)| {
        let mut arguments = source(text);
        arguments["stdin"] = stdin.clone();
        arguments["args"] = json!([expected]);
        let ran = run(&test_with_skill(), &arguments);
        ran.is("stdout", *stdout).is("returncode", 0);
    });
}

#[test]
fn arguments_are_limited() {
    let sleep_script = "import time; print('begun'); time.sleep(30)";
    let long = format!("{}\nexit(5)", "# 4567890abcde\n".repeat(70_000));
    let limit = "stopped at the time limit of 1 s";
    let words = vec!["x".repeat(1000); 1000];
    // A return code, or an error instead of it.
    #[rustfmt::skip]
    let table = [
        (json!({"script": sleep_script}), Some(-9), limit),
        (json!({"script": sleep_script, "timeout_seconds": 100}), Some(-9), limit),
        (json!({"script": sleep_script, "timeout_seconds": "1"}), Some(-9), limit),
        (json!({"script": sleep_script, "timeout_seconds": i64::MAX}), Some(-9), limit),
        (json!({"script": sleep_script, "timeout_seconds": 0}), None, "`timeout_seconds` must be 1 or more, not 0"),
        (json!({"script": sleep_script, "timeout_seconds": -5}), None, "`timeout_seconds` must be 1 or more, not -5"),
        (json!({"script": sleep_script, "timeout_seconds": 0.5}), None, "`timeout_seconds` must be an integer"),
        (json!({"script": long}), Some(5), ""),
        (json!({"script": "#".repeat((4 << 20) + 1)}), None, "`script` is larger than 4194304 bytes"),
        (json!({"script": "import sys; sys.exit(len(sys.argv) - 1000)", "args": words}), Some(1), ""),
        (json!({"script": "1", "args": [words.join(" "), words.join(" ")]}), None, "its arguments are too long: give them through `stdin`"),
        (json!({"script": "1", "args": ["x".repeat(200_000)]}), None, "its arguments are too long: give them through `stdin`"),
        (json!({"script": "1", "args": ["a\0b"]}), None, "NUL"),
        (json!({}), None, "give `script` (Python source) or `file_path`"),
    ];
    assert!(long.len() > 1 << 20);
    for_each(&table, |(arguments, code, error)| {
        let ran = run(&test_with_skill().env("SCRIPT_TIMEOUT_SECONDS", "1"), arguments);
        ran.has("error", error).is("returncode", *code);
        if *code == Some(-9) {
            ran.is("stdout", "begun\n");
            ran.run.took_at_most(seconds(1.0 + SLACK));
        }
    });
    let flag = test_with_skill().args(["--script-timeout", "1", "tool", "run_python_script"]);
    let json = json!({"skill_name": "s", "script": sleep_script}).to_string();
    flag.args([json]).run().status(1).stdout_has(limit);
}

/// The choice of the interpreter; a choice that does not work is an error with a remedy.
#[test]
#[rustfmt::skip]
fn interpreter_is_chosen_in_order_and_a_broken_choice_is_an_error() {
    type Prepare = fn(Test) -> Test;
    // The first line of an answer is the prefix of the Python that ran, below the test's folder.
    let good: &[(&str, Prepare, &str, Option<&str>)] = &[
        ("venv", |test| test.venv("s"), "skills/s/venv", None),
        (".venv", |test| test.venv_at("skills/s/.venv"), "skills/s/.venv", None),
        ("both", |test| test.venv_at("skills/s/.venv").venv("s"), "skills/s/venv", None),
        ("venv beats all", |test| test.venv("s").env("SCRIPT_PYTHON", "off"), "skills/s/venv", None),
        ("a path", |test| test.venv_at("own").env("SCRIPT_PYTHON", "own/bin/python"), "own", Some("own/bin/python")),
        ("at home", |test| test.venv_at("home/own").env("SCRIPT_PYTHON", "~/own/bin/python"), "home/own", Some("home/own/bin/python")),
        ("by name", |test| { let bin = test.path("own/bin"); test.venv_at("own").env("PATH", bin).env("SCRIPT_PYTHON", "python") }, "own", Some("own/bin/python")),
        ("from PATH", |test| { let path = format!("/nowhere::{}", test.path("own/bin").display()); test.venv_at("own").env("PATH", path).env_unset("SCRIPT_PYTHON") }, "own", Some("own/bin/python3")),
    ];
    for_each(good, |(_, prepare, prefix, interpreter)| {
        let test = prepare(test_with_skill());
        let ran = run(&test, &json!({"script": "import sys; print(sys.prefix)"}));
        let shown = |path: &str| test.path(path).display().to_string();
        ran.is("stdout", format!("{}\n", shown(prefix)));
        ran.is("interpreter", interpreter.map(shown));
    });

    let broken = "the venv of the skill `s` is broken";
    let bad: &[(&str, Prepare, &str, &str)] = &[
        ("dangling", |test| test.link("skills/s/venv", "/nowhere"), broken, "skills/s/venv` (no setup created it) and then `skills-runner skills setup s` creates it again"),
        ("empty", |test| test.folder("skills/s/venv"), broken, ": `rm -r /"),
        ("a file", |test| test.file("skills/s/venv", ""), broken, ": `rm -r /"),
        ("a setup's", |test| test.file("skills/s/venv/.skills-runner.json", "{\"made\": true}"), broken, "cannot be run: `skills-runner skills setup s` creates it again"),
        ("added to", |test| test.file("skills/s/venv/.skills-runner.json", "{\"made\": false}"), broken, ": `rm -r /"),
        ("python gone", |test| test.folder("skills/s/venv/lib").link("skills/s/venv/bin/python", "/nowhere").link("skills/s/venv/bin/python3", "python"), broken, "again"),
        ("not executable", |test| test.file("skills/s/venv/bin/python", "#!/bin/sh\n"), broken, "again"),
        ("a folder", |test| test.folder("skills/s/venv/bin/python"), broken, "again"),
        ("no fallback", |test| test.link("skills/s/venv", "/nowhere").venv_at("skills/s/.venv"), broken, "again"),
        (".venv", |test| test.folder("skills/s/.venv/bin"), broken, "cannot be run: `skills-runner skills setup s` creates a `venv`, which is used instead"),
        ("half made", |test| test.venv("s").file("skills/s/venv/.skills-runner-incomplete", ""), "the venv of the skill `s` is not finished, a setup of it is under way or was interrupted", "it"),
        ("off", |test| test.env("SCRIPT_PYTHON", "off"), "SCRIPT_PYTHON=off", "one"),
        ("missing", |test| test.env("SCRIPT_PYTHON", "/nowhere/python"), "SCRIPT_PYTHON names /nowhere/python, which is not an executable file", ""),
        ("unknown", |test| test.env("SCRIPT_PYTHON", "python9.9"), "SCRIPT_PYTHON names python9.9", ""),
        ("folder", |test| test.env("SCRIPT_PYTHON", "/tmp"), "SCRIPT_PYTHON names /tmp", ""),
        ("PATH empty", |test| test.env_unset("SCRIPT_PYTHON").env("PATH", ""), "no Python was found: install python3, or set SCRIPT_PYTHON", ""),
        ("none in PATH", |test| { let bin = test.path("bin"); test.file("bin/python3", "").env("PATH", bin).env_unset("SCRIPT_PYTHON") }, "no Python was found", ""),
    ];
    for_each(bad, |(_, prepare, expected, fix)| assert_refused(&prepare(test_with_skill()), expected, fix));
}

/// Asserts that no script runs and that the error has a remedy.
#[track_caller]
fn assert_refused(test: &Test, expected: &str, end: &str) {
    let ran = run(test, &source("open('ran', 'w')"));
    ran.has("error", expected).is("returncode", Value::Null);
    if !end.is_empty() {
        ran.has("error", "`skills-runner skills setup s`").has("error", end);
    }
    let is_unused = !test.exists("skills/s/ran");
    ran.check(is_unused, "another interpreter ran the script");
}

/// A venv that was copied from another machine.
#[test]
fn venv_whose_python_does_not_start_is_broken() {
    for python in ["#!/nowhere/python\n", "\x7fELF\x02\x01\x01"] {
        let test = test_with_skill().executable("skills/s/venv/bin/python", python);
        assert_refused(&test, "venv/bin/python", "again");
    }
}

/// A venv without permission may work for other users.
#[test]
fn venv_without_permission_is_not_called_broken() {
    let test = test_with_skill();
    let python = test.path("closed/python");
    let test = test
        .executable("closed/python", "#!/bin/sh\n")
        .link("skills/s/venv/bin/python", &python)
        .mode("closed", 0)
        .mode(".", 0o755)
        .mode("skills", 0o755);
    let arguments = json!({"skill_name": "s", "script": "1"}).to_string();
    let shell = as_an_ordinary_user(&test);
    let run = |test: &Test| {
        let test = test.next_run().shell(shell);
        test.args(["tool", "run_python_script", &arguments]).run()
    };
    run(&test)
        .status(1)
        .stdout_has("not executable for this user: its owner has to")
        .stdout_lacks("broken")
        .stdout_lacks("skills setup");
    let test = test.file("skills/s/venv/.skills-runner.json", "{\"made\": true}");
    run(&test).stdout_has("user: `skills-runner skills setup s` creates it again");
}

/// The working folder of a script, its import path, and what it can write.
#[test]
fn script_runs_in_its_skill_and_imports_its_modules() {
    let test = test_with_skill()
        .venv("s")
        .venv_module("s", "installed.py", "name = 'installed'")
        .file("skills/s/beside.py", "name = 'beside'")
        .file("skills/s/lib/inner.py", "name = 'inner'")
        .file(
            "skills/s/scripts/main.py",
            "import beside, helper; print(beside.name, helper.name, __file__)",
        )
        .file("skills/s/scripts/helper.py", "name = 'helper'")
        .env("LANG", "C")
        .env("LC_ALL", "C")
        .env("PYTHONUTF8", "0")
        .env("PYTHONIOENCODING", "latin-1")
        .env("PYTHONHOME", "/nowhere")
        .env("PYTHONPATH", "/user/modules")
        .env("VIRTUAL_ENV", "/user/venv")
        .env("USERS_OWN", "ü");
    let report_script = "
import beside, installed, lib.inner
open('out.txt', 'w').write('ü€')
print(json.dumps({**os.environ, 'cwd': os.getcwd(), 'python': shutil.which('python'), 'encoding': sys.stdout.encoding,
    'modules': [beside.name, installed.name, lib.inner.name], 'modes': oct(os.umask(0o22)), 'fds': sorted(os.listdir('/proc/self/fd'))}))
";
    let ran = run(&test, &source(report_script));
    ran.is("stderr", "").is("returncode", 0);
    let reported: Value = serde_json::from_str(ran.text("stdout")).expect("the script prints JSON");
    let shown = |path: &str| test.path(path).display().to_string();
    let (skill, venv) = (shown("skills/s"), shown("skills/s/venv"));
    let path = std::env::var("PATH").unwrap_or_default();
    for (name, expected) in [
        ("cwd", json!(skill)),
        ("SKILL_DIR", json!(skill)),
        ("SKILL_NAME", json!("s")),
        ("USER_CWD", json!(shown(""))),
        ("VIRTUAL_ENV", json!(venv)),
        ("PATH", json!(format!("{venv}/bin:{path}"))),
        ("python", json!(format!("{venv}/bin/python"))),
        ("PYTHONPATH", json!("/user/modules")),
        ("PYTHONSAFEPATH", Value::Null),
        ("PYTHONHOME", Value::Null),
        ("encoding", json!("utf-8")),
        ("PYTHONUNBUFFERED", json!("1")),
        ("USERS_OWN", json!("ü")),
        ("modules", json!(["beside", "installed", "inner"])),
        // The fourth is the listing itself.
        ("fds", json!(["0", "1", "2", "3"])),
    ] {
        let reported = match name {
            // A trailing slash makes no difference.
            "USER_CWD" => json!(format!("{}/", reported[name].as_str().unwrap_or_default())),
            _ => reported[name].clone(),
        };
        ran.check(reported == expected, &format!("{name} is {reported}"));
    }
    assert_eq!(test.read("skills/s/out.txt"), "ü€");
    let ran = run(&test, &json!({"file_path": "scripts/main.py"}));
    ran.has("stdout", "beside helper ").has("stdout", "scripts/main.py\n");
    for cache in ["", "lib/", "scripts/", "venv/lib/"].map(|at| format!("skills/s/{at}__pycache__"))
    {
        assert!(!test.exists(&cache), "{cache} was written");
    }
}

/// A script of the skill gets its arguments unchanged, whatever its name is.
#[test]
#[rustfmt::skip]
fn files_of_the_skill_run_with_their_arguments() {
    let echo = "import json, sys; print(json.dumps(sys.argv[1:]))";
    let words = ["a b", "ü€", "-x", "--", "--help", "", "*", "$HOME", "'\"\\", "new\nline"];
    let all = format!("{}\n", json!(words).to_string().replace("\",\"", "\", \""));
    let all = all.replace('ü', "\\u00fc").replace('€', "\\u20ac");
    let inside = |test: &Test, path: &str| test.path("skills/s").join(path).display().to_string();
    let test_with_skill = || {
        let test = test_with_skill();
        ["echo.py", "-c.py", "-", "--version", "sub dir/ü.py", "scripts/echo.py", "no_extension"]
            .iter()
            .fold(test, |test, path| test.file(&format!("skills/s/{path}"), echo))
            .file("skills/s/notes.txt", "These are notes.\n")
            .file("skills/s/empty.py", "")
            .file("skills/s/package/__main__.py", echo)
            .link("skills/s/inner.py", "echo.py")
            .link("skills/s/out.py", "../../outside.py")
            .file("outside.py", echo)
            .file("skills/t/SKILL.md", DOCUMENT)
            .file("skills/t/echo.py", echo)
    };
    let table: &[(&str, Result<&str, &str>)] = &[
        ("echo.py", Ok(&all)), ("./echo.py", Ok(&all)), ("scripts/echo.py", Ok(&all)), ("-c.py", Ok(&all)), ("-", Ok(&all)),
        ("--version", Ok(&all)), ("sub dir/ü.py", Ok(&all)), ("no_extension", Ok(&all)), ("inner.py", Ok(&all)), ("INSIDE/echo.py", Ok(&all)),
        ("empty.py", Ok("")),
        ("package", Err("`package` of the skill `s` cannot be run: a folder")),
        ("out.py", Err("cannot be run")), ("../t/echo.py", Err("cannot be run")), ("../../outside.py", Err("cannot be run")),
        ("/etc/passwd", Err("cannot be run")), ("gone.py", Err("cannot be run")),
        ("/dev/stdin", Err("cannot be run")), ("echo.py\0", Err("cannot be run")),
    ];
    for_each(table, |(path, expected)| {
        let test = test_with_skill();
        let path = path.replace("INSIDE", &inside(&test, ""));
        let ran = run(&test, &json!({"file_path": path, "args": words}));
        match expected {
            Ok(stdout) => ran.is("stdout", *stdout).is("stderr", "").is("returncode", 0),
            Err(error) => ran.has("error", error).is("returncode", Value::Null),
        };
    });
    run(&test_with_skill(), &json!({"file_path": "notes.txt"})).is("returncode", 1).has("stderr", "SyntaxError");
}

/// Similar names are suggested, as by `read_file_in_skill`.
#[test]
fn similar_script_names_are_suggested() {
    let test = test_with_skill().file("skills/s/scripts/echo.py", "");
    let near = "did you mean `scripts/echo.py`?";
    for path in ["echo.py", "scripts/eco.py"] {
        run(&test, &json!({"file_path": path})).has("error", near);
    }
}

/// The hint is the one command that installs the missing module.
#[test]
#[rustfmt::skip]
fn missing_module_names_the_install_command() {
    type Missing<'m> = Option<(&'m str, &'m str)>;
    let setup = "`skills-runner skills setup s";
    let table: &[(bool, &str, &str, Missing)] = &[
        (false, "import ebooklib.epub", "", Some(("ebooklib", " EbookLib` installs it"))),
        (true, "from PIL import Image", "", Some(("PIL", " pillow` installs it"))),
        (true, "import surely_missing", "", Some(("surely_missing", " PACKAGE` installs it, where PACKAGE is the package that provides it"))),
        (true, "import surely_missing.inner", "surely-missing>=1\n", Some(("surely_missing", "` installs what the skill's requirements.txt lists"))),
        (true, "try: import surely_missing\nexcept ImportError: print('without')", "", None),
        (true, "import sys; print('ModuleNotFoundError: No module named x', file=sys.stdout)", "", None),
    ];
    for_each(table, |(has_venv, source, requirements, expected)| {
        let test = match has_venv { true => test_with_skill().venv("s"), false => test_with_skill() };
        let test = match *requirements { "" => test, text => test.file("skills/s/requirements.txt", text) };
        let ran = run(&test, &json!({"script": source}));
        let place = if *has_venv { " in the skill's venv" } else { "" };
        let hint = expected.map(|(module, end)| format!("`{module}` is not installed{place}: {setup}{end}"));
        ran.is("hint", hint);
    });
    // All declared packages are installed: another package has to provide the module.
    let test = test_with_skill().venv("s").venv_module("s", "beta-1.0.dist-info", "");
    let test = test.file("skills/s/requirements.txt", "Beta>=1  # all\n");
    run(&test, &json!({"script": "import surely_missing"})).has("hint", "setup s PACKAGE` installs it");
    // What a setup already did is not suggested again.
    let test = test.file("skills/s/requirements.txt", "-r more.txt\n");
    run(&test, &json!({"script": "import surely_missing"})).has("hint", "setup s` installs what");
    let test = test.file("skills/s/venv/.skills-runner.json", "{\"declared\": [\"-r more.txt\"]}");
    run(&test, &json!({"script": "import surely_missing"})).has("hint", "setup s PACKAGE` installs it");
}

/// Scripts get neither the key, whatever its variable is, nor variables that only `.env` defines.
#[test]
fn key_is_not_in_the_environment_of_scripts() {
    let test = test_with_skill()
        .env("LLM_API_KEY", CANARY)
        .env("OPENAI_API_KEY", CANARY)
        .env("PROXY_LINE", format!("http://user:{CANARY}@host/"))
        .env("USERS_OWN", "stays")
        .file("key", "sk-from-a-file\n")
        .env("LLM_API_KEY_FILE", "key")
        .env("COPY_OF_FILE", "(sk-from-a-file)")
        .env(
            "LLM_EXTRA_HEADERS",
            r#"{"authorization": "Bearer gateway-token", "x-title": "skills-runner", "x-id": 12345678}"#,
        )
        .env("COPY_OF_HEADER", "gateway-token")
        .env("COPY_OF_NUMBER", "id 12345678")
        .env("OWN_TITLE", "skills-runner")
        .env("HTTPS_PROXY", "http://user:proxy%20password@proxy.example")
        .dotenv("ONLY_HERE=hidden\nLLM_MODEL_NAME=m\n");
    let ran = run(&test, &source("print(json.dumps(dict(os.environ)))"));
    let environment: Value = serde_json::from_str(ran.text("stdout")).expect("JSON");
    #[rustfmt::skip]
    let absent = [
        "LLM_API_KEY", "OPENAI_API_KEY", "PROXY_LINE", "ONLY_HERE", "LLM_MODEL_NAME",
        "LLM_EXTRA_HEADERS", "COPY_OF_FILE", "COPY_OF_HEADER", "COPY_OF_NUMBER",
    ];
    for name in absent {
        let is_met = environment[name].is_null();
        ran.check(is_met, &format!("{name} reached the script"));
    }
    // A script needs its proxy setting; its login is masked in the output.
    let stays = [
        ("USERS_OWN", "stays"),
        ("OWN_TITLE", "skills-runner"),
        ("HTTPS_PROXY", "http://user:[secret]@proxy.example"),
    ];
    for (name, value) in stays {
        let is_met = environment[name] == value;
        ran.check(is_met, &format!("{name} is not {value}"));
    }
    let masked = ran.text("stdout").matches("[secret]").count();
    ran.check(masked == 1, "not exactly one value was masked");
    let decode = "from urllib.parse import unquote\nprint(len(os.environ['HTTPS_PROXY']), unquote(os.environ['HTTPS_PROXY']))";
    let ran = run(&test, &source(decode));
    let is_met = ran.text("stdout") == "42 http://user:[secret]@proxy.example\n";
    ran.check(is_met, "the decoded password is shown, or the script did not get it");
}

/// Asserts that the result does not show a key that a script finds itself.
#[track_caller]
fn assert_masked(key: &str) {
    let find = "text = open(os.environ['USER_CWD'] + '/.env').read()\nprint(text); print('x' + text, file=sys.stderr); sys.exit(text)";
    // In single quotes a key stands for itself.
    let test = test_with_skill().dotenv(&format!("LLM_API_KEY='{key}'\n"));
    let ran = run(&test, &source(find));
    for stream in ["stdout", "stderr"] {
        let is_masked = ran.text(stream).contains("[secret]") && !ran.text(stream).contains(key);
        ran.check(is_masked, &format!("the key is shown in {stream}"));
    }
}

#[test]
fn key_printed_by_a_script_is_masked() {
    assert_masked(CANARY);
    assert_masked("sk-ключ-0123456789/+==");
}

#[test]
fn key_with_quotes_printed_by_a_script_is_masked() {
    assert_masked("sk-\"quoted\"-0123456789");
    assert_masked("sk-back\\slash-0123456789");
}

/// Stops the runner, and in the form with a prefix the guardian too.
const STOP_WATCHERS: &str = "
pid = os.getppid()
status = open(f'/proc/{pid}/status').read()
runner = int(status.split('PPid:')[1].split()[0])
os.kill(runner, signal.SIGSTOP)
if guardian_too: os.kill(pid, signal.SIGSTOP)
time.sleep(60)
";

/// A script that stops its runner and guardian is killed at its time limit, and the runner reports
/// that after it was continued.
#[test]
fn script_that_stops_its_guardian_is_killed_at_its_limit() {
    for guardian_too in [false, true].map(python) {
        let test = test_with_skill();
        let script = with_short_limit(&format!("guardian_too = {guardian_too}{STOP_WATCHERS}"));
        let running = tool(&test, &script).spawn();
        let is_over =
            wait_until(seconds(8.0), || is_stopped(running.pid()) && scripts_of(&test).is_empty());
        assert!(is_over, "{guardian_too}: {:?}", test.processes());
        running.signal(libc::SIGCONT);
        let run = running.wait().status(1);
        let result = run.stdout_json();
        run.check(result["timed_out"] == true, "the limit is not reported");
        run.check(is_clean(&test), "a process or file is left");
    }
}

/// Ctrl+C ends the program even if a script has stopped it, during the script and after it.
#[test]
fn ctrl_c_ends_a_stopped_runner() {
    let ends = STOP_WATCHERS.replace("time.sleep(60)", "");
    for (script, has_ended) in [(STOP_WATCHERS, false), (&ends, true)] {
        let test = test_with_skill();
        let script = source(&format!("guardian_too = {}{script}", python(!has_ended)));
        let running = tool(&test, &script).spawn();
        let is_stopped_as_expected = wait_until(seconds(8.0), || {
            is_stopped(running.pid()) && scripts_of(&test).is_empty() == has_ended
        });
        assert!(is_stopped_as_expected, "{:?}", test.processes());
        running.signal(libc::SIGINT);
        let ends = wait_until(seconds(5.0), || !is_alive(running.pid()));
        let run = running.wait();
        run.check(ends, "Ctrl+C took too long");
        // A result that already exists may still be printed.
        let by_signal = run.status == -libc::SIGINT;
        run.check(by_signal || has_ended, "the program did not end by the signal");
        run.check(is_clean(&test), "a process or file is left");
    }
}

/// A value as a Python literal.
fn python(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// The test's processes except the runner and its guardian.
fn scripts_of(test: &Test) -> Vec<i32> {
    let is_script = |pid: &i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        !name.starts_with("skills-")
    };
    test.processes().into_iter().filter(is_script).collect()
}

fn is_stopped(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "))
}

/// `/proc` does not reveal the key to a script of an ordinary user. Root can read everything, so
/// root runs this test as another user.
#[test]
fn environment_of_the_runner_is_unreadable_for_scripts() {
    let spy = "
pid, own, seen = os.getppid(), os.getuid(), []
while pid > 1:
    status = dict(line.split(':', 1) for line in open(f'/proc/{pid}/status').read().splitlines())
    name = status['Name'].strip()
    if name.startswith('skills-') and str(own) in status['Uid'].split():
        for file in ['environ', 'mem', 'maps', 'auxv', 'root/', 'fd/']:
            path = f'/proc/{pid}/{file}'
            try: seen.append((name, file, len(os.listdir(path) if file.endswith('/') else open(path, 'rb').read(9))))
            except OSError: seen.append('closed')
    pid = int(status['PPid'])
print(len(seen), {*seen})
";
    let mut call = source(spy);
    call["skill_name"] = "s".into();
    let test = test_with_skill().file("call.json", call.to_string());
    let test = test.env("LLM_API_KEY", CANARY).mode("tmp", 0o777);
    let line = "skills-runner tool run_python_script - < call.json";
    // SAFETY: always succeeds.
    let test = if unsafe { libc::geteuid() } == 0 {
        let change = "setpriv --reuid=65534 --regid=65534 --clear-groups";
        let python = "/usr/bin/python3";
        let try_out = format!("{change} skills-runner --version && {change} {python} -c 1");
        if Test::new().shell(&try_out).run().status != 0 {
            report_skipped(format_args!(
                "as root this needs setpriv, {python}, and a build that all users can run"
            ));
            return;
        }
        let test = test.env("SCRIPT_PYTHON", python);
        test.shell(&format!("{change} {line}"))
    } else {
        test.shell(line)
    };
    // Guardian and runner, six files each.
    let run = test.run().success();
    let is_met = run.stdout_json()["stdout"] == "12 {'closed'}\n";
    run.check(is_met, "a script can read files of its runner");
}

/// A script that starts ten daemons, runs the given code and then waits.
fn daemons_script(then: &str) -> Value {
    let start = "for _ in range(10): daemon()\nopen('ready', 'w').close()";
    let mut call = source(&format!("{DAEMON}{start}\n{then}\ntime.sleep(60)\n"));
    call["skill_name"] = "s".into();
    call
}

/// Waits until the script and its daemons are running.
#[track_caller]
fn wait_for_daemons(test: &Test) {
    let is_ready = wait_until(seconds(15.0), || test.exists("skills/s/ready"));
    assert!(is_ready && test.processes().len() > 10, "the script did not start");
}

/// On SIGINT, SIGTERM, SIGHUP and SIGKILL the program dies by that signal, and all processes that
/// its scripts started are killed.
#[test]
fn ending_the_runner_kills_its_scripts() {
    let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGKILL];
    let table: Vec<_> = ["tool", "go", "chat"]
        .into_iter()
        .flat_map(|way| signals.map(|signal| (way, signal)))
        // In a conversation Ctrl+C ends only the turn.
        .filter(|row| *row != ("chat", libc::SIGINT))
        .collect();
    for_each(&table, |&(way, signal)| {
        let call = daemons_script("");
        let replies = (way != "tool").then(|| Reply::call("run_python_script", &call));
        let server = Server::start(replies);
        let test = test_with_skill().endpoint(&server);
        let running = match way {
            "tool" => tool(&test, &call).spawn(),
            way => test.next_run().args([way]).stdin("go\n").spawn(),
        };
        wait_for_daemons(&test);
        let since = Stopwatch::start();
        running.signal(signal);
        let run = running.wait().status(-signal).stdout_is_empty();
        run.check(
            since.elapsed_for_limit(INTERRUPT_LIMIT) <= INTERRUPT_LIMIT,
            "the program ended late",
        );
        run.check(is_clean(&test), "a process or file is left");
    });
}

/// A guardian that its script stopped is continued when its runner is killed, also if the runner is
/// stopped; continuing it at any other time is harmless.
#[test]
fn stopped_guardian_still_kills_its_script() {
    let guardian = "os.kill(os.getppid(), signal.SIGSTOP)\n";
    let runner = "parent = open(f'/proc/{os.getppid()}/stat').read().rsplit(')')[1].split()[1]
os.kill(int(parent), signal.SIGSTOP)\n";
    let both = format!("{runner}{guardian}");
    let wakened = format!("{guardian}for _ in range(9): os.kill(os.getppid(), signal.SIGCONT)\n");
    let again = format!("{wakened}{guardian}");
    let table = [guardian, runner, &both, &wakened, &again];
    for_each(&table, |&stop| {
        let test = test_with_skill();
        let then = format!("{stop}open('stopped', 'w').close()");
        let running = tool(&test, &daemons_script(&then)).spawn();
        wait_for_daemons(&test);
        let is_stopped = wait_until(seconds(15.0), || test.exists("skills/s/stopped"));
        assert!(is_stopped, "the script is still running");
        running.kill9();
        let run = running.wait().status(-libc::SIGKILL).stdout_is_empty();
        run.check(is_clean(&test), "a process or file is left");
    });
}

/// The case that no handler of SIGCHLD can be installed, which `wait-timeout` considers impossible.
#[test]
fn missing_sigchld_handler_does_not_lose_the_result() {
    let test = test_with_skill();
    let signal = Some(libc::SIGCHLD.cast_unsigned());
    let Some(line) =
        program_refusing_syscalls(&test, &[RefusedSyscall(13, 134, signal, libc::EINVAL)])
    else {
        return;
    };
    let run = tool(&test, &source("print('whole')")).shell(&line).run();
    let run = run.success().stdout_has(r#""stdout":"whole\n""#);
    run.check(is_clean(&test), "a process or file is left");
}

/// With any limit on descriptors a script runs or the reason is reported, and no process or file is
/// left.
#[test]
fn few_descriptors_run_the_script_or_report_why_not() {
    let test = test_with_skill();
    let counts: Vec<u32> = (4..24).collect();
    for_each(&counts, |count| {
        let tool =
            r#"exec skills-runner tool run_python_script '{"skill_name":"s","script":"print(2)"}'"#;
        let run = test.next_run().shell(&format!("ulimit -n {count}; {tool}")).run();
        let is_reported = format!("{}{}", run.stdout, run.stderr).contains("os error 24");
        let has_run = run.status == 0 && run.stdout.contains("\"stdout\":\"2\\n\"");
        run.check(has_run || is_reported, "neither run nor reported");
    });
    assert!(is_clean(&test), "a process or file is left");
}

/// The temporary folder is deleted with the script, whatever the script put into it and whichever
/// process remains to delete it; targets of links in it stay.
#[test]
fn temporary_folder_is_deleted_with_the_script() {
    let fill = "
os.chdir(os.path.dirname(os.path.abspath(__file__)))
outside = os.environ['SKILL_DIR']
for name in range(300): open(f'file-{name}', 'w').close()
os.symlink(outside, 'link'); os.symlink('gone', 'dangling'); os.mkfifo('pipe')
os.makedirs('closed/inner/most'); open('closed/inner/most/file', 'w').close()
os.symlink(outside, 'closed/link')
for name in range(400): os.mkdir('deep'); os.chdir('deep')
open('file', 'w').close()
for name in range(400): os.chdir('..'); os.chmod('deep', 0)
for name in ['closed/inner/most', 'closed/inner', 'closed', '.']: os.chmod(name, 0)
open(outside + '/ready', 'w').close()
";
    let kill = "parent = open(f'/proc/{os.getppid()}/stat').read().rsplit(')')[1].split()[1]
os.kill(int(parent), signal.SIGKILL); time.sleep(60)";
    let ways = [
        ("", 0, Value::Null),
        ("os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)", 1, json!(-9)),
        (kill, -libc::SIGKILL, Value::Null),
    ];
    for (then, status, code) in ways {
        let test = test_with_skill().mode("tmp", 0o777).mode("skills/s", 0o777);
        let mut call = source(&format!("{fill}{then}"));
        call["skill_name"] = "s".into();
        let test = test.env("SCRIPT_PYTHON", "/usr/bin/python3");
        let test = test.file("call.json", call.to_string());
        let shell = as_an_ordinary_user(&test);
        let line = format!("{shell} tool run_python_script - < call.json");
        let run = test.next_run().shell(&line).run();
        run.check(test.exists("skills/s/ready"), "the script did its work");
        // On a busy machine it may be deleted after the result.
        let is_gone = wait_until(seconds(10.0), || is_clean(&test));
        run.check(is_gone, "a process or file is left");
        let run = run.status(status);
        if code != Value::Null {
            let is_met = run.stdout_json()["returncode"] == code;
            run.check(is_met, "the script ended its guardian");
        }
        run.check(test.exists("skills/s/SKILL.md"), "a link was followed");
    }
}

#[test]
fn killing_the_runner_kills_the_script() {
    let kill = "parent = open(f'/proc/{os.getppid()}/stat').read().rsplit(')')[1].split()[1]
os.kill(int(parent), signal.SIGKILL)";
    let test = test_with_skill();
    let run = tool(&test, &daemons_script(kill)).run().status(-libc::SIGKILL);
    let is_gone = is_soon(|| test.processes().is_empty());
    run.check(is_gone, "a process or file is left");
}

/// On a terminal Ctrl+C ends the script and the program, and the script's output cannot control the
/// terminal.
#[test]
fn control_c_on_a_terminal_ends_script_and_program() {
    let colour = json!({"skill_name": "s", "script": "print('\\x1b]0;title\\x07\\x1b[31mred')"});
    let calls = [colour, daemons_script("")];
    let server = Server::start(calls.map(|call| Reply::call("run_python_script", &call)));
    let test = test_with_skill().endpoint(&server);
    let mut terminal = test.next_run().args(["go"]).spawn_on_terminal();
    terminal.expect("← exit 0").expect("→ run_python_script s:");
    wait_for_daemons(&test);
    let since = Stopwatch::start();
    terminal.ctrl('c');
    let run = terminal.wait_exit().status(-libc::SIGINT);
    run.check(
        since.elapsed_for_limit(INTERRUPT_LIMIT) <= INTERRUPT_LIMIT,
        "the program ended late",
    );
    let is_driven = ["\x1b]0;", "\x1b[31mred"].map(|codes| run.terminal.contains(codes));
    run.check(is_driven == [false; 2], "a script controls the terminal");
    run.check(is_clean(&test), "a process or file is left");
}

#[test]
fn run_timeout_ends_a_script() {
    let call = daemons_script("");
    let server = Server::start([Reply::call("run_python_script", &call)]);
    let test = test_with_skill().endpoint(&server);
    let ways = [test.next_run().args(["go"]), tool(&test, &call)];
    for_each(&ways, |way| {
        let run = way.clone().args(["--timeout", "1"]).run().status(3);
        let run = run.took_at_least(seconds(1.0)).took_at_most(seconds(1.0 + SLACK));
        run.stdout_is_empty().stderr_has("--timeout").stderr_lacks("limit of 30 s");
    });
    assert!(is_clean(&test), "a process or file is left");
    server.finish();
}

/// The model gets the same results through an endpoint, the user sees a line for each, and the run
/// continues.
#[test]
fn model_gets_the_same_results_as_the_user() {
    // A call, the line that shows its result to the user, and a part of the result that the model
    // gets.
    #[rustfmt::skip]
    let table = [
        (source("print('x' * 70000)"), "← exit 0, 70001 bytes", ("truncated", json!(true))),
        (with_short_limit("print('begun'); time.sleep(30)"), "← stopped at the time limit of 1 s, 6 bytes", ("stdout", json!("begun\n"))),
        (source("if os.fork() == 0: time.sleep(60)\nsys.exit(4)"), "← exit 4, 0 bytes", ("hint", json!("1 process that the script left behind was ended"))),
        (source("print('\\0\\x1b[2J' + open(os.environ['USER_CWD'] + '/.env').read())"), "← exit 0", ("stdout", json!("\0\x1b[2JKEY=[secret]\n\n"))),
        (source("os.kill(os.getppid(), signal.SIGKILL); time.sleep(30)"), "← the script killed its guardian", ("returncode", json!(-9))),
        (json!({"script": "print(input())", "stdin": "given"}), "← exit 0, 6 bytes", ("stdout", json!("given\n"))),
    ];
    let calls = table.clone().map(|(mut call, ..)| {
        call["skill_name"] = "s".into();
        call.to_string()
    });
    let calls = calls.iter().map(|call| ("run_python_script", call.as_str()));
    let server = Server::start([Reply::calls(calls), Reply::text("done")]);
    let test = test_with_skill().endpoint(&server).dotenv(&format!("KEY={CANARY}\n"));
    let run = test.next_run().args(["go"]).run().success().stdout("done\n");
    let raw = run.stderr.contains(['\x1b', '\0']);
    run.check(!raw, "control characters are shown raw");
    run.check(is_clean(&test), "a process or file is left");
    let shown: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with('←')).collect();
    assert_eq!(shown.len(), table.len(), "not a line for each result");
    let last = server.finish().pop().expect("two requests");
    for (number, (_, line, (key, expected))) in table.iter().enumerate() {
        assert!(shown[number].starts_with(line), "{} is not {line}", shown[number]);
        let result = last.tool_json(&format!("call_{}", number + 1));
        assert_eq!(result[key], *expected, "{key} of {result}");
    }
}

/// The runners share a skill, and each gets its own results.
#[test]
fn ten_runners_share_a_skill() {
    let test =
        test_with_skill().venv("s").file("skills/s/shared.py", "def twice(n): return 2 * n\n");
    let meet = "
import shared
number = int(sys.argv[1])
open(f'own-{number}', 'w').write('x')
end = time.time() + 10
while len([name for name in os.listdir() if name.startswith('own-')]) < 10 and time.time() < end: time.sleep(0.01)
if os.fork() == 0: time.sleep(60)
print(shared.twice(number), sys.stdin.read(), __file__)
";
    let start = |number: u32| {
        let mut call = source(meet);
        call["args"] = json!([number]);
        call["stdin"] = json!(format!("in {number}"));
        tool(&test, &call).spawn()
    };
    let running: Vec<Running> = (0..10).map(start).collect();
    let mut files: Vec<String> = Vec::new();
    for (number, running) in running.into_iter().enumerate() {
        let run = running.wait().success();
        let result = run.stdout_json();
        let stdout = result["stdout"].as_str().unwrap_or_default();
        let own = stdout.strip_prefix(&format!("{} in {number} ", 2 * number));
        run.check(own.is_some(), "each gets its own result");
        let hint = &result["hint"] == "1 process that the script left behind was ended";
        run.check(hint, "each ends its own");
        files.extend(own.map(str::to_owned));
    }
    files.sort();
    files.dedup();
    assert_eq!(files.len(), 10, "not a separate source for each");
    assert!(is_clean(&test), "a process or file is left");
}

/// Scripts with relative imports of their neighbours are written for `python -m scripts.x`, and are
/// run so by their path.
#[test]
fn script_of_a_package_runs_as_a_module() {
    let test = Test::new()
        .skill("s", DOCUMENT)
        .file("skills/s/scripts/words.py", "GREETING = 'hello'\n")
        .file(
            "skills/s/scripts/greet.py",
            "import sys\nfrom .words import GREETING\nprint(GREETING, __name__, sys.argv[1:])\n",
        );
    for path in ["scripts/greet.py", "./scripts/greet.py"] {
        let call = json!({"skill_name": "s", "file_path": path, "args": ["-x", "y"]});
        let result = test
            .next_run()
            .args(["tool", "run_python_script", &call.to_string()])
            .run()
            .success()
            .stdout_json();
        assert_eq!(result["stdout"], "hello __main__ ['-x', 'y']\n", "{result}");
    }
}

/// The `python3` on the path may be a version manager's shim: it is started for each script, and
/// its error message is the script's.
#[test]
fn shim_of_a_version_manager_is_started_for_each_script() {
    let path = std::env::var("PATH").unwrap_or_default();
    let with_shim = |script: &str| {
        let test = test_with_skill().executable("bin/python3", &format!("#!/bin/sh\n{script}\n"));
        let path = format!("{}:{path}", test.path("bin").display());
        test.env_unset("SCRIPT_PYTHON").env("PATH", path)
    };
    let exec = format!("export GREETING=hi\nexec {} \"$@\"", interpreter().display());
    let test = with_shim(&exec);
    let ran = run(&test, &source("import os; print(os.environ['GREETING'])"));
    ran.is("stdout", "hi\n").is("interpreter", test.path("bin/python3").display().to_string());
    let test = with_shim("echo 'version 3.99 is not installed' >&2; exit 127");
    let ran = run(&test, &source("1"));
    ran.is("returncode", 127).is("stderr", "version 3.99 is not installed\n");
}
