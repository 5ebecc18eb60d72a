//! `--confirm`: no script runs that a person has not allowed on the terminal.

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

/// The tool by hand: its call comes through a pipe, its result goes into one.
fn by_hand(test: &Test) -> Terminal {
    test.again().args(["--confirm", "tool", RUN, "-"]).stdin_open().stderr_to_pty_only().terminal()
}

fn give(terminal: &mut Terminal, call: &Value) {
    terminal.running().write_stdin(call.to_string());
    terminal.running().close_stdin();
}

/// The terminal is asked although standard input is a pipe and the output a
/// file; the time a person takes is not the script's.
#[test]
fn a_script_runs_once_it_was_allowed() {
    let server = Server::start([
        Reply::call(
            RUN,
            &json!({"skill_name": "sums", "script": "import sys\nprint(sys.stdin.read(), sys.argv[1:])",
                    "args": ["a b", "c"], "stdin": "12", "timeout_seconds": 1}),
        ),
        Reply::text("done"),
    ]);
    let test = sums().endpoint(&server);
    let mut terminal = test
        .again()
        .args(["--confirm", "-q", "add"])
        .stdin("some text")
        .stderr_to_pty_only()
        .terminal();
    terminal.expect(QUESTION);
    let python = test.path("skills/sums/venv/bin/python");
    assert_eq!(
        terminal.output(),
        format!(
            "skills-runner: a script wants to run in the skill `sums`, by {}\n\
             arguments\n  | 'a b' c\ninput: 2 bytes\nscript\n  | import sys\n  | print(sys.stdin.read(), sys.argv[1:])\n{QUESTION}",
            python.display()
        )
    );
    sleep(seconds(1.5));
    terminal.type_line("y");
    terminal.wait_exit().success().stdout("done\n");
    let result = server.finish()[1].last_message()["content"].clone();
    let result: Value = serde_json::from_str(result.as_str().unwrap()).unwrap();
    assert_eq!(
        (&result["stdout"], &result["timed_out"]),
        (&json!("12 ['a b', 'c']\n"), &json!(false))
    );
    assert!(result["duration_ms"].as_u64().unwrap() < 1400, "{result}");
}

/// The model is told, and the run goes on.
#[test]
fn a_refusal_is_the_models_to_know() {
    let server = Server::start([Reply::call(RUN, &leaving("ran")), Reply::text("then not")]);
    let test = sums().endpoint(&server);
    let mut terminal = test.again().args(["--confirm", "go"]).terminal();
    terminal.expect(QUESTION).type_line("n");
    terminal.expect("← error: the user refused to run this script").expect("then not");
    terminal.wait_exit().success();
    let requests = server.finish();
    let told = requests[1].last_message()["content"].as_str().unwrap();
    assert!(told.starts_with("{\"error\":\"the user refused to run this script: do not try"));
    assert_eq!(requests[0].tools(), requests[1].tools());
    assert!(!test.exists("skills/sums/ran"));
}

/// Only a clear yes is one.
#[test]
fn anything_but_a_clear_yes_is_a_no() {
    let test = sums();
    for (typed, runs) in [
        ("y\n", true),
        (" YES \n", true),
        ("a\n", true),
        ("s\ny\n", true),
        ("n\n", false),
        ("NO\n", false),
        ("\x04", false),
        // What is none of the words is asked again, and never a yes.
        ("\nn\n", false),
        ("yn\nyes please\n\x1b[Ay\n\x04", false),
        ("ja\ny\n", true),
        ("1\n2\ns\n3\n4\n5\n", false),
    ] {
        let mut terminal = by_hand(&test);
        give(&mut terminal, &leaving("ran"));
        for line in typed.split_inclusive('\n') {
            terminal.expect(QUESTION).type_text(line);
        }
        let outcome = terminal.wait_exit().status(i32::from(!runs));
        assert_eq!(outcome.stdout_json().get("error").is_none(), runs);
        assert_eq!(test.exists("skills/sums/ran"), runs, "{typed:?}");
        let _ = std::fs::remove_file(test.path("skills/sums/ran"));
    }
}

