//! Environments in which the program is started: by a user, a shell loop, cron, a service
//! manager, a container. Each test tries an answer, a script, a session, facts and a log. If an
//! environment
//! lacks something, only the features that depend on it fail.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{
    Outcome, Reply, Request, Server, Test, interpreter, process_tree, report_skipped, seconds,
    shell_line_works, wait_until,
};
use crate::paths::as_an_ordinary_user;

const DOCUMENT: &str = "---\nname: calc\ndescription: Calculates.\n---\nUse Python.\n";
const SCRIPT: &str = r#"{"skill_name": "calc", "script": "print(6 * 7)"}"#;
const FACT: &str = "the sea is blue";
/// All features in one run, in a session, with a log.
const ALL: [&str; 5] = ["--session", "one", "--log", "log", "all"];

/// A model that follows the prompt: `all` is a script and a fact.
fn model(request: &Request) -> Reply {
    let message = request.last_message();
    let prompt = message["content"].as_str().unwrap_or_default();
    let fact = json!({"content": FACT}).to_string();
    match message["role"].as_str() {
        Some("tool") => {
            let messages = request.messages().iter().rev();
            let results = messages.take_while(|message| message["role"] == "tool");
            let mut results: Vec<_> = results.map(|result| result["content"].to_string()).collect();
            results.reverse();
            Reply::text(&format!("done: {}", results.join(" ")))
        }
        _ if prompt.starts_with("all") => {
            Reply::calls([("run_python_script", SCRIPT), ("remember_fact", &fact)])
        }
        _ => Reply::text(&format!("answer to {prompt}")),
    }
}

/// A skill, a memory and sessions, with absolute paths, since the working directory may be missing.
fn test_with_all_features() -> (Server, Test) {
    let server = Server::always(model);
    let test = Test::new().skill("calc", DOCUMENT).endpoint(&server);
    let test = test.folder("tmp").mode("tmp", 0o777);
    let (facts, sessions) = (test.path("facts.md"), test.path("sessions"));
    let (skills, tmp) = (test.path("skills"), test.path("tmp"));
    let test = test.env("MEMORY_PATH", facts).env("SESSIONS_PATH", sessions);
    let test = test.env("SKILLS_FOLDER_PATH", skills).env("TMPDIR", tmp);
    (server, test.env("SCRIPT_PYTHON", interpreter()))
}

/// The parts of a shell line before and after the program.
#[derive(Clone, Copy)]
struct Line(&'static str, &'static str);

impl Line {
    fn run(self, test: &Test, args: &[&str]) -> Outcome {
        let line = format!("{} skills-runner \"$@\" {}", self.0, self.1);
        test.next_run().shell(&line).args(args).run()
    }

    /// Whether the program has a standard output, and a standard error.
    fn has(self) -> (bool, bool) {
        let has = |number: &str| !self.1.contains(&format!("{number}>"));
        (has(" ") && !self.1.starts_with('>'), has("2"))
    }
}

/// Asserts that every feature works and that output goes only where it belongs.
#[track_caller]
fn assert_all_work(name: &str, line: Line) {
    let (_server, test) = test_with_all_features();
    assert_all_work_in(name, &test, line);
}

#[track_caller]
fn assert_all_work_in(name: &str, test: &Test, line: Line) {
    println!("{name}");
    let (has_out, has_err) = line.has();
    let spoken = |text: &str| {
        if has_out { text.to_owned() } else { String::new() }
    };
    line.run(test, &["hi"]).success().stdout(&spoken("answer to hi\n")).stderr_is_empty();

    let log = test.path("log");
    let mut args = ALL;
    args[3] = log.to_str().unwrap();
    let run = line.run(test, &args).success();
    if has_out {
        let run = run.stdout_has(r"--- stdout (3 bytes)\n42\n");
        run.stdout_has("remembered").check(true, "");
    } else {
        run.stdout_is_empty();
    }
    let run = line.run(test, &["tool", "run_python_script", SCRIPT]).success();
    let run = if has_out { run.stdout_has(r#""stdout":"42\n""#) } else { run.stdout_is_empty() };
    if has_err {
        run.stderr_is_empty();
    }

    let facts = test.read("facts.md");
    assert!(
        facts.contains(&format!("] {FACT} <!-- ")) && facts.contains(", source: one -->\n"),
        "{name}: {facts}"
    );
    let session = read_records(&test.read("sessions/one.jsonl"));
    assert_eq!(session.last().unwrap()["add"]["role"], "assistant", "{name}: {session:?}");
    let records = read_records(&test.read("log"));
    assert_eq!(records.last().unwrap()["type"], "result", "{name}: {records:?}");
    assert_nothing_left(name, test);
}

/// Reads a file of records and asserts that it contains nothing else.
#[track_caller]
fn read_records(text: &str) -> Vec<Value> {
    assert!(text.ends_with('\n'), "{text:?}");
    let lines = text.lines().map(|line| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?} in {text:?}"))
    });
    lines.collect()
}

