//! Repair of YAML that the strict reader refused.
//!
//! The text is split before each key (or list item) at the first column, and each entry is read
//! separately: strictly, then with spaces for tabs, then its nested entries one by one, then as the
//! text that its author meant. So an invalid entry does not affect the others. Each repair is
//! reported: as a warning if the value was kept, as an error if it was lost.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::indented::{find_field_in_text, find_indented_field};
use super::lines::{
    expand_indent_tabs, is_blank_or_comment, is_item_line, is_key_line, split_key, unindent,
    value_as_text,
};
use super::{Diagnostic, ParsedYaml, YamlError, add_diagnostic, display_key, insert_field, parse};
use crate::Rule;
use base::limits;

/// Reads as much as possible of a map that the strict reader refused. Lines must end in LF.
/// The value is null if no field was found. There is always at least one diagnostic.
pub fn repair(text: &str) -> ParsedYaml {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut repairer = YamlRepair { result: ParsedYaml::default(), keys: BTreeSet::new() };
    let value = repairer.repair_block(&unindent(text), 1, 0);
    // Entries that are valid one by one can still be invalid together.
    if repairer.result.diagnostics.is_empty()
        && let Err(error) = parse(text)
    {
        let message = format!("{}; read nevertheless", error.message);
        repairer.add_warning(error.line, error.rule, message);
    }
    repairer.result.value = value.filter(Value::is_object).unwrap_or_default();
    repairer.result
}

/// An entry of a map or list, from its key or dash on, and the number of its first line.
struct BlockEntry<'a> {
    text: Cow<'a, str>,
    line: usize,
}

struct YamlRepair {
    result: ParsedYaml,
    /// The keys at the first column of the document.
    keys: BTreeSet<String>,
}

