//! Token usage in replies, and limits on silence.

use super::FOUR;
use super::{delta, finish, in_parallel, skills, stream, talk, talk_with, whole};
use crate::harness::{Reply, seconds};

#[test]
fn chunks_without_choices_are_accepted() {
    let usage = r#""usage":{"prompt_tokens":11,"completion_tokens":2,"total_tokens":13}"#;
    let talk = talk(
        &["-v"],
        [stream([
            // Azure's first chunk.
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
    talk.run.success().stdout("4\n").stderr_has("11 tokens read, 2 written");
}

#[test]
fn token_usage_is_read_from_every_place() {
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
        ("the last chunk of the text", vec![text.clone(), in_last.clone()], "4\n"),
        ("every chunk", vec![each(1), each(2), finish("stop")], "44\n"),
        ("null afterwards", vec![text.clone(), in_last.clone(), after_null], "4\n"),
        (
            "an empty object afterwards",
            vec![text.clone(), in_last, r#"{"choices":[],"usage":{}}"#.into()],
            "4\n",
        ),
    ];
    for (place, payloads, expected) in table {
        println!("{place}");
        let talk = talk(&["-v"], [stream(payloads)]);
        talk.run.success().stdout(expected).stderr_has("11 tokens read, 2 written");
    }
    let body = format!(
        r#"{{"choices":[{{"message":{{"content":"4"}},"finish_reason":"stop",{usage}}}]}}"#
    );
    let whole_body = talk(&["-v", "--no-stream"], [whole(&body)]);
    whole_body.run.success().stderr_has("11 tokens read, 2 written");
    // Incomplete usage, or usage of another type, is not a failure.
    for usage in [r#"{"total_tokens":3}"#, r#"{"prompt_tokens":null}"#, "[]", "7", r#""x""#] {
        let last =
            format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],"usage":{usage}}}"#);
        talk(&[], [stream([text.clone(), last])]).run.success().stdout("4\n");
    }
}

#[test]
fn token_usage_is_shown_as_reported() {
    // Groq omits reasoning from the total; others count cached tokens twice.
    let usage = r#"{"prompt_tokens":11,"completion_tokens":2,"total_tokens":999,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":500}}"#;
    let last = format!(r#"{{"choices":[],"usage":{usage}}}"#);
    let talk = talk(&["-v"], [stream([FOUR.to_string(), last])]);
    talk.run.success().stderr_has("11 tokens read, 2 written");
}

#[test]
fn silence_before_and_after_the_first_byte_has_separate_limits() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let body = format!("data: {FOUR}\n\n");
    let rows = [
        // A local model reads the prompt first, which may exceed the later limit.
        (Reply::text("4").delay(seconds(1.6)), 0, "4\n"),
        // A response head does not end the first limit.
        (
            Reply::raw_pieces([(seconds(0.0), head.to_string()), (seconds(1.6), body)])
                .then_close(),
            0,
            "4\n",
        ),
        (Reply::text("The answer is").hang(), 4, "The answer is\n"),
    ];
    in_parallel(rows, |(reply, status, answer)| {
        let test = skills().env("LLM_TIMEOUT_SECONDS", "1");
        let talk = talk_with(test, &[], [reply]);
        talk.run.status(status).stdout(answer).took_at_most(seconds(4.0));
    });
}

#[test]
fn run_timeout_ends_every_wait() {
    let limited = talk(&["--timeout", "1"], [Reply::empty().hang()]);
    limited.run.status(3).took_at_most(seconds(1.9));
}
