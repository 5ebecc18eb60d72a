//! Rows 14-26 and 62: how replies are framed, where tokens are counted, and
//! how long silence may last.

use super::{
    ALPHA, at_once, delta, finish, listed, message, pieces, results_of, skills, stream, stream_of,
    talk, talk_with, unmarked, whole,
};
use crate::harness::{Reply, seconds};

const FOUR: &str = r#"{"choices":[{"delta":{"content":"4"},"finish_reason":"stop"}]}"#;

#[test]
fn row_14_comments_are_passed_over_and_reset_the_idle_timer() {
    let comments = [
        ": OPENROUTER PROCESSING\n\n",
        ": keep-alive\n\n",
        "data: : OPENROUTER PROCESSING\n\n",
        ":\n\n",
    ];
    // Longer all together than silence may last, and none of them is silence.
    let mut chunks = vec![(
        seconds(0.0),
        format!("data: {}\n\n", delta(r#""content":"The ""#)),
    )];
    chunks.extend(comments.map(|comment| (seconds(0.3), comment.to_string())));
    let end = format!("data: {FOUR}\n\n: done\n\ndata: [DONE]\n\n");
    chunks.push((seconds(0.3), end));
    let test = skills().env("LLM_TIMEOUT_SECONDS", "1");
    let talk = talk_with(test, &[], [Reply::chunks(chunks)]);
    talk.run
        .success()
        .stdout("The 4\n")
        .stderr_is_empty()
        .took_at_least(seconds(1.5));
}

#[test]
fn row_14_comments_before_the_first_event_are_no_reply() {
    let comments = ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n";
    let first = stream_of(format!("{comments}data: {FOUR}\n\ndata: [DONE]\n\n"));
    talk(&[], [first]).run.success().stdout("4\n");
    // Comments alone are a stream that ended with nothing.
    let talk = talk(&[], [stream_of(comments), Reply::text("4")]);
    talk.run.success().stdout("4\n");
}

#[test]
fn row_15_blank_lines_before_a_whole_body_are_trimmed() {
    let body = r#"{"choices":[{"message":{"content":"4"},"finish_reason":"stop"}]}"#;
    let blank = |pause, text: &str| (seconds(pause), text.to_string());
    let dripping = Reply::chunks([
        blank(0.0, "\n"),
        blank(0.4, "\r\n\n"),
        blank(0.4, " \t\n"),
        blank(0.4, &format!("\n{}", &body[..20])),
        blank(0.0, &body[20..]),
    ])
    .header("Content-Type", "application/json");
    for (args, reply) in [
        (&["--no-stream"][..], whole(&format!("\n\n\n\n{body}\n"))),
        (&["--no-stream"][..], dripping),
        (&[][..], whole(&format!("\r\n\r\n{body}"))),
        (&[][..], stream_of(format!("\n\n\ndata: {FOUR}\n\n"))),
    ] {
        let test = skills().env("LLM_TIMEOUT_SECONDS", "1");
        talk_with(test, args, [reply]).run.success().stdout("4\n");
    }
}

#[test]
fn row_16_data_without_a_space() {
    let bytes = format!(
        "data:{}\n\ndata:  {}\n\ndata:{}\n\ndata:[DONE]\n\n",
        delta(r#""content":" two  ""#),
        delta(r#""content":"blanks""#),
        finish("stop"),
    );
    talk(&[], [stream_of(bytes)])
        .run
        .success()
        .stdout(" two  blanks\n");
    let calls = format!(
        "data:{}\n\ndata:{}\n\ndata:[DONE]\n\n",
        pieces(ALPHA),
        finish("tool_calls")
    );
    let talk = talk(&[], [stream_of(calls), Reply::text("done")]);
    talk.run.success().stdout("done\n");
    assert_eq!(listed(results_of(&talk.requests[1])[0]), ["alpha"]);
}

#[test]
fn row_17_lines_may_end_and_be_cut_anywhere() {
    let text = "Grüße, 世界 🦀!";
    let first = delta(&format!(r#""content":"{text}""#)).replace(r#","delta""#, "\n,\"delta\"");
    let (one, two) = first.split_once('\n').unwrap();
    // `event` lines, ids, data over two lines.
    let body = format!(
        "event: message\nid: 1\nretry: 10\ndata: {one}\ndata: {two}\n\nevent: end\ndata: {}\n\ndata: [DONE]\n\n",
        finish("stop")
    );
    for end in ["\n", "\r\n", "\r"] {
        let bytes = body.replace('\n', end).into_bytes();
        let by_byte = bytes.iter().map(|byte| (seconds(0.0), vec![*byte]));
        for reply in [stream_of(bytes.clone()), Reply::chunks(by_byte)] {
            talk(&[], [reply])
                .run
                .success()
                .stdout(&format!("{text}\n"));
        }
    }
    // One packet each, cut inside of `data:`, of a character, of `\r\n`.
    let bytes = body.replace('\n', "\r\n").into_bytes();
    let crab = bytes
        .windows(4)
        .position(|four| four == "🦀".as_bytes())
        .unwrap();
    let data = bytes.windows(5).position(|five| five == b"data:").unwrap();
    let ends = [data + 2, crab + 1, crab + 3, bytes.len() - 3, bytes.len()];
    let mut from = 0;
    let cut = ends.map(|end| {
        let part = bytes[from..end].to_vec();
        from = end;
        (seconds(0.02), part)
    });
    talk(&[], [Reply::chunks(cut)])
        .run
        .success()
        .stdout(&format!("{text}\n"));
}

#[test]
fn row_17_glued_frames_are_taken_apart() {
    let (the, answer) = (delta(r#""content":"The ""#), delta(r#""content":"answer""#));
    let end = format!("data: {}\n\ndata: [DONE]\n\n", finish("stop"));
    let table = [
        (
            "one line end lost",
            format!("data: {the}\ndata: {answer}\n\n{end}"),
            "The answer\n",
        ),
        (
            "both lost",
            format!("data: {the}data: {answer}\n\n{end}"),
            "The answer\n",
        ),
        (
            "no prefix",
            format!("data: {the}{answer}\n\n{end}"),
            "The answer\n",
        ),
        (
            "prefix twice",
            format!("data: data: {the}\n\ndata: {answer}\n\n{end}"),
            "The answer\n",
        ),
        // Z.AI: half of an old frame, still in a buffer, before the next one.
        (
            "after half a frame",
            format!(
                "data: {the}\n\ndata: {{\"id\":\"x\",\"object\":\"chat.completion.cdata: {answer}\n\n{end}"
            ),
            "The answer\n",
        ),
        (
            "the marker glued",
            format!("data: {the}\n\ndata: {FOUR}data: [DONE]\n\n"),
            "The 4\n",
        ),
    ];
    for (dialect, bytes, expected) in table {
        println!("{dialect}");
        talk(&[], [stream_of(bytes)]).run.success().stdout(expected);
    }
    // In the text of an answer it is just text.
    let quoting = delta(r#""content":"write data: {\"a\":1}data: {}""#);
    let bytes = format!("data: {quoting}\n\n{end}");
    talk(&[], [stream_of(bytes)])
        .run
        .success()
        .stdout("write data: {\"a\":1}data: {}\n");
}

#[test]
fn row_18_an_error_inside_a_stream_is_judged_by_its_code() {
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
    at_once(forms, |(args, reply)| {
        let talk = talk(args, [reply, Reply::text("4")]);
        talk.run.success().stdout("4\n");
    });
    let lasting = [
        (r#"{"error":{"message":"Provider says no","code":400}}"#, 1),
        (
            r#"{"error":{"message":"Provider says no","code":"401"}}"#,
            77,
        ),
        (r#"{"error":"Provider says no"}"#, 1),
        (
            r#"{"object":"error","message":"Provider says no","code":400}"#,
            1,
        ),
        (
            r#"[{"error":{"message":"Provider says no","code":400,"status":"INVALID_ARGUMENT"}}]"#,
            1,
        ),
        (
            r#"{"error":{"message":"Provider says no","code":"insufficient_quota"}}"#,
            1,
        ),
    ];
    for (error, status) in lasting {
        for (args, reply) in [
            (&[][..], stream([error])),
            (&["--no-stream"][..], whole(error)),
        ] {
            let talk = talk(args, [reply]);
            talk.run
                .status(status)
                .stdout_is_empty()
                .stderr_has("Provider says no");
        }
    }
}

#[test]
fn row_18_an_error_after_text_cuts_the_answer_off() {
    let text = delta(r#""content":"The answer""#);
    for error in [
        r#"{"error":{"message":"Provider disconnected","code":502}}"#,
        r#"{"object":"error","message":"Provider disconnected","code":500}"#,
        r#"{"error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
    ] {
        let talk = talk(&[], [stream([text.as_str(), error])]);
        talk.run
            .status(4)
            .stdout("The answer\n")
            .stderr_has("Provider disconnected");
        assert_eq!(
            talk.requests.len(),
            1,
            "what was told is not asked for again"
        );
    }
    // A call before it is not run.
    let error = r#"{"error":{"message":"Provider disconnected","code":502}}"#;
    let talk = talk(
        &[],
        [stream([pieces(ALPHA), error.into()]), Reply::text("4")],
    );
    talk.run.success().stdout("4\n").stderr_lacks("→");
    assert_eq!(talk.requests[1].messages().len(), 2);
}

#[test]
fn row_19_a_reason_without_the_marker_is_an_end() {
    for ending in [
        vec![],
        vec![r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#],
    ] {
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
    // The last line without its end.
    let bytes = format!(
        "data: {}\n\ndata: {}",
        delta(r#""content":"4""#),
        finish("stop")
    );
    talk(&[], [stream_of(bytes)]).run.success().stdout("4\n");
}

#[test]
fn row_20_an_end_with_neither_is_a_failure() {
    // After text: cut off.
    let text = delta(r#""content":"The answer""#);
    let said = talk(&[], [unmarked([&text])]);
    said.run.status(4).stdout("The answer\n");
    assert_eq!(said.requests.len(), 1);
    // Before any: asked again, whatever else had come.
    let rows = [
        delta(r#""role":"assistant","content":"""#),
        delta(r#""reasoning_content":"Hm.""#),
        pieces(ALPHA),
        r#"{"choices":[],"usage":null}"#.to_string(),
    ];
    at_once(rows, |payload| {
        let talk = talk(&[], [unmarked([&payload]), Reply::text("4")]);
        talk.run.success().stdout("4\n").stderr_lacks("→");
        assert_eq!(talk.requests[0].json, talk.requests[1].json, "{payload}");
    });
}

#[test]
fn row_20_an_end_with_neither_is_temporary_and_never_0() {
    let cut = || unmarked([delta(r#""role":"assistant","content":"""#)]);
    let talk = talk(&[], [cut(), cut(), cut()]);
    talk.run.status(75).stdout_is_empty();
}

#[test]
fn row_20_an_end_inside_of_an_event_is_a_failure_too() {
    let half = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"The ans";
    let text = delta(r#""content":"The answer""#);
    let said = talk(&[], [stream_of(format!("data: {text}\n\n{half}"))]);
    said.run.status(4).stdout("The answer\n");
    // Nothing but the end of the connection says that it is over.
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    for reply in [
        stream_of(half).cut(),
        Reply::raw(format!("{head}{half}")).then_close(),
    ] {
        let talk = talk(&[], [reply, Reply::text("4")]);
        talk.run.success().stdout("4\n");
    }
}

#[test]
fn row_21_the_first_byte_tells_what_a_reply_is() {
    let page =
        "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>data: {}</body></html>";
    for page in [page.to_string(), format!("\n\n  {page}")] {
        for (args, reply) in [
            (&[][..], whole(&page).header("Content-Type", "text/html")),
            (&[][..], stream_of(page.clone())),
            (&["--no-stream"][..], whole(&page)),
        ] {
            let talk = talk(args, [reply]);
            talk.run
                .status(1)
                .stdout_is_empty()
                .stderr_has("Sign in")
                .stderr_has("LLM_API_BASE_URL");
        }
    }
    // Headers say one thing, the body is another.
    let events = format!("event: message\ndata: {FOUR}\n\ndata: [DONE]\n\n");
    let body = r#"{"choices":[{"message":{"content":"4"},"finish_reason":"stop"}]}"#;
    for (args, reply) in [
        (&[][..], whole(&events)),
        (&["--no-stream"][..], whole(&events)),
        (&["--no-stream"][..], stream_of(events.clone())),
        (
            &["--no-stream"][..],
            stream_of(format!(": hello\n\n{events}")),
        ),
        (&[][..], stream_of(body)),
        (
            &[][..],
            whole(body).header("Content-Type", "text/event-stream"),
        ),
        (&[][..], whole(&format!("\u{feff}{body}"))),
        (&[][..], whole(&format!("\u{feff}{events}"))),
    ] {
        talk(args, [reply]).run.success().stdout("4\n");
    }
}

#[test]
fn row_22_where_nothing_streams_a_whole_answer_is_asked_for_once() {
    for refusal in [
        Reply::status(404),
        Reply::status(405).body("Method Not Allowed"),
        Reply::status(204),
        Reply::status(200),
        Reply::error(400, "Streaming is not supported by this model"),
    ] {
        let calls = message(
            &format!(r#""content":null,"tool_calls":{ALPHA}"#),
            "tool_calls",
        );
        let talk = talk(
            &[],
            [
                refusal.clone(),
                calls,
                message(r#""content":"done""#, "stop"),
            ],
        );
        talk.run.success().stdout("done\n");
        let streams: Vec<bool> = talk
            .requests
            .iter()
            .map(crate::harness::Request::wants_stream)
            .collect();
        // Once is enough to know.
        assert_eq!(streams, [true, false, false]);
        assert_eq!(talk.requests[1].json.get("stream_options"), None);
        assert_eq!(talk.requests[0].messages(), talk.requests[1].messages());
    }
    // It was not the stream: once, and the end.
    let twice = talk(&[], [Reply::status(405), Reply::status(405)]);
    twice.run.status(1).stdout_is_empty().stderr_has("405");
    // Nothing to try where no stream was asked for.
    talk(&["--no-stream"], [Reply::status(405)]).run.status(1);
}

#[test]
fn row_23_chunks_without_choices_are_no_surprise() {
    let usage = r#""usage":{"prompt_tokens":11,"completion_tokens":2,"total_tokens":13}"#;
    let talk = talk(
        &["-v"],
        [stream([
            // Azure's first one.
            r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false}}}]}"#.to_string(),
            r#"{"choices":null}"#.into(),
            r#"{"id":"x"}"#.into(),
            "{}".into(),
            delta(r#""content":"4""#),
            r#"{"choices":[{"index":0,"delta":null,"finish_reason":null}]}"#.into(),
            r#"{"choices":[{"index":0,"finish_reason":"stop"}]}"#.into(),
            format!(r#"{{"choices":[],{usage}}}"#),
            format!("{{{usage}}}"),
            r#"{"choices":[]}"#.into(),
        ])],
    );
    talk.run
        .success()
        .stdout("4\n")
        .stderr_has("11 tokens read, 2 written");
}

#[test]
fn row_24_tokens_are_counted_wherever_they_are_reported() {
    let count = |prompt: u32, completion: u32| {
        format!(r#""usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion}}}"#)
    };
    let (text, usage) = (delta(r#""content":"4""#), count(11, 2));
    let in_choice = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop",{usage}}}]}}"#);
    let in_last = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],{usage}}}"#);
    let each = |completion| {
        let usage = count(11, completion);
        format!(r#"{{"choices":[{{"delta":{{"content":"4"}}}}],{usage}}}"#)
    };
    let after_null = r#"{"choices":[],"usage":null}"#.to_string();
    let table = [
        ("the choice", vec![text.clone(), in_choice.clone()], "4\n"),
        (
            "the last chunk of the text",
            vec![text.clone(), in_last.clone()],
            "4\n",
        ),
        (
            "every chunk",
            vec![each(1), each(2), finish("stop")],
            "44\n",
        ),
        (
            "null afterwards",
            vec![text.clone(), in_last.clone(), after_null],
            "4\n",
        ),
        (
            "an empty object afterwards",
            vec![text.clone(), in_last, r#"{"choices":[],"usage":{}}"#.into()],
            "4\n",
        ),
    ];
    for (place, payloads, expected) in table {
        println!("{place}");
        let talk = talk(&["-v"], [stream(payloads)]);
        talk.run
            .success()
            .stdout(expected)
            .stderr_has("11 tokens read, 2 written");
    }
    let body = format!(
        r#"{{"choices":[{{"message":{{"content":"4"}},"finish_reason":"stop",{usage}}}]}}"#
    );
    let whole_body = talk(&["-v", "--no-stream"], [whole(&body)]);
    whole_body
        .run
        .success()
        .stderr_has("11 tokens read, 2 written");
    // Half of it, or of another type: no failure.
    for usage in [
        r#"{"total_tokens":3}"#,
        r#"{"prompt_tokens":null}"#,
        "[]",
        "7",
        r#""x""#,
    ] {
        let last =
            format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],"usage":{usage}}}"#);
        talk(&[], [stream([text.clone(), last])])
            .run
            .success()
            .stdout("4\n");
    }
}

#[test]
fn row_26_tokens_are_shown_as_reported() {
    // Groq leaves reasoning out of the total, others count what was cached twice.
    let usage = r#"{"prompt_tokens":11,"completion_tokens":2,"total_tokens":999,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":500}}"#;
    let last = format!(r#"{{"choices":[],"usage":{usage}}}"#);
    let talk = talk(&["-v"], [stream([FOUR.to_string(), last])]);
    talk.run.success().stderr_has("11 tokens read, 2 written");
}

#[test]
fn row_62_silence_has_its_own_limit_before_and_after_the_first_byte() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let body = format!("data: {FOUR}\n\n");
    let rows = [
        // A local model reads the prompt: longer than any later silence may last.
        (Reply::text("4").delay(seconds(1.6)), 0, "4\n"),
        // The head alone is no sign that more will come soon.
        (
            Reply::raw_pieces([(seconds(0.0), head.to_string()), (seconds(1.6), body)])
                .then_close(),
            0,
            "4\n",
        ),
        (Reply::text("The answer is").hang(), 4, "The answer is\n"),
    ];
    at_once(rows, |(reply, status, answer)| {
        let test = skills().env("LLM_TIMEOUT_SECONDS", "1");
        let talk = talk_with(test, &[], [reply]);
        talk.run
            .status(status)
            .stdout(answer)
            .took_at_most(seconds(4.0));
    });
}

#[test]
fn row_62_the_runs_own_limit_ends_every_wait() {
    let limited = talk(&["--timeout", "1"], [Reply::nothing().hang()]);
    limited.run.status(3).took_at_most(seconds(1.9));
}
