//! Faults that an attacker found, each of which once passed for an answer,
//! panicked, hung, or took too much memory or time.

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

fn said(content: &str) -> String {
    let choice = json!({"index": 0, "delta": {"content": content}});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

/// A whole body whose length is told.
fn body(json: &serde_json::Value) -> Reply {
    Reply::status(200).body(json.to_string())
}

fn ends() -> Vec<Fault> {
    let lines = TEXT.replace("data: ", "").replace("\n\n", "\n");
    let null = STOP.replace("\"stop\"", "\"null\"");
    let head = HEAD.replace("text/event-stream", "application/json");
    vec![
        answers(
            "pieces without frames and without an end",
            Reply::raw(head).then(lines).then_close(),
        )
        .cuts_off("The answer"),
        answers("a reason that is the word null", stream(format!("{TEXT}{null}")))
            .cuts_off("The answer"),
        answers(
            "text after the reason, and no end",
            stream(format!("{TEXT}{STOP}{}", said(" is not"))),
        )
        .cuts_off("The answer is not"),
        answers(
            "text after the reason, and an end",
            stream(format!("{TEXT}{STOP}{}{DONE}", said(" is 4"))),
        )
        .gives("The answer is 4"),
        answers(
            "a drip behind [DONE]",
            Reply::raw(HEAD).then(format!("{TEXT}{STOP}{DONE}")).then_repeat(
                FOREVER,
                seconds(0.01),
                ": still here\n\n",
            ),
        )
        .gives("The answer")
        .within(3.0),
        answers(
            "a time to wait beyond all time",
            Reply::error(503, "busy").header("Retry-After", &"18000000000000000000s".repeat(2)),
        )
        .fails_for_now(),
    ]
}

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
            .gives(&list),
        answers(
            "thoughts of a million numbers",
            body(&choice(json!({"content": "4", "reasoning_details": vec![0; 1_000_000]}))),
        )
        .fails_for_good()
        .says("too many values"),
        answers("values to be echoed with each call", body(&choice(json!({"tool_calls": calls}))))
            .fails_for_good()
            .says("too many values"),
        answers("an error of 7 MB", body(&json!({"error": {"message": "x".repeat(7 << 20)}})))
            .fails_for_good()
            .says("reports an error"),
        answers("blanks for ever", {
            Reply::raw(HEAD).then_repeat(FOREVER, seconds(0.0), said(&" ".repeat(10_000)))
        })
        .fails_for_good()
        .stdout_blank()
        .says("too large"),
        answers("a hundred thousand single blanks", stream(said(" ").repeat(100_000) + STOP))
            .fails_for_good()
            .stdout_blank()
            .says("empty"),
    ]
}
