//! Percent-encoding (RFC 3986): any byte as `%` and two hexadecimal digits.

/// The bytes as text, each encoded but for the unreserved characters and those
/// that are `kept`.
pub(crate) fn encoded(bytes: &[u8], kept: &[u8]) -> String {
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

/// What the text stands for, decoded once. A `%` that begins no code stands for
/// itself: [`is_whole`] tells whether there is one.
pub(crate) fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = (first == b'%').then(|| code(behind)).flatten();
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    bytes
}

/// Whether every `%` begins a code.
pub(crate) fn is_whole(text: &str) -> bool {
    let mut behind = text.split('%').skip(1);
    behind.all(|behind| code(behind.as_bytes()).is_some())
}

/// The byte that two digits at the beginning stand for.
fn code(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_what_is_no_code_stays() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encoded(&all, b"")), all);
        assert_eq!(encoded(b"a b/\xc3~", b"/"), "a%20b/%C3~");
        for (text, plain, whole) in [
            ("%41%2f%2F", "A//", true),
            ("%2541", "%41", true),
            ("100%", "100%", false),
            ("%4", "%4", false),
            ("%+1%zz%é", "%+1%zz%é", false),
            ("", "", true),
        ] {
            assert_eq!(decoded(text), plain.as_bytes(), "{text}");
            assert_eq!(is_whole(text), whole, "{text}");
        }
    }
}
