//! The value of plain text: null, a boolean, a number, or just text.
//!
//! The rules are those of YAML 1.1 as `PyYAML` applies them, with their surprises: `on` is
//! true, `012` is 10, `1:30` is 90, `1e3` is text. Values that JSON cannot hold stay text:
//! dates, `.inf`, `.nan`, big integers.

use std::ops::RangeInclusive;

use serde_json::{Number, Value};

/// Whether plain text can only be text (a fast check): no number or date starts with a
/// letter, and no other value is so long.
pub(super) fn is_surely_text(text: &str) -> bool {
    text.len() > "false".len() && text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// The value of plain text by YAML 1.1; `None` if it is text.
pub(super) fn yaml_1_1_value(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Some(Value::Bool(true));
        }
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Some(Value::Bool(false));
        }
        _ => {}
    }
    if !text.starts_with(['+', '-', '.']) && !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    integer(text).or_else(|| float(text)).map(Value::Number)
}

/// The value of plain text by the core schema of YAML 1.2; `None` if it is text.
pub(super) fn core_schema_value(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        _ => {}
    }
    let bases = [("0o", 8), ("0x", 16)];
    for (prefix, base) in bases {
        let digits = text.strip_prefix(prefix);
        if let Some(digits) = digits.filter(|digits| !digits.starts_with('+')) {
            return u64::from_str_radix(digits, base).ok().map(Value::from);
        }
    }
    let (_, digits) = split_sign(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    if !is_number {
        return None;
    }
    let integer = text.parse::<i64>().map(Value::from);
    let integer = integer.or_else(|_| text.parse::<u64>().map(Value::from));
    let float = || Number::from_f64(text.parse().ok()?).map(Value::Number);
    integer.ok().or_else(float)
}

/// Why readers such as `PyYAML` refuse this plain text, if they do.
pub(super) fn ambiguity(text: &str) -> Option<&'static str> {
    let (_, digits) = split_sign(text);
    match text {
        "=" | "<<" => Some("`=` and `<<` without quotes have a meaning of their own"),
        _ if is_impossible_date(text) => Some("an invalid date"),
        _ if digits.len() > 2
            && (digits.starts_with("0x") || digits.starts_with("0b"))
            && digits[2..].bytes().all(|b| b == b'_') =>
        {
            Some("a number without digits")
        }
        _ => None,
    }
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn integer(text: &str) -> Option<Number> {
    let (is_negative, digits) = split_sign(text);
    let magnitude = if let Some(digits) = digits.strip_prefix("0b") {
        in_base(digits, 2)?
    } else if let Some(digits) = digits.strip_prefix("0x") {
        in_base(digits, 16)?
    } else if let Some(octal) = digits.strip_prefix('0') {
        if octal.is_empty() { 0 } else { in_base(digits, 8)? }
    } else {
        let mut parts = digits.split(':');
        let mut value = in_base(parts.next().filter(|first| !first.starts_with('_'))?, 10)?;
        for part in parts {
            value = value.checked_mul(60)?.checked_add(sexagesimal_part(part)?)?;
        }
        value
    };
    let value = if is_negative { -magnitude } else { magnitude };
    i64::try_from(value).map(Number::from).or_else(|_| u64::try_from(value).map(Number::from)).ok()
}

/// The value of digits and underscores; `None` if there are other characters, no digit, or
/// too many digits.
fn in_base(digits: &str, base: u32) -> Option<i128> {
    let mut value = None;
    for c in digits.chars().filter(|&c| c != '_') {
        let digit = i128::from(c.to_digit(base)?);
        value = Some(value.unwrap_or(0i128).checked_mul(base.into())?.checked_add(digit)?);
    }
    value
}

/// One of the parts of `1:30:00` after the first: 0 to 59.
fn sexagesimal_part(part: &str) -> Option<i128> {
    let is_two_digits = matches!(part.len(), 1 | 2) && part.bytes().all(|b| b.is_ascii_digit());
    is_two_digits.then(|| part.parse().ok()).flatten().filter(|&value| value < 60)
}

