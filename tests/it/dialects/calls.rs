//! Tool calls in replies: how pieces in a stream are put together, and how arguments are read.

use serde_json::{Value, json};

use super::{
    ALPHA, after_calls, assert_alpha_and_beta, calls_of, delta, finish, listed, message, pieces,
    results_of, skills, stream, stream_of_pieces, talk, unmarked,
};
use crate::harness::{Reply, Server};

#[test]
fn empty_id_or_name_does_not_overwrite() {
    let request = after_calls(
        &[],
        stream_of_pieces(&[
            r#"[{"index":0,"id":"a","type":"function","function":{"name":"list_skills","arguments":""}}]"#,
            r#"[{"index":1,"id":"b","type":"function","function":{"name":"list_skills","arguments":""}}]"#,
            r#"[{"index":0,"id":"","type":"","function":{"name":"","arguments":"{\"query\":"}}]"#,
            r#"[{"index":1,"id":"","type":"function","function":{"name":"","arguments":"{\"query\":\"beta\""}}]"#,
            r#"[{"index":0,"id":"","function":{"name":"","arguments":"\"alpha\"}"}},{"index":1,"id":"","function":{"name":"","arguments":"}"}}]"#,
            r#"[{"index":0,"id":"","function":{"name":"","arguments":""}}]"#,
        ]),
    );
    assert_alpha_and_beta(&request, Some(["a", "b"]));
}

#[test]
fn null_id_is_treated_as_missing() {
    let request = after_calls(
        &[],
        stream_of_pieces(&[
            r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":null}}]"#,
            r#"[{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"{\"query\":\"alpha\"}"}}]"#,
            r#"[{"index":1,"id":"b","function":{"name":"list_skills"}}]"#,
            r#"[{"index":1,"id":null,"function":null}]"#,
            r#"[{"index":1,"id":null,"function":{"name":null,"arguments":"{\"query\":\"beta\"}"}}]"#,
            r#"[{"index":1,"id":null,"function":{"name":null,"arguments":null}}]"#,
        ]),
    );
    assert_alpha_and_beta(&request, Some(["a", "b"]));
}

#[test]
fn missing_ids_are_generated_in_the_form_mistral_requires() {
    let calls = r#"[{"index":0,"type":"function","function":{"name":"list_skills","arguments":"{\"query\":\"alpha\"}"}},{"index":1,"id":"","type":"function","function":{"name":"list_skills","arguments":"{\"query\":\"beta\"}"}}]"#;
    let streamed = after_calls(&[], stream_of_pieces(&[calls]));
    let body = after_calls(
        &["--no-stream"],
        message(&format!(r#""content":null,"tool_calls":{calls}"#), "tool_calls"),
    );
    for request in [&streamed, &body] {
        assert_alpha_and_beta(request, None);
        for (id, _, _) in calls_of(request) {
            let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric());
            assert!(id.len() == 9 && is_plain, "{id}");
        }
    }
    // If one of two ids is missing, only that one is generated.
    let mixed = calls.replacen(r#""type""#, r#""id":"kept","type""#, 1);
    let request = after_calls(&[], stream_of_pieces(&[&mixed]));
    assert_alpha_and_beta(&request, None);
    assert_eq!(calls_of(&request)[0].0, "kept");
}

#[test]
fn missing_index_is_inferred_from_id_or_position() {
    type Row = (&'static str, Option<[&'static str; 2]>, &'static [&'static str]);
    let table: &[Row] = &[
        (
            "interleaved, by id",
            Some(["a", "b"]),
            &[
                r#"[{"id":"a","function":{"name":"list_skills","arguments":""}}]"#,
                r#"[{"id":"b","function":{"name":"list_skills","arguments":""}}]"#,
                r#"[{"id":"a","function":{"arguments":"{\"query\":"}}]"#,
                r#"[{"id":"b","function":{"arguments":"{\"query\":"}}]"#,
                r#"[{"id":"b","function":{"arguments":"\"beta\"}"}}]"#,
                r#"[{"id":"a","function":{"arguments":"\"alpha\"}"}}]"#,
            ],
        ),
        (
            "interleaved, by place in the list",
            None,
            &[
                r#"[{"function":{"name":"list_skills","arguments":"{\"query\":"}},{"function":{"name":"list_skills","arguments":"{\"query\":"}}]"#,
                r#"[{"function":{"arguments":"\"alpha\"}"}},{"function":{"arguments":"\"beta\"}"}}]"#,
            ],
        ),
        (
            "one after the other, index null",
            Some(["a", "b"]),
            &[
                r#"[{"index":null,"id":"a","function":{"name":"list_skills","arguments":"{\"query\":\"alpha\"}"}}]"#,
                r#"[{"index":null,"id":"b","function":{"name":"list_skills","arguments":"{\"query\":"}}]"#,
                r#"[{"index":null,"function":{"arguments":"\"beta\"}"}}]"#,
            ],
        ),
        (
            "one after the other, neither index nor id",
            None,
            &[
                r#"[{"function":{"name":"list_skills","arguments":"{\"query\":\"alpha\"}"}}]"#,
                r#"[{"function":{"name":"list_skills","arguments":"{\"query\":\"beta\"}"}}]"#,
            ],
        ),
    ];
    for (dialect, ids, lists) in table {
        println!("{dialect}");
        assert_alpha_and_beta(&after_calls(&[], stream_of_pieces(lists)), *ids);
    }
    // A call without arguments does not absorb the next call.
    let request = after_calls(
        &[],
        stream_of_pieces(&[
            r#"[{"function":{"name":"list_skills","arguments":""}}]"#,
            r#"[{"function":{"name":"get_skill","arguments":"{\"skill_name\":\"beta\"}"}}]"#,
        ]),
    );
    let calls = calls_of(&request);
    let calls: Vec<(&str, &Value)> =
        calls.iter().map(|(_, name, args)| (name.as_str(), args)).collect();
    assert_eq!(calls, [("list_skills", &json!({})), ("get_skill", &json!({"skill_name": "beta"}))]);
}

