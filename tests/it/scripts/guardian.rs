//! The guardian: every process of a script ends.

use super::{
    INTERRUPT_LIMIT, daemons_script, for_each, is_clean, is_soon, python, source, test_with_skill,
    tool, wait_for_daemons, with_short_limit,
};
use crate::harness::{
    CANARY, RefusedSyscall, Reply, Server, Stopwatch, Test, is_alive, program_refusing_syscalls,
    report_skipped, seconds, wait_until,
};
use crate::paths::as_an_ordinary_user;
use serde_json::{Value, json};
use std::fs;

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
        let is_stopped = wait_until(seconds(15.0), || test.exists("stopped"));
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

/// An emulator that has no subreapers: the guardian is named, not the interpreter or the venv.
#[test]
fn an_emulator_without_subreapers_is_named() {
    const SUBREAPER: RefusedSyscall =
        RefusedSyscall(157, 167, Some(libc::PR_SET_CHILD_SUBREAPER.cast_unsigned()), libc::EINVAL);
    let test = test_with_skill();
    let Some(line) = program_refusing_syscalls(&test, &[SUBREAPER]) else {
        return;
    };
    let not_started = test.executable("python", "#!/nonexistent\n");
    let python = not_started.path("python");
    let run = tool(&not_started.clone().env("SCRIPT_PYTHON", python), &source("print(1)")).run();
    run.status(1).stdout_has("its interpreter is missing").stdout_lacks("guardian");
    let test = not_started;
    for test in [test.clone(), test.venv("s")] {
        let run = tool(&test, &source("print(1)")).shell(&line).run().status(1);
        let error = run.stdout_json()["error"].to_string();
        let expected = "could not be run: failed to start the guardian, which kills all processes \
                        of a script: PR_SET_CHILD_SUBREAPER is refused: Invalid argument";
        run.check(error.contains(expected), "the guardian is not named");
        run.check(error.contains("an emulator"), "no remedy");
        run.check(!error.contains("SCRIPT_PYTHON") && !error.contains("venv"), "another cause");
        let run = test.next_run().shell(&line).args(["doctor"]).run();
        run.stdout_has("failed to start the guardian").stdout_lacks("cannot be started");
    }
}
