//! Bodies with status 200 that are no answer, or one in disguise.

use std::time::Duration;

use super::fault::{Fault, answers, in_turn};
use super::streams::{STOP, TEXT};
use crate::harness::Reply;

const ANSWER: &str = r#"{"choices":[{"message":{"content":"The answer"},"finish_reason":"stop"}]}"#;

pub(super) fn table() -> Vec<Fault> {
    let mut table = nothing();
    table.extend(other_json());
    table.extend(no_json());
    table.extend(broken_json());
    table.extend(too_large());
    table.extend(errors());
    table.extend(encodings());
    table
}

fn body(bytes: impl Into<Vec<u8>>) -> Reply {
    Reply::status(200).body(bytes)
}

/// Nothing where an answer is due: as a stream that ends before anything was
/// written (interface.md, 4).
fn nothing() -> Vec<Fault> {
    let nothing =
        |name, bytes: &str| answers(name, body(bytes)).fails_for_now().may_ask_again_whole();
    vec![
        nothing("an empty body", ""),
        nothing("a body of blanks", " \r\n\t\n  "),
        answers("an empty body in no chunk", Reply::chunks(Vec::<(Duration, &str)>::new()))
            .fails_for_now()
            .may_ask_again_whole(),
        answers("an empty body that ends with the connection", {
            Reply::raw("HTTP/1.1 200 OK\r\n\r\n").then_close()
        })
        .fails_for_now()
        .may_ask_again_whole(),
    ]
}

