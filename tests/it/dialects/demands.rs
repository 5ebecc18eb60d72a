//! Values that endpoints demand and name, and servers that cannot read their own model's calls.

use serde_json::{Value, json};

use super::{skills, talk, talk_with};
use crate::harness::{Reply, Server};

/// The message of OpenAI's newest models, which think by default.
const EFFORT: &str = "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";

fn refusal(message: &str, param: Option<&str>) -> String {
    json!({"error": {"message": message, "type": "invalid_request_error", "param": param}})
        .to_string()
}

/// Each refusal ends once the field has its value; it is sent from then on, and reported once.
#[test]
fn demanded_values_are_sent_from_then_on() {
    let required = r#"{"detail":[{"type":"missing","loc":["body","max_tokens"],"msg":"Field required","input":{"model":"m"}}]}"#;
    let vllm = r#"{"object":"error","message":"[{'type': 'missing', 'loc': ('body', 'max_tokens'), 'msg': 'Field required'}]","type":"BadRequestError","param":null,"code":400}"#;
    for (status, body, field, value) in [
        (400, refusal(EFFORT, Some("reasoning_effort")), "reasoning_effort", json!("none")),
        (400, refusal(EFFORT, None), "reasoning_effort", json!("none")),
        (422, required.into(), "max_tokens", json!(4096)),
        (400, vllm.into(), "max_tokens", json!(4096)),
        (400, refusal("max_tokens: Field required", None), "max_tokens", json!(4096)),
        (
            400,
            refusal("Missing required parameter: 'max_tokens'.", Some("max_tokens")),
            "max_tokens",
            json!(4096),
        ),
        (400, refusal("`temperature` must be 1", None), "temperature", json!(1)),
        (
            400,
            refusal("invalid temperature: only 0.6 is allowed for this model", None),
            "temperature",
            json!(0.6),
        ),
        (
            400,
            refusal("Invalid value. Supported values are: 'low', 'high'.", Some("verbosity")),
            "verbosity",
            json!("low"),
        ),
    ] {
        let expected = value.clone();
        let server = Server::always(move |request| {
            if request.json[field] != expected {
                return Reply::status(status).body(body.clone());
            }
            match request.last_message()["role"].as_str() {
                Some("tool") => Reply::text("done"),
                _ => Reply::call("list_skills", &json!({})),
            }
        });
        let run = skills().endpoint(&server).args(["go"]).run().success().stdout("done\n");
        let requests = server.finish();
        let sent: Vec<&Value> = requests.iter().map(|request| &request.json[field]).collect();
        assert_eq!(sent, [&Value::Null, &value, &value], "{field}");
        let warning =
            format!("the endpoint demands a field: `{field}` is sent as {value} from now on");
        assert_eq!(run.stderr.matches(&warning).count(), 1, "{}", run.stderr);
        // Nothing else of the request is changed.
        let mut first = requests[1].json.clone();
        first.as_object_mut().unwrap().remove(field);
        assert_eq!(first, requests[0].json);
    }
}

