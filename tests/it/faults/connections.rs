//! Connections that are refused, break, become silent, or are reused.

use serde_json::json;

use super::fault::{Fault, answers, full_backlog, in_turn, refusing, unsolicited};
use super::streams::{HEAD, TEXT};
use crate::harness::{Reply, Request, seconds};

const FOREVER: usize = usize::MAX;

pub(super) fn table() -> Vec<Fault> {
    let mut table = broken();
    table.extend(silent());
    table.extend(dripping());
    table.extend(keep_alives());
    table.extend(secure());
    table.extend(kept_alive());
    table
}

fn broken() -> Vec<Fault> {
    vec![
        refusing("connection refused").fails_temporarily().says("Connection refused"),
        unsolicited("accepted and closed", Reply::empty().then_close()).fails_temporarily(),
        unsolicited("accepted and reset", Reply::empty().reset()).fails_temporarily(),
        answers("closed after the request", Reply::empty().then_close()).fails_temporarily(),
        answers("reset after the request", Reply::empty().reset()).fails_temporarily(),
        answers("closed in the status line", Reply::raw("HTTP/1.1 20").then_close())
            .fails_temporarily(),
        answers(
            "reset in the headers",
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Type: appl").reset(),
        )
        .fails_temporarily(),
        answers("reset after the headers", Reply::raw(HEAD).reset())
            .fails_temporarily()
            .may_retry_unstreamed(),
        answers("reset in the middle of a stream", Reply::raw(HEAD).then(TEXT).reset())
            .cut_off_after("The answer"),
        answers(
            "reset in the middle of a JSON body",
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"choices\":[{\"mess")
                .reset(),
        )
        .fails_temporarily(),
        answers("an answer without its end", Reply::text("The answer is 4").cut_off())
            .cut_off_after("The answer is 4")
            .but_whole(Fault::fails_temporarily),
        answers(
            "reset in the middle of a refusal",
            Reply::raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 500\r\n\r\nno such field")
                .reset(),
        )
        // The received part of the message is shown.
        .fails_permanently()
        .says("400")
        .says("no such field"),
        unsolicited(
            "refused before the request was read, and reset",
            Reply::raw("HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\ntoo large")
                .reset(),
        )
        // Whether the message arrives before the reset depends on timing.
        .prompt_bytes(2 << 20)
        .fails_temporarily()
        .or_status(1)
        .attempts(1..=3),
        in_turn("one reset, then an answer", |number, _| match number {
            1 => Reply::empty().reset(),
            _ => Reply::text("4"),
        })
        .answers_with("4")
        .attempts(2..=2),
        in_turn("two closes, then an answer", |number, _| match number {
            1 | 2 => Reply::empty().then_close(),
            _ => Reply::text("4"),
        })
        .answers_with("4")
        .attempts(3..=3),
    ]
}

fn silent() -> Vec<Fault> {
    vec![
        unsolicited("accepted and silent", Reply::empty().hang()).stays_silent("5 s"),
        answers("silent after the request", Reply::empty().hang()).stays_silent("5 s"),
        unsolicited("deaf to a long request", Reply::empty().stop_reading())
            .prompt_bytes(3 << 20)
            .stays_silent(""),
        // Local servers send headers before they read the prompt. After the headers, the limit
        // for the first byte (5 s) and the limit for silence (1 s) are therefore both acceptable.
        answers("silent in the headers", Reply::raw("HTTP/1.1 200 OK\r\nConte").hang())
            .status(75)
            .says(" s")
            .within(7.5),
        answers("silent after the headers", Reply::raw(HEAD).hang())
            .status(75)
            .says(" s")
            .within(7.5),
        answers("silent after blank lines", Reply::raw(HEAD).then("\n\n\n").hang())
            .stays_silent("1 s")
            .within(3.5),
        answers("silent in the middle of a stream", Reply::raw(HEAD).then(TEXT).hang())
            .cut_off_after("The answer")
            .says("no data arrived for 1 s")
            .within(3.5),
        answers(
            "silent in the middle of a JSON body",
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"choices\":[{\"mess")
                .hang(),
        )
        .stays_silent("1 s")
        .within(3.5),
        answers(
            "silent in a refusal",
            Reply::raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 500\r\n\r\nno such field")
                .hang(),
        )
        .fails_permanently()
        .says("400")
        .says("no such field"),
        full_backlog("a connection that is not accepted")
            .args(["--timeout", "1"])
            .reaches_a_limit(),
        answers("silent for the whole run", Reply::empty().hang())
            .args(["--timeout", "1"])
            .reaches_a_limit(),
    ]
}

