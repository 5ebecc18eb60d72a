//! The conversation as a person has it: on a real terminal.

use serde_json::Value;

use crate::harness::{MODEL, Reply, Request, Server, Terminal, Test, seconds};

const SKILL: &str = "---\nname: s\ndescription: d\n---\n";
const SLEEPER: &str =
    r#"{"skill_name":"s","script":"import time\nprint('begun', flush=True)\ntime.sleep(60)"}"#;

const LONGER: &str =
    r#"{"skill_name":"s","script":"import time\nprint('begun', flush=True)\ntime.sleep(4)"}"#;

/// As far apart as lines that are typed.
fn apart() {
    std::thread::sleep(seconds(1.5));
}

fn chat(server: &Server) -> Terminal {
    let mut terminal = Test::new().endpoint(server).terminal();
    terminal.expect("Ctrl+D leaves").expect("> ");
    terminal
}

fn leave(mut terminal: Terminal) {
    terminal.ctrl('d');
    terminal.wait_exit().success();
}

/// What was asked last.
fn asked(request: &Request) -> String {
    let messages = request.messages().iter();
    let mut users = messages.filter(|message| message["role"] == "user");
    let last = users.next_back().expect("somebody asked");
    last["content"].as_str().expect("it is text").into()
}

fn roles(request: &Request) -> String {
    let letter = |message: &Value| message["role"].as_str().and_then(|role| role.chars().next());
    request.messages().iter().filter_map(letter).collect()
}

/// Waits until the program has read what was typed: the kernel drops what was
/// not when Ctrl+C comes, and what comes at once is one message.
fn breathe() {
    std::thread::sleep(seconds(0.4));
}

