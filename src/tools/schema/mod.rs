//! Checks the arguments of a call against the tool's schema: type, required, enum, items, nested
//! objects, alternatives (`anyOf`, `oneOf`); other keywords are left to the tool. A problem is
//! reported with its path. Wrapped values (`"5"` for 5, an array as JSON text), which small models
//! write, are unwrapped. Also adds the skills' names to schemas with a skill argument.

use serde_json::{Map, Value, json};

use crate::limits;
use crate::skills::Catalogue;
use crate::text;

mod validity;

pub use validity::validate;

/// The name of the argument that names a skill.
const SKILL_NAME: &str = "skill_name";

/// Adds these names as an `enum` if the schema has an argument that names a skill, and returns
/// whether it has one. A call with another name is not refused.
pub fn add_skill_names(schema: &mut Value, skills: &[&str]) -> bool {
    let property = schema["properties"].get_mut(SKILL_NAME);
    let Some(property) = property.filter(|_| !skills.is_empty()) else {
        return false;
    };
    property["enum"] = json!(skills);
    true
}

/// Returns the names to offer as an `enum`: those of all skills for the model, or none if there
/// are too many.
pub(super) fn names_to_offer(catalogue: &Catalogue) -> Vec<&str> {
    let listed = catalogue.usable().filter(|skill| skill.is_for_model);
    let names: Vec<&str> = listed.map(|skill| skill.name.as_str()).collect();
    if names.len() > limits::ENUM_NAMES {
        return Vec::new();
    }
    names
}

/// Whether the names include every skill. Some servers allow a model only the values of an
/// `enum`, but skills that only the user invokes have files and scripts, too.
pub(super) fn is_complete(catalogue: &Catalogue) -> bool {
    catalogue.usable().all(|skill| skill.is_for_model)
}

/// Returns the size in bytes of an `enum` of these names.
pub(super) fn enum_bytes(names: &[&str]) -> usize {
    names.iter().map(|name| name.len() + r#""","#.len()).sum()
}

/// Returns the arguments as the schema requires them, or a message about the problem.
pub fn check(arguments: Map<String, Value>, schema: &Value) -> Result<Map<String, Value>, String> {
    check_object(arguments, schema, "")
}

/// Refuses a number as a skill's name unless a skill has that name.
pub(super) fn check_name(
    arguments: Map<String, Value>,
    is_name: &dyn Fn(&str) -> bool,
) -> Result<Map<String, Value>, String> {
    match arguments.get(SKILL_NAME) {
        Some(Value::Number(number)) if !is_name(&number.to_string()) => Err(format!(
            "`{SKILL_NAME}` must be a string, not a number: there is no skill `{number}`"
        )),
        _ => Ok(arguments),
    }
}

/// Describes the schema in one line, for the message about wrong arguments.
pub fn describe(schema: &Value) -> String {
    let parts = arguments(schema).map(|(name, property, is_required)| {
        let need = if is_required { "" } else { ", optional" };
        format!("{name} ({}{need})", shown_types(property))
    });
    format!("expected: {}", parts.collect::<Vec<_>>().join(", "))
}

/// Returns each argument of the schema: its name, its own schema, and whether it is required.
pub(super) fn arguments(schema: &Value) -> impl Iterator<Item = (&str, &Value, bool)> {
    let required = string_list(schema, "required");
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(move |(name, property)| {
        let is_required = required.contains(&name.as_str());
        (name.as_str(), property, is_required)
    })
}

fn check_object(
    mut fields: Map<String, Value>,
    schema: &Value,
    path: &str,
) -> Result<Map<String, Value>, String> {
    let required = string_list(schema, "required");
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match fields.remove(name) {
                // Some models write null to omit an optional argument.
                Some(value) if !value.is_null() || allows_null(property) => {
                    fields.insert(name.clone(), check_value(value, property, &place)?);
                }
                _ if required.contains(&name.as_str()) => {
                    return Err(format!("`{place}` is missing"));
                }
                _ => {}
            }
        }
    }
    Ok(fields)
}

fn check_value(value: Value, schema: &Value, path: &str) -> Result<Value, String> {
    let value = check_plain(value, schema, path)?;
    let Some(forms) = alternatives(schema) else {
        return Ok(value);
    };
    let chosen = check_alternatives(&value, forms, path)?;
    // The unwrapped value must also satisfy the keywords next to the alternatives.
    if chosen != value && check_plain(chosen.clone(), schema, path).as_ref() != Ok(&chosen) {
        return Err(format!("`{path}` fits no alternative of its schema"));
    }
    Ok(chosen)
}

