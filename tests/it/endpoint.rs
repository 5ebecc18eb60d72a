//! Endpoints that fail, refuse, stall or talk nonsense: one clear line, the
//! right status, nothing lost.

use crate::harness::{Reply, Server, Stopwatch, Test, seconds};

fn ask(replies: impl IntoIterator<Item = Reply>) -> (Server, crate::harness::Outcome) {
    let server = Server::start(replies);
    let outcome = Test::new().endpoint(&server).args(["hi"]).run();
    (server, outcome)
}

/// R-API-4: credentials are told apart from network faults.
#[test]
fn refused_credentials_are_77_and_name_the_variable() {
    for status in [401, 403] {
        let (server, run) = ask([Reply::error(status, "Incorrect API key provided")]);
        run.status(77)
            .stdout_is_empty()
            .stderr_has("Incorrect API key provided")
            .stderr_has("hint: check LLM_API_KEY");
        assert_eq!(server.finish().len(), 1);
    }
}

#[test]
fn nobody_there_is_75() {
    let server = Server::refused();
    let run = Test::new().endpoint(&server).args(["-v", "hi"]).run();
    run.status(75)
        .stderr_has("try 3 of 3")
        .stderr_has("Connection refused")
        .stderr_has("is the server running");
    let run = Test::new()
        .endpoint(&server)
        .env("LLM_API_BASE_URL", "https://no-such-host.invalid/v1")
        .args(["hi"])
        .run();
    run.status(75).stderr_has("no-such-host.invalid").stderr_has("check the host name");
}

/// R-API-5: temporary failures are tried three times.
#[test]
fn temporary_failures_are_tried_again() {
    let (server, run) =
        ask([Reply::error(503, "busy"), Reply::error(429, "slow down"), Reply::text("4")]);
    run.success().stdout("4\n");
    assert_eq!(server.finish().len(), 3);
    let (server, run) =
        ask([Reply::error(500, "oops"), Reply::error(500, "oops"), Reply::error(500, "oops")]);
    run.status(75).stderr_has("status 500 Internal Server Error: oops");
    assert_eq!(server.finish().len(), 3);
}

#[test]
fn retry_after_is_honoured_and_bounded() {
    let (server, run) =
        ask([Reply::error(429, "slow down").header("Retry-After", "1"), Reply::text("4")]);
    run.success().took_at_least(seconds(1.0)).took_at_most(seconds(2.0));
    server.finish();
    let (server, run) = ask([Reply::error(429, "slow down").header("Retry-After", "3600")]);
    run.status(75).stderr_has("retry after 3600 s");
    server.finish();
}

/// What another try will not change is not tried again.
#[test]
fn lasting_failures_are_tried_once() {
    let quota =
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    let table = [
        (Reply::error(400, "bad field"), 1, "status 400 Bad Request: bad field"),
        (Reply::status(429).body(quota), 1, "quota is used up"),
        (Reply::error(404, "The model `x` does not exist"), 1, "LLM_MODEL_NAME"),
        (
            Reply::status(308).header("Location", "https://other.example/v1/chat/completions"),
            1,
            "https://other.example/v1",
        ),
        (Reply::error(400, "maximum context length is 4096 tokens"), 1, "context window"),
    ];
    for (reply, status, words) in table {
        let (server, run) = ask([reply]);
        run.status(status).stdout_is_empty().stderr_has(words);
        assert_eq!(server.finish().len(), 1, "{words}");
    }
}

/// Row 22: where nothing listens, a whole answer is asked for once, in case it
/// was the stream that is not there.
#[test]
fn an_address_that_is_none_is_guessed() {
    let page = || Reply::status(404).body("<html><title>nginx</title>");
    let (server, run) = ask([page(), page()]);
    run.status(1)
        .stderr_has("status 404 Not Found: an HTML page, “nginx”")
        .stderr_has("hint: check LLM_API_BASE_URL");
    let streams: Vec<bool> =
        server.finish().iter().map(|request| request.json["stream"] == true).collect();
    assert_eq!(streams, [true, false]);
}

