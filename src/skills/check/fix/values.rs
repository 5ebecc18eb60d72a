//! Values that stop a strict reader, put in quotes or rid of tabs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::entry::{FieldEntry, entries};
use super::repair::DocumentRepair;
use crate::limits;
use crate::skills::yaml::indented::{find_field, find_suspect};
use crate::skills::yaml::lines::{as_text, is_idle, split_key, untab};
use crate::skills::yaml::quoting::scalar;
use crate::skills::yaml::{self, YamlError};

/// Faults of YAML that are mended by quotes: what the value says is plain to
/// see. What is left out (an open bracket, an unknown escape) is not.
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
    /// Fields that are part of the value above them by their indentation alone.
    pub(super) fn indented(&mut self) {
        for _ in 0..limits::MENDED_VALUES {
            let source = self.source();
            let found = entries(source);
            let keys = found.iter().filter_map(|entry| entry.key(source));
            let keys: Vec<&str> = keys.map(|(key, _)| key).collect();
            let first = found.iter().find_map(|entry| {
                let text = source.get(entry.content.clone())?;
                let is_refused = yaml::parse(&yaml::normalize(text)).is_err();
                let at = find_field(text, |key| keys.contains(&key)).filter(|_| is_refused)?;
                Some(entry.content.start + at)
            });
            let Some(at) = first else {
                return;
            };
            let blank = source[at..].len() - source[at..].trim_start_matches([' ', '\t']).len();
            let line = source[..at].matches('\n').count();
            self.fixed.push((self.number(line), "indented-field"));
            self.edit(at..at + blank, "");
        }
    }

    /// Values that stop a strict reader, until it reads to the end. None: it
    /// cannot be brought there.
    pub(super) fn values(&mut self) -> Option<()> {
        // A line that was mended and is refused again cannot be mended: quotes
        // around quotes would only make it longer.
        let mut mended = BTreeSet::new();
        for _ in 0..limits::MENDED_VALUES {
            if yaml::parse(&yaml::normalize(self.source())).is_ok_and(|it| !it.value.is_string()) {
                return Some(());
            }
            let (entry, fault) = self.first_fault()?;
            if fault.rule == "tab" {
                // Each time there are fewer of them.
                self.tabs(&entry, &fault)?;
                continue;
            }
            if !mended.insert((self.number(fault.line - 1), fault.rule)) || !self.is_text(&fault) {
                return None;
            }
            self.value(&entry, &fault)?;
        }
        None
    }

    /// The first field that a strict reader refuses for itself; its fault has
    /// the line of the source.
    fn first_fault(&self) -> Option<(FieldEntry, YamlError)> {
        let source = self.source();
        entries(source).into_iter().find_map(|entry| {
            let text = yaml::normalize(source.get(entry.all.clone())?);
            let fault = match yaml::parse(&text) {
                Ok(reading) if reading.value.is_object() => return None,
                Ok(_) => YamlError { line: 1, rule: "not-a-field", message: String::new() },
                Err(fault) => fault,
            };
            let line = fault.line + entry.line;
            Some((entry, YamlError { line, ..fault }))
        })
    }

    /// Whether the value that is refused can only be meant as text. Anchors,
    /// their aliases and YAML's own tags are none: other readers know them.
    fn is_text(&self, fault: &YamlError) -> bool {
        if fault.rule != "anchor-alias-tag" {
            return true;
        }
        let source = self.source();
        let line = source.lines().nth(fault.line - 1).unwrap_or_default();
        let is_alias = line.contains(" *") && source.contains(" &");
        !(line.contains("!!") || line.contains(" &") || is_alias)
    }

    /// Tabs that indent or part become spaces; a text that has some is quoted.
    fn tabs(&mut self, entry: &FieldEntry, fault: &YamlError) -> Option<()> {
        let lines = self.source().get(entry.all.clone())?;
        let read = |text: &str| yaml::parse_with_tabs(&yaml::normalize(text));
        let indented = match read(lines) {
            Ok(_) => lines.to_owned(),
            Err(_) => untab(lines),
        };
        let spaced = indented.replace('\t', " ");
        let is_same = read(&indented).is_ok_and(|meant| {
            let value = yaml::parse(&yaml::normalize(&spaced)).map(|it| it.value);
            value.is_ok_and(|value| value == meant.value)
        });
        let new = if is_same { spaced } else { indented };
        if new == lines {
            return self.value(entry, fault);
        }
        self.fixed.push((self.number(fault.line - 1), "tab"));
        self.edit(entry.all.clone(), &new);
        Some(())
    }

    fn value(&mut self, entry: &FieldEntry, fault: &YamlError) -> Option<()> {
        let index = fault.line - 1;
        let source = self.source();
        if !QUOTABLE.contains(&fault.rule) {
            return None;
        }
        let (key, at) = entry.key(source)?;
        let value = source.get(at..entry.content.end)?;
        // A line at the first column is a field that went wrong, or text that was
        // meant to be indented: only its author can tell.
        let is_stray = |line: &str| !line.starts_with([' ', '\t']) && !is_idle(line);
        let first = value.lines().next().unwrap_or_default();
        if is_idle(first.trim_start()) {
            return self.nested(fault);
        }
        let Some(Value::String(text)) = self.fields.get(key) else {
            return None;
        };
        // The same of what may be a field.
        if find_suspect(value).is_some() || value.lines().skip(1).any(is_stray) {
            return None;
        }
        let new = format!(" {}", scalar(text));
        if entry.has_comment(source) || new == value {
            return None;
        }
        self.fixed.push((self.number(index), fault.rule));
        self.edit(at..entry.content.end, &new);
        Some(())
    }

    /// A value on one line below a field: in a map or a list.
    fn nested(&mut self, fault: &YamlError) -> Option<()> {
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
            if rest.starts_with(' ') || rest.len() < item.len() { " " } else { "" },
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
}