/// Replies that arrive very slowly. A byte every 100 ms never counts as silence, so another limit
/// must end the run.
fn dripping() -> Vec<Fault> {
    let drip = |head: &str, bytes: &str| Reply::raw(head).then_repeat(FOREVER, seconds(0.1), bytes);
    let stopped = |name, reply| answers(name, reply).args(["--timeout", "1"]).reaches_a_limit();
    vec![
        stopped("a drip in the status line", drip("HTTP/1.1 200 ", "a")),
        stopped("a drip in the headers", drip("HTTP/1.1 200 OK\r\nX-Drip: ", "a")),
        stopped("a drip of headers", drip("HTTP/1.1 200 OK\r\n", "X-Drip: a\r\n")),
        stopped("a drip of interim replies", drip("", "HTTP/1.1 102 Processing\r\n\r\n")),
        stopped("a drip in a JSON body", drip("HTTP/1.1 200 OK\r\n\r\n{\"choices\":\"", "a")),
        stopped("a drip of blanks before the body", drip("HTTP/1.1 200 OK\r\n\r\n", "\n")),
        stopped("a drip of comments", drip(HEAD, ": keep-alive\n\n")),
        stopped("a drip in a line of a stream", drip(&format!("{HEAD}data: "), " ")),
        stopped(
            "a drip in a chunk's size",
            drip("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0"),
        ),
        // The text received so far may or may not be shown.
        stopped(
            "a drip of text",
            drip(HEAD, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"),
        )
        .stdout_only('x'),
        stopped("a drip in a refusal", drip("HTTP/1.1 400 Bad Request\r\n\r\n", "a")),
        // Without a run timeout, the head must arrive within the limit for the first byte.
        answers(
            "a drip in the headers, for the default limits",
            drip("HTTP/1.1 200 OK\r\nX-Drip: ", "a"),
        )
        .status(75)
        .within(8.0),
        answers(
            "a drip in a refusal, for the default limits",
            drip("HTTP/1.1 400 Bad Request\r\n\r\nno such field", "."),
        )
        .fails_permanently()
        .says("400")
        .says("no such field")
        .within(8.0),
        answers("comments, then an answer", {
            Reply::raw(HEAD)
                .then_repeat(15, seconds(0.1), ": OPENROUTER PROCESSING\n\n")
                .then(TEXT)
                .then(super::streams::STOP)
                .then_close()
        })
        .answers_with("The answer"),
    ]
}

/// Replies that are nothing but keep-alives for ten times the limit of silence, without a limit of
/// the run; and slow ones, which take longer than that.
fn keep_alives() -> Vec<Fault> {
    let drip = |head: &str, bytes: &str| Reply::raw(head).then_repeat(FOREVER, seconds(0.3), bytes);
    let event =
        |delta: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{{delta}}}}}]}}\n\n");
    let ended = |name, reply| {
        answers(name, reply).status(75).says("only keep-alives arrived for 10 s").within(14.0)
    };
    let slow = |head: String, piece: &str, end: &str| {
        let reply = Reply::raw(head).then_repeat(18, seconds(0.6), piece);
        reply.then(end).then_close()
    };
    let plain = "HTTP/1.1 200 OK\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (x, text) = (event("\"content\":\"x\""), "x".repeat(18));
    let thought = event("\"reasoning_content\":\"x\"");
    let done = format!("{TEXT}{}", super::streams::STOP);
    vec![
        ended("nothing but comments", drip(HEAD, ": keep-alive\n\n")),
        ended("nothing but blank lines in a stream", drip(&format!("{HEAD}: a\n"), "\n")),
        ended("nothing but blanks before the body", drip(plain, "\n")),
        ended("nothing but chunks of blanks", drip(chunked, "1\r\n \r\n")),
        ended("nothing but blanks in a JSON body", drip(&format!("{plain}{{"), " ")),
        ended("nothing but empty text", drip(HEAD, &event("\"content\":\"\""))),
        ended("nothing but blank text", drip(HEAD, &event("\"reasoning\":\"\\n\""))),
        ended("nothing but lists without choices", drip(HEAD, "data: {\"choices\":[]}\n\n")),
        ended("nothing but words", drip(HEAD, "data: ping\n\n")),
        ended(
            "nothing but empty pieces of a call",
            drip(
                HEAD,
                &event(
                    "\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":\"\"}}]",
                ),
            ),
        ),
        answers("text, then nothing but comments", drip(&format!("{HEAD}{TEXT}"), ": a\n\n"))
            .cut_off_after("The answer")
            .says("only keep-alives arrived for 10 s")
            .within(14.0),
        answers("an answer of single letters", slow(HEAD.into(), &x, super::streams::STOP))
            .answers_with(&text)
            .within(14.0),
        answers("an answer after slow thoughts", slow(HEAD.into(), &thought, &done))
            .answers_with("The answer")
            .within(14.0),
        answers(
            "a JSON body of single letters",
            slow(
                format!("{plain}{{\"choices\":[{{\"message\":{{\"content\":\""),
                "x",
                "\"},\"finish_reason\":\"stop\"}]}",
            ),
        )
        .answers_with(&text)
        .within(14.0),
    ]
}

