//! The dialects of "OpenAI-compatible" endpoints: the bytes that such an endpoint sends, the
//! output for the user, and the content of the next request.
//!
//! The server itself checks the rules for every request (`harness/history.rs`).

use serde_json::{Value, json};

use crate::harness::{Outcome, Reply, Request, Server, Test};

mod address;
mod calls;
mod demands;
mod endings;
mod errors;
mod fields;
mod framing;
mod history;
mod reasoning;
mod replies;
mod retries;
mod tokens;

/// Two skills: tools are offered, and the result of `list_skills` shows its arguments.
fn skills() -> Test {
    let document = |name: &str| format!("---\nname: {name}\ndescription: The {name} skill.\n---\n");
    let test = Test::new().skill("alpha", &document("alpha")).skill("beta", &document("beta"));
    test.env("SKILLS_FOLDER_PATH", "skills")
}

/// A finished run and its requests.
struct Talk {
    run: Outcome,
    requests: Vec<Request>,
}

/// Runs one question. Every reply must be requested.
#[track_caller]
fn talk(args: &[&str], replies: impl IntoIterator<Item = Reply>) -> Talk {
    talk_with(skills(), args, replies)
}

#[track_caller]
fn talk_with(test: Test, args: &[&str], replies: impl IntoIterator<Item = Reply>) -> Talk {
    let server = Server::start(replies);
    let run = test.endpoint(&server).args(args).args(["go"]).run();
    Talk { run, requests: server.finish() }
}

/// Runs a conversation with these input lines.
#[track_caller]
fn chat(args: &[&str], lines: &str, replies: impl IntoIterator<Item = Reply>) -> Talk {
    let server = Server::start(replies);
    let test = skills().endpoint(&server).args(["chat"]).args(args);
    Talk { run: test.stdin(lines).run(), requests: server.finish() }
}

/// Sends a reply with tool calls, then `done`. Returns the request with the results.
#[track_caller]
fn after_calls(args: &[&str], calls: Reply) -> Request {
    let Talk { run, mut requests } = talk(args, [calls, Reply::text("done")]);
    run.success().stdout("done\n");
    assert_eq!(requests.len(), 2);
    requests.remove(1)
}

/// Runs all rows in parallel, since they mostly wait.
fn in_parallel<T: Send>(rows: impl IntoIterator<Item = T>, play: impl Fn(T) + Sync) {
    let play = &play;
    std::thread::scope(|scope| {
        for row in rows {
            scope.spawn(move || play(row));
        }
    });
}

/// A stream of these payloads with `[DONE]`.
fn stream<S: AsRef<str>>(payloads: impl IntoIterator<Item = S>) -> Reply {
    let events = payloads.into_iter().map(|payload| format!("data: {}", payload.as_ref()));
    Reply::sse(events.chain(["data: [DONE]".to_string()]))
}

/// A stream without `[DONE]`; the connection is closed properly.
fn unmarked<S: AsRef<str>>(payloads: impl IntoIterator<Item = S>) -> Reply {
    Reply::sse(payloads.into_iter().map(|payload| format!("data: {}", payload.as_ref())))
}

/// A stream with exactly this body.
fn stream_of(bytes: impl Into<Vec<u8>>) -> Reply {
    Reply::chunks([(std::time::Duration::ZERO, bytes)])
}

/// A payload with a complete answer.
const FOUR: &str = r#"{"choices":[{"delta":{"content":"4"},"finish_reason":"stop"}]}"#;

/// A JSON body, not streamed.
fn whole(body: &str) -> Reply {
    Reply::status(200).body(body)
}

/// A payload whose delta has these fields.
fn delta(fields: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{{fields}}},"finish_reason":null}}]}}"#)
}

/// A payload with this list of tool call pieces.
fn pieces(calls: &str) -> String {
    delta(&format!(r#""tool_calls":{calls}"#))
}

/// The payload that ends an answer.
fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

/// A JSON body whose message has these fields.
fn message(fields: &str, reason: &str) -> Reply {
    whole(&format!(
        r#"{{"object":"chat.completion","choices":[{{"index":0,"message":{{"role":"assistant",{fields}}},"finish_reason":"{reason}"}}]}}"#
    ))
}

/// A stream of these lists of tool call pieces.
fn stream_of_pieces(lists: &[&str]) -> Reply {
    let payloads = lists.iter().map(|list| pieces(list));
    stream(payloads.chain([finish("tool_calls")]))
}

/// A call of `list_skills` that lists only `alpha`.
const ALPHA: &str = r#"[{"index":0,"id":"a","type":"function","function":{"name":"list_skills","arguments":"{\"query\":\"alpha\"}"}}]"#;

/// The calls of the last message with calls: id, name, arguments.
#[track_caller]
fn calls_of(request: &Request) -> Vec<(String, String, Value)> {
    let message = calling_message(request);
    let calls = message["tool_calls"].as_array().expect("calls");
    let text = |value: &Value| value.as_str().expect("a text").to_string();
    calls
        .iter()
        .map(|call| {
            let arguments = text(&call["function"]["arguments"]);
            let arguments: Value = serde_json::from_str(&arguments).expect("arguments are JSON");
            assert!(arguments.is_object(), "arguments are an object: {arguments}");
            (text(&call["id"]), text(&call["function"]["name"]), arguments)
        })
        .collect()
}

/// The last assistant message with tool calls.
#[track_caller]
fn calling_message(request: &Request) -> &Value {
    let calling = request.messages().iter().rfind(|message| message.get("tool_calls").is_some());
    calling.unwrap_or_else(|| panic!("no calls in {request:?}"))
}

/// The results of the last calls, in order.
#[track_caller]
fn results_of(request: &Request) -> Vec<&str> {
    let from = request.messages().iter().rposition(|message| message.get("tool_calls").is_some());
    let results = &request.messages()[from.expect("a call") + 1..];
    let results = results.iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().expect("a text")).collect()
}

/// The names in a result of `list_skills`.
#[track_caller]
fn listed(result: &str) -> Vec<String> {
    let result: Value = serde_json::from_str(result).expect("JSON");
    let skills = result["skills"].as_array().unwrap_or_else(|| panic!("no skills: {result}"));
    skills.iter().map(|skill| skill["name"].as_str().unwrap_or_default().to_string()).collect()
}

/// Asserts that both calls have their own arguments and results.
#[track_caller]
fn assert_alpha_and_beta(request: &Request, ids: Option<[&str; 2]>) {
    let calls = calls_of(request);
    let queries: Vec<&Value> = calls.iter().map(|(_, _, arguments)| &arguments["query"]).collect();
    assert_eq!(queries, [&json!("alpha"), &json!("beta")], "{request:?}");
    for (_, name, _) in &calls {
        assert_eq!(name, "list_skills");
    }
    if let Some(ids) = ids {
        assert_eq!([&calls[0].0, &calls[1].0], ids);
    }
    assert_ne!(calls[0].0, calls[1].0, "the ids differ");
    let results = results_of(request);
    assert_eq!(results.len(), 2);
    assert_eq!(listed(results[0]), ["alpha"]);
    assert_eq!(listed(results[1]), ["beta"]);
}
