//! The fields, by the specification (agentskills.io/specification).
//!
//! Characters are characters, not bytes. Fields that nobody knows are no
//! problem: clients add their own, and many are in use.

use serde_json::Value;

use super::document::shown;
use super::{DocumentText, Findings};
use crate::limits;
use crate::skills::skeleton::valid_name;
use crate::skills::yaml::lines::FIELDS;
use crate::skills::yaml::quoting::scalar;
use crate::skills::{Skill, yaml};

/// Looks at every field.
pub(super) fn check(skill: &Skill, page: &DocumentText, findings: &mut Findings) {
    name(skill, page, findings);
    description(page, findings);
    compatibility(page, findings);
    metadata(page, findings);
    allowed_tools(page, findings);
    unknown(page, findings);
}

/// Whether a text keeps all rules for names.
pub(in crate::skills) fn is_name(name: &str) -> bool {
    fault_of_name(name).is_none()
}

/// The first rule that a name breaks, and how.
fn fault_of_name(name: &str) -> Option<(&'static str, String)> {
    let length = name.chars().count();
    if length > limits::SKILL_NAME_CHARS {
        let most = limits::SKILL_NAME_CHARS;
        let message = format!("the name has {length} characters, at most {most} are allowed");
        return Some(("name-length", message));
    }
    // Letters of any script, as the specification's own checker has it.
    let is_bad = |c: &char| *c != '-' && (!c.is_alphanumeric() || c.is_uppercase());
    if let Some(c) = name.chars().find(is_bad) {
        let message = format!(
            "the name `{}` has `{}`; only lowercase letters, digits and hyphens are allowed",
            shown(name),
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

fn name(skill: &Skill, page: &DocumentText, findings: &mut Findings) {
    let Some(name) = page.front.name() else {
        return;
    };
    let line = || page.line_of("name");
    if let Some((rule, message)) = fault_of_name(&name) {
        let valid = if is_name(&skill.name) { Some(skill.name.clone()) } else { valid_name(&name) };
        let fix = valid.map(|valid| format!("write `name: {}`", scalar(&valid)));
        findings.add(rule, page.file_name, line(), message, fix);
    }
    if name != skill.name {
        let folder = shown(&skill.name);
        let message = format!(
            "the name `{}` is not that of the folder, `{folder}`; some clients go by one, some by \
             the other",
            shown(&name)
        );
        let fix = if is_name(&skill.name) {
            format!("write `name: {}`, or rename the folder", scalar(&folder))
        } else {
            renamed(skill, &name)
        };
        findings.add("name-folder", page.file_name, line(), message, fix);
    }
}

/// What to call a folder whose name is none: as the frontmatter does, unless
/// another folder is called so.
fn renamed(skill: &Skill, name: &str) -> String {
    let is_free = |name: &String| skill.path.with_file_name(name).symlink_metadata().is_err();
    let own = Some(name.to_owned()).filter(|name| is_name(name));
    match own.or_else(|| valid_name(name)).filter(is_free) {
        Some(valid) => format!("rename the folder to `{valid}`"),
        None => match valid_name(&skill.name).filter(is_free) {
            Some(valid) => {
                let name = scalar(&valid);
                format!("rename the folder to `{valid}`, and write `name: {name}`")
            }
            None => "rename the folder".to_owned(),
        },
    }
}

fn description(page: &DocumentText, findings: &mut Findings) {
    let Some(description) = page.front.description() else {
        return;
    };
    let (length, most) = (description.chars().count(), limits::DESCRIPTION_CHARS);
    if length > most {
        let message =
            format!("the description has {length} characters, at most {most} are allowed");
        let fix = "say what and when; the rest belongs below the frontmatter".to_owned();
        let line = page.line_of("description");
        findings.add("description-length", page.file_name, line, message, fix);
    }
}

fn compatibility(page: &DocumentText, findings: &mut Findings) {
    for key in ["license", "compatibility"] {
        let line = || page.line_of(key);
        match page.front.fields.get(key) {
            Some(Value::String(text)) if key == "compatibility" => {
                let (length, most) = (text.trim().chars().count(), limits::COMPATIBILITY_CHARS);
                if length == 0 || length > most {
                    let message = format!(
                        "the compatibility has {length} characters, 1 to {most} are allowed"
                    );
                    findings.add("compatibility-length", page.file_name, line(), message, None);
                }
            }
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                let message = format!("the field `{key}` is {}, not text", kind(other));
                let fix = "put it in double quotes".to_owned();
                findings.add("optional-type", page.file_name, line(), message, fix);
            }
        }
    }
}

fn metadata(page: &DocumentText, findings: &mut Findings) {
    let line = || page.line_of("metadata");
    match page.front.fields.get("metadata") {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => {
            let odd: Vec<_> = map.iter().filter(|(_, value)| !value.is_string()).collect();
            if odd.is_empty() {
                return;
            }
            let told = odd.iter().take(limits::NEAR_NAMES);
            let told = told.map(|(key, value)| {
                let key = as_written(page, line(), key);
                format!("`{}` is {}", shown(&key), kind(value))
            });
            let mut told: Vec<String> = told.collect();
            match odd.len() - told.len() {
                0 => {}
                more => told.push(format!("{more} more are no text either")),
            }
            let last = told.pop().unwrap_or_default();
            let all = match told.as_slice() {
                [] => last,
                _ => format!("{} and {last}", told.join(", ")),
            };
            let message = format!("the metadata is a map of texts, but {all}");
            let is_plain = odd.iter().all(|(_, value)| !value.is_object() && !value.is_array());
            let fix = is_plain.then(|| match odd.len() {
                1 => "put the value in double quotes".to_owned(),
                _ => "put the values in double quotes".to_owned(),
            });
            findings.add("metadata-value", page.file_name, line(), message, fix);
        }
        Some(other) => {
            let message = format!("the metadata is {}, not a map of texts", kind(other));
            let fix = "write it as indented lines of `key: value` below `metadata:`".to_owned();
            findings.add("metadata-type", page.file_name, line(), message, fix);
        }
    }
}

/// A key of the metadata, which begin in this line, as its author wrote it:
/// YAML takes `on` for the truth value `true`.
fn as_written(page: &DocumentText, line: usize, key: &str) -> String {
    let is_text = !matches!(yaml::parse(key), Ok(reading) if !reading.value.is_string());
    let above = line.saturating_sub(page.source_line());
    let lines = page.source().lines().skip(above).enumerate();
    let lines = lines.take_while(|(at, line)| *at == 0 || line.starts_with([' ', '\t', '}']));
    let entries = lines.flat_map(|(_, line)| line.split([',', '{', '}']));
    let words = entries.filter_map(|entry| Some(entry.split_once(':')?.0.trim()));
    let mut words = words.take(limits::REFERENCES);
    let is_it = |word: &&str| {
        // A word is read as a value and shown as keys are.
        let value = yaml::parse(word).map(|reading| reading.value);
        let value = value.ok().filter(|value| !value.is_null());
        value.is_some_and(|value| serde_json::to_string(&value).is_ok_and(|text| text == key))
    };
    let written = (!is_text).then(|| words.find(is_it)).flatten();
    written.unwrap_or(key).to_owned()
}

fn allowed_tools(page: &DocumentText, findings: &mut Findings) {
    const KEY: &str = "allowed-tools";
    let line = || page.line_of(KEY);
    match page.front.fields.get(KEY) {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => {
            if has_commas(text) {
                let message = "the names of the tools are parted by commas; the specification \
                               has spaces";
                let fix = "part them by spaces".to_owned();
                findings.add("allowed-tools-commas", page.file_name, line(), message, fix);
            }
        }
        Some(other) => {
            let message = format!(
                "the field `{KEY}` is {}; the specification has one text of names parted by spaces",
                kind(other)
            );
            let fix =
                "write the names on one line, parted by spaces: `Read Bash(git:*)`".to_owned();
            findings.add("allowed-tools-type", page.file_name, line(), message, fix);
        }
    }
}

/// Whether commas part the names of tools. Those in parentheses are patterns.
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

fn unknown(page: &DocumentText, findings: &mut Findings) {
    let fields = &page.front.fields;
    for key in fields.keys().filter(|key| !FIELDS.contains(&key.as_str())) {
        let near = FIELDS.iter().find(|known| !fields.contains_key(**known) && is_slip(key, known));
        if let Some(known) = near {
            let message = format!("the field `{}` is unknown", shown(key));
            let fix = format!("did you mean `{known}`?");
            let line = page.line_of(key);
            findings.add("field-typo", page.file_name, line, message, fix);
        }
    }
}

/// Whether a key is a known one with a slip of the finger: other letter case,
/// underscores for hyphens, or one letter too many, too few or wrong, or two
/// of them in turned order. Nothing so near has a meaning of its own.
pub(super) fn is_slip(key: &str, known: &str) -> bool {
    if key.len() > known.len() + 2 {
        return false;
    }
    let plain = |text: &str| -> Vec<char> {
        let text = text.to_lowercase();
        text.chars().filter(|c| c.is_alphanumeric()).collect()
    };
    let (typed, meant) = (plain(key), plain(known));
    let equal = |(one, other): &(&char, &char)| one == other;
    let front = typed.iter().zip(&meant).take_while(equal).count();
    let (typed, meant) = (&typed[front..], &meant[front..]);
    let back = typed.iter().rev().zip(meant.iter().rev());
    let back = back.take_while(equal).count();
    match (&typed[..typed.len() - back], &meant[..meant.len() - back]) {
        ([], [] | [_]) | ([_], []) => true,
        // In a short word another letter is another word.
        ([_], [_]) => known.len() > 4,
        ([one, other], [first, second]) => one == second && other == first,
        _ => false,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
