//! What to do with YAML that the strict reader refused.
//!
//! The text is cut where a key (or a list's dash) stands at the first column,
//! and each entry is read for itself: strictly, then with its tabs as white space,
//! then entry by entry below it, then as the text that its author meant. One
//! bad entry so never costs the others. Each step is a finding: a warning
//! where a value was saved, an error where it was lost.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::indented::{find_field, find_suspect};
use super::lines::{as_text, is_idle, is_item_line, is_key_line, split_key, unindent, untab};
use super::{
    Diagnostic, ParsedYaml, Severity, YamlError, insert, note, parse, parse_with_tabs, shown,
};
use crate::limits;

/// Reads what it can of a map whose strict reading failed. Lines must end in
/// LF. The value is null where nothing was found, and there is always a finding.
pub fn mend(text: &str) -> ParsedYaml {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut mender = YamlRepair { reading: ParsedYaml::default(), keys: BTreeSet::new() };
    let value = mender.block(&unindent(text), 1, 0);
    // Entries that are sound one by one can still be unsound together.
    if mender.reading.findings.is_empty()
        && let Err(fault) = parse(text)
    {
        let message = format!("{}; read all the same", fault.message);
        mender.warn(fault.line, fault.rule, message);
    }
    mender.reading.value = value.filter(Value::is_object).unwrap_or_default();
    mender.reading
}

/// A key or a dash with all that belongs to it, and its first line's number.
struct BlockEntry<'a> {
    text: Cow<'a, str>,
    line: usize,
}

struct YamlRepair {
    reading: ParsedYaml,
    /// Those at the first column of the document.
    keys: BTreeSet<String>,
}

impl YamlRepair {
    /// Mends the entries at the first column of `text`: a map's or a list's.
    fn block(&mut self, text: &str, line: usize, depth: usize) -> Option<Value> {
        let is_list = text.lines().find(|line| !is_idle(line)).is_some_and(is_item_line);
        let begins = if is_list { is_item_line } else { is_key_line };
        let mut fields = Map::new();
        let mut items = Vec::new();
        let entries = split_entries(text, line, begins);
        if depth == 0 {
            let keys = entries.iter().filter_map(|entry| split_key(&entry.text));
            self.keys = keys.map(|(key, _)| key.to_owned()).collect();
        }
        for entry in entries {
            if !is_list {
                self.field(entry, depth, &mut fields);
            } else if is_item_line(&entry.text) {
                items.extend(self.item(entry, depth));
            } else {
                self.stray(&entry.text, entry.line);
            }
        }
        if is_list {
            return Some(Value::Array(items));
        }
        (!fields.is_empty()).then_some(Value::Object(fields))
    }

    fn field(&mut self, mut entry: BlockEntry, depth: usize, fields: &mut Map<String, Value>) {
        if depth == 0
            && parse(&entry.text).is_err()
            && let Some(at) = find_field(&entry.text, |key| self.keys.contains(key))
        {
            return self.two_fields(&entry, at, fields);
        }
        let fault = match self.strict(&mut entry) {
            Ok(ParsedYaml { value: Value::Object(found), written, .. }) => {
                for (key, value) in found {
                    self.keep(fields, (key, entry.line), value, depth);
                }
                if depth == 0 {
                    self.reading.written.extend(written);
                }
                return;
            }
            Ok(_) => YamlError {
                line: entry.line,
                rule: "not-a-field",
                message: "no space behind the key's colon".to_owned(),
            },
            Err(fault) => fault,
        };
        let Some((key, rest)) = split_key(&entry.text) else {
            return self.stray(&entry.text, entry.line);
        };
        let what = format!("`{}`", shown(key));
        if let Some(value) = self.save(rest, entry.line, &fault, &what, depth) {
            self.keep(fields, (key.to_owned(), entry.line), value, depth);
        }
    }

    /// Reads the lines from `at` on as a field of its own, which they are but
    /// for their indentation. Each key is found so once: the recursion ends.
    fn two_fields(&mut self, entry: &BlockEntry, at: usize, fields: &mut Map<String, Value>) {
        let (above, own) = entry.text.split_at(at);
        let line = entry.line + above.matches('\n').count();
        let own = own.trim_start_matches([' ', '\t']);
        let key = split_key(own).map(|(key, _)| key).unwrap_or_default();
        self.keys.insert(key.to_owned());
        let as_entry = |text, line| {
            let text = Cow::Borrowed(text);
            BlockEntry { text, line }
        };
        let above = as_entry(above, entry.line);
        self.field(above, 0, fields);
        let message = format!(
            "`{}` is indented, and so part of the value above it to other readers; read as a \
             field of its own",
            shown(key)
        );
        self.warn(line, "indented-field", message);
        self.field(as_entry(own, line), 0, fields);
    }

    fn item(&mut self, mut entry: BlockEntry, depth: usize) -> Option<Value> {
        match self.strict(&mut entry) {
            Ok(ParsedYaml { value: Value::Array(items), .. }) => items.into_iter().next(),
            Ok(_) => None,
            Err(fault) => self.save(&entry.text[1..], entry.line, &fault, "the list item", depth),
        }
    }