/// Asserts that no temporary folder and no process is left.
#[track_caller]
fn assert_nothing_left(name: &str, test: &Test) {
    let count = fs::read_dir(test.path("tmp")).unwrap().count();
    assert_eq!(count, 0, "{name}: temporary folders");
    assert!(wait_until(seconds(10.0), || test.processes().is_empty()), "{name}: processes");
}

/// A program may be started without one of its streams. A file that it opens must not become its
/// standard output: a session or a log would get the answer.
#[test]
fn runs_without_standard_streams() {
    let lines = [
        ("no stdin", "<&-"),
        ("no stdout", ">&-"),
        ("no stderr", "2>&-"),
        ("no stdin, no stdout", "<&- >&-"),
        ("none", "<&- >&- 2>&-"),
        ("stdin is a folder", "< ."),
        ("full stderr", "2>/dev/full"),
    ];
    for (name, behind) in lines {
        assert_all_work(name, Line("exec", behind));
    }
}

/// An answer that cannot be written is a failure.
#[test]
fn full_stdout_is_a_failure() {
    let (_server, test) = test_with_all_features();
    for behind in [">/dev/full", "<&- >/dev/full 2>&1", ">/dev/full 2>&-"] {
        let args = ["--session", "one", "hi"];
        Line("exec", behind).run(&test, &args).status(1);
        let session = read_records(&test.read("sessions/one.jsonl"));
        assert_eq!(session.last().unwrap()["add"]["text"], "answer to hi");
    }
    let run = Line("exec", ">/dev/full").run(&test, &["-o", "json", "hi"]).status(1);
    run.stderr_has("failed to write the answer: No space left on device");
}

/// As started by cron, a service manager, or `env -i`.
#[test]
fn runs_with_few_variables() {
    for line in [
        Line("unset HOME; exec", ""),
        Line("HOME= exec", ""),
        Line("HOME=/nonexistent exec", ""),
        Line("HOME=/proc exec", ""),
        Line("HOME=relative exec", ""),
        Line("unset LANG TERM; exec", ""),
        Line("TZ=Nowhere/Bogus LANG=C LC_ALL=C exec", ""),
        Line("TZ= LANG=xx_XX.bogus exec", ""),
    ] {
        assert_all_work(line.0, line);
    }
    let (_server, test) = test_with_all_features();
    let name = OsStr::from_bytes(b"/tmp/\xff\xfe");
    let test = test.env("HOME", name).env("LANG", name).env("ODD", name);
    assert_all_work_in("values that are no text", &test, Line("exec", ""));
    let (_server, test) = test_with_all_features();
    assert_all_work_in("a relative TMPDIR", &test.env("TMPDIR", "tmp"), Line("exec", ""));
    let (_server, test) = test_with_all_features();
    let long: Vec<_> = (0..6000).map(|number| format!("/nowhere/{number}")).collect();
    let long = format!("{}:/usr/bin:/bin", long.join(":"));
    assert_all_work_in("a long PATH", &test.env("PATH", long), Line("exec", ""));
}