/// What was typed before the question is no answer to it.
#[test]
fn what_was_typed_before_the_question_allows_nothing() {
    let test = sums();
    let mut terminal = by_hand(&test);
    terminal.type_text("y\ny\ny\ny").expect("y\ny\ny\ny");
    give(&mut terminal, &leaving("ran"));
    terminal.expect(QUESTION);
    sleep(seconds(0.5));
    assert!(terminal.running().is_running(), "it was taken for an answer");
    terminal.type_line("n");
    terminal.wait_exit().status(1).stdout_has("refused");
    assert!(!test.exists("skills/sums/ran"));
}

/// `a` holds for the run; `y` for one script.
#[test]
fn a_yes_to_all_is_asked_for_once() {
    for (answers, questions) in [(["a", ""], 1), (["y", "y"], 2)] {
        let server = Server::start([
            Reply::call(RUN, &leaving("one")),
            Reply::call(RUN, &leaving("two")),
            Reply::text("done"),
        ]);
        let test = sums().endpoint(&server);
        let mut terminal = test.again().args(["--confirm", "go"]).terminal();
        for answer in answers.iter().filter(|answer| !answer.is_empty()) {
            terminal.expect(QUESTION).type_line(answer);
        }
        let outcome = terminal.wait_exit().success();
        let shown = outcome.terminal.clone();
        assert_eq!(shown.matches(QUESTION).count(), questions);
        assert!(test.exists("skills/sums/one") && test.exists("skills/sums/two"));
        server.finish();
    }
}

/// A screenful first, all of it when asked: a file's text, and the input.
#[test]
fn all_of_it_is_shown_when_asked() {
    let numbered =
        |what: &str| (1..=60).map(|n| what.replace('N', &n.to_string())).collect::<String>();
    let long = numbered("print(N)\n");
    let test = sums().file("skills/sums/scripts/long.py", long);
    let mut terminal = by_hand(&test);
    let call = json!({"skill_name": "sums", "file_path": "scripts/long.py", "args": ["-x"], "stdin": "one\ntwo"});
    give(&mut terminal, &call);
    terminal.expect("command\n  | scripts/long.py -x\ninput: 7 bytes\n");
    terminal.expect(QUESTION).type_line("s");
    terminal.expect("s\ncommand\n  | scripts/long.py -x\ninput\n  | one\n  | two\nscript scripts/long.py\n  | print(1)\n");
    terminal.expect("  | print(60)\n").expect(QUESTION);
    terminal.type_line("y");
    terminal.wait_exit().success();

    let mut terminal = by_hand(&test);
    let lines = numbered("x = N\n");
    give(&mut terminal, &json!({"skill_name": "sums", "script": lines}));
    terminal.expect("  | x = 1\n").expect("  | x = 17\n… 43 more lines\n");
    terminal.expect(QUESTION).type_line("s");
    terminal.expect("  | x = 60\n").expect(QUESTION).type_line("n");
    terminal.wait_exit().status(1);
}