#[test]
fn parallel_calls_with_index_0_stay_separate() {
    let by_id: &[&str] = &[
        r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":"{\"query\":"}}]"#,
        r#"[{"index":0,"function":{"arguments":"\"alpha\"}"}}]"#,
        r#"[{"index":0,"id":"b","function":{"name":"list_skills","arguments":"{\"query\":"}}]"#,
        r#"[{"index":0,"function":{"arguments":"\"beta\"}"}}]"#,
    ];
    assert_alpha_and_beta(&after_calls(&[], stream_of_pieces(by_id)), Some(["a", "b"]));
    let by_name: &[&str] = &[
        r#"[{"index":0,"function":{"name":"list_skills","arguments":"{\"query\":\"alpha\"}"}}]"#,
        r#"[{"index":0,"function":{"name":"list_skills","arguments":"{\"query\":\"beta\"}"}}]"#,
    ];
    assert_alpha_and_beta(&after_calls(&[], stream_of_pieces(by_name)), None);
    // Two objects concatenated in one call are separated, however they were split.
    let concatenated: [&[&str]; 2] = [
        &[
            r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":"{\"query\":\"alpha\"}{\"query\":\"beta\"}"}}]"#,
        ],
        &[
            r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":"{\"query\":\"alpha\""}}]"#,
            r#"[{"index":0,"function":{"arguments":"}{\"query\":"}}]"#,
            r#"[{"index":0,"function":{"arguments":"\"beta\"}"}}]"#,
        ],
    ];
    for lists in concatenated {
        let request = after_calls(&[], stream_of_pieces(lists));
        assert_alpha_and_beta(&request, None);
        assert_eq!(calls_of(&request)[0].0, "a", "the first keeps its id");
    }
    // `}{` inside a string does not separate calls.
    let request = after_calls(
        &[],
        stream_of_pieces(&[
            r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":"{\"query\":\"}{\"}"}}]"#,
        ]),
    );
    assert_eq!(calls_of(&request)[0].2, json!({"query": "}{"}));
}

