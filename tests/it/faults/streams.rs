//! Event streams that break, exceed a limit, or have unusual framing.

use std::time::Duration;

use serde_json::json;

use super::fault::{Fault, answers, in_turn};
use crate::harness::Reply;

const FOREVER: usize = usize::MAX;

/// The head of a stream that ends with the connection.
pub(super) const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
/// An event with a part of an answer.
pub(super) const TEXT: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"The answer\"}}]}\n\n";
/// The finish reason, which proves that the answer is complete.
pub(super) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
/// The end marker of a stream.
pub(super) const DONE: &str = "data: [DONE]\n\n";

pub(super) fn table() -> Vec<Fault> {
    let mut table = ends();
    table.extend(framings());
    table.extend(breaks());
    table.extend(errors());
    table.extend(floods());
    table
}

/// These bytes, then the end of the connection.
pub(super) fn stream(bytes: impl Into<Vec<u8>>) -> Reply {
    Reply::raw(HEAD).then(bytes).then_close()
}

fn with_status(reason: &str) -> String {
    let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

/// Ends of streams. Only a finish reason or `[DONE]` ends an answer properly.
fn ends() -> Vec<Fault> {
    let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let thought = "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm.\"}}]}\n\n";
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n";
    let blank = "data: {\"choices\":[{\"delta\":{\"content\":\" \\n\"}}]}\n\n";
    let empty = |name, bytes: String| {
        answers(name, stream(bytes))
            .fails_permanently()
            .may_retry_unstreamed()
            .asks_again()
            .says("empty")
    };
    let unsaid = |name, bytes: String| {
        answers(name, stream(bytes))
            .fails_permanently()
            .says("expected `choices` with a message, got ")
    };
    vec![
        answers("a finish reason and no [DONE]", stream(format!("{TEXT}{STOP}")))
            .answers_with("The answer"),
        answers("[DONE] and no finish reason", stream(format!("{TEXT}{DONE}")))
            .answers_with("The answer"),
        answers("text and no end", stream(TEXT)).cut_off_after("The answer"),
        answers("text and half an event", stream(format!("{TEXT}{}", &STOP[..30])))
            .cut_off_after("The answer"),
        answers("text and usage and no end", stream(format!("{TEXT}{usage}")))
            .cut_off_after("The answer"),
        answers("a role and no end", stream(role)).fails_temporarily().may_retry_unstreamed(),
        answers("reasoning and no end", stream(thought)).fails_temporarily().may_retry_unstreamed(),
        answers("comments and no end", stream(": hello\n\n: hello\n\n"))
            .fails_temporarily()
            .may_retry_unstreamed(),
        unsaid("[DONE] alone", DONE.into()),
        empty("a finish reason alone", format!("{STOP}{DONE}")),
        empty("a thought and an end", format!("{thought}{STOP}{DONE}")),
        unsaid("usage alone", format!("{usage}{DONE}")),
        // An answer of blanks counts as empty.
        empty("blanks and an end", format!("{blank}{STOP}{DONE}")).stdout_blank(),
        answers("text after [DONE]", stream(format!("{TEXT}{STOP}{DONE}{TEXT}")))
            .answers_with("The answer"),
        answers("the token limit", stream(format!("{TEXT}{}", with_status("length"))))
            .cut_off_after("The answer"),
        answers("the token limit before any text", stream(with_status("length") + DONE))
            .cut_off_after("")
            .stdout_blank()
            .may_retry_unstreamed(),
        answers(
            "the content filter after text",
            stream(format!("{TEXT}{}", with_status("content_filter"))),
        )
        .fails_permanently()
        .stdout("The answer\n")
        .need_not_name_address()
        .says("filter"),
        answers("the content filter before any text", stream(with_status("content_filter")))
            .fails_permanently()
            .may_retry_unstreamed()
            .says("filter"),
        answers("an unknown finish reason", stream(format!("{TEXT}{}", with_status("end_turn"))))
            .answers_with("The answer"),
        answers(
            "a finish reason that says error",
            stream(format!("{TEXT}{}", with_status("error"))),
        )
        .cut_off_after("The answer"),
        answers("a finish reason that says error, alone", stream(with_status("error")))
            .fails_temporarily()
            .may_retry_unstreamed(),
        in_turn("an end before any text, then an answer", |number, _| match number {
            1 => stream(": hello\n\n"),
            _ => Reply::text("4"),
        })
        .answers_with("4")
        .attempts(2..=2),
    ]
}

/// Equivalent forms of the framing.
fn framings() -> Vec<Fault> {
    let same = |name, bytes: Vec<u8>| answers(name, stream(bytes)).answers_with("The answer");
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
        // Ignored.
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
        .answers_with("The caf\u{fffd}"),
        answers("a surrogate pair over two events", {
            let piece = |text: &str| {
                format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
            };
            stream(piece("a\\ud83d") + &piece("\\ude00b") + STOP)
        })
        // Half a character in each event is invalid; a client may still join them.
        .answers_with("a\u{fffd}\u{fffd}b"),
    ]
}

