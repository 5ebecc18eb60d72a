//! The lines of each field in the raw text of a frontmatter. Lines are recognized by their
//! shape alone; the caller verifies the result.

use std::ops::Range;

use crate::skills::yaml::lines::{is_blank_or_comment, is_key_line, split_key};

/// The lines of a field, as byte ranges of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldEntry {
    /// All lines up to the next field.
    pub all: Range<usize>,
    /// The same without trailing empty lines, comments, and the last line end.
    pub content: Range<usize>,
    /// Index of the first line, from 0.
    pub line: usize,
}

/// Returns the fields that start in the first column of a source.
pub(super) fn field_entries(source: &str) -> Vec<FieldEntry> {
    let mut found: Vec<FieldEntry> = Vec::new();
    let mut at = 0;
    for (number, line) in source.split_inclusive('\n').enumerate() {
        let text = line.trim_end_matches(['\n', '\r']);
        let end = at + line.len();
        if is_key_line(text) {
            found.push(FieldEntry { all: at..end, content: at..at + text.len(), line: number });
        } else if let Some(entry) = found.last_mut() {
            entry.all.end = end;
            if !is_blank_or_comment(text) {
                entry.content.end = at + text.len();
            }
        }
        at = end;
    }
    found
}

impl FieldEntry {
    /// Returns the key, and the offset of its value, directly after the colon.
    pub(super) fn key<'s>(&self, source: &'s str) -> Option<(&'s str, usize)> {
        let content = source.get(self.content.clone())?;
        let (key, rest) = split_key(content)?;
        Some((key, self.content.end - rest.len()))
    }

    /// Whether its lines may contain a comment, which a repair would lose.
    pub(super) fn has_comment(&self, source: &str) -> bool {
        let content = source.get(self.content.clone()).unwrap_or_default();
        content.contains(" # ")
            || content.contains("\t#")
            || content
                .lines()
                .any(|line| line.trim_start().starts_with('#') || line.ends_with(" #"))
    }
}
