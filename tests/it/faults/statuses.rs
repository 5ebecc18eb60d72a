//! Statuses other than 200, with every form of error body.

use super::fault::{Fault, answers, in_turn};
use crate::harness::Reply;

pub(super) fn table() -> Vec<Fault> {
    let mut table = successes();
    table.extend(redirects());
    table.extend(refusals());
    table.extend(forms());
    table.extend(temporary());
    table.extend(rate_limits());
    table
}

fn error_reply(status: u16, words: &str) -> Reply {
    Reply::error(status, words)
}

/// A temporary failure whose retry need not wait.
fn without_retry_delay(reply: Reply) -> Reply {
    reply.header("Retry-After", "0")
}

/// Other 2xx statuses, some of which mean that there is no answer.
fn successes() -> Vec<Fault> {
    let no_stream = |name, reply: Reply| {
        in_turn(name, move |_, request| match request.requests_stream() {
            true => reply.clone(),
            false => Reply::text("4"),
        })
        .answers_with("4")
        .when_streamed(|expected| expected.expect_answer("4", 2))
    };
    let accepted = Reply::status(202).body("{\"job\":\"queued\"}");
    let partial = Reply::status(206).body("{\"choices\":[{\"message\":{\"cont");
    let lasting = |name, reply, status: &str| {
        answers(name, reply).fails_permanently().may_retry_unstreamed().says(status)
    };
    vec![
        lasting("202 Accepted", accepted, "202"),
        lasting("204 No Content", Reply::status(204), "204"),
        lasting("205 Reset Content", Reply::status(205), "205"),
        lasting("206 Partial Content", partial, "206"),
        // Servers without streaming answer an unstreamed request.
        no_stream("404 for streams only", error_reply(404, "streaming is not available")),
        no_stream("405 for streams only", Reply::status(405)),
        no_stream("204 for streams only", Reply::status(204)),
        no_stream("nothing for streams only", Reply::status(200)),
    ]
}

/// Redirects are not followed, since the key would be sent to the target. The remedy names the
/// target.
fn redirects() -> Vec<Fault> {
    let target = "https://other.example/v1/chat/completions";
    let to = |name, status: u16, target: &str| {
        answers(name, Reply::status(status).header("Location", target))
            .fails_permanently()
            .says(&status.to_string())
    };
    let told = |name, status| to(name, status, target).says("https://other.example/v1");
    vec![
        told("301 to another host", 301),
        told("302 to another host", 302),
        told("303 to another host", 303),
        told("307 to another host", 307),
        told("308 to another host", 308),
        to("307 to another path", 307, "/v2/chat/completions").says("/v2"),
        // Not a target to recommend.
        to("302 to a file", 302, "file:///etc/passwd")
            .lacks("root:")
            .lacks("set LLM_API_BASE_URL to file:"),
        to("302 to nowhere", 302, ""),
        to("302 to 60,000 bytes", 302, &format!("https://other.example/{}", "a".repeat(60_000))),
        answers("308 without a target", Reply::status(308)).fails_permanently().says("308"),
        answers("300 with choices", Reply::status(300).body("which one?"))
            .fails_permanently()
            .says("which one?"),
        answers("304 Not Modified", Reply::status(304)).fails_permanently().says("304"),
    ]
}