fn float(text: &str) -> Option<Number> {
    let (is_negative, digits) = split_sign(text);
    let (whole, rest) = digits.split_once('.')?;
    let has_sign = digits.len() < text.len();
    let (fraction, exponent) = match rest.find(['e', 'E']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if !fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_') || !is_exponent(exponent) {
        return None;
    }
    let mut parts = whole.split(':');
    let first = parts.next()?;
    let is_digits = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_digit())
            && part.bytes().all(|b| b.is_ascii_digit() || b == b'_')
    };
    // Without digits before the point, a digit must follow it, and there must be no sign.
    let may_start = is_digits(first) || first.is_empty() && !has_sign && is_digits(fraction);
    if !may_start || (whole.contains(':') && (first.is_empty() || !exponent.is_empty())) {
        return None;
    }
    let magnitude = if whole.contains(':') {
        sexagesimal(first, parts, fraction)?
    } else {
        format!("{whole}.{fraction}{exponent}").replace('_', "").parse().ok()?
    };
    Number::from_f64(if is_negative { -magnitude } else { magnitude })
}

fn is_exponent(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(['e', 'E']) else {
        return true;
    };
    rest.strip_prefix(['+', '-'])
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Adds from the smallest part up, so that rounding is the same as in `PyYAML`.
fn sexagesimal<'a>(
    first: &str,
    parts: impl Iterator<Item = &'a str>,
    fraction: &str,
) -> Option<f64> {
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop()?;
    sexagesimal_part(last)?;
    let mut value: f64 = format!("{last}.{fraction}").replace('_', "").parse().ok()?;
    let mut base = 60.0;
    for part in parts.iter().rev() {
        let part: f64 = sexagesimal_part(part).map(|_| part.parse().ok())??;
        value += part * base;
        base *= 60.0;
    }
    let first: f64 = first.replace('_', "").parse().ok()?;
    Some(value + first * base)
}

/// Whether this looks like a date, alone or with a time, but is not a valid one.
fn is_impossible_date(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) if text[at..].starts_with(' ') => (&text[..at], Some(text[at..].trim_start())),
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let mut parts = date.split('-');
    // A date without a time has two digits for month and day.
    let least = if time.is_some() { 1 } else { 2 };
    let mut next = |least, most| parts.next().and_then(|part| number(part, least..=most));
    let (Some(year), Some(month), Some(day)) = (next(4, 4), next(least, 2), next(least, 2)) else {
        return false;
    };
    if parts.next().is_some() {
        return false;
    }
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    let is_no_day = year == 0 || day == 0 || day > days;
    match time.map(is_possible_time) {
        None => is_no_day,
        Some(None) => false,
        Some(Some(is_possible)) => is_no_day || !is_possible,
    }
}

/// Whether this time of day, with its zone, is valid; `None` if it is not a time at all.
fn is_possible_time(text: &str) -> Option<bool> {
    let end = text.find([' ', 'Z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = (&text[..end], text[end..].trim_start());
    let mut parts = clock.split(':');
    let mut next = || parts.next();
    let (hour, minute, rest) = (next()?, next()?, next()?);
    let (second, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    if next().is_some() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (hour, minute) = (number(hour, 1..=2)?, number(minute, 2..=2)?);
    let second = number(second, 2..=2)?;
    let ahead = match zone.strip_prefix(['+', '-']) {
        None if zone.is_empty() || zone == "Z" => 0,
        None => return None,
        Some(zone) => {
            let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "00"));
            number(hours, 1..=2)? * 60 + number(minutes, 2..=2)?
        }
    };
    Some(hour < 24 && minute < 60 && second < 60 && ahead < 24 * 60)
}

/// The value of a text of decimal digits, with a number of digits in this range.
fn number(text: &str, digits: RangeInclusive<usize>) -> Option<u32> {
    let is_number = digits.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}
