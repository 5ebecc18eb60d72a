//! A reader of the YAML that stands in front of skills.
//!
//! [`parse`] is strict: it gives the values that YAML 1.1 readers such as
//! `PyYAML` give, as JSON, or one fault with its line. [`mend`] takes what the
//! strict reader refused and saves what can be saved, entry by entry.
//!
//! Two rules keep the result honest. What JSON cannot hold stays text as it
//! was written: dates, infinities, numbers beyond 64 bits. What is never needed
//! here is refused and not guessed: anchors, aliases, tags, merge keys,
//! complex keys, directives, several documents.
//!
//! Every byte is looked at a bounded number of times and nesting is bounded,
//! so that a hostile document costs neither time nor stack. Nothing here knows
//! what a skill is, opens a file or prints.

use crate::limits;
mod block;
pub mod fence;
mod flow;
pub(in crate::skills) mod indented;
pub(in crate::skills) mod lines;
pub mod quoting;
mod repair;
mod scalar;
mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub use repair::mend;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something is lost or unusable.
    Error,
    /// It was read, but other readers may not be so kind.
    Warning,
}

/// One thing that is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line, counted from 1.
    pub line: usize,
    /// How bad it is.
    pub severity: Severity,
    /// A stable name for this kind of finding, in kebab case.
    pub rule: &'static str,
    /// What is wrong, for people.
    pub message: String,
}

/// What a piece of YAML says.
#[derive(Clone, Debug, Default)]
pub struct ParsedYaml {
    /// Its value; a map for anything that calls itself frontmatter.
    pub value: Value,
    /// How top-level values that are no text, or are flow collections, were
    /// written, by key: `1.10` is the number 1.1, but a version to its author.
    pub written: BTreeMap<String, String>,
    /// What other readers may stumble over, at most `limits::YAML_FINDINGS`.
    pub findings: Vec<Diagnostic>,
}

/// The end of a strict reading: where and why.
#[derive(Clone, Debug)]
pub struct YamlError {
    /// The line, counted from 1.
    pub line: usize,
    /// A stable name for this kind of fault, in kebab case.
    pub rule: &'static str,
    /// What is wrong, for people.
    pub message: String,
}

/// Reads one YAML document strictly. Lines must end in LF: see [`normalize`].
pub fn parse(text: &str) -> Result<ParsedYaml, YamlError> {
    read(YamlReader::new(text))
}

/// The same with the values of YAML 1.2 (its core schema), in which `on`, `yes`,
/// `012` and `1:30` are what they look like.
pub fn parse_core(text: &str) -> Result<ParsedYaml, YamlError> {
    read(YamlReader { is_core: true, ..YamlReader::new(text) })
}

/// The same for readers that, unlike `PyYAML`, take tabs wherever they do not
/// indent: `libyaml` and those of YAML 1.2. In a text they stay what they are.
pub(in crate::skills) fn parse_with_tabs(text: &str) -> Result<ParsedYaml, YamlError> {
    read(YamlReader { with_tabs: true, ..YamlReader::new(text) })
}

fn read(mut reader: YamlReader<'_>) -> Result<ParsedYaml, YamlError> {
    let mut reading = ParsedYaml::default();
    if reader.next_token()? {
        reading.value = reader.block_node(0, false)?.value;
        if reader.next_token()? {
            return Err(reader.fault("indentation", "text after the end of the document"));
        }
    } else if reader.peek().is_some() {
        return Err(reader.fault("several-documents", "`...` without a document in front"));
    }
    reader.end_of_document()?;
    reading.written = reader.written;
    reading.findings = reader.findings;
    Ok(reading)
}

/// The text with every line end as LF: CRLF and a lone CR count as one too.
pub fn normalize(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The first character that YAML does not allow, or takes for a line end where
/// people see none; with its line.
pub fn find_odd_character(text: &str) -> Option<(usize, char)> {
    // Nearly all text is made of these, and bytes are looked at faster.
    let is_usual = |byte| matches!(byte, b' '..=b'~' | b'\n');
    if text.bytes().all(is_usual) {
        return None;
    }
    let odd = |c: char| match c {
        '\t' | '\n' | '\r' | ' '..='~' => false,
        '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' => true,
        _ => c < '\u{a0}',
    };
    let (at, c) = text.char_indices().find(|&(_, c)| odd(c))?;
    Some((1 + text[..at].matches('\n').count(), c))
}

/// Adds a finding, unless there are enough already.
pub(super) fn note(findings: &mut Vec<Diagnostic>, finding: Diagnostic) {
    if findings.len() < limits::YAML_FINDINGS {
        findings.push(finding);
    }
}

/// Adds an entry to a map. The last of equal keys wins, and that is said.
fn insert(
    fields: &mut Map<String, Value>,
    (key, line): (String, usize),
    value: Value,
    findings: &mut Vec<Diagnostic>,
) {
    if fields.contains_key(&key) {
        let message = format!("key `{}` stands here again; the last one wins", shown(&key));
        let (severity, rule) = (Severity::Warning, "duplicate-key");
        note(findings, Diagnostic { line, severity, rule, message });
    }
    fields.insert(key, value);
}

/// A key for a message: on one line, and not for ever.
fn shown(key: &str) -> String {
    crate::text::one_line(key, limits::SUMMARY_CHARS)
}

/// A value and, where its text is not the value, how it was written.
struct YamlNode {
    value: Value,
    written: Option<String>,
}

/// A position that can be returned to.
#[derive(Clone, Copy)]
struct YamlPosition {
    at: usize,
    line: usize,
    line_start: usize,
}

/// The text, the place reached in it, and what was found on the way.
struct YamlReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    mark: YamlPosition,
    /// Whether tabs are white space where they do not indent.
    with_tabs: bool,
    /// Whether plain text means what it does in YAML 1.2.
    is_core: bool,
    depth: usize,
    written: BTreeMap<String, String>,
    findings: Vec<Diagnostic>,
}