/// A field of the user is left out or replaced, and that is reported; a value of several is not
/// chosen for the user while it can be left out.
#[test]
fn a_users_field_is_not_replaced_silently() {
    for (fields, message, param, sent) in [
        (
            r#"{"reasoning_effort":"high"}"#,
            EFFORT,
            Some("reasoning_effort"),
            &[json!("high"), Value::Null, json!("none")][..],
        ),
        (r#"{"temperature":0.2}"#, "temperature must be 1", None, &[json!(0.2), json!(1)]),
        (
            r#"{"reasoning_effort":"minimal"}"#,
            "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low', 'medium', and 'high'.",
            Some("reasoning_effort"),
            &[json!("minimal"), Value::Null, json!("low")],
        ),
    ] {
        let name = if fields.contains("temp") { "temperature" } else { "reasoning_effort" };
        let (body, last) = (refusal(message, param), sent.last().unwrap().clone());
        let server = Server::always(move |request| match &request.json[name] {
            value if *value == last => Reply::text("done"),
            _ => Reply::status(400).body(body.clone()),
        });
        let test = skills().endpoint(&server).env("LLM_EXTRA_BODY", fields);
        let run = test.args(["go"]).run().success().stdout("done\n");
        let run = run.stderr_has("the endpoint refuses a field of LLM_EXTRA_BODY: ");
        let requests = server.finish();
        let values: Vec<&Value> = requests.iter().map(|request| &request.json[name]).collect();
        run.check(values.iter().copied().eq(sent), format!("{values:?}"));
    }
}

/// A demand that is not met by its own value ends, with the server's words.
#[test]
fn a_value_that_does_not_help_is_an_error() {
    let body = || Reply::status(400).body(refusal("temperature must be 1", None));
    let talk = talk(&[], [body(), body()]);
    talk.run.status(1).stdout_is_empty().stderr_has("temperature must be 1");
    for words in ["temperature must be between 0 and 1", "max_tokens must be a number"] {
        let talk = talk_with(skills(), &[], [Reply::error(400, words)]);
        talk.run.status(1).stderr_has(words);
    }
}

#[test]
fn another_api_is_named_with_a_remedy() {
    for (status, words) in [
        (
            400,
            "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. Please use /v1/responses instead.",
        ),
        (404, "This model is only supported in v1/responses and not in v1/chat/completions."),
    ] {
        let talk = talk(&[], [Reply::error(status, words)]);
        let run = talk.run.status(1).stdout_is_empty();
        run.stderr_has("hint: this program does not use /v1/responses: set LLM_TOOLS=prompted");
    }
}

/// Errors of servers that cannot read a call of their own model, with status and place.
fn unread_calls() -> Vec<Reply> {
    let llama = r#"{"error":{"code":500,"message":"Failed to parse input at pos 41: <tool_call>\n<function=get_skill>","type":"server_error"}}"#;
    let ollama = r#"{"error":{"message":"error parsing tool call: raw='{\"skill_name\":\"k', err=unexpected end of JSON input","type":"api_error"}}"#;
    let arguments = r#"{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 131","type":"server_error"}}"#;
    let sglang = r#"{"object":"error","message":"Failed to parse fc related info to json format!","type":"BadRequestError","param":null,"code":400}"#;
    let thought = r#"data: {"choices":[{"index":0,"delta":{"reasoning_content":"I read it."}}]}"#;
    vec![
        Reply::status(500).body(llama),
        Reply::status(500).body(ollama),
        Reply::status(500).body(arguments),
        Reply::status(400).body(sglang),
        Reply::sse([thought.to_string(), format!("data: {llama}")]),
        Reply::sse([thought.to_string(), format!("data: {ollama}")]),
        // The text of an older version of SGLang is in `type`.
        Reply::status(400).body(
            sglang
                .replace("BadRequestError", "Failed to parse fc related info to json format!")
                .replacen("Failed to parse fc related info to json format!", "400", 1),
        ),
    ]
}

#[test]
fn calls_that_the_server_cannot_read_are_asked_for_in_text() {
    let call = "<tool_call>\n{\"name\": \"list_skills\", \"arguments\": {}}\n</tool_call>";
    for refusal in unread_calls() {
        let talk = talk(&[], [refusal, Reply::text(call), Reply::text("done")]);
        let run = talk.run.success().stdout("done\n");
        let warning = "the server cannot read its model's calls of tools: they are described";
        assert_eq!(run.stderr.matches(warning).count(), 1, "{}", run.stderr);
        let has_tools = |request: &crate::harness::Request| request.json.get("tools").is_some();
        let sent: Vec<bool> = talk.requests.iter().map(has_tools).collect();
        assert_eq!(sent, [true, false, false]);
    }
    // After the first text, nothing is sent again.
    let text = r#"data: {"choices":[{"index":0,"delta":{"content":"I read it."}}]}"#;
    let error = r#"data: {"error":{"code":500,"message":"Failed to parse input at pos 4: <"}}"#;
    let talk = talk(&[], [Reply::sse([text, error])]);
    let run = talk.run.status(4).stdout("I read it.\n").stderr_has("Failed to parse input");
    run.stderr_has("hint: the server cannot read what its model writes: set LLM_TOOLS=prompted");
}

#[test]
fn native_calls_that_the_server_cannot_read_have_a_hint() {
    for refusal in unread_calls().into_iter().take(6) {
        let server = Server::always(move |_| refusal.clone());
        let test = skills().endpoint(&server).env("LLM_TOOLS", "native");
        let run = test.args(["go"]).run().stdout_is_empty();
        let run = run.stderr_has("set LLM_TOOLS=prompted").stderr_lacks("try again later");
        let requests = server.finish();
        run.check(requests.iter().all(|it| it.json.get("tools").is_some()), requests.len());
    }
    // Without tools another try may succeed.
    let failure = || Reply::error(500, "Failed to parse input at pos 0: x");
    let server = Server::start([failure(), Reply::text("done")]);
    let test = skills().endpoint(&server).env("LLM_TOOLS", "prompted");
    test.args(["go"]).run().success().stdout("done\n");
    server.finish();
}