/// A reply that is none: said with address and the server's own words.
#[test]
fn nonsense_is_told() {
    let table = [
        (
            Reply::raw(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 35\r\n\r\n<html><title>Sign in</title></html>",
            ),
            1,
            "Sign in",
        ),
        (
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{\"a\":"),
            1,
            "no chat completion",
        ),
        (
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"a\": 1}"),
            1,
            "expected `choices` with a message, got {\"a\": 1}",
        ),
        (
            Reply::raw(
                "HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\n{\"error\":\"model not found\"}",
            ),
            1,
            "model not found",
        ),
        (Reply::raw("SSH-2.0-OpenSSH_9.2\r\n"), 1, "no HTTP"),
        (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nupstream ok"), 1, "upstream o"),
        (Reply::text(""), 1, "the answer is empty"),
        (Reply::sse(["data: {\"error\":{\"message\":\"exploded\"}}"]), 1, "exploded"),
    ];
    for (reply, status, words) in table {
        let (server, run) = ask([reply]);
        run.status(status).stderr_has(words).stderr_has(&server.url());
        server.finish();
    }
}

/// A stream that ends without its end: cut off after text, else tried again.
#[test]
fn a_cut_stream_is_no_success() {
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"The answer is\"}}]}\n\n";
    let (server, run) = ask([Reply::chunks([(seconds(0.0), piece)])]);
    run.status(4).stdout("The answer is\n").stderr_has("the connection ended before the reply did");
    server.finish();
    let (server, run) = ask([Reply::text("The answer is 4, and there is more of it.").cut()]);
    run.status(4);
    server.finish();
    let (server, run) = ask([
        Reply::nothing().then_close(),
        Reply::nothing().then_close(),
        Reply::nothing().then_close(),
    ]);
    run.status(75).stdout_is_empty();
    assert_eq!(server.finish().len(), 3);
    let (server, run) = ask([Reply::nothing().then_close(), Reply::text("4")]);
    run.success().stdout("4\n");
    server.finish();
}

/// Nonsense or an error in the middle: what came is there, and the cause told.
#[test]
fn a_stream_that_breaks_after_text_is_cut_off() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"The answer\"}}]}";
    for (event, words) in [
        ("data: {broken", "no chat completion"),
        ("data: {\"error\":{\"message\":\"exploded\"}}", "exploded"),
    ] {
        let (server, run) = ask([Reply::sse([text, event])]);
        run.status(4).stdout("The answer\n").stderr_has("the whole answer").stderr_has(words);
        server.finish();
    }
}

/// A server that quotes what it was sent does not give the key away.
#[test]
fn the_key_is_masked_wherever_it_turns_up() {
    let quoting =
        || Reply::from_fn(|request| Reply::error(401, request.header("authorization").unwrap()));
    let (server, run) = ask([quoting()]);
    run.status(77).stderr_has("Bearer [secret]");
    server.finish();
    let (server, run) = ask([Reply::text(crate::harness::CANARY)]);
    run.success().stdout("[secret]\n");
    server.finish();
}

#[test]
fn an_answer_at_the_token_limit_is_cut_off() {
    let (server, run) = ask([Reply::text("The first half").finish_reason("length")]);
    run.status(4).stdout("The first half\n").stderr_has("limit of tokens");
    server.finish();
}

/// R-API-3: silence ends at its limit, and is not asked for twice.
#[test]
fn silence_ends_at_its_limit() {
    let server = Server::start([Reply::nothing().hang()]);
    let run = Test::new().endpoint(&server).env("LLM_TIMEOUT_SECONDS", "1").args(["hi"]).run();
    // Before the first byte the limit is five times as long.
    run.status(75)
        .stderr_has("nothing came for 5 s")
        .took_at_least(seconds(5.0))
        .took_at_most(seconds(6.0));
    assert_eq!(server.finish().len(), 1);
    let server = Server::start([Reply::text("The first half and the second").hang()]);
    let run = Test::new().endpoint(&server).env("LLM_TIMEOUT_SECONDS", "1").args(["hi"]).run();
    run.status(4).stderr_has("nothing came for 1 s").took_at_most(seconds(2.5));
    server.finish();
}

/// R-API-6: no reply exhausts memory.
#[test]
fn endless_replies_are_bounded() {
    let long_line = format!("data: {}", "x".repeat(3 << 20));
    let (server, run) = ask([Reply::raw(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{long_line}"
    ))]);
    run.status(1).stderr_has("too large").memory_at_most(32 << 10);
    server.finish();
    let body = format!("{{\"choices\":\"{}\"}}", "x".repeat(20 << 20));
    let (server, run) = ask([Reply::raw(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ))]);
    run.status(1).stderr_has("too large").memory_at_most(32 << 10);
    server.finish();
}