/// Invalid data in the middle: after text the answer is cut off, before it there is a protocol
/// error.
fn breaks() -> Vec<Fault> {
    let broken = |name: [&'static str; 2], event: &str| {
        [
            answers(name[0], stream(format!("{event}{STOP}{DONE}"))).fails_permanently(),
            answers(name[1], stream(format!("{TEXT}{event}{STOP}{DONE}")))
                .cut_off_after("The answer"),
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
        answers("raw NULs in an event", stream(format!("{nul}{STOP}{DONE}")))
            .answers_with("a\u{fffd}b"),
    );
    table.extend(broken(
        ["choices of another type", "choices of another type behind text"],
        "data: {\"choices\":\"hi\"}\n\n",
    ));
    table
}

/// Error objects in a stream: their message is reported, and temporary errors are retried.
fn errors() -> Vec<Fault> {
    let event = |code: &str| {
        format!("data: {{\"error\":{{\"message\":\"the words\",\"code\":{code}}}}}\n\n")
    };
    vec![
        answers("an error as the first event", stream(event("null")))
            .fails_permanently()
            .says("the words"),
        answers("an error that is a 400 as the first event", stream(event("400")))
            .fails_permanently()
            .says("the words"),
        answers("overload as the first event", stream(event("503")))
            .fails_temporarily()
            .says("the words"),
        answers("a rate limit as the first event", stream(event("\"rate_limit_exceeded\"")))
            .fails_temporarily()
            .says("the words"),
        answers("an error after text", stream(format!("{TEXT}{}", event("null"))))
            .cut_off_after("The answer")
            .says("the words"),
        answers("overload after text", stream(format!("{TEXT}{}", event("503"))))
            .cut_off_after("The answer")
            .says("the words"),
        answers("an error without data:", stream("{\"error\":{\"message\":\"the words\"}}\n"))
            .fails_permanently()
            .says("the words"),
        answers(
            "an error with an event's name",
            stream(format!("event: error\n{}", event("null"))),
        )
        .fails_permanently()
        .says("the words"),
        answers("a page instead of the stream", stream("<html><title>Sign in</title></html>"))
            .fails_permanently()
            .says("Sign in"),
        in_turn("overload as the first event, then an answer", move |number, _| match number {
            1 => stream(event("503")),
            _ => Reply::text("4"),
        })
        .answers_with("4")
        .attempts(2..=2),
    ]
}

/// Excessive data. Limits: 1 MiB per line, 8 MiB per event, 64 MiB per response.
fn floods() -> Vec<Fault> {
    let flood =
        |bytes: String, times: usize| Reply::raw(HEAD).then_repeat(times, Duration::ZERO, bytes);
    let piece = |field: &str, length: usize| {
        let text = "x".repeat(length);
        format!("data: {{\"choices\":[{{\"delta\":{{\"{field}\":\"{text}\"}}}}]}}\n\n")
    };
    let large = |name, reply: Reply| answers(name, reply).fails_permanently().says("too large");
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
        .cut_off_after("")
        .stdout_only('x')
        .says("too large")
        .within(10.0),
        answers("text without end", flood(piece("content", 60_000), FOREVER))
            .cut_off_after("")
            .stdout_only('x')
            .says("too large")
            .within(10.0),
        large("70 MB of thoughts", {
            flood(piece("reasoning_content", 1000).repeat(64), 1100).then(STOP).then_close()
        })
        .within(10.0),
        // Nothing of it is stored, but reading it must end.
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
        .cut_off_after("The answer")
        .says("too large"),
        // It ends at `[DONE]` without waiting for more.
        answers("a stream that does not end after [DONE]", {
            Reply::raw(HEAD).then(format!("{TEXT}{STOP}{DONE}")).then_repeat(
                FOREVER,
                Duration::ZERO,
                ": bye\n\n".repeat(1000),
            )
        })
        .answers_with("The answer"),
        answers("100,000 events of one letter", stream(piece("content", 1).repeat(100_000) + STOP))
            .answers_with(&"x".repeat(100_000))
            .within(8.0),
    ]
}
