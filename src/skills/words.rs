//! The words of a line of arguments, as a shell splits them.

/// The words of a line as a shell splits them, at most `most`. An unclosed quote is an
/// apostrophe.
pub fn split_words(line: &str, most: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line;
    let mut is_double_closed = true;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c.is_ascii_whitespace() {
            words.extend(word.take());
            if words.len() >= most {
                return words;
            }
            continue;
        }
        let word = word.get_or_insert_default();
        match c {
            '\\' => {
                let next = rest.chars().next();
                word.push(next.unwrap_or('\\'));
                rest = &rest[next.map_or(0, char::len_utf8)..];
            }
            '\'' => match rest.split_once('\'') {
                Some((quoted, behind)) => {
                    word.push_str(quoted);
                    rest = behind;
                }
                None => word.push(c),
            },
            // Searched once only, so that a line of open quotes takes linear time.
            '"' if is_double_closed => match closing_quote(rest) {
                Some(end) => {
                    push_unescaped(word, &rest[..end]);
                    rest = &rest[end + 1..];
                }
                None => {
                    is_double_closed = false;
                    word.push(c);
                }
            },
            _ => word.push(c),
        }
    }
    words.extend(word);
    words.truncate(most);
    words
}

/// Offset of the double quote that ends a quoted text.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// Adds text from double quotes, where a backslash stays unless it escapes something.
fn push_unescaped(word: &mut String, quoted: &str) {
    let mut rest = quoted.chars().peekable();
    while let Some(c) = rest.next() {
        match rest.next_if(|next| c == '\\' && matches!(next, '"' | '\\' | '$' | '`')) {
            Some(escaped) => word.push(escaped),
            None => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            (" \t\n", &[]),
            ("a  b\tc\nd", &["a", "b", "c", "d"]),
            (r#"'a b' "c d" e\ f"#, &["a b", "c d", "e f"]),
            (r#"a'b'"c"d"#, &["abcd"]),
            (r#""" '' x"#, &["", "", "x"]),
            (r#""a\"b\\c\n" 'a\'"#, &[r#"a"b\c\n"#, r"a\"]),
            ("don't stop", &["don't", "stop"]),
            (r#"5" disk 'x"#, &["5\"", "disk", "'x"]),
            (r#"it's "fine" 'now"#, &["its \"fine\" now"]),
            (r"end\", &[r"end\"]),
            ("ä\u{a0}b 日\u{3000}本", &["ä\u{a0}b", "日\u{3000}本"]),
        ];
        for (line, expected) in table {
            assert_eq!(split_words(line, 100), *expected, "{line:?}");
        }
        assert_eq!(split_words("a b c", 2), ["a", "b"]);
    }
}
