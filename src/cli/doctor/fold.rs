//! Wraps lines of the report for a terminal.

use crate::limits;
use crate::world::output::Output;

/// Columns of the status mark, with the space after it.
pub(super) const MARK_COLUMNS: usize = 9;

/// The lines of a text: on a terminal it is wrapped between words, but not between backquotes,
/// so that commands can be copied.
pub(super) fn fold(text: &str, indent: &str, output: &Output) -> Vec<String> {
    let room = limits::REPORT_COLUMNS - MARK_COLUMNS;
    if !output.is_on_terminal() {
        return vec![format!("{indent}{text}")];
    }
    fold_to(room, text, indent)
}

fn fold_to(room: usize, text: &str, indent: &str) -> Vec<String> {
    let mut lines = vec![indent.to_string()];
    let mut is_quoted = false;
    let mut word = String::new();
    for part in text.split(' ') {
        if !word.is_empty() {
            word.push(' ');
        }
        word.push_str(part);
        is_quoted ^= part.matches('`').count() % 2 == 1;
        if is_quoted {
            continue;
        }
        let last = lines.len() - 1;
        let is_empty = lines[last].len() == indent.len();
        if !is_empty && lines[last].chars().count() + 1 + word.chars().count() > room {
            lines.push(format!("{indent}  {word}"));
        } else {
            let space = if is_empty { "" } else { " " };
            lines[last] = format!("{}{space}{word}", lines[last]);
        }
        word.clear();
    }
    if !word.is_empty() {
        lines.push(format!("{indent}  {word}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_between_words_but_not_in_commands() {
        let table: &[(&str, &[&str])] = &[
            ("a b", &["a b"]),
            ("aaaa bbbb cccc", &["aaaa bbbb", "  cccc"]),
            ("aaaa `b b b b b`, c", &["aaaa", "  `b b b b b`,", "  c"]),
            ("aaaaaaaaaaaaaa b", &["aaaaaaaaaaaaaa", "  b"]),
            ("an odd ` quote", &["an odd", "  ` quote"]),
        ];
        for (text, expected) in table {
            assert_eq!(fold_to(10, text, ""), *expected);
        }
    }
}
