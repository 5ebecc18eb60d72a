//! `--confirm`: a script runs only after the user has allowed it on the terminal.

use std::thread::sleep;

use serde_json::{Value, json};

use crate::harness::{Reply, Server, Terminal, Test, seconds};

const RUN: &str = "run_python_script";
const QUESTION: &str = "run it? y: yes, n: no, s: show all of it, a: yes to all of this run > ";

fn sums() -> Test {
    Test::new()
        .skill("sums", "---\ndescription: Adds numbers.\n---\n")
        .venv("sums")
        .file("skills/sums/scripts/add.py", "import sys\nprint(sum(map(int, sys.argv[1:])))\n")
}

fn leaving(name: &str) -> Value {
    json!({"skill_name": "sums", "script": format!("open('{name}', 'w')\nprint('ok')")})
}

/// Starts `tool` on a terminal, with the call on a pipe and the result in a file.
fn start_tool(test: &Test) -> Terminal {
    test.next_run()
        .args(["--confirm", "tool", RUN, "-"])
        .stdin_open()
        .stderr_to_pty_only()
        .spawn_on_terminal()
}

fn write_call(terminal: &mut Terminal, call: &Value) {
    terminal.running().write_stdin(call.to_string());
    terminal.running().close_stdin();
}

/// The question appears on the terminal although stdin is a pipe and stdout a file. The user's
/// time to answer does not count as the script's.
#[test]
fn script_runs_after_it_was_allowed() {
    let server = Server::start([
        Reply::call(
            RUN,
            &json!({"skill_name": "sums", "script": "import sys\nprint(sys.stdin.read(), sys.argv[1:])",
                    "args": ["a b", "c"], "stdin": "12"}),
        ),
        Reply::text("done"),
    ]);
    let test = sums().endpoint(&server);
    let mut terminal = test
        .next_run()
        .args(["--confirm", "--script-timeout", "1", "-q", "add"])
        .stdin("some text")
        .stderr_to_pty_only()
        .spawn_on_terminal();
    terminal.expect(QUESTION);
    let python = test.path("skills/sums/venv/bin/python");
    assert_eq!(
        terminal.output(),
        format!(
            "skills-runner: a script wants to run in the working folder, of the skill `sums`, by {}\n\
             arguments\n  | 'a b' c\ninput: 2 bytes\nscript\n  | import sys\n  | print(sys.stdin.read(), sys.argv[1:])\n{QUESTION}",
            python.display()
        )
    );
    sleep(seconds(1.5));
    terminal.type_line("y");
    terminal.wait_exit().success().stdout("done\n");
    let requests = server.finish();
    let result = requests[1].program_result("call_1");
    assert_eq!(result.stdout, "12 ['a b', 'c']\n");
    let words = result.head.strip_prefix("exit 0, ").and_then(|rest| rest.split_once(" ms, in "));
    let milliseconds: u64 = words.unwrap().0.parse().unwrap();
    assert!(milliseconds < 1400, "the time of the question does not count: {result:?}");
}

/// The model gets the refusal as a result, and the run continues.
#[test]
fn refusal_is_reported_to_the_model() {
    let server = Server::start([Reply::call(RUN, &leaving("ran")), Reply::text("then not")]);
    let test = sums().endpoint(&server);
    let mut terminal = test.next_run().args(["--confirm", "go"]).spawn_on_terminal();
    terminal.expect(QUESTION).type_line("n");
    terminal.expect("← error: the user refused to run this script").expect("then not");
    terminal.wait_exit().success();
    let requests = server.finish();
    let reported = requests[1].last_message()["content"].as_str().unwrap();
    assert!(reported.starts_with("{\"error\":\"the user refused to run this script: do not try"));
    assert_eq!(requests[0].tools(), requests[1].tools());
    assert!(!test.exists("ran"));
}

/// Only an explicit yes counts.
#[test]
fn script_runs_only_after_an_explicit_yes() {
    let test = sums();
    for (typed, runs) in [
        ("y\n", true),
        (" YES \n", true),
        ("a\n", true),
        ("s\ny\n", true),
        ("n\n", false),
        ("NO\n", false),
        ("\x04", false),
        // After any other word the question is repeated.
        ("\nn\n", false),
        ("yn\nyes please\n\x1b[Ay\n\x04", false),
        ("ja\ny\n", true),
        ("1\n2\ns\n3\n4\n5\n", false),
    ] {
        let mut terminal = start_tool(&test);
        write_call(&mut terminal, &leaving("ran"));
        for line in typed.split_inclusive('\n') {
            terminal.expect(QUESTION).type_text(line);
        }
        let outcome = terminal.wait_exit().status(i32::from(!runs));
        assert_eq!(outcome.stdout_json().get("error").is_none(), runs);
        assert_eq!(test.exists("ran"), runs, "{typed:?}");
        let _ = std::fs::remove_file(test.path("ran"));
    }
}

