//! Repair of slightly invalid JSON.
//!
//! A cut character, half of a surrogate pair or a raw line break inside a string makes a strict
//! parser refuse a whole event, and a piece of the answer would be lost. Servers that decode
//! tokens one by one send all three.

/// Returns the JSON with invalid UTF-8 and lone surrogates replaced by U+FFFD, and with raw
/// line breaks and tabs inside strings escaped. Used only on JSON that the parser has refused.
pub(super) fn repair_json(data: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(data);
    let bytes = text.as_bytes();
    let mut repaired = Vec::with_capacity(bytes.len());
    let mut in_string = false;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let used = match rest {
            [b'\\', b'u', ..] if in_string => match classify_escape(rest) {
                Surrogate::None => copy(&mut repaired, rest, 2),
                Surrogate::Pair => copy(&mut repaired, rest, 12),
                Surrogate::Lone => {
                    repaired.extend(b"\\ufffd");
                    6
                }
            },
            [b'\\', _, ..] if in_string => copy(&mut repaired, rest, 2),
            [byte @ 0..=0x1f, ..] if in_string => {
                repaired.extend(match byte {
                    b'\t' => b"\\t".as_slice(),
                    b'\n' => b"\\n",
                    b'\r' => b"\\r",
                    _ => b"\\ufffd",
                });
                1
            }
            [byte, ..] => {
                in_string ^= *byte == b'"';
                copy(&mut repaired, rest, 1)
            }
            [] => break,
        };
        at += used;
    }
    repaired
}

fn copy(to: &mut Vec<u8>, from: &[u8], count: usize) -> usize {
    to.extend(&from[..count]);
    count
}

enum Surrogate {
    None,
    Pair,
    Lone,
}

/// Classifies the `\u` escape at the start.
fn classify_escape(bytes: &[u8]) -> Surrogate {
    let unit = |bytes: &[u8]| {
        let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    match unit(bytes) {
        Some(0xd800..=0xdbff) => match bytes.get(6..).and_then(unit) {
            Some(0xdc00..=0xdfff) => Surrogate::Pair,
            _ => Surrogate::Lone,
        },
        Some(0xdc00..=0xdfff) => Surrogate::Lone,
        _ => Surrogate::None,
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
            let repaired = String::from_utf8(repair_json(data)).unwrap();
            assert_eq!(repaired, *expected);
        }
    }
}
