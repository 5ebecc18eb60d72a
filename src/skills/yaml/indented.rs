//! Lines inside a value that look like fields: what one blank too many does to
//! a field is to make it part of the value above.
//!
//! Only shapes are looked at, and only in values that a strict reader refuses:
//! in all others such a line is the text that it seems not to be.

use super::lines::{FIELDS, is_idle, is_item_line, split_key};
use super::{normalize, parse};

/// Where the line begins, in the lines of one field whose value is refused,
/// that is a well-known field of its own but for its indentation. `has` tells
/// the fields that the document has at its first column.
pub(in crate::skills) fn find_field(entry: &str, has: impl Fn(&str) -> bool) -> Option<usize> {
    let (_, value) = split_key(entry)?;
    let own_line = value.split('\n').next()?.trim();
    let is_flow = own_line.starts_with(['[', '{']);
    let mut block = IndentedBlock::of(own_line);
    let mut at = 0;
    for line in entry.split_inclusive('\n') {
        let is_below = at > 0 && !is_idle(line.trim_start());
        if is_below
            && !block.holds(line)
            && let Some(key) = indented_key(line)
            && FIELDS.contains(&key)
            && !has(key)
        {
            // What stands in brackets that are still open belongs to them.
            return (!is_flow || parse(&normalize(&entry[..at])).is_ok()).then_some(at);
        }
        at += line.len();
    }
    None
}

/// The first line below a field's own that looks like a field: its key, and
/// how many lines further down it stands.
pub(in crate::skills) fn find_suspect(value: &str) -> Option<(&str, usize)> {
    let lines = value.lines().enumerate().skip(1);
    let mut keys = lines.filter_map(|(below, line)| Some((indented_key(line)?, below)));
    keys.next()
}

/// The key of an indented line, with white space behind its colon.
fn indented_key(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let content = line.trim_start_matches([' ', '\t']);
    let (key, behind) = split_key(content)?;
    let is_spaced = behind.is_empty() || behind.starts_with([' ', '\t']);
    (content.len() < line.len() && is_spaced).then_some(key)
}

/// The lines below a field whose own line has no value: a map, a list, or the
/// text behind `|` and `>`. Only what is indented less is none of them.
struct IndentedBlock {
    is_it: bool,
    /// The column from which on lines belong to it, once the first is seen.
    column: Option<usize>,
}

impl IndentedBlock {
    fn of(own_line: &str) -> IndentedBlock {
        let is_it = is_idle(own_line) || own_line.starts_with(['|', '>']);
        IndentedBlock { is_it, column: None }
    }

    fn holds(&mut self, line: &str) -> bool {
        let content = line.trim_start_matches([' ', '\t']);
        let indent = line[..line.len() - content.len()].replace('\t', "    ");
        let inner = indent.len() + if is_item_line(content) { 2 } else { 0 };
        let first = self.column.is_none();
        self.is_it && (indent.len() >= *self.column.get_or_insert(inner) || first)
    }
}
