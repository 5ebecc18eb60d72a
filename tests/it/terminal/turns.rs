//! Turns and their commands.

use super::{SKILL, SLEEPER, chat, last_prompt, leave, roles, wait_until_read};
use crate::harness::{MODEL, Reply, Server, Test, seconds};

/// Ctrl+C while waiting for the reply, while it streams, and while a script runs; each turn can be
/// sent again with the tool results it had.
#[test]
fn turn_interrupted_by_control_c_can_be_resent() {
    let server = Server::start([
        Reply::empty().hang(),
        Reply::text("The beginning").hang(),
        Reply::text("one."),
        Reply::calls([("run_python_script", SLEEPER)]),
        Reply::text("two."),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.spawn_on_terminal();
    terminal.expect("> ").type_line("first");
    server.wait_for_requests(1);
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("/retry").expect("The beginning");
    terminal.ctrl('c').expect("\n").expect("interrupted").expect("> ");
    terminal.type_line("/retry").expect("one.").expect("> ");
    terminal.type_line("second").expect("→ run_python_script");
    wait_until_read();
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("/retry").expect("two.").expect("> ");
    terminal.type_line("/retry").expect("was answered").expect("> ");
    leave(terminal);
    let requests = server.finish();
    let shapes: Vec<String> = requests.iter().map(roles).collect();
    assert_eq!(shapes, ["su", "su", "su", "suau", "suauat"]);
    assert!(requests[4].tool_result("call_1").contains("interrupted by the user"));
    assert!(test.processes().is_empty());
}

/// Ctrl+C in the pause before a retry, and at the confirmation of a script.
#[test]
fn control_c_ends_a_retry_pause_and_a_confirmation() {
    let server = Server::start([
        Reply::error(503, "busy").header("Retry-After", "30"),
        Reply::calls([("run_python_script", SLEEPER)]),
        Reply::text("fine."),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.args(["chat", "-v", "--confirm"]).spawn_on_terminal();
    terminal.expect("> ").type_line("first").expect("try 2 of 3");
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("second").expect("run it?");
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("third").expect("fine.").expect("> ");
    leave(terminal);
    assert_eq!(roles(&server.finish()[2]), "suauatau");
}

#[test]
fn undo_removes_turns() {
    let server = Server::start([
        Reply::text("one."),
        Reply::calls([("get_skill", r#"{"skill_name":"s"}"#)]),
        Reply::text("two."),
        Reply::calls([("get_skill", r#"{"skill_name":"s"}"#)]),
        Reply::text("three."),
        Reply::text("four."),
    ]);
    let skill = format!("{SKILL}The document.\n");
    let mut terminal = Test::new().skill("s", &skill).endpoint(&server).spawn_on_terminal();
    terminal.expect("> ").type_line("/undo").expect("nothing to remove");
    terminal.expect("> ").type_line("first").expect("one.").expect("> ");
    terminal.type_line("second").expect("two.").expect("> ");
    terminal.type_line("/undo").expect("removed question and answer: second");
    terminal.expect("> ").type_line("third").expect("three.").expect("> ");
    terminal.type_line("/undo").expect("third").expect("> ");
    terminal.type_line("/undo").expect("first").expect("> ");
    terminal.type_line("/retry").expect("nothing to repeat").expect("> ");
    terminal.type_line("fourth").expect("four.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(roles(&requests[3]), "suau");
    // The notice was in the removed turn, so it is sent again.
    let reported = requests[4].messages().last().unwrap()["content"].as_str().unwrap();
    assert!(reported.contains("The document."), "{reported}");
    assert_eq!(roles(&requests[5]), "su");
}

/// A summary of earlier turns stays.
#[test]
fn undo_keeps_a_summary() {
    let server = Server::start(["one.", "two.", "A summary.", "three."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_line(&"first and more ".repeat(200)).expect("one.").expect("> ");
    terminal.type_line("second").expect("two.").expect("> ");
    terminal.type_line("/compact").expect("was summarized").expect("> ");
    terminal.type_line("/undo").expect("answer: second").expect("> ");
    terminal.type_line("/undo").expect("the earlier turns are summarized").expect("> ");
    terminal.type_line("third").expect("three.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    let sent = requests[3].json["messages"].to_string();
    assert!(sent.contains("A summary.") && !sent.contains("second"), "{sent}");
}

#[test]
fn model_and_tools_are_listed_and_changed() {
    let server = Server::of_all_requests(|request| match request.path.as_str() {
        "/v1/models" => Reply::models([MODEL, "other-model"]),
        "/api/version" => Reply::status(404),
        _ => Reply::text("Done."),
    });
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.spawn_on_terminal();
    terminal
        .expect("> ")
        .type_line("/model")
        .expect("the model is test-model")
        .expect("the endpoint lists test-model, other-model\n");
    terminal.expect("> ").type_line("/model other-model");
    terminal.expect("the model is now other-model").expect("> ");
    terminal.type_line("hi").expect("Done.").expect("> ");
    terminal.type_line("/model othr-model").expect("now othr-model");
    terminal.expect("`othr-model` is not among the 2 models listed; similar names: `other-model`");
    terminal.expect("> ").type_line("/model a b").expect("contains no spaces");
    terminal.expect("> ").type_line("/tools").expect("get_skill: ").expect("> ");
    leave(terminal);
    let requests = server.finish();
    let request = requests.iter().find(|request| request.method == "POST").unwrap();
    assert_eq!(request.json["model"], "other-model");
    // From a pipe no request is sent for it; the record names the new model.
    let server = Server::start([Reply::text("Done.")]);
    let test = Test::new().endpoint(&server).args(["chat", "-o", "jsonl"]);
    let run = test.stdin("/model x\nhi\n").run().success();
    assert_eq!(run.stdout_json_lines().last().unwrap()["model"], "x");
    server.finish();
}

/// Resizing the window disturbs neither a turn nor the typed text, and neither does Ctrl+Z with
/// `fg` after it.
#[test]
fn resize_and_suspend_do_not_disturb_a_turn() {
    let server =
        Server::start([Reply::text("one and more.").pace(seconds(0.2)), Reply::text("two.")]);
    let mut terminal = chat(&server);
    terminal.type_line("first").expect("one");
    terminal.resize(50, 132).expect("more.").expect("> ");
    terminal.resize(10, 20).type_text("sec");
    terminal.resize(24, 80);
    wait_until_read();
    terminal.running().signal(libc::SIGSTOP);
    wait_until_read();
    terminal.running().signal(libc::SIGCONT);
    wait_until_read();
    terminal.type_line("ond").expect("two.").expect("> ");
    leave(terminal);
    assert_eq!(last_prompt(&server.finish()[1]), "second");
}