/// Nothing in a script commands the terminal, passes for a question, or hides.
#[test]
fn a_script_cannot_dress_up() {
    let test = sums();
    let blanks = " ".repeat(200);
    let script = format!(
        "# \x1b[2J\x1b]0;t\x07 \u{9b}1m \u{202e}a\u{200b}b\u{e0041}c\rover\n{QUESTION}\nx = 1{blanks}; y = 2\n"
    );
    let mut terminal = by_hand(&test);
    let call = json!({"skill_name": "sums", "script": script, "args": ["\x1b[1m"]});
    give(&mut terminal, &call);
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

/// Signals and the end of the run are obeyed while nobody answers.
#[test]
fn a_question_is_no_place_to_hang() {
    let test = sums();
    for (signal, status) in [(libc::SIGINT, -2), (libc::SIGTERM, -15)] {
        let mut terminal = by_hand(&test);
        give(&mut terminal, &leaving("ran"));
        terminal.expect(QUESTION);
        match signal {
            libc::SIGINT => drop(terminal.ctrl('c')),
            signal => terminal.running().signal(signal),
        }
        terminal.wait_exit().status(status).took_at_most(seconds(5.0));
    }
    let server = Server::start([Reply::call(RUN, &leaving("ran"))]);
    let mut terminal =
        test.again().endpoint(&server).args(["--confirm", "--timeout", "1.5", "go"]).terminal();
    terminal.expect(QUESTION);
    terminal.wait_exit().status(3).took_at_most(seconds(5.0));
    server.finish();
    let mut terminal = by_hand(&test);
    give(&mut terminal, &leaving("ran"));
    terminal.expect(QUESTION).hang_up();
    assert!(!terminal.wait_exit().status_is(0));
    assert!(!test.exists("skills/sums/ran"));
}

/// In a conversation the line reader owns the same terminal.
#[test]
fn a_conversation_goes_on_after_a_question() {
    let server = Server::start([
        Reply::call(RUN, &leaving("one")),
        Reply::call(RUN, &leaving("two")),
        Reply::text("second"),
        Reply::text("third"),
    ]);
    let test = sums().endpoint(&server);
    let mut terminal = test.again().args(["--confirm"]).terminal();
    terminal.expect("> ").type_line("go");
    terminal.expect(QUESTION).ctrl('c');
    terminal.expect("interrupted; the conversation goes on").expect("> ");
    terminal.type_line("again");
    terminal.expect(QUESTION).type_line("y");
    terminal.expect("second").expect("> ").type_line("more");
    terminal.expect("third").expect("> ").type_line("/exit");
    terminal.wait_exit().success();
    assert!(!test.exists("skills/sums/one") && test.exists("skills/sums/two"));
    server.finish();
}

/// Without a terminal nothing runs and nothing waits; all else works.
#[test]
fn without_a_terminal_scripts_are_refused() {
    let server = Server::start([Reply::call(RUN, &leaving("ran")), Reply::text("so be it")]);
    let test = sums().endpoint(&server);
    let alone = "exec setsid -w skills-runner --confirm \"$@\"";
    test.again()
        .shell(alone)
        .args(["go"])
        .run()
        .success()
        .stdout("so be it\n")
        .stderr_has("← error: scripts run only when the user allows it on a terminal (--confirm), and there is none")
        .took_at_most(seconds(5.0));
    let requests = server.finish();
    assert!(requests[0].tool_names().contains(&RUN), "it is offered all the same");
    test.again()
        .shell(alone)
        .args(["tool", RUN, &leaving("ran").to_string()])
        .run()
        .status(1)
        .stdout_has("there is none: the script was not run");
    test.again().shell(alone).args(["tool", "list_skills"]).run().success();
    assert!(!test.exists("skills/sums/ran"));
}

/// The demo's three scripts, one of its own and two of files.
#[test]
fn the_demo_asks_too() {
    let skills = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");
    let mut terminal = Test::new()
        .args(["--skills", skills, "--confirm", "--log", "audit.jsonl", "demo"])
        .terminal();
    terminal.expect("  | print((Fraction").expect(QUESTION).type_line("y");
    terminal
        .expect("command\n  | scripts/explore.py group assets/orders.csv --by region")
        .expect(QUESTION)
        .type_line("a");
    terminal.wait_exit().success();
}

/// A job in the background is stopped, as whatever reads the terminal there,
/// and asks once it is in the foreground.
#[test]
fn a_job_in_the_background_asks_when_it_is_fetched() {
    let test = sums();
    let line = "set -m; skills-runner --confirm tool \"$@\" & sleep 1; echo waited; fg";
    let mut terminal = test.again().shell(line).args([RUN, &leaving("ran").to_string()]).terminal();
    terminal.expect("waited").expect("a script wants to run");
    terminal.expect(QUESTION).type_line("y");
    terminal.expect("\"ok\\n\"");
    let outcome = terminal.wait_exit().success();
    let questions = outcome.terminal.matches("a script wants to run").count();
    assert_eq!(questions, 1, "not before it could be answered");
    assert!(test.exists("skills/sums/ran"));
}

#[test]
fn a_sandbox_is_told() {
    let test = sums().env("SCRIPT_SANDBOX", "on");
    let mut terminal = by_hand(&test);
    give(&mut terminal, &leaving("ran"));
    terminal.expect("python, in a sandbox\nscript\n").expect(QUESTION);
    terminal.type_line("n");
    terminal.wait_exit().status(1);
}
