//! The fields of a request, and endpoints that refuse some of them.

use serde_json::{Value, json};

use super::{
    ALPHA, calling_message, finish, pieces, skills, stream, stream_of_pieces, talk, talk_with,
};
use crate::harness::{Reply, Request, SKILL_TOOLS};

fn has(request: &Request, name: &str) -> bool {
    request.json.get(name).is_some()
}

fn extra(fields: &str) -> crate::harness::Test {
    skills().env("LLM_EXTRA_BODY", fields)
}

/// Refusals of `stream_options` by the servers named.
const NO_STREAM_OPTIONS: [(u16, &str); 8] = [
    // Mistral
    (
        422,
        r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{"include_usage":true},"url":"https://errors.pydantic.dev/2.6/v/extra_forbidden"}]}"#,
    ),
    (
        422,
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","param":null,"code":null}"#,
    ),
    // vLLM
    (
        400,
        r#"{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {'include_usage': True}}]","type":"BadRequestError","param":null,"code":400}"#,
    ),
    // Gemini
    (
        400,
        r#"[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"stream_options\": Cannot find field.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"Invalid JSON payload received. Unknown name \"stream_options\": Cannot find field."}]}]}}]"#,
    ),
    // OpenAI, Azure
    (
        400,
        r#"{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error","param":null,"code":null}}"#,
    ),
    (
        400,
        r#"{"error":{"message":"Unknown parameter.","type":"invalid_request_error","param":"stream_options","code":"unknown_parameter"}}"#,
    ),
    (
        400,
        r#"{"error":{"message":"Unknown parameter: 'stream_options.include_usage'.","param":"stream_options.include_usage","code":"unknown_parameter"}}"#,
    ),
    // llama.cpp and others
    (400, "unknown field `stream_options`, expected one of `model`, `messages`, `tools`, `stream`"),
];

#[test]
fn refused_stream_options_are_omitted_from_then_on() {
    for (status, refusal) in NO_STREAM_OPTIONS {
        let replies =
            [Reply::status(status).body(refusal), stream_of_pieces(&[ALPHA]), Reply::text("done")];
        let talk = talk(&[], replies);
        talk.run.success().stdout("done\n");
        let sent: Vec<bool> = talk.requests.iter().map(|r| has(r, "stream_options")).collect();
        assert_eq!(sent, [true, false, false], "{refusal}");
        // No other field is omitted.
        let mut without = talk.requests[0].json.clone();
        without.as_object_mut().unwrap().remove("stream_options");
        assert_eq!(talk.requests[1].json, without, "{refusal}");
    }
}

