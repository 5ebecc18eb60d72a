//! The conversation: on a terminal and from a pipe.

use crate::harness::{Reply, Server, Test, seconds};

const SKILL: &str = "---\nname: s\ndescription: d\n---\n";

#[test]
fn each_line_of_a_pipe_is_a_turn() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let run = Test::new().endpoint(&server).args(["chat"]).stdin("first\n\nsecond\n").run();
    run.success().stdout("one\ntwo\n");
    let requests = server.finish();
    let roles: Vec<&str> =
        requests[1].messages().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}

#[test]
fn a_prompt_on_the_command_line_is_the_first_turn() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let run = Test::new().endpoint(&server).args(["chat", "first", "words"]).stdin("second").run();
    run.success().stdout("one\ntwo\n");
    assert_eq!(server.finish()[0].last_message()["content"], "first words");
}

#[test]
fn without_arguments_on_a_terminal_a_conversation_begins() {
    let server = Server::start([Reply::text("Hello."), Reply::text("Bye.")]);
    let mut terminal = Test::new().endpoint(&server).terminal();
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

/// R-LIFE-3.
#[test]
fn control_d_leaves_and_so_do_two_control_c() {
    let server = Server::start([]);
    let mut terminal = Test::new().endpoint(&server).terminal();
    terminal.expect("> ").ctrl('d');
    terminal.wait_exit().success();
    let mut terminal = Test::new().endpoint(&server).terminal();
    terminal
        .expect("> ")
        .type_text("half a line")
        .ctrl('c')
        .expect("what was begun is forgotten")
        .expect("> ")
        .ctrl('c')
        .expect("press Ctrl+C again")
        .expect("> ")
        .ctrl('c');
    terminal.wait_exit().success();
    server.finish();
}

/// Ctrl+C during a request cancels it; the conversation goes on whole.
#[test]
fn control_c_cancels_a_request_and_the_conversation_goes_on() {
    let server = Server::start([Reply::text("one"), Reply::nothing().hang(), Reply::text("three")]);
    let mut terminal = Test::new().endpoint(&server).terminal();
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

/// Ctrl+C during a script kills it; its call is answered, the turn closed.
#[test]
fn control_c_kills_a_script_and_the_conversation_goes_on() {
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
    let mut terminal = test.terminal();
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

/// A failed request is told, and `/retry` sends it again.
#[test]
fn a_failed_request_can_be_sent_again() {
    let server = Server::start([
        Reply::error(400, "no"),
        Reply::text("yes"),
        Reply::error(400, "no"),
        Reply::text("new"),
    ]);
    let mut terminal = Test::new().endpoint(&server).terminal();
    terminal.expect("> ").type_line("first").expect("no").expect("/retry").expect("> ");
    terminal.type_line("/retry").expect("yes").expect("> ");
    terminal.type_line("/retry").expect("nothing to send again").expect("> ");
    // A new prompt replaces the one that failed.
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
fn clear_forgets() {
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

#[test]
fn unknown_commands_are_told_and_paths_are_questions() {
    let server = Server::start([Reply::text("a file")]);
    let run =
        Test::new().endpoint(&server).args(["chat"]).stdin("/hlep\n/etc/hosts is what?\n").run();
    run.status(1).stderr_has("there is no command /hlep").stdout("a file\n");
    server.finish();
}

/// A piped conversation whose last turn failed does not end with 0; SIGTERM
/// ends it by the signal.
#[test]
fn the_exit_status_of_a_piped_conversation() {
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
