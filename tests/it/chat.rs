//! Conversations on a terminal and from a pipe.

use crate::harness::{Reply, Server, Test, seconds};

const SKILL: &str = "---\nname: s\ndescription: d\n---\n";

#[test]
fn each_line_from_a_pipe_is_a_turn() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let run = Test::new().endpoint(&server).args(["chat"]).stdin("first\n\nsecond\n").run();
    run.success().stdout("one\ntwo\n");
    let requests = server.finish();
    let roles: Vec<&str> =
        requests[1].messages().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}

#[test]
fn prompt_argument_is_the_first_turn() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let run = Test::new().endpoint(&server).args(["chat", "first", "words"]).stdin("second").run();
    run.success().stdout("one\ntwo\n");
    assert_eq!(server.finish()[0].last_message()["content"], "first words");
}

#[test]
fn terminal_without_arguments_starts_a_conversation() {
    let server = Server::start([Reply::text("Hello."), Reply::text("Bye.")]);
    let mut terminal = Test::new().endpoint(&server).spawn_on_terminal();
    terminal.expect("test-model").expect("> ").type_line("hi").expect("Hello.").expect("> ");
    terminal
        .type_line("/help")
        .expect("/retry")
        .expect("> ")
        .type_line("bye")
        .expect("Bye.")
        .expect("> ");
    terminal.type_line("/exit");
    terminal.wait_exit().success();
    server.finish();
}

#[test]
fn control_d_or_two_control_c_end_the_conversation() {
    let server = Server::start([]);
    let mut terminal = Test::new().endpoint(&server).spawn_on_terminal();
    terminal.expect("> ").ctrl('d');
    terminal.wait_exit().success();
    let mut terminal = Test::new().endpoint(&server).spawn_on_terminal();
    terminal
        .expect("> ")
        .type_text("half a line")
        .ctrl('c')
        .expect("the incomplete message is discarded")
        .expect("> ")
        .ctrl('c')
        .expect("press Ctrl+C again")
        .expect("> ")
        .ctrl('c');
    terminal.wait_exit().success();
    server.finish();
}

/// Ctrl+C cancels a request, and the conversation continues.
#[test]
fn control_c_cancels_a_request_and_the_conversation_continues() {
    let server = Server::start([Reply::text("one"), Reply::empty().hang(), Reply::text("three")]);
    let mut terminal = Test::new().endpoint(&server).spawn_on_terminal();
    terminal.expect("> ").type_line("first").expect("one").expect("> ").type_line("second");
    server.wait_for_requests(2);
    terminal
        .ctrl('c')
        .expect("interrupted")
        .expect("> ")
        .type_line("third")
        .expect("three")
        .expect("> ")
        .ctrl('d');
    terminal.wait_exit().success();
    server.finish();
}

/// Ctrl+C kills a script. Its call gets a result and the turn ends.
#[test]
fn control_c_kills_a_script_and_the_conversation_continues() {
    let server = Server::start([
        Reply::calls([
            (
                "run_python_script",
                r#"{"skill_name":"s","script":"import time\nprint('begun', flush=True)\ntime.sleep(60)"}"#,
            ),
            ("list_skills", "{}"),
        ]),
        Reply::text("fine"),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.spawn_on_terminal();
    terminal.expect("> ").type_line("run it").expect("→ run_python_script");
    std::thread::sleep(seconds(0.7));
    terminal
        .ctrl('c')
        .expect("interrupted")
        .expect("> ")
        .type_line("and now?")
        .expect("fine")
        .expect("> ")
        .ctrl('d');
    terminal.wait_exit().success().took_at_most(seconds(10.0));
    let requests = server.finish();
    let roles: Vec<&str> =
        requests[1].messages().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "assistant", "user"]);
    assert!(requests[1].tool_result("call_1").contains("interrupted by the user"));
    assert!(requests[1].tool_result("call_2").contains("interrupted by the user"));
    assert!(test.processes().is_empty());
}

/// A failed request is reported, and `/retry` sends it again.
#[test]
fn retry_sends_a_failed_request_again() {
    let server = Server::start([
        Reply::error(400, "no"),
        Reply::text("yes"),
        Reply::error(400, "no"),
        Reply::text("new"),
    ]);
    let mut terminal = Test::new().endpoint(&server).spawn_on_terminal();
    terminal.expect("> ").type_line("first").expect("no").expect("/retry").expect("> ");
    terminal.type_line("/retry").expect("yes").expect("> ");
    terminal.type_line("/retry").expect("nothing to repeat").expect("> ");
    // A new prompt replaces the failed one.
    terminal
        .type_line("second")
        .expect("no")
        .expect("> ")
        .type_line("third")
        .expect("new")
        .expect("> ")
        .ctrl('d');
    terminal.wait_exit().success();
    let requests = server.finish();
    assert_eq!(requests[0].messages(), requests[1].messages());
    let users: Vec<_> = requests[3]
        .messages()
        .iter()
        .filter(|m| m["role"] == "user")
        .map(|m| m["content"].as_str().unwrap())
        .collect();
    assert_eq!(users, ["first", "third"]);
}

#[test]
fn clear_empties_the_conversation() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    Test::new()
        .endpoint(&server)
        .args(["chat"])
        .stdin("first\n/clear\nsecond\n/exit\nnever\n")
        .run()
        .success();
    let requests = server.finish();
    assert_eq!(requests[1].messages().len(), 2);
}

/// What changes during a conversation is not in its system prompt before `/clear` or `/model`.
#[test]
fn clear_and_model_renew_the_system_prompt() {
    let server = Server::always(|_| Reply::text("ok"));
    let test = Test::new().env("MEMORY_PATH", "facts.md").endpoint(&server).args(["chat"]);
    let lines = "one\n/facts add alpha\ntwo\n/clear\nthree\n/facts add beta\n/model m\nfour\n";
    test.stdin(lines).run().success();
    let requests = server.finish();
    let facts = requests.iter().map(|it| ["alpha", "beta"].map(|fact| it.system().contains(fact)));
    let facts: Vec<_> = facts.collect();
    assert_eq!(facts, [[false, false], [false, false], [true, false], [true, true]]);
    assert_eq!(requests[3].messages().len(), 4, "/model keeps the messages");
}

#[test]
fn unknown_commands_are_reported_and_paths_are_questions() {
    let server = Server::start([Reply::text("a file")]);
    let run =
        Test::new().endpoint(&server).args(["chat"]).stdin("/hlep\n/etc/hosts is what?\n").run();
    run.status(1).stderr_has("there is no command or skill /hlep").stdout("a file\n");
    server.finish();
}

/// A piped conversation with a failed last turn does not exit with 0. SIGTERM ends it by the
/// signal.
#[test]
fn piped_conversation_exits_with_the_status_of_its_last_turn() {
    let server = Server::start([Reply::error(401, "no")]);
    Test::new().endpoint(&server).args(["chat"]).stdin("hi\n").run().status(77);
    server.finish();
    let server = Server::start([Reply::error(401, "no"), Reply::text("yes")]);
    let run = Test::new().endpoint(&server).args(["chat"]).stdin("hi\nho\n").run();
    run.status(77).stdout("yes\n");
    server.finish();
    let server = Server::start([]);
    let running = Test::new().endpoint(&server).args(["chat"]).stdin_open().spawn();
    std::thread::sleep(seconds(0.3));
    running.signal(libc::SIGTERM);
    running.wait().status(-libc::SIGTERM);
    server.finish();
}
