//! How refusals are classified and reported.

use serde_json::{Value, json};

use super::{ALPHA, in_parallel, skills, stream_of_pieces, talk, talk_with};
use crate::harness::Reply;

#[test]
fn refusal_message_is_found_and_reported() {
    // The others are in the test of the function.
    let forms = [
        r#"{"error":{"message":"no such thing","type":"invalid_request_error","param":null,"code":"bad"}}"#,
        r#"{"object":"error","message":{"detail":[{"loc":["body"],"msg":"no such thing"}]}}"#,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"no such thing\"}}","provider_name":"X"}}}"#,
        "no such thing",
        "<html><head><title>no such thing</title></head></html>",
    ];
    for form in forms {
        let reply = Reply::status(400).body(form).header("x-request-id", "req-7f3");
        let talk = talk(&[], [reply]);
        let first = talk.run.stderr.lines().next().unwrap_or_default().to_string();
        assert!(first.contains("no such thing"), "{form}: {first}");
        assert!(first.contains("status 400") && first.contains("/v1/chat/completions"), "{first}");
        assert!(first.contains("req-7f3"), "{first}");
        assert!(!first.contains('{'), "words, not JSON: {first}");
        talk.run.status(1).stdout_is_empty();
    }
}

#[test]
fn refusal_without_message_quotes_the_start_of_the_body() {
    let long = format!("{{\"odd\":\"{}\"}}", "x".repeat(5000));
    for (body, expected) in [
        (long.as_bytes(), "{\"odd\":\"xxx"),
        (b"{\"odd\":[1,2]}", "{\"odd\":[1,2]}"),
        (b"\xff\xfe oops", "oops"),
        (b"{\"error\":{}}", "{\"error\":{}}"),
        (b"<html>", "HTML"),
        (b"", "status 418"),
    ] {
        for header in ["request-id", "apim-request-id", "X-Request-Id"] {
            let talk = talk(&[], [Reply::status(418).body(body).header(header, "req-7f3")]);
            talk.run.check(talk.run.stderr.len() < 700, "at most the first 300 bytes");
            talk.run.status(1).stderr_has(expected).stderr_has("status 418").stderr_has("req-7f3");
        }
    }
}

#[test]
fn quota_error_is_not_a_rate_limit() {
    let lasting = [
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details."}}"#,
        ),
        (402, r#"{"error":{"message":"Insufficient credits","code":402}}"#),
        (402, ""),
        (400, r#"{"error":{"message":"Your credit balance is too low to access the API."}}"#),
    ];
    for (status, body) in lasting {
        let quota = Reply::status(status).body(body);
        talk(&[], [quota.clone()]).run.status(1).stdout_is_empty();
        // Even if the server sends Retry-After.
        if body.contains("insufficient_quota") {
            talk(&[], [quota.header("Retry-After", "0")]).run.status(1);
        }
    }
    let passing = [
        (
            429,
            r#"{"error":{"message":"Rate limit reached for requests. Limit: 3 / min. Please try again in 10ms. Add a payment method to your account at https://platform.openai.com/account/billing to increase your rate limit.","code":"rate_limit_exceeded"}}"#,
        ),
        (529, r#"{"error":{"message":"Overloaded"}}"#),
        (529, ""),
        (400, r#"{"error":{"message":"Overloaded","type":"overloaded_error"}}"#),
        (
            400,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Please come back later"}}"#,
        ),
        (503, ""),
    ];
    in_parallel(passing, |(status, body)| {
        let talk = talk(&[], [Reply::status(status).body(body), Reply::text("4")]);
        talk.run.success().stdout("4\n");
    });
}

/// A refusal by a real endpoint.
const TOO_LONG: &str = "This endpoint's maximum context length is 128000 tokens. However, you requested about 130000 tokens.";

#[test]
fn full_context_is_recognized_by_its_message() {
    for status in [400, 422, 500] {
        let talk = talk(&[], [Reply::error(status, TOO_LONG)]);
        talk.run.status(1).stdout_is_empty().stderr_has("hint:").stderr_has("context window");
        assert_eq!(talk.requests.len(), 1, "never unchanged: {status}");
    }
    // Cerebras sends no message.
    for status in [400, 413] {
        let talk = talk(&[], [Reply::status(status)]);
        talk.run.status(1).stdout_is_empty().stderr_has("context window");
    }
    // Messages that do not report a full context.
    let other = talk(&[], [Reply::error(400, "the image exceeds the limit of the server")]);
    other.run.status(1).stderr_lacks("context window");
}

#[test]
fn long_results_are_shortened_once() {
    let long = "a long line of a long file\n".repeat(2000);
    let read = || {
        Reply::call("read_file_in_skill", &json!({"skill_name": "alpha", "file_path": "long.txt"}))
    };
    let test = || skills().file("skills/alpha/long.txt", &long);
    let full = || Reply::error(400, TOO_LONG);
    let talk = talk_with(test(), &[], [read(), full(), Reply::text("done")]);
    talk.run.success().stdout("done\n");
    let size = |index: usize| talk.requests[index].tool_result("call_1").len();
    assert!(size(2) < size(1) / 2, "{} of {}", size(2), size(1));
    assert_eq!(talk.requests[1].messages()[..3], talk.requests[2].messages()[..3]);
    // Only once: then the error is reported to the user.
    let talk = talk_with(test(), &[], [read(), full(), full()]);
    talk.run.status(1).stdout_is_empty().stderr_has("context window");
}

#[test]
fn call_refused_by_groq_is_requested_again_and_then_reported() {
    let error = r#"{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=list_skills{\"content\": 1}</function>"}}"#;
    let in_stream = || Reply::sse([format!("event: error\ndata: {error}")]);
    let refused = || Reply::status(400).body(error);
    for (args, failure) in
        [(&[][..], &refused as &dyn Fn() -> Reply), (&["--no-stream"], &refused), (&[], &in_stream)]
    {
        // After the first refusal the same request is sent again.
        let once = talk(args, [failure(), Reply::text("4")]);
        once.run.success().stdout("4\n");
        assert_eq!(once.requests[0].json, once.requests[1].json);
        // After the second, with the problem described, in a message order that all endpoints
        // accept.
        let twice = talk(
            args,
            [failure(), failure(), Reply::call("list_skills", &json!({})), Reply::text("done")],
        );
        twice.run.success().stdout("done\n");
        let reported = twice.requests[2].messages();
        assert_eq!(reported[..2], *twice.requests[0].messages());
        let text = serde_json::to_string(&reported[2..]).unwrap();
        assert!(text.contains("<function=list_skills"), "the model's text is quoted: {text}");
        assert_eq!(twice.requests[2].json["tools"], twice.requests[0].json["tools"]);
        // The addition applies to that request only.
        let after = twice.requests[3].messages();
        assert!(!serde_json::to_string(after).unwrap().contains("<function="));
        // The third refusal is an error.
        let thrice = talk(args, [failure(), failure(), failure()]);
        thrice.run.status(1).stdout_is_empty().stderr_has("Failed to call a function");
    }
    // Right after a result, an assistant message is inserted first.
    let talk = talk(&[], [stream_of_pieces(&[ALPHA]), refused(), refused(), Reply::text("done")]);
    talk.run.success().stdout("done\n");
    let roles: Vec<&Value> = talk.requests[3].messages().iter().map(|m| &m["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
}
