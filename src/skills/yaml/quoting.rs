//! A text written as a value, so that every reader reads it as just this text.

use serde_json::Value;

/// The text as a value on one line: without quotes if no reader takes it for
/// anything else, otherwise in double quotes.
pub fn scalar(text: &str) -> String {
    let is_itself = super::parse(&format!("k: {text}"))
        .is_ok_and(|reading| reading.value["k"] == Value::String(text.to_owned()));
    if is_itself && !text.is_empty() && !is_typed_elsewhere(text) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether another reader may take for a date, a number or a truth value what
/// is text here: `2026-11-21`, `1e3` and `0o17` (YAML 1.2), a number of any
/// size, `y` (YAML 1.1). Quotes too many do no harm, quotes too few do.
fn is_typed_elsewhere(text: &str) -> bool {
    let is_begun = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let is_hexadecimal = text.contains(['x', 'X']);
    let in_number = |c: char| {
        c.is_ascii_digit()
            || "eExXoObB_.:+-tTzZ ".contains(c)
            || is_hexadecimal && c.is_ascii_hexdigit()
    };
    let words = ["y", "n", ".inf", "+.inf", "-.inf", ".nan"];
    is_begun && text.chars().all(in_number)
        || words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PyYAML` 6 and a reader of YAML 1.2 read all of them as these texts.
    #[test]
    fn what_any_reader_takes_for_something_else_is_quoted() {
        for text in [
            "",
            "~",
            "0",
            "007",
            "3000",
            "-1",
            "0x1f",
            "0b1",
            "0o17",
            "1e3",
            "1.5",
            "12-5",
            "2026-11-21",
            "2026-1-1 1:30:00 -5",
            "1:30",
            "99999999999999999999",
            ".inf",
            ".NaN",
            "true",
            "null",
            "on",
            "off",
            "Yes",
            "no",
            "y",
            "N",
            "=",
            "<<",
            "a: b",
            "a #b",
            "*a",
            "- a",
            "\"a\"",
            "a\nb",
            " a",
        ] {
            let quoted = scalar(text);
            assert!(quoted.starts_with('"') && quoted.ends_with('"'), "{quoted}");
            let reading = crate::skills::yaml::parse(&format!("k: {quoted}")).unwrap();
            assert_eq!(reading.value["k"], text);
        }
        for text in [
            "a",
            "my-skill-2",
            "3d",
            "0xfog",
            "3d-print",
            "on-call",
            "nan",
            "a:b",
            "0 errors",
            "x=y",
        ] {
            assert_eq!(scalar(text), text);
        }
    }
}
