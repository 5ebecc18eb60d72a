//! Well-framed replies with wrong content: types, numbers, choices, and tool calls that are
//! incomplete, huge, or unknown.

use std::time::Duration;

use serde_json::{Value, json};

use super::connections::has_result;
use super::fault::{Fault, answers, in_turn};
use super::streams::{DONE, STOP, TEXT, stream};
use crate::harness::Reply;

pub(super) fn table() -> Vec<Fault> {
    let mut table = contents();
    table.extend(choices());
    table.extend(numbers());
    table.extend(incomplete_calls());
    table.extend(large_calls());
    table.extend(strange_calls());
    table
}

/// This message, not streamed.
fn message(message: &Value) -> Reply {
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    Reply::status(200).body(json!({"choices": [choice]}).to_string())
}

/// This message in the form requested: not streamed, or in one event of a stream.
fn message_fault(name: &'static str, content: Value) -> Fault {
    in_turn(name, move |_, request| match request.requests_stream() {
        true => stream(format!("{}{STOP}{DONE}", piece(&content))),
        false => message(&content),
    })
}

fn piece(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// The model calls until there is a result, then answers `4`.
fn called(name: &'static str, calls: Value) -> Fault {
    in_turn(name, move |_, request| match (has_result(request), request.requests_stream()) {
        (true, _) => {
            assert!(
                request.body.len() < 8 << 20,
                "the fault comes back as {} bytes",
                request.body.len()
            );
            Reply::text("4")
        }
        (false, true) => stream(format!("{}{STOP}{DONE}", piece(&json!({"tool_calls": calls})))),
        (false, false) => message(&json!({"content": null, "tool_calls": calls})),
    })
}

/// Content of another type. Lists of blocks are supported; content without text is an empty answer.
fn contents() -> Vec<Fault> {
    let empty = |name, content: Value| {
        message_fault(name, json!({"content": content}))
            .fails_permanently()
            .may_retry_unstreamed()
            .asks_again()
            .says("empty")
    };
    vec![
        empty("content that is null", Value::Null),
        empty("content that is empty", json!("")),
        empty("content that is a number", json!(4)),
        empty("content that is true", json!(true)),
        empty("content that is an object", json!({"parts": 1})),
        empty("content that is an empty list", json!([])),
        empty("content that is a list of numbers", json!([1, 2])),
        message_fault("content that is a list of blocks", json!({"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
            {"type": "text", "text": "The "}, {"type": "text", "text": "answer"},
        ]}))
        .answers_with("The answer"),
        message_fault("content that is only a thought", json!({"content": "<think>Hm.</think>"}))
            .fails_permanently()
            .may_retry_unstreamed()
            .asks_again()
            .says("empty"),
        message_fault("only reasoning", json!({"content": "", "reasoning_content": "Hm."}))
            .fails_permanently()
            .may_retry_unstreamed()
            .asks_again()
            .says("empty"),
        message_fault("reasoning that is an object", json!({"content": "The answer", "reasoning": {"a": 1}}))
            .answers_with("The answer"),
        message_fault("a role that is a number", json!({"role": 7, "content": "The answer"})).answers_with("The answer"),
        message_fault("calls that are null", json!({"content": "The answer", "tool_calls": null}))
            .answers_with("The answer"),
        message_fault("an empty list of calls", json!({"content": "The answer", "tool_calls": []}))
            .answers_with("The answer"),
        message_fault("an audio that was not requested", json!({"content": "The answer", "audio": {"data": "x".repeat(100_000)}}))
            .answers_with("The answer"),
        answers("a delta that is null", stream(format!("data: {{\"choices\":[{{\"delta\":null}}]}}\n\n{TEXT}{STOP}")))
            .answers_with("The answer"),
        answers("a delta that is null, alone", stream(format!("data: {{\"choices\":[{{\"delta\":null}}]}}\n\n{STOP}")))
            .fails_permanently()
            .may_retry_unstreamed()
            .asks_again()
            .says("empty"),
        answers("a finish reason that is an object", {
            stream(format!("{TEXT}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":{{\"type\":\"stop\"}}}}]}}\n\n{DONE}"))
        })
        .answers_with("The answer"),
    ]
}

/// One answer was requested: the first choice is used.
fn choices() -> Vec<Fault> {
    let at = |index: usize, text: &str| json!({"index": index, "delta": {"content": text}, "message": null, "finish_reason": null});
    let event = |choice: Value| format!("data: {}\n\n", json!({"choices": [choice]}));
    let whole = |first: &str, second: &str| {
        let choice = |index: usize, text: &str| json!({"index": index, "message": {"content": text}, "finish_reason": "stop"});
        Reply::status(200)
            .body(json!({"choices": [choice(0, first), choice(1, second)]}).to_string())
    };
    let interleaved = [
        event(at(0, "The ")),
        event(at(1, "Another ")),
        event(at(0, "answer")),
        event(at(1, "one")),
        STOP.to_owned(),
        STOP.replace("\"index\":0", "\"index\":1"),
        DONE.to_owned(),
    ];
    vec![
        answers("two choices", whole("The answer", "Another")).answers_with("The answer"),
        answers("two choices in turns", stream(interleaved.concat())).answers_with("The answer"),
        answers(
            "a choice with index 5",
            stream(event(at(5, "The answer")) + &STOP.replace("\"index\":0", "\"index\":5")),
        )
        .answers_with("The answer"),
        answers(
            "an index that is text",
            stream(TEXT.replace("\"index\":0", "\"index\":\"a\"") + STOP),
        )
        .answers_with("The answer"),
        answers("an index below zero", stream(TEXT.replace("\"index\":0", "\"index\":-1") + STOP))
            .answers_with("The answer"),
    ]
}

/// Invalid numbers in unneeded fields do not lose the answer.
fn numbers() -> Vec<Fault> {
    let with_usage = |name, usage: &str| {
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"The answer"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        answers(name, Reply::status(200).body(body))
    };
    let usage = |name, usage: &str| with_usage(name, usage).answers_with("The answer");
    vec![
        usage(
            "usage below zero",
            r#"{"prompt_tokens":-1,"completion_tokens":-9223372036854775808}"#,
        ),
        usage(
            "usage that is huge",
            r#"{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615}"#,
        ),
        usage("usage beyond 64 bits", r#"{"prompt_tokens":99999999999999999999999999}"#),
        usage("usage with fractions", r#"{"prompt_tokens":1.5,"completion_tokens":1e300}"#),
        // Beyond the range of a double: the parser refuses it.
        with_usage("usage beyond all numbers", r#"{"prompt_tokens":1e999}"#).fails_permanently(),
        usage("usage that is text", r#"{"prompt_tokens":"many"}"#),
        usage("usage that is a list", "[1,2]"),
        usage("usage that is null", "null"),
        in_turn("usage that is huge, twice", |_, request| {
            let most = "18446744073709551615";
            let usage = format!(r#""usage":{{"prompt_tokens":{most},"completion_tokens":{most}}}"#);
            let message = match has_result(request) {
                true => json!({"content": "4"}),
                false => json!({"tool_calls": [call("a", "list_skills", "{}")]}),
            };
            Reply::status(200).body(format!(
                r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}],{usage}}}"#
            ))
        })
        .answers_with("4")
        .attempts(2..=2),
    ]
}

/// A call that may be incomplete is never run: no request has a result.
fn incomplete_calls() -> Vec<Fault> {
    let begun = piece(&json!({"tool_calls": [call("a", "list_skills", "{\"query\": \"a")]}));
    let whole = piece(&json!({"tool_calls": [call("a", "list_skills", "{}")]}));
    let length = STOP.replace("stop", "length");
    vec![
        answers("half a call and no end", stream(begun.clone())).fails_temporarily(),
        answers("a call and no end", stream(whole.clone())).fails_temporarily(),
        answers("text, half a call and no end", stream(format!("{TEXT}{begun}")))
            .cut_off_after("The answer"),
        answers("half a call at the token limit", stream(format!("{begun}{length}{DONE}")))
            .cut_off_after("")
            .stdout_blank(),
        answers("a call at the token limit", stream(format!("{whole}{length}{DONE}")))
            .cut_off_after("")
            .stdout_blank(),
        answers("a call and an error", {
            stream(format!("{whole}data: {{\"error\":{{\"message\":\"the words\"}}}}\n\n"))
        })
        .fails_permanently()
        .says("the words"),
        in_turn("half a call, then a whole answer", move |number, _| match number {
            1 => stream(begun.clone()),
            _ => Reply::text("4"),
        })
        .answers_with("4")
        .attempts(2..=2),
    ]
}

/// The arguments of a call are limited to 1 MiB, as are its other fields.
fn large_calls() -> Vec<Fault> {
    let large = |name, reply| answers(name, reply).fails_permanently().says("too large");
    let many = |name, reply| answers(name, reply).fails_permanently().says("too many calls");
    let whole = |calls: Value| message(&json!({"tool_calls": calls}));
    let nth = |number: usize| {
        let mut call = call(&format!("call-{number}"), "list_skills", "{}");
        call["index"] = number.into();
        call
    };
    let long = |length: usize| json!({"query": "x".repeat(length)}).to_string();
    let fragment =
        |text: &str| piece(&json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}));
    vec![
        large(
            "a call with 2 MB of arguments",
            whole(json!([call("a", "list_skills", &long(2 << 20))])),
        ),
        large("a call with 2 MB of arguments in pieces", {
            let begin = piece(&json!({"tool_calls": [call("a", "list_skills", "{\"query\":\"")]}));
            stream(begin + &fragment(&"x".repeat(10_000)).repeat(210) + STOP)
        }),
        many("10,000 calls in one message", {
            let calls: Vec<String> = (0..10_000).map(|number| nth(number).to_string()).collect();
            Reply::status(200).body(format!(
                "{{\"choices\":[{{\"message\":{{\"tool_calls\":[{}]}},\"finish_reason\":\"stop\"}}]}}",
                calls.join(",")
            ))
        }),
        many("10,000 calls in a stream", {
            let pieces: String =
                (0..10_000).map(|number| piece(&json!({"tool_calls": [nth(number)]}))).collect();
            stream(pieces + STOP)
        }),
        large("40 calls with 1 MB of arguments each", {
            let mut reply = Reply::raw(super::streams::HEAD);
            for number in 0..40 {
                let mut call = call(&format!("call-{number}"), "list_skills", "{\"query\":\"…\"}");
                call["index"] = number.into();
                let event = piece(&json!({"tool_calls": [call]}));
                let (before, after) = event.split_once('…').expect("it stands there");
                reply = reply
                    .then(before)
                    .then_repeat(1000, Duration::ZERO, "x".repeat(1000))
                    .then(after);
            }
            reply.then(STOP).then_close()
        })
        .within(10.0),
        // Errors that the model can correct are reported to it, and the run continues.
        called("a tool's name of 500 KB", json!([call("a", &"x".repeat(500_000), "{}")]))
            .answers_with("4")
            .attempts(2..=2),
        // Ids are sent back unchanged.
        called("an id of 500 KB", json!([call(&"x".repeat(500_000), "list_skills", "{}")]))
            .answers_with("4")
            .attempts(2..=2),
        called("100 calls", (0..100).map(nth).collect()).answers_with("4").attempts(2..=2),
        called(
            "arguments of 100,000 lists",
            json!([call("a", "list_skills", &"[".repeat(100_000))]),
        )
        .answers_with("4")
        .attempts(2..=2),
    ]
}

/// Calls that the model can correct: the error is reported to it, and the run continues.
fn strange_calls() -> Vec<Fault> {
    let mended = |name, calls: Value| called(name, calls).answers_with("4").attempts(2..=2);
    let with = |change: fn(&mut Value)| {
        let mut call = call("a", "list_skills", "{}");
        change(&mut call);
        json!([call])
    };
    vec![
        mended("an unknown tool", json!([call("a", "no_such_tool", "{}")])),
        mended("a tool without a name", json!([call("a", "", "{\"a\":1}")])),
        mended("a tool's name of signs", json!([call("a", "../../etc/passwd\n\u{0}", "{}")])),
        mended(
            "a tool's name with its channel",
            json!([call("a", "list_skills<|channel|>analysis", "{}")]),
        ),
        mended(
            "arguments that are not JSON",
            json!([call("a", "get_skill", "skill_name: calculator")]),
        ),
        mended("arguments that are a list", json!([call("a", "get_skill", "[1,2]")])),
        mended(
            "arguments of half a JSON, with an end",
            json!([call("a", "get_skill", "{\"skill_name\": \"calc")]),
        ),
        mended(
            "arguments that are an object",
            with(|call| call["function"]["arguments"] = json!({})),
        ),
        mended("arguments that are null", with(|call| call["function"]["arguments"] = Value::Null)),
        mended(
            "arguments with NULs",
            json!([call("a", "get_skill", "{\"skill_name\":\"\\u0000\"}")]),
        ),
        mended("a call without an id", with(|call| call["id"] = Value::Null)),
        mended("a call whose id is a number", with(|call| call["id"] = json!(7))),
        mended("a call without a type", with(|call| call["type"] = Value::Null)),
        mended("a call whose index is huge", with(|call| call["index"] = json!(u64::MAX))),
        mended("a call whose index is below zero", with(|call| call["index"] = json!(-1))),
        mended("two calls with one id", {
            let mut second = call("a", "list_skills", "{}");
            second["index"] = 1.into();
            json!([call("a", "list_skills", "{}"), second])
        }),
        answers(
            "calls that are an object",
            message(&json!({"tool_calls": {"0": call("a", "list_skills", "{}")}})),
        )
        .fails_permanently(),
        answers("a call that is text", message(&json!({"tool_calls": ["list_skills"]})))
            .fails_permanently(),
        answers("an unknown tool for ever", Reply::call("no_such_tool", &json!({})))
            .args(["--max-steps", "5"])
            .reaches_a_limit()
            .attempts(3..=3),
        answers("a known tool for ever", Reply::call("list_skills", &json!({})))
            .args(["--max-steps", "20"])
            .reaches_a_limit()
            .attempts(5..=5),
        answers("broken arguments for ever", Reply::calls([("get_skill", "{broken")]))
            .args(["--max-steps", "5"])
            .reaches_a_limit()
            .attempts(3..=3),
    ]
}
