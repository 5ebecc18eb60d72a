//! The lines in which two texts differ, for the question of `--confirm`.

use base::limits;
use base::text::escape_bytes;

/// A line of the comparison: `-`, `+` or a blank, and the line with its break.
type MarkedLine<'t> = (char, &'t [u8]);

/// Lists the lines that are removed (`-`) and added (`+`), with the lines around them; `…` stands
/// for equal lines.
pub fn diff(old: &[u8], new: &[u8]) -> String {
    let lines = compare(&split(old), &split(new));
    let is_change = |line: &MarkedLine<'_>| line.0 != ' ';
    let mut text = String::new();
    let mut has_gap = false;
    for (index, (mark, line)) in lines.iter().enumerate() {
        let first = index.saturating_sub(limits::DIFF_CONTEXT_LINES);
        let around = &lines[first..lines.len().min(index + limits::DIFF_CONTEXT_LINES + 1)];
        if !around.iter().any(is_change) {
            has_gap = true;
            continue;
        }
        if std::mem::take(&mut has_gap) {
            text.push_str("…\n");
        }
        text.push(*mark);
        let line = escape_bytes(line);
        match mark {
            ' ' => text.push_str(line.strip_suffix('\n').unwrap_or(&line)),
            _ => push_visibly(&line, &mut text),
        }
        text.push('\n');
    }
    text
}

/// Appends a changed line: blanks at its end, a carriage return and a missing line break are shown.
fn push_visibly(line: &str, text: &mut String) {
    let content = line.strip_suffix('\n').unwrap_or(line);
    let (shown, end) = match content.strip_suffix('\r') {
        Some(shown) => (shown, "\\r"),
        None => (content, ""),
    };
    let words = shown.trim_end_matches(' ');
    text.push_str(words);
    text.push_str(&"·".repeat(shown.len() - words.len()));
    text.push_str(end);
    if !line.ends_with('\n') {
        text.push_str(" (no line break at the end)");
    }
}

fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Compares line by line. After a difference, the nearest equal lines are searched; if there are
/// none nearby, all further lines are different.
fn compare<'t>(old: &[&'t [u8]], new: &[&'t [u8]]) -> Vec<MarkedLine<'t>> {
    let mut lines = Vec::new();
    let (mut old, mut new) = (old, new);
    while !old.is_empty() || !new.is_empty() {
        if let (Some(line), Some(other)) = (old.first(), new.first())
            && line == other
        {
            lines.push((' ', *line));
            (old, new) = (&old[1..], &new[1..]);
            continue;
        }
        let skips =
            (1..limits::DIFF_SEARCH_LINES).flat_map(|sum| (0..=sum).map(move |it| (it, sum - it)));
        let is_equal = |&(removed, added): &(usize, usize)| {
            old.get(removed).is_some_and(|line| new.get(added) == Some(line))
        };
        let (removed, added) = skips.into_iter().find(is_equal).unwrap_or((old.len(), new.len()));
        lines.extend(old[..removed].iter().map(|line| ('-', *line)));
        lines.extend(new[..added].iter().map(|line| ('+', *line)));
        (old, new) = (&old[removed..], &new[added..]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        let table: [(&str, &str, &str); 9] = [
            ("", "a\nb\n", "+a\n+b\n"),
            ("a\n", "", "-a\n"),
            ("a\n", "a\n", ""),
            ("a", "a\n", "-a (no line break at the end)\n+a\n"),
            ("a\r\n", "a\n", "-a\\r\n+a\n"),
            ("a b  \n", "a b\n", "-a b··\n+a b\n"),
            ("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n6\n", "…\n 3\n 4\n-5\n+x\n 6\n"),
            ("a\nb\nc\n", "a\nc\n", " a\n-b\n c\n"),
            (
                "a\n1\n2\n3\n4\n5\n6\nb\n",
                "A\n1\n2\n3\n4\n5\n6\nB\n",
                "-a\n+A\n 1\n 2\n…\n 5\n 6\n-b\n+B\n",
            ),
        ];
        for (old, new, expected) in table {
            assert_eq!(diff(old.as_bytes(), new.as_bytes()), expected, "{old:?} {new:?}");
        }
    }
}
