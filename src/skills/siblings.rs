//! The other skills that a skill's document names: where one of a set is installed alone, they are
//! missing.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::frontmatter;
use crate::is_valid_name;
use crate::skill::DOCUMENT_NAME;
use base::text::{FenceLine, OpenFences};

/// The names of other skills in a document, each with whether it surely means a skill: in
/// `depends`, or in the path of a document. Others mean one if there is a skill of this name: in
/// another path beside the skill, in code as `/NAME`, or directly beside the word "skill".
pub fn named_skills(document: &str) -> BTreeMap<String, bool> {
    let front = frontmatter::parse(document);
    let mut found = BTreeMap::new();
    let mut add = |name: &str, is_sure: bool| {
        if is_valid_name(name) {
            *found.entry(name.to_owned()).or_default() |= is_sure;
        }
    };
    let depends = match front.fields.get("depends") {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => text.split([',', ' ']).collect(),
        _ => Vec::new(),
    };
    for name in depends {
        add(name.trim(), true);
    }
    let mut fences = OpenFences::default();
    let body = document.get(front.body_start..).unwrap_or_default();
    for line in body.lines().filter(|line| fences.advance(line) == FenceLine::Outside) {
        for (at, above) in line.match_indices("../") {
            let is_start = !line[..at].ends_with(|c: char| c.is_alphanumeric() || "/.".contains(c));
            let beside = line[at + above.len()..].split_once('/').filter(|_| is_start);
            if let Some((name, file)) = beside {
                add(name, file.starts_with(DOCUMENT_NAME));
            }
        }
        let pieces: Vec<&str> = line.split('`').collect();
        for (at, code) in pieces.iter().enumerate().skip(1).step_by(2) {
            let is_beside = pieces[at - 1].trim_end().to_lowercase().ends_with("skill")
                || pieces.get(at + 1).is_some_and(|it| it.trim_start().starts_with("skill"));
            match code.strip_prefix('/') {
                Some(command) => add(command.split(' ').next().unwrap_or_default(), false),
                None if is_beside => add(code, false),
                None => {}
            }
        }
    }
    found
}
