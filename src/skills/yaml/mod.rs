//! Reader for the YAML in frontmatter.
//!
//! [`parse`] is strict: it returns the values that YAML 1.1 readers such as `PyYAML`
//! return, as JSON, or one error with its line. [`repair()`] reads what the strict reader
//! refused, entry by entry, and keeps as many values as possible.
//!
//! Two rules keep the result faithful to the text. Values that JSON cannot hold stay text as it was
//! written: dates, infinities, numbers beyond 64 bits. Features that frontmatter never
//! needs are errors: anchors, aliases, tags, merge keys, complex keys, directives, several
//! documents.
//!
//! Each byte is read a limited number of times and nesting is limited, so that a hostile
//! document exhausts neither time nor stack. Nothing here opens a file or prints.

mod block;
pub mod fence;
mod flow;
pub(crate) mod indented;
pub(crate) mod lines;
mod repair;
mod scalar;
mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::Rule;
use base::limits;
pub use repair::repair;

/// A problem in the YAML of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line, counted from 1.
    pub line: usize,
    /// The rule that the line breaks.
    pub rule: Rule,
    /// Message for the user.
    pub message: String,
    /// Whether a value is lost or unusable; otherwise it was read, but other readers may refuse
    /// it.
    pub is_lost: bool,
}

/// The result of reading a piece of YAML.
#[derive(Clone, Debug, Default)]
pub struct ParsedYaml {
    /// Its value; a map for valid frontmatter.
    pub value: Value,
    /// The source text of top-level values that are not text, by key: `1.10` is the number
    /// 1.1, but a version to its author.
    pub source_texts: BTreeMap<String, String>,
    /// Problems that did not prevent reading, up to a limit.
    pub diagnostics: Vec<Diagnostic>,
}

/// The error that ended a strict reading.
#[derive(Clone, Debug)]
pub struct YamlError {
    /// The line, counted from 1.
    pub line: usize,
    /// The rule that the line breaks.
    pub rule: Rule,
    /// Message for the user.
    pub message: String,
}

/// Reads one YAML document strictly. Lines must end in LF: see [`normalize`].
pub fn parse(text: &str) -> Result<ParsedYaml, YamlError> {
    read_document(YamlReader::new(text))
}

/// Like [`parse`], with the values of YAML 1.2 (its core schema), in which `on`, `yes` and
/// `1:30` are text, and `012` is 12.
pub fn parse_core(text: &str) -> Result<ParsedYaml, YamlError> {
    read_document(YamlReader { is_core: true, ..YamlReader::new(text) })
}

fn read_document(mut reader: YamlReader<'_>) -> Result<ParsedYaml, YamlError> {
    let mut parsed = ParsedYaml::default();
    if reader.next_token()? {
        parsed.value = reader.block_node(0, false)?.value;
        if reader.next_token()? {
            return Err(reader.error(Rule::Indentation, "text after the end of the document"));
        }
    } else if reader.peek().is_some() {
        return Err(reader.error(Rule::UnsupportedYaml, "`...` without a document before it"));
    }
    reader.check_document_end()?;
    parsed.source_texts = reader.source_texts;
    parsed.diagnostics = reader.diagnostics;
    Ok(parsed)
}

