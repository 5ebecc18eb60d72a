//! Position of the YAML in a document: after a line of `---` at its start or below comments, up to
//! the next such line, or up to its probable end if that line is missing.
//!
//! Offsets are bytes of the document with its own line ends.

use super::lines::{is_key_line, split_key};

/// Offset of the line after the opening `---`. Below a comment or a title it may also be a line of
/// the body: see [`has_fields`].
pub fn find_opening(document: &str) -> Option<usize> {
    let rest = trim_start(document);
    let rest = inside_code_fence(rest).unwrap_or_else(|| skip_preamble(rest));
    let line = rest.split_inclusive('\n').next()?;
    let is_opening = line.trim_end() == "---" && line.ends_with('\n');
    is_opening.then(|| document.len() - rest.len() + line.len())
}

/// The text after what authors and programs write above frontmatter: HTML comments, lines that
/// begin with `#` or `//`, an underlined title, empty lines, byte order marks. Empty if a comment
/// is not closed.
pub fn skip_preamble(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches('\u{feff}');
        let (line, below) = split_line(rest);
        let content = line.trim();
        if content.starts_with("<!--") {
            let (_, behind) = rest.split_once("-->").unwrap_or_default();
            rest = behind.trim_start_matches([' ', '\t', '\r']);
        } else if line.is_empty() || line.starts_with("---") {
            return rest;
        } else if content.is_empty() || content.starts_with('#') || content.starts_with("//") {
            rest = below;
        } else {
            let (underline, below) = split_line(below);
            let underline = underline.trim();
            if underline.is_empty() || underline.contains(|c| c != '=') {
                return rest;
            }
            rest = below;
        }
    }
}

/// The first line with its line end, and the text below it.
fn split_line(text: &str) -> (&str, &str) {
    text.split_at(text.find('\n').map_or(text.len(), |at| at + 1))
}

/// Whether the lines between two lines of `---` are the fields of a skill, which has a description
/// and a name, or is for the user only, and not text between two rules.
pub fn has_fields(source: &str) -> bool {
    let has = |key: &str| source.lines().any(|line| split_key(line).is_some_and(|it| it.0 == key));
    let is_skill = has("name") || has("disable-model-invocation");
    begins_with_key(source) && is_skill && has("description")
}

/// The document without a byte order mark and empty lines at its start.
pub fn trim_start(document: &str) -> &str {
    let text = document.trim_start_matches('\u{feff}');
    let blank = text.len() - text.trim_start().len();
    let indent_start = text[..blank].rfind('\n').map_or(0, |at| at + 1);
    &text[indent_start..]
}

/// The text inside a code fence that starts with frontmatter, as in documents that were
/// copied from a chat.
pub fn inside_code_fence(text: &str) -> Option<&str> {
    let (_, inside) = text.strip_prefix("```")?.split_once('\n')?;
    let (dashes, source) = inside.split_once('\n')?;
    let has_frontmatter = dashes.trim_end() == "---" && begins_with_key(source);
    has_frontmatter.then_some(inside)
}

/// The end of the YAML that starts at `start`, and the end of the line of `marks` that
/// closes it. At the end of a document that line needs no line end.
pub fn find_closing_line(
    document: &str,
    start: usize,
    marks: &str,
    is_whole: bool,
) -> Option<(usize, usize)> {
    let mut at = start;
    for line in document[start..].split_inclusive('\n') {
        if line.starts_with(marks) && line.trim_end() == marks && (is_whole || line.ends_with('\n'))
        {
            let before = &document[start..at];
            let source = before.strip_suffix('\n').unwrap_or(before);
            let source = source.strip_suffix('\r').unwrap_or(source);
            return Some((start + source.len(), at + line.len()));
        }
        at += line.len();
    }
    None
}

/// Whether the first line that is not empty is a field.
pub fn begins_with_key(source: &str) -> bool {
    source.lines().find(|line| !line.trim().is_empty()).is_some_and(is_key_line)
}

/// The end of frontmatter whose closing line is missing or was appended to the line before:
/// the end of the YAML and the start of the body.
pub fn find_missing_end(source: &str, is_closed: bool) -> Option<(usize, usize)> {
    let natural = find_body_start(source, is_closed);
    if is_closed && natural.is_none() {
        return None;
    }
    let limit = natural.unwrap_or(source.len());
    let mut at = 0;
    let mut ends = (limit, limit);
    for line in source[..limit].split_inclusive('\n') {
        if let Some(content) = line.trim_end().strip_suffix("---")
            && content.contains(char::is_alphanumeric)
            && !content.ends_with('-')
        {
            ends = (at + content.len(), at + line.len());
            break;
        }
        at += line.len();
    }
    let has_fields = |line: &str| line.starts_with("name:") || line.starts_with("description:");
    let is_sure = !is_closed || !source[ends.1..].lines().any(has_fields);
    is_sure.then_some(ends)
}

/// Offset of the body in lines that should be YAML: the gap (empty lines and headings)
/// before a line that is not a field. A `#` line ends unclosed frontmatter; in closed
/// frontmatter it may be a comment.
fn find_body_start(source: &str, is_closed: bool) -> Option<usize> {
    let (mut at, mut gap, mut has_key) = (0, None, false);
    for line in source.split_inclusive('\n') {
        if line.starts_with('#') || line.trim().is_empty() {
            let start = *gap.get_or_insert(at);
            if line.starts_with('#') && !is_closed && has_key {
                return Some(start);
            }
        } else if is_key_line(line.trim_end()) {
            (gap, has_key) = (None, true);
        } else if line.starts_with([' ', '\t']) {
            gap = None;
        } else if let Some(start) = gap.filter(|_| has_key) {
            return Some(start);
        }
        at += line.len();
    }
    None
}

/// The number of the line, from 1, that contains a byte.
pub fn line_number(document: &str, at: usize) -> usize {
    1 + document[..at].matches('\n').count()
}
