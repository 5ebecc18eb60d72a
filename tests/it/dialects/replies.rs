//! The parts of a reply that are sent back, and JSON that is not a reply.

use serde_json::{Value, json};

use super::{
    ALPHA, after_calls, assert_alpha_and_beta, calling_message, calls_of, chat, delta, finish,
    listed, message, pieces, results_of, stream, stream_of_pieces, talk, whole,
};
use crate::harness::{CANARY, Reply};

#[test]
fn ids_are_sent_back_unchanged_and_paired_by_turn() {
    let kimi = r#"[{"index":0,"id":"functions.list_skills:0","type":"function","function":{"name":"list_skills","arguments":"{\"query\":\"alpha\"}"}},{"index":1,"id":"functions.list_skills:1","type":"function","function":{"name":"list_skills","arguments":"{\"query\":\"beta\"}"}}]"#;
    let ids = ["functions.list_skills:0", "functions.list_skills:1"];
    // With the same ids in every turn, each turn's calls have their own results.
    let talk = talk(
        &[],
        [
            stream_of_pieces(&[kimi]),
            message(&format!(r#""content":null,"tool_calls":{kimi}"#), "tool_calls"),
            Reply::text("done"),
        ],
    );
    talk.run.success().stdout("done\n");
    for request in &talk.requests[1..] {
        assert_alpha_and_beta(request, Some(ids));
    }
    let pairs: Vec<&Value> =
        talk.requests[2].messages().iter().map(|m| &m["tool_call_id"]).collect();
    let null = &Value::Null;
    let (a, b) = (&json!(ids[0]), &json!(ids[1]));
    assert_eq!(pairs, [null, null, null, a, b, null, a, b]);
    // Ids that are too long for OpenAI, odd, or not strings are not changed.
    let long = "x".repeat(120);
    for id in [long.as_str(), "call é/+= \"q\"", "0", "D681PevKs"] {
        let calls = ALPHA.replace(r#""a""#, &json!(id).to_string());
        let request = after_calls(&[], stream_of_pieces(&[&calls]));
        assert_eq!(calls_of(&request)[0].0, id);
        assert_eq!(request.last_message()["tool_call_id"], id);
    }
}

#[test]
fn two_calls_of_a_turn_with_one_id_get_different_ids() {
    let calls = r#"[{"index":0,"id":"x","function":{"name":"list_skills","arguments":"{\"query\":\"alpha\"}"}},{"index":1,"id":"x","function":{"name":"list_skills","arguments":"{\"query\":\"beta\"}"}}]"#;
    let request = after_calls(&[], stream_of_pieces(&[calls]));
    assert_alpha_and_beta(&request, None);
    assert_eq!(calls_of(&request)[0].0, "x");
}

#[test]
fn garbled_tool_names_are_cut_and_unknown_ones_get_an_error() {
    let long = "x".repeat(100);
    let table = [
        ("list_skills<|channel|>commentary", "list_skills", true),
        (" list_skills\n", "list_skills", true),
        ("assistant<|channel|>analysis", "assistant", false),
        ("list skills!", "list-skills-", false),
        ("größe", "gr--e", false),
        (&long, &long[..64], false),
        ("<|call|>", "unnamed", false),
    ];
    for (name, kept, runs) in table {
        let calls = format!(
            r#"[{{"index":0,"id":"a","function":{{"name":{},"arguments":"{{}}"}}}}]"#,
            json!(name)
        );
        let request = after_calls(&[], stream_of_pieces(&[&calls]));
        assert_eq!(calls_of(&request)[0].1, kept, "{name}");
        let result = results_of(&request)[0];
        if runs {
            assert_eq!(listed(result), ["alpha", "beta"]);
        } else {
            assert!(result.contains("list_skills, get_skill, read_file_in_skill"), "{result}");
        }
    }
}

/// Fields that exist only in streams, and fields that no endpoint requires, are not sent back.
#[test]
fn stream_only_fields_are_not_sent_back() {
    let request = after_calls(
        &[],
        stream([
            delta(
                r#""role":"assistant","content":null,"refusal":null,"annotations":[],"audio":null,"function_call":null,"prefix":true"#,
            ),
            pieces(ALPHA),
            finish("tool_calls"),
        ]),
    );
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let message = calling_message(&request);
    assert_eq!(keys(message), ["content", "role", "tool_calls"]);
    assert_eq!(keys(&message["tool_calls"][0]), ["function", "id", "type"]);
    assert_eq!(keys(&message["tool_calls"][0]["function"]), ["arguments", "name"]);
    assert_eq!(keys(request.last_message()), ["content", "role", "tool_call_id"]);
    assert_eq!(keys(&request.json), ["messages", "model", "stream", "stream_options", "tools"]);
    for message in &request.messages()[..2] {
        assert_eq!(keys(message), ["content", "role"]);
    }
    // The same for the answer of an earlier turn.
    let first = message_with_extras();
    let talk = chat(&["--no-stream"], "one\ntwo\n", [first, Reply::text("2")]);
    talk.run.success().stdout("1\n2\n");
    assert_eq!(talk.requests[1].messages()[2], json!({"role": "assistant", "content": "1"}));
    assert_eq!(keys(&talk.requests[0].json), ["messages", "model", "tools"]);
}

fn message_with_extras() -> Reply {
    message(
        r#""content":"1","refusal":null,"annotations":[{"type":"url_citation"}],"audio":null,"tool_calls":null,"function_call":null,"reasoning_content":"hm""#,
        "stop",
    )
}

/// JSON that is neither a reply nor an error: the message says what was received and expected.
#[test]
fn reply_without_choices_is_a_protocol_error() {
    let bodies = [
        "{}",
        "[]",
        "[{}]",
        r#"{"choices":[]}"#,
        r#"{"choices":null}"#,
        r#"{"choices":{}}"#,
        r#"{"id":"x","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1}}"#,
        r#"{"x":1}"#,
    ];
    let play = |args: &[&str], reply: Reply, came: &str| {
        let talk = talk(&[&["-o", "json"], args].concat(), [reply]);
        let error = talk.run.status(1).stdout_json()["error"].clone();
        assert_eq!(error["kind"], "protocol", "{came}");
        let expected = format!("expected `choices` with a message, got {came}");
        let message = error["message"].as_str().unwrap();
        assert!(message.ends_with(&expected), "{message}");
        assert_eq!(talk.requests.len(), 1, "not retried");
    };
    for body in bodies {
        play(&[], whole(body), body);
        play(&["--no-stream"], whole(body), body);
        // The end marker proves that the stream is complete.
        play(&[], stream([body]), body);
    }
    play(&[], stream::<&str>([]), "the end of a stream");
    // The key is masked in this message as well.
    let quoting = format!(r#"{{"x":"{CANARY}"}}"#);
    play(&[], whole(&quoting), r#"{"x":"[secret]"}"#);
    play(&[], stream([quoting]), r#"{"x":"[secret]"}"#);
}

/// A reply that contains an error is an error of the endpoint.
#[test]
fn error_with_empty_choices_is_an_endpoint_error() {
    for body in [
        r#"{"choices":[],"message":"exploded"}"#,
        r#"{"choices":null,"error":{"message":"exploded"}}"#,
        r#"[{"msg":"exploded"}]"#,
    ] {
        let talk = talk(&["-o", "json"], [whole(body)]);
        let error = talk.run.status(1).stdout_json()["error"].clone();
        assert_eq!(error["kind"], "endpoint", "{body}");
        assert!(error["message"].as_str().unwrap().ends_with("exploded"));
    }
    // An error with only a status is retried.
    let busy = || whole(r#"{"code":503,"success":false}"#);
    talk(&[], [busy(), Reply::text("4")]).run.success();
}