    /// Reads one entry strictly, if need be with tabs, or without the stray lines
    /// behind a value that has its own end.
    fn strict(&mut self, entry: &mut BlockEntry) -> Result<ParsedYaml, YamlError> {
        let mut result = parse(&entry.text);
        if let Err(fault) = &result
            && entry.text.contains('\t')
        {
            result = self.with_tabs(entry, fault);
        }
        if result.is_err() && !is_plain(&entry.text) {
            let is_stray = |line: &str| !line.starts_with([' ', '-']) && !is_idle(line);
            if let Some(at) = find_line(&entry.text, is_stray)
                && let Ok(reading) = parse(&entry.text[..at])
            {
                let line = entry.line + entry.text[..at].matches('\n').count();
                self.stray(&entry.text[at..], line);
                result = Ok(reading);
            }
        }
        let above = entry.line - 1;
        match result {
            Ok(mut reading) => {
                for mut finding in reading.findings.drain(..) {
                    finding.line += above;
                    note(&mut self.reading.findings, finding);
                }
                Ok(reading)
            }
            Err(fault) => Err(YamlError { line: fault.line + above, ..fault }),
        }
    }

    /// Reads an entry that has tabs, which the strict reader refused.
    fn with_tabs(
        &mut self,
        entry: &mut BlockEntry,
        fault: &YamlError,
    ) -> Result<ParsedYaml, YamlError> {
        let first = entry.text.lines().position(|line| line.contains('\t'));
        let line = match fault.rule {
            "tab" => entry.line + fault.line - 1,
            _ => entry.line + first.unwrap_or_default(),
        };
        let inner = parse_with_tabs(&entry.text);
        if inner.is_ok() {
            let message = "a tab outside quotes, at which some readers stop".to_owned();
            self.warn(line, "tab", message);
            return inner;
        }
        let text = untab(&entry.text);
        if text == entry.text {
            return inner;
        }
        let message = "a tab where YAML wants spaces; taken as spaces".to_owned();
        self.warn(line, "tab", message);
        entry.text = Cow::Owned(text);
        parse_with_tabs(&entry.text)
    }

    /// Saves the value in `rest`, what stands behind a key's colon or a dash.
    fn save(
        &mut self,
        rest: &str,
        line: usize,
        fault: &YamlError,
        what: &str,
        depth: usize,
    ) -> Option<Value> {
        if fault.rule != "too-deep" {
            if let Some(value) = self.below(rest, line, depth) {
                return Some(value);
            }
            if let Some(text) = as_text(rest) {
                let suspect = find_suspect(rest).map(|(key, below)| (key, line + below));
                let is_cause = |(_, at)| {
                    at == fault.line && ["unquoted-colon", "indentation"].contains(&fault.rule)
                };
                if !suspect.is_some_and(is_cause) {
                    let message = format!("{}; {what} is taken as text", fault.message);
                    self.warn(fault.line, fault.rule, message);
                }
                if let Some((key, at)) = suspect {
                    let message = format!(
                        "`{}:` looks like a field, and is taken as text of {what}",
                        shown(key)
                    );
                    self.warn(at, "field-in-text", message);
                }
                return Some(Value::String(text));
            }
        }
        let message = format!("{}; {what} is left out", fault.message);
        self.lose(fault.line, fault.rule, message);
        None
    }

    /// Mends the entries below a line that holds no value itself.
    fn below(&mut self, rest: &str, line: usize, depth: usize) -> Option<Value> {
        let (own_line, lines) = rest.split_once('\n')?;
        if !is_idle(own_line.trim_start()) || depth >= limits::YAML_MEND_DEPTH {
            return None;
        }
        let inner = unindent(lines);
        let first = inner.lines().find(|line| !is_idle(line))?;
        if !is_key_line(first) && !is_item_line(first) {
            return None;
        }
        self.block(&inner, line + 1, depth + 1)
    }

    fn keep(
        &mut self,
        fields: &mut Map<String, Value>,
        key: (String, usize),
        value: Value,
        depth: usize,
    ) {
        if depth == 0 {
            self.reading.written.remove(&key.0);
        }
        insert(fields, key, value, &mut self.reading.findings);
    }

    fn stray(&mut self, text: &str, line: usize) {
        if let Some(at) = text.lines().position(|line| !is_idle(line)) {
            self.lose(line + at, "not-a-field", "a line that is no `key: value`".to_owned());
        }
    }

    fn warn(&mut self, line: usize, rule: &'static str, message: String) {
        let severity = Severity::Warning;
        note(&mut self.reading.findings, Diagnostic { line, severity, rule, message });
    }

    fn lose(&mut self, line: usize, rule: &'static str, message: String) {
        let severity = Severity::Error;
        note(&mut self.reading.findings, Diagnostic { line, severity, rule, message });
    }
}

/// Cuts the text before each line that begins an entry.
fn split_entries(text: &str, line: usize, begins: fn(&str) -> bool) -> Vec<BlockEntry<'_>> {
    let mut entries = Vec::new();
    let (mut start, mut at, mut first, mut number) = (0, 0, line, line);
    for line in text.split_inclusive('\n') {
        if at > start && begins(line) {
            entries.push(BlockEntry { text: Cow::Borrowed(&text[start..at]), line: first });
            (start, first) = (at, number);
        }
        at += line.len();
        number += 1;
    }
    if at > start {
        entries.push(BlockEntry { text: Cow::Borrowed(&text[start..]), line: first });
    }
    entries
}

/// Whether the value of an entry is one that no quote or bracket encloses.
fn is_plain(entry: &str) -> bool {
    let value = split_key(entry).map_or("", |(_, rest)| rest);
    let line = value.split('\n').next().unwrap_or_default().trim_start();
    !line.is_empty() && !line.starts_with(['"', '\'', '[', '{', '|', '>', '#'])
}

/// Where the first line after line 1 begins that answers to `is_wanted`.
fn find_line(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > 0 && is_wanted(line) {
            return Some(at);
        }
        at += line.len();
    }
    None
}
