//! Validates the schema of an added tool. A problem is reported with its path, before a model or
//! an endpoint fails on it.

use serde_json::{Map, Value};

use crate::limits;
use crate::text;
use crate::tools::schema::{fits, shown, type_name, types};

const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];

/// Validates a schema of a tool's arguments: it must be an object, by default without arguments.
/// Keywords against which arguments are not checked are ignored.
pub fn validate(schema: &Value) -> Result<(), String> {
    if !schema.is_object() {
        return Err(format!("it is {}, not an object", type_name(schema)));
    }
    if !matches!(schema["type"].as_str(), Some("object")) && !schema["type"].is_null() {
        return Err("`type` is not \"object\"".into());
    }
    check(schema, "", 0)
}

fn check(schema: &Value, path: &str, depth: usize) -> Result<(), String> {
    if depth > limits::SCHEMA_DEPTH {
        return Err(format!("`{path}` is nested too deeply"));
    }
    if schema.is_boolean() {
        return Ok(());
    }
    let fields = object_fields(schema, path)?;
    let at = |key: &str| join_path(path, key);
    if let Some(wanted) = fields.get("type") {
        check_type(wanted, &at("type"))?;
    }
    if let Some(properties) = fields.get("properties") {
        let place = at("properties");
        for (name, property) in self::object_fields(properties, &place)? {
            let name = text::one_line(name, limits::SUMMARY_CHARS);
            check(property, &format!("{place}.{name}"), depth + 1)?;
        }
    }
    if let Some(required) = fields.get("required") {
        check_required(required, &schema["properties"], &at("required"))?;
    }
    if let Some(items) = fields.get("items") {
        check(items, &at("items"), depth + 1)?;
    }
    if let Some(choices) = fields.get("enum") {
        check_choices(choices, &types(schema), &at("enum"))?;
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(forms) = fields.get(key) {
            for (index, form) in non_empty_array(forms, &at(key))?.iter().enumerate() {
                check(form, &format!("{}[{index}]", at(key)), depth + 1)?;
            }
        }
    }
    Ok(())
}

fn check_type(wanted: &Value, path: &str) -> Result<(), String> {
    let check_one = |wanted: &Value, path: &str| match wanted.as_str() {
        Some(name) if TYPES.contains(&name) => Ok(()),
        _ => Err(format!("`{path}` is {}, not one of {}", shown(wanted), TYPES.join(", "))),
    };
    if !wanted.is_array() {
        return check_one(wanted, path);
    }
    let mut all = non_empty_array(wanted, path)?.iter().enumerate();
    all.try_for_each(|(index, wanted)| check_one(wanted, &format!("{path}[{index}]")))
}

fn check_required(required: &Value, properties: &Value, path: &str) -> Result<(), String> {
    let Some(names) = required.as_array() else {
        return Err(format!("`{path}` is {}, not an array", type_name(required)));
    };
    for (index, name) in names.iter().enumerate() {
        let Some(text) = name.as_str() else {
            return Err(format!("`{path}[{index}]` is {}, not a string", type_name(name)));
        };
        if properties.get(text).is_none() {
            return Err(format!("`{path}[{index}]` is {}, not one of the properties", shown(name)));
        }
    }
    Ok(())
}

/// Refuses choices of another type than the schema's, which no value could match.
fn check_choices(choices: &Value, wanted: &[&str], path: &str) -> Result<(), String> {
    for (index, choice) in non_empty_array(choices, path)?.iter().enumerate() {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| fits(choice, wanted)) {
            return Err(format!(
                "`{path}[{index}]` is {}, not of the required type",
                shown(choice)
            ));
        }
    }
    Ok(())
}

fn object_fields<'v>(value: &'v Value, path: &str) -> Result<&'v Map<String, Value>, String> {
    let wrong = || format!("`{path}` is {}, not an object", type_name(value));
    value.as_object().ok_or_else(wrong)
}

fn non_empty_array<'v>(value: &'v Value, path: &str) -> Result<&'v [Value], String> {
    match value.as_array().map(Vec::as_slice) {
        None => Err(format!("`{path}` is {}, not an array", type_name(value))),
        Some([]) => Err(format!("`{path}` is empty")),
        Some(all) => Ok(all),
    }
}

fn join_path(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn problems_of_a_schema_are_reported_with_their_path() {
        let with = |property: Value| json!({"type": "object", "properties": {"a": property}});
        let deep = (0..=limits::SCHEMA_DEPTH).fold(json!({}), |inner, _| json!({"items": inner}));
        let table = [
            (json!([]), "it is an array, not an object"),
            (json!({"type": ["object"], "properties": {}}), "`type` is not \"object\""),
            (json!({"type": "string"}), "`type` is not \"object\""),
            (
                json!({"type": "object", "properties": []}),
                "`properties` is an array, not an object",
            ),
            (with(json!("string")), "`properties.a` is a string, not an object"),
            (
                with(json!({"type": "text"})),
                "`properties.a.type` is \"text\", not one of string, integer, number, boolean, array, object, null",
            ),
            (with(json!({"type": []})), "`properties.a.type` is empty"),
            (
                with(json!({"type": ["null", 3]})),
                "`properties.a.type[1]` is 3, not one of string, integer, number, boolean, array, object, null",
            ),
            (
                with(json!({"items": {"properties": {"b": {"enum": []}}}})),
                "`properties.a.items.properties.b.enum` is empty",
            ),
            (
                with(json!({"type": ["integer", "null"], "enum": [1, null, "1"]})),
                "`properties.a.enum[2]` is \"1\", not of the required type",
            ),
            (
                with(json!({"properties": {"b": {}}, "required": ["b", "c"]})),
                "`properties.a.required[1]` is \"c\", not one of the properties",
            ),
            (
                json!({"type": "object", "properties": {}, "required": "a"}),
                "`required` is a string, not an array",
            ),
            (
                json!({"type": "object", "properties": {}, "required": [1]}),
                "`required[0]` is a number, not a string",
            ),
            (
                with(json!({"anyOf": [{}, {"oneOf": [null]}]})),
                "`properties.a.anyOf[1].oneOf[0]` is null, not an object",
            ),
            (with(json!({"anyOf": {}})), "`properties.a.anyOf` is an object, not an array"),
        ];
        for (schema, error) in table {
            assert_eq!(validate(&schema), Err(error.to_string()), "{schema}");
        }
        // A tool without arguments.
        for schema in [json!({}), json!({"type": "object"}), json!({"properties": {}})] {
            assert_eq!(validate(&schema), Ok(()), "{schema}");
        }
        assert!(validate(&with(deep)).unwrap_err().ends_with("` is nested too deeply"));
    }

    #[test]
    fn common_schemas_are_valid() {
        let schemas = [
            json!({"type": "object", "properties": {}}),
            json!({
                "type": "object", "title": "T", "additionalProperties": false,
                "properties": {
                    "any": {}, "also": true,
                    "list": {"type": "array", "items": {"type": ["string", "null"]}, "minItems": 1},
                    "inner": {"type": "object", "properties": {"x": {"enum": [1, "a", null]}}, "required": ["x"]},
                    "either": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 3},
                },
                "required": ["list"],
            }),
        ];
        for schema in schemas {
            assert_eq!(validate(&schema), Ok(()), "{schema}");
        }
    }
}