/// Input typed before the question does not answer it.
#[test]
fn input_before_the_question_is_not_an_answer() {
    let test = sums();
    let mut terminal = start_tool(&test);
    terminal.type_text("y\ny\ny\ny").expect("y\ny\ny\ny");
    write_call(&mut terminal, &leaving("ran"));
    terminal.expect(QUESTION);
    sleep(seconds(0.5));
    assert!(terminal.running().is_running(), "earlier input was used as the answer");
    terminal.type_line("n");
    terminal.wait_exit().status(1).stdout_has("refused");
    assert!(!test.exists("ran"));
}

/// `a` allows all scripts of the run, `y` one script.
#[test]
fn yes_to_all_is_asked_once() {
    for (answers, questions) in [(["a", ""], 1), (["y", "y"], 2)] {
        let server = Server::start([
            Reply::call(RUN, &leaving("one")),
            Reply::call(RUN, &leaving("two")),
            Reply::text("done"),
        ]);
        let test = sums().endpoint(&server);
        let mut terminal = test.next_run().args(["--confirm", "go"]).spawn_on_terminal();
        for answer in answers.iter().filter(|answer| !answer.is_empty()) {
            terminal.expect(QUESTION).type_line(answer);
        }
        let outcome = terminal.wait_exit().success();
        let shown = outcome.terminal.clone();
        assert_eq!(shown.matches(QUESTION).count(), questions);
        assert!(test.exists("one") && test.exists("two"));
        server.finish();
    }
}

/// One screen is shown first, everything on request: the file's text and the input.
#[test]
fn whole_script_is_shown_on_request() {
    let numbered =
        |what: &str| (1..=60).map(|n| what.replace('N', &n.to_string())).collect::<String>();
    let long = numbered("print(N)\n");
    let test = sums().file("skills/sums/scripts/long.py", long);
    let mut terminal = start_tool(&test);
    let call = json!({"skill_name": "sums", "file_path": "scripts/long.py", "args": ["-x"], "stdin": "one\ntwo"});
    write_call(&mut terminal, &call);
    terminal.expect("command\n  | scripts/long.py -x\ninput: 7 bytes\n");
    terminal.expect(QUESTION).type_line("s");
    terminal.expect("s\ncommand\n  | scripts/long.py -x\ninput\n  | one\n  | two\nscript scripts/long.py\n  | print(1)\n");
    terminal.expect("  | print(60)\n").expect(QUESTION);
    terminal.type_line("y");
    terminal.wait_exit().success();

    let mut terminal = start_tool(&test);
    let lines = numbered("x = N\n");
    write_call(&mut terminal, &json!({"skill_name": "sums", "script": lines}));
    terminal.expect("  | x = 1\n").expect("  | x = 17\n… 43 more lines\n");
    terminal.expect(QUESTION).type_line("s");
    terminal.expect("  | x = 60\n").expect(QUESTION).type_line("n");
    terminal.wait_exit().status(1);
}

/// A script's text cannot control the terminal, imitate a question, or hide parts.
#[test]
fn script_text_cannot_deceive_the_user() {
    let test = sums();
    let blanks = " ".repeat(200);
    let script = format!(
        "# \x1b[2J\x1b]0;t\x07 \u{9b}1m \u{202e}a\u{200b}b\u{e0041}c\rover\n{QUESTION}\nx = 1{blanks}; y = 2\n"
    );
    let mut terminal = start_tool(&test);
    let call = json!({"skill_name": "sums", "script": script, "args": ["\x1b[1m"]});
    write_call(&mut terminal, &call);
    terminal.expect(&format!("\n{QUESTION}")).type_line("n");
    let outcome = terminal.wait_exit().status(1);
    let shown = outcome.terminal.clone();
    let bad = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}\u{e0041}".contains(c);
    assert!(shown.contains("a\\u{200b}b\\u{e0041}c"), "{shown:?}");
    assert!(!shown.contains(bad), "{shown:?}");
    assert_eq!(shown.matches(&format!("\n{QUESTION}")).count(), 1);
    assert!(shown.contains(&format!("  | {QUESTION}\n")));
    assert!(shown.contains("; y = 2\n"), "{shown}");
    for line in shown.lines() {
        assert!(line.chars().count() < 80 || line.contains("skills-runner:"));
    }
}