#[test]
fn a_backslash_goes_on_and_two_do_not() {
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let mut terminal = chat(&server);
    terminal.type_line("first\\").expect("\n. ");
    terminal.type_line("second\\").expect("\n. ");
    terminal.type_line("third").expect("one.").expect("> ");
    terminal.type_line("C:\\\\").expect("two.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(asked(&requests[0]), "first\nsecond\nthird");
    assert_eq!(asked(&requests[1]), "C:\\\\");
}

#[test]
fn a_block_is_one_message_whatever_it_says() {
    let server = Server::start(["one.", "two.", "three."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_line("\"\"\"").expect("\n. ");
    terminal.type_line("/exit").expect("\n. ");
    terminal.type_line("").expect("\n. ");
    terminal.type_line("  the end\\\"\"\"").expect("one.");
    terminal.expect("> ").type_line("\"\"\"one line\"\"\"");
    terminal.expect("two.").expect("> ");
    // All of it at once.
    terminal.type_text("\"\"\"\na\nb\n\"\"\"\n").expect("three.");
    terminal.expect("> ").type_line("\"\"\"\"\"\"").expect("> ");
    leave(terminal);
    let asked: Vec<String> = server.finish().iter().map(asked).collect();
    assert_eq!(asked, ["/exit\n\n  the end\\", "one line", "a\nb"]);
}

/// Ctrl+C in a block drops it and does not count as the first of two; Ctrl+D
/// sends nothing and leaves nothing.
#[test]
fn a_block_can_be_dropped() {
    let server = Server::start([Reply::text("one.")]);
    let mut terminal = chat(&server);
    terminal.type_line("\"\"\"").expect(". ");
    terminal.type_line("never").expect(". ");
    terminal.ctrl('c').expect("what was begun is forgotten");
    terminal.expect("> ").type_line("also never\\").expect(". ");
    terminal.ctrl('c').expect("what was begun is forgotten");
    terminal.expect("> ").type_line("\"\"\"nor that").expect(". ");
    terminal.ctrl('d').expect("it is not sent").expect("> ");
    terminal.type_line("this").expect("one.").expect("> ");
    terminal.ctrl('c').expect("press Ctrl+C again").expect("> ");
    terminal.ctrl('c');
    terminal.wait_exit().success();
    let requests = server.finish();
    assert_eq!((asked(&requests[0]).as_str(), roles(&requests[0]).as_str()), ("this", "su"));
}

/// One request, with every line.
#[test]
fn five_thousand_lines_pasted_at_once_are_one_message() {
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
    assert_eq!(asked(&requests[0]), lines.join("\n"));
}

/// Commands in front of a paste are done, one after the other; a program's text
/// that looks like a block goes as it is.
#[test]
fn a_paste_begins_with_its_commands() {
    let server = Server::start(["one.", "two.", "three."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_line("before").expect("one.").expect("> ");
    terminal.type_text("\n/clear\n\n/tools\nand\n/clear\n");
    terminal
        .expect("the conversation is forgotten")
        .expect("the model gets no tools")
        .expect("two.")
        .expect("> ");
    let python = "\"\"\"Doc.\"\"\"\nif x:\n    y = a \\\n        b";
    terminal.type_text(&format!("{python}\n"));
    terminal.expect("three.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(roles(&requests[1]), "su");
    assert_eq!(asked(&requests[1]), "and\n/clear");
    assert_eq!(asked(&requests[2]), python);
}

#[test]
fn what_is_too_long_is_told_and_the_conversation_goes_on() {
    let server = Server::start([Reply::text("one.")]);
    let mut terminal = chat(&server);
    let line = format!("{}\n", "x".repeat(4000));
    terminal.type_text(&line.repeat(1100));
    terminal.expect("a message is longer than 4194304 bytes").expect("> ");
    terminal.type_line("short").expect("one.").expect("> ");
    leave(terminal);
    assert_eq!(asked(&server.finish()[0]), "short");
    // From a pipe it is a turn that failed.
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let long = "x".repeat((4 << 20) + 1);
    let test = Test::new().endpoint(&server).args(["chat"]);
    let run = test.stdin(format!("a\n{long}\nb\n{long}")).run().status(1);
    run.stdout("one.\ntwo.\n").stderr_has("a message is longer than 4194304 bytes: it is not sent");
    server.finish();
}

/// R-LIFE: Ctrl+C while the reply is waited for, while it streams, and while a
/// script runs; each turn can be asked again, with the results it had.
#[test]
fn what_control_c_ended_can_be_asked_again() {
    let server = Server::start([
        Reply::nothing().hang(),
        Reply::text("The beginning").hang(),
        Reply::text("one."),
        Reply::calls([("run_python_script", SLEEPER)]),
        Reply::text("two."),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.terminal();
    terminal.expect("> ").type_line("first");
    server.wait_for_requests(1);
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("/retry").expect("The beginning");
    terminal.ctrl('c').expect("\n").expect("interrupted").expect("> ");
    terminal.type_line("/retry").expect("one.").expect("> ");
    terminal.type_line("second").expect("→ run_python_script");
    breathe();
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("/retry").expect("two.").expect("> ");
    terminal.type_line("/retry").expect("has its answer").expect("> ");
    leave(terminal);
    let requests = server.finish();
    let shapes: Vec<String> = requests.iter().map(roles).collect();
    assert_eq!(shapes, ["su", "su", "su", "suau", "suauat"]);
    assert!(requests[4].tool_result("call_1").contains("interrupted by the user"));
    assert!(test.processes().is_empty());
}

/// Ctrl+C in the pause before another try, and while somebody is asked whether
/// a script may run.
#[test]
fn control_c_between_requests_and_in_a_question() {
    let server = Server::start([
        Reply::error(503, "busy").header("Retry-After", "30"),
        Reply::calls([("run_python_script", SLEEPER)]),
        Reply::text("fine."),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.args(["chat", "-v", "--confirm"]).terminal();
    terminal.expect("> ").type_line("first").expect("try 2 of 3");
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("second").expect("run it?");
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("third").expect("fine.").expect("> ");
    leave(terminal);
    assert_eq!(roles(&server.finish()[2]), "suauatau");
}

#[test]
fn turns_are_taken_back() {
    let server = Server::start([
        Reply::text("one."),
        Reply::calls([("get_skill", r#"{"skill_name":"s"}"#)]),
        Reply::text("two."),
        Reply::calls([("get_skill", r#"{"skill_name":"s"}"#)]),
        Reply::text("three."),
        Reply::text("four."),
    ]);
    let skill = format!("{SKILL}The document.\n");
    let mut terminal = Test::new().skill("s", &skill).endpoint(&server).terminal();
    terminal.expect("> ").type_line("/undo").expect("nothing to take back");
    terminal.expect("> ").type_line("first").expect("one.").expect("> ");
    terminal.type_line("second").expect("two.").expect("> ");
    terminal.type_line("/undo").expect("taken back, with its answer: second");
    terminal.expect("> ").type_line("third").expect("three.").expect("> ");
    terminal.type_line("/undo").expect("third").expect("> ");
    terminal.type_line("/undo").expect("first").expect("> ");
    terminal.type_line("/retry").expect("nothing to send again").expect("> ");
    terminal.type_line("fourth").expect("four.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(roles(&requests[3]), "suau");
    // It was told in what was taken back: it is told again.
    let told = requests[4].messages().last().unwrap()["content"].as_str().unwrap();
    assert!(told.contains("The document."), "{told}");
    assert_eq!(roles(&requests[5]), "su");
}

/// What became a summary stays one.
#[test]
fn a_summary_is_not_taken_back() {
    let server = Server::start(["one.", "two.", "A summary.", "three."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_line(&"first and more ".repeat(200)).expect("one.").expect("> ");
    terminal.type_line("second").expect("two.").expect("> ");
    terminal.type_line("/compact").expect("was summarized").expect("> ");
    terminal.type_line("/undo").expect("its answer: second").expect("> ");
    terminal.type_line("/undo").expect("is a summary").expect("> ");
    terminal.type_line("third").expect("three.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    let sent = requests[3].json["messages"].to_string();
    assert!(sent.contains("A summary.") && !sent.contains("second"), "{sent}");
}

#[test]
fn the_model_and_the_tools_are_told_and_changed() {
    let server = Server::always(|request| match request.path.as_str() {
        "/v1/models" => Reply::models([MODEL, "other-model"]),
        "/" => Reply::status(404),
        _ => Reply::text("Done."),
    });
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.terminal();
    terminal
        .expect("> ")
        .type_line("/model")
        .expect("the model is test-model")
        .expect("the endpoint lists test-model, other-model\n");
    terminal.expect("> ").type_line("/model other-model");
    terminal.expect("the model is now other-model").expect("> ");
    terminal.type_line("hi").expect("Done.").expect("> ");
    terminal.type_line("/model othr-model").expect("now othr-model");
    terminal.expect("`othr-model` is not among the 2 models listed; near names: `other-model`");
    terminal.expect("> ").type_line("/model a b").expect("has no blanks");
    terminal.expect("> ").type_line("/tools").expect("get_skill: ").expect("> ");
    leave(terminal);
    let asked = server.finish();
    let asked = asked.iter().find(|request| request.method == "POST").unwrap();
    assert_eq!(asked.json["model"], "other-model");
    // From a pipe no request is made for it; the record names the new one.
    let server = Server::start([Reply::text("Done.")]);
    let test = Test::new().endpoint(&server).args(["chat", "-o", "jsonl"]);
    let run = test.stdin("/model x\nhi\n").run().success();
    assert_eq!(run.stdout_json_lines().last().unwrap()["model"], "x");
    server.finish();
}

/// Dragging the window's corner disturbs neither a turn nor the typing, and
/// Ctrl+Z with `fg` after it neither.
#[test]
fn a_new_size_and_a_stop_disturb_nothing() {
    let server =
        Server::start([Reply::text("one and more.").pace(seconds(0.2)), Reply::text("two.")]);
    let mut terminal = chat(&server);
    terminal.type_line("first").expect("one");
    terminal.resize(50, 132).expect("more.").expect("> ");
    terminal.resize(10, 20).type_text("sec");
    terminal.resize(24, 80);
    breathe();
    terminal.running().signal(libc::SIGSTOP);
    breathe();
    terminal.running().signal(libc::SIGCONT);
    breathe();
    terminal.type_line("ond").expect("two.").expect("> ");
    leave(terminal);
    assert_eq!(asked(&server.finish()[1]), "second");
}

fn starts(list: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Server, Terminal) {
    let server = Server::always(move |request| match request.method.as_str() {
        "GET" => list(request),
        _ => Reply::text("Done."),
    });
    let terminal = Test::new().endpoint(&server).terminal();
    (server, terminal)
}

/// R-LIFE-1: what cannot work ends the conversation before it begins.
#[test]
fn what_cannot_work_is_told_before_the_first_prompt() {
    let nobody = Server::refused();
    let run = Test::new().endpoint(&nobody).terminal().wait_exit().status(75);
    assert!(run.terminal.contains("`ollama serve`"), "{}", run.terminal);
    for status in [401, 403] {
        let (server, terminal) = starts(move |_| Reply::error(status, "no such key"));
        let run = terminal.wait_exit().status(77);
        assert!(run.terminal.contains("check LLM_API_KEY"), "{}", run.terminal);
        server.finish();
    }
    let (server, terminal) = starts(|request| match request.path.as_str() {
        "/" => Reply::status(200).body("Ollama is running"),
        _ => Reply::models(["tset-model:latest", "other"]),
    });
    let run = terminal.wait_exit().status(1);
    let shown = &run.terminal;
    assert!(
        shown.contains("Ollama does not have `test-model`; near names: `tset-model`")
            && shown.contains("hint: `ollama pull test-model`, or set LLM_MODEL_NAME"),
        "{shown}"
    );
    server.finish();
    // Ctrl+C need not wait for a list that does not come.
    let (server, mut terminal) = starts(|_| Reply::nothing().hang());
    server.wait_for_requests(1);
    terminal.ctrl('c');
    terminal.wait_exit().status(-libc::SIGINT).took_at_most(seconds(5.0));
}

/// What may work is tried.
#[test]
fn what_may_work_begins() {
    let (server, mut terminal) = starts(|request| match request.path.as_str() {
        "/" => Reply::status(404),
        _ => Reply::models(["other", "test-modal"]),
    });
    terminal
        .expect("`test-model` is not among the 2 models listed; near names: `test-modal`")
        .expect("`/model test-modal`");
    terminal.expect("> ").type_line("hi").expect("Done.").expect("> ");
    leave(terminal);
    server.finish();
    for status in [404, 405, 500] {
        let (server, mut terminal) = starts(move |_| Reply::error(status, "nothing here"));
        terminal.expect("> ").type_line("hi").expect("Done.").expect("> ");
        let shown = terminal.output();
        assert!(!shown.contains("nothing here") && !shown.contains("warning"), "{shown}");
        leave(terminal);
        server.finish();
    }
    for (status, message) in
        [(403, "Missing scopes: api.model.read"), (401, "x-api-key header is required")]
    {
        let (server, mut terminal) = starts(move |_| Reply::error(status, message));
        terminal.expect("does not list its models").expect("> ");
        terminal.type_line("hi").expect("Done.").expect("> ");
        leave(terminal);
        server.finish();
    }
}

/// Nobody but a conversation on a terminal asks for the list.
#[test]
fn one_question_and_a_pipe_send_nothing_more() {
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let test = Test::new().endpoint(&server);
    test.again().args(["chat"]).stdin("hi\n").run().success();
    test.args(["hi"]).terminal().wait_exit().success();
    let methods: Vec<String> = server.finish().iter().map(|r| r.method.clone()).collect();
    assert_eq!(methods, ["POST", "POST"]);
}

/// A server that is busy, or loads a model, may say nothing for a while.
#[test]
fn silence_is_told_and_may_be_interrupted() {
    let server = Server::always(|request| match request.method.as_str() {
        "GET" => Reply::nothing().hang(),
        _ => Reply::text("Done."),
    });
    let test = Test::new().endpoint(&server);
    let mut terminal = test.env("LLM_TIMEOUT_SECONDS", "1").terminal();
    terminal.expect("the endpoint does not tell its models: ").expect("> ");
    terminal.type_line("/model other").expect("the model is now other");
    server.wait_for_requests(2);
    terminal.ctrl('c').expect("> ");
    terminal.type_line("hi").expect("Done.").expect("> ");
    leave(terminal);
    assert_eq!(server.finish()[2].json["model"], "other");
}

/// R-LIFE-3: SIGTERM and a window that is closed end it cleanly, wherever it
/// stands.
#[test]
fn signals_end_it_cleanly() {
    let server = Server::start([]);
    let mut terminal = chat(&server);
    terminal.type_line("\"\"\"begun").expect(". ");
    terminal.running().signal(libc::SIGTERM);
    terminal.wait_exit().status(-libc::SIGTERM);
    let server = Server::start([Reply::calls([("run_python_script", SLEEPER)])]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.terminal();
    terminal.expect("> ").type_line("run it").expect("→ run_python_script");
    breathe();
    terminal.hang_up();
    terminal.wait_exit().status(-libc::SIGHUP);
    assert!(test.processes().is_empty());
    server.finish();
}

/// R-LIFE-2, as `-v` tells it: a failure returns to ready.
#[test]
fn the_states_are_told() {
    let server = Server::start([Reply::error(400, "no")]);
    let mut terminal = Test::new().endpoint(&server).args(["-v"]).terminal();
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

/// Mostly a text is copied without its last line's end: the message goes on in
/// what stands there, until Enter is pressed.
#[test]
fn a_paste_without_its_last_end_is_one_message() {
    let server = Server::start(["one.", "two.", "three.", "four."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_text("a\nb\nc");
    breathe();
    terminal.type_line(" and more").expect("one.").expect("> ");
    terminal.type_text("d\ne");
    breathe();
    terminal.type_line("").expect("two.").expect("> ");
    let lines: Vec<String> = (1..=5000).map(|number| format!("line {number} of a paste")).collect();
    terminal.type_text(&lines.join("\n"));
    breathe();
    terminal.type_line("").expect("three.").expect("> ");
    // What is dropped is not sent with the next one, and lines are edited as ever.
    terminal.type_text("f\ng");
    breathe();
    terminal.ctrl('c').expect("\n> ");
    terminal.type_line("hx\u{7f}").expect("four.").expect("> ");
    leave(terminal);
    let asked: Vec<String> = server.finish().iter().map(asked).collect();
    let lines = lines.join("\n");
    assert_eq!(asked, ["a\nb\nc and more", "d\ne", &lines, "h"]);
}

#[test]
fn a_line_that_the_terminal_cut_is_not_sent() {
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let mut terminal = chat(&server);
    let told = "the terminal cut the line at 4,095 bytes, so it is not sent";
    for length in [4095, 5000] {
        terminal.type_line(&"x".repeat(length));
        terminal.expect(told).expect("> ");
    }
    terminal.type_text(&format!("a\n{}\nb\n", "x".repeat(5000)));
    terminal.expect(told).expect("> ");
    let whole = "y".repeat(4094);
    terminal.type_line(&whole).expect("one.").expect("> ");
    terminal.type_line("short").expect("two.").expect("> ");
    leave(terminal);
    let asked: Vec<String> = server.finish().iter().map(asked).collect();
    assert_eq!(asked, [&whole, "short"]);
}

/// Lines that are typed seconds apart are turns of their own, also while a model
/// answers or a script runs; what is pasted then is one message.
#[test]
fn what_is_typed_during_a_turn_is_taken_as_it_came() {
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
    let mut terminal = test.timeout(seconds(60.0)).terminal();
    terminal.expect("> ").type_line("first").expect("Some");
    terminal.type_line("second").expect("second");
    apart();
    // The next one during the script, and a paste behind it.
    terminal.type_line("third").expect("third");
    terminal.expect("> second\n").expect("one.").expect("> third\n");
    terminal.expect("→ run_python_script");
    terminal.type_line("during it").expect("during it");
    apart();
    terminal.type_text("a\nb\nc\n").expect("c");
    terminal.expect("two.").expect("> during it\n");
    server.wait_for_requests(5);
    // Without its last line's end.
    terminal.type_text("d\ne").expect("e");
    terminal.expect("three.").expect("> a … 2 more lines\n").expect("four.");
    terminal.expect("> ").type_line(" and more").expect("five.").expect("> ");
    terminal.type_line("last").expect("six.").expect("> ");
    leave(terminal);
    let asked: Vec<String> = server.finish().iter().map(asked).collect();
    let expected =
        ["first", "second", "third", "third", "during it", "a\nb\nc", "d\ne and more", "last"];
    assert_eq!(asked, expected);
}

/// What is typed during a turn answers no question of it, and what is typed as
/// an answer is no turn.
#[test]
fn an_answer_is_no_turn_and_a_turn_no_answer() {
    let server = Server::start([
        Reply::calls([("run_python_script", LONGER)]).delay(seconds(2.0)),
        Reply::text("one."),
        Reply::text("two."),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.args(["chat", "--confirm"]).terminal();
    terminal.expect("> ").type_line("first");
    server.wait_for_requests(1);
    terminal.type_line("yes").expect("yes");
    terminal.expect("run it?");
    apart();
    terminal.type_line("y").expect("begun").expect("one.");
    terminal.expect("> yes\n").expect("two.").expect("> ");
    leave(terminal);
    let asked: Vec<String> = server.finish().iter().map(asked).collect();
    assert_eq!(asked, ["first", "first", "yes"]);
}

/// Ctrl+C drops what was typed during the turn; Ctrl+D there ends it.
#[test]
fn what_was_typed_goes_with_the_turn_that_is_interrupted() {
    let server = Server::start([Reply::nothing().hang(), Reply::text("one.").delay(seconds(2.0))]);
    let mut terminal = chat(&server);
    terminal.type_line("first");
    server.wait_for_requests(1);
    terminal.type_line("never").expect("never");
    apart();
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("second");
    server.wait_for_requests(2);
    terminal.ctrl('d').expect("one.");
    terminal.wait_exit().success();
    let asked: Vec<String> = server.finish().iter().map(asked).collect();
    assert_eq!(asked, ["first", "second"]);
}

/// Only at an empty prompt Ctrl+C says how to leave, and the next one leaves.
#[test]
fn lines_that_are_dropped_do_not_end_it() {
    let server = Server::start([Reply::text("one.")]);
    let mut terminal = chat(&server);
    for _ in 0..3 {
        terminal.type_text("some words").expect("some words");
        terminal.ctrl('c').expect("what was begun is forgotten").expect("> ");
    }
    terminal.ctrl('c').expect("press Ctrl+C again").expect("> ");
    terminal.type_text("a\nb").expect("b");
    breathe();
    terminal.ctrl('c').expect("what was begun is forgotten").expect("> ");
    // Nothing of them is left in the next line.
    terminal.type_line("this").expect("one.").expect("> ");
    terminal.ctrl('c').expect("press Ctrl+C again").expect("> ");
    terminal.ctrl('c');
    let run = terminal.wait_exit().success();
    assert_eq!(run.terminal.matches("press Ctrl+C again").count(), 2);
    assert_eq!(asked(&server.finish()[0]), "this");
}

/// `-q` is silent about tools; who asks is answered all the same.
#[test]
fn commands_are_answered_with_quiet() {
    let server = Server::start([
        Reply::calls([("list_skills", "{}")]),
        Reply::text("one."),
        Reply::error(400, "no"),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.again().args(["-q"]).terminal();
    for (line, answer) in [
        ("/help", "/retry"),
        ("/session", "session"),
        ("/tokens", "tokens"),
        ("/skills", "/s: d"),
        ("/tools", "run_python_script"),
        ("/undo", "nothing to take back"),
        ("/retry", "nothing to send again"),
        ("/compact", "nothing to summarize"),
        ("/attach", "nothing is attached"),
        ("/clear", "is forgotten"),
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
    test.run().success().stderr_has("there is no command /nonsense").stderr_has("/retry: send");
}

/// What was seen of an answer before Ctrl+C stays a part of the conversation.
#[test]
fn an_interrupted_answer_is_kept_as_far_as_it_was_shown() {
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
