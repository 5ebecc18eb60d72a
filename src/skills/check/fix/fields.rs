//! Fields that strict readers take, and other clients or the specification do
//! not: each change is proven for itself.

use std::collections::BTreeMap;

use serde_json::Value;

use super::entry::{FieldEntry, entries};
use super::repair::DocumentRepair;
use crate::limits;
use crate::order;
use crate::skills::check::fields::{has_commas, is_name, is_slip};
use crate::skills::frontmatter::Frontmatter;
use crate::skills::yaml;
use crate::skills::yaml::quoting::scalar;

impl DocumentRepair<'_> {
    /// Sets a field to a text, which breaks `rule` no longer.
    fn set(&mut self, key: &str, text: &str, rule: &'static str) {
        let mut fields = self.fields.clone();
        fields.insert(key.to_owned(), Value::String(text.to_owned()));
        let source = self.source();
        let is_it = |entry: &FieldEntry| entry.key(source).is_some_and(|(name, _)| name == key);
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
    pub(super) fn duplicates(&mut self) {
        // From the end, so that the others stay where they are.
        for entry in self.twins().into_iter().rev() {
            let source = self.source();
            let fixed = (self.number(entry.line), "duplicate-key");
            // With its line's end, or that of the line before if it is the last.
            let behind =
                source[entry.content.end..].find('\n').map(|at| entry.content.end + at + 1);
            let before = source[..entry.content.start].trim_end_matches(['\n', '\r']).len();
            let range = match behind {
                Some(end) => entry.content.start..end,
                None => before..entry.content.end,
            };
            self.attempt(range, "", self.fields.clone(), fixed);
        }
    }

    /// The fields that say again what one before them says; each value is read
    /// once.
    fn twins(&self) -> Vec<FieldEntry> {
        let source = self.source();
        let read = |entry: &FieldEntry| {
            let text = yaml::normalize(source.get(entry.content.clone())?);
            yaml::parse(&text).ok().map(|reading| reading.value)
        };
        let found = entries(source);
        let key = |entry: &FieldEntry| entry.key(source).map(|(key, _)| key.to_owned());
        let mut groups: BTreeMap<String, Vec<FieldEntry>> = BTreeMap::new();
        for entry in found {
            if let Some(key) = key(&entry) {
                groups.entry(key).or_default().push(entry);
            }
        }
        let mut twins: Vec<FieldEntry> = Vec::new();
        for mut group in groups.into_values().filter(|group| group.len() > 1) {
            let others = group.split_off(1);
            let first = read(&group[0]);
            let is_twin = |entry: &FieldEntry| {
                first.is_some() && !entry.has_comment(source) && read(entry) == first
            };
            twins.extend(others.into_iter().filter(is_twin));
        }
        order::sort_by_key(&mut twins, |entry| entry.line);
        twins.truncate(limits::MENDED_VALUES);
        twins
    }

    /// A name or description that is no text is written as the text it is
    /// taken for.
    pub(super) fn types(&mut self, front: &Frontmatter) {
        for key in ["name", "description"] {
            let text = match self.fields.get(key) {
                Some(Value::Number(_) | Value::Bool(_)) => front.text(key),
                Some(Value::Array(items)) if key == "description" => {
                    let is_simple =
                        |item: &Value| item.is_string() || item.is_number() || item.is_boolean();
                    let all = front.bracketed_prose(key).is_some() || items.iter().all(is_simple);
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
    pub(super) fn name(&mut self, front: &Frontmatter, folder: &str) {
        if !is_name(folder) {
            return;
        }
        let missing = match self.fields.get("name") {
            None | Some(Value::Null) => true,
            Some(Value::String(name)) => name.trim().is_empty(),
            Some(_) => return,
        };
        // `nmae: x` is a name to be spelled right by its author.
        if missing && self.fields.keys().any(|key| key != "name" && is_slip(key, "name")) {
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
            let count = self.fixed.len();
            self.set("name", folder, "name-folder");
            if let Some((line, _)) = self.fixed.get(count).copied()
                && !is_name(&name)
            {
                self.fixed.push((line, "name-characters"));
            }
        }
    }

    /// The names of tools are parted by spaces.
    pub(super) fn tools(&mut self) {
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
