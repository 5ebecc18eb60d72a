//! Bodies with status 200 that are not an answer, or an answer in an unusual form.

use std::time::Duration;

use super::fault::{Fault, answers, in_turn};
use super::streams::{STOP, TEXT};
use crate::harness::Reply;

const ANSWER: &str = r#"{"choices":[{"message":{"content":"The answer"},"finish_reason":"stop"}]}"#;

pub(super) fn table() -> Vec<Fault> {
    let mut table = empty_bodies();
    table.extend(other_json());
    table.extend(not_json());
    table.extend(broken_json());
    table.extend(too_large());
    table.extend(errors());
    table.extend(encodings());
    table
}

fn body(bytes: impl Into<Vec<u8>>) -> Reply {
    Reply::status(200).body(bytes)
}

/// Empty bodies, which are treated as a stream that ends before any text.
fn empty_bodies() -> Vec<Fault> {
    let nothing =
        |name, bytes: &str| answers(name, body(bytes)).fails_temporarily().may_retry_unstreamed();
    vec![
        nothing("an empty body", ""),
        nothing("a body of blanks", " \r\n\t\n  "),
        answers("an empty body in no chunk", Reply::chunks(Vec::<(Duration, &str)>::new()))
            .fails_temporarily()
            .may_retry_unstreamed(),
        answers("an empty body that ends with the connection", {
            Reply::raw("HTTP/1.1 200 OK\r\n\r\n").then_close()
        })
        .fails_temporarily()
        .may_retry_unstreamed(),
    ]
}

