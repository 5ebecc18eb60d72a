//! The context window that servers on this machine report.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{answer_as_ollama, ollama, paths};
use crate::harness::{MODEL, Reply, Request, Server, Test, seconds};
use crate::terminal::{chat, leave};

const LLAMA_CPP: &str =
    r#"{"data":[{"id":"test-model","owned_by":"llamacpp"},{"id":"other","owned_by":"llamacpp"}]}"#;

/// Ollama loads a model with the first request, so its window is queried again after that: an
/// earlier answer may be about another program's request.
#[test]
fn window_of_ollama_is_that_of_the_loaded_model() {
    for (before, after, shown) in [(0, 8192, "unknown"), (65_536, 4096, " of 65,536 (")] {
        let window = Arc::new(AtomicU64::new(before));
        let loaded = Arc::clone(&window);
        let server = ollama(&[MODEL], move || Some(loaded.load(Ordering::SeqCst)));
        let mut terminal = chat(&server);
        terminal.type_line("/tokens").expect(shown).expect("> ");
        window.store(after, Ordering::SeqCst);
        terminal.type_line("hi").expect("Done.").expect("> ");
        let expected = if after == 8192 { " of 8,192 (" } else { " of 4,096 (" };
        terminal.type_line("/tokens").expect(expected).expect("> ");
        terminal.type_line("again").expect("Done.").expect("> ");
        leave(terminal);
        let requests = paths(&server.finish());
        let queries = requests.iter().filter(|path| *path == "GET /api/ps").count();
        assert_eq!(queries, 2, "{requests:?}");
    }
}

/// The window decides when a conversation is summarized.
#[test]
fn conversation_is_kept_within_the_reported_window() {
    let server = Server::of_all_requests(|request| match request.path.as_str() {
        "/v1/chat/completions" => Reply::text("Done.").with_usage(2600, 2),
        _ => answer_as_ollama(request, &[MODEL], Some(3000)),
    });
    let mut terminal = chat(&server);
    terminal.type_line(&"one ".repeat(950)).expect("Done.").expect("> ");
    terminal.type_line("two").expect("summar").expect("Done.").expect("> ");
    leave(terminal);
    server.finish();
}

#[test]
fn window_of_llama_cpp_is_queried_again_for_another_model() {
    let window = AtomicU64::new(8192);
    let server = Server::of_all_requests(move |request| match request.path.as_str() {
        "/v1/models" => Reply::status(200).body(LLAMA_CPP),
        "/props" => Reply::status(200).body(format!(
            r#"{{"default_generation_settings":{{"n_ctx":{}}}}}"#,
            window.fetch_add(8192, Ordering::SeqCst)
        )),
        _ => Reply::text("Done."),
    });
    let mut terminal = chat(&server);
    terminal.type_line("/tokens").expect(" of 8,192 (").expect("> ");
    terminal.type_line("hi").expect("Done.").expect("> ");
    terminal.type_line("/model other").expect("the model is now other").expect("> ");
    terminal.type_line("/tokens").expect(" of 16,384 (").expect("> ");
    leave(terminal);
    let requests = paths(&server.finish());
    assert_eq!(requests.iter().filter(|path| *path == "GET /props").count(), 2, "{requests:?}");
}

/// Replies of a server to all requests but that for an answer.
type Queries = fn(&Request) -> Reply;

