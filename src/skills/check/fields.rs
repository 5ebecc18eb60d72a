//! Checks of the frontmatter's fields against the specification
//! (agentskills.io/specification).
//!
//! Lengths count characters, not bytes. Unknown fields are accepted: clients add their own.

use serde_json::Value;

use super::document::display_value;
use super::{DocumentText, Findings};
use crate::limits;
use crate::skills::skeleton::nearest_valid_name;
use crate::skills::yaml::lines::FIELDS;
use crate::skills::yaml::quoting::quote_if_needed;
use crate::skills::{Skill, yaml};

/// Checks every field.
pub(super) fn check(skill: &Skill, document: &DocumentText, findings: &mut Findings) {
    check_name(skill, document, findings);
    check_description(document, findings);
    check_license_and_compatibility(document, findings);
    check_metadata(document, findings);
    check_allowed_tools(document, findings);
    check_unknown_fields(document, findings);
}

/// Whether a text is a valid skill name.
pub(in crate::skills) fn is_name(name: &str) -> bool {
    broken_name_rule(name).is_none()
}

/// Returns the first rule that a name breaks, and the message.
fn broken_name_rule(name: &str) -> Option<(&'static str, String)> {
    let length = name.chars().count();
    if length > limits::SKILL_NAME_CHARS {
        let most = limits::SKILL_NAME_CHARS;
        let message = format!("the name has {length} characters, at most {most} are allowed");
        return Some(("name-length", message));
    }
    // Letters of any script, as in the specification's own checker.
    let is_bad = |c: &char| *c != '-' && (!c.is_alphanumeric() || c.is_uppercase());
    if let Some(c) = name.chars().find(is_bad) {
        let message = format!(
            "the name `{}` has `{}`; only lowercase letters, digits and hyphens are allowed",
            display_value(name),
            c.escape_debug()
        );
        return Some(("name-characters", message));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        let message = format!("the name `{name}` has a hyphen at an edge, or two in a row");
        return Some(("name-hyphens", message));
    }
    name.is_empty().then(|| ("missing-name", "the name is empty".to_owned()))
}

fn check_name(skill: &Skill, document: &DocumentText, findings: &mut Findings) {
    let Some(name) = document.frontmatter.name() else {
        return;
    };
    let line = || document.line_of("name");
    if let Some((rule, message)) = broken_name_rule(&name) {
        let valid =
            if is_name(&skill.name) { Some(skill.name.clone()) } else { nearest_valid_name(&name) };
        let fix = valid.map(|valid| format!("write `name: {}`", quote_if_needed(&valid)));
        findings.add(rule, document.file_name, line(), message, fix);
    }
    if name != skill.name {
        let folder = display_value(&skill.name);
        let message = format!(
            "the name `{}` differs from the folder's name, `{folder}`; some clients use one, \
             some the other",
            display_value(&name)
        );
        let fix = if is_name(&skill.name) {
            format!("write `name: {}`, or rename the folder", quote_if_needed(&folder))
        } else {
            rename_folder(skill, &name)
        };
        findings.add("name-folder", document.file_name, line(), message, fix);
    }
}

/// Returns the fix for an invalid folder name: the frontmatter's name, unless another folder has it.
fn rename_folder(skill: &Skill, name: &str) -> String {
    let is_free = |name: &String| skill.path.with_file_name(name).symlink_metadata().is_err();
    let own = Some(name.to_owned()).filter(|name| is_name(name));
    match own.or_else(|| nearest_valid_name(name)).filter(is_free) {
        Some(valid) => format!("rename the folder to `{valid}`"),
        None => match nearest_valid_name(&skill.name).filter(is_free) {
            Some(valid) => {
                let name = quote_if_needed(&valid);
                format!("rename the folder to `{valid}`, and write `name: {name}`")
            }
            None => "rename the folder".to_owned(),
        },
    }
}

fn check_description(document: &DocumentText, findings: &mut Findings) {
    let Some(description) = document.frontmatter.description() else {
        return;
    };
    let (length, most) = (description.chars().count(), limits::DESCRIPTION_CHARS);
    if length > most {
        let message =
            format!("the description has {length} characters, at most {most} are allowed");
        let fix = "say what the skill does and when to use it; move the rest below the frontmatter"
            .to_owned();
        let line = document.line_of("description");
        findings.add("description-length", document.file_name, line, message, fix);
    }
}

fn check_license_and_compatibility(document: &DocumentText, findings: &mut Findings) {
    for key in ["license", "compatibility"] {
        let line = || document.line_of(key);
        match document.frontmatter.fields.get(key) {
            Some(Value::String(text)) if key == "compatibility" => {
                let (length, most) = (text.trim().chars().count(), limits::COMPATIBILITY_CHARS);
                if length == 0 || length > most {
                    let message = format!(
                        "the compatibility has {length} characters, 1 to {most} are allowed"
                    );
                    findings.add("compatibility-length", document.file_name, line(), message, None);
                }
            }
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                let message = format!("the field `{key}` is {}, not text", type_name(other));
                let fix = "put it in double quotes".to_owned();
                findings.add("optional-type", document.file_name, line(), message, fix);
            }
        }
    }
}