/// The text with LF for every line end, also for CRLF and a lone CR.
pub fn normalize(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The first control character, which YAML does not allow or reads as a line end although it is
/// not visible as one; with its line.
pub fn find_control_character(text: &str) -> Option<(usize, char)> {
    // Fast path: nearly all text has these bytes only.
    let is_usual = |byte| matches!(byte, b' '..=b'~' | b'\n');
    if text.bytes().all(is_usual) {
        return None;
    }
    let is_bad = |c: char| match c {
        '\t' | '\n' | '\r' => false,
        '\u{fffe}' | '\u{ffff}' => true,
        _ => c.is_control(),
    };
    let (at, c) = text.char_indices().find(|&(_, c)| is_bad(c))?;
    Some((1 + text[..at].matches('\n').count(), c))
}

/// Adds a diagnostic, up to the limit.
pub(super) fn add_diagnostic(diagnostics: &mut Vec<Diagnostic>, diagnostic: Diagnostic) {
    if diagnostics.len() < limits::YAML_DIAGNOSTICS {
        diagnostics.push(diagnostic);
    }
}

/// Adds an entry to a map. If a key is repeated, the last value is used and the
/// repetition is reported.
fn insert_field(
    fields: &mut Map<String, Value>,
    (key, line): (String, usize),
    value: Value,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if fields.contains_key(&key) {
        let message = format!("key `{}` is repeated; the last value is used", display_key(&key));
        let rule = Rule::DuplicateKey;
        add_diagnostic(diagnostics, Diagnostic { line, rule, message, is_lost: false });
    }
    fields.insert(key, value);
}

/// A key for a message: on one line and truncated.
fn display_key(key: &str) -> String {
    base::text::one_line(key, limits::SUMMARY_CHARS)
}

/// A value and, if it is not text, its source text.
struct YamlNode {
    value: Value,
    source_text: Option<String>,
}

/// Position in the text.
#[derive(Clone, Copy)]
struct YamlPosition {
    offset: usize,
    line: usize,
    line_start: usize,
    /// Where the indentation of the line ends.
    content_start: usize,
}

/// The number of spaces and tabs at the start.
fn blank_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// State of the strict reader.
struct YamlReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    position: YamlPosition,
    /// Whether plain text has the values of YAML 1.2.
    is_core: bool,
    depth: usize,
    source_texts: BTreeMap<String, String>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> YamlReader<'a> {
    fn new(text: &'a str) -> Self {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let content_start = at + blank_length(&text.as_bytes()[at..]);
        YamlReader {
            text,
            bytes: text.as_bytes(),
            position: YamlPosition { offset: at, line: 1, line_start: at, content_start },
            is_core: false,
            depth: 0,
            source_texts: BTreeMap::new(),
            diagnostics: Vec::new(),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.position.offset + ahead).copied()
    }

    /// Whether white space or the end is `ahead` bytes further on.
    fn is_blank_at(&self, ahead: usize) -> bool {
        matches!(self.peek_at(ahead), None | Some(b' ' | b'\t' | b'\n'))
    }

    /// Advances by `count` bytes, none of which ends a line.
    fn advance(&mut self, count: usize) {
        self.position.offset += count;
    }

    /// Advances past the LF at this position.
    fn newline(&mut self) {
        self.position.offset += 1;
        self.position.line += 1;
        self.position.line_start = self.position.offset;
        let rest = &self.bytes[self.position.offset..];
        self.position.content_start = self.position.offset + blank_length(rest);
    }

    fn column(&self) -> usize {
        self.position.offset - self.position.line_start
    }

    fn skip_spaces(&mut self) {
        loop {
            match self.peek() {
                Some(b' ') => self.advance(1),
                Some(b'\t') if self.is_inner_tab() => self.skip_tab(),
                _ => return,
            }
        }
    }

    /// Whether there is a tab here that does not indent: `libyaml` and readers of YAML 1.2 take
    /// it as white space or text, `PyYAML` refuses it.
    fn is_inner_tab(&self) -> bool {
        self.peek() == Some(b'\t') && self.position.offset >= self.position.content_start
    }

    /// Skips a tab that does not indent.
    fn skip_tab(&mut self) {
        self.warn(Rule::UnsupportedYaml, "a tab outside quotes, which some readers refuse");
        self.advance(1);
    }

    /// Reports what only other readers refuse, once for a line and a rule.
    fn warn(&mut self, rule: Rule, message: &str) {
        let line = self.position.line;
        if !self.diagnostics.iter().rev().any(|found| (found.line, found.rule) == (line, rule)) {
            let diagnostic = Diagnostic { line, rule, message: message.to_owned(), is_lost: false };
            add_diagnostic(&mut self.diagnostics, diagnostic);
        }
    }

    /// Skips spaces and a comment.
    fn skip_comment(&mut self) {
        self.skip_spaces();
        if self.peek() == Some(b'#') {
            let rest = &self.bytes[self.position.offset..];
            let length = rest.iter().position(|&b| b == b'\n');
            self.advance(length.unwrap_or(rest.len()));
        }
    }

    /// Skips blank lines and comments. Returns `false` at the end of the document.
    fn next_token(&mut self) -> Result<bool, YamlError> {
        loop {
            self.skip_comment();
            match self.peek() {
                None => return Ok(false),
                Some(b'\n') => self.newline(),
                Some(b'\t') => return Err(self.tab_error()),
                Some(b'-') if self.is_document_marker() => {
                    return Err(self.error(Rule::UnsupportedYaml, "a second document starts"));
                }
                Some(_) => return Ok(!self.is_document_marker()),
            }
        }
    }

    /// Whether this position is a line of `---` or `...`.
    fn is_document_marker(&self) -> bool {
        let rest = &self.bytes[self.position.offset..];
        self.column() == 0
            && (rest.starts_with(b"---") || rest.starts_with(b"..."))
            && self.is_blank_at(3)
    }

    /// Checks that only comments follow a final `...`.
    fn check_document_end(&mut self) -> Result<(), YamlError> {
        if self.peek().is_some() {
            self.advance(3);
            if self.next_token()? {
                return Err(self.error(Rule::UnsupportedYaml, "text after `...`"));
            }
        }
        Ok(())
    }

    /// Enters one level of nesting; each call needs a `leave_level`.
    fn enter_level(&mut self) -> Result<(), YamlError> {
        self.depth += 1;
        if self.depth > limits::YAML_DEPTH {
            let message = format!("nested deeper than {} levels", limits::YAML_DEPTH);
            return Err(self.error(Rule::UnsupportedYaml, message));
        }
        Ok(())
    }

    fn leave_level(&mut self) {
        self.depth -= 1;
    }

    fn error(&self, rule: Rule, message: impl Into<String>) -> YamlError {
        YamlError { line: self.position.line, rule, message: message.into() }
    }

    fn tab_error(&self) -> YamlError {
        self.error(Rule::Tab, "a tab outside quotes")
    }
}

#[cfg(test)]
mod tests;
