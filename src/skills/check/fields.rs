//! Checks of the frontmatter's fields against the specification
//! (agentskills.io/specification).
//!
//! Lengths count characters, not bytes. Unknown fields are accepted: clients add their own.

use serde_json::Value;

use super::{DocumentText, Findings, display_value};
use crate::frontmatter::type_name;
use crate::skeleton::{invalid_name_reason, nearest_valid_name, quoted_name};
use crate::yaml::lines::FIELDS;
use crate::{Rule, Skill};
use base::limits;

/// Checks every field.
pub(super) fn check(skill: &Skill, document: &DocumentText, findings: &mut Findings) {
    check_name(skill, document, findings);
    check_description(document, findings);
    check_optional_fields(document, findings);
    check_unknown_fields(document, findings);
}

/// Whether a text is a valid skill name.
pub fn is_valid_name(name: &str) -> bool {
    invalid_name_reason(name).is_none()
}

fn check_name(skill: &Skill, document: &DocumentText, findings: &mut Findings) {
    let Some(name) = document.frontmatter.name() else {
        return;
    };
    let line = document.line_of("name");
    if let Some(reason) = invalid_name_reason(&name) {
        let message = format!("the name `{}` is not valid: {reason}", display_value(&name));
        let folder = Some(skill.folder_name().into_owned()).filter(|name| is_valid_name(name));
        let nearest = nearest_valid_name(&name).filter(|name| Some(name) != folder.as_ref());
        let problem = document.problem(Rule::InvalidName, line, message);
        findings.add(match (folder.as_deref().map(quoted_name), nearest) {
            (Some(own), Some(nearest)) => problem.with_fix(format!(
                "write `name: {own}`, or rename the folder and the skill to `{nearest}`"
            )),
            (Some(own), None) => problem.with_fix(format!("write `name: {own}`")),
            (None, Some(nearest)) => {
                problem.with_fix(format!("write `name: {}`", quoted_name(&nearest)))
            }
            (None, None) => problem,
        });
    } else if name != skill.folder_name() {
        let folder = display_value(&skill.folder_name());
        let message = format!(
            "the name `{}` differs from the folder's name, `{folder}`; some clients use one, \
             some the other",
            display_value(&name)
        );
        let problem = document.problem(Rule::NameFolder, line, message);
        let problem = problem.into_note_if(is_extended(&name, &skill.folder_name()));
        findings.add(if is_valid_name(&skill.folder_name()) {
            let own = quoted_name(&folder);
            problem.with_fix(format!("write `name: {own}`, or rename the folder"))
        } else {
            problem
        });
    }
}

/// Whether a name contains the folder's as whole words: chosen on purpose, as `vercel-react` in
/// the folder `react`.
fn is_extended(name: &str, folder: &str) -> bool {
    format!("-{name}-").contains(&format!("-{folder}-"))
}

fn check_description(document: &DocumentText, findings: &mut Findings) {
    let Some(description) = document.frontmatter.description() else {
        return;
    };
    let (length, most) = (description.chars().count(), limits::DESCRIPTION_CHARS);
    if length > most {
        let message =
            format!("the description has {length} characters, at most {most} are allowed");
        let line = document.line_of("description");
        findings.add(document.problem(Rule::DescriptionLength, line, message));
    }
}

/// Checks `license`, `compatibility` and `metadata`.
fn check_optional_fields(document: &DocumentText, findings: &mut Findings) {
    let field = |key: &str| document.frontmatter.fields.get(key).filter(|value| !value.is_null());
    for key in ["license", "compatibility"] {
        if let Some(value) = field(key).filter(|value| !value.is_string()) {
            let message = format!("the field `{key}` is {}, not text", type_name(value));
            findings.add(document.problem(Rule::OptionalField, document.line_of(key), message));
        }
    }
    if let Some(Value::String(text)) = field("compatibility") {
        let (length, most) = (text.trim().chars().count(), limits::COMPATIBILITY_CHARS);
        if length == 0 || length > most {
            let message =
                format!("the compatibility has {length} characters, 1 to {most} are allowed");
            let line = document.line_of("compatibility");
            let problem = document.problem(Rule::OptionalField, line, message);
            findings.add(problem.with_fix("name in short what the skill needs, or remove it"));
        }
    }
    // Clients keep lists and maps of their own in the metadata, and all others accept them.
    let is_plain = |value: &Value| value.is_number() || value.is_boolean();
    let message = match field("metadata") {
        None => return,
        Some(Value::Object(map)) => match map.iter().find(|(_, value)| is_plain(value)) {
            None => return,
            Some((key, value)) => format!(
                "values of the metadata must be text, but `{}` is {}",
                display_value(key),
                type_name(value)
            ),
        },
        Some(other) => {
            format!("the metadata is {}, not a map of text values", type_name(other))
        }
    };
    let problem = document.problem(Rule::OptionalField, document.line_of("metadata"), message);
    findings.add(problem.with_fix("write its values as text in double quotes"));
}

/// Reports fields that differ from a known one, which is missing, only in letter case and in the
/// characters between their words.
fn check_unknown_fields(document: &DocumentText, findings: &mut Findings) {
    let fields = &document.frontmatter.fields;
    let letters = |key: &str| key.to_lowercase().replace(['-', '_', ' '], "");
    for key in fields.keys().filter(|key| !FIELDS.contains(&key.as_str())) {
        let mut missing = FIELDS.iter().filter(|known| !fields.contains_key(**known));
        if let Some(known) = missing.find(|known| letters(known) == letters(key)) {
            let message = format!("the field `{}` is unknown", display_value(key));
            let problem = document.problem(Rule::FieldTypo, document.line_of(key), message);
            findings.add(problem.with_fix(format!("did you mean `{known}`?")));
        }
    }
}
