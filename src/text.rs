//! Text made fit to be shown: one line of it, a bounded part of it, without
//! the characters that command a terminal.

use std::borrow::Cow;

/// White space folded into single blanks, cut after `most_bytes` at a
/// character's boundary.
pub fn one_line(text: &str, most_bytes: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > most_bytes {
            line.truncate(line.floor_char_boundary(most_bytes));
            line.push('…');
            break;
        }
    }
    line
}

/// At most `most_bytes` of the text, with an ellipsis where it was cut.
pub fn cut(text: &str, most_bytes: usize) -> Cow<'_, str> {
    if text.len() <= most_bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!(
        "{}…",
        text[..text.floor_char_boundary(most_bytes)].trim_end()
    ))
}

/// A file's name as one line of a list, whatever a stranger called it.
pub fn one_name(name: &str) -> String {
    name.replace(
        |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'),
        "\u{fffd}",
    )
}

/// The text without what a terminal would take as a command: escape
/// sequences and every control character but tab and line feed. A carriage
/// return before a line feed goes quietly; alone it would overwrite a line.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(commands_terminal) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            c if commands_terminal(c) => clean.push('\u{fffd}'),
            c => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

/// C0 and C1 controls, and the characters that turn the direction of writing
/// around, so that a line can look like another one.
fn commands_terminal(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The names most like `wanted`, the likeliest first, at most `most`.
pub fn nearest<'n>(
    wanted: &str,
    names: impl Iterator<Item = &'n str>,
    most: usize,
) -> Vec<&'n str> {
    let wanted = normal(wanted);
    let mut found: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let candidate = normal(name);
            let distance = if candidate == wanted {
                0
            } else if !wanted.is_empty()
                && (candidate.contains(&wanted) || wanted.contains(&candidate))
            {
                1
            } else {
                edit_distance(&wanted, &candidate)
            };
            // A third of the letters may differ; more is another word.
            (distance <= 1 + wanted.chars().count() / 3).then_some((distance, name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).take(most).collect()
}

/// Lower case, letters and digits only: `My_Skill` and `my-skill` are alike.
fn normal(name: &str) -> String {
    // What is compared is bounded: the distance below is quadratic.
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .take(64)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Levenshtein's distance: letters added, left out or changed.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_folded_and_cut_between_characters() {
        assert_eq!(one_line("  a\n\tb  c ", 100), "a b c");
        assert_eq!(
            one_line(&"ä".repeat(400), 301),
            format!("{}…", "ä".repeat(150))
        );
        assert_eq!(cut("äää", 3), "ä…");
        assert_eq!(cut("abc", 3), "abc");
    }

    #[test]
    fn nothing_in_a_text_commands_a_terminal() {
        let table = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("a\x1b[31mred", "a\u{fffd}[31mred"),
            ("\x07\x08\x7f", "\u{fffd}\u{fffd}\u{fffd}"),
            ("dos\r\nline", "dos\nline"),
            ("over\rwritten", "over\u{fffd}written"),
            ("c1 \u{9b}31m", "c1 \u{fffd}31m"),
            ("abc\u{202e}fed", "abc\u{fffd}fed"),
            ("grüße 😀", "grüße 😀"),
        ];
        for (text, expected) in table {
            assert_eq!(printable(text), expected);
        }
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["calculator", "data-explorer", "text-analyzer"];
        let near = |wanted| nearest(wanted, names.into_iter(), 3);
        assert_eq!(near("calcluator"), ["calculator"]);
        assert_eq!(near("Data_Explorer"), ["data-explorer"]);
        assert_eq!(near("calc"), ["calculator"]);
        assert!(near("weather").is_empty());
        assert!(near("").is_empty());
    }
}
