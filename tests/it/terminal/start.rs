//! The start and the end of a conversation.

use super::{SKILL, SLEEPER, chat, leave, wait_until_read};
use crate::harness::{Reply, Request, Server, Terminal, Test, seconds};

fn start_conversation(
    list: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (Server, Terminal) {
    let server = Server::of_all_requests(move |request| match request.method.as_str() {
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
        "/api/version" => Reply::status(200).body(r#"{"version":"0.12.6"}"#),
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
        "/api/version" => Reply::status(404),
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
    let server = Server::of_all_requests(|request| match request.method.as_str() {
        "GET" => Reply::empty().hang(),
        _ => Reply::text("Done."),
    });
    let test = Test::new().endpoint(&server);
    let mut terminal = test.env("LLM_TIMEOUT_SECONDS", "1").spawn_on_terminal();
    terminal.expect("the endpoint did not list its models: ").expect("> ");
    terminal.type_line("/model other").expect("the model is now other");
    server.wait_for_requests(4);
    terminal.ctrl('c').expect("> ");
    terminal.type_line("hi").expect("Done.").expect("> ");
    leave(terminal);
    assert_eq!(server.finish()[4].json["model"], "other");
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
