//! Quoting: writes a text as a YAML value that every reader reads as this text.

use serde_json::Value;

/// The text as a value on one line: without quotes if every reader reads it as this text,
/// otherwise in double quotes.
pub fn quote_if_needed(text: &str) -> String {
    let is_itself = super::parse(&format!("k: {text}"))
        .is_ok_and(|parsed| parsed.value["k"] == Value::String(text.to_owned()));
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

/// Whether another reader may read the text as a date, a number or a boolean: `2026-11-21`,
/// `1e3` and `0o17` (YAML 1.2), a number of any size, `y` (YAML 1.1). Unnecessary quotes do
/// no harm, missing ones do.
fn is_typed_elsewhere(text: &str) -> bool {
    let starts_as_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let is_hexadecimal = text.contains(['x', 'X']);
    let in_number = |c: char| {
        c.is_ascii_digit()
            || "eExXoObB_.:+-tTzZ ".contains(c)
            || is_hexadecimal && c.is_ascii_hexdigit()
    };
    let words = ["y", "n", ".inf", "+.inf", "-.inf", ".nan"];
    starts_as_number && text.chars().all(in_number)
        || words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PyYAML` 6 and a reader of YAML 1.2 read all of them as these texts.
    #[test]
    fn text_with_another_meaning_for_any_reader_is_quoted() {
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
            let quoted = quote_if_needed(text);
            assert!(quoted.starts_with('"') && quoted.ends_with('"'), "{quoted}");
            let parsed = crate::skills::yaml::parse(&format!("k: {quoted}")).unwrap();
            assert_eq!(parsed.value["k"], text);
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
            assert_eq!(quote_if_needed(text), text);
        }
    }
}
