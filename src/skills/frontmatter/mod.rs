//! The frontmatter of a skill's document: its place and its fields.
//!
//! Reading never fails: invalid frontmatter is repaired if necessary, and every problem
//! is a [`Diagnostic`] with its line. Only the required fields are checked here; all other
//! rules (lengths, characters, the folder's name) belong to the linter. No file is opened:
//! [`parse_head`] is for callers that have read only the start of a document.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};

pub(crate) use super::yaml::Diagnostic;
use super::yaml::fence::{
    begins_with_key, find_closing_line, find_missing_end, find_opening, has_fields,
    inside_code_fence, line_number, skip_preamble, trim_start,
};
use super::yaml::lines::split_key;
use super::yaml::{self, ParsedYaml};
use crate::Rule;

/// The frontmatter of a document.
#[derive(Clone, Debug, Default)]
pub struct Frontmatter {
    /// Its fields; empty if there is no frontmatter.
    pub fields: Map<String, Value>,
    /// Byte offset of the body in the document.
    pub body_start: usize,
    /// Whether its end is a guess, as a line of dashes is missing or indented.
    pub is_unclosed: bool,
    /// The bytes of the document that were read as fields, without the lines of dashes
    /// around them; empty if there is no frontmatter.
    pub source: Range<usize>,
    /// Its problems, in the order of lines.
    pub diagnostics: Vec<Diagnostic>,
    source_texts: BTreeMap<String, String>,
}

/// Reads the frontmatter of a whole document.
pub fn parse(document: &str) -> Frontmatter {
    let mut front = Frontmatter::default();
    let Some(mut block) = find_block(document, &mut front) else {
        return front.into_absent(document);
    };
    let first_line = line_number(document, block.start);
    let parsed = read_block(document, &mut block, &mut front);
    for mut diagnostic in parsed.diagnostics {
        diagnostic.line += first_line - 1;
        yaml::add_diagnostic(&mut front.diagnostics, diagnostic);
    }
    let Value::Object(fields) = parsed.value else {
        return front.into_absent(document);
    };
    front.fields = fields;
    front.source_texts = parsed.source_texts;
    front.body_start = block.body_start;
    front.source = block.start..block.end;
    front.check_required_fields(&document[block.start..block.end], first_line);
    front.diagnostics.sort_by_key(|diagnostic| diagnostic.line);
    front
}

/// Reads the frontmatter from the first bytes of a document; `is_whole` means that there
/// are no more. `None`: the frontmatter does not end within them, so more must be read.
///
/// Invalid UTF-8 in the frontmatter is replaced and reported as an error, and then
/// `body_start` is 0.
pub fn parse_head(prefix: &[u8], is_whole: bool) -> Option<Frontmatter> {
    let error = std::str::from_utf8(prefix).err();
    let valid = error.map_or(prefix.len(), |error| error.valid_up_to());
    let is_broken = error.is_some_and(|error| is_whole || error.error_len().is_some());
    let text = String::from_utf8_lossy(if is_broken { prefix } else { &prefix[..valid] });
    let is_undecided = match find_opening(&text) {
        // More bytes may complete a comment, a title and its underline, or the line of dashes.
        None => skip_preamble(trim_start(&text)).matches('\n').nth(1).is_none(),
        Some(start) => find_closing_line(&text, start, "---", false).is_none(),
    };
    if is_undecided && !is_whole {
        return None;
    }
    let mut front = parse(&text);
    if is_broken && !front.source.is_empty() && front.body_start > valid {
        front.body_start = 0;
        let line = line_number(&text, valid);
        front.add_diagnostic(line, Rule::NotUtf8, "bytes that are not UTF-8", true);
    }
    Some(front)
}

/// The first line of text in a body: that of a heading or paragraph, without its marks.
/// Rules, code fences and comments are skipped.
pub fn first_line_of_text(body: &str) -> Option<&str> {
    let mut is_comment = false;
    for line in body.lines() {
        let line = line.trim_start_matches('\u{feff}').trim();
        is_comment |= line.starts_with("<!--");
        if is_comment {
            is_comment = !line.contains("-->");
            continue;
        }
        let text = line.trim_start_matches(['#', '>']).trim_end_matches('#').trim();
        let is_mark = text.starts_with("```") || text.starts_with("~~~");
        if !is_mark && text.contains(|c| !"-=*_ ".contains(c)) {
            return Some(text);
        }
    }
    None
}

