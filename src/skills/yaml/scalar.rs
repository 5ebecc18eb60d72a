//! The value of plain text: null, a boolean, a number, or just text.
//!
//! The rules are those of YAML 1.1 as `PyYAML` applies them, with their surprises: `on` is
//! true, `012` is 10, `1:30` is 90, `1e3` is text. Values that JSON cannot hold stay text:
//! dates, `.inf`, `.nan`, big integers. So do numbers with parts of 60 and a fraction, `1:30.5`.

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

/// Whether this plain text has a meaning of its own for readers of YAML 1.1, which frontmatter
/// never needs.
pub(super) fn is_special(text: &str) -> bool {
    matches!(text, "=" | "<<")
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
    let is_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let starts_with_digit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    // Without digits before the point, a digit must follow it, and there must be no sign.
    let may_start = match whole {
        "" => !has_sign && starts_with_digit(fraction),
        _ => starts_with_digit(whole) && is_digits(whole),
    };
    if !may_start || !is_digits(fraction) || !is_exponent(exponent) {
        return None;
    }
    let magnitude: f64 = format!("{whole}.{fraction}{exponent}").replace('_', "").parse().ok()?;
    Number::from_f64(if is_negative { -magnitude } else { magnitude })
}

fn is_exponent(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(['e', 'E']) else {
        return true;
    };
    rest.strip_prefix(['+', '-'])
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}