impl YamlRepair {
    /// Repairs the entries of a map or list at the first column of `text`.
    fn repair_block(&mut self, text: &str, line: usize, depth: usize) -> Option<Value> {
        let is_list =
            text.lines().find(|line| !is_blank_or_comment(line)).is_some_and(is_item_line);
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
                self.repair_field(entry, depth, &mut fields);
            } else if is_item_line(&entry.text) {
                items.extend(self.repair_item(entry, depth));
            } else {
                self.report_stray_line(&entry.text, entry.line);
            }
        }
        if is_list {
            return Some(Value::Array(items));
        }
        (!fields.is_empty()).then_some(Value::Object(fields))
    }

    fn repair_field(
        &mut self,
        mut entry: BlockEntry,
        depth: usize,
        fields: &mut Map<String, Value>,
    ) {
        if depth == 0
            && parse(&entry.text).is_err()
            && let Some(at) = find_indented_field(&entry.text, |key| self.keys.contains(key))
        {
            return self.split_indented_field(&entry, at, fields);
        }
        let error = match self.parse_strictly(&mut entry) {
            Ok(ParsedYaml { value: Value::Object(found), source_texts, .. }) => {
                for (key, value) in found {
                    self.insert_value(fields, (key, entry.line), value, depth);
                }
                if depth == 0 {
                    self.result.source_texts.extend(source_texts);
                }
                return;
            }
            Ok(_) => YamlError {
                line: entry.line,
                rule: Rule::NotAField,
                message: "no space after the key's colon".to_owned(),
            },
            Err(error) => error,
        };
        let Some((key, rest)) = split_key(&entry.text) else {
            return self.report_stray_line(&entry.text, entry.line);
        };
        let what = format!("`{}`", display_key(key));
        if let Some(value) = self.repair_value(rest, entry.line, &error, &what, depth) {
            self.insert_value(fields, (key.to_owned(), entry.line), value, depth);
        }
    }

    /// Reads the lines from `at` on as a separate field that was indented by mistake. Each
    /// key is found only once, so the recursion ends.
    fn split_indented_field(
        &mut self,
        entry: &BlockEntry,
        at: usize,
        fields: &mut Map<String, Value>,
    ) {
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
        self.repair_field(above, 0, fields);
        let message = format!(
            "`{}` is indented, so other readers take it as part of the value above; read as a \
             field of its own",
            display_key(key)
        );
        self.add_warning(line, Rule::IndentedField, message);
        self.repair_field(as_entry(own, line), 0, fields);
    }

    fn repair_item(&mut self, mut entry: BlockEntry, depth: usize) -> Option<Value> {
        match self.parse_strictly(&mut entry) {
            Ok(ParsedYaml { value: Value::Array(items), .. }) => items.into_iter().next(),
            Ok(_) => None,
            Err(error) => {
                self.repair_value(&entry.text[1..], entry.line, &error, "the list item", depth)
            }
        }
    }

    /// Reads one entry strictly, if necessary with spaces for the tabs that indent, or without the
    /// stray lines after a quoted, bracketed or block value.
    fn parse_strictly(&mut self, entry: &mut BlockEntry) -> Result<ParsedYaml, YamlError> {
        let mut result = parse(&entry.text);
        let is_indent = |line: &str| line.trim_start_matches(' ').starts_with('\t');
        if result.is_err()
            && let Some(below) = entry.text.lines().position(is_indent)
        {
            let message = "a tab where YAML needs spaces; read as spaces".to_owned();
            self.add_warning(entry.line + below, Rule::Tab, message);
            entry.text = Cow::Owned(expand_indent_tabs(&entry.text));
            result = parse(&entry.text);
        }
        if result.is_err() && !is_plain(&entry.text) {
            let is_stray = |line: &str| !line.starts_with([' ', '-']) && !is_blank_or_comment(line);
            if let Some(at) = find_line(&entry.text, is_stray)
                && let Ok(parsed) = parse(&entry.text[..at])
            {
                let line = entry.line + entry.text[..at].matches('\n').count();
                self.report_stray_line(&entry.text[at..], line);
                result = Ok(parsed);
            }
        }
        let above = entry.line - 1;
        match result {
            Ok(mut parsed) => {
                for mut diagnostic in parsed.diagnostics.drain(..) {
                    diagnostic.line += above;
                    add_diagnostic(&mut self.result.diagnostics, diagnostic);
                }
                Ok(parsed)
            }
            Err(error) => Err(YamlError { line: error.line + above, ..error }),
        }
    }

    /// Repairs the value in `rest`, the text after a key's colon or a dash.
    fn repair_value(
        &mut self,
        rest: &str,
        line: usize,
        error: &YamlError,
        what: &str,
        depth: usize,
    ) -> Option<Value> {
        if let Some(value) = self.repair_nested(rest, line, depth) {
            return Some(value);
        }
        let Some(text) = value_as_text(rest) else {
            let message = format!("{}; {what} is left out", error.message);
            self.add_error(error.line, error.rule, message);
            return None;
        };
        let suspect = find_field_in_text(rest).map(|(key, below)| (key, line + below));
        let is_cause = |(_, at)| {
            at == error.line && [Rule::UnquotedValue, Rule::Indentation].contains(&error.rule)
        };
        if !suspect.is_some_and(is_cause) {
            let message = format!("{}; {what} is read as text", error.message);
            self.add_warning(error.line, error.rule, message);
        }
        if let Some((key, at)) = suspect {
            let message = format!(
                "`{}:` looks like a field, but is read as text of {what}",
                display_key(key)
            );
            self.add_warning(at, Rule::IndentedField, message);
        }
        Some(Value::String(text))
    }

    /// Repairs the entries below a line that has no value itself.
    fn repair_nested(&mut self, rest: &str, line: usize, depth: usize) -> Option<Value> {
        let (own_line, lines) = rest.split_once('\n')?;
        if !is_blank_or_comment(own_line.trim_start()) || depth >= limits::YAML_REPAIR_DEPTH {
            return None;
        }
        let inner = unindent(lines);
        let first = inner.lines().find(|line| !is_blank_or_comment(line))?;
        if !is_key_line(first) && !is_item_line(first) {
            return None;
        }
        self.repair_block(&inner, line + 1, depth + 1)
    }

    fn insert_value(
        &mut self,
        fields: &mut Map<String, Value>,
        key: (String, usize),
        value: Value,
        depth: usize,
    ) {
        if depth == 0 {
            self.result.source_texts.remove(&key.0);
        }
        insert_field(fields, key, value, &mut self.result.diagnostics);
    }

    fn report_stray_line(&mut self, text: &str, line: usize) {
        if let Some(at) = text.lines().position(|line| !is_blank_or_comment(line)) {
            self.add_error(
                line + at,
                Rule::NotAField,
                "a line that is not `key: value`".to_owned(),
            );
        }
    }

    fn add_warning(&mut self, line: usize, rule: Rule, message: String) {
        let diagnostic = Diagnostic { line, rule, message, is_lost: false };
        add_diagnostic(&mut self.result.diagnostics, diagnostic);
    }

    fn add_error(&mut self, line: usize, rule: Rule, message: String) {
        let diagnostic = Diagnostic { line, rule, message, is_lost: true };
        add_diagnostic(&mut self.result.diagnostics, diagnostic);
    }
}

/// Splits the text before each line that starts an entry.
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

/// Whether the value of an entry is neither quoted, nor bracketed, nor a block.
fn is_plain(entry: &str) -> bool {
    let value = split_key(entry).map_or("", |(_, rest)| rest);
    let line = value.split('\n').next().unwrap_or_default().trim_start();
    !line.is_empty() && !line.starts_with(['"', '\'', '[', '{', '|', '>', '#'])
}

/// Offset of the first line after line 1 for which `is_match` is true.
fn find_line(text: &str, is_match: impl Fn(&str) -> bool) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > 0 && is_match(line) {
            return Some(at);
        }
        at += line.len();
    }
    None
}
