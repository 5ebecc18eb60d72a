//! Current time: in UTC for programs, in local time for users.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Formats a time as in RFC 3339, in UTC, with milliseconds.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (year, month, day) = date_of_day(seconds / 86_400); // not a limit
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60); // not a limit
    let millisecond = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

/// Year, month and day of the day with this number, counted from 1970-01-01.
fn date_of_day(days: u64) -> (u64, u64, u64) {
    // Counted from 1 March of the year 0, so that a leap day is the last day of its
    // year, in cycles of 400 years.
    let days = days + 719_468; // not a limit
    let (cycle, day) = (days / 146_097, days % 146_097); // not a limit
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365; // not a limit
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (400 * cycle + year + u64::from(is_next_year), month, day)
}

/// A moment in the user's time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalTime {
    /// `YYYY-MM-DD`.
    pub date: String,
    /// `HH:MM`.
    pub time: String,
    /// RFC 3339 with the offset from UTC, to the second.
    pub stamp: String,
}

impl LocalTime {
    /// Converts a time to the time zone of the process (`TZ`, otherwise the system's), or
    /// to UTC if there is none.
    pub(crate) fn from_system_time(time: SystemTime) -> LocalTime {
        let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = seconds.as_secs().try_into().unwrap_or_default();
        // SAFETY: a structure of numbers and a pointer, for which zero is a valid value.
        let mut parts: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers lead to values that outlive the call. It may read the
        // environment, which no other thread writes: there is only one thread.
        let done = unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) };
        if done.is_null() {
            let utc = timestamp(time);
            return LocalTime {
                date: utc[..10].to_string(),
                time: utc[11..16].to_string(),
                stamp: format!("{}+00:00", &utc[..19]),
            };
        }
        let year = i64::from(parts.tm_year) + 1900; // not a limit
        let date = format!("{year:04}-{:02}-{:02}", parts.tm_mon + 1, parts.tm_mday);
        let time = format!("{:02}:{:02}", parts.tm_hour, parts.tm_min);
        let sign = if parts.tm_gmtoff < 0 { '-' } else { '+' };
        let minutes = parts.tm_gmtoff.abs() / 60;
        let (hours, minutes) = (minutes / 60, minutes % 60);
        let stamp = format!("{date}T{time}:{:02}{sign}{hours:02}:{minutes:02}", parts.tm_sec);
        LocalTime { date, time, stamp }
    }

    /// The current time.
    pub(crate) fn now() -> LocalTime {
        LocalTime::from_system_time(SystemTime::now())
    }
}

/// Parses the output of [`timestamp`]; `None` for anything else.
pub(crate) fn parse_timestamp(text: &str) -> Option<SystemTime> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let days = day_of_date(number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let seconds = (number(11, 13)? * 60 + number(14, 16)?) * 60 + number(17, 19)?;
    let since = days * 86_400 + seconds; // not a limit
    let time = UNIX_EPOCH + Duration::from_secs(since) + Duration::from_millis(number(20, 23)?);
    (bytes.len() == 24 && timestamp(time) == text).then_some(time)
}

/// The number of the day with this date, counted from 1970-01-01. For an invalid date
/// the result is arbitrary.
fn day_of_date(year: u64, month: u64, day: u64) -> u64 {
    let month = month.clamp(1, 12);
    let (year, month) = match month {
        3.. => (year, month - 3),
        _ => (year.saturating_sub(1), month + 9),
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    days.saturating_sub(719_469) // not a limit
}

/// Processor time used by this thread, for tests that limit the amount of work: other
/// load on the machine does not count.
#[cfg(test)]
pub(crate) fn thread_time() -> Duration {
    // SAFETY: a structure of plain numbers, filled by the call.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        time
    };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
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
        let mut days = (0..).map(date_of_day);
        for year in 1970..2410 {
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let february = if is_leap { 29 } else { 28 };
            let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, length) in (1..).zip(lengths) {
                for day in 1..=length {
                    assert_eq!(days.next(), Some((year, month, day)));
                }
            }
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
