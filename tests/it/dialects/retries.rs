//! The delay before a retry that a server requests, in every form.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{in_parallel, skills, talk, talk_with};
use crate::harness::{Reply, seconds};

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970")
}

/// A date in HTTP's format (RFC 9110, 5.6.7), computed by counting days.
fn http_date(since_1970: u64) -> String {
    let (mut days, rest) = (since_1970 / 86_400, since_1970 % 86_400);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    let mut year = 1970;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let names =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!(
        "{weekday}, {:02} {} {year} {hour:02}:{minute:02}:{second:02} GMT",
        days + 1,
        names[month]
    )
}

/// Headers, body, and the seconds to wait.
type Limited<'r> = (&'r [(&'r str, &'r str)], &'r str, u64);

/// The program does not wait longer than the limit: the message has the time, accurate to a few
/// seconds.
#[test]
fn long_retry_delay_is_reported_and_not_waited_for() {
    let hour = since_1970().as_secs() + 3600;
    let date = http_date(hour);
    let info = r#"[{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"94s"}]}}]"#;
    // The other places and forms are in the tests of the function.
    let table: &[Limited<'_>] = &[
        (&[("Retry-After", "3600")], "", 3600),
        (&[("Retry-After", &date)], "", 3600),
        (&[("X-RateLimit-Reset", &hour.to_string())], "", 3600),
        (&[], info, 94),
        (&[], r#"{"error":{"message":"Rate limit reached. Please try again in 1m34s."}}"#, 94),
    ];
    for (headers, body, wait) in table {
        let mut reply = Reply::status(429).body(*body);
        for (name, value) in *headers {
            reply = reply.header(name, value);
        }
        let talk = talk(&[], [reply]);
        let reported = talk
            .run
            .stderr
            .rsplit_once("retry after ")
            .and_then(|(_, rest)| rest.split(' ').next());
        let reported: Option<u64> = reported.and_then(|number| number.parse().ok());
        let is_right = reported.is_some_and(|reported| reported <= *wait && reported + 20 >= *wait);
        talk.run.check(is_right, format_args!("{headers:?} {body}: {wait} s"));
        talk.run.status(75).stdout_is_empty().took_at_most(seconds(5.0));
        assert_eq!(talk.requests.len(), 1);
    }
}

#[test]
fn short_retry_delay_is_waited_for() {
    let body = r#"{"error":{"message":"Slow down","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.9s"}]}}"#;
    // In the body of a reply with status 200, as OpenRouter sends it.
    let event = format!("data: {}", body.replace("\"message\"", "\"code\":429,\"message\""));
    // Longer than the program's own delay before the second attempt. Dates are above.
    let table = [
        (Reply::status(429).header("Retry-After-Ms", "900"), 900),
        (Reply::status(503).header("Retry-After", "1"), 1000),
        (Reply::status(429).header("X-RateLimit-Reset", "0.9s"), 900),
        (Reply::status(429).body(body), 900),
        (Reply::error(429, "Please try again in 900ms."), 900),
        (Reply::sse([event]), 900),
    ];
    in_parallel(table, |(reply, delay)| {
        let talk = talk(&["-o", "jsonl"], [reply, Reply::text("4")]);
        let run = talk.run.success().took_at_least(Duration::from_millis(delay));
        run.stdout_has(&format!(r#""attempt":2,"delay_ms":{delay},"#));
    });
}

#[test]
fn retry_delay_beyond_the_run_timeout_is_not_waited_for() {
    let talk = talk(&["--timeout", "5"], [Reply::status(429).header("Retry-After", "30")]);
    talk.run.status(75).stderr_has("retry after 30 s").took_at_most(seconds(2.0));
}

#[test]
fn invalid_retry_delay_is_ignored() {
    let values = ["-1", "soon", "NaN", "", "Sun, 99 Nov 1994 08:49:37 GMT", "0"];
    in_parallel(values, |value| {
        let replies = [Reply::status(429).header("Retry-After", value), Reply::text("4")];
        let talk = talk_with(skills(), &[], replies);
        talk.run.success().stdout("4\n").took_at_most(seconds(3.0));
    });
}
