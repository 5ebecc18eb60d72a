//! Conversations on a real terminal.

use serde_json::Value;

use crate::harness::{MODEL, Reply, Request, Server, Terminal, Test, seconds};

const SKILL: &str = "---\nname: s\ndescription: d\n---\n";
const SLEEPER: &str =
    r#"{"skill_name":"s","script":"import time\nprint('begun', flush=True)\ntime.sleep(60)"}"#;

const LONGER: &str =
    r#"{"skill_name":"s","script":"import time\nprint('begun', flush=True)\ntime.sleep(4)"}"#;

/// A pause as between typed lines.
fn pause_as_typed() {
    std::thread::sleep(seconds(1.5));
}

fn chat(server: &Server) -> Terminal {
    let mut terminal = Test::new().endpoint(server).spawn_on_terminal();
    terminal.expect("Ctrl+D leaves").expect("> ");
    terminal
}

fn leave(mut terminal: Terminal) {
    terminal.ctrl('d');
    terminal.wait_exit().success();
}

/// The last user message of the request.
fn last_prompt(request: &Request) -> String {
    let messages = request.messages().iter();
    let mut users = messages.filter(|message| message["role"] == "user");
    let last = users.next_back().expect("a user message");
    last["content"].as_str().expect("it is text").into()
}

fn roles(request: &Request) -> String {
    let letter = |message: &Value| message["role"].as_str().and_then(|role| role.chars().next());
    request.messages().iter().filter_map(letter).collect()
}

/// Waits until the program has read the typed text: the kernel drops unread text on Ctrl+C, and
/// text that arrives together is one message.
fn wait_until_read() {
    std::thread::sleep(seconds(0.4));
}

