//! Repairs of fields that are valid YAML but not valid for other clients or the specification.
//! Each change is verified by itself.

use std::collections::BTreeMap;

use serde_json::Value;

use super::entry::{FieldEntry, field_entries};
use super::repair::DocumentRepair;
use crate::limits;
use crate::skills::check::fields::{has_commas, is_misspelling, is_name};
use crate::skills::frontmatter::Frontmatter;
use crate::skills::yaml;
use crate::skills::yaml::quoting::quote_if_needed;

impl DocumentRepair<'_> {
    /// Sets a field to a text, which fixes the problem of `rule`.
    fn set_text(&mut self, key: &str, text: &str, rule: &'static str) {
        let mut fields = self.fields.clone();
        fields.insert(key.to_owned(), Value::String(text.to_owned()));
        let source = self.source();
        let has_key = |entry: &FieldEntry| entry.key(source).is_some_and(|(name, _)| name == key);
        let mut found = field_entries(source).into_iter().filter(has_key);
        let (entry, other) = (found.next(), found.next());
        if other.is_some() {
            return;
        }
        let Some((entry, at)) = entry.and_then(|entry| {
            let at = entry.key(source)?.1;
            Some((entry, at))
        }) else {
            let line = format!("{key}: {}{}", quote_if_needed(text), self.line_end);
            let number = self.original_line(1);
            return self.try_edit(0..0, &line, fields, (number, rule));
        };
        if entry.has_comment(source) {
            return;
        }
        let number = self.original_source_line(entry.line);
        let new = format!(" {}", quote_if_needed(text));
        self.try_edit(at..entry.content.end, &new, fields, (number, rule));
    }

    /// Removes fields that repeat an earlier one.
    pub(super) fn remove_duplicates(&mut self) {
        // From the end, so that the positions of the others stay valid.
        for entry in self.redundant_entries().into_iter().rev() {
            let source = self.source();
            let fixed = (self.original_source_line(entry.line), "duplicate-key");
            // Including its line end, or that of the line before if it is the last line.
            let end = source[entry.content.end..].find('\n').map(|at| entry.content.end + at + 1);
            let before = source[..entry.content.start].trim_end_matches(['\n', '\r']).len();
            let range = match end {
                Some(end) => entry.content.start..end,
                None => before..entry.content.end,
            };
            self.try_edit(range, "", self.fields.clone(), fixed);
        }
    }

    /// Returns the fields that repeat the first field with their key; parses each value once.
    fn redundant_entries(&self) -> Vec<FieldEntry> {
        let source = self.source();
        let read = |entry: &FieldEntry| {
            let text = yaml::normalize(source.get(entry.content.clone())?);
            yaml::parse(&text).ok().map(|reading| reading.value)
        };
        let found = field_entries(source);
        let key = |entry: &FieldEntry| entry.key(source).map(|(key, _)| key.to_owned());
        let mut groups: BTreeMap<String, Vec<FieldEntry>> = BTreeMap::new();
        for entry in found {
            if let Some(key) = key(&entry) {
                groups.entry(key).or_default().push(entry);
            }
        }
        let mut redundant: Vec<FieldEntry> = Vec::new();
        for mut group in groups.into_values().filter(|group| group.len() > 1) {
            let others = group.split_off(1);
            let first = read(&group[0]);
            let is_redundant = |entry: &FieldEntry| {
                first.is_some() && !entry.has_comment(source) && read(entry) == first
            };
            redundant.extend(others.into_iter().filter(is_redundant));
        }
        redundant.sort_by_key(|entry| entry.line);
        redundant.truncate(limits::REPAIRED_VALUES);
        redundant
    }

    /// Writes a name or description of another type as text.
    pub(super) fn fix_types(&mut self, frontmatter: &Frontmatter) {
        for key in ["name", "description"] {
            let text = match self.fields.get(key) {
                Some(Value::Number(_) | Value::Bool(_)) => frontmatter.text(key),
                Some(Value::Array(items)) if key == "description" => {
                    let is_simple =
                        |item: &Value| item.is_string() || item.is_number() || item.is_boolean();
                    let is_text =
                        frontmatter.bracketed_prose(key).is_some() || items.iter().all(is_simple);
                    frontmatter.description().filter(|_| is_text)
                }
                _ => None,
            };
            if let Some(text) = text {
                self.set_text(key, &text, "field-type");
            }
        }
    }

    /// Sets the name to the folder's name if it is missing or differs only in spelling.
    pub(super) fn fix_name(&mut self, frontmatter: &Frontmatter, folder: &str) {
        if !is_name(folder) {
            return;
        }
        let missing = match self.fields.get("name") {
            None | Some(Value::Null) => true,
            Some(Value::String(name)) => name.trim().is_empty(),
            Some(_) => return,
        };
        // `nmae: x` is for the author to correct.
        if missing && self.fields.keys().any(|key| key != "name" && is_misspelling(key, "name")) {
            return;
        }
        if missing {
            return self.set_text("name", folder, "missing-name");
        }
        let Some(name) = frontmatter.name().filter(|name| name != folder) else {
            return;
        };
        let normalized = |name: &str| name.to_lowercase().replace([' ', '_'], "-");
        if normalized(&name) == normalized(folder) {
            let count = self.fixed.len();
            self.set_text("name", folder, "name-folder");
            if let Some((line, _)) = self.fixed.get(count).copied()
                && !is_name(&name)
            {
                self.fixed.push((line, "name-characters"));
            }
        }
    }

    /// Separates the names of tools with spaces.
    pub(super) fn fix_tools(&mut self) {
        const KEY: &str = "allowed-tools";
        let (items, rule): (Vec<String>, _) = match self.fields.get(KEY) {
            Some(Value::String(text)) if has_commas(text) => {
                (split_tools(text), "allowed-tools-commas")
            }
            Some(Value::Array(items)) => {
                let texts: Option<Vec<String>> =
                    items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
                let Some(texts) = texts else {
                    return;
                };
                (texts, "allowed-tools-type")
            }
            _ => return,
        };
        if !items.is_empty() && items.iter().all(|item| is_one_tool(item)) {
            self.set_text(KEY, &items.join(" "), rule);
        }
    }
}

/// Splits at commas outside parentheses.
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

/// Whether spaces and commas occur only inside parentheses, which are all closed.
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
