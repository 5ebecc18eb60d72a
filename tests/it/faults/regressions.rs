//! Regressions: faults of endpoints that the program once handled wrongly: it took them for an
//! answer, panicked, hung, or used too much memory or time.

use serde_json::json;

use super::fault::{Fault, answers};
use super::streams::{DONE, HEAD, STOP, TEXT, stream};
use crate::harness::{Reply, seconds};

const FOREVER: usize = usize::MAX;

pub(super) fn table() -> Vec<Fault> {
    let mut table = ends();
    table.extend(amounts());
    table
}

fn text_chunk(content: &str) -> String {
    let choice = json!({"index": 0, "delta": {"content": content}});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

/// A complete body with its length.
fn body(json: &serde_json::Value) -> Reply {
    Reply::status(200).body(json.to_string())
}

/// Missing and unusual ends of replies.
fn ends() -> Vec<Fault> {
    let lines = TEXT.replace("data: ", "").replace("\n\n", "\n");
    let null = STOP.replace("\"stop\"", "\"null\"");
    let head = HEAD.replace("text/event-stream", "application/json");
    vec![
        answers(
            "pieces without frames and without an end",
            Reply::raw(head).then(lines).then_close(),
        )
        .cut_off_after("The answer"),
        answers("a reason that is the word null", stream(format!("{TEXT}{null}")))
            .cut_off_after("The answer"),
        answers(
            "text after the reason, and no end",
            stream(format!("{TEXT}{STOP}{}", text_chunk(" is not"))),
        )
        .cut_off_after("The answer is not"),
        answers(
            "text after the reason, and an end",
            stream(format!("{TEXT}{STOP}{}{DONE}", text_chunk(" is 4"))),
        )
        .answers_with("The answer is 4"),
        answers(
            "a drip after [DONE]",
            Reply::raw(HEAD).then(format!("{TEXT}{STOP}{DONE}")).then_repeat(
                FOREVER,
                seconds(0.01),
                ": still here\n\n",
            ),
        )
        .answers_with("The answer")
        .within(3.0),
        answers(
            "a time to wait beyond all time",
            Reply::error(503, "busy").header("Retry-After", &"18000000000000000000s".repeat(2)),
        )
        .fails_temporarily(),
    ]
}

/// Replies with very many values or bytes.
fn amounts() -> Vec<Fault> {
    let choice = |message: serde_json::Value| json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let values = vec![0; 19_000];
    let call = |number: usize| {
        json!({"id": format!("c{number}"), "type": "function", "extra_content": values,
            "function": {"name": "list_skills", "arguments": "{}"}})
    };
    let calls: Vec<_> = (0..60).map(call).collect();
    let list = format!("[{}0]", "0,".repeat(900_000));
    vec![
        answers("an answer that is a long list", body(&choice(json!({"content": list}))))
            .answers_with(&list),
        answers(
            "thoughts of a million numbers",
            body(&choice(json!({"content": "4", "reasoning_details": vec![0; 1_000_000]}))),
        )
        .fails_permanently()
        .says("too many values"),
        answers("values to be echoed with each call", body(&choice(json!({"tool_calls": calls}))))
            .fails_permanently()
            .says("too many values"),
        answers("an error of 7 MB", body(&json!({"error": {"message": "x".repeat(7 << 20)}})))
            .fails_permanently()
            .says("reports an error"),
        answers("blanks for ever", {
            Reply::raw(HEAD).then_repeat(FOREVER, seconds(0.0), text_chunk(&" ".repeat(10_000)))
        })
        .fails_permanently()
        .stdout_blank()
        .says("too large"),
        answers("a hundred thousand single blanks", stream(text_chunk(" ").repeat(100_000) + STOP))
            .fails_permanently()
            .stdout_blank()
            .asks_again()
            .says("empty"),
    ]
}