/// JSON of another form, for which a retry is useless.
fn other_json() -> Vec<Fault> {
    let other = |name, bytes: &str| answers(name, body(bytes)).fails_permanently();
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
        )
        .asks_again(),
        other("no choices", r#"{"choices":[]}"#),
        other("choices that are null", r#"{"choices":null,"usage":{"prompt_tokens":1}}"#),
        other("choices that are an object", r#"{"choices":{"message":{"content":"hi"}}}"#),
        other("a choice that is null", r#"{"choices":[null]}"#),
        other("a choice that is text", r#"{"choices":["hi"]}"#),
        other("a message that is null", r#"{"choices":[{"message":null,"finish_reason":"stop"}]}"#)
            .asks_again()
            .may_retry_unstreamed(),
        other("a message that is text", r#"{"choices":[{"message":"hi","finish_reason":"stop"}]}"#),
    ]
}

fn not_json() -> Vec<Fault> {
    let page = "\n<!DOCTYPE html><html><head><title>Sign in to Wi-Fi</title></head></html>";
    vec![
        answers("a page with 200", body(page)).fails_permanently().says("Sign in to Wi-Fi"),
        answers("plain text with 200", body("upstream is fine"))
            .fails_permanently()
            .says("upstream is fine"),
        // The text of the body is more useful than a statement that it is not JSON.
        answers(
            "XML with 200",
            body("<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code></Error>"),
        )
        .fails_permanently()
        .says("NoSuchBucket"),
        answers("YAML with 200", body("choices:\n- message:\n    content: hi\n"))
            .fails_permanently()
            .says("choices:"),
        answers("bytes with 200", body((0..=255).cycle().take(5000).collect::<Vec<u8>>()))
            .fails_permanently(),
        answers("NULs with 200", body(vec![0; 5000])).fails_permanently().may_retry_unstreamed(),
        answers("text that colours the terminal", body("\u{1b}[31mred\u{1b}[0m words\u{7}"))
            .fails_permanently()
            .says("words"),
    ]
}

fn broken_json() -> Vec<Fault> {
    let nested = |open: &str| open.repeat(100_000);
    vec![
        answers("half a JSON", body(&ANSWER[..40])).fails_permanently().says("not a chat completion"),
        // The finish reason proves that the answer is complete, but the end of the body is
        // damaged: the text is shown and the error reported.
        answers("garbage after the JSON", body(format!("{ANSWER}}}garbage"))).cut_off_after("The answer"),
        answers("garbage before the JSON", body(format!("garbage{ANSWER}"))).fails_permanently().says("garbage"),
        answers("blank lines before the JSON", body(format!("\n\n\r\n  {ANSWER}"))).answers_with("The answer"),
        answers("100,000 lists in each other", body(nested("["))).fails_permanently(),
        answers("100,000 objects in each other", body(nested("{\"a\":"))).fails_permanently(),
        answers("100,000 lists as choices", body(format!("{{\"choices\":{}", nested("[")))).fails_permanently(),
        answers("100,000 lists as content", {
            body(format!(
                "{{\"choices\":[{{\"message\":{{\"content\":{}{}}}}}]}}",
                nested("["),
                nested("]")
            ))
        })
        .fails_permanently(),
        answers("single quotes", body("{'choices': [{'message': {'content': 'hi'}}]}")).fails_permanently(),
        answers("NaN in the JSON", body(r#"{"choices":[{"message":{"content":NaN}}]}"#)).fails_permanently(),
        // Parsers differ in which one they use, so neither is accepted.
        answers("choices twice", {
            body(r#"{"choices":[{"message":{"content":"a"}}],"choices":[{"message":{"content":"b"}}]}"#)
        })
        .fails_permanently(),
        answers("content twice", {
            body(r#"{"choices":[{"message":{"content":"a","content":"b"},"finish_reason":"stop"}]}"#)
        })
        .fails_permanently(),
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
        .fails_permanently()
        .says("too large"),
        answers("a JSON of 70 MB of blanks", sized("{", " ", "}"))
            .fails_permanently()
            .says("too large"),
        // Blanks before the body have no limit except the response's, 64 MiB.
        answers("70 MB of blanks before the JSON", sized("\n", "\n", ANSWER))
            .fails_permanently()
            .says("too large")
            .within(10.0),
        answers("a page of 70 MB", sized("<html><title>Hi</title>", "x", "</html>"))
            .fails_permanently()
            .says("Hi"),
        answers("a text of 70 MB", sized("", "x", "")).fails_permanently().says("xxx"),
        answers("a JSON of 2,000,000 empty choices", {
            filled("{\"choices\":[", 2000, "{},".repeat(1000), "{}]}")
        })
        .fails_permanently()
        .asks_again(),
        answers("a JSON of 1,000,000 lists in an unused field", {
            let after = format!("0],{}", &ANSWER[1..]);
            filled("{\"x\":[", 1000, "[],".repeat(1000), &after)
        })
        .answers_with("The answer"),
        answers("an error of 1,000,000 lists", {
            filled("{\"error\":[", 1000, "[],".repeat(1000), "\"the words\"]}")
        })
        .fails_permanently(),
    ]
}

/// Errors with status 200 instead of an answer.
fn errors() -> Vec<Fault> {
    let lasting =
        |name, bytes: &str| answers(name, body(bytes)).fails_permanently().says("the words");
    let passing = |name, bytes: &str| {
        answers(name, body(bytes).header("Retry-After", "0")).fails_temporarily().says("the words")
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
        // A credential error is recognized with any status.
        answers(
            "an error with 200 that is a 401",
            body(r#"{"error":{"message":"the words","code":401}}"#),
        )
        .status(77)
        .says("the words"),
        answers("an error next to an answer", {
            body(format!("{{\"error\":{{\"message\":\"the words\"}},{}", &ANSWER[1..]))
        })
        .fails_permanently()
        .says("the words"),
        answers("an error that is null", body(format!("{{\"error\":null,{}", &ANSWER[1..])))
            .answers_with("The answer"),
        in_turn("an overload with 200, then an answer", |number, _| match number {
            1 => {
                body(r#"{"error":{"message":"Overloaded","code":529}}"#).header("Retry-After", "0")
            }
            _ => Reply::text("4"),
        })
        .answers_with("4")
        .attempts(2..=2),
    ]
}

/// Bodies with invalid UTF-8. Invalid bytes are replaced and the rest of the answer is kept.
fn encodings() -> Vec<Fault> {
    let answer_with = |content: &[u8]| {
        let mut bytes = br#"{"choices":[{"message":{"content":""#.to_vec();
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(br#""},"finish_reason":"stop"}]}"#);
        body(bytes)
    };
    let utf16: Vec<u8> =
        "\u{feff}".encode_utf16().chain(ANSWER.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    vec![
        answers("invalid UTF-8 in the JSON", answer_with(b"caf\xe9 4"))
            .answers_with("caf\u{fffd} 4"),
        answers("half a character in the JSON", answer_with(b"4 \xf0\x9f"))
            .answers_with("4 \u{fffd}"),
        answers("half a surrogate pair", answer_with(br"a\ud83d b")).answers_with("a\u{fffd} b"),
        answers("a surrogate pair the wrong way", answer_with(br"a\ude00\ud83d b"))
            .answers_with("a\u{fffd}\u{fffd} b"),
        answers("an escaped NUL", answer_with(br"a\u0000b")).answers_with("a\0b"),
        answers("a raw NUL", answer_with(b"a\0b")).answers_with("a\u{fffd}b"),
        answers("an unknown escape", answer_with(br"a\xb")).fails_permanently(),
        answers("a BOM before the JSON", body(format!("\u{feff}{ANSWER}")))
            .answers_with("The answer"),
        answers("a BOM before the stream", {
            Reply::sse([format!("\u{feff}{}", TEXT.trim_end()), STOP.trim_end().into()])
        })
        .answers_with("The answer"),
        answers("UTF-16", body(utf16)).fails_permanently(),
        answers(
            "UTF-16 without a BOM",
            body(ANSWER.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>()),
        )
        .fails_permanently(),
    ]
}