#[test]
fn object_arguments_are_sent_back_as_text() {
    let call = r#"[{"id":"a","type":"function","function":{"name":"list_skills","arguments":{"query":"alpha"}}},{"id":"b","type":"function","function":{"name":"list_skills","arguments":{"query":"beta"}}}]"#;
    let streamed = after_calls(&[], stream_of_pieces(&[call]));
    let body = after_calls(
        &["--no-stream"],
        message(&format!(r#""content":"","tool_calls":{call}"#), "tool_calls"),
    );
    for request in [streamed, body] {
        // The server has checked that arguments are strings.
        assert_alpha_and_beta(&request, Some(["a", "b"]));
    }
}

#[test]
fn missing_arguments_become_an_empty_object() {
    let functions = [
        r#"{"name":"list_skills","arguments":""}"#,
        r#"{"name":"list_skills","arguments":null}"#,
        r#"{"name":"list_skills"}"#,
        r#"{"name":"list_skills","arguments":" \n"}"#,
        r#"{"name":"list_skills","arguments":"null"}"#,
        r#"{"name":"list_skills","arguments":"\"\""}"#,
    ];
    let calls: Vec<String> = functions
        .iter()
        .enumerate()
        .map(|(index, function)| {
            format!(
                r#"{{"index":{index},"id":"c{index}","type":"function","function":{function}}}"#
            )
        })
        .collect();
    let calls = format!("[{}]", calls.join(","));
    let streamed = after_calls(&[], stream_of_pieces(&[&calls]));
    let body =
        after_calls(&["--no-stream"], message(&format!(r#""tool_calls":{calls}"#), "tool_calls"));
    for request in [streamed, body] {
        for ((_, _, arguments), function) in calls_of(&request).iter().zip(functions) {
            assert_eq!(*arguments, json!({}), "{function}");
        }
        for result in results_of(&request) {
            assert_eq!(listed(result), ["alpha", "beta"]);
        }
    }
}

#[test]
fn cumulative_arguments_count_once() {
    let arguments: &[&str] = &[
        r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":"{\"query\""}}]"#,
        r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":"{\"query\":\"alpha"}}]"#,
        r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":"{\"query\":\"alpha\"}"}}]"#,
        r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":"{\"query\":\"alpha\"}"}}]"#,
        r#"[{"index":1,"id":"b","function":{"name":"list_skills","arguments":"{\"query\":\"beta\"}"}}]"#,
        r#"[{"index":1,"id":"b","function":{"name":"list_skills","arguments":"{\"query\":\"beta\"}"}}]"#,
    ];
    assert_alpha_and_beta(&after_calls(&[], stream_of_pieces(arguments)), Some(["a", "b"]));
}

