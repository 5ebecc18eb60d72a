//! Arguments against the schema of a tool: type, required, items, nested
//! objects. What is wrong is told by its path. Values that are right but
//! wrapped (`"5"` for 5, an array as JSON text) are unwrapped, because small
//! models write them so; an `enum` only advises. The names of skills are made
//! one here, for the tools that take such a name.

use serde_json::{Map, Value, json};

use crate::limits;
use crate::skills::Catalogue;

/// How the argument that names a skill is called.
const SKILL_NAME: &str = "skill_name";

/// The argument that names a skill.
pub fn skill_name(skills: &[&str]) -> Value {
    if skills.is_empty() {
        json!({"type": "string"})
    } else {
        json!({"type": "string", "enum": skills})
    }
}

/// The names that are offered as an `enum`: those of the skills that are for
/// the model, all or none, because many would cost too much.
pub fn names_to_offer(catalogue: &Catalogue) -> Vec<&str> {
    let listed = catalogue.usable().filter(|skill| skill.is_for_model);
    let names: Vec<&str> = listed.map(|skill| skill.name.as_str()).collect();
    if names.len() > limits::ENUM_NAMES {
        return Vec::new();
    }
    names
}

/// Whether the names are all that a tool may have to be called with. Some
/// servers let a model write nothing else than an `enum`, and a skill that
/// only the user invokes has files and scripts as any other.
pub fn is_whole(catalogue: &Catalogue) -> bool {
    catalogue.usable().all(|skill| skill.is_for_model)
}

/// Bytes that an `enum` of these names takes.
pub fn cost(names: &[&str]) -> usize {
    names.iter().map(|name| name.len() + r#""","#.len()).sum()
}

/// Gives the arguments as the schema wants them, or says what is wrong.
pub fn check(arguments: Map<String, Value>, schema: &Value) -> Result<Map<String, Value>, String> {
    check_object(arguments, schema, "")
}

/// Refuses a number in the place of a skill's name, unless a skill is called so.
pub fn check_name(
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

/// The schema in one line, for the message about wrong arguments.
pub fn describe(schema: &Value) -> String {
    let required = names(schema, "required");
    let properties = schema["properties"].as_object();
    let parts: Vec<String> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let kind = property["type"].as_str().unwrap_or("any value");
            let need = if required.contains(&name.as_str()) {
                ""
            } else {
                ", optional"
            };
            format!("{name} ({kind}{need})")
        })
        .collect();
    format!("expected: {}", parts.join(", "))
}

fn check_object(
    mut fields: Map<String, Value>,
    schema: &Value,
    path: &str,
) -> Result<Map<String, Value>, String> {
    let required = names(schema, "required");
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            let place = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            match fields.remove(name) {
                // Null is how some models leave an optional argument out.
                None | Some(Value::Null) => {
                    if required.contains(&name.as_str()) {
                        return Err(format!("`{place}` is missing"));
                    }
                }
                Some(value) => {
                    fields.insert(name.clone(), check_value(value, property, &place)?);
                }
            }
        }
    }
    Ok(fields)
}

fn check_value(value: Value, schema: &Value, path: &str) -> Result<Value, String> {
    let Some(wanted) = schema["type"].as_str() else {
        return Ok(value);
    };
    let value = unwrap(value, wanted);
    let fits = match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if !fits {
        return Err(format!(
            "`{path}` must be {}, not {}",
            article(wanted),
            kind(&value)
        ));
    }
    match value {
        Value::Array(items) if schema["items"].is_object() => items
            .into_iter()
            .enumerate()
            .map(|(index, item)| check_value(item, &schema["items"], &format!("{path}[{index}]")))
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Array),
        Value::Object(fields) => check_object(fields, schema, path).map(Value::Object),
        value => Ok(value),
    }
}

/// A value of another type that can only mean the wanted one.
#[allow(
    clippy::cast_possible_truncation,
    reason = "checked to be whole and below 2^53"
)]
fn unwrap(value: Value, wanted: &str) -> Value {
    match (&value, wanted) {
        (Value::String(text), "integer" | "number" | "boolean" | "array" | "object") => {
            serde_json::from_str(text.trim()).unwrap_or(value)
        }
        (Value::Number(number), "string") => Value::String(number.to_string()),
        (Value::Number(number), "integer") => match number.as_f64() {
            // 5.0 is 5; beyond 2^53 a float says nothing exact.
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => Value::from(float as i64),
            _ => value,
        },
        _ => value,
    }
}

fn names<'s>(schema: &'s Value, list: &str) -> Vec<&'s str> {
    schema[list]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn article(kind: &str) -> String {
    match kind {
        "integer" | "array" | "object" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

fn kind(value: &Value) -> &'static str {
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
            },
            "required": ["name"],
        });
        let Value::Object(arguments) = arguments else {
            panic!()
        };
        check(arguments, &schema).map(Value::Object)
    }

    /// R-REG-2.
    #[test]
    fn what_is_wrong_is_told_by_its_path() {
        let table = [
            (json!({}), "`name` is missing"),
            (json!({"name": null}), "`name` is missing"),
            (
                json!({"name": ["a"]}),
                "`name` must be a string, not an array",
            ),
            (
                json!({"name": "a", "count": "many"}),
                "`count` must be an integer, not a string",
            ),
            (
                json!({"name": "a", "count": 1.5}),
                "`count` must be an integer, not a number",
            ),
            (
                json!({"name": "a", "list": ["x", {}]}),
                "`list[1]` must be a string, not an object",
            ),
            (json!({"name": "a", "inner": {}}), "`inner.deep` is missing"),
            (
                json!({"name": "a", "inner": {"deep": 3}}),
                "`inner.deep` must be a boolean, not a number",
            ),
        ];
        for (arguments, fault) in table {
            assert_eq!(
                checked(arguments.clone()),
                Err(fault.to_string()),
                "{arguments}"
            );
        }
    }

    #[test]
    fn wrapped_values_are_unwrapped_and_the_rest_is_kept() {
        let arguments = json!({
            "name": "not in the enum", "count": "5", "list": "[\"x\"]", "inner": {"deep": "true"}, "more": 1
        });
        let expected = json!({
            "name": "not in the enum", "count": 5, "list": ["x"], "inner": {"deep": true}, "more": 1
        });
        assert_eq!(checked(arguments).unwrap(), expected);
        assert_eq!(
            checked(json!({"name": 3, "count": 2.0, "list": null})).unwrap(),
            json!({"name": "3", "count": 2})
        );
    }
}
