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
    begins_with_key, find_closing_line, find_missing_end, find_opening, inside_code_fence,
    line_number, trim_start,
};
use super::yaml::lines::split_key;
use super::yaml::{self, ParsedYaml};
use crate::skills::Rule;

/// The frontmatter of a document.
#[derive(Clone, Debug, Default)]
pub struct Frontmatter {
    /// Its fields; empty if there is no frontmatter.
    pub fields: Map<String, Value>,
    /// Byte offset of the body in the document.
    pub body_start: usize,
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
    let (text, is_broken) = match std::str::from_utf8(prefix) {
        Ok(text) => (text, false),
        Err(error) => {
            let (valid, _) = prefix.split_at(error.valid_up_to());
            let is_broken = is_whole || error.error_len().is_some();
            (std::str::from_utf8(valid).unwrap_or_default(), is_broken)
        }
    };
    match find_opening(text) {
        // More bytes may complete the line of dashes.
        None if !is_whole && !is_broken && "---".starts_with(trim_start(text).trim_end()) => None,
        None => Some(parse(text)),
        Some(start) if find_closing_line(text, start, "---", is_whole).is_some() => {
            Some(parse(text))
        }
        Some(_) if is_broken => {
            let lossy = String::from_utf8_lossy(prefix);
            let start = find_opening(&lossy).unwrap_or_default();
            if !is_whole && find_closing_line(&lossy, start, "---", false).is_none() {
                return None;
            }
            let mut front = parse(&lossy);
            front.body_start = 0;
            let line = line_number(text, text.len());
            front.add_diagnostic(line, Rule::NotUtf8, "bytes that are not UTF-8", true);
            Some(front)
        }
        Some(_) => is_whole.then(|| parse(text)),
    }
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
            let kind = match self.fields.get(key) {
                Some(Value::Array(_)) => Some("list"),
                Some(Value::Object(_)) => Some("map"),
                Some(Value::Number(_)) => Some("number"),
                Some(Value::Bool(_)) => Some("boolean"),
                _ => None,
            };
            let (rule, message) = match kind {
                Some(kind) => (Rule::FieldType, format!("field '{key}' is a {kind}, not text")),
                None if value.is_none() => (missing, format!("missing field '{key}'")),
                None => continue,
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
    let line = line_number(document, start) - 1;
    if line > 1 {
        let message = match inside_code_fence(trim_start(document)) {
            Some(_) => "the frontmatter is in a code fence",
            None => "empty lines before the frontmatter",
        };
        front.add_diagnostic(1, Rule::LateFrontmatter, message, false);
    }
    if let Some((end, body_start)) = find_closing_line(document, start, "---", true) {
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
    let message = "the frontmatter is never closed by a line of `---`";
    front.add_diagnostic(line, Rule::UnclosedFrontmatter, message, false);
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

fn trimmed_non_empty(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::world::clock::thread_time;

    /// Each finding as `line rule`, with `lost` where a value is.
    fn findings(front: &Frontmatter) -> Vec<String> {
        let show = |diagnostic: &Diagnostic| {
            let lost = if diagnostic.is_lost { " lost" } else { "" };
            format!("{} {}{lost}", diagnostic.line, diagnostic.rule.name())
        };
        front.diagnostics.iter().map(show).collect()
    }

    #[test]
    fn reads_fields_and_finds_the_body() {
        for document in [
            "---\nname: a\ndescription: >\n  b\n  c\n---\nBody",
            "\u{feff}---\r\nname: a\r\ndescription: |-\r\n  b c\r\n--- \r\nBody",
            "---\nname: 'a'\ndescription: \"b\n  c\"\n---\nBody",
        ] {
            let front = parse(document);
            assert_eq!(findings(&front), [""; 0], "{document:?}");
            assert_eq!(front.name().as_deref(), Some("a"));
            assert_eq!(front.description().as_deref(), Some("b c"));
            assert_eq!(&document[front.body_start..], "Body");
        }
    }

    #[test]
    fn missing_fields_have_their_own_messages() {
        let messages = |document: &str| -> Vec<String> {
            parse(document).diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect()
        };
        let missing = ["missing field 'name'", "missing field 'description'"];
        assert_eq!(messages("---\n---\n"), missing);
        assert_eq!(messages("---\nname: ''\ndescription:\n---\n"), missing);
        assert_eq!(messages("---\ndescription: x\n---"), missing[..1]);
        for document in [
            "",
            "# Title\n",
            "---",
            "---\n",
            "---\n- a\n---\n",
            "--- \nProse\n\n---\n",
            "----\na: b\n----\n",
        ] {
            let front = parse(document);
            assert_eq!(front.diagnostics[0].message, "no valid frontmatter", "{document:?}");
            assert_eq!((front.fields.len(), front.body_start), (0, 0));
        }
    }

    #[test]
    fn reads_fields_of_other_types_as_text() {
        let front = parse(
            "---\nname: 3000\ndescription: [one, two]\nversion: 1.10\nargument-hint: [x] \non: yes\n---\n",
        );
        assert_eq!(front.name().as_deref(), Some("3000"));
        assert_eq!(front.description().as_deref(), Some("one, two"));
        assert_eq!(front.text("version").as_deref(), Some("1.10"));
        assert_eq!(front.fields["version"], json!(1.1));
        assert_eq!(front.text("true").as_deref(), Some("yes"));
        assert_eq!(front.text("argument-hint"), None);
        assert_eq!(front.as_written("argument-hint").as_deref(), Some("[x]"));
        assert_eq!(findings(&front), ["2 field-type", "3 field-type"]);
    }

    /// No text that was written in brackets or as a list is lost.
    #[test]
    fn reads_lists_as_prose() {
        for (list, expected) in [
            (
                " [Merge PDFs, split PDFs, and rotate. Use when X]",
                "Merge PDFs, split PDFs, and rotate. Use when X",
            ),
            (" [ one ,two, ] # note", "one ,two"),
            (" [Fill forms: yes, 1.10, no]", "Fill forms: yes, 1.10, no"),
            (" [\"a, b\", 'c.', d]", "a, b, c. d"),
            (" [one,\n  two]", "one, two"),
            (" [one, {two: 2}]", "one"),
            ("\n- Does this.\n- 'Use: now'\n- or then", "Does this. Use: now, or then"),
        ] {
            let front = parse(&format!("---\nname: a\ndescription:{list}\n---\n"));
            assert_eq!(front.description().as_deref(), Some(expected), "{list}");
        }
        for list in ["[]", "[ ]", "[[a]]"] {
            let front = parse(&format!("---\nname: a\ndescription: {list}\n---\n"));
            assert_eq!(front.description(), None, "{list}");
        }
    }

    #[test]
    fn repairs_are_reported_with_lines() {
        let front = parse("---\nname: a\ndescription: Use when: x\nlicense: @y\n---\nBody");
        assert_eq!(front.description().as_deref(), Some("Use when: x"));
        assert_eq!(front.text("license").as_deref(), Some("@y"));
        assert_eq!(findings(&front), ["3 unquoted-value", "4 unquoted-value"]);
        let lost = parse("---\nname: a\ndescription: b\ntags: ''x'\n stray\n...\n---\n");
        assert_eq!(lost.name().as_deref(), Some("a"));
        let none = parse("---\n{a}\n--\n\tdescription: b\n---\n");
        assert!(none.diagnostics.is_sorted_by_key(|diagnostic| diagnostic.line), "{none:?}");
        let odd = parse("---\nname: a\ndescription: b\u{7}c\n---\n");
        assert_eq!(findings(&odd), ["3 control-character"]);
    }

    #[test]
    fn finds_frontmatter_in_a_code_fence() {
        let document = "```markdown\n---\nname: a\ndescription: b\n---\nBody\n```\n";
        let front = parse(document);
        assert_eq!(findings(&front), ["1 late-frontmatter"]);
        assert_eq!(front.description().as_deref(), Some("b"));
        assert_eq!(&document[front.body_start..], "Body\n```\n");
        for document in ["```\n---\nprose\n---\n", "text\n---\nname: a\n---\n", "```\n"] {
            assert_eq!(parse(document).diagnostics[0].rule, Rule::NoFrontmatter);
        }
    }

    #[test]
    fn finds_a_missing_end() {
        for (document, body) in [
            ("---\nname: a\ndescription: b\n\n# Title\n\nText", "\n# Title\n\nText"),
            ("---\nname: a\ndescription: b\n", ""),
            ("---\nname: a\ndescription: b---\n# Title\nText", "# Title\nText"),
            ("---\nname: a\ndescription: b---\n\nText\n\n---\nMore", "\nText\n\n---\nMore"),
            (
                "---\nname: a\ndescription: b\n\nText goes on\n\n---\nMore",
                "\nText goes on\n\n---\nMore",
            ),
            ("---\nname: a\ndescription: b\n...\nText", "Text"),
            ("\n\n---\nname: a\ndescription: b\n---\nText", "Text"),
        ] {
            let front = parse(document);
            assert_eq!(front.description().as_deref(), Some("b"), "{document:?}");
            assert_eq!(&document[front.body_start..], body);
            let found = findings(&front);
            assert!(found.len() == 1 && !found[0].contains("lost"), "{document:?}: {found:?}");
        }
    }

    /// The start of a file is enough once it holds the frontmatter.
    #[test]
    fn reads_heads() {
        let document = "---\nname: a\ndescription: é\n---\nBody é".as_bytes();
        let closed_at = document.len() - "Body é".len();
        for length in 0..=document.len() {
            let front = parse_head(&document[..length], false);
            assert_eq!(front.is_some(), length >= closed_at, "{length}");
            assert!(front.is_none_or(|front| front.body_start == closed_at));
            assert!(parse_head(&document[..length], true).is_some());
        }
        let plain = parse_head(b"# Title", false).expect("no frontmatter can follow");
        assert_eq!(findings(&plain), ["1 no-frontmatter lost"]);
    }

    #[test]
    fn reads_heads_that_are_not_utf8() {
        let front = parse_head(b"---\nname: a\ndescription: \xff b\n---\n", false).expect("closed");
        assert_eq!(front.description().as_deref(), Some("\u{fffd} b"));
        assert_eq!(findings(&front), ["3 not-utf8 lost"]);
        assert!(parse_head(b"---\nname: \xff", false).is_none());
        let body = parse_head(b"---\nname: a\ndescription: b\n---\n\xff", true).expect("whole");
        assert_eq!(findings(&body), [""; 0]);
    }

    #[test]
    fn gives_the_first_line_of_text() {
        for (body, expected) in [
            ("\n\n## Title ##\nText", Some("Title")),
            ("---\n\n<!-- note\nmore -->\n```sh\nText here  ", Some("Text here")),
            ("#\n> quoted", Some("quoted")),
            ("- item", Some("- item")),
            (" \n---\n", None),
            ("", None),
        ] {
            assert_eq!(first_line_of_text(body), expected, "{body:?}");
        }
    }

    #[test]
    fn hostile_documents_are_read_in_linear_time() {
        let size = 1 << 17;
        for piece in [
            "[",
            "{a: ",
            "- ",
            "a: b: c\n",
            "a: \"\n",
            "\ta:\tb\n",
            "x\n",
            "a: [\n",
            " \n",
            "---\n",
            "#\n",
            "a: b---\n",
        ] {
            let text = format!("---\na: {}", piece.repeat(size / piece.len()));
            let start = thread_time();
            let front = parse(&text);
            assert!(!front.diagnostics.is_empty());
            // A reader that is not linear would need minutes.
            assert!(thread_time().saturating_sub(start).as_secs() < 10, "{piece:?}");
        }
    }
}