impl Frontmatter {
    /// A field as text. Numbers and booleans are returned as they were written; `None`
    /// for lists, maps, null and missing fields.
    pub fn text(&self, key: &str) -> Option<String> {
        self.text_ref(key).map(Cow::into_owned)
    }

    /// Like [`Frontmatter::text`], without a copy.
    fn text_ref(&self, key: &str) -> Option<Cow<'_, str>> {
        match self.fields.get(key)? {
            Value::String(text) => Some(text.into()),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(match self.source_texts.get(key) {
                Some(written) => written.into(),
                None => value.to_string().into(),
            }),
            _ => None,
        }
    }

    /// A field as text, where lists and maps are returned as they were written: to its
    /// author `argument-hint: [topic]` is not a list.
    pub fn as_written(&self, key: &str) -> Option<String> {
        match self.fields.get(key)? {
            Value::Array(_) | Value::Object(_) => self.source_texts.get(key).cloned(),
            _ => self.text(key),
        }
    }

    /// The text in brackets that enclose unquoted words on one line: the author meant
    /// prose with commas, not a list.
    pub(super) fn bracketed_prose(&self, key: &str) -> Option<&str> {
        let inner = self.source_texts.get(key)?.strip_prefix('[')?;
        let inner = inner.strip_suffix(']')?.trim().trim_end_matches(',');
        let is_quoted = |item: &str| item.trim_start().starts_with(['"', '\'']);
        let is_prose =
            !inner.contains(['\n', '[', ']', '{', '}']) && !inner.split(',').any(is_quoted);
        is_prose.then_some(inner.trim_end())
    }

    /// The field `name`, if it is not blank.
    pub fn name(&self) -> Option<String> {
        self.text_ref("name").and_then(|text| trimmed_non_empty(&text))
    }

    /// The field `description`. A list becomes one text: as it was written if it is prose
    /// in brackets, or else its items, joined with commas where an item does not end with
    /// punctuation.
    pub fn description(&self) -> Option<String> {
        let Some(Value::Array(items)) = self.fields.get("description") else {
            return self.text("description").and_then(|text| trimmed_non_empty(&text));
        };
        if let Some(prose) = self.bracketed_prose("description") {
            return trimmed_non_empty(prose);
        }
        let texts = items.iter().filter_map(|item| match item {
            Value::String(text) => trimmed_non_empty(text),
            Value::Number(_) | Value::Bool(_) => Some(item.to_string()),
            _ => None,
        });
        let mut joined = String::new();
        for text in texts {
            if !joined.is_empty() {
                let is_marked = joined.ends_with(['.', ',', ';', ':', '!', '?']);
                joined.push_str(if is_marked { " " } else { ", " });
            }
            joined.push_str(&text);
        }
        trimmed_non_empty(&joined)
    }

    /// Adds a diagnostic without the limit for those of the YAML reader: these matter most, and
    /// they are few.
    fn add_diagnostic(&mut self, line: usize, rule: Rule, message: &str, is_lost: bool) {
        self.diagnostics.push(Diagnostic { line, rule, message: message.to_owned(), is_lost });
    }

    /// The line of a field, of equal keys the last. If the field is missing, the line of
    /// the opening dashes. `first_line` is the line of `source` in the document.
    pub(super) fn field_line(&self, key: &str, source: &str, first_line: usize) -> usize {
        let has_key = |line: &str| split_key(line).is_some_and(|(found, _)| found == key);
        let findings = self.diagnostics.iter();
        let indented = findings.filter(|diagnostic| diagnostic.rule == Rule::IndentedField);
        let mut indented = indented.map(|diagnostic| diagnostic.line).filter(|line| {
            let line = source.lines().nth(line.saturating_sub(first_line));
            line.is_some_and(|line| has_key(line.trim_start()))
        });
        let lines = source.lines().zip(first_line..);
        let own = lines.filter(|(line, _)| has_key(line)).map(|(_, at)| at);
        let last = own.last().or_else(|| indented.next_back());
        last.unwrap_or(first_line.saturating_sub(1).max(1))
    }

    /// The result for a document without usable frontmatter: all of it is body.
    fn into_absent(mut self, document: &str) -> Self {
        self.body_start = document.len() - document.trim_start_matches('\u{feff}').len();
        let message = "no valid frontmatter".to_owned();
        let (line, rule) = (1, Rule::NoFrontmatter);
        self.diagnostics.insert(0, Diagnostic { line, rule, message, is_lost: true });
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.line);
        self
    }

    /// Checks that name and description are there, and are text.
    fn check_required_fields(&mut self, source: &str, first_line: usize) {
        let (name, description) = (self.name(), self.description());
        for (key, missing, value) in [
            ("name", Rule::MissingName, name),
            ("description", Rule::MissingDescription, description),
        ] {
            let (rule, message) = match self.fields.get(key) {
                Some(other) if !other.is_null() && !other.is_string() => {
                    (Rule::FieldType, format!("field '{key}' is {}, not text", type_name(other)))
                }
                _ if value.is_none() => (missing, format!("missing field '{key}'")),
                _ => continue,
            };
            let line = self.field_line(key, source, first_line);
            self.add_diagnostic(line, rule, &message, value.is_none());
        }
    }
}

