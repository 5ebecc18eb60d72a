//! Percent-encoding (RFC 3986): any byte as `%` and two hexadecimal digits.

/// Encodes all bytes except unreserved characters and those in `kept`.
pub(crate) fn encode(bytes: &[u8], kept: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Decodes a text once. A `%` without two hexadecimal digits is kept:
/// [`is_valid`] returns whether there is one.
pub(crate) fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let decoded = (first == b'%').then(|| decode_digits(after)).flatten();
        bytes.push(decoded.unwrap_or(first));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    bytes
}

/// Whether two hexadecimal digits follow each `%`.
pub(crate) fn is_valid(text: &str) -> bool {
    text.split('%').skip(1).all(|after| decode_digits(after.as_bytes()).is_some())
}

/// Decodes the two hexadecimal digits at the start.
fn decode_digits(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_round_trip_and_other_percent_signs_stay() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all, b"")), all);
        assert_eq!(encode(b"a b/\xc3~", b"/"), "a%20b/%C3~");
        for (text, plain, whole) in [
            ("%41%2f%2F", "A//", true),
            ("%2541", "%41", true),
            ("100%", "100%", false),
            ("%4", "%4", false),
            ("%+1%zz%é", "%+1%zz%é", false),
            ("", "", true),
        ] {
            assert_eq!(decode(text), plain.as_bytes(), "{text}");
            assert_eq!(is_valid(text), whole, "{text}");
        }
    }
}
