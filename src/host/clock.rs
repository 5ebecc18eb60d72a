//! Current time: in UTC for programs, in local time for users.

use std::mem;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::ClockId;

/// Formats a time as in RFC 3339, in UTC, with milliseconds.
pub fn timestamp(time: SystemTime) -> String {
    let parts = calendar(time, false);
    let millisecond = time.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_millis();
    format!("{}T{}.{millisecond:03}Z", date(&parts), time_of_day(&parts))
}

/// Parses the output of [`timestamp`]; `None` for anything else.
pub fn parse_timestamp(text: &str) -> Option<SystemTime> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i32>().ok();
    let mut parts = calendar(UNIX_EPOCH, false);
    parts.tm_year = number(0, 4)? - 1900; // not a limit
    parts.tm_mon = number(5, 7)? - 1;
    parts.tm_mday = number(8, 10)?;
    parts.tm_hour = number(11, 13)?;
    parts.tm_min = number(14, 16)?;
    parts.tm_sec = number(17, 19)?;
    let milliseconds = u64::try_from(number(20, 23)?).ok()?;
    // SAFETY: the structure outlives the call.
    let seconds = u64::try_from(unsafe { libc::timegm(&raw mut parts) }).ok()?;
    let since = Duration::from_secs(seconds) + Duration::from_millis(milliseconds);
    let time = UNIX_EPOCH.checked_add(since)?;
    (timestamp(time) == text).then_some(time)
}

/// Splits a time into its parts: in UTC, or in the time zone of the process (`TZ`, otherwise
/// the system's). All of them are 0 if the year is too large.
fn calendar(time: SystemTime, is_local: bool) -> libc::tm {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().try_into().unwrap_or_default();
    // SAFETY: a structure of numbers and a pointer, for which zero is a valid value. Both
    // pointers lead to values that outlive the calls. The second may read the environment,
    // which no other thread writes: there is only one thread.
    unsafe {
        let mut parts: libc::tm = mem::zeroed();
        if is_local {
            libc::localtime_r(&raw const seconds, &raw mut parts);
        } else {
            libc::gmtime_r(&raw const seconds, &raw mut parts);
        }
        parts
    }
}

/// `YYYY-MM-DD`.
fn date(parts: &libc::tm) -> String {
    let year = i64::from(parts.tm_year) + 1900; // not a limit
    format!("{year:04}-{:02}-{:02}", parts.tm_mon + 1, parts.tm_mday)
}

/// `HH:MM:SS`.
fn time_of_day(parts: &libc::tm) -> String {
    format!("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec)
}

const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A moment in the user's time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// `YYYY-MM-DD`.
    pub date: String,
    /// The English name of the day of the week.
    pub weekday: &'static str,
    /// `HH:MM`.
    pub time: String,
    /// RFC 3339 with the offset from UTC, to the second.
    pub stamp: String,
}

impl LocalTime {
    /// Converts a time to the time zone of the process, or to UTC if there is none.
    pub fn from_system_time(time: SystemTime) -> LocalTime {
        let parts = calendar(time, true);
        let weekday = usize::try_from(parts.tm_wday).ok().and_then(|day| WEEKDAYS.get(day));
        let weekday = weekday.copied().unwrap_or_default();
        let (date, time) = (date(&parts), time_of_day(&parts));
        let sign = if parts.tm_gmtoff < 0 { '-' } else { '+' };
        let minutes = parts.tm_gmtoff.abs() / 60;
        let (hours, minutes) = (minutes / 60, minutes % 60);
        let stamp = format!("{date}T{time}{sign}{hours:02}:{minutes:02}");
        LocalTime { date, weekday, time: time[..5].to_string(), stamp }
    }

    /// The current time.
    pub fn now() -> LocalTime {
        LocalTime::from_system_time(SystemTime::now())
    }
}

/// Processor time used by this thread, for tests that limit the amount of work: other
/// load on the machine does not count.
pub fn thread_time() -> Duration {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_follow_the_calendar() {
        let table = [
            (0, "1970-01-01T00:00:00.000Z"),
            (68_169_599_999, "1972-02-28T23:59:59.999Z"),
            (68_169_600_000, "1972-02-29T00:00:00.000Z"),
            (951_782_399_001, "2000-02-28T23:59:59.001Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (978_307_199_000, "2000-12-31T23:59:59.000Z"),
            (1_000_000_000_000, "2001-09-09T01:46:40.000Z"),
            (1_704_067_199_999, "2023-12-31T23:59:59.999Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (2_147_483_648_000, "2038-01-19T03:14:08.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ];
        for (milliseconds, expected) in table {
            let time = UNIX_EPOCH + Duration::from_millis(milliseconds);
            assert_eq!(timestamp(time), expected);
        }
    }

    #[test]
    fn a_timestamp_parses_to_the_same_time() {
        for milliseconds in (0..4_200_000_000_000).step_by(86_399_999 * 7) {
            let time = UNIX_EPOCH + Duration::from_millis(milliseconds);
            assert_eq!(parse_timestamp(&timestamp(time)), Some(time));
        }
        for text in [
            "",
            "2024-02-30T00:00:00.000Z",
            "2024-02-29T00:00:00Z",
            "99999-99-99T99:99:99.999Z",
            "ä024-02-29T00:00:00.000Z",
            "2024-13-01T00:00:00.000Z",
            "0000-00-00T00:00:00.000Z",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }
}