/// JSON of another form. It will be the same again.
fn other_json() -> Vec<Fault> {
    let other = |name, bytes: &str| answers(name, body(bytes)).fails_for_good();
    vec![
        other("null", "null"),
        other("true", "true"),
        other("a number", "42"),
        other("a string", "\"those are the words\"").says("those are the words"),
        other("an empty list", "[]"),
        other("an empty object", "{}"),
        other("an object of another API", r#"{"object":"response","output":[{"type":"message"}]}"#),
        other(
            "Anthropic's own form",
            r#"{"type":"message","content":[{"type":"text","text":"hi"}]}"#,
        ),
        other(
            "Ollama's own form",
            "{\"message\":{\"content\":\"hi\"},\"done\":false}\n{\"done\":true}\n",
        ),
        other(
            "a completion of the old form",
            r#"{"choices":[{"text":"hi","finish_reason":"stop"}]}"#,
        ),
        other("no choices", r#"{"choices":[]}"#),
        other("choices that are null", r#"{"choices":null,"usage":{"prompt_tokens":1}}"#),
        other("choices that are an object", r#"{"choices":{"message":{"content":"hi"}}}"#),
        other("a choice that is null", r#"{"choices":[null]}"#),
        other("a choice that is text", r#"{"choices":["hi"]}"#),
        other("a message that is null", r#"{"choices":[{"message":null,"finish_reason":"stop"}]}"#)
            .may_ask_again_whole(),
        other("a message that is text", r#"{"choices":[{"message":"hi","finish_reason":"stop"}]}"#),
    ]
}

fn no_json() -> Vec<Fault> {
    let page = "\n<!DOCTYPE html><html><head><title>Sign in to Wi-Fi</title></head></html>";
    vec![
        answers("a page with 200", body(page)).fails_for_good().says("Sign in to Wi-Fi"),
        answers("plain text with 200", body("upstream is fine"))
            .fails_for_good()
            .says("upstream is fine"),
        // Its own words serve better than that it is no page.
        answers(
            "XML with 200",
            body("<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code></Error>"),
        )
        .fails_for_good()
        .says("NoSuchBucket"),
        answers("YAML with 200", body("choices:\n- message:\n    content: hi\n"))
            .fails_for_good()
            .says("choices:"),
        answers("bytes with 200", body((0..=255).cycle().take(5000).collect::<Vec<u8>>()))
            .fails_for_good(),
        answers("NULs with 200", body(vec![0; 5000])).fails_for_good().may_ask_again_whole(),
        answers("text that colours the terminal", body("\u{1b}[31mred\u{1b}[0m words\u{7}"))
            .fails_for_good()
            .says("words"),
    ]
}

fn broken_json() -> Vec<Fault> {
    let nested = |open: &str| open.repeat(100_000);
    vec![
        answers("half a JSON", body(&ANSWER[..40])).fails_for_good().says("no chat completion"),
        // The finish reason proves the answer whole, and yet somebody wrote over
        // its end: what came is shown, and the fault told.
        answers("garbage behind the JSON", body(format!("{ANSWER}}}garbage"))).cuts_off("The answer"),
        answers("garbage before the JSON", body(format!("garbage{ANSWER}"))).fails_for_good().says("garbage"),
        answers("blank lines before the JSON", body(format!("\n\n\r\n  {ANSWER}"))).gives("The answer"),
        answers("100,000 lists in each other", body(nested("["))).fails_for_good(),
        answers("100,000 objects in each other", body(nested("{\"a\":"))).fails_for_good(),
        answers("100,000 lists as choices", body(format!("{{\"choices\":{}", nested("[")))).fails_for_good(),
        answers("100,000 lists as content", {
            body(format!(
                "{{\"choices\":[{{\"message\":{{\"content\":{}{}}}}}]}}",
                nested("["),
                nested("]")
            ))
        })
        .fails_for_good(),
        answers("single quotes", body("{'choices': [{'message': {'content': 'hi'}}]}")).fails_for_good(),
        answers("NaN in the JSON", body(r#"{"choices":[{"message":{"content":NaN}}]}"#)).fails_for_good(),
        // Readers differ in which one counts, so neither does.
        answers("choices twice", {
            body(r#"{"choices":[{"message":{"content":"a"}}],"choices":[{"message":{"content":"b"}}]}"#)
        })
        .fails_for_good(),
        answers("content twice", {
            body(r#"{"choices":[{"message":{"content":"a","content":"b"},"finish_reason":"stop"}]}"#)
        })
        .fails_for_good(),
    ]
}

fn too_large() -> Vec<Fault> {
    let filled = |before: &str, times: usize, filling: String, after: &str| {
        let length = before.len() + times * filling.len() + after.len();
        Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{before}"))
            .then_repeat(times, Duration::ZERO, filling)
            .then(after)
            .then_close()
    };
    let sized = |before: &str, filling: &str, after: &str| {
        filled(before, 70 << 4, filling.repeat(1 << 16), after)
    };
    vec![
        answers("a JSON string of 70 MB", {
            sized(r#"{"choices":[{"message":{"content":""#, "x", r#""},"finish_reason":"stop"}]}"#)
        })
        .fails_for_good()
        .says("too large"),
        answers("a JSON of 70 MB of blanks", sized("{", " ", "}"))
            .fails_for_good()
            .says("too large"),
        // No bound names what is skipped before the body; 64 MiB is the response's.
        answers("70 MB of blanks before the JSON", sized("\n", "\n", ANSWER))
            .fails_for_good()
            .says("too large")
            .within(10.0),
        answers("a page of 70 MB", sized("<html><title>Hi</title>", "x", "</html>"))
            .fails_for_good()
            .says("Hi"),
        answers("a text of 70 MB", sized("", "x", "")).fails_for_good().says("xxx"),
        answers("a JSON of 2,000,000 empty choices", {
            filled("{\"choices\":[", 2000, "{},".repeat(1000), "{}]}")
        })
        .fails_for_good(),
        answers("a JSON of 1,000,000 lists in a field nobody reads", {
            let after = format!("0],{}", &ANSWER[1..]);
            filled("{\"x\":[", 1000, "[],".repeat(1000), &after)
        })
        .gives("The answer"),
        answers("an error of 1,000,000 lists", {
            filled("{\"error\":[", 1000, "[],".repeat(1000), "\"the words\"]}")
        })
        .fails_for_good(),
    ]
}

/// Errors where the answer should be, with status 200 (providers.md, 18).
fn errors() -> Vec<Fault> {
    let lasting = |name, bytes: &str| answers(name, body(bytes)).fails_for_good().says("the words");
    let passing = |name, bytes: &str| {
        answers(name, body(bytes).header("Retry-After", "0")).fails_for_now().says("the words")
    };
    vec![
        lasting("an error with 200", r#"{"error":{"message":"the words"}}"#),
        lasting("an error as text with 200", r#"{"error":"the words"}"#),
        lasting("an error as an object with 200", r#"{"object":"error","message":"the words"}"#),
        lasting("an error in a list with 200", r#"[{"error":{"message":"the words"}}]"#),
        lasting("a detail with 200", r#"{"detail":"the words"}"#),
        passing(
            "an error with 200 that is a 429",
            r#"{"error":{"message":"the words","code":429}}"#,
        ),
        passing(
            "an error with 200 that is a 503",
            r#"{"error":{"message":"the words","code":"503"}}"#,
        ),
        passing(
            "an error with 200 that is overload",
            r#"{"error":{"message":"Overloaded: the words"}}"#,
        ),
        // Credentials are credentials, whatever the status of the reply.
        answers(
            "an error with 200 that is a 401",
            body(r#"{"error":{"message":"the words","code":401}}"#),
        )
        .status(77)
        .says("the words"),
        answers("an error beside an answer", {
            body(format!("{{\"error\":{{\"message\":\"the words\"}},{}", &ANSWER[1..]))
        })
        .fails_for_good()
        .says("the words"),
        answers("an error that is null", body(format!("{{\"error\":null,{}", &ANSWER[1..])))
            .gives("The answer"),
        in_turn("an overload with 200, then an answer", |number, _| match number {
            1 => {
                body(r#"{"error":{"message":"Overloaded","code":529}}"#).header("Retry-After", "0")
            }
            _ => Reply::text("4"),
        })
        .gives("4")
        .tries(2..=2),
    ]
}

/// Not every byte is good UTF-8. What is broken is replaced, as everywhere
/// else where text comes from outside; the rest of the answer is not lost.
fn encodings() -> Vec<Fault> {
    let said = |content: &[u8]| {
        let mut bytes = br#"{"choices":[{"message":{"content":""#.to_vec();
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(br#""},"finish_reason":"stop"}]}"#);
        body(bytes)
    };
    let utf16: Vec<u8> =
        "\u{feff}".encode_utf16().chain(ANSWER.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    vec![
        answers("invalid UTF-8 in the JSON", said(b"caf\xe9 4")).gives("caf\u{fffd} 4"),
        answers("half a character in the JSON", said(b"4 \xf0\x9f")).gives("4 \u{fffd}"),
        answers("half a surrogate pair", said(br"a\ud83d b")).gives("a\u{fffd} b"),
        answers("a surrogate pair the wrong way", said(br"a\ude00\ud83d b"))
            .gives("a\u{fffd}\u{fffd} b"),
        answers("an escaped NUL", said(br"a\u0000b")).gives("a\0b"),
        answers("a raw NUL", said(b"a\0b")).gives("a\u{fffd}b"),
        answers("an unknown escape", said(br"a\xb")).fails_for_good(),
        answers("a BOM before the JSON", body(format!("\u{feff}{ANSWER}"))).gives("The answer"),
        answers("a BOM before the stream", {
            Reply::sse([format!("\u{feff}{}", TEXT.trim_end()), STOP.trim_end().into()])
        })
        .gives("The answer"),
        answers("UTF-16", body(utf16)).fails_for_good(),
        answers(
            "UTF-16 without a BOM",
            body(ANSWER.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>()),
        )
        .fails_for_good(),
    ]
}