#[test]
fn cumulative_content_counts_once() {
    let content = |texts: &[&str]| {
        let texts = texts.iter().map(|text| delta(&format!(r#""content":{}"#, json!(text))));
        stream(texts.chain([finish("stop")]))
    };
    let table: &[(&[&str], &str)] = &[
        (&["The", "The answer", "The answer is 4."], "The answer is 4.\n"),
        // Not cumulative: tokens with a common prefix.
        (&["1", "10"], "110\n"),
    ];
    for (texts, expected) in table {
        let talk = talk(&[], [content(texts)]);
        talk.run.success().stdout(expected);
    }
    // The whole text repeated at the end, as a message.
    let talk = talk(
        &[],
        [stream([
            delta(r#""content":"The answer""#),
            delta(r#""content":" is 4.""#),
            r#"{"choices":[{"index":0,"delta":{},"message":{"role":"assistant","content":"The answer is 4."},"finish_reason":"stop"}]}"#.into(),
        ])],
    );
    talk.run.success().stdout("The answer is 4.\n");
}

#[test]
fn invalid_arguments_are_reported_to_the_model_and_not_kept() {
    let broken = [
        r#"{"skill_name":"alpha""#,
        r#"{"skill_name":"alpha"}}"#,
        r#"{"skill_name":"alpha"}</tool_call>"#,
        "{'skill_name':'alpha'}",
        r#"["alpha"]"#,
        "7",
        "skill_name=alpha",
        // Encoded twice: only one level is decoded.
        r#""\"{\\\"skill_name\\\":\\\"alpha\\\"}\"""#,
    ];
    for arguments in broken {
        let call = format!(
            r#"[{{"index":0,"id":"a","type":"function","function":{{"name":"get_skill","arguments":{}}}}}]"#,
            json!(arguments)
        );
        let streamed = after_calls(&[], stream_of_pieces(&[&call]));
        let body = after_calls(
            &["--no-stream"],
            message(&format!(r#""content":null,"tool_calls":{call}"#), "tool_calls"),
        );
        for request in [streamed, body] {
            assert_eq!(calls_of(&request), [("a".into(), "get_skill".into(), json!({}))]);
            let error: Value = serde_json::from_str(results_of(&request)[0]).unwrap();
            let error = error["error"].as_str().unwrap();
            assert!(error.contains("arguments"), "{arguments}: {error}");
            assert!(!error.contains("skill_name"), "the error is one sentence: {error}");
        }
    }
}

#[test]
fn json_encoded_arguments_are_decoded_once() {
    let call = r#"[{"index":0,"id":"a","type":"function","function":{"name":"list_skills","arguments":"\"{\\\"query\\\":\\\"alpha\\\"}\""}}]"#;
    let request = after_calls(&[], stream_of_pieces(&[call]));
    assert_eq!(listed(results_of(&request)[0]), ["alpha"]);
    // The history contains the decoded object.
    assert_eq!(calls_of(&request)[0].2, json!({"query": "alpha"}));
}

#[test]
fn whole_call_in_one_delta_or_in_a_final_message_is_accepted() {
    let call = ALPHA.replace(r#""index":0,"#, "");
    let final_message = |before: &[String]| {
        let last = format!(
            r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":"","tool_calls":{call}}},"finish_reason":"tool_calls"}}]}}"#
        );
        stream(before.iter().cloned().chain([last]))
    };
    let nameless = call.replace(r#""id":"a","#, "");
    let table = [
        ("one delta", stream_of_pieces(&[ALPHA])),
        ("a message", final_message(&[])),
        ("both", final_message(&[pieces(ALPHA)])),
        ("both, the first without an id", final_message(&[pieces(&nameless)])),
        (
            "one delta with its reason",
            unmarked([format!(
                r#"{{"choices":[{{"delta":{{"role":"assistant","tool_calls":{call}}},"finish_reason":"tool_calls"}}]}}"#
            )]),
        ),
    ];
    for (dialect, reply) in table {
        let request = after_calls(&[], reply);
        let calls = calls_of(&request);
        assert_eq!(calls.len(), 1, "{dialect}: {calls:?}");
        assert_eq!(calls[0].2, json!({"query": "alpha"}), "{dialect}");
    }
}

/// Of more than 128 calls, the first 128 run; the others get an error each.
#[test]
fn calls_beyond_the_limit_get_an_error_and_do_not_run() {
    const LIMIT: usize = 128;
    let script = json!({"skill_name": "alpha", "script": "open('ran', 'w')"}).to_string();
    let mut calls = vec![("list_skills", "{}"); LIMIT];
    calls.extend([("run_python_script", script.as_str()), ("list_skills", "{}")]);
    for args in [&[][..], &["--no-stream"]] {
        let replies = [
            Reply::calls(calls.iter().copied()),
            Reply::call("list_skills", &json!({"query": "alpha"})),
            Reply::text("done"),
        ];
        let server = Server::start(replies);
        let test = skills().endpoint(&server).args(["-o", "json"]).args(args);
        let run = test.args(["go"]);
        let result = run.run().success().stdout_json();
        assert_eq!(result["tool_calls"], LIMIT + 3);
        assert!(!run.exists("skills/alpha/ran"), "the script has run");
        // The server has checked that each call has one result, in order.
        let requests = server.finish();
        let results = results_of(&requests[1]);
        assert_eq!(results.len(), LIMIT + 2);
        for (place, result) in results.iter().enumerate() {
            let result: Value = serde_json::from_str(result).unwrap();
            let error = result["error"].as_str().unwrap_or_default();
            assert_eq!(error.contains("first 128 calls"), place >= LIMIT, "{place}");
        }
        // The next message may contain calls again.
        assert_eq!(listed(results_of(&requests[2])[0]), ["alpha"]);
    }
}