/// Position of the YAML and of the body in a document.
struct FrontmatterBlock {
    start: usize,
    end: usize,
    body_start: usize,
    is_closed: bool,
}

fn find_block(document: &str, front: &mut Frontmatter) -> Option<FrontmatterBlock> {
    let start = find_opening(document)?;
    let closing = find_closing_line(document, start, "---", true);
    let text = trim_start(document);
    let late = if inside_code_fence(text).is_some() {
        Some("the frontmatter is in a code fence")
    } else if text.starts_with("---") {
        (line_number(document, start) > 2).then_some("empty lines before the frontmatter")
    } else if closing.is_some_and(|(end, _)| has_fields(&document[start..end])) {
        Some("text before the frontmatter, which is read here; other clients do not see it")
    } else {
        return None;
    };
    if let Some(message) = late {
        front.add_diagnostic(1, Rule::LateFrontmatter, message, false);
    }
    if let Some((end, body_start)) = closing {
        return Some(FrontmatterBlock { start, end, body_start, is_closed: true });
    }
    if !begins_with_key(&document[start..]) {
        return None;
    }
    let (end, body_start) = find_closing_line(document, start, "...", true).unwrap_or_else(|| {
        let source = &document[start..];
        let (end, body) = find_missing_end(source, false).unwrap_or((source.len(), source.len()));
        (start + end, start + body)
    });
    // Codex accepts it.
    let (rule, message) = if document[start..].lines().any(|line| line.trim() == "---") {
        (Rule::Indentation, "the line of `---` that closes the frontmatter is indented")
    } else {
        (Rule::UnclosedFrontmatter, "the frontmatter is never closed by a line of `---`")
    };
    front.add_diagnostic(line_number(document, start) - 1, rule, message, false);
    front.is_unclosed = true;
    Some(FrontmatterBlock { start, end, body_start, is_closed: false })
}

/// Reads the block strictly or, if that fails, repairs it.
fn read_block(document: &str, block: &mut FrontmatterBlock, front: &mut Frontmatter) -> ParsedYaml {
    let strict = |block: &FrontmatterBlock| match yaml::parse(&yaml::normalize(
        &document[block.start..block.end],
    )) {
        Ok(parsed) if parsed.value.is_object() => Some(parsed),
        Ok(ParsedYaml { value: Value::Null, source_texts, diagnostics }) => {
            Some(ParsedYaml { value: Value::Object(Map::new()), source_texts, diagnostics })
        }
        _ => None,
    };
    let mut parsed = strict(block);
    if parsed.is_none() && block.is_closed {
        // The line of dashes may belong to the body.
        let source = &document[block.start..block.end];
        if let Some((end, body)) = find_missing_end(source, true) {
            let line = line_number(document, block.start + end);
            block.end = block.start + end;
            block.body_start = block.start + body;
            let message = "the frontmatter seems to end here without a line of `---`";
            front.add_diagnostic(line, Rule::UnclosedFrontmatter, message, false);
            front.is_unclosed = true;
            parsed = strict(block);
        }
    }
    let source = yaml::normalize(&document[block.start..block.end]);
    let mut parsed = parsed.unwrap_or_else(|| yaml::repair(&source));
    if let Some((line, c)) = yaml::find_control_character(&source) {
        let code = u32::from(c);
        let message =
            format!("character U+{code:04X}, which other readers refuse or read as a line end");
        let rule = Rule::ControlCharacter;
        parsed.diagnostics.push(Diagnostic { line, rule, message, is_lost: false });
    }
    parsed
}

/// The type of a value, for messages.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn trimmed_non_empty(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