#[test]
fn backslash_continues_a_message_and_two_do_not() {
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let mut terminal = chat(&server);
    terminal.type_line("first\\").expect("\n. ");
    terminal.type_line("second\\").expect("\n. ");
    terminal.type_line("third").expect("one.").expect("> ");
    terminal.type_line("C:\\\\").expect("two.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(last_prompt(&requests[0]), "first\nsecond\nthird");
    assert_eq!(last_prompt(&requests[1]), "C:\\\\");
}

#[test]
fn block_is_one_message() {
    let server = Server::start(["one.", "two.", "three."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_line("\"\"\"").expect("\n. ");
    terminal.type_line("/exit").expect("\n. ");
    terminal.type_line("").expect("\n. ");
    terminal.type_line("  the end\\\"\"\"").expect("one.");
    terminal.expect("> ").type_line("\"\"\"one line\"\"\"");
    terminal.expect("two.").expect("> ");
    // All lines at the same time.
    terminal.type_text("\"\"\"\na\nb\n\"\"\"\n").expect("three.");
    terminal.expect("> ").type_line("\"\"\"\"\"\"").expect("> ");
    leave(terminal);
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    assert_eq!(prompts, ["/exit\n\n  the end\\", "one line", "a\nb"]);
}

/// Ctrl+C in a block discards it and does not count as the first of two; Ctrl+D in it sends
/// nothing.
#[test]
fn block_can_be_discarded() {
    let server = Server::start([Reply::text("one.")]);
    let mut terminal = chat(&server);
    terminal.type_line("\"\"\"").expect(". ");
    terminal.type_line("never").expect(". ");
    terminal.ctrl('c').expect("the incomplete message is discarded");
    terminal.expect("> ").type_line("also never\\").expect(". ");
    terminal.ctrl('c').expect("the incomplete message is discarded");
    terminal.expect("> ").type_line("\"\"\"nor that").expect(". ");
    terminal.ctrl('d').expect("it is not sent").expect("> ");
    terminal.type_line("this").expect("one.").expect("> ");
    terminal.ctrl('c').expect("press Ctrl+C again").expect("> ");
    terminal.ctrl('c');
    terminal.wait_exit().success();
    let requests = server.finish();
    assert_eq!((last_prompt(&requests[0]).as_str(), roles(&requests[0]).as_str()), ("this", "su"));
}

/// There is one request with all lines.
#[test]
fn pasted_five_thousand_lines_are_one_message() {
    let server = Server::start([Reply::text("read."), Reply::text("next.")]);
    let mut terminal = chat(&server);
    let lines: Vec<String> =
        (1..=5000).map(|number| format!("    line {number} of a paste \\ \"quoted\"")).collect();
    terminal.type_text(&(lines.join("\n") + "\n"));
    terminal.expect("read.").expect("> ");
    terminal.type_line("next").expect("next.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(requests.len(), 2);
    assert_eq!(last_prompt(&requests[0]), lines.join("\n"));
}

/// Commands before pasted text are executed in order; pasted source code that looks like a block is
/// sent unchanged.
#[test]
fn commands_before_pasted_text_are_executed() {
    let server = Server::start(["one.", "two.", "three."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_line("before").expect("one.").expect("> ");
    terminal.type_text("\n/clear\n\n/tools\nand\n/clear\n");
    terminal
        .expect("the conversation is cleared")
        .expect("the model gets no tools")
        .expect("two.")
        .expect("> ");
    let python = "\"\"\"Doc.\"\"\"\nif x:\n    y = a \\\n        b";
    terminal.type_text(&format!("{python}\n"));
    terminal.expect("three.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(roles(&requests[1]), "su");
    assert_eq!(last_prompt(&requests[1]), "and\n/clear");
    assert_eq!(last_prompt(&requests[2]), python);
}

#[test]
fn oversized_input_is_reported_and_the_conversation_continues() {
    let server = Server::start([Reply::text("one.")]);
    let mut terminal = chat(&server);
    let line = format!("{}\n", "x".repeat(4000));
    terminal.type_text(&line.repeat(1100));
    terminal.expect("the message is longer than 4194304 bytes").expect("> ");
    terminal.type_line("short").expect("one.").expect("> ");
    leave(terminal);
    assert_eq!(last_prompt(&server.finish()[0]), "short");
    // From a pipe it is a failed turn.
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let long = "x".repeat((4 << 20) + 1);
    let test = Test::new().endpoint(&server).args(["chat"]);
    let run = test.stdin(format!("a\n{long}\nb\n{long}")).run().status(1);
    run.stdout("one.\ntwo.\n")
        .stderr_has("the message is longer than 4194304 bytes: it is not sent");
    server.finish();
}

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
    let server = Server::always(|request| match request.path.as_str() {
        "/v1/models" => Reply::models([MODEL, "other-model"]),
        "/" => Reply::status(404),
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

fn start_conversation(
    list: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (Server, Terminal) {
    let server = Server::always(move |request| match request.method.as_str() {
        "GET" => list(request),
        _ => Reply::text("Done."),
    });
    let terminal = Test::new().endpoint(&server).spawn_on_terminal();
    (server, terminal)
}

/// An invalid configuration ends the program before the first prompt.
#[test]
fn invalid_configuration_ends_before_the_first_prompt() {
    let unreachable = Server::refusing_connections();
    let run = Test::new().endpoint(&unreachable).spawn_on_terminal().wait_exit().status(75);
    assert!(run.terminal.contains("`ollama serve`"), "{}", run.terminal);
    for status in [401, 403] {
        let (server, terminal) = start_conversation(move |_| Reply::error(status, "no such key"));
        let run = terminal.wait_exit().status(77);
        assert!(run.terminal.contains("check LLM_API_KEY"), "{}", run.terminal);
        server.finish();
    }
    let (server, terminal) = start_conversation(|request| match request.path.as_str() {
        "/" => Reply::status(200).body("Ollama is running"),
        _ => Reply::models(["tset-model:latest", "other"]),
    });
    let run = terminal.wait_exit().status(1);
    let shown = &run.terminal;
    assert!(
        shown.contains("Ollama does not have `test-model`; similar names: `tset-model`")
            && shown.contains("hint: `ollama pull test-model`, or set LLM_MODEL_NAME"),
        "{shown}"
    );
    server.finish();
    // Ctrl+C does not wait for a list that never arrives.
    let (server, mut terminal) = start_conversation(|_| Reply::empty().hang());
    server.wait_for_requests(1);
    terminal.ctrl('c');
    terminal.wait_exit().status(-libc::SIGINT).took_at_most(seconds(5.0));
}

/// If a configuration may work, the conversation starts.
#[test]
fn uncertain_configuration_starts_the_conversation() {
    let (server, mut terminal) = start_conversation(|request| match request.path.as_str() {
        "/" => Reply::status(404),
        _ => Reply::models(["other", "test-modal"]),
    });
    terminal
        .expect("`test-model` is not among the 2 models listed; similar names: `test-modal`")
        .expect("`/model test-modal`");
    terminal.expect("> ").type_line("hi").expect("Done.").expect("> ");
    leave(terminal);
    server.finish();
    for status in [404, 405, 500] {
        let (server, mut terminal) =
            start_conversation(move |_| Reply::error(status, "nothing here"));
        terminal.expect("> ").type_line("hi").expect("Done.").expect("> ");
        let shown = terminal.output();
        assert!(!shown.contains("nothing here") && !shown.contains("warning"), "{shown}");
        leave(terminal);
        server.finish();
    }
    for (status, message) in
        [(403, "Missing scopes: api.model.read"), (401, "x-api-key header is required")]
    {
        let (server, mut terminal) = start_conversation(move |_| Reply::error(status, message));
        terminal.expect("does not list its models").expect("> ");
        terminal.type_line("hi").expect("Done.").expect("> ");
        leave(terminal);
        server.finish();
    }
}

#[test]
fn only_terminal_conversations_request_the_model_list() {
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let test = Test::new().endpoint(&server);
    test.next_run().args(["chat"]).stdin("hi\n").run().success();
    test.args(["hi"]).spawn_on_terminal().wait_exit().success();
    let methods: Vec<String> = server.finish().iter().map(|r| r.method.clone()).collect();
    assert_eq!(methods, ["POST", "POST"]);
}

/// A server that is busy or loads a model may not answer for a while.
#[test]
fn slow_model_list_is_reported_and_can_be_interrupted() {
    let server = Server::always(|request| match request.method.as_str() {
        "GET" => Reply::empty().hang(),
        _ => Reply::text("Done."),
    });
    let test = Test::new().endpoint(&server);
    let mut terminal = test.env("LLM_TIMEOUT_SECONDS", "1").spawn_on_terminal();
    terminal.expect("the endpoint did not list its models: ").expect("> ");
    terminal.type_line("/model other").expect("the model is now other");
    server.wait_for_requests(2);
    terminal.ctrl('c').expect("> ");
    terminal.type_line("hi").expect("Done.").expect("> ");
    leave(terminal);
    assert_eq!(server.finish()[2].json["model"], "other");
}

/// SIGTERM and a closed window end a conversation cleanly in any state.
#[test]
fn signals_end_a_conversation_cleanly() {
    let server = Server::start([]);
    let mut terminal = chat(&server);
    terminal.type_line("\"\"\"begun").expect(". ");
    terminal.running().signal(libc::SIGTERM);
    terminal.wait_exit().status(-libc::SIGTERM);
    let server = Server::start([Reply::calls([("run_python_script", SLEEPER)])]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.spawn_on_terminal();
    terminal.expect("> ").type_line("run it").expect("→ run_python_script");
    wait_until_read();
    terminal.hang_up();
    terminal.wait_exit().status(-libc::SIGHUP);
    assert!(test.processes().is_empty());
    server.finish();
}

/// After a failure the state returns to ready.
#[test]
fn verbose_reports_the_states() {
    let server = Server::start([Reply::error(400, "no")]);
    let mut terminal = Test::new().endpoint(&server).args(["-v"]).spawn_on_terminal();
    terminal.expect("state: initializing").expect("/v1/models");
    terminal.expect("state: ready").expect("> ").type_line("hi");
    terminal
        .expect("state: checking context")
        .expect("state: processing")
        .expect("/retry sends it again");
    terminal.expect("state: ready").expect("> ").ctrl('d');
    terminal.expect("state: terminating").expect("state: closed");
    terminal.wait_exit().success();
    server.finish();
}

/// Pasted text often lacks its last line end: the last line can be edited until Enter is pressed.
#[test]
fn paste_without_final_line_end_is_one_message() {
    let server = Server::start(["one.", "two.", "three.", "four."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_text("a\nb\nc");
    wait_until_read();
    terminal.type_line(" and more").expect("one.").expect("> ");
    terminal.type_text("d\ne");
    wait_until_read();
    terminal.type_line("").expect("two.").expect("> ");
    let lines: Vec<String> = (1..=5000).map(|number| format!("line {number} of a paste")).collect();
    terminal.type_text(&lines.join("\n"));
    wait_until_read();
    terminal.type_line("").expect("three.").expect("> ");
    // Discarded text is not part of the next message, and line editing works as before.
    terminal.type_text("f\ng");
    wait_until_read();
    terminal.ctrl('c').expect("\n> ");
    terminal.type_line("hx\u{7f}").expect("four.").expect("> ");
    leave(terminal);
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    let lines = lines.join("\n");
    assert_eq!(prompts, ["a\nb\nc and more", "d\ne", &lines, "h"]);
}

#[test]
fn line_truncated_by_the_terminal_is_not_sent() {
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let mut terminal = chat(&server);
    let reported = "the terminal cut the line at 4,095 bytes, so it is not sent";
    for length in [4095, 5000] {
        terminal.type_line(&"x".repeat(length));
        terminal.expect(reported).expect("> ");
    }
    terminal.type_text(&format!("a\n{}\nb\n", "x".repeat(5000)));
    terminal.expect(reported).expect("> ");
    let longest = "y".repeat(4094);
    terminal.type_line(&longest).expect("one.").expect("> ");
    terminal.type_line("short").expect("two.").expect("> ");
    leave(terminal);
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    assert_eq!(prompts, [&longest, "short"]);
}

/// Lines typed seconds apart are separate turns, also during an answer or a script; text pasted
/// then is one message.
#[test]
fn lines_typed_during_a_turn_are_separate_turns() {
    let slow = "Some words that come one after the other.";
    let server = Server::start([
        Reply::text(slow).pace(seconds(0.5)),
        Reply::text("one."),
        Reply::calls([("run_python_script", LONGER)]),
        Reply::text("two."),
        Reply::text("three.").delay(seconds(2.0)),
        Reply::text("four."),
        Reply::text("five."),
        Reply::text("six."),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.timeout(seconds(60.0)).spawn_on_terminal();
    terminal.expect("> ").type_line("first").expect("Some");
    terminal.type_line("second").expect("second");
    pause_as_typed();
    // The next line during the script, followed by pasted text.
    terminal.type_line("third").expect("third");
    terminal.expect("> second\n").expect("one.").expect("> third\n");
    terminal.expect("→ run_python_script");
    terminal.type_line("during it").expect("during it");
    pause_as_typed();
    terminal.type_text("a\nb\nc\n").expect("c");
    terminal.expect("two.").expect("> during it\n");
    server.wait_for_requests(5);
    // Without its last line end.
    terminal.type_text("d\ne").expect("e");
    terminal.expect("three.").expect("> a … 2 more lines\n").expect("four.");
    terminal.expect("> ").type_line(" and more").expect("five.").expect("> ");
    terminal.type_line("last").expect("six.").expect("> ");
    leave(terminal);
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    let expected =
        ["first", "second", "third", "third", "during it", "a\nb\nc", "d\ne and more", "last"];
    assert_eq!(prompts, expected);
}

/// A line typed during a turn does not answer a later question of it, and a typed answer is not a
/// turn.
#[test]
fn typed_lines_do_not_answer_later_confirmations() {
    let server = Server::start([
        Reply::calls([("run_python_script", LONGER)]).delay(seconds(2.0)),
        Reply::text("one."),
        Reply::text("two."),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.args(["chat", "--confirm"]).spawn_on_terminal();
    terminal.expect("> ").type_line("first");
    server.wait_for_requests(1);
    terminal.type_line("yes").expect("yes");
    terminal.expect("run it?");
    pause_as_typed();
    terminal.type_line("y").expect("begun").expect("one.");
    terminal.expect("> yes\n").expect("two.").expect("> ");
    leave(terminal);
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    assert_eq!(prompts, ["first", "first", "yes"]);
}

/// Ctrl+C discards lines typed during the turn; Ctrl+D ends the conversation after it.
#[test]
fn control_c_discards_lines_typed_during_the_turn() {
    let server = Server::start([Reply::empty().hang(), Reply::text("one.").delay(seconds(2.0))]);
    let mut terminal = chat(&server);
    terminal.type_line("first");
    server.wait_for_requests(1);
    terminal.type_line("never").expect("never");
    pause_as_typed();
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("second");
    server.wait_for_requests(2);
    terminal.ctrl('d').expect("one.");
    terminal.wait_exit().success();
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    assert_eq!(prompts, ["first", "second"]);
}

/// Only at an empty prompt does Ctrl+C show how to leave; a second one leaves.
#[test]
fn control_c_on_typed_text_does_not_end_the_conversation() {
    let server = Server::start([Reply::text("one.")]);
    let mut terminal = chat(&server);
    for _ in 0..3 {
        terminal.type_text("some words").expect("some words");
        terminal.ctrl('c').expect("the incomplete message is discarded").expect("> ");
    }
    terminal.ctrl('c').expect("press Ctrl+C again").expect("> ");
    terminal.type_text("a\nb").expect("b");
    wait_until_read();
    terminal.ctrl('c').expect("the incomplete message is discarded").expect("> ");
    // Nothing of the discarded text is in the next line.
    terminal.type_line("this").expect("one.").expect("> ");
    terminal.ctrl('c').expect("press Ctrl+C again").expect("> ");
    terminal.ctrl('c');
    let run = terminal.wait_exit().success();
    assert_eq!(run.terminal.matches("press Ctrl+C again").count(), 2);
    assert_eq!(last_prompt(&server.finish()[0]), "this");
}

/// `-q` suppresses the lines about tools; commands still print their answers.
#[test]
fn chat_commands_answer_despite_quiet() {
    let server = Server::start([
        Reply::calls([("list_skills", "{}")]),
        Reply::text("one."),
        Reply::error(400, "no"),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.next_run().args(["-q"]).spawn_on_terminal();
    for (line, answer) in [
        ("/help", "/retry"),
        ("/session", "session"),
        ("/tokens", "tokens"),
        ("/skills", "/s: d"),
        ("/tools", "run_python_script"),
        ("/undo", "nothing to remove"),
        ("/retry", "nothing to repeat"),
        ("/compact", "nothing to summarize"),
        ("/attach", "nothing is attached"),
        ("/clear", "is cleared"),
    ] {
        terminal.expect("> ").type_line(line).expect(answer);
    }
    terminal.expect("> ").type_line("hi");
    let shown = terminal.expect("one.").output();
    assert!(!shown.contains("→ list_skills"), "{shown}");
    terminal.expect("> ").type_line("no").expect("/retry sends");
    terminal.expect("> ").ctrl('c').expect("press Ctrl+C again");
    terminal.ctrl('c');
    terminal.wait_exit().success();
    server.finish();
    let test = test.args(["chat", "-q"]).stdin("/help nonsense\n");
    test.run().success().stderr_has("unknown command /nonsense").stderr_has("/retry: repeat");
}

/// The shown part of an interrupted answer stays in the conversation.
#[test]
fn shown_part_of_an_interrupted_answer_is_kept() {
    let server = Server::start([
        Reply::text("The beginning").hang(),
        Reply::text("Again").hang(),
        Reply::text("two."),
    ]);
    let mut terminal = chat(&server);
    terminal.type_line("first").expect("The beginning");
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("/retry").expect("Again");
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("second").expect("two.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(roles(&requests[1]), "su");
    assert_eq!(
        requests[2].messages()[2]["content"],
        "Again\n\n(no answer: the turn was interrupted)"
    );
}
