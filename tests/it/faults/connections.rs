//! Connections that are refused, break, or fall silent, and those that live
//! longer than one reply.

use serde_json::json;

use super::fault::{Fault, answers, full, in_turn, nobody, unasked};
use super::streams::{HEAD, TEXT};
use crate::harness::{Reply, Request, seconds};

const FOREVER: usize = usize::MAX;

pub(super) fn table() -> Vec<Fault> {
    let mut table = broken();
    table.extend(silent());
    table.extend(dripping());
    table.extend(secure());
    table.extend(kept_alive());
    table
}

fn broken() -> Vec<Fault> {
    vec![
        nobody("connection refused").fails_for_now().says("Connection refused"),
        unasked("accepted and closed", Reply::nothing().then_close()).fails_for_now(),
        unasked("accepted and reset", Reply::nothing().reset()).fails_for_now(),
        answers("closed after the request", Reply::nothing().then_close()).fails_for_now(),
        answers("reset after the request", Reply::nothing().reset()).fails_for_now(),
        answers("closed in the status line", Reply::raw("HTTP/1.1 20").then_close())
            .fails_for_now(),
        answers(
            "reset in the headers",
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Type: appl").reset(),
        )
        .fails_for_now(),
        answers("reset behind the headers", Reply::raw(HEAD).reset())
            .fails_for_now()
            .may_ask_again_whole(),
        answers("reset in the middle of a stream", Reply::raw(HEAD).then(TEXT).reset())
            .cuts_off("The answer"),
        answers(
            "reset in the middle of a JSON body",
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"choices\":[{\"mess")
                .reset(),
        )
        .fails_for_now(),
        answers("an answer without its end", Reply::text("The answer is 4").cut())
            .cuts_off("The answer is 4")
            .but_whole(Fault::fails_for_now),
        answers(
            "reset in the middle of a refusal",
            Reply::raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 500\r\n\r\nno such field")
                .reset(),
        )
        // What came of the words serves.
        .fails_for_good()
        .says("400")
        .says("no such field"),
        unasked(
            "refused before the request was read, and reset",
            Reply::raw("HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\ntoo large")
                .reset(),
        )
        // Whether the words arrive before the reset is a matter of luck.
        .prompt_bytes(2 << 20)
        .fails_for_now()
        .or_status(1)
        .tries(1..=3),
        in_turn("one reset, then an answer", |number, _| match number {
            1 => Reply::nothing().reset(),
            _ => Reply::text("4"),
        })
        .gives("4")
        .tries(2..=2),
        in_turn("two closes, then an answer", |number, _| match number {
            1 | 2 => Reply::nothing().then_close(),
            _ => Reply::text("4"),
        })
        .gives("4")
        .tries(3..=3),
    ]
}

fn silent() -> Vec<Fault> {
    vec![
        unasked("accepted and silent", Reply::nothing().hang()).stays_silent("5 s"),
        answers("silent after the request", Reply::nothing().hang()).stays_silent("5 s"),
        unasked("deaf to a long request", Reply::nothing().deaf())
            .prompt_bytes(3 << 20)
            .stays_silent(""),
        // Local servers send their headers and then read the prompt, so either
        // limit is right behind the headers.
        answers("silent in the headers", Reply::raw("HTTP/1.1 200 OK\r\nConte").hang())
            .status(75)
            .says(" s")
            .within(7.5),
        answers("silent behind the headers", Reply::raw(HEAD).hang())
            .status(75)
            .says(" s")
            .within(7.5),
        answers("silent behind blank lines", Reply::raw(HEAD).then("\n\n\n").hang())
            .stays_silent("1 s")
            .within(3.5),
        answers("silent in the middle of a stream", Reply::raw(HEAD).then(TEXT).hang())
            .cuts_off("The answer")
            .says("nothing came for 1 s")
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
        .fails_for_good()
        .says("400")
        .says("no such field"),
        full("a connection that nobody takes").args(["--timeout", "1"]).meets_a_limit(),
        answers("silent for the whole run", Reply::nothing().hang())
            .args(["--timeout", "1"])
            .meets_a_limit(),
    ]
}