/// Checks everything except alternatives.
fn check_plain(value: Value, schema: &Value, path: &str) -> Result<Value, String> {
    let wanted = types(schema);
    let value = coerce(value, &wanted).map_err(|value| {
        let wanted = wanted.iter().map(|kind| with_article(kind)).collect::<Vec<_>>();
        let wanted = wanted.join(" or ");
        format!("`{path}` must be {wanted}, not {}", type_name(&value))
    })?;
    let value = match value {
        Value::Array(items) if schema["items"].is_object() => items
            .into_iter()
            .enumerate()
            .map(|(index, item)| check_value(item, &schema["items"], &format!("{path}[{index}]")))
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Array)?,
        Value::Object(fields) => check_object(fields, schema, path).map(Value::Object)?,
        value => value,
    };
    match schema["enum"].as_array() {
        Some(choices) if !choices.iter().any(|choice| equals_choice(choice, &value)) => {
            Err(format!("`{path}` must be {}, not {}", shown_choices(choices), shown(&value)))
        }
        _ => Ok(value),
    }
}

/// Checks alternatives: returns the value of the first that accepts it unchanged, or else of the
/// first that accepts it unwrapped.
fn check_alternatives(value: &Value, forms: &[Value], path: &str) -> Result<Value, String> {
    let mut meant = None;
    let mut errors = Vec::new();
    for form in forms {
        match check_value(value.clone(), form, path) {
            Ok(taken) if taken == *value => return Ok(taken),
            Ok(taken) => meant = meant.or(Some(taken)),
            Err(error) if !errors.contains(&error) => errors.push(error),
            Err(_) => {}
        }
    }
    errors.truncate(limits::LISTED_NAMES);
    meant.ok_or_else(|| errors.join("; or "))
}

/// Returns the value, unwrapped if that gives it one of the wanted types.
fn coerce(value: Value, wanted: &[&str]) -> Result<Value, Value> {
    if wanted.is_empty() || wanted.iter().any(|wanted| fits(&value, wanted)) {
        return Ok(value);
    }
    let mut meant = wanted.iter().filter_map(|wanted| {
        let value = unwrap_value(value.clone(), wanted);
        fits(&value, wanted).then_some(value)
    });
    match meant.next() {
        Some(meant) => Ok(meant),
        None => Err(value),
    }
}

fn fits(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// Returns the types of a schema; empty for any type.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        _ => string_list(schema, "type"),
    }
}

/// Returns the alternatives of a schema, one of which must match.
fn alternatives(schema: &Value) -> Option<&[Value]> {
    let any = schema["anyOf"].as_array().or(schema["oneOf"].as_array())?;
    (!any.is_empty()).then_some(any)
}

/// Whether null is a valid value, not a missing one.
fn allows_null(schema: &Value) -> bool {
    let wanted = types(schema);
    let is_wanted = wanted.is_empty() || wanted.contains(&"null");
    let is_choice = |choices: &Vec<Value>| choices.contains(&Value::Null);
    is_wanted
        && schema["enum"].as_array().is_none_or(is_choice)
        && alternatives(schema).is_none_or(|forms| forms.iter().any(allows_null))
}

/// Whether the values are equal; 1 and 1.0 are.
fn equals_choice(choice: &Value, value: &Value) -> bool {
    choice == value || (choice.is_number() && choice.as_f64() == value.as_f64())
}

/// Names the types for messages.
pub(super) fn shown_types(schema: &Value) -> String {
    match types(schema).as_slice() {
        [] => "any value".into(),
        wanted => text::one_line(&wanted.join(" or "), limits::SUMMARY_CHARS),
    }
}

fn shown_choices(choices: &[Value]) -> String {
    let first = choices.iter().take(limits::LISTED_NAMES).map(shown);
    let mut list = first.collect::<Vec<_>>().join(", ");
    if choices.len() > limits::LISTED_NAMES {
        list.push_str(", …");
    }
    match choices.len() {
        1 => list,
        _ => format!("one of {list}"),
    }
}

