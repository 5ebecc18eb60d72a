//! How replies end: finish reasons, errors in a stream, missing ends.

use super::{
    ALPHA, after_calls, delta, finish, in_parallel, listed, message, pieces, results_of, stream,
    stream_of, talk, unmarked, whole,
};
use crate::harness::{Reply, Request};

#[test]
fn calls_are_run_whatever_the_finish_reason() {
    for reason in ["stop", "end_turn", "function_call", "STOP"] {
        let request = after_calls(&[], stream([pieces(ALPHA), finish(reason)]));
        assert_eq!(listed(results_of(&request)[0]), ["alpha"], "{reason}");
        let body = message(&format!(r#""content":null,"tool_calls":{ALPHA}"#), reason);
        after_calls(&["--no-stream"], body);
    }
    // Conversely, a reply without calls is an answer.
    let talk = talk(&[], [stream([delta(r#""content":"4""#), finish("tool_calls")])]);
    talk.run.success().stdout("4\n");
}

#[test]
fn unknown_finish_reasons_end_a_reply() {
    for reason in [r#""end""#, r#""eos""#, "null", "7", r#"{"type":"stop"}"#, r#""""#] {
        let last = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":{reason}}}]}}"#);
        let streamed = talk(&[], [stream([delta(r#""content":"4""#), last])]);
        streamed.run.success().stdout("4\n");
        let body =
            format!(r#"{{"choices":[{{"message":{{"content":"4"}},"finish_reason":{reason}}}]}}"#);
        talk(&["--no-stream"], [whole(&body)]).run.success().stdout("4\n");
    }
    // A finish reason that reports missing content is not a success.
    for reason in ["error", "model_context_window_exceeded", "max_tokens"] {
        let streamed = talk(&[], [stream([delta(r#""content":"The""#), finish(reason)])]);
        streamed.run.status(4).stdout("The\n");
        let body = talk(&["--no-stream"], [message(r#""content":"The""#, reason)]);
        body.run.status(4).stdout("The\n");
    }
}

/// An error inside a choice is reported in the provider's words, never as an answer, and its calls
/// never run. A temporary one is retried if no text was shown.
#[test]
fn an_error_in_a_choice_is_reported_as_what_it_is() {
    const ERROR: &str = r#""error":{"code":502,"message":"Upstream is gone"}"#;
    let call = r#"[{"index":0,"id":"a","type":"function","function":{"name":"run_python_script","arguments":"{\"skill_name\":\"alpha\",\"script\":\"open('ran','w')\"}"}}]"#;
    let calls = format!(r#""content":null,"tool_calls":{call}"#);
    let text = r#""content":"The half""#;
    let ended = |key: &str, fields: &str, more: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"{key}":{{{fields}}},"finish_reason":"error"{more}}}]}}"#
        )
    };
    for fields in [text, &calls] {
        // In the choice, or in its message.
        let wholes = [
            ended("message", fields, &format!(",{ERROR}")),
            ended("message", &format!("{fields},{ERROR}"), ""),
        ];
        for body in wholes {
            let talk = talk(&["--no-stream"], [whole(&body), whole(&body), whole(&body)]);
            talk.run.status(75).stdout_is_empty().stderr_has("Upstream is gone");
            let talk =
                super::talk(&["--no-stream"], [whole(&body), message(r#""content":"4""#, "stop")]);
            talk.run.success().stdout("4\n").stderr_lacks("→ run_python_script");
        }
    }
    for last in [ended("delta", "", &format!(",{ERROR}")), ended("delta", ERROR, "")] {
        let shown = talk(&[], [stream([delta(text), last.clone()])]);
        shown.run.status(4).stdout("The half\n").stderr_has("Upstream is gone");
        let retried = talk(&[], [stream([pieces(call), last]), Reply::text("4")]);
        retried.run.success().stdout("4\n").stderr_lacks("→ run_python_script");
    }
    // Without an error object, the finish reason is reported.
    for reason in ["error", "abort"] {
        let words = format!("the endpoint ended the reply with the reason `{reason}`");
        for reply in [stream([delta(text), finish(reason)]), message(text, reason)] {
            talk(&[], [reply]).run.status(4).stdout("The half\n").stderr_has(&words);
        }
        let retried = talk(&[], [stream([pieces(call), finish(reason)]), Reply::text("4")]);
        let run = retried.run.success().stdout("4\n").stderr_has(&words);
        run.stderr_lacks("→ run_python_script");
    }
    let lasting = ended("message", text, r#","error":{"code":401,"message":"bad key"}"#);
    talk(&[], [whole(&lasting)]).run.status(77).stdout_is_empty().stderr_has("bad key");
}

#[test]
fn incomplete_call_at_the_token_limit_is_not_run() {
    let first = r#"{"index":0,"id":"a","type":"function","function":{"name":"run_python_script","arguments":"{\"skill_name\":\"alpha\",\"script\":\"open('ran','w')\"}"}}"#;
    let half = r#"{"index":1,"id":"b","type":"function","function":{"name":"run_python_script","arguments":"{\"skill_name\":\"al"}}"#;
    for calls in [format!("[{half}]"), format!("[{first},{half}]"), format!("[{first}]")] {
        let streamed = stream([pieces(&calls), finish("length")]);
        let body = message(&format!(r#""content":null,"tool_calls":{calls}"#), "length");
        for (args, reply) in [(&[][..], streamed), (&["--no-stream"][..], body)] {
            let talk = talk(args, [reply]);
            talk.run.status(4).stderr_has("token limit").stderr_lacks("→ run_python_script");
            assert_eq!(talk.requests.len(), 1);
        }
    }
    // A later finish reason does not replace an earlier one.
    let talk =
        talk(&[], [stream([pieces(&format!("[{half}]")), finish("length"), finish("stop")])]);
    talk.run.status(4);
}

#[test]
fn error_in_a_stream_is_classified_by_its_code() {
    let passing = [
        r#"{"error":{"message":"Provider disconnected","code":502}}"#,
        r#"{"error":{"message":"Provider disconnected","code":"503"}}"#,
        r#"{"object":"error","message":"engine is dead","type":"InternalServerError","param":null,"code":500}"#,
        r#"{"id":"g","object":"chat.completion.chunk","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        r#"{"error":{"message":"The server is overloaded","type":"overloaded_error","code":null}}"#,
        r#"{"error":{"message":"Rate limit reached for requests","type":"requests","code":"rate_limit_exceeded"}}"#,
        r#"{"error":{"message":"The server had an error","type":"server_error"}}"#,
        r#"{"id":"g","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"error","error":{"code":502,"message":"Provider disconnected"}}]}"#,
    ];
    let forms = passing.iter().flat_map(|error| {
        [
            (&[][..], stream([error])),
            (&[], Reply::sse([format!("event: error\ndata: {error}")])),
            (&["--no-stream"], whole(error)),
        ]
    });
    in_parallel(forms, |(args, reply)| {
        let talk = talk(args, [reply, Reply::text("4")]);
        talk.run.success().stdout("4\n");
    });
    let lasting = [
        (
            r#"{"choices":[{"index":0,"message":{"content":""},"finish_reason":"error","error":{"code":400,"message":"Provider says no"}}]}"#,
            1,
        ),
        (r#"{"error":{"message":"Provider says no","code":400}}"#, 1),
        (r#"{"error":{"message":"Provider says no","code":"401"}}"#, 77),
        (r#"{"error":"Provider says no"}"#, 1),
        (r#"{"object":"error","message":"Provider says no","code":400}"#, 1),
        (r#"[{"error":{"message":"Provider says no","code":400,"status":"INVALID_ARGUMENT"}}]"#, 1),
        (r#"{"error":{"message":"Provider says no","code":"insufficient_quota"}}"#, 1),
    ];
    for (error, status) in lasting {
        for (args, reply) in [(&[][..], stream([error])), (&["--no-stream"][..], whole(error))] {
            let talk = talk(args, [reply]);
            talk.run.status(status).stdout_is_empty().stderr_has("Provider says no");
        }
    }
}

#[test]
fn error_after_text_cuts_the_answer_off() {
    let text = delta(r#""content":"The answer""#);
    for error in [
        r#"{"error":{"message":"Provider disconnected","code":502}}"#,
        r#"{"object":"error","message":"Provider disconnected","code":500}"#,
        r#"{"error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
    ] {
        let talk = talk(&[], [stream([text.as_str(), error])]);
        talk.run.status(4).stdout("The answer\n").stderr_has("Provider disconnected");
        assert_eq!(talk.requests.len(), 1, "no retry after emitted text");
    }
    // A call before the error is not run.
    let error = r#"{"error":{"message":"Provider disconnected","code":502}}"#;
    let talk = talk(&[], [stream([pieces(ALPHA), error.into()]), Reply::text("4")]);
    talk.run.success().stdout("4\n").stderr_lacks("→");
    assert_eq!(talk.requests[1].messages().len(), 2);
}

#[test]
fn finish_reason_without_done_marker_ends_a_reply() {
    for ending in
        [vec![], vec![r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#]]
    {
        let text = [delta(r#""content":"4""#), finish("stop")];
        let payloads = text.iter().map(String::as_str).chain(ending.clone());
        for reply in [unmarked(payloads.clone()), unmarked(payloads).then_close()] {
            talk(&[], [reply]).run.success().stdout("4\n");
        }
        let calls = [pieces(ALPHA), finish("tool_calls")];
        let payloads = calls.iter().map(String::as_str).chain(ending);
        let talk = talk(&[], [unmarked(payloads), Reply::text("done")]);
        talk.run.success().stdout("done\n");
    }
    // The last line lacks its line feed.
    let bytes = format!("data: {}\n\ndata: {}", delta(r#""content":"4""#), finish("stop"));
    talk(&[], [stream_of(bytes)]).run.success().stdout("4\n");
}

#[test]
fn stream_without_reason_or_marker_is_a_failure() {
    // After text, the answer counts as cut off.
    let text = delta(r#""content":"The answer""#);
    let cut = talk(&[], [unmarked([&text])]);
    cut.run.status(4).stdout("The answer\n");
    assert_eq!(cut.requests.len(), 1);
    // Before any text, the request is retried, whatever else was received.
    let rows = [
        delta(r#""role":"assistant","content":"""#),
        delta(r#""reasoning_content":"Hm.""#),
        pieces(ALPHA),
        r#"{"choices":[],"usage":null}"#.to_string(),
    ];
    in_parallel(rows, |payload| {
        let talk = talk(&[], [unmarked([&payload]), Reply::text("4")]);
        talk.run.success().stdout("4\n").stderr_lacks("→");
        assert_eq!(talk.requests[0].json, talk.requests[1].json, "{payload}");
    });
}

#[test]
fn stream_without_reason_or_marker_is_temporary() {
    let cut = || unmarked([delta(r#""role":"assistant","content":"""#)]);
    let talk = talk(&[], [cut(), cut(), cut()]);
    talk.run.status(75).stdout_is_empty();
}

#[test]
fn stream_that_ends_inside_an_event_is_a_failure() {
    let half = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"The ans";
    let text = delta(r#""content":"The answer""#);
    let cut = talk(&[], [stream_of(format!("data: {text}\n\n{half}"))]);
    cut.run.status(4).stdout("The answer\n");
    // Only the end of the connection ends this stream.
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    for reply in [stream_of(half).cut_off(), Reply::raw(format!("{head}{half}")).then_close()] {
        let talk = talk(&[], [reply, Reply::text("4")]);
        talk.run.success().stdout("4\n");
    }
}

#[test]
fn unstreamed_answer_is_requested_once_where_streams_are_missing() {
    for refusal in [
        Reply::status(404),
        Reply::status(405).body("Method Not Allowed"),
        Reply::status(204),
        Reply::status(200),
        Reply::error(400, "Streaming is not supported by this model"),
    ] {
        let calls = message(&format!(r#""content":null,"tool_calls":{ALPHA}"#), "tool_calls");
        let talk = talk(&[], [refusal.clone(), calls, message(r#""content":"done""#, "stop")]);
        talk.run.success().stdout("done\n");
        let streams: Vec<bool> = talk.requests.iter().map(Request::requests_stream).collect();
        // The program remembers it after one reply.
        assert_eq!(streams, [true, false, false]);
        assert_eq!(talk.requests[1].json.get("stream_options"), None);
        assert_eq!(talk.requests[0].messages(), talk.requests[1].messages());
    }
    // Streaming was not the problem: one more request, then the error.
    let twice = talk(&[], [Reply::status(405), Reply::status(405)]);
    twice.run.status(1).stdout_is_empty().stderr_has("405");
    // No second request if the first did not ask for a stream.
    talk(&["--no-stream"], [Reply::status(405)]).run.status(1);
}