fn check_metadata(document: &DocumentText, findings: &mut Findings) {
    let line = || document.line_of("metadata");
    match document.frontmatter.fields.get("metadata") {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => {
            let odd: Vec<_> = map.iter().filter(|(_, value)| !value.is_string()).collect();
            if odd.is_empty() {
                return;
            }
            let listed = odd.iter().take(limits::SIMILAR_NAMES);
            let listed = listed.map(|(key, value)| {
                let key = key_as_written(document, line(), key);
                format!("`{}` is {}", display_value(&key), type_name(value))
            });
            let mut listed: Vec<String> = listed.collect();
            match odd.len() - listed.len() {
                0 => {}
                more => listed.push(format!("{more} more are not text")),
            }
            let last = listed.pop().unwrap_or_default();
            let all = match listed.as_slice() {
                [] => last,
                _ => format!("{} and {last}", listed.join(", ")),
            };
            let message = format!("values of the metadata must be text, but {all}");
            let is_plain = odd.iter().all(|(_, value)| !value.is_object() && !value.is_array());
            let fix = is_plain.then(|| match odd.len() {
                1 => "put the value in double quotes".to_owned(),
                _ => "put the values in double quotes".to_owned(),
            });
            findings.add("metadata-value", document.file_name, line(), message, fix);
        }
        Some(other) => {
            let message = format!("the metadata is {}, not a map of text values", type_name(other));
            let fix = "write it as indented lines of `key: value` below `metadata:`".to_owned();
            findings.add("metadata-type", document.file_name, line(), message, fix);
        }
    }
}

/// Returns a key of the metadata as its author wrote it: YAML reads `on` as the boolean `true`.
/// `line` is the first line of the metadata.
fn key_as_written(document: &DocumentText, line: usize, key: &str) -> String {
    let is_text = !matches!(yaml::parse(key), Ok(reading) if !reading.value.is_string());
    let lines_above = line.saturating_sub(document.source_line());
    let lines = document.source().lines().skip(lines_above).enumerate();
    let lines = lines.take_while(|(at, line)| *at == 0 || line.starts_with([' ', '\t', '}']));
    let entries = lines.flat_map(|(_, line)| line.split([',', '{', '}']));
    let words = entries.filter_map(|entry| Some(entry.split_once(':')?.0.trim()));
    let mut words = words.take(limits::REFERENCES);
    let is_match = |word: &&str| {
        // In the parsed metadata, a key that is not text is the JSON of its value.
        let value = yaml::parse(word).map(|reading| reading.value);
        let value = value.ok().filter(|value| !value.is_null());
        value.is_some_and(|value| serde_json::to_string(&value).is_ok_and(|text| text == key))
    };
    let written = (!is_text).then(|| words.find(is_match)).flatten();
    written.unwrap_or(key).to_owned()
}

fn check_allowed_tools(document: &DocumentText, findings: &mut Findings) {
    const KEY: &str = "allowed-tools";
    let line = || document.line_of(KEY);
    match document.frontmatter.fields.get(KEY) {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => {
            if has_commas(text) {
                let message = "the tool names are separated by commas; the specification requires \
                               spaces";
                let fix = "separate them with spaces".to_owned();
                findings.add("allowed-tools-commas", document.file_name, line(), message, fix);
            }
        }
        Some(other) => {
            let message = format!(
                "the field `{KEY}` is {}; the specification requires one text of names, separated by \
                 spaces",
                type_name(other)
            );
            let fix =
                "write the names on one line, separated by spaces: `Read Bash(git:*)`".to_owned();
            findings.add("allowed-tools-type", document.file_name, line(), message, fix);
        }
    }
}

/// Whether commas separate the tool names. Commas in parentheses belong to patterns.
pub(super) fn has_commas(tools: &str) -> bool {
    let mut depth = 0_usize;
    tools.chars().any(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn check_unknown_fields(document: &DocumentText, findings: &mut Findings) {
    let fields = &document.frontmatter.fields;
    for key in fields.keys().filter(|key| !FIELDS.contains(&key.as_str())) {
        let near =
            FIELDS.iter().find(|known| !fields.contains_key(**known) && is_misspelling(key, known));
        if let Some(known) = near {
            let message = format!("the field `{}` is unknown", display_value(key));
            let fix = format!("did you mean `{known}`?");
            let line = document.line_of(key);
            findings.add("field-typo", document.file_name, line, message, fix);
        }
    }
}

/// Whether a key is a typing error of a known one: it differs in letter case, underscores for
/// hyphens, one letter added, left out or replaced, or two letters swapped. No field in use is
/// so similar to a known one.
pub(super) fn is_misspelling(key: &str, known: &str) -> bool {
    if key.len() > known.len() + 2 {
        return false;
    }
    let plain = |text: &str| -> Vec<char> {
        let text = text.to_lowercase();
        text.chars().filter(|c| c.is_alphanumeric()).collect()
    };
    let (typed, meant) = (plain(key), plain(known));
    let equal = |(one, other): &(&char, &char)| one == other;
    let prefix = typed.iter().zip(&meant).take_while(equal).count();
    let (typed, meant) = (&typed[prefix..], &meant[prefix..]);
    let suffix = typed.iter().rev().zip(meant.iter().rev());
    let suffix = suffix.take_while(equal).count();
    match (&typed[..typed.len() - suffix], &meant[..meant.len() - suffix]) {
        ([], [] | [_]) | ([_], []) => true,
        // A short word with one letter replaced is another word.
        ([_], [_]) => known.len() > 4,
        ([one, other], [first, second]) => one == second && other == first,
        _ => false,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