fn listed(entry: &str) -> Reply {
    Reply::status(200).body(format!(r#"{{"data":[{{"id":"test-model",{entry}}}]}}"#))
}

/// The window that each server reports to a run with a skill, with the queries for it. A document
/// that is longer than a quarter comes in parts.
#[test]
fn window_is_queried_by_every_run_with_a_skill() {
    let document = format!("---\nname: s\ndescription: d\n---\n{}", "Do it.\n".repeat(800));
    let test = Test::new().skill("s", &document);
    let other: Queries = |request| match request.path.as_str() {
        "/v1/models" => listed(r#""owned_by":"x""#),
        _ => Reply::status(404),
    };
    let table: [(&[&str], bool, Queries); 6] = [
        (&["GET /v1/models", "GET /props"], true, |request| match request.path.as_str() {
            "/v1/models" => Reply::status(200).body(LLAMA_CPP),
            _ => Reply::status(200).body(r#"{"default_generation_settings":{"n_ctx":4096}}"#),
        }),
        (&["GET /v1/models", "POST /api/show", "GET /api/ps"], true, |request| {
            answer_as_ollama(request, &[MODEL], Some(4096))
        }),
        (&["GET /v1/models"], true, |_| listed(r#""owned_by":"vllm","max_model_len":4096"#)),
        (&["GET /v1/models", "GET /api/version"], true, |request| match request.path.as_str() {
            "/v1/models" => listed(r#""max_context_length":65536,"loaded_context_length":4096"#),
            _ => Reply::status(404),
        }),
        (&["GET /v1/models", "GET /api/version"], false, other),
        (&["GET /v1/models"], false, |_| Reply::status(404)),
    ];
    for (queries, is_known, reply) in table {
        let server = Server::of_all_requests(move |request| match request.path.as_str() {
            "/v1/chat/completions" => Reply::text("Done."),
            _ => reply(request),
        });
        let test = test.next_run().endpoint(&server);
        let run = test.next_run().args(["-v", "--skill", "s", "go"]).run().success();
        let line = "the server reports a window of 4,096 tokens\n";
        let run = if is_known { run.stderr_has(line) } else { run.stderr_lacks(line) };
        run.stdout("Done.\n");
        test.next_run().args(["-q", "--skill", "s", "go"]).run().success().stderr("");
        test.next_run().args(["--dry-run", "--skill", "s", "go"]).run().success();
        let set = test.next_run().env("LLM_CONTEXT_WINDOW", "65536").env("LLM_TOOLS", "native");
        set.args(["--skill", "s", "go"]).run().success();
        let requests = server.finish();
        let expected = [queries, &["POST /v1/chat/completions"]].concat();
        assert_eq!(
            paths(&requests),
            [&expected[..], &expected, &expected[queries.len()..]].concat()
        );
        let tools = if is_known { 3 } else { 8 };
        assert_eq!(requests[queries.len()].tools().len(), tools);
        let is_in_parts =
            |at: usize| requests[at].json.to_string().contains("[These are the first ");
        assert_eq!(is_in_parts(queries.len()), is_known);
        assert!(!is_in_parts(requests.len() - 1));
    }
}

/// Without a skill the window is queried by a long request, and without need not at all: a window
/// that is set, a short request, a piped conversation.
#[test]
fn window_is_not_queried_without_need() {
    let server = ollama(&[MODEL], || Some(8192));
    let test = Test::new().endpoint(&server);
    test.next_run().args(["hi"]).run().success();
    let long = test.next_run().args(["-v", &"one ".repeat(2500)]).run().success();
    long.stderr_has("the server reports a window of 8,192 tokens\n");
    test.next_run().args(["chat"]).stdin("hi\n/tokens\n").run().stderr_has("unknown");
    let mut terminal = test.env("LLM_CONTEXT_WINDOW", "9000").spawn_on_terminal();
    terminal.expect("> ").type_line("hi").expect("Done.").expect("> ");
    terminal.type_line("/tokens").expect(" of 9,000 (").expect("> ");
    leave(terminal);
    let requests = paths(&server.finish());
    let queries = requests.iter().filter(|path| *path == "GET /api/ps").count();
    assert_eq!(queries, 1, "{requests:?}");
}

/// A failed or slow answer is not reported, and delays nothing that can be noticed.
#[test]
fn missing_window_is_not_noticed() {
    for reply in [Reply::status(500), Reply::empty().hang(), Reply::status(200).body("[[[")] {
        let server = Server::of_all_requests(move |request| match request.path.as_str() {
            "/api/ps" | "/api/show" => reply.clone(),
            _ => answer_as_ollama(request, &[MODEL], None),
        });
        let start_time = std::time::Instant::now();
        let mut terminal = chat(&server);
        terminal.type_line("hi").expect("Done.").expect("> ");
        terminal.type_line("/tokens").expect("the window is unknown").expect("> ");
        assert!(start_time.elapsed() < seconds(5.0));
        let shown = terminal.output();
        assert!(!shown.contains("failed") && !shown.contains("warning"), "{shown}");
        leave(terminal);
        server.finish();
    }
}