/// An https address where another protocol answers. A retry does not help for a wrong address,
/// but may for a broken connection.
fn secure() -> Vec<Fault> {
    let alert = [0x15, 3, 3, 0, 2, 2, 40];
    vec![
        unsolicited(
            "plain HTTP instead of TLS",
            Reply::raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").hang(),
        )
        .https()
        .fails_permanently(),
        unsolicited("a TLS alert in the handshake", Reply::raw(alert).hang())
            .https()
            .fails_permanently(),
        unsolicited(
            "garbage in the TLS handshake",
            Reply::raw([0x16, 3, 3, 0, 4, 9, 9, 9, 9]).hang(),
        )
        .https()
        .fails_permanently(),
        unsolicited("closed in the TLS handshake", Reply::empty().then_close())
            .https()
            .fails_temporarily(),
        unsolicited("silent in the TLS handshake", Reply::empty().hang())
            .https()
            .args(["--timeout", "1"])
            .reaches_a_limit(),
    ]
}

/// Faults between the two requests of a turn with a tool call.
fn kept_alive() -> Vec<Fault> {
    let call = || Reply::call("list_skills", &json!({}));
    let with_tail = move |tail: String| {
        let body = r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"list_skills","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
        let length = body.len();
        Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}{tail}"))
    };
    let smuggled = r#"{"choices":[{"message":{"content":"smuggled"},"finish_reason":"stop"}]}"#;
    let smuggled =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{smuggled}", smuggled.len());
    vec![
        conversation(
            "a connection that closes between two requests",
            move || call().then_close(),
            |_| Reply::text("4"),
        )
        .answers_with("4")
        .attempts(2..=2),
        conversation(
            "a connection that breaks at the second request",
            call,
            |number| match number {
                2 => Reply::empty().then_close(),
                _ => Reply::text("4"),
            },
        )
        .answers_with("4")
        .attempts(3..=3),
        conversation(
            "a connection that is reset at the second request",
            call,
            |number| match number {
                2 => Reply::empty().reset(),
                _ => Reply::text("4"),
            },
        )
        .answers_with("4")
        .attempts(3..=3),
        conversation(
            "garbage after a reply",
            move || with_tail("garbage".into()),
            |_| Reply::text("4"),
        )
        .answers_with("4")
        .attempts(2..=2),
        // An unsolicited reply does not answer the next request.
        conversation(
            "a second reply after the first",
            move || with_tail(smuggled.clone()),
            |_| Reply::text("4"),
        )
        .answers_with("4")
        .attempts(2..=2),
        conversation("overload at the second request", call, |number| match number {
            2 => Reply::error(503, "busy").header("Retry-After", "0"),
            _ => Reply::text("4"),
        })
        .answers_with("4")
        .attempts(3..=3),
        conversation("refused at the second request", call, |_| Reply::error(400, "no tools here"))
            .fails_permanently()
            .attempts(2..=2)
            .says("no tools here"),
        conversation("cut at the second request", call, |_| {
            Reply::raw(HEAD).then(TEXT).then_close()
        })
        .cut_off_after("The answer")
        .attempts(2..=2),
        conversation("connections refused at the second request", call, |_| {
            Reply::empty().then_close()
        })
        .fails_temporarily()
        .attempts(5..=5),
    ]
}

/// A fault that sends `call` for the question, and `then` for every request that ends with a tool
/// result.
fn conversation(
    name: &'static str,
    call: impl Fn() -> Reply + Send + Sync + 'static,
    then: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> Fault {
    in_turn(name, move |number, request| if has_result(request) { then(number) } else { call() })
}

/// Whether the last message is a tool result.
pub(super) fn has_result(request: &Request) -> bool {
    request.last_message()["role"] == "tool"
}
