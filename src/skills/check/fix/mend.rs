//! A document's text, mended step by step; each result is proven.

use serde_json::{Map, Value};

use super::entry::{Entry, entries, scalar};
use crate::limits;
use crate::skills::check::fields::{has_commas, is_name, is_slip};
use crate::skills::frontmatter::{self, Frontmatter, Severity};
use crate::skills::yaml::fence::{find_fence, find_opening, line_number, trim_start};
use crate::skills::yaml::lines::{as_text, is_idle, split_key, untab};
use crate::skills::yaml::{self, Fault};

/// Faults of YAML that are mended by quotes: what the value says is plain to
/// see. What is left out (an open bracket, an unknown escape) is not.
const QUOTABLE: [&str; 6] = [
    "unquoted-colon",
    "reserved-character",
    "ambiguous-value",
    "anchor-alias-tag",
    "text-after-value",
    "not-a-field",
];

/// A document that is better than before.
#[derive(Debug)]
pub(in crate::skills::check) struct Mended {
    /// All of its text.
    pub text: String,
    /// What was mended: the line, as it was counted before, and the rule.
    pub fixed: Vec<(usize, &'static str)>,
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
    let mut work = Work::new(document, &front)?;
    work.head();
    work.closing(&front);
    work.values()?;
    if !work.is_proven(&work.text, &work.fields) {
        return None;
    }
    work.duplicates();
    work.types(&front);
    work.tools();
    // The last one: it may add a line.
    work.name(&front, folder);
    work.fixed.sort_unstable();
    let is_changed = work.text != document && !work.fixed.is_empty();
    is_changed.then_some(Mended {
        text: work.text,
        fixed: work.fixed,
    })
}

/// A document being mended.
struct Work<'d> {
    text: String,
    /// Where the YAML begins and ends in the text.
    start: usize,
    end: usize,
    body: &'d str,
    /// What the fields must say in the end.
    fields: Map<String, Value>,
    line_end: &'static str,
    fixed: Vec<(usize, &'static str)>,
    /// Lines taken away: where, as counted then, and how many.
    removed: Vec<(usize, usize)>,
}

impl<'d> Work<'d> {
    fn new(document: &'d str, front: &Frontmatter) -> Option<Work<'d>> {
        let opening = document.get(..front.source.start)?;
        Some(Work {
            text: document.to_owned(),
            start: front.source.start,
            end: front.source.end,
            body: document.get(front.body_start..)?,
            fields: front.fields.clone(),
            line_end: if opening.ends_with("\r\n") {
                "\r\n"
            } else {
                "\n"
            },
            fixed: Vec::new(),
            removed: Vec::new(),
        })
    }

    fn source(&self) -> &str {
        self.text.get(self.start..self.end).unwrap_or_default()
    }

    /// The line in the document as it was of one in the text as it is.
    fn line_before(&self, line: usize) -> usize {
        let mut line = line;
        for &(at, count) in self.removed.iter().rev() {
            if line >= at {
                line += count;
            }
        }
        line
    }

    /// The number of the source's line `index` in the document as it was.
    fn number(&self, index: usize) -> usize {
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
        let line = front
            .diagnostics
            .iter()
            .find(unclosed)
            .map_or(1, |finding| finding.line);
        self.fixed.push((line, "unclosed-frontmatter"));
        let is_line = self.text[..self.end].ends_with('\n');
        let first = if is_line { "" } else { self.line_end };
        let fence = format!("{first}---{}", self.line_end);
        self.text.replace_range(self.end..body_start, &fence);
        if is_line {
            // The YAML ends before its last line end, as if it had been closed.
            let source = &self.text[..self.end - 1];
            self.end = source
                .strip_suffix('\r')
                .unwrap_or(source)
                .len()
                .max(self.start);
        }
    }

    /// Changes the source in one place, and remembers what that does to lines.
    fn edit(&mut self, range: std::ops::Range<usize>, new: &str) {
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

    /// Values that stop a strict reader, until it reads to the end. None: it
    /// cannot be brought there.
    fn values(&mut self) -> Option<()> {
        for _ in 0..limits::MENDED_VALUES {
            if yaml::parse(&yaml::normalize(self.source())).is_ok_and(|it| !it.value.is_string()) {
                return Some(());
            }
            let (entry, fault) = self.first_fault()?;
            self.value(&entry, &fault)?;
        }
        None
    }

    /// The first field that a strict reader refuses for itself; its fault has
    /// the line of the source.
    fn first_fault(&self) -> Option<(Entry, Fault)> {
        let source = self.source();
        entries(source).into_iter().find_map(|entry| {
            let text = yaml::normalize(source.get(entry.all.clone())?);
            let fault = match yaml::parse(&text) {
                Ok(reading) if reading.value.is_object() => return None,
                Ok(_) => Fault {
                    line: 1,
                    rule: "not-a-field",
                    message: String::new(),
                },
                Err(fault) => fault,
            };
            let line = fault.line + entry.line;
            Some((entry, Fault { line, ..fault }))
        })
    }

    fn value(&mut self, entry: &Entry, fault: &Fault) -> Option<()> {
        let index = fault.line - 1;
        let source = self.source();
        if fault.rule == "tab" {
            let lines = source.get(entry.all.clone())?;
            let before = lines.split('\t').next()?.matches('\n').count();
            let new = untab(lines);
            if new == lines {
                return None;
            }
            self.fixed.push((self.number(entry.line + before), "tab"));
            self.edit(entry.all.clone(), &new);
            return Some(());
        }
        if !QUOTABLE.contains(&fault.rule) {
            return None;
        }
        let (key, at) = entry.key(source)?;
        let value = source.get(at..entry.content.end)?;
        let first = value.lines().next().unwrap_or_default();
        if is_idle(first.trim_start()) {
            return self.nested(fault);
        }
        let Some(Value::String(text)) = self.fields.get(key) else {
            return None;
        };
        let new = format!(" {}", scalar(text));
        if entry.has_comment(source) || new == value {
            return None;
        }
        self.fixed.push((self.number(index), fault.rule));
        self.edit(at..entry.content.end, &new);
        Some(())
    }

    /// A value on one line below a field: in a map or a list.
    fn nested(&mut self, fault: &Fault) -> Option<()> {
        let source = self.source();
        let index = fault.line - 1;
        let mut at = 0;
        let mut lines = source.split_inclusive('\n');
        for line in lines.by_ref().take(index) {
            at += line.len();
        }
        let line = lines.next()?.trim_end_matches(['\n', '\r']);
        let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
        if lines
            .next()
            .is_some_and(|next| !is_idle(next.trim_start()) && indent(next) > indent(line))
        {
            return None;
        }
        let content = line.trim_start_matches(' ');
        let item = content.strip_prefix("- ").map_or(content, str::trim_start);
        let rest = split_key(item).map_or(item, |(_, rest)| rest);
        let text = as_text(rest)?;
        let new = format!(
            "{}{}",
            if rest.starts_with(' ') || rest.len() < item.len() {
                " "
            } else {
                ""
            },
            scalar(&text)
        );
        if rest.contains(" # ") || rest == new {
            return None;
        }
        let range = at + line.len() - rest.len()..at + line.len();
        self.fixed.push((self.number(index), fault.rule));
        self.edit(range, &new);
        Some(())
    }

    /// Whether a document says these fields to the strictest reader, and has
    /// the same body as before.
    fn is_proven(&self, text: &str, fields: &Map<String, Value>) -> bool {
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
    fn attempt(
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

    /// Sets a field to a text, which breaks `rule` no longer.
    fn set(&mut self, key: &str, text: &str, rule: &'static str) {
        let mut fields = self.fields.clone();
        fields.insert(key.to_owned(), Value::String(text.to_owned()));
        let source = self.source();
        let is_it = |entry: &Entry| entry.key(source).is_some_and(|(name, _)| name == key);
        let mut found = entries(source).into_iter().filter(is_it);
        let (entry, other) = (found.next(), found.next());
        if other.is_some() {
            return;
        }
        let Some((entry, at)) = entry.and_then(|entry| {
            let at = entry.key(source)?.1;
            Some((entry, at))
        }) else {
            let line = format!("{key}: {}{}", scalar(text), self.line_end);
            let number = self.line_before(1);
            return self.attempt(0..0, &line, fields, (number, rule));
        };
        if entry.has_comment(source) {
            return;
        }
        let number = self.number(entry.line);
        let new = format!(" {}", scalar(text));
        self.attempt(at..entry.content.end, &new, fields, (number, rule));
    }

    /// A field that stands twice and says the same twice.
    fn duplicates(&mut self) {
        for _ in 0..limits::MENDED_VALUES {
            let source = self.source();
            let found = entries(source);
            let read = |entry: &Entry| {
                let text = yaml::normalize(source.get(entry.content.clone())?);
                yaml::parse(&text).ok().map(|reading| reading.value)
            };
            let key = |entry: &Entry| entry.key(source).map(|(key, _)| key.to_owned());
            let mut seen = std::collections::BTreeMap::new();
            let twin = found.iter().find_map(|entry| {
                let first = seen.entry(key(entry)?).or_insert(entry);
                let is_same = *first != entry && read(first)? == read(entry)?;
                is_same.then(|| entry.clone())
            });
            let Some(entry) = twin else {
                return;
            };
            let count = self.fixed.len();
            let fixed = (self.number(entry.line), "duplicate-key");
            // With its line's end, or that of the line before if it is the last.
            let behind = source[entry.content.end..]
                .find('\n')
                .map(|at| entry.content.end + at + 1);
            let before = source[..entry.content.start]
                .trim_end_matches(['\n', '\r'])
                .len();
            let range = match behind {
                Some(end) => entry.content.start..end,
                None => before..entry.content.end,
            };
            self.attempt(range, "", self.fields.clone(), fixed);
            if self.fixed.len() == count {
                return;
            }
        }
    }

    /// A name or description that is no text is written as the text it is
    /// taken for.
    fn types(&mut self, front: &Frontmatter) {
        for key in ["name", "description"] {
            let text = match self.fields.get(key) {
                Some(Value::Number(_) | Value::Bool(_)) => front.text(key),
                Some(Value::Array(items)) if key == "description" => {
                    let is_simple =
                        |item: &Value| item.is_string() || item.is_number() || item.is_boolean();
                    let all = items.iter().all(is_simple);
                    front.description().filter(|_| all)
                }
                _ => None,
            };
            if let Some(text) = text {
                self.set(key, &text, "field-type");
            }
        }
    }

    /// The name is the folder's, where it is missing or means the same.
    fn name(&mut self, front: &Frontmatter, folder: &str) {
        if !is_name(folder) {
            return;
        }
        let missing = match self.fields.get("name") {
            None | Some(Value::Null) => true,
            Some(Value::String(name)) => name.trim().is_empty(),
            Some(_) => return,
        };
        // `nmae: x` is a name to be spelled right by its author.
        if missing
            && self
                .fields
                .keys()
                .any(|key| key != "name" && is_slip(key, "name"))
        {
            return;
        }
        if missing {
            return self.set("name", folder, "missing-name");
        }
        let Some(name) = front.name().filter(|name| name != folder) else {
            return;
        };
        let alike = |name: &str| name.to_lowercase().replace([' ', '_'], "-");
        if alike(&name) == alike(folder) {
            self.set("name", folder, "name-folder");
            if !is_name(&name) && self.fixed.iter().any(|(_, rule)| *rule == "name-folder") {
                let line = self.fixed.iter().find(|(_, rule)| *rule == "name-folder");
                let line = line.map_or(1, |(line, _)| *line);
                self.fixed.push((line, "name-characters"));
            }
        }
    }

    /// The names of tools are parted by spaces.
    fn tools(&mut self) {
        const KEY: &str = "allowed-tools";
        let (items, rule): (Vec<String>, _) = match self.fields.get(KEY) {
            Some(Value::String(text)) if has_commas(text) => {
                (split_tools(text), "allowed-tools-commas")
            }
            Some(Value::Array(items)) => {
                let texts: Option<Vec<String>> = items
                    .iter()
                    .map(|item| item.as_str().map(str::to_owned))
                    .collect();
                let Some(texts) = texts else {
                    return;
                };
                (texts, "allowed-tools-type")
            }
            _ => return,
        };
        if !items.is_empty() && items.iter().all(|item| is_one_tool(item)) {
            self.set(KEY, &items.join(" "), rule);
        }
    }
}

/// The parts between commas that stand in no parentheses.
fn split_tools(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// Whether spaces and commas stand in parentheses only, which are all closed.
fn is_one_tool(item: &str) -> bool {
    let mut depth = 0_i32;
    let is_whole = item.chars().all(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth >= 0 && (depth > 0 || !(c.is_whitespace() || c == ','))
    });
    !item.is_empty() && is_whole && depth == 0
}
