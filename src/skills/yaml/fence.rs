//! Where the YAML lies in a document: behind a line of `---` at its start, up
//! to the next such line, or up to where it seems to end without one.
//!
//! Offsets are bytes of the document as it is, whatever its line ends. What
//! the YAML says is for the rest of the module.

use super::lines::is_key_line;

/// Where the line after the opening `---` begins.
pub fn find_opening(document: &str) -> Option<usize> {
    let rest = trim_start(document);
    let rest = in_code_fence(rest).unwrap_or(rest);
    let line = rest.split_inclusive('\n').next()?;
    let is_opening = line.trim_end() == "---" && line.ends_with('\n');
    is_opening.then(|| document.len() - rest.len() + line.len())
}

/// The document without a byte order mark and empty lines at its start.
pub fn trim_start(document: &str) -> &str {
    let text = document.trim_start_matches('\u{feff}');
    let blank = text.len() - text.trim_start().len();
    let indent_start = text[..blank].rfind('\n').map_or(0, |at| at + 1);
    &text[indent_start..]
}

/// What stands in a code fence that begins with frontmatter: documents that
/// were copied out of a chat, fence and all.
pub fn in_code_fence(text: &str) -> Option<&str> {
    let (_, inside) = text.strip_prefix("```")?.split_once('\n')?;
    let (dashes, source) = inside.split_once('\n')?;
    let is_it = dashes.trim_end() == "---" && begins_with_key(source);
    is_it.then_some(inside)
}

/// The end of the YAML that begins at `start`, and of the line of `marks` that
/// closes it. At the end of a document that line may lack its line end.
pub fn find_fence(
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

/// Where frontmatter ends whose closing line is missing or stands glued to
/// the line before: the end of the YAML and the start of the body.
pub fn find_lost_end(source: &str, is_closed: bool) -> Option<(usize, usize)> {
    let natural = find_prose(source, is_closed);
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

/// Where the body begins in lines that should be YAML: at the gap (empty lines
/// and headings) before a line that is no field. A `#` line ends frontmatter
/// that is never closed; in closed frontmatter it may be a comment.
fn find_prose(source: &str, is_closed: bool) -> Option<usize> {
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

/// The number of the line, from 1, in which a byte lies.
pub fn line_number(document: &str, at: usize) -> usize {
    1 + document[..at].matches('\n').count()
}
