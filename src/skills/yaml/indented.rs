//! Lines inside a value that look like fields: a field that is indented by mistake becomes
//! part of the value above it.
//!
//! Used only for values that the strict reader refuses: in valid values such a line is
//! text.

use super::lines::{FIELDS, is_blank_or_comment, is_item_line, split_key};
use super::{normalize, parse};

/// Offset of the first indented line in an entry that is a well-known field, indented by
/// mistake. `has` returns whether the document has a field at its first column.
pub(crate) fn find_indented_field(entry: &str, has: impl Fn(&str) -> bool) -> Option<usize> {
    let (_, value) = split_key(entry)?;
    let own_line = value.split('\n').next()?.trim();
    let is_flow = own_line.starts_with(['[', '{']);
    let mut block = IndentedBlock::new(own_line);
    let mut at = 0;
    for line in entry.split_inclusive('\n') {
        let is_below = at > 0 && !is_blank_or_comment(line.trim_start());
        if is_below
            && !block.contains(line)
            && let Some(key) = indented_key(line)
            && FIELDS.contains(&key)
            && !has(key)
        {
            // Lines in brackets that are still open belong to the brackets.
            return (!is_flow || parse(&normalize(&entry[..at])).is_ok()).then_some(at);
        }
        at += line.len();
    }
    None
}

/// The first line below a field's own line that looks like a field: its key, and the number
/// of lines between.
pub(crate) fn find_field_in_text(value: &str) -> Option<(&str, usize)> {
    let lines = value.lines().enumerate().skip(1);
    let mut keys = lines.filter_map(|(below, line)| Some((indented_key(line)?, below)));
    keys.next()
}

/// The key of an indented line that has white space after the colon.
fn indented_key(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let content = line.trim_start_matches([' ', '\t']);
    let (key, behind) = split_key(content)?;
    let is_spaced = behind.is_empty() || behind.starts_with([' ', '\t']);
    (content.len() < line.len() && is_spaced).then_some(key)
}

/// The lines below a field whose own line has no value: a map, a list, or the text after
/// `|` and `>`. Only lines that are indented less do not belong to it.
struct IndentedBlock {
    is_block: bool,
    /// The smallest column of its lines, known from the first line on.
    column: Option<usize>,
}

impl IndentedBlock {
    fn new(own_line: &str) -> IndentedBlock {
        let is_block = is_blank_or_comment(own_line) || own_line.starts_with(['|', '>']);
        IndentedBlock { is_block, column: None }
    }

    fn contains(&mut self, line: &str) -> bool {
        let content = line.trim_start_matches([' ', '\t']);
        let indent = line[..line.len() - content.len()].replace('\t', "    ");
        let inner = indent.len() + if is_item_line(content) { 2 } else { 0 };
        let first = self.column.is_none();
        self.is_block && (indent.len() >= *self.column.get_or_insert(inner) || first)
    }
}