/// With only the settings as variables: programs are found as by a shell, and features that need a
/// home say so.
#[test]
fn runs_with_only_the_settings_as_variables() {
    let (_server, test) = test_with_all_features();
    let bare = r#"exec env -i LLM_API_BASE_URL="$LLM_API_BASE_URL" LLM_MODEL_NAME=m LLM_API_KEY="$LLM_API_KEY" "$(command -v skills-runner)" "$@""#;
    let run = |args: &[&str]| test.next_run().shell(bare).args(args).run();
    run(&["hi"]).success().stdout("answer to hi\n");
    run(&["skills", "list"]).success().stdout_has("calc");
    let run = run(&["--session", "one", "hi"]).status(78);
    run.stderr_has("there is no home folder").stderr_has("hint: set SESSIONS_PATH");
    if !Path::new("/usr/bin/python3").exists() && !Path::new("/usr/local/bin/python3").exists() {
        report_skipped("no Python where shells look for it");
        return;
    }
    let ran = test.next_run().shell(bare).args(["tool", "run_python_script", SCRIPT]).run();
    ran.success().stdout_has(r#""stdout":"42\n""#);
    // Programs that a script starts are found in a venv as well.
    let (_server, test) = test_with_all_features();
    let test = test.venv("calc");
    let call = json!({"skill_name": "calc", "script": "import os; print(os.environ['PATH'])"});
    let ran = test.next_run().shell(bare).args(["tool", "run_python_script", &call.to_string()]);
    ran.run().success().stdout_has("/calc/venv/bin:/usr/local/bin:/usr/bin:/bin\\n");
}

/// Signal settings that programs inherit from daemons and supervisors.
#[test]
fn runs_with_signals_ignored_or_blocked() {
    let python = interpreter().to_str().unwrap();
    for line in [
        Line("trap '' CHLD; exec", ""),
        Line("trap '' PIPE; exec", ""),
        Line("trap '' INT TERM HUP QUIT USR1 USR2 ALRM; exec", ""),
        Line("exec setsid -w", ""),
    ] {
        assert_all_work(line.0, line);
    }
    let (_server, test) = test_with_all_features();
    let block = format!(
        "#!{python}\nimport os, signal, sys\nall = signal.valid_signals()\n\
        signal.pthread_sigmask(signal.SIG_BLOCK, all)\nos.execvp(sys.argv[1], sys.argv[1:])\n"
    );
    let test = test.executable("block", &block);
    assert_all_work_in("all signals blocked", &test, Line("exec ./block", ""));
    // A blocked signal still ends the program.
    let call =
        json!({"skill_name": "calc", "script": "open('ready', 'w'); import time; time.sleep(60)"});
    let run = test.next_run().shell("exec ./block skills-runner \"$@\"");
    let run = run.args(["tool", "run_python_script", &call.to_string()]).spawn();
    assert!(wait_until(seconds(15.0), || test.exists("ready")));
    run.signal(libc::SIGTERM);
    run.wait().status(-libc::SIGTERM).took_at_most(seconds(15.0));
    assert_nothing_left("terminated", &test);
}

/// Program name, umask, working directory.
#[test]
fn runs_with_odd_name_umask_or_directory() {
    for line in [Line("umask 077; exec", ""), Line("umask 000; exec", "")] {
        let (_server, test) = test_with_all_features();
        assert_all_work_in(line.0, &test, line);
        for private in ["facts.md", "log", "sessions/one.jsonl"] {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(test.path(private)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{private} under {}", line.0);
        }
    }
    let gone = Line("mkdir gone; cd gone; rmdir ../gone; exec", "");
    assert_all_work("a working directory that is gone", gone);
    if shell_line_works("bash -c 'exec -a \"\" true'") {
        let line = Line("exec bash -c 'exec -a \"\" \"$@\"' bash", "");
        assert_all_work("without a name", line);
    }
}

/// Files with relative paths cannot be created in a deleted working directory.
#[test]
fn deleted_working_directory_gets_no_files() {
    let (_server, test) = test_with_all_features();
    let line = Line("mkdir gone; cd gone; rmdir ../gone; exec", "");
    let test = test.env_unset("SKILLS_FOLDER_PATH").env("MEMORY_PATH", "facts.md");
    line.run(&test, &["hi"])
        .success()
        .stdout("answer to hi\n")
        .stderr_has("there are no skills in the default folders (./skills, ");
    line.run(&test, &["--log", "log", "hi"]).status(2).stderr_has("failed to open the log");
    line.run(&test, &["facts", "add", FACT]).status(1).stderr_has("failed to change the facts");
    assert!(!test.exists("log") && !test.exists("facts.md"));
}

/// Resource limits: features within them work, others report what is missing.
#[test]
fn runs_under_resource_limits() {
    for line in [
        Line("ulimit -n 32; exec", ""),
        Line("ulimit -v 400000; exec", ""),
        Line("ulimit -f 1000; exec", ""),
        Line("ulimit -s 256; exec", ""),
        Line("ulimit -c 0; ulimit -t 20; exec", ""),
    ] {
        assert_all_work(line.0, line);
    }
    // No file may grow: nothing is saved, and no signal ends the program.
    let (_server, test) = test_with_all_features();
    let line = Line("ulimit -f 0; exec", "");
    line.run(&test, &["hi"]).success().stdout("answer to hi\n");
    line.run(&test, &["--session", "one", "hi"])
        .success()
        .stdout("answer to hi\n")
        .stderr_has("File too large");
    let run = line.run(&test, &["all"]).success();
    run.stdout_has("its source could not be written: File too large")
        .stdout_has("failed to change the facts");
    line.run(&test, &["--log", "log", "hi"])
        .status(1)
        .stderr_has("failed to write the log")
        .stdout_is_empty();
    assert_nothing_left(line.0, &test);
    assert_runs_with_little_memory(&test);
}

/// Little memory is enough for an answer, and a script that cannot start is reported.
#[track_caller]
fn assert_runs_with_little_memory(test: &Test) {
    let line = Line("ulimit -v 24576; exec", "");
    line.run(test, &["hi"]).success().stdout("answer to hi\n");
    line.run(test, &["all"]).success().stdout_has("done: ");
}

/// With few descriptors there is an answer, or an error with the reason.
#[test]
#[ignore = "long"]
fn few_descriptors_give_an_answer_or_an_error() {
    for count in [4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20] {
        let (_server, test) = test_with_all_features();
        let before = format!("ulimit -n {count}; exec skills-runner \"$@\"");
        let run = |args: &[&str]| test.next_run().shell(&before).args(args).run();
        for args in [&["hi"][..], &ALL, &["tool", "run_python_script", SCRIPT]] {
            let run = run(args);
            let is_told = run.stderr.contains("file descriptors")
                || run.stderr.contains("open files")
                || run.stdout.contains("open files");
            run.check(
                run.status == 0 || is_told,
                format_args!("{count} descriptors: not reported"),
            );
        }
        run(&["--version"]).success();
        if count >= 12 {
            run(&["hi"]).success().stdout("answer to hi\n");
        }
        assert_nothing_left(&before, &test);
    }
}

/// Shell line that changes mounts in a new namespace, then starts the program.
fn mounted(mounts: &str) -> String {
    format!(
        "exec unshare -m sh -c 'set -e; {mounts}; cd \"$PWD\"; exec skills-runner \"$@\"' sh \"$@\""
    )
}

const READ_ONLY: &str = "mount -o remount,ro,bind / 2>/dev/null || true; for place in /tmp \"$PWD\"; do mount --bind $place $place; mount -o remount,ro,bind $place; done";

/// On a read-only file system scripts use `/dev/shm`, and files that cannot be saved are reported.
#[test]
fn runs_on_a_read_only_file_system() {
    if !shell_line_works("unshare -m sh -c 'mount --bind / /mnt && mount -o remount,ro,bind /mnt'")
    {
        return;
    }
    let (_server, test) = test_with_all_features();
    let run =
        |mounts: &str, args: &[&str]| test.next_run().shell(&mounted(mounts)).args(args).run();
    run(READ_ONLY, &["hi"]).success().stdout("answer to hi\n").stderr_is_empty();
    run(READ_ONLY, &["tool", "run_python_script", SCRIPT])
        .success()
        .stdout_has(r#""stdout":"42\n""#);
    run(READ_ONLY, &["--session", "one", "hi"])
        .success()
        .stdout("answer to hi\n")
        .stderr_has("Read-only file system (os error 30); the conversation is not saved");
    run(READ_ONLY, &["all"]).success().stdout_has("failed to change the facts").stdout_has("42");
    run(READ_ONLY, &["--log", "log", "hi"]).status(2).stderr_has("Read-only file system");
    run(READ_ONLY, &["skills", "new", "new"]).status(1).stderr_has("Read-only file system");
    run(READ_ONLY, &["facts", "add", FACT]).status(1).stderr_has("Read-only file system");
    let all = format!("{READ_ONLY}; mount -t tmpfs -o ro none /dev/shm");
    run(&all, &["hi"]).success().stdout("answer to hi\n");
    let run = run(&all, &["tool", "run_python_script", SCRIPT]).status(1);
    run.stdout_has("no temporary folder (set TMPDIR): Read-only file system");
}

const WITHOUT_PROC: &str = "umount -l /proc";

/// Whether the sandbox works on this machine.
fn sandbox_works(test: &Test) -> bool {
    let test = test.next_run().env_unset("LLM_API_BASE_URL");
    let run = test.args(["doctor"]).run();
    let can = run.stdout.contains("SCRIPT_SANDBOX=on is possible here");
    if !can {
        report_skipped("no sandbox on this machine");
    }
    can
}

/// If a system folder is missing, only features that depend on it fail.
#[test]
#[ignore = "long"]
fn runs_without_system_folders() {
    if !shell_line_works("unshare -m mount -t tmpfs none /mnt") {
        return;
    }
    for mounts in [
        "mount -t tmpfs none /dev",
        WITHOUT_PROC,
        "mount -t tmpfs none /etc",
        "mount -t tmpfs none /run; mount -t tmpfs none /sys; mount -t tmpfs none /var",
        "mount -t tmpfs none /dev; umount -l /proc; mount -t tmpfs none /etc",
    ] {
        let (server, test) = test_with_all_features();
        let test = test.env("LLM_API_BASE_URL", format!("http://localhost:{}/v1", server.port()));
        let run = |args: &[&str], streams: &str| {
            let line = format!("{} {streams}", mounted(mounts));
            test.next_run().shell(&line).args(args).run()
        };
        println!("{mounts}");
        run(&["hi"], "").success().stdout("answer to hi\n").stderr_is_empty();
        run(&ALL, "").success().stdout_has("42").stdout_has("remembered");
        read_records(&test.read("sessions/one.jsonl"));
        if mounts == WITHOUT_PROC && sandbox_works(&test) {
            run(&["--sandbox", "all"], "").success().stdout_has("42");
            let doctor = test.next_run().env_unset("LLM_API_BASE_URL");
            let doctor = doctor.shell(&mounted(mounts));
            let doctor = doctor.args(["--sandbox", "doctor"]).run();
            doctor.stdout_has("sandbox: on: Landlock").stdout_has(" ms in the sandbox");
        }
        assert_nothing_left(mounts, &test);
        // std would abort without /dev/null.
        run(&["hi"], "<&-").success().stdout("answer to hi\n");
        for streams in [">&-", "<&- >&-", "<&- >&- 2>&-"] {
            run(&ALL, streams).success().stdout_is_empty();
        }
        run(&["hi"], "2>&-").success().stdout("answer to hi\n");
        read_records(&test.read("sessions/one.jsonl"));
        read_records(&test.read("log"));
        assert_nothing_left(mounts, &test);
    }
}

/// As the first process of a container it ends by a signal, and processes started by a script are
/// killed.
#[test]
fn runs_as_the_first_process() {
    if !shell_line_works("unshare --pid --fork --mount-proc true") {
        return;
    }
    let line = Line("exec unshare --pid --fork --mount-proc", "");
    assert_all_work("as the first process", line);
    let (_server, test) = test_with_all_features();
    let run = |script: &str| {
        let call = json!({"skill_name": "calc", "script": script}).to_string();
        let test =
            test.next_run().shell("exec unshare --pid --fork --mount-proc skills-runner \"$@\"");
        test.args(["tool", "run_python_script", &call]).spawn()
    };
    let daemon = "import os, subprocess, time\nif os.fork() == 0:\n    os.setsid()\n    subprocess.Popen(['sleep', '60'])\n    os._exit(0)\n";
    let look = "import glob\nstates = [open(f).read().rsplit(')')[1].split()[0] for f in glob.glob('/proc/[0-9]*/stat')]\nprint(states.count('Z'))\n";
    run(&format!("{daemon}time.sleep(0.3)\n{look}"))
        .wait()
        .success()
        .stdout_has("1 process that the script left behind was ended")
        .check(true, "");
    let running = run(&format!("{daemon}open('ready', 'w')\ntime.sleep(60)"));
    assert!(wait_until(seconds(15.0), || test.exists("ready")));
    let first = process_tree(running.pid())[1];
    // SAFETY: a child of a running process that is ours.
    unsafe { libc::kill(first, libc::SIGTERM) };
    // The kernel does not let a signal end the first process, so the program exits itself.
    running.wait().status(128 + libc::SIGTERM).took_at_most(seconds(15.0));
    assert_nothing_left("terminated", &test);
}

/// A home of another user, and read-only folders.
#[test]
fn runs_without_writable_folders() {
    let (_server, test) = test_with_all_features();
    let line = as_an_ordinary_user(&test);
    let test = test.env("SCRIPT_PYTHON", "/usr/bin/python3").env_unset("SESSIONS_PATH");
    if test.next_run().shell(&line.replace("\"$@\"", "--version")).run().status != 0 {
        report_skipped("no other user can be taken");
        return;
    }
    let test = test.mode("home", 0o555).mode("", 0o555).mode("skills/calc", 0o555);
    let run = |args: &[&str]| test.next_run().shell(line).args(args).run();
    run(&["hi"]).success().stdout("answer to hi\n").stderr_is_empty();
    let saved = run(&["--session", "one", "hi"]).success().stdout("answer to hi\n");
    saved.stderr_has("Permission denied (os error 13); the conversation is not saved");
    run(&["--log", "log", "hi"]).status(2).stderr_has("Permission denied");
    run(&["facts", "add", FACT]).status(1).stderr_has("it is not writable");
    run(&["skills", "new", "new"]).status(1).stderr_has("Permission denied");
    if Path::new("/usr/bin/python3").exists() {
        run(&["all"]).success().stdout_has("42").stdout_has("failed to change the facts");
    }
    assert_nothing_left("read only", &test);
}
