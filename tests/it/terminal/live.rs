//! The line that shows what is waited for.

use crate::harness::{Reply, Server, Test, seconds};

const SLEEPER: &str =
    r#"{"script":"import time\nprint('first', flush=True)\ntime.sleep(1.8)\nprint('last')"}"#;

fn test(server: &Server) -> Test {
    Test::new()
        .skill("s", "---\nname: s\ndescription: d\n---\nText.\n")
        .env("TERM", "xterm")
        .endpoint(server)
}

fn slow_server() -> Server {
    Server::start([
        Reply::calls([("run_python_script", SLEEPER)]).delay(seconds(1.6)),
        Reply::text("The answer."),
    ])
}

#[test]
fn live_line_shows_what_is_waited_for() {
    let server = slow_server();
    let mut terminal = test(&server).args(["question"]).spawn_on_terminal();
    terminal
        .expect("\r\u{1b}[K\u{1b}[2m… waiting for the model, step 1, 1 s\u{1b}[0m")
        .expect("\r\u{1b}[K\u{1b}[2m→ run_python_script")
        .expect("\r\u{1b}[K\u{1b}[2m… running run_python_script, 1 s: first\u{1b}[0m")
        .expect("\r\u{1b}[K\u{1b}[2m← exit 0")
        .expect("The answer.\n");
    let run = terminal.wait_exit().success();
    assert!(run.terminal.ends_with("The answer.\n"), "{:?}", run.terminal);
    server.finish();
}

/// A colour and a live line are different things; without a terminal, with `-q`, `-v` or on a dumb
/// one there is no live line.
#[test]
fn live_line_is_only_for_terminals() {
    let server = slow_server();
    let mut terminal = test(&server).env("NO_COLOR", "1").args(["question"]).spawn_on_terminal();
    terminal.expect("\r\u{1b}[K… waiting for the model, step 1, 1 s").expect("The answer.");
    terminal.wait_exit().success();
    server.finish();
    for (options, term) in [(["-q"].as_slice(), "xterm"), (&["-v"], "xterm"), (&[], "dumb")] {
        let server = slow_server();
        let run = test(&server).env("TERM", term).args(options).args(["question"]);
        let run = run.spawn_on_terminal().wait_exit().success();
        assert!(!run.terminal.contains("waiting for the model"), "{options:?}: {}", run.terminal);
        server.finish();
    }
    let server = slow_server();
    test(&server).args(["question"]).run().success().stderr_lacks("waiting").stderr_lacks("\u{1b}");
    server.finish();
}

/// A wait before the next try is said, also where there is no terminal.
#[test]
fn retries_are_shown() {
    let server = Server::start([Reply::status(503), Reply::text("fine.")]);
    let run = test(&server).args(["question"]).run().success();
    run.stderr_has("· try 2 of 3 in ");
    server.finish();
    let server = Server::start([Reply::status(503), Reply::text("fine.")]);
    test(&server).args(["-q", "question"]).run().success().stderr_is_empty();
    server.finish();
}

/// Headings, bold text and code of an answer have colours; `--plain` and `NO_COLOR` leave them out.
#[test]
fn answer_has_colours_around_its_text() {
    let answer = "# Head\n\nSome **bold** and `code`.\n\n```sh\nls # all\n```\nEnd.";
    let colored = "\u{1b}[1m# Head\u{1b}[0m\n\nSome \u{1b}[1m**bold**\u{1b}[0m and \u{1b}[36m`code`\u{1b}[0m.\n\n\u{1b}[36m```sh\nls # all\n```\u{1b}[0m\nEnd.\n";
    let plain = format!("{answer}\n");
    for (options, variable, expected) in
        [([].as_slice(), "X", colored), (&["--plain"], "X", &plain), (&[], "NO_COLOR", &plain)]
    {
        let server = Server::start([Reply::text(answer)]);
        let run = test(&server).env(variable, "1").args(options).args(["which command?"]);
        let run = run.spawn_on_terminal().wait_exit().success();
        assert!(run.terminal.ends_with(expected), "{options:?}: {:?}", run.terminal);
        server.finish();
    }
}

/// No live line is written over a question to the user.
#[test]
fn live_line_waits_for_answers_of_the_user() {
    let server = slow_server();
    let mut terminal = test(&server).args(["--confirm", "question"]).spawn_on_terminal();
    terminal.expect("yes to all of this run > ");
    let before = terminal.output();
    std::thread::sleep(seconds(2.2));
    assert_eq!(terminal.output(), before);
    terminal.type_line("y").expect("running run_python_script").expect("The answer.\n");
    terminal.wait_exit().success();
    server.finish();
}
