//! Repair of slightly invalid JSON.
//!
//! A cut character, half of a surrogate pair or a raw line break inside a string makes a strict
//! parser refuse a whole event, and a piece of the answer would be lost. Servers that decode
//! tokens one by one send all three.

/// The JSON with invalid UTF-8 and lone surrogates replaced by U+FFFD, and with raw line breaks
/// and tabs inside strings escaped. Used only on JSON that the parser has refused.
pub(super) fn repair_json(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(data);
    let mut repaired = String::with_capacity(text.len());
    let mut rest = &*text;
    let mut in_string = false;
    while let Some(first) = rest.chars().next() {
        let (length, replacement) = match first {
            '\\' if in_string => escape(rest),
            '\t' if in_string => (1, Some("\\t")),
            '\n' if in_string => (1, Some("\\n")),
            '\r' if in_string => (1, Some("\\r")),
            '\0'..='\x1f' if in_string => (1, Some("\\ufffd")),
            _ => (first.len_utf8(), None),
        };
        in_string ^= first == '"';
        let (piece, after) = rest.split_at(length);
        repaired.push_str(replacement.unwrap_or(piece));
        rest = after;
    }
    repaired
}

/// The length of the escape at the start, and what replaces it if it is a lone surrogate.
fn escape(text: &str) -> (usize, Option<&'static str>) {
    let unit = |at: usize| {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
        (Some(0xd800..=0xdfff), _) => (6, Some("\\ufffd")),
        _ => (text.chars().take(2).map(char::len_utf8).sum(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_invalid_json_is_replaced() {
        let table: &[(&[u8], &str)] = &[
            (b"{\"a\":\"\xe2\x82\"}", "{\"a\":\"\u{fffd}\"}"),
            (br#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (br#"{"a":"\ude00x"}"#, r#"{"a":"\ufffdx"}"#),
            (br#"{"a":"\ud83dA"}"#, r#"{"a":"\ufffdA"}"#),
            (br#"{"a":"\ud83d\ude00\\ud83d\u00e9"}"#, r#"{"a":"\ud83d\ude00\\ud83d\u00e9"}"#),
            (b"{\n\"a\":\"x\ny\\\"\tz\"}", "{\n\"a\":\"x\\ny\\\"\\tz\"}"),
            (br#"{"a":"\ud8"#, r#"{"a":"\ud8"#),
            (br#"{"a":"\"#, r#"{"a":"\"#),
            (b"", ""),
        ];
        for (data, expected) in table {
            assert_eq!(repair_json(data), *expected);
        }
    }
}
