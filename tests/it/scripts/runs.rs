//! Scripts as a part of whole runs.

use super::{
    DOCUMENT, INTERRUPT_LIMIT, SLACK, daemons_script, for_each, is_clean, run, source,
    test_with_skill, tool, wait_for_daemons,
};
use crate::harness::{
    CANARY, ProgramText, Reply, Running, Server, Stopwatch, Test, interpreter, seconds,
};
use serde_json::json;

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

/// Of tracebacks the model gets no frames of libraries; what only looks like one stays.
#[test]
fn tracebacks_for_the_model_have_the_frames_of_the_script() {
    let chained = "import json\ndef read(text):\n    return json.loads(text)\ntry:\n    read('x')\n\
        except ValueError as error:\n    raise RuntimeError('bad') from error\n";
    let during = "import json\ntry:\n    json.loads('')\nexcept ValueError:\n    open('/none')\n";
    let header = "Traceback (most recent call last):\n";
    let library = "  File \"/usr/lib/python3.11/json/x.py\", line 3, in loads\n    return 1\n";
    let alike = [
        format!("{header}{library}no exception follows\n"),
        format!("{library}ValueError: no header\n"),
        format!("log: {header}{library}ValueError: x\n"),
        format!("{header}{library}"),
        format!(
            "{header}  File \"/usr/lib/python3.11/json/x.py\", line 3\n    1 +\nSyntaxError: x\n"
        ),
    ];
    let write = |text: &str| format!("import sys\nsys.stderr.write({text:?})\nsys.exit(1)");
    let mut calls = vec![
        ("run_python_script", json!({"script": chained})),
        ("run_command", json!({"command": format!("python3 - <<'END'\n{during}END\n")})),
    ];
    calls.extend(alike.iter().map(|text| ("run_python_script", json!({"script": write(text)}))));
    let texts: Vec<String> = calls.iter().map(|(_, call)| call.to_string()).collect();
    let replies = calls.iter().zip(&texts).map(|((name, _), call)| (*name, call.as_str()));
    let server = Server::start([Reply::calls(replies), Reply::text("done")]);
    test_with_skill().endpoint(&server).args(["go"]).run().success();
    let requests = server.finish();
    let messages = requests[1].messages();
    let results = &messages[messages.len() - calls.len()..];
    let content = |at: usize| results[at]["content"].as_str().unwrap();
    let stderr = |at: usize| ProgramText::parse(content(at)).stderr;
    let first = stderr(0);
    for expected in [
        "line 5, in <module>\n    read('x')\n",
        "line 3, in read\n    return json.loads(text)\n",
        "\njson.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n\nThe above exception was the direct cause",
        "RuntimeError: bad\n",
    ] {
        assert!(first.contains(expected), "{expected}: {first}");
    }
    for (text, cause) in [(first, "direct cause"), (stderr(1), "During handling of the above")] {
        assert!(text.contains(cause) && !text.contains("decoder.py"), "{text}");
        assert_eq!(text.matches(header).count(), 2, "{text}");
    }
    assert!(content(0).contains(" shown)\nTraceback"), "{}", content(0));
    for (at, text) in alike.iter().enumerate() {
        assert_eq!(stderr(2 + at), text);
    }
    run(&test_with_skill(), &json!({"script": chained})).has("stderr", "decoder.py");
}

/// The model gets the same results through an endpoint, the user sees a line for each, and the run
/// continues.
#[test]
fn model_gets_the_same_results_as_the_user() {
    // A call, the line that shows its result to the user, and a part of the result that the model
    // gets.
    #[rustfmt::skip]
    let table = [
        (source("print('x' * 70000)"), "← exit 0, 70001 bytes", "--- stdout (70001 bytes, 65536 shown)\nxxx"),
        (source("print('begun'); time.sleep(30)"), "← stopped at the time limit of 4 s, 6 bytes", "--- stdout (6 bytes)\nbegun\n--- stderr (0 bytes)\n"),
        (source("if os.fork() == 0: time.sleep(60)\nsys.exit(4)"), "← exit 4, 0 bytes", "hint: 1 process that the script left behind was ended"),
        (source("print('\\0\\x1b[2J' + open(os.environ['USER_CWD'] + '/.env').read())"), "← exit 0", "KEY=[secret]\n\n"),
        (source("os.kill(os.getppid(), signal.SIGKILL); time.sleep(30)"), "← the script killed its guardian", "the script killed its guardian process; "),
        (json!({"script": "print(input())", "stdin": "given"}), "← exit 0, 6 bytes", "\ngiven\n"),
    ];
    let calls = table.clone().map(|(mut call, ..)| {
        call["skill_name"] = "s".into();
        call.to_string()
    });
    let calls = calls.iter().map(|call| ("run_python_script", call.as_str()));
    let server = Server::start([Reply::calls(calls), Reply::text("done")]);
    let test = test_with_skill().endpoint(&server).dotenv(&format!("KEY={CANARY}\n"));
    let run = test.next_run().args(["--script-timeout", "4", "go"]).run();
    let run = run.success().stdout("done\n");
    let raw = run.stderr.contains(['\x1b', '\0']);
    run.check(!raw, "control characters are shown raw");
    run.check(is_clean(&test), "a process or file is left");
    let shown: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with('←')).collect();
    assert_eq!(shown.len(), table.len(), "not a line for each result");
    let last = server.finish().pop().expect("two requests");
    for (number, (_, line, expected)) in table.iter().enumerate() {
        assert!(shown[number].starts_with(line), "{} is not {line}", shown[number]);
        let result = last.tool_result(&format!("call_{}", number + 1));
        assert!(result.contains(expected), "{expected:?} is not in {result:?}");
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
        let hint = result["hint"].as_str().unwrap_or_default();
        run.check(
            hint.starts_with("1 process that the script left behind was ended"),
            "each ends its own",
        );
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
