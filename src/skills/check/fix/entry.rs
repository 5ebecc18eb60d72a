//! The lines of one field in the raw text of a frontmatter. Only shapes are looked
//! at; what the result says is proven by the caller.

use std::ops::Range;

use crate::skills::yaml::lines::{is_idle, is_key_line, split_key};

/// A field's lines, as bytes of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldEntry {
    /// Up to the next field.
    pub all: Range<usize>,
    /// The same without empty lines and comments at the end, and without the
    /// last line's end.
    pub content: Range<usize>,
    /// Index of its first line, from 0.
    pub line: usize,
}

/// The fields at the first column of a source.
pub(super) fn entries(source: &str) -> Vec<FieldEntry> {
    let mut found: Vec<FieldEntry> = Vec::new();
    let mut at = 0;
    for (number, line) in source.split_inclusive('\n').enumerate() {
        let text = line.trim_end_matches(['\n', '\r']);
        let end = at + line.len();
        if is_key_line(text) {
            found.push(FieldEntry { all: at..end, content: at..at + text.len(), line: number });
        } else if let Some(entry) = found.last_mut() {
            entry.all.end = end;
            if !is_idle(text) {
                entry.content.end = at + text.len();
            }
        }
        at = end;
    }
    found
}

impl FieldEntry {
    /// The key, and where its value begins: right behind the colon.
    pub(super) fn key<'s>(&self, source: &'s str) -> Option<(&'s str, usize)> {
        let content = source.get(self.content.clone())?;
        let (key, rest) = split_key(content)?;
        Some((key, self.content.end - rest.len()))
    }

    /// Whether a comment may stand among its lines, which would be lost.
    pub(super) fn has_comment(&self, source: &str) -> bool {
        let content = source.get(self.content.clone()).unwrap_or_default();
        content.contains(" # ")
            || content.contains("\t#")
            || content
                .lines()
                .any(|line| line.trim_start().starts_with('#') || line.ends_with(" #"))
    }
}
