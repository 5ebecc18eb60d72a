//! Streams of events that break, overflow, or are framed in their own way.

use std::time::Duration;

use serde_json::json;

use super::fault::{Fault, answers, in_turn};
use crate::harness::Reply;

const FOREVER: usize = usize::MAX;

/// The head of a stream that ends with the connection.
pub(super) const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
/// A piece of an answer.
pub(super) const TEXT: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"The answer\"}}]}\n\n";
/// What proves it whole.
pub(super) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
/// The end of a stream.
pub(super) const DONE: &str = "data: [DONE]\n\n";

pub(super) fn table() -> Vec<Fault> {
    let mut table = ends();
    table.extend(framings());
    table.extend(breaks());
    table.extend(errors());
    table.extend(floods());
    table
}

/// These bytes, and the end of the connection.
pub(super) fn stream(bytes: impl Into<Vec<u8>>) -> Reply {
    Reply::raw(HEAD).then(bytes).then_close()
}

fn with_status(reason: &str) -> String {
    let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

/// Whether the end that comes is one: a finish reason or `[DONE]` is.
fn ends() -> Vec<Fault> {
    let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let thought = "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm.\"}}]}\n\n";
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n";
    let blank = "data: {\"choices\":[{\"delta\":{\"content\":\" \\n\"}}]}\n\n";
    let empty = |name, bytes: String| {
        answers(name, stream(bytes)).fails_for_good().may_ask_again_whole().says("empty")
    };
    let unsaid = |name, bytes: String| {
        answers(name, stream(bytes))
            .fails_for_good()
            .says("expected `choices` with a message, got ")
    };
    vec![
        answers("a finish reason and no [DONE]", stream(format!("{TEXT}{STOP}")))
            .gives("The answer"),
        answers("[DONE] and no finish reason", stream(format!("{TEXT}{DONE}"))).gives("The answer"),
        answers("text and no end", stream(TEXT)).cuts_off("The answer"),
        answers("text and half an event", stream(format!("{TEXT}{}", &STOP[..30])))
            .cuts_off("The answer"),
        answers("text and usage and no end", stream(format!("{TEXT}{usage}")))
            .cuts_off("The answer"),
        answers("a role and no end", stream(role)).fails_for_now().may_ask_again_whole(),
        answers("a thought and no end", stream(thought)).fails_for_now().may_ask_again_whole(),
        answers("comments and no end", stream(": hello\n\n: hello\n\n"))
            .fails_for_now()
            .may_ask_again_whole(),
        unsaid("[DONE] alone", DONE.into()),
        empty("a finish reason alone", format!("{STOP}{DONE}")),
        empty("a thought and an end", format!("{thought}{STOP}{DONE}")),
        unsaid("usage alone", format!("{usage}{DONE}")),
        // Nobody can use an answer of blanks: it is an empty one.
        empty("blanks and an end", format!("{blank}{STOP}{DONE}")).stdout_blank(),
        answers("text behind [DONE]", stream(format!("{TEXT}{STOP}{DONE}{TEXT}")))
            .gives("The answer"),
        answers("the token limit", stream(format!("{TEXT}{}", with_status("length"))))
            .cuts_off("The answer"),
        answers("the token limit before any text", stream(with_status("length") + DONE))
            .cuts_off("")
            .stdout_blank()
            .may_ask_again_whole(),
        answers(
            "the content filter behind text",
            stream(format!("{TEXT}{}", with_status("content_filter"))),
        )
        .fails_for_good()
        .stdout("The answer\n")
        .names_no_address()
        .says("filter"),
        answers("the content filter before any text", stream(with_status("content_filter")))
            .fails_for_good()
            .may_ask_again_whole()
            .says("filter"),
        answers("an unknown finish reason", stream(format!("{TEXT}{}", with_status("end_turn"))))
            .gives("The answer"),
        answers(
            "a finish reason that says error",
            stream(format!("{TEXT}{}", with_status("error"))),
        )
        .cuts_off("The answer"),
        answers("a finish reason that says error, alone", stream(with_status("error")))
            .fails_for_now()
            .may_ask_again_whole(),
        in_turn("no end before any text, then an answer", |number, _| match number {
            1 => stream(": hello\n\n"),
            _ => Reply::text("4"),
        })
        .gives("4")
        .tries(2..=2),
    ]
}

/// Forms of the framing that all mean the same.
fn framings() -> Vec<Fault> {
    let same = |name, bytes: Vec<u8>| answers(name, stream(bytes)).gives("The answer");
    let all = format!("{TEXT}{STOP}{DONE}");
    vec![
        same("lines that end with CR LF", all.replace('\n', "\r\n").into()),
        same("lines that end with CR", all.replace('\n', "\r").into()),
        same("no blank after the colon", all.replace("data: ", "data:").into()),
        same(
            "events with names and numbers",
            all.replace("data: {", "event: x\nid: 7\nretry: 1\ndata: {").into(),
        ),
        same("comments between the events", all.replace("data: ", ": keep-alive\n\ndata: ").into()),
        same("comments that were wrapped again", format!("data: : OPENROUTER\n\n{all}").into()),
        // Says nothing, and is in nobody's way.
        same("a null before the events", format!("data: null\n\n{all}").into()),
        same("an empty object before the events", format!("data: {{}}\n\n{all}").into()),
        same("an event on several lines", all.replace("[{\"index\"", "\ndata: [{\"index\"").into()),
        same(
            "two events on one line",
            format!("data: {}{}\n\n{DONE}", TEXT[6..].trim(), STOP[6..].trim()).into(),
        ),
        same("NULs between the events", all.replace("\n\n", "\n\n\0\0\n").into()),
        same("bytes between the events", {
            let mut bytes = TEXT.as_bytes().to_vec();
            bytes.extend_from_slice(b"\xff\xfe: x\n\n");
            bytes.extend_from_slice(STOP.as_bytes());
            bytes
        }),
        answers("invalid UTF-8 in an event", {
            stream(
                [
                    TEXT.replace("answer", "caf")
                        .trim_end_matches(['"', '}', ']', '\n'])
                        .as_bytes(),
                    b"\xe9\"}}]}\n\n",
                    STOP.as_bytes(),
                ]
                .concat(),
            )
        })
        .gives("The caf\u{fffd}"),
        answers("a surrogate pair over two events", {
            let piece = |text: &str| {
                format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
            };
            stream(piece("a\\ud83d") + &piece("\\ude00b") + STOP)
        })
        // Half of it in each event is no character; a client may put them together.
        .gives("a\u{fffd}\u{fffd}b"),
    ]
}

/// Nonsense in the middle: behind text the answer is cut off, before it the
/// protocol is broken.
fn breaks() -> Vec<Fault> {
    let broken = |name: [&'static str; 2], event: &str| {
        [
            answers(name[0], stream(format!("{event}{STOP}{DONE}"))).fails_for_good(),
            answers(name[1], stream(format!("{TEXT}{event}{STOP}{DONE}"))).cuts_off("The answer"),
        ]
    };
    let deep = format!("data: {}\n\n", "[".repeat(100_000));
    let mut table = Vec::new();
    table.extend(broken(
        ["half an event", "half an event behind text"],
        "data: {\"choices\":[{\"del\n\n",
    ));
    table.extend(broken(
        ["words as an event", "words as an event behind text"],
        "data: upstream is gone\n\n",
    ));
    table.extend(broken(
        ["a page as an event", "a page as an event behind text"],
        "data: <html>502</html>\n\n",
    ));
    table.extend(broken(
        ["a list as an event", "a list as an event behind text"],
        "data: [1,2]\n\n",
    ));
    table.extend(broken(["depth as an event", "depth as an event behind text"], &deep));
    let nul = "data: {\"choices\":[{\"delta\":{\"content\":\"a\0b\"}}]}\n\n";
    table.push(
        answers("raw NULs in an event", stream(format!("{nul}{STOP}{DONE}"))).gives("a\u{fffd}b"),
    );
    table.extend(broken(
        ["choices of another type", "choices of another type behind text"],
        "data: {\"choices\":\"hi\"}\n\n",
    ));
    table
}

/// An error object in a stream: its own words, and again where they say that
/// it may be over soon.
fn errors() -> Vec<Fault> {
    let event = |code: &str| {
        format!("data: {{\"error\":{{\"message\":\"the words\",\"code\":{code}}}}}\n\n")
    };
    vec![
        answers("an error as the first event", stream(event("null")))
            .fails_for_good()
            .says("the words"),
        answers("an error that is a 400 as the first event", stream(event("400")))
            .fails_for_good()
            .says("the words"),
        answers("overload as the first event", stream(event("503")))
            .fails_for_now()
            .says("the words"),
        answers("a rate limit as the first event", stream(event("\"rate_limit_exceeded\"")))
            .fails_for_now()
            .says("the words"),
        answers("an error behind text", stream(format!("{TEXT}{}", event("null"))))
            .cuts_off("The answer")
            .says("the words"),
        answers("overload behind text", stream(format!("{TEXT}{}", event("503"))))
            .cuts_off("The answer")
            .says("the words"),
        answers("an error without data:", stream("{\"error\":{\"message\":\"the words\"}}\n"))
            .fails_for_good()
            .says("the words"),
        answers(
            "an error with an event's name",
            stream(format!("event: error\n{}", event("null"))),
        )
        .fails_for_good()
        .says("the words"),
        answers("a page instead of the stream", stream("<html><title>Sign in</title></html>"))
            .fails_for_good()
            .says("Sign in"),
        in_turn("overload as the first event, then an answer", move |number, _| match number {
            1 => stream(event("503")),
            _ => Reply::text("4"),
        })
        .gives("4")
        .tries(2..=2),
    ]
}

/// More than anybody can mean. Bounds: a line 1 MiB, an event 8 MiB, a
/// response 64 MiB (reliability.md).
fn floods() -> Vec<Fault> {
    let flood =
        |bytes: String, times: usize| Reply::raw(HEAD).then_repeat(times, Duration::ZERO, bytes);
    let piece = |field: &str, length: usize| {
        let text = "x".repeat(length);
        format!("data: {{\"choices\":[{{\"delta\":{{\"{field}\":\"{text}\"}}}}]}}\n\n")
    };
    let large = |name, reply: Reply| answers(name, reply).fails_for_good().says("too large");
    vec![
        large("a line of 2 MB", stream(piece("content", 2 << 20))),
        large("a comment of 2 MB", stream(format!(": {}\n\n{TEXT}{STOP}", "x".repeat(2 << 20)))),
        large("an event of 10 MB in many lines", {
            Reply::raw(HEAD)
                .then("data: {\"choices\":[\n")
                .then_repeat(10_000, Duration::ZERO, format!("data: {}\n", " ".repeat(1000)))
                .then("data: ]}\n\n")
                .then_close()
        }),
        large(
            "a stream without line feeds",
            Reply::raw(HEAD).then("data: ").then_repeat(
                FOREVER,
                Duration::ZERO,
                "x".repeat(1 << 16),
            ),
        ),
        large("an event without end", flood(format!("data: {}\n", "x".repeat(1000)), FOREVER)),
        answers("70 MB of text", {
            flood(piece("content", 1000).repeat(64), 1100).then(STOP).then_close()
        })
        .cuts_off("")
        .stdout_only('x')
        .says("too large")
        .within(10.0),
        answers("text without end", flood(piece("content", 60_000), FOREVER))
            .cuts_off("")
            .stdout_only('x')
            .says("too large")
            .within(10.0),
        large("70 MB of thoughts", {
            flood(piece("reasoning_content", 1000).repeat(64), 1100).then(STOP).then_close()
        })
        .within(10.0),
        // Nothing of it is kept, but nobody needs to read it for ever.
        large(
            "70 MB of comments",
            flood(format!(": {}\n\n", "x".repeat(1000)).repeat(64), 1100)
                .then(TEXT)
                .then(STOP)
                .then_close(),
        )
        .within(20.0),
        large(
            "70 MB of events that say nothing",
            flood(format!("data: {{\"x\":\"{}\"}}\n\n", "x".repeat(1000)).repeat(64), 1100)
                .then(TEXT)
                .then(STOP)
                .then_close(),
        )
        .within(20.0),
        answers(
            "text, then a line of 2 MB",
            stream(format!("{TEXT}{}", piece("content", 2 << 20))),
        )
        .cuts_off("The answer")
        .says("too large"),
        // It ends at `[DONE]`: what follows is not waited for.
        answers("a stream that does not end behind [DONE]", {
            Reply::raw(HEAD).then(format!("{TEXT}{STOP}{DONE}")).then_repeat(
                FOREVER,
                Duration::ZERO,
                ": bye\n\n".repeat(1000),
            )
        })
        .gives("The answer"),
        answers("100,000 events of one letter", stream(piece("content", 1).repeat(100_000) + STOP))
            .gives(&"x".repeat(100_000))
            .within(8.0),
    ]
}
