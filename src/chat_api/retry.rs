//! How long to wait before a failed request is sent again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::quirks::delays;
use base::limits;

/// Returns the pause before try number `attempt` (from 2): half a second that doubles, plus a
/// random part of up to a quarter, so that many clients do not retry at the same moment. A
/// delay that the server requests replaces it; the caller limits that one.
pub(super) fn retry_delay(attempt: u32, requested: Option<Duration>) -> Duration {
    if let Some(requested) = requested {
        return requested;
    }
    let doubled = limits::RETRY_DELAY * 2u32.saturating_pow(attempt.saturating_sub(2));
    let base = doubled.min(limits::RETRY_DELAY_MAX);
    base + base.mul_f64(random_fraction() / 4.0)
}

/// Returns the delay that a server requests: in one of many headers, in the `RetryInfo` of the
/// body, or in a sentence.
pub(super) fn requested_delay<'h>(
    header: &dyn Fn(&str) -> Option<&'h str>,
    body: &[u8],
    now: SystemTime,
) -> Option<Duration> {
    let milliseconds = |value: &str| Some(Duration::from_millis(value.trim().parse().ok()?));
    header("retry-after-ms")
        .and_then(milliseconds)
        .or_else(|| delays::HEADERS.iter().find_map(|name| parse_delay(header(name)?, now)))
        .or_else(|| exhausted_limit_reset(header, now))
        .or_else(|| delay_in_body(body, now))
}

/// When the exhausted rate limit is reset.
fn exhausted_limit_reset<'h>(
    header: &dyn Fn(&str) -> Option<&'h str>,
    now: SystemTime,
) -> Option<Duration> {
    let limits = delays::RATE_LIMITS;
    let remaining = |limit: &str| header(&format!("x-ratelimit-remaining{limit}"));
    let is_remaining_reported = limits.iter().any(|limit| remaining(limit).is_some());
    let is_used_up =
        |limit: &&&str| !is_remaining_reported || remaining(limit).is_some_and(|n| n.trim() == "0");
    let reset = |limit: &&str| parse_delay(header(&format!("x-ratelimit-reset{limit}"))?, now);
    let resets = limits.iter().filter(is_used_up).filter_map(reset);
    // Where no remaining amounts are reported, the first reset counts.
    if is_remaining_reported { resets.max() } else { resets.min() }
}

/// The delay in a body: `RetryInfo` of Google (`"retryDelay": "34s"`), the headers that a
/// gateway quotes, or "try again in 1.2s".
fn delay_in_body(body: &[u8], now: SystemTime) -> Option<Duration> {
    let text = String::from_utf8_lossy(body).to_lowercase();
    let field = |name: &str| {
        let after = &text[text.find(name)? + name.len()..];
        let after = after.trim_start_matches([':', ' ']);
        let value = match after.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next()?,
            None => after.split([',', '}', ' ', '\n']).next()?,
        };
        parse_delay(value, now)
    };
    let phrase = |words: &&str| delay_in_sentence(&text[text.find(words)? + words.len()..]);
    let found = delays::FIELDS.iter().find_map(|name| field(name));
    found.or_else(|| delays::PHRASES.iter().find_map(phrase))
}

/// The delay at the start of a text: `about 20 seconds`; the rest is ignored.
fn delay_in_sentence(text: &str) -> Option<Duration> {
    let text = text.trim_start();
    parse_units(text.strip_prefix("about ").unwrap_or(text)).map(|(sum, _)| sum)
}

/// Parses `1.2s`, `340ms`, `1h2m3.5s` or `1 minute 30 seconds`; returns also the rest.
fn parse_units(text: &str) -> Option<(Duration, &str)> {
    let mut rest = text;
    let (mut sum, mut has_unit) = (Duration::ZERO, false);
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..end].trim_end_matches('.').parse::<f64>() else {
            break;
        };
        let after = rest[end..].trim_start();
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let factor = match &after[..unit_end] {
            "ms" | "millisecond" | "milliseconds" => 1e-3,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hour" | "hours" => 3600.0, // not a limit
            "d" | "day" | "days" => 86_400.0,        // not a limit
            // A number alone is seconds, unless it is the start of a date.
            "" if !has_unit && !after.starts_with(['-', '/', ':']) => 1.0,
            _ => break,
        };
        sum = sum.checked_add(Duration::try_from_secs_f64(number * factor).ok()?)?;
        has_unit = true;
        rest = after[unit_end..].trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    has_unit.then_some((sum, rest))
}

/// Parses a delay: seconds, also with a fraction; `1m2.5s`, `340ms`; a date; or a Unix time in
/// seconds or milliseconds.
fn parse_delay(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let since_1970 = now.duration_since(UNIX_EPOCH).ok()?;
    if let Ok(number) = value.parse::<f64>() {
        let (seconds, milliseconds) = (
            Duration::try_from_secs_f64(number).ok()?,
            Duration::try_from_secs_f64(number / 1e3).ok()?,
        );
        // No server requests decades: a number that large is a point in time.
        let decades = since_1970 / 2;
        return Some(if milliseconds > decades {
            milliseconds.saturating_sub(since_1970)
        } else if seconds > decades {
            seconds.saturating_sub(since_1970)
        } else {
            seconds
        });
    }
    if let Some(date) = parse_http_date(value) {
        return Some(Duration::from_secs(date).saturating_sub(since_1970));
    }
    let (sum, rest) = parse_units(value)?;
    rest.is_empty().then_some(sum)
}

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7) into seconds since 1970.
fn parse_http_date(text: &str) -> Option<u64> {
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months.find(month).filter(|at| month.len() == 3 && at % 3 == 0)? as u64 / 3 + 1;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let in_range = (1970..=9999).contains(&year) // not a limit
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, with March as the first month.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?; // not a limit
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second) // not a limit
}

