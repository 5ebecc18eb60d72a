//! A document's text, mended step by step; each result is proven.

use serde_json::{Map, Value};

use crate::limits;
use crate::order;
use crate::skills::frontmatter::{self, Frontmatter, Severity};
use crate::skills::yaml;
use crate::skills::yaml::fence::{find_fence, find_opening, line_number, trim_start};

/// A document that is better than before.
#[derive(Debug)]
pub(in crate::skills::check) struct Mended {
    /// All of its text.
    pub text: String,
    /// What was mended: the line, as it was counted before, and the rule.
    pub fixed: Vec<(usize, &'static str)>,
    /// The name as it was and as it is, where it was changed.
    pub renamed: Option<(String, String)>,
}

/// Mends the document of the skill in the folder of this name. None: there is
/// nothing to mend, or nothing that can be mended with proof.
pub(in crate::skills::check) fn mend(document: &str, folder: &str) -> Option<Mended> {
    let front = frontmatter::parse(document);
    let is_lost = front.diagnostics.iter().any(|finding| {
        finding.severity == Severity::Error
            && !["missing-name", "missing-description"].contains(&finding.rule)
    });
    let source = front.source.clone();
    let is_odd = document.replace("\r\n", "").contains('\r');
    if is_lost || source.start == 0 || source.len() > limits::MENDED_BYTES || is_odd {
        return None;
    }
    let mut work = DocumentRepair::new(document, &front)?;
    work.head();
    work.closing(&front);
    work.indented();
    work.values()?;
    if !work.is_proven(&work.text, &work.fields) {
        return None;
    }
    // One may be provable only when another is done.
    for _ in 0..limits::MENDING_ROUNDS {
        let count = work.fixed.len();
        work.duplicates();
        work.types(&front);
        work.tools();
        // The last one: it may add a line.
        work.name(&front, folder);
        if work.fixed.len() == count {
            break;
        }
    }
    order::sort(&mut work.fixed);
    work.fixed.dedup();
    let is_changed = work.text != document && !work.fixed.is_empty();
    let new = work.fields.get("name").and_then(Value::as_str);
    let renamed = front.name().zip(new.map(str::to_owned));
    is_changed.then_some(Mended {
        renamed: renamed.filter(|(old, new)| old != new),
        text: work.text,
        fixed: work.fixed,
    })
}

/// A document being mended.
pub(super) struct DocumentRepair<'d> {
    pub(super) text: String,
    /// Where the YAML begins and ends in the text.
    start: usize,
    end: usize,
    body: &'d str,
    /// What the fields must say in the end.
    pub(super) fields: Map<String, Value>,
    pub(super) line_end: &'static str,
    pub(super) fixed: Vec<(usize, &'static str)>,
    /// Lines taken away: where, as counted then, and how many.
    removed: Vec<(usize, usize)>,
}

impl<'d> DocumentRepair<'d> {
    pub(super) fn new(document: &'d str, front: &Frontmatter) -> Option<DocumentRepair<'d>> {
        let opening = document.get(..front.source.start)?;
        Some(DocumentRepair {
            text: document.to_owned(),
            start: front.source.start,
            end: front.source.end,
            body: document.get(front.body_start..)?,
            fields: front.fields.clone(),
            line_end: if opening.ends_with("\r\n") { "\r\n" } else { "\n" },
            fixed: Vec::new(),
            removed: Vec::new(),
        })
    }

    pub(super) fn source(&self) -> &str {
        self.text.get(self.start..self.end).unwrap_or_default()
    }

    /// The line in the document as it was of one in the text as it is.
    pub(super) fn line_before(&self, line: usize) -> usize {
        let mut line = line;
        for &(at, count) in self.removed.iter().rev() {
            if line >= at {
                line += count;
            }
        }
        line
    }

    /// The number of the source's line `index` in the document as it was.
    pub(super) fn number(&self, index: usize) -> usize {
        self.line_before(line_number(&self.text, self.start) + index)
    }

    /// Nothing stands in front of the opening dashes.
    fn head(&mut self) {
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

    /// A line of dashes of its own closes the fields.
    fn closing(&mut self, front: &Frontmatter) {
        let body_start = self.text.len() - self.body.len();
        let found = find_fence(&self.text, self.start, "---", true);
        if found == Some((self.end, body_start)) {
            return;
        }
        let unclosed = |finding: &&frontmatter::Diagnostic| finding.rule == "unclosed-frontmatter";
        let line = front.diagnostics.iter().find(unclosed).map_or(1, |finding| finding.line);
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

    /// Changes the source in one place, and remembers what that does to lines.
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

    /// Whether a document says these fields to the strictest reader, and has
    /// the same body as before.
    pub(super) fn is_proven(&self, text: &str, fields: &Map<String, Value>) -> bool {
        let Some(start) = find_opening(text).filter(|_| text.starts_with("---")) else {
            return false;
        };
        let Some((end, body_start)) = find_fence(text, start, "---", true) else {
            return false;
        };
        let Ok(reading) = yaml::parse(&yaml::normalize(&text[start..end])) else {
            return false;
        };
        let source = &text[start..end];
        if yaml::find_odd_character(source).is_some() || source.contains('\u{feff}') {
            return false;
        }
        let front = frontmatter::parse(text);
        let value = match reading.value {
            Value::Object(value) => value,
            Value::Null => Map::new(),
            _ => return false,
        };
        value == *fields
            && front.fields == *fields
            && front.body_start == body_start
            && front.source == (start..end)
            && text[body_start..] == *self.body
    }

    /// Takes the change if it is proven to make these fields; else nothing
    /// has happened.
    pub(super) fn attempt(
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