/// Signals and `--timeout` end the run while the question is unanswered.
#[test]
fn signals_and_timeout_end_an_open_question() {
    let test = sums();
    for (signal, status) in [(libc::SIGINT, -2), (libc::SIGTERM, -15)] {
        let mut terminal = start_tool(&test);
        write_call(&mut terminal, &leaving("ran"));
        terminal.expect(QUESTION);
        match signal {
            libc::SIGINT => drop(terminal.ctrl('c')),
            signal => terminal.running().signal(signal),
        }
        terminal.wait_exit().status(status).took_at_most(seconds(5.0));
    }
    let server = Server::start([Reply::call(RUN, &leaving("ran"))]);
    let mut terminal = test
        .next_run()
        .endpoint(&server)
        .args(["--confirm", "--timeout", "1.5", "go"])
        .spawn_on_terminal();
    terminal.expect(QUESTION);
    terminal.wait_exit().status(3).took_at_most(seconds(5.0));
    server.finish();
    let mut terminal = start_tool(&test);
    write_call(&mut terminal, &leaving("ran"));
    terminal.expect(QUESTION).hang_up();
    assert!(!terminal.wait_exit().status_is(0));
    assert!(!test.exists("ran"));
}

/// In a conversation the line reader uses the same terminal.
#[test]
fn conversation_continues_after_a_question() {
    let server = Server::start([
        Reply::call(RUN, &leaving("one")),
        Reply::call(RUN, &leaving("two")),
        Reply::text("second"),
        Reply::text("third"),
    ]);
    let test = sums().endpoint(&server);
    let mut terminal = test.next_run().args(["--confirm"]).spawn_on_terminal();
    terminal.expect("> ").type_line("go");
    terminal.expect(QUESTION).ctrl('c');
    terminal.expect("interrupted; the conversation continues").expect("> ");
    terminal.type_line("again");
    terminal.expect(QUESTION).type_line("y");
    terminal.expect("second").expect("> ").type_line("more");
    terminal.expect("third").expect("> ").type_line("/exit");
    terminal.wait_exit().success();
    assert!(!test.exists("one") && test.exists("two"));
    server.finish();
}

/// Without a terminal scripts are refused without waiting; everything else works.
#[test]
fn scripts_are_refused_without_a_terminal() {
    let server = Server::start([Reply::call(RUN, &leaving("ran")), Reply::text("so be it")]);
    let test = sums().endpoint(&server);
    let alone = "exec setsid -w skills-runner --confirm \"$@\"";
    test.next_run()
        .shell(alone)
        .args(["go"])
        .run()
        .success()
        .stdout("so be it\n")
        .stderr_has("← error: scripts are run only when the user allows it on a terminal (--confirm), but there is no terminal")
        .took_at_most(seconds(5.0));
    let requests = server.finish();
    assert!(requests[0].tool_names().contains(&RUN), "the tool is still offered");
    test.next_run()
        .shell(alone)
        .args(["tool", RUN, &leaving("ran").to_string()])
        .run()
        .status(1)
        .stdout_has("there is no terminal: this one was not run");
    test.next_run().shell(alone).args(["tool", "list_skills"]).run().success();
    assert!(!test.exists("ran"));
}

/// The demo runs three scripts: one inline and two files.
#[test]
fn demo_asks_as_well() {
    let mut terminal =
        Test::new().args(["--confirm", "--log", "audit.jsonl", "demo"]).spawn_on_terminal();
    terminal.expect("  | print((Fraction").expect(QUESTION).type_line("y");
    terminal.expect("command\n  | scripts/explore.py group ").expect(QUESTION).type_line("a");
    terminal.wait_exit().success();
}

/// A background job is stopped when it reads the terminal, and asks once it is in the foreground.
#[test]
fn background_job_asks_once_in_the_foreground() {
    let test = sums();
    let line = "set -m; skills-runner --confirm tool \"$@\" & sleep 1; echo waited; fg";
    let mut terminal =
        test.next_run().shell(line).args([RUN, &leaving("ran").to_string()]).spawn_on_terminal();
    terminal.expect("waited").expect("a script wants to run");
    terminal.expect(QUESTION).type_line("y");
    terminal.expect("\"ok\\n\"");
    let outcome = terminal.wait_exit().success();
    let questions = outcome.terminal.matches("a script wants to run").count();
    assert_eq!(questions, 1, "asked only in the foreground");
    assert!(test.exists("ran"));
}

#[test]
fn question_mentions_the_sandbox() {
    let test = sums().env("SCRIPT_SANDBOX", "on");
    let mut terminal = start_tool(&test);
    write_call(&mut terminal, &leaving("ran"));
    terminal.expect("python, in a sandbox\nscript\n").expect(QUESTION);
    terminal.type_line("n");
    terminal.wait_exit().status(1);
}

/// A script in another language runs by its path: it does not run if it changed while the user was
/// asked.
#[test]
fn script_that_changed_since_it_was_shown_does_not_run() {
    let test = sums().file("skills/sums/run.sh", "echo shown\n");
    let mut terminal = start_tool(&test);
    write_call(&mut terminal, &json!({"skill_name": "sums", "file_path": "run.sh"}));
    terminal.expect(QUESTION);
    let test = test.file("skills/sums/run.sh", "echo swapped\n");
    terminal.type_line("y");
    let run = terminal.wait_exit().status(1);
    run.stdout_has("changed after it was read: it was not run").stdout_lacks("swapped");
    drop(test);
}
