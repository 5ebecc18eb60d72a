//! Classification of single lines: fields, list items, blank lines and comments, and the
//! text that an author probably meant.
//!
//! For the repair of invalid YAML. Lines are judged by their shape only; what is done with
//! them is up to [`super::repair`](mod@super::repair).

use std::borrow::Cow;

/// The fields of the specification, and those of clients that have an effect.
pub(crate) const FIELDS: [&str; 11] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
    "disable-model-invocation",
    "user-invocable",
    "argument-hint",
    "arguments",
    "when_to_use",
];

/// The fields of the specification, recognized even without a space after the colon.
fn known_keys() -> impl Iterator<Item = &'static str> {
    FIELDS.into_iter().take(6)
}

/// Whether a line starts with a key at its first column.
pub(crate) fn is_key_line(line: &str) -> bool {
    split_key(line).is_some()
}

/// The key at the start of a line, and all text after its colon.
pub(crate) fn split_key(text: &str) -> Option<(&str, &str)> {
    let line = text.split('\n').next()?;
    let quote = line.chars().next().filter(|c| "\"'".contains(*c));
    let (key, end) = if let Some(quote) = quote {
        let close = 1 + line[1..].find(quote)?;
        (&line[1..close], close + 1)
    } else {
        if line.starts_with(|c: char| " \t#[]{},&*!|>%@`?:".contains(c)) || is_item_line(line) {
            return None;
        }
        let end = line.find([' ', '\t']).unwrap_or(line.len());
        let word = &line[..end];
        let lacks_space =
            |key: &&str| word.strip_prefix(*key).is_some_and(|rest| rest.starts_with(':'));
        let without_space = || known_keys().find(lacks_space).map(str::len);
        let end = word.strip_suffix(':').map(str::len).or_else(without_space).unwrap_or(end);
        (&line[..end], end)
    };
    let after_colon = line[end..].trim_start_matches(' ').strip_prefix(':')?;
    let is_spaced = after_colon.is_empty() || after_colon.starts_with([' ', '\t']);
    let is_key = !key.is_empty() && (is_spaced || known_keys().any(|known| known == key));
    is_key.then(|| (key, &text[line.len() - after_colon.len()..]))
}

pub(super) fn is_item_line(line: &str) -> bool {
    line.strip_prefix('-')
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n']))
}

/// Whether a line is blank or a comment at its first column.
pub(crate) fn is_blank_or_comment(line: &str) -> bool {
    line.starts_with('#') || line.trim().is_empty()
}

/// The lines without the indentation of the first one that has content.
pub(super) fn unindent(text: &str) -> Cow<'_, str> {
    let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let first = text.lines().find(|line| !is_blank_or_comment(line.trim_start()));
    let indent = first.map_or(0, spaces);
    if indent == 0 {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n');
    Cow::Owned(lines.map(|line| &line[spaces(line).min(indent)..]).collect())
}

/// The text with four spaces for each tab that indents; other tabs are kept.
pub(crate) fn expand_indent_tabs(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim_start_matches([' ', '\t']);
        result.push_str(&line[..line.len() - content.len()].replace('\t', "    "));
        result.push_str(content);
    }
    result
}

/// The value as its author meant it: its lines as one text, with blank lines kept, and after
/// `|` all line ends. `None` if nothing is left.
pub(crate) fn value_as_text(rest: &str) -> Option<String> {
    let (own_line, below) = rest.split_once('\n').unwrap_or((rest, ""));
    let own_line = own_line.trim();
    let is_header = own_line.len() < 4
        && own_line.starts_with(['|', '>'])
        && own_line[1..].chars().all(|c| "+-".contains(c) || c.is_ascii_digit());
    let joint = if is_header && own_line.starts_with('|') { '\n' } else { ' ' };
    let own_text = own_line.strip_prefix("> ").or_else(|| own_line.strip_prefix(">- "));
    let mut text = if is_header { String::new() } else { own_text.unwrap_or(own_line).to_owned() };
    let mut is_joined = text.is_empty();
    for line in below.lines().filter(|line| !line.starts_with('#')) {
        let line = line.trim();
        if line.is_empty() {
            text.push('\n');
        } else {
            if !is_joined {
                text.push(joint);
            }
            text.push_str(line);
        }
        is_joined = line.is_empty();
    }
    let text = strip_quotes(text.trim()).trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Removes the quotes around a badly quoted text: an opening one without a closing one, or
/// both, unless they belong to a first and a last word.
fn strip_quotes(text: &str) -> &str {
    let Some(quote) = text.chars().next().filter(|c| "\"'".contains(*c)) else {
        return text;
    };
    let inner = &text[1..];
    if !inner.contains(quote) {
        return inner;
    }
    let Some(inner) = inner.strip_suffix(quote) else {
        return text;
    };
    let is_whole = inner.find(quote).is_none_or(|at| inner[..at].ends_with([' ', '(', '\\']));
    if is_whole { inner } else { text }
}
