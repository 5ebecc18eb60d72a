//! Repairs of values that a strict reader refuses: quotes are added, tabs replaced.

use std::collections::BTreeSet;

use serde_json::Value;

use super::entry::{FieldEntry, field_entries};
use super::repair::DocumentRepair;
use crate::limits;
use crate::skills::yaml::indented::{find_field_in_text, find_indented_field};
use crate::skills::yaml::lines::{
    expand_indent_tabs, is_blank_or_comment, split_key, value_as_text,
};
use crate::skills::yaml::quoting::quote_if_needed;
use crate::skills::yaml::{self, YamlError};

/// Rules that quotes repair, because the value is clear. It is not clear after an open bracket
/// or an unknown escape.
const QUOTABLE: [&str; 7] = [
    "unquoted-colon",
    "reserved-character",
    "ambiguous-value",
    "anchor-alias-tag",
    "text-after-value",
    "not-a-field",
    "tab",
];

impl DocumentRepair<'_> {
    /// Unindents fields that are part of the value above them only by their indentation.
    pub(super) fn unindent_fields(&mut self) {
        for _ in 0..limits::REPAIRED_VALUES {
            let source = self.source();
            let found = field_entries(source);
            let keys = found.iter().filter_map(|entry| entry.key(source));
            let keys: Vec<&str> = keys.map(|(key, _)| key).collect();
            let first = found.iter().find_map(|entry| {
                let text = source.get(entry.content.clone())?;
                let is_refused = yaml::parse(&yaml::normalize(text)).is_err();
                let at =
                    find_indented_field(text, |key| keys.contains(&key)).filter(|_| is_refused)?;
                Some(entry.content.start + at)
            });
            let Some(at) = first else {
                return;
            };
            let blank = source[at..].len() - source[at..].trim_start_matches([' ', '\t']).len();
            let line = source[..at].matches('\n').count();
            self.fixed.push((self.original_source_line(line), "indented-field"));
            self.edit(at..at + blank, "");
        }
    }

    /// Repairs values until a strict reader accepts the source; `None` if it never does.
    pub(super) fn fix_values(&mut self) -> Option<()> {
        // A repaired line that is refused again cannot be repaired: quotes around quotes
        // would only make it longer.
        let mut repaired = BTreeSet::new();
        for _ in 0..limits::REPAIRED_VALUES {
            if yaml::parse(&yaml::normalize(self.source())).is_ok_and(|it| !it.value.is_string()) {
                return Some(());
            }
            let (entry, error) = self.first_error()?;
            if error.rule == "tab" {
                // Each round leaves fewer tabs.
                self.fix_tabs(&entry, &error)?;
                continue;
            }
            if !repaired.insert((self.original_source_line(error.line - 1), error.rule))
                || !self.is_plain_text(&error)
            {
                return None;
            }
            self.quote_value(&entry, &error)?;
        }
        None
    }

    /// Returns the first field that a strict reader refuses by itself, and the error with its
    /// line in the source.
    fn first_error(&self) -> Option<(FieldEntry, YamlError)> {
        let source = self.source();
        field_entries(source).into_iter().find_map(|entry| {
            let text = yaml::normalize(source.get(entry.all.clone())?);
            let error = match yaml::parse(&text) {
                Ok(reading) if reading.value.is_object() => return None,
                Ok(_) => YamlError { line: 1, rule: "not-a-field", message: String::new() },
                Err(error) => error,
            };
            let line = error.line + entry.line;
            Some((entry, YamlError { line, ..error }))
        })
    }

    /// Whether the refused value can only be text. Anchors, aliases and YAML's own tags are not:
    /// other readers support them.
    fn is_plain_text(&self, error: &YamlError) -> bool {
        if error.rule != "anchor-alias-tag" {
            return true;
        }
        let source = self.source();
        let line = source.lines().nth(error.line - 1).unwrap_or_default();
        let is_alias = line.contains(" *") && source.contains(" &");
        !(line.contains("!!") || line.contains(" &") || is_alias)
    }

    /// Replaces tabs that indent or separate with spaces, and quotes text with tabs.
    fn fix_tabs(&mut self, entry: &FieldEntry, error: &YamlError) -> Option<()> {
        let lines = self.source().get(entry.all.clone())?;
        let read = |text: &str| yaml::parse_with_tabs(&yaml::normalize(text));
        let indented = match read(lines) {
            Ok(_) => lines.to_owned(),
            Err(_) => expand_indent_tabs(lines),
        };
        let spaced = indented.replace('\t', " ");
        let is_same = read(&indented).is_ok_and(|meant| {
            let value = yaml::parse(&yaml::normalize(&spaced)).map(|it| it.value);
            value.is_ok_and(|value| value == meant.value)
        });
        let new = if is_same { spaced } else { indented };
        if new == lines {
            return self.quote_value(entry, error);
        }
        self.fixed.push((self.original_source_line(error.line - 1), "tab"));
        self.edit(entry.all.clone(), &new);
        Some(())
    }

    fn quote_value(&mut self, entry: &FieldEntry, error: &YamlError) -> Option<()> {
        let index = error.line - 1;
        let source = self.source();
        if !QUOTABLE.contains(&error.rule) {
            return None;
        }
        let (key, at) = entry.key(source)?;
        let value = source.get(at..entry.content.end)?;
        // A line in the first column is a broken field or unindented text: only the author
        // knows which.
        let is_stray = |line: &str| !line.starts_with([' ', '\t']) && !is_blank_or_comment(line);
        let first = value.lines().next().unwrap_or_default();
        if is_blank_or_comment(first.trim_start()) {
            return self.quote_nested_value(error);
        }
        let Some(Value::String(text)) = self.fields.get(key) else {
            return None;
        };
        // The same for a line that may be a field.
        if find_field_in_text(value).is_some() || value.lines().skip(1).any(is_stray) {
            return None;
        }
        let new = format!(" {}", quote_if_needed(text));
        if entry.has_comment(source) || new == value {
            return None;
        }
        self.fixed.push((self.original_source_line(index), error.rule));
        self.edit(at..entry.content.end, &new);
        Some(())
    }

    /// Quotes a value on one line of a map or list below a field.
    fn quote_nested_value(&mut self, error: &YamlError) -> Option<()> {
        let source = self.source();
        let index = error.line - 1;
        let mut at = 0;
        let mut lines = source.split_inclusive('\n');
        for line in lines.by_ref().take(index) {
            at += line.len();
        }
        let line = lines.next()?.trim_end_matches(['\n', '\r']);
        let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
        if lines.next().is_some_and(|next| {
            !is_blank_or_comment(next.trim_start()) && indent(next) > indent(line)
        }) {
            return None;
        }
        let content = line.trim_start_matches(' ');
        let item = content.strip_prefix("- ").map_or(content, str::trim_start);
        let rest = split_key(item).map_or(item, |(_, rest)| rest);
        let text = value_as_text(rest)?;
        let new = format!(
            "{}{}",
            if rest.starts_with(' ') || rest.len() < item.len() { " " } else { "" },
            quote_if_needed(&text)
        );
        if rest.contains(" # ") || rest == new {
            return None;
        }
        let range = at + line.len() - rest.len()..at + line.len();
        self.fixed.push((self.original_source_line(index), error.rule));
        self.edit(range, &new);
        Some(())
    }
}