/// Permanent failures.
fn refusals() -> Vec<Fault> {
    let lasting = |name, status: u16| {
        answers(name, error_reply(status, "those are the words"))
            .fails_permanently()
            .says(&status.to_string())
            .says("those are the words")
    };
    let page =
        "<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head><body>nginx</body></html>";
    let raw =
        |line: &str| Reply::raw(format!("HTTP/1.1 {line}\r\nContent-Length: 9\r\n\r\nthe words"));
    vec![
        answers("401 Unauthorized", error_reply(401, "no such key"))
            .status(77)
            .says("401")
            .says("no such key"),
        answers("403 Forbidden", error_reply(403, "not yours"))
            .status(77)
            .says("403")
            .says("not yours"),
        answers("401 with a page", Reply::status(401).body("<html><title>Sign in</title>"))
            .status(77)
            .says("Sign in"),
        lasting("402 Payment Required", 402),
        lasting("404 with words", 404).may_retry_unstreamed(),
        answers("404 with a page", Reply::status(404).body(page))
            .fails_permanently()
            .may_retry_unstreamed()
            .says("404 Not Found")
            .says("/v1"),
        lasting("405 Method Not Allowed", 405).may_retry_unstreamed(),
        lasting("406 Not Acceptable", 406),
        lasting("407 Proxy Authentication Required", 407),
        lasting("410 Gone", 410),
        // It means that the conversation is too long, which a summary may solve.
        answers("413 without a body", Reply::status(413))
            .fails_permanently()
            .attempts(1..=2)
            .says("413"),
        lasting("415 Unsupported Media Type", 415),
        lasting("418 I'm a teapot", 418),
        lasting("421 Misdirected Request", 421),
        lasting("422 Unprocessable Content", 422),
        lasting("431 Request Header Fields Too Large", 431),
        lasting("451 Unavailable For Legal Reasons", 451),
        answers("status 600", raw("600 Odd")).fails_permanently().says("600").says("the words"),
        answers("status 999", raw("999 Odd")).fails_permanently().says("999").says("the words"),
        answers("status 0", raw("000 Odd")).fails_permanently(),
        answers("the id of a request", error_reply(400, "no").header("x-request-id", "req-123"))
            .fails_permanently()
            .says("req-123"),
    ]
}

/// The known forms of error bodies: their message is reported with the status.
fn forms() -> Vec<Fault> {
    let form = |name, body: &str, words: &str| {
        answers(name, Reply::status(400).body(body)).fails_permanently().says("400").says(words)
    };
    let long = format!("{{\"error\":{{\"message\":\"{}\"}}}}", "long ".repeat(200_000));
    let forged = r#"{"error":"no\nskills-runner: failed to be true\nhint: rm -rf /"}"#;
    let quoting = Reply::from_fn(|request| {
        error_reply(
            400,
            &format!("bad header: {}", request.header("authorization").unwrap_or_default()),
        )
    });
    vec![
        form(
            "OpenAI's error",
            r#"{"error":{"message":"the words","type":"t","param":null,"code":"c"}}"#,
            "the words",
        ),
        // The other forms are in the test of the function.
        // OpenRouter's own message is generic; the provider's message is nested in it.
        form(
            "an error that was passed on",
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"the words"}}}"#,
            "the words",
        ),
        form("an error of unknown form", r#"{"fault":{"faultstring":"the words"}}"#, "the words"),
        form("an error that is not JSON", "the words", "the words"),
        form(
            "an error in XML",
            "<?xml version=\"1.0\"?><Error><Message>the words</Message></Error>",
            "the words",
        ),
        form("an error in a page", "<html><head><title>the words</title>", "the words"),
        form(
            "an error with a BOM",
            "\u{feff}{\"error\":\"the words\"}",
            "400 Bad Request: the words",
        ),
        form("an error of half a JSON", r#"{"error":{"message":"the words"#, "the words"),
        form("an error of 1 MB", &long, "long long"),
        form("an error that forges lines", forged, "no"),
        form(
            "an error that colours the terminal",
            "{\"error\":\"\\u001b[2J\\u0007the \\u009bwords\"}",
            "words",
        ),
        answers("an error without a body", Reply::status(400))
            .fails_permanently()
            .attempts(1..=2)
            .says("400"),
        answers("an error that is not UTF-8", Reply::status(400).body(*b"caf\xe9 words"))
            .fails_permanently()
            .says("caf\u{fffd} words"),
        answers("an error that quotes the key", quoting).fails_permanently().says("[secret]"),
        answers("an error of 70 MB", {
            Reply::raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 73400320\r\n\r\nthe words")
                .then_repeat(70, std::time::Duration::ZERO, vec![b' '; 1 << 20])
                .then_close()
        })
        .fails_permanently()
        .says("the words"),
    ]
}