impl<'a> YamlReader<'a> {
    fn new(text: &'a str) -> Self {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let mark = YamlPosition { at, line: 1, line_start: at };
        let (written, findings) = (BTreeMap::new(), Vec::new());
        YamlReader {
            text,
            bytes: text.as_bytes(),
            mark,
            with_tabs: false,
            is_core: false,
            depth: 0,
            written,
            findings,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.mark.at + ahead).copied()
    }

    /// Whether white space or the end follows `ahead` bytes further on.
    fn is_blank_at(&self, ahead: usize) -> bool {
        matches!(self.peek_at(ahead), None | Some(b' ' | b'\t' | b'\n'))
    }

    /// Goes on by `count` bytes, none of which ends a line.
    fn advance(&mut self, count: usize) {
        self.mark.at += count;
    }

    /// Goes over the LF that stands here.
    fn newline(&mut self) {
        self.mark.at += 1;
        self.mark.line += 1;
        self.mark.line_start = self.mark.at;
    }

    fn column(&self) -> usize {
        self.mark.at - self.mark.line_start
    }

    fn skip_spaces(&mut self) {
        while self.peek() == Some(b' ') || self.is_inner_tab() {
            self.advance(1);
        }
    }

    /// Whether a tab stands here that is allowed, because it does not indent.
    fn is_inner_tab(&self) -> bool {
        let before = &self.bytes[self.mark.line_start..self.mark.at];
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        self.with_tabs && self.peek() == Some(b'\t') && !before.iter().all(is_blank)
    }

    /// Skips to the end of the line; only a comment may stand there.
    fn skip_comment(&mut self) {
        self.skip_spaces();
        if self.peek() == Some(b'#') {
            let rest = &self.bytes[self.mark.at..];
            let length = rest.iter().position(|&b| b == b'\n');
            self.advance(length.unwrap_or(rest.len()));
        }
    }

    /// Skips blank lines and comments; false at the end of the document.
    fn next_token(&mut self) -> Result<bool, YamlError> {
        loop {
            self.skip_comment();
            match self.peek() {
                None => return Ok(false),
                Some(b'\n') => self.newline(),
                Some(b'\t') => return Err(self.tab()),
                Some(b'-') if self.is_marker() => {
                    return Err(self.fault("several-documents", "a second document begins"));
                }
                Some(_) => return Ok(!self.is_marker()),
            }
        }
    }

    /// Whether `---` or `...` stands alone at the start of this line.
    fn is_marker(&self) -> bool {
        let rest = &self.bytes[self.mark.at..];
        self.column() == 0
            && (rest.starts_with(b"---") || rest.starts_with(b"..."))
            && self.is_blank_at(3)
    }

    /// Checks that nothing but comments follows a final `...`.
    fn end_of_document(&mut self) -> Result<(), YamlError> {
        if self.peek().is_some() {
            self.advance(3);
            if self.next_token()? {
                return Err(self.fault("several-documents", "text after `...`"));
            }
        }
        Ok(())
    }

    /// Counts one level of nesting; whoever enters also leaves.
    fn enter(&mut self) -> Result<(), YamlError> {
        self.depth += 1;
        if self.depth > limits::YAML_DEPTH {
            let message = format!("nested deeper than {} levels", limits::YAML_DEPTH);
            return Err(self.fault("too-deep", message));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn fault(&self, rule: &'static str, message: impl Into<String>) -> YamlError {
        YamlError { line: self.mark.line, rule, message: message.into() }
    }

    fn tab(&self) -> YamlError {
        self.fault("tab", "a tab outside quotes")
    }
}

#[cfg(test)]
mod tests;