/// A byte every 100 ms never is silence: the limit of the whole run ends it.
fn dripping() -> Vec<Fault> {
    let drip = |head: &str, bytes: &str| Reply::raw(head).then_repeat(FOREVER, seconds(0.1), bytes);
    let stopped = |name, reply| answers(name, reply).args(["--timeout", "1"]).meets_a_limit();
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
        // Whether what came so far is shown is left open; nothing else is.
        stopped(
            "a drip of text",
            drip(HEAD, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"),
        )
        .stdout_only('x'),
        stopped("a drip in a refusal", drip("HTTP/1.1 400 Bad Request\r\n\r\n", "a")),
        // Without a limit of the whole run, a head is due as early as a first byte.
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
        .fails_for_good()
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
        .gives("The answer"),
    ]
}

/// An https address where something else answers. A wrong address is not put
/// right by another try; a connection that breaks may be.
fn secure() -> Vec<Fault> {
    let alert = [0x15, 3, 3, 0, 2, 2, 40];
    vec![
        unasked(
            "plain HTTP where TLS is due",
            Reply::raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").hang(),
        )
        .https()
        .fails_for_good(),
        unasked("a TLS alert in the handshake", Reply::raw(alert).hang()).https().fails_for_good(),
        unasked("garbage in the TLS handshake", Reply::raw([0x16, 3, 3, 0, 4, 9, 9, 9, 9]).hang())
            .https()
            .fails_for_good(),
        unasked("closed in the TLS handshake", Reply::nothing().then_close())
            .https()
            .fails_for_now(),
        unasked("silent in the TLS handshake", Reply::nothing().hang())
            .https()
            .args(["--timeout", "1"])
            .meets_a_limit(),
    ]
}

/// Faults between the two requests of a conversation with a tool.
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
        .gives("4")
        .tries(2..=2),
        conversation(
            "a connection that breaks at the second request",
            call,
            |number| match number {
                2 => Reply::nothing().then_close(),
                _ => Reply::text("4"),
            },
        )
        .gives("4")
        .tries(3..=3),
        conversation(
            "a connection that is reset at the second request",
            call,
            |number| match number {
                2 => Reply::nothing().reset(),
                _ => Reply::text("4"),
            },
        )
        .gives("4")
        .tries(3..=3),
        conversation(
            "garbage behind a reply",
            move || with_tail("garbage".into()),
            |_| Reply::text("4"),
        )
        .gives("4")
        .tries(2..=2),
        // What nobody asked for answers nothing.
        conversation(
            "a second reply behind the first",
            move || with_tail(smuggled.clone()),
            |_| Reply::text("4"),
        )
        .gives("4")
        .tries(2..=2),
        conversation("overload at the second request", call, |number| match number {
            2 => Reply::error(503, "busy").header("Retry-After", "0"),
            _ => Reply::text("4"),
        })
        .gives("4")
        .tries(3..=3),
        conversation("refused at the second request", call, |_| Reply::error(400, "no tools here"))
            .fails_for_good()
            .tries(2..=2)
            .says("no tools here"),
        conversation("cut at the second request", call, |_| {
            Reply::raw(HEAD).then(TEXT).then_close()
        })
        .cuts_off("The answer")
        .tries(2..=2),
        conversation("gone for good at the second request", call, |_| {
            Reply::nothing().then_close()
        })
        .fails_for_now()
        .tries(5..=5),
    ]
}

/// `call` answers the question, `then` every request that brings a result.
fn conversation(
    name: &'static str,
    call: impl Fn() -> Reply + Send + Sync + 'static,
    then: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> Fault {
    in_turn(name, move |number, request| if has_result(request) { then(number) } else { call() })
}

/// Whether a tool's result is what the model is asked about.
pub(super) fn has_result(request: &Request) -> bool {
    request.last_message()["role"] == "tool"
}