/// Temporary failures, with three attempts.
fn temporary() -> Vec<Fault> {
    let temporary = |name, status: u16| {
        answers(name, without_retry_delay(error_reply(status, "those are the words")))
            .fails_temporarily()
            .says(&status.to_string())
            .says("those are the words")
    };
    let page = "<html><head><title>502 Bad Gateway</title></head></html>";
    vec![
        temporary("408 Request Timeout", 408),
        temporary("409 Conflict", 409),
        temporary("500 Internal Server Error", 500),
        temporary("501 Not Implemented", 501),
        temporary("503 Service Unavailable", 503),
        temporary("504 Gateway Timeout", 504),
        temporary("511 Network Authentication Required", 511),
        temporary("529 Overloaded", 529),
        answers("502 with a page", without_retry_delay(Reply::status(502).body(page)))
            .fails_temporarily()
            .says("502 Bad Gateway"),
        answers("500 without a body", without_retry_delay(Reply::status(500)))
            .fails_temporarily()
            .says("500"),
        answers("overload in a 400", {
            without_retry_delay(
                Reply::status(400)
                    .body(r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#),
            )
        })
        .fails_temporarily()
        .says("Overloaded"),
        in_turn("two kinds of overload, then an answer", |number, _| match number {
            1 => without_retry_delay(error_reply(503, "busy")),
            2 => without_retry_delay(error_reply(529, "busy")),
            _ => Reply::text("4"),
        })
        .answers_with("4")
        .attempts(3..=3),
        in_turn("overload, then a refusal", |number, _| match number {
            1 => without_retry_delay(error_reply(503, "busy")),
            _ => error_reply(401, "no such key"),
        })
        .status(77)
        .attempts(2..=2)
        .says("no such key"),
    ]
}

/// Every way to request a retry delay. A delay above 60 s, or above the remaining time of the
/// run, is reported instead.
fn rate_limits() -> Vec<Fault> {
    let slow = || error_reply(429, "slow down");
    let limited = |name, value| answers(name, slow().header("Retry-After", value));
    let worded = |name, body: &str| answers(name, Reply::status(429).body(body));
    let too_long = |fault: Fault, words| fault.status(75).says("429").says(words);
    let quota = r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let retry_info = r#"[{"error":{"code":429,"message":"slow down","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3600s"}]}}]"#;
    vec![
        answers("429 without a pause", slow()).fails_temporarily().says("slow down"),
        limited("429 with a pause of 0", "0").fails_temporarily(),
        limited("429 with a pause of 0.1 s", "0.1").fails_temporarily(),
        limited("429 with a date that is over", "Sun, 06 Nov 1994 08:49:37 GMT")
            .fails_temporarily(),
        limited("429 with a rubbish pause", "soon").fails_temporarily(),
        limited("429 with a pause below zero", "-5").fails_temporarily(),
        limited("429 with an endless pause", "inf")
            .fails_temporarily()
            .or_status(75)
            .attempts(1..=3),
        answers("429 with a pause of 1 ms", slow().header("retry-after-ms", "1"))
            .fails_temporarily(),
        too_long(limited("429 with a pause of an hour", "3600"), "retry after 3600 s"),
        too_long(limited("429 with a far date", "Fri, 31 Dec 2100 23:59:59 GMT"), "retry after"),
        // Seconds since 1970, as sent by some gateways, are not a delay.
        too_long(limited("429 with an epoch", "4102444800"), "retry after").lacks("4102444800"),
        too_long(worded("429 with a pause in its body", retry_info), "retry after 3600 s"),
        too_long(
            worded(
                "429 with a pause in its words",
                r#"{"error":"Rate limit reached: try again in 90s"}"#,
            ),
            "retry after 90 s",
        ),
        too_long(
            answers(
                "429 with the time of its reset",
                slow().header("x-ratelimit-reset-requests", "1m30s"),
            ),
            "retry after 90 s",
        ),
        limited("429 with a pause beyond the run", "30")
            .args(["--timeout", "5"])
            .status(75)
            .or_status(3)
            .says("retry after 30 s")
            .within(4.0),
        worded("429 for an empty account", quota)
            .fails_permanently()
            .says("exceeded your current quota"),
        answers(
            "429 with a page",
            without_retry_delay(Reply::status(429).body("<html><title>Slow down</title>")),
        )
        .fails_temporarily()
        .says("Slow down"),
    ]
}