fn shown(value: &Value) -> String {
    text::one_line(&value.to_string(), limits::SUMMARY_CHARS)
}

/// Converts a value of another type that can only mean the wanted type.
#[allow(clippy::cast_possible_truncation, reason = "checked to be whole and below 2^53")]
fn unwrap_value(value: Value, wanted: &str) -> Value {
    match (&value, wanted) {
        (Value::String(text), "integer" | "number" | "boolean" | "array" | "object" | "null") => {
            serde_json::from_str(text.trim()).unwrap_or(value)
        }
        (Value::Number(number), "string") => Value::String(number.to_string()),
        (Value::Number(number), "integer") => match number.as_f64() {
            // 5.0 is 5; beyond 2^53 a float is not exact.
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => Value::from(float as i64),
            _ => value,
        },
        _ => value,
    }
}

fn string_list<'s>(schema: &'s Value, list: &str) -> Vec<&'s str> {
    schema[list].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn with_article(kind: &str) -> String {
    match kind {
        "null" => kind.into(),
        "integer" | "array" | "object" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(arguments: Value) -> Result<Value, String> {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": ["a", "b"]},
                "count": {"type": "integer"},
                "list": {"type": "array", "items": {"type": "string"}},
                "inner": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["deep"]},
                "maybe": {"type": ["integer", "null"]},
                "either": {"anyOf": [
                    {"type": "integer"},
                    {"type": "object", "properties": {"x": {"type": "string"}}},
                ]},
                "digit": {"type": "number", "enum": [1, 2]},
            },
            "required": ["name"],
        });
        let Value::Object(arguments) = arguments else { panic!() };
        check(arguments, &schema).map(Value::Object)
    }

    #[test]
    fn problems_are_reported_with_their_path() {
        let table = [
            (json!({}), "`name` is missing"),
            (json!({"name": null}), "`name` is missing"),
            (json!({"name": ["a"]}), "`name` must be a string, not an array"),
            (json!({"name": "a", "count": "many"}), "`count` must be an integer, not a string"),
            (json!({"name": "a", "count": 1.5}), "`count` must be an integer, not a number"),
            (json!({"name": "a", "list": ["x", {}]}), "`list[1]` must be a string, not an object"),
            (json!({"name": "a", "inner": {}}), "`inner.deep` is missing"),
            (
                json!({"name": "a", "inner": {"deep": 3}}),
                "`inner.deep` must be a boolean, not a number",
            ),
            (json!({"name": "c"}), r#"`name` must be one of "a", "b", not "c""#),
            (
                json!({"name": "a", "maybe": [1]}),
                "`maybe` must be an integer or null, not an array",
            ),
            (
                json!({"name": "a", "either": {"x": true}}),
                "`either` must be an integer, not an object; or `either.x` must be a string, not a boolean",
            ),
            (json!({"name": "a", "digit": 1.5}), "`digit` must be one of 1, 2, not 1.5"),
        ];
        for (arguments, error) in table {
            assert_eq!(checked(arguments.clone()), Err(error.to_string()), "{arguments}");
        }
    }

    #[test]
    fn wrapped_values_are_unwrapped_and_the_rest_is_kept() {
        let arguments = json!({
            "name": "b", "count": "5", "list": "[\"x\"]", "inner": {"deep": "true"}, "more": 1,
            "maybe": "7", "either": "{\"x\": 3}", "digit": 1.0
        });
        let expected = json!({
            "name": "b", "count": 5, "list": ["x"], "inner": {"deep": true}, "more": 1,
            "maybe": 7, "either": {"x": "3"}, "digit": 1.0
        });
        assert_eq!(checked(arguments).unwrap(), expected);
        assert_eq!(
            checked(
                json!({"name": "a", "count": 2.0, "list": null, "maybe": null, "either": null})
            )
            .unwrap(),
            json!({"name": "a", "count": 2, "maybe": null})
        );
    }

    #[test]
    fn an_alternative_that_accepts_the_value_unchanged_wins() {
        let either = json!({"anyOf": [{"type": "integer"}, {"type": "string"}]});
        let schema = json!({"properties": {"a": either}});
        for value in [json!("5"), json!(5)] {
            let Value::Object(arguments) = json!({"a": value}) else { panic!() };
            assert_eq!(check(arguments.clone(), &schema), Ok(arguments));
        }
    }
}
