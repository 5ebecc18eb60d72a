//! When a failed request is worth sending again, and how long to wait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::limits;

/// The pause before try number `attempt` (from 2): half a second that doubles,
/// with up to a quarter more by chance, so that many clients do not come back
/// at the same moment. What the server asks for counts instead, within bounds.
pub fn pause(attempt: u32, asked: Option<Duration>) -> Duration {
    if let Some(asked) = asked {
        return asked;
    }
    let doubled = limits::RETRY_PAUSE * 2u32.saturating_pow(attempt.saturating_sub(2));
    let base = doubled.min(limits::RETRY_PAUSE_MAX);
    base + base.mul_f64(chance() / 4.0)
}

/// What `Retry-After` asks for: seconds, also with a fraction, or a date.
pub fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = parse_http_date(value)?;
    let now = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    Some(Duration::from_secs(date.saturating_sub(now)))
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
fn parse_http_date(text: &str) -> Option<u64> {
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months
        .find(month)
        .filter(|at| month.len() == 3 && at % 3 == 0)? as u64
        / 3
        + 1;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words
        .next()?
        .split(':')
        .map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let in_range = (1970..=9999).contains(&year) // not a bound
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range {
        return None;
    }
    // Days since 1970 by the calendar's arithmetic, with March as the first month.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?; // not a bound
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second) // not a bound
}

/// A number from 0 to 1 that differs from run to run; nothing depends on its quality.
fn chance() -> f64 {
    let nanoseconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.subsec_nanos());
    f64::from(nanoseconds % 1000) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_stay_within_bounds() {
        for (attempt, least, most) in [
            (2, 500, 625),
            (3, 1000, 1250),
            (4, 2000, 2500),
            (40, 8000, 10000),
        ] {
            let pause = pause(attempt, None).as_millis();
            assert!((least..=most).contains(&pause), "{attempt}: {pause}");
        }
        assert_eq!(
            pause(2, Some(Duration::from_secs(7))),
            Duration::from_secs(7)
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let table = [
            ("5", Some(5_000)),
            (" 1.5 ", Some(1_500)),
            ("0", Some(0)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10_000)),
            ("Sun, 06 Nov 1994 08:49:27 GMT", Some(0)),
            (
                "Thu, 29 Feb 2024 00:00:00 GMT",
                Some((1_709_164_800 - 784_111_777) * 1000),
            ),
            ("-1", None),
            ("soon", None),
            ("Sun, 06 anF 1994 08:49:37 GMT", None),
            ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ];
        for (value, milliseconds) in table {
            let expected = milliseconds.map(Duration::from_millis);
            assert_eq!(parse_retry_after(value, now), expected, "{value}");
        }
    }
}