#[test]
fn refused_fields_are_omitted_from_then_on() {
    // Gemini names all fields in one message, with their paths.
    let gemini = r#"[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"seed\": Cannot find field.\nInvalid JSON payload received. Unknown name \"top_k\": Cannot find field.\nInvalid JSON payload received. Unknown name \"extra_content\" at 'messages[2].tool_calls[0]': Cannot find field.","status":"INVALID_ARGUMENT"}}]"#;
    let signed = ALPHA.replace(r#""id":"a","#, r#""id":"a","extra_content":{"x":1},"#);
    let needed = |request: &Request| {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        ["\"seed\"", "\"top_k\"", "extra_content"].iter().any(|name| text.contains(name))
    };
    let server = crate::harness::Server::always(move |request| {
        let steps = request.messages().iter().filter(|message| message["role"] == "tool").count();
        match steps {
            1 | 2 if needed(request) => Reply::status(400).body(gemini),
            0 | 1 => stream_of_pieces(&[&signed]),
            _ => Reply::text("done"),
        }
    });
    let test = extra(r#"{"seed":1,"top_k":2,"top_p":0.5}"#);
    test.endpoint(&server).args(["go"]).run().success().stdout("done\n");
    let requests = server.finish();
    let last = requests.last().unwrap();
    assert_eq!(last.json["top_p"], 0.5, "a field that was not named is kept");
    assert!(has(last, "stream_options") && has(last, "tools"));
    // Refused until the program has learned it, and never again.
    let refused = requests.iter().filter(|request| {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        text.contains("extra_content") || has(request, "seed") || has(request, "top_k")
    });
    assert!(refused.count() <= 4, "{} requests", requests.len());
    assert_eq!(calling_message(last)["tool_calls"][0].get("extra_content"), None);
}

#[test]
fn model_messages_and_tools_are_never_omitted() {
    for name in ["model", "messages", "tools", "stream", "role", "tool_call_id"] {
        for refusal in [
            json!({"error": {"message": format!("Unknown parameter: '{name}'."), "param": name}}),
            json!({"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]}),
        ] {
            let reply = Reply::status(400).body(refusal.to_string());
            let talk = talk(&["--no-stream"], [reply]);
            talk.run.status(1).stdout_is_empty().stderr_has("status 400");
            assert_eq!(talk.requests.len(), 1, "{name}");
        }
    }
}

#[test]
fn refusal_of_a_field_not_sent_is_reported_immediately() {
    for words in ["no", "The user said temperature", "top_k is too large", "reasoning_content"] {
        let talk = talk(&[], [Reply::error(400, words)]);
        talk.run.status(1).stderr_has(words);
    }
    // A second refusal of an omitted field is an error.
    let refused = || Reply::error(400, "unknown field `stream_options`");
    let talk = talk(&[], [refused(), refused()]);
    talk.run.status(1).stderr_has("stream_options");
    assert_eq!(talk.requests.len(), 2);
}

#[test]
fn token_limit_is_sent_if_set_and_renamed_if_refused() {
    let swaps = [
        (
            "max_tokens",
            "max_completion_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        ),
        (
            "max_completion_tokens",
            "max_tokens",
            "Extra inputs are not permitted: max_completion_tokens",
        ),
    ];
    for (set, other, words) in swaps {
        let refusal = json!({"error": {"message": words, "type": "invalid_request_error", "param": set, "code": "unsupported_parameter"}});
        let replies = [
            Reply::status(400).body(refusal.to_string()),
            stream_of_pieces(&[ALPHA]),
            Reply::text("done"),
        ];
        let talk = talk_with(extra(&format!(r#"{{"{set}":500}}"#)), &[], replies);
        talk.run.success().stdout("done\n");
        let sent: Vec<[&Value; 2]> =
            talk.requests.iter().map(|r| [&r.json[set], &r.json[other]]).collect();
        let (limit, null) = (&json!(500), &Value::Null);
        assert_eq!(sent, [[limit, null], [null, limit], [null, limit]]);
    }
    // OpenRouter reserves credit for the largest possible answer.
    let credit = r#"{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 1020.","code":402}}"#;
    let talk_402 = talk(&[], [Reply::status(402).body(credit)]);
    talk_402.run.status(1).stderr_has("can only afford").stderr_has("hint: lower max_tokens");
    // A server limits answers to 16 tokens by default.
    let cut = talk(&[], [Reply::text("The first").finish_reason("length")]);
    cut.run.status(4).stdout("The first\n").stderr_has("token limit").stderr_has("hint:");
}

#[test]
fn user_fields_are_sent_and_omitted_if_refused() {
    let refusals = [
        r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}"#,
        r#"{"error":{"message":"No.","param":"temperature"}}"#,
        r#"{"detail":[{"loc":["body","temperature"],"msg":"Extra inputs are not permitted"}]}"#,
    ];
    for refusal in refusals {
        let replies =
            [Reply::status(400).body(refusal), stream_of_pieces(&[ALPHA]), Reply::text("done")];
        let talk = talk_with(extra(r#"{"temperature":0.2,"top_p":0.9}"#), &[], replies);
        talk.run.success().stdout("done\n");
        let sent: Vec<[&Value; 2]> =
            talk.requests.iter().map(|r| [&r.json["temperature"], &r.json["top_p"]]).collect();
        let (null, top_p) = (&Value::Null, &json!(0.9));
        assert_eq!(sent, [[&json!(0.2), top_p], [null, top_p], [null, top_p]], "{refusal}");
    }
}

/// Fields that some endpoint refuses are not sent unless the user sets them.
#[test]
fn default_request_has_only_accepted_fields() {
    let first = stream([pieces(ALPHA), finish("tool_calls")]);
    let streamed = talk(&[], [first, Reply::text("done")]);
    let body =
        talk(&["--no-stream"], [Reply::call("list_skills", &json!({})), Reply::text("done")]);
    for request in streamed.requests.iter().chain(&body.requests) {
        let names: Vec<&str> =
            request.json.as_object().unwrap().keys().map(String::as_str).collect();
        let known = ["messages", "model", "stream", "stream_options", "tools"];
        for name in names {
            assert!(known.contains(&name), "{name}");
        }
        assert!(request.requests_stream() || !has(request, "stream"));
        for tool in request.tools() {
            let keys: Vec<&String> = tool["function"].as_object().unwrap().keys().collect();
            assert_eq!(keys, ["description", "name", "parameters"]);
            assert_eq!(tool.as_object().unwrap().len(), 2);
        }
    }
}

#[test]
fn missing_server_flag_is_named() {
    let vllm = r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}"#;
    let llama = r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#;
    for (status, body, flag) in [(400, vllm, "--enable-auto-tool-choice"), (500, llama, "--jinja")]
    {
        let native = skills().env("LLM_TOOLS", "native");
        let talk = talk_with(native, &[], [Reply::status(status).body(body)]);
        assert!(!has(&talk.requests[0], "tool_choice"));
        let hint =
            talk.run.stderr.lines().find(|line| line.starts_with("hint:")).map(str::to_string);
        talk.run.status(1).stdout_is_empty();
        assert!(hint.is_some_and(|hint| hint.contains(flag)), "{flag}");
    }
}

#[test]
fn model_without_tools_is_reported_and_exits_1() {
    let refusals = [
        (
            404,
            r#"{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"registry.ollama.ai/library/gemma3:4b does not support tools","type":"api_error","param":null,"code":null}}"#,
        ),
        (400, r#"{"error":"llama2 does not support tools"}"#),
    ];
    for (status, body) in refusals {
        let native = skills().env("LLM_TOOLS", "native");
        let talk = talk_with(native, &[], [Reply::status(status).body(body)]);
        talk.run
            .status(1)
            .stdout_is_empty()
            .stderr_has("tool")
            .stderr_has("hint: this model has no tools");
        assert_eq!(talk.requests.len(), 1, "{body}");
    }
}

#[test]
fn tool_schemas_are_flat() {
    let talk = talk(&[], [Reply::text("4")]);
    assert_eq!(talk.requests[0].tool_names(), SKILL_TOOLS);
    for tool in talk.requests[0].tools() {
        let schema = &tool["function"]["parameters"];
        assert_eq!(schema["type"], "object");
        check_schema(schema, 0);
    }
}

fn check_schema(schema: &Value, depth: usize) {
    // Gemini refuses a list without `items`.
    let known = ["type", "properties", "required", "description", "enum", "items"];
    let fields = schema.as_object().expect("an object");
    for name in fields.keys() {
        assert!(known.contains(&name.as_str()), "{name} in {schema}");
    }
    assert_eq!(fields.contains_key("items"), schema["type"] == "array", "{schema}");
    assert!(schema["type"].is_string(), "one type: {schema}");
    let properties = schema.get("properties");
    assert_eq!(properties.is_some(), schema["type"] == "object", "{schema}");
    let properties = properties.and_then(Value::as_object).into_iter().flatten();
    let mut count = 0;
    for (_, property) in properties {
        count += 1;
        assert_ne!(property["type"], "object", "flat: {schema}");
        check_schema(property, depth + 1);
    }
    assert!(depth > 0 || count > 0, "no empty `properties`: {schema}");
}

/// The `name` fields of the tool messages, per request.
fn tool_names(requests: &[Request]) -> Vec<Vec<&Value>> {
    requests
        .iter()
        .map(|request| {
            let messages = request.messages().iter();
            let tools = messages.filter(|message| message["role"] == "tool");
            tools.map(|message| &message["name"]).collect()
        })
        .collect()
}

/// Refusals of endpoints, gateways and templates that need the tool's name in its message.
const NAME_REQUIRED: [(u16, &str); 4] = [
    (
        400,
        r#"[{"error":{"code":400,"message":"* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.\n","status":"INVALID_ARGUMENT"}}]"#,
    ),
    (
        422,
        r#"{"detail":[{"type":"missing","loc":["body","messages",3,"tool","name"],"msg":"Field required","input":{"role":"tool","tool_call_id":"a","content":"x"}}]}"#,
    ),
    (
        400,
        r#"{"object":"error","message":"[{'type': 'missing', 'loc': ('body', 'messages', 3, 'name'), 'msg': 'Field required', 'input': {'content': 'x'}}]","type":"BadRequestError","param":null,"code":400}"#,
    ),
    (400, "Tool message must have a 'name' field."),
];

#[test]
fn tool_name_is_sent_once_an_endpoint_requires_it() {
    for (status, refusal) in NAME_REQUIRED {
        for args in [&[][..], &["--no-stream"]] {
            let call = |arguments: Value| Reply::call("list_skills", &arguments);
            let replies = [
                call(json!({})),
                Reply::status(status).body(refusal),
                call(json!({"query": "alpha"})),
                Reply::text("done"),
            ];
            let talk = talk(args, replies);
            talk.run.success().stdout("done\n");
            let (null, name) = (&Value::Null, &json!("list_skills"));
            assert_eq!(
                tool_names(&talk.requests),
                [vec![], vec![null], vec![name], vec![name, name]],
                "{refusal}"
            );
            // Nothing else changes, and no other message gets a name.
            let mut named = talk.requests[2].json.clone();
            let messages = named["messages"].as_array_mut().unwrap();
            messages[3].as_object_mut().unwrap().remove("name");
            assert_eq!(named, talk.requests[1].json, "{refusal}");
        }
    }
}

/// An image shown by a tool adds two messages after the result.
#[test]
fn tool_message_is_found_by_the_index_of_the_endpoint() {
    let file = |path: &str| json!({"skill_name": "alpha", "file_path": path});
    let refused = |place: usize| {
        let words = format!("Missing required parameter: 'messages[{place}].name'.");
        Reply::error(400, &words)
    };
    let play = |place: usize, last: &[Reply]| {
        let replies = [
            Reply::call("read_file_in_skill", &file("a.gif")),
            Reply::call("list_skills", &json!({})),
            refused(place),
        ];
        let test = skills().file("skills/alpha/a.gif", b"GIF89a\x03\0\x02\0\x80\0\0");
        talk_with(test, &[], replies.into_iter().chain(last.iter().cloned()))
    };
    // system, user, call, result, (line, image,) call, result
    let found = play(7, &[Reply::text("done")]);
    found.run.success().stdout("done\n");
    assert_eq!(found.requests[2].messages()[7]["role"], "tool");
    let other = play(5, &[]);
    other.run.status(1).stderr_has("'messages[5].name'");
}

#[test]
fn tool_name_still_required_is_reported_and_no_other_name_added() {
    let (status, missed) = NAME_REQUIRED[0];
    let refused = || Reply::status(status).body(missed);
    let call = || Reply::call("list_skills", &json!({}));
    let stays = talk(&[], [call(), refused(), refused()]);
    stays.run.status(1).stdout_is_empty().stderr_has("Name cannot be empty");
    assert_eq!(stays.requests.len(), 3);
    // Nothing is added before a tool message has been sent.
    let first = talk(&[], [refused()]);
    first.run.status(1).stderr_has("Name cannot be empty");
    for words in [
        "The model name is required to call a tool",
        "Only messages of role 'user' can have a name.",
        "Missing required parameter: 'messages[2].tool_calls[0].function.name'.",
        "Missing required parameter: 'messages[1].name'.",
    ] {
        let other = talk(&[], [call(), Reply::error(400, words)]);
        other.run.status(1).stderr_has(words);
        assert_eq!(tool_names(&other.requests)[1], [&Value::Null], "{words}");
    }
    // Nothing is added for another status.
    let other = talk(&[], [call(), Reply::error(403, "Tool message must have a 'name'")]);
    other.run.status(77);
}
