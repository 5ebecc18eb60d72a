//! Endpoints that fail, refuse, stall or send invalid replies: a clear error, the right exit
//! status, and no received text lost.

use crate::harness::{Reply, Server, Stopwatch, Test, seconds};

fn ask(replies: impl IntoIterator<Item = Reply>) -> (Server, crate::harness::Outcome) {
    let server = Server::start(replies);
    let outcome = Test::new().endpoint(&server).args(["hi"]).run();
    (server, outcome)
}

/// Credential errors are distinguished from network errors.
#[test]
fn refused_credentials_exit_77_and_name_the_variable() {
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
fn unreachable_endpoint_exits_75() {
    let server = Server::refusing_connections();
    let run = Test::new().endpoint(&server).args(["-v", "hi"]).run();
    run.status(75)
        .stderr_has("try 3 of 3")
        .stderr_has("Connection refused")
        .stderr_has("start the server, or correct LLM_API_BASE_URL");
    let run = Test::new()
        .endpoint(&server)
        .env("LLM_API_BASE_URL", "https://no-such-host.invalid/v1")
        .args(["hi"])
        .run();
    run.status(75).stderr_has("no-such-host.invalid").stderr_has("check the host name");
}

/// Requests with temporary failures are sent three times.
#[test]
fn temporary_failures_are_retried() {
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
fn retry_after_is_honoured_up_to_a_limit() {
    let (server, run) =
        ask([Reply::error(429, "slow down").header("Retry-After", "1"), Reply::text("4")]);
    run.success().took_at_least(seconds(1.0)).took_at_most(seconds(2.0));
    server.finish();
    let (server, run) = ask([Reply::error(429, "slow down").header("Retry-After", "3600")]);
    run.status(75).stderr_has("retry after 3600 s");
    server.finish();
}

#[test]
fn permanent_failures_are_not_retried() {
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

/// If the path does not exist, one unstreamed request is made, in case only streaming is missing.
#[test]
fn wrong_address_gets_a_suggestion() {
    let page = || Reply::status(404).body("<html><title>nginx</title>");
    let (server, run) = ask([page(), page()]);
    run.status(1)
        .stderr_has("status 404 Not Found: an HTML page, “nginx”")
        .stderr_has("hint: check LLM_API_BASE_URL");
    let streams: Vec<bool> =
        server.finish().iter().map(|request| request.json["stream"] == true).collect();
    assert_eq!(streams, [true, false]);
}

/// An invalid reply is reported with the address and the server's text.
#[test]
fn invalid_reply_is_reported() {
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
            "not a chat completion",
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
        (Reply::raw("SSH-2.0-OpenSSH_9.2\r\n"), 1, "the reply is not HTTP"),
        (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nupstream ok"), 1, "upstream o"),
        (Reply::sse(["data: {\"error\":{\"message\":\"exploded\"}}"]), 1, "exploded"),
    ];
    for (reply, status, words) in table {
        let (server, run) = ask([reply]);
        run.status(status).stderr_has(words).stderr_has(&server.url());
        server.finish();
    }
    // The model is asked once more.
    let (server, run) = ask([Reply::text(""), Reply::text("")]);
    run.status(1).stderr_has("the answer is empty").stderr_has(&server.url());
    server.finish();
}

/// A stream without its end marker: cut off after text, otherwise retried.
#[test]
fn incomplete_stream_is_not_a_success() {
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"The answer is\"}}]}\n\n";
    let (server, run) = ask([Reply::chunks([(seconds(0.0), piece)])]);
    run.status(4)
        .stdout("The answer is\n")
        .stderr_has("the connection closed before the end of the reply");
    server.finish();
    let (server, run) = ask([Reply::text("The answer is 4, and there is more of it.").cut_off()]);
    run.status(4);
    server.finish();
    let (server, run) = ask([
        Reply::empty().then_close(),
        Reply::empty().then_close(),
        Reply::empty().then_close(),
    ]);
    run.status(75).stdout_is_empty();
    assert_eq!(server.finish().len(), 3);
    let (server, run) = ask([Reply::empty().then_close(), Reply::text("4")]);
    run.success().stdout("4\n");
    server.finish();
}

/// Invalid data or an error in the middle: received text is printed and the cause reported.
#[test]
fn stream_broken_after_text_is_cut_off() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"The answer\"}}]}";
    for (event, words) in [
        ("data: {broken", "not a chat completion"),
        ("data: {\"error\":{\"message\":\"exploded\"}}", "exploded"),
    ] {
        let (server, run) = ask([Reply::sse([text, event])]);
        run.status(4).stdout("The answer\n").stderr_has("the whole answer").stderr_has(words);
        server.finish();
    }
}

/// The key is masked if the server quotes it.
#[test]
fn quoted_key_is_masked() {
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
fn answer_at_the_token_limit_is_cut_off() {
    let (server, run) = ask([Reply::text("The first half").finish_reason("length")]);
    run.status(4).stdout("The first half\n").stderr_has("token limit");
    server.finish();
}

/// Silence is limited, and a silent request is not retried.
#[test]
fn silent_server_ends_at_the_limit() {
    let server = Server::start([Reply::empty().hang()]);
    let run = Test::new().endpoint(&server).env("LLM_TIMEOUT_SECONDS", "1").args(["hi"]).run();
    // Before the first byte the limit is five times as long.
    run.status(75)
        .stderr_has("no data arrived for 5 s")
        .took_at_least(seconds(5.0))
        .took_at_most(seconds(6.0));
    assert_eq!(server.finish().len(), 1);
    let server = Server::start([Reply::text("The first half and the second").hang()]);
    let run = Test::new().endpoint(&server).env("LLM_TIMEOUT_SECONDS", "1").args(["hi"]).run();
    run.status(4).stderr_has("no data arrived for 1 s").took_at_most(seconds(2.5));
    server.finish();
}

/// No reply exhausts memory.
#[test]
fn endless_replies_are_limited() {
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

#[test]
fn signals_end_a_waiting_request() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        let server = Server::start([Reply::empty().hang()]);
        let running = Test::new().endpoint(&server).args(["hi"]).spawn();
        server.wait_for_requests(1);
        let start = Stopwatch::start();
        running.signal(signal);
        running.wait().status(-signal).stdout_is_empty();
        let took = start.elapsed_for_limit(seconds(0.5));
        assert!(took <= seconds(0.5), "{took:?}");
        server.finish();
    }
}

/// A refused `stream_options` is omitted from then on.
#[test]
fn refused_stream_options_are_omitted() {
    let (server, run) = ask([Reply::error(400, "Unknown field: stream_options"), Reply::text("4")]);
    run.success().stdout("4\n");
    let requests = server.finish();
    assert!(requests[0].json.get("stream_options").is_some());
    assert!(requests[1].json.get("stream_options").is_none());
}

/// Servers that stream without a request for it, and the reverse.
#[test]
fn reply_format_is_detected_from_the_first_byte() {
    let server = Server::start([Reply::text("a").not_streamed(), Reply::text("b").streamed()]);
    let test = Test::new().endpoint(&server);
    test.next_run().args(["hi"]).run().success().stdout("a\n");
    test.next_run().args(["--no-stream", "hi"]).run().success().stdout("b\n");
    server.finish();
}

/// If the server closes a kept connection as it is used, that does not count as an attempt: the
/// request is sent on a new one.
#[test]
fn closed_kept_connection_costs_no_attempt() {
    let gone = || Reply::empty().then_close();
    let call = || Reply::calls([("list_skills", "{}")]);
    let server = Server::start([call(), gone(), call(), gone(), Reply::text("4")]);
    let run = Test::new().endpoint(&server).skill("a", "# A").args(["-v", "hi"]).run();
    run.success().stdout("4\n").stderr_lacks("try ").took_at_most(seconds(1.0));
    server.finish();
    // A new connection that is closed counts as a failed attempt.
    let server = Server::start([call(), gone(), gone(), gone(), Reply::text("4")]);
    let run = Test::new().endpoint(&server).skill("a", "# A").args(["-v", "hi"]).run();
    run.success().stderr_has("try 2 of 3");
    server.finish();
}

/// Some gateways put text and calls in two choices: calls in the second choice are read if the
/// finish reason of the first announces calls.
#[test]
fn calls_in_another_choice_are_read() {
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

/// A user's field is not omitted silently, nor because of a wrong value.
#[test]
fn refused_user_field_is_reported() {
    let unknown = r#"{"error":{"message":"Unsupported parameter: 'seed'","param":"seed"}}"#;
    let value = r#"{"error":{"message":"Invalid 'seed': above maximum value","param":"seed"}}"#;
    let server = Server::start([
        Reply::status(400).body(unknown),
        Reply::text("4"),
        Reply::status(400).body(value),
    ]);
    let test = Test::new().endpoint(&server).env("LLM_EXTRA_BODY", r#"{"seed": 1}"#);
    let run = test.next_run().args(["hi"]).run();
    run.success().stderr_has("the endpoint refuses a field of LLM_EXTRA_BODY: `seed` is left out");
    test.args(["hi"]).run().status(1).stderr_has("above maximum value");
    server.finish();
}
