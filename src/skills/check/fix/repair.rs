//! The repair of a document's text, step by step; each result is verified.

use serde_json::{Map, Value};

use crate::limits;
use crate::skills::frontmatter::{self, Frontmatter, Severity};
use crate::skills::yaml;
use crate::skills::yaml::fence::{find_closing_line, find_opening, line_number, trim_start};

/// A repaired document.
#[derive(Debug)]
pub(in crate::skills::check) struct RepairedDocument {
    /// The whole text.
    pub text: String,
    /// The repairs: line number before the repair, and rule.
    pub fixed: Vec<(usize, &'static str)>,
    /// The old and the new name, if it changed.
    pub renamed: Option<(String, String)>,
}

/// Repairs the document of the skill in the folder `folder`; `None` if there is nothing that
/// can be repaired and verified.
pub(in crate::skills::check) fn repair_document(
    document: &str,
    folder: &str,
) -> Option<RepairedDocument> {
    let frontmatter = frontmatter::parse(document);
    let is_lost = frontmatter.diagnostics.iter().any(|finding| {
        finding.severity == Severity::Error
            && !["missing-name", "missing-description"].contains(&finding.rule)
    });
    let source = frontmatter.source.clone();
    let is_odd = document.replace("\r\n", "").contains('\r');
    if is_lost || source.start == 0 || source.len() > limits::REPAIR_BYTES || is_odd {
        return None;
    }
    let mut work = DocumentRepair::new(document, &frontmatter)?;
    work.remove_lines_above();
    work.close_frontmatter(&frontmatter);
    work.unindent_fields();
    work.fix_values()?;
    if !work.is_proven(&work.text, &work.fields) {
        return None;
    }
    // A repair may be possible only after another one.
    for _ in 0..limits::FIX_ROUNDS {
        let count = work.fixed.len();
        work.remove_duplicates();
        work.fix_types(&frontmatter);
        work.fix_tools();
        // Last, because it may add a line.
        work.fix_name(&frontmatter, folder);
        if work.fixed.len() == count {
            break;
        }
    }
    work.fixed.sort();
    work.fixed.dedup();
    let is_changed = work.text != document && !work.fixed.is_empty();
    let new = work.fields.get("name").and_then(Value::as_str);
    let renamed = frontmatter.name().zip(new.map(str::to_owned));
    is_changed.then_some(RepairedDocument {
        renamed: renamed.filter(|(old, new)| old != new),
        text: work.text,
        fixed: work.fixed,
    })
}

/// A document under repair.
pub(super) struct DocumentRepair<'d> {
    pub(super) text: String,
    /// Range of the YAML in the text.
    start: usize,
    end: usize,
    body: &'d str,
    /// The values that the repaired fields must have.
    pub(super) fields: Map<String, Value>,
    pub(super) line_end: &'static str,
    pub(super) fixed: Vec<(usize, &'static str)>,
    /// Removed lines: line number at that time, and count.
    removed: Vec<(usize, usize)>,
}

impl<'d> DocumentRepair<'d> {
    pub(super) fn new(document: &'d str, frontmatter: &Frontmatter) -> Option<DocumentRepair<'d>> {
        let opening = document.get(..frontmatter.source.start)?;
        Some(DocumentRepair {
            text: document.to_owned(),
            start: frontmatter.source.start,
            end: frontmatter.source.end,
            body: document.get(frontmatter.body_start..)?,
            fields: frontmatter.fields.clone(),
            line_end: if opening.ends_with("\r\n") { "\r\n" } else { "\n" },
            fixed: Vec::new(),
            removed: Vec::new(),
        })
    }

    pub(super) fn source(&self) -> &str {
        self.text.get(self.start..self.end).unwrap_or_default()
    }

    /// Maps a line number of the current text to one of the original document.
    pub(super) fn original_line(&self, line: usize) -> usize {
        let mut line = line;
        for &(at, count) in self.removed.iter().rev() {
            if line >= at {
                line += count;
            }
        }
        line
    }

    /// Original line number of the source's line `index`.
    pub(super) fn original_source_line(&self, index: usize) -> usize {
        self.original_line(line_number(&self.text, self.start) + index)
    }

    /// Removes everything before the opening dashes.
    fn remove_lines_above(&mut self) {
        let length = self.text.len() - trim_start(&self.text).len();
        let before = &self.text[..length];
        if before.starts_with('\u{feff}') {
            self.fixed.push((1, "byte-order-mark"));
        }
        let lines = before.matches('\n').count();
        if lines > 0 {
            self.fixed.push((1, "late-frontmatter"));
            self.removed.push((1, lines));
        }
        self.text.replace_range(..length, "");
        self.start -= length;
        self.end -= length;
    }

    /// Closes the fields with a line of dashes.
    fn close_frontmatter(&mut self, frontmatter: &Frontmatter) {
        let body_start = self.text.len() - self.body.len();
        let found = find_closing_line(&self.text, self.start, "---", true);
        if found == Some((self.end, body_start)) {
            return;
        }
        let unclosed = |finding: &&frontmatter::Diagnostic| finding.rule == "unclosed-frontmatter";
        let line = frontmatter.diagnostics.iter().find(unclosed).map_or(1, |finding| finding.line);
        self.fixed.push((line, "unclosed-frontmatter"));
        let is_line = self.text[..self.end].ends_with('\n');
        let first = if is_line { "" } else { self.line_end };
        let fence = format!("{first}---{}", self.line_end);
        self.text.replace_range(self.end..body_start, &fence);
        if is_line {
            // The YAML ends before its last line end, as if it had been closed.
            let source = &self.text[..self.end - 1];
            self.end = source.strip_suffix('\r').unwrap_or(source).len().max(self.start);
        }
    }

    /// Replaces a range of the source, and records the removed lines.
    pub(super) fn edit(&mut self, range: std::ops::Range<usize>, new: &str) {
        let (from, to) = (self.start + range.start, self.start + range.end);
        let Some(old) = self.text.get(from..to) else {
            return;
        };
        let count = |text: &str| text.matches('\n').count();
        let lost = count(old).saturating_sub(count(new));
        if lost > 0 {
            self.removed.push((line_number(&self.text, from) + 1, lost));
        }
        self.end = self.end + new.len() - old.len();
        self.text.replace_range(from..to, new);
    }

    /// Whether the strict reader finds exactly these fields in the text, and its body is
    /// unchanged.
    pub(super) fn is_proven(&self, text: &str, fields: &Map<String, Value>) -> bool {
        let Some(start) = find_opening(text).filter(|_| text.starts_with("---")) else {
            return false;
        };
        let Some((end, body_start)) = find_closing_line(text, start, "---", true) else {
            return false;
        };
        let Ok(reading) = yaml::parse(&yaml::normalize(&text[start..end])) else {
            return false;
        };
        let source = &text[start..end];
        if yaml::find_odd_character(source).is_some() || source.contains('\u{feff}') {
            return false;
        }
        let frontmatter = frontmatter::parse(text);
        let value = match reading.value {
            Value::Object(value) => value,
            Value::Null => Map::new(),
            _ => return false,
        };
        value == *fields
            && frontmatter.fields == *fields
            && frontmatter.body_start == body_start
            && frontmatter.source == (start..end)
            && text[body_start..] == *self.body
    }

    /// Makes the change if the result has exactly these fields; otherwise reverts it.
    pub(super) fn try_edit(
        &mut self,
        range: std::ops::Range<usize>,
        new: &str,
        fields: Map<String, Value>,
        fixed: (usize, &'static str),
    ) {
        let saved = (self.text.clone(), self.end, self.removed.len());
        self.edit(range, new);
        if self.text != saved.0 && self.is_proven(&self.text, &fields) {
            self.fields = fields;
            self.fixed.push(fixed);
        } else {
            (self.text, self.end) = (saved.0, saved.1);
            self.removed.truncate(saved.2);
        }
    }
}
