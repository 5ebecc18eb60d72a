//! Results, output and arguments of scripts.

use super::{
    DAEMON, SLACK, call, for_each, is_clean, run, source, test_with_skill, with_short_limit,
};
use crate::harness::{Stopwatch, is_alive, seconds};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const PEAK_KIB: u64 = 20 << 10;
const KEPT: usize = 64 << 10;

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
        let has_hint = has_gone || is_limited;
        ran.check(ran.result["hint"].is_null() != has_hint, "a hint only if the document was deleted");
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
            ran.has("hint", &format!("{count} ended with it: "));
        }

        let forever = with_short_limit(&format!("{DAEMON}{text}\ntime.sleep(60)"));
        let ran = run(&test_with_skill(), &forever);
        ran.is("timed_out", true).is("returncode", -9);
        let hint = ran.result["hint"].as_str().unwrap_or_default();
        ran.check(!hint.contains("left behind"), hint);
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
    let sleep_script = "import time; time.sleep(300)";
    let long = format!("{}\nexit(5)", "# 4567890abcde\n".repeat(70_000));
    let limit = "stopped at the time limit of 1 s";
    let words = vec!["x".repeat(1000); 1000];
    // A return code, or an error instead of it.
    #[rustfmt::skip]
    let table = [
        (json!({"script": sleep_script}), Some(-9), limit),
        (json!({"script": sleep_script, "timeout_seconds": 100}), None, "`timeout_seconds` is not an argument"),
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
        let test = match code {
            Some(-9) => test_with_skill().env("SCRIPT_TIMEOUT_SECONDS", "1"),
            _ => test_with_skill(),
        };
        run(&test, arguments).has("error", error).is("returncode", *code);
    });
    let flag = test_with_skill().args(["--script-timeout", "1", "tool", "run_python_script"]);
    let json = json!({"skill_name": "s", "script": sleep_script}).to_string();
    flag.args([json]).run().status(1).stdout_has(limit);
}