/// Signals end a waiting request at once, by the signal itself.
#[test]
fn signals_end_a_waiting_request_at_once() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        let server = Server::start([Reply::nothing().hang()]);
        let running = Test::new().endpoint(&server).args(["hi"]).spawn();
        server.wait_for_requests(1);
        let start = Stopwatch::start();
        running.signal(signal);
        running.wait().status(-signal).stdout_is_empty();
        let took = start.elapsed_within(seconds(0.5));
        assert!(took <= seconds(0.5), "{took:?}");
        server.finish();
    }
}

/// A refused `stream_options` is left out from then on.
#[test]
fn stream_options_are_dropped_where_they_are_refused() {
    let (server, run) = ask([Reply::error(400, "Unknown field: stream_options"), Reply::text("4")]);
    run.success().stdout("4\n");
    let requests = server.finish();
    assert!(requests[0].json.get("stream_options").is_some());
    assert!(requests[1].json.get("stream_options").is_none());
}

/// Servers that stream although they were not asked to, and the reverse.
#[test]
fn the_form_of_the_reply_is_seen_from_its_first_byte() {
    let server = Server::start([Reply::text("a").whole(), Reply::text("b").streamed()]);
    let test = Test::new().endpoint(&server);
    test.again().args(["hi"]).run().success().stdout("a\n");
    test.again().args(["--no-stream", "hi"]).run().success().stdout("b\n");
    server.finish();
}

/// A kept connection that the server closes in the moment of its use is no
/// failed try: the request goes over another one at once.
#[test]
fn a_kept_connection_that_is_gone_costs_no_try() {
    let gone = || Reply::nothing().then_close();
    let call = || Reply::calls([("list_skills", "{}")]);
    let server = Server::start([call(), gone(), call(), gone(), Reply::text("4")]);
    let run = Test::new().endpoint(&server).skill("a", "# A").args(["-v", "hi"]).run();
    run.success().stdout("4\n").stderr_lacks("try ").took_at_most(seconds(1.0));
    server.finish();
    // Gone again at once is a failure like any other.
    let server = Server::start([call(), gone(), gone(), gone(), Reply::text("4")]);
    let run = Test::new().endpoint(&server).skill("a", "# A").args(["-v", "hi"]).run();
    run.success().stderr_has("try 2 of 3");
    server.finish();
}

/// Calls of a second choice belong to a reply that says that it calls and does
/// not: some gateways part text and calls so.
#[test]
fn calls_in_another_choice_are_found() {
    let call = r#"{"id":"a","type":"function","function":{"name":"list_skills","arguments":"{}"}}"#;
    let whole = format!(
        r#"{{"choices":[{{"index":0,"finish_reason":"tool_calls","message":{{"content":"I look."}}}},{{"index":1,"finish_reason":"tool_calls","message":{{"tool_calls":[{call}]}}}}]}}"#
    );
    let streamed = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"I look.\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":1,\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"tool_calls\"}}]}}\n\ndata: [DONE]\n\n"
    );
    for body in [whole, streamed] {
        let server = Server::start([Reply::status(200).body(body), Reply::text("done")]);
        let test = Test::new().endpoint(&server).skill("a", "# A");
        let run = test.args(["hi"]).run();
        run.success().stdout("done\n").stderr_has("→ list_skills");
        server.finish();
    }
}

/// A field of the user's is not left out without a word, nor for a wrong value.
#[test]
fn a_refused_field_of_the_users_is_told() {
    let unknown = r#"{"error":{"message":"Unsupported parameter: 'seed'","param":"seed"}}"#;
    let value = r#"{"error":{"message":"Invalid 'seed': above maximum value","param":"seed"}}"#;
    let server = Server::start([
        Reply::status(400).body(unknown),
        Reply::text("4"),
        Reply::status(400).body(value),
    ]);
    let test = Test::new().endpoint(&server).env("LLM_EXTRA_BODY", r#"{"seed": 1}"#);
    let run = test.again().args(["hi"]).run();
    run.success().stderr_has("the endpoint refuses a field of LLM_EXTRA_BODY: `seed` is left out");
    test.args(["hi"]).run().status(1).stderr_has("above maximum value");
    server.finish();
}