/// A number from 0 to 1 that varies; its quality does not matter.
fn random_fraction() -> f64 {
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
    f64::from(nanoseconds % 1000) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        for (attempt, least, most) in
            [(2, 500, 625), (3, 1000, 1250), (4, 2000, 2500), (40, 8000, 10000)]
        {
            let pause = retry_delay(attempt, None).as_millis();
            assert!((least..=most).contains(&pause), "{attempt}: {pause}");
        }
        assert_eq!(retry_delay(2, Some(Duration::from_secs(7))), Duration::from_secs(7));
    }

    #[test]
    fn parses_delays_in_every_form() {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let table = [
            ("5", Some(5_000)),
            (" 1.5 ", Some(1_500)),
            ("0", Some(0)),
            ("6s", Some(6_000)),
            ("1m2s", Some(62_000)),
            ("1h0m0.5s", Some(3_600_500)),
            ("340ms", Some(340)),
            ("1800000007", Some(7_000)),
            ("1800000007500", Some(7_500)),
            ("1799999999", Some(0)),
            ("Fri, 15 Jan 2027 08:00:10 GMT", Some(10_000)),
            ("Fri, 15 Jan 2027 07:59:59 GMT", Some(0)),
            ("Tue, 29 Feb 2028 00:00:00 GMT", Some((1_835_395_200 - 1_800_000_000) * 1000)),
            ("-1", None),
            ("nan", None),
            ("soon", None),
            ("5 apples", None),
            ("18000000000000000000s18000000000000000000s", None),
            ("Sun, 06 anF 1994 08:49:37 GMT", None),
            ("Sun, 99 Nov 1994 08:49:37 GMT", None),
            ("", None),
        ];
        for (value, milliseconds) in table {
            let expected = milliseconds.map(Duration::from_millis);
            assert_eq!(parse_delay(value, now), expected, "{value}");
        }
    }

    #[test]
    fn finds_the_requested_delay_in_every_place() {
        type Row = (&'static [(&'static str, &'static str)], &'static str, Option<u64>);
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let table: &[Row] = &[
            (&[("retry-after-ms", "250"), ("retry-after", "9")], "", Some(250)),
            (&[("retry-after", "9"), ("x-ratelimit-reset", "99")], "", Some(9_000)),
            (&[("x-ratelimit-reset", "1800000012")], "", Some(12_000)),
            (
                &[
                    ("x-ratelimit-remaining-requests", "0"),
                    ("x-ratelimit-reset-requests", "8.64s"),
                    ("x-ratelimit-remaining-tokens", "100"),
                    ("x-ratelimit-reset-tokens", "1m"),
                ],
                "",
                Some(8_640),
            ),
            (&[("x-ratelimit-reset-tokens", "1m30s")], "", Some(90_000)),
            (
                &[("x-ratelimit-remaining-tokens", "5"), ("x-ratelimit-reset-tokens", "1m")],
                "",
                None,
            ),
            (&[("llm_provider-retry-after", "2")], "", Some(2_000)),
            (
                &[],
                r#"[{"error":{"details":[{"@type":"x.RetryInfo","retryDelay": "34s"}]}}]"#,
                Some(34_000),
            ),
            (
                &[],
                r#"{"error":{"metadata":{"headers":{"X-RateLimit-Reset":"1800000003000"}}}}"#,
                Some(3_000),
            ),
            (&[], "Please try again in 1.2s. Visit", Some(1_200)),
            (&[], "Please try again in 6m0s.", Some(360_000)),
            (&[], "try again in 20 seconds", Some(20_000)),
            (&[], "Please retry in 34.07s.", Some(34_070)),
            (&[], "retry after 2 minutes", Some(120_000)),
            (&[], "try again in 340ms,", Some(340)),
            (&[], "try again in a while", None),
            (&[], "try again in 2 hours", Some(7_200_000)),
            (&[], "Please retry after 1 minute 30 seconds.", Some(90_000)),
            (&[], "retry after 2026-11-21 14:30:00 UTC", None),
            (&[], "Please wait 25 seconds", Some(25_000)),
            (&[], "try again in about 20 seconds", Some(20_000)),
            (&[], r#"{"retry_after": 30}"#, Some(30_000)),
            (&[], r#"{"headers":{"X-RateLimit-Reset": 1800000003000}}"#, Some(3_000)),
            (&[], "no", None),
        ];
        for (headers, body, milliseconds) in table {
            let header = |name: &str| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
            let expected = milliseconds.map(Duration::from_millis);
            assert_eq!(
                requested_delay(&header, body.as_bytes(), now),
                expected,
                "{headers:?} {body}"
            );
        }
    }
}
