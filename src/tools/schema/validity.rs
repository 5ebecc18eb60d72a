//! Whether a schema that somebody brings is one: what is wrong with it is
//! told by its path, before a model or an endpoint trips over it.

use serde_json::{Map, Value};

use crate::limits;
use crate::text;
use crate::tools::schema::{fits, kind, shown, types};

const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];

/// Whether it describes the arguments of a tool: an object. Without `type`
/// and `properties` it is one without arguments. Keywords that nobody checks arguments against are not
/// looked at.
pub fn validate(schema: &Value) -> Result<(), String> {
    if !schema.is_object() {
        return Err(format!("it is {}, not an object", kind(schema)));
    }
    if !matches!(schema["type"].as_str(), Some("object")) && !schema["type"].is_null() {
        return Err("`type` is not \"object\"".into());
    }
    check(schema, "", 0)
}

fn check(schema: &Value, path: &str, depth: usize) -> Result<(), String> {
    if depth > limits::SCHEMA_DEPTH {
        return Err(format!("`{path}` lies too deep"));
    }
    if schema.is_boolean() {
        return Ok(());
    }
    let fields = fields(schema, path)?;
    let at = |key: &str| at(path, key);
    if let Some(wanted) = fields.get("type") {
        check_type(wanted, &at("type"))?;
    }
    if let Some(properties) = fields.get("properties") {
        let place = at("properties");
        for (name, property) in self::fields(properties, &place)? {
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
            for (index, form) in list(forms, &at(key))?.iter().enumerate() {
                check(form, &format!("{}[{index}]", at(key)), depth + 1)?;
            }
        }
    }
    Ok(())
}

fn check_type(wanted: &Value, path: &str) -> Result<(), String> {
    let check_one = |wanted: &Value, path: &str| match wanted.as_str() {
        Some(name) if TYPES.contains(&name) => Ok(()),
        _ => Err(format!("`{path}` is {}, which is none of {}", shown(wanted), TYPES.join(", "))),
    };
    if !wanted.is_array() {
        return check_one(wanted, path);
    }
    let mut all = list(wanted, path)?.iter().enumerate();
    all.try_for_each(|(index, wanted)| check_one(wanted, &format!("{path}[{index}]")))
}

fn check_required(required: &Value, properties: &Value, path: &str) -> Result<(), String> {
    let Some(names) = required.as_array() else {
        return Err(format!("`{path}` is {}, not an array", kind(required)));
    };
    for (index, name) in names.iter().enumerate() {
        let Some(text) = name.as_str() else {
            return Err(format!("`{path}[{index}]` is {}, not a string", kind(name)));
        };
        if properties.get(text).is_none() {
            return Err(format!(
                "`{path}[{index}]` is {}, which is none of the properties",
                shown(name)
            ));
        }
    }
    Ok(())
}

/// A choice of another type than the wanted one could never be made.
fn check_choices(choices: &Value, wanted: &[&str], path: &str) -> Result<(), String> {
    for (index, choice) in list(choices, path)?.iter().enumerate() {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| fits(choice, wanted)) {
            return Err(format!(
                "`{path}[{index}]` is {}, not of the type that is wanted",
                shown(choice)
            ));
        }
    }
    Ok(())
}

fn fields<'v>(value: &'v Value, path: &str) -> Result<&'v Map<String, Value>, String> {
    let wrong = || format!("`{path}` is {}, not an object", kind(value));
    value.as_object().ok_or_else(wrong)
}

fn list<'v>(value: &'v Value, path: &str) -> Result<&'v [Value], String> {
    match value.as_array().map(Vec::as_slice) {
        None => Err(format!("`{path}` is {}, not an array", kind(value))),
        Some([]) => Err(format!("`{path}` is empty")),
        Some(all) => Ok(all),
    }
}

fn at(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// R-REG-1.
    #[test]
    fn what_is_wrong_with_a_schema_is_told_by_its_path() {
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
                "`properties.a.type` is \"text\", which is none of string, integer, number, boolean, array, object, null",
            ),
            (with(json!({"type": []})), "`properties.a.type` is empty"),
            (
                with(json!({"type": ["null", 3]})),
                "`properties.a.type[1]` is 3, which is none of string, integer, number, boolean, array, object, null",
            ),
            (
                with(json!({"items": {"properties": {"b": {"enum": []}}}})),
                "`properties.a.items.properties.b.enum` is empty",
            ),
            (
                with(json!({"type": ["integer", "null"], "enum": [1, null, "1"]})),
                "`properties.a.enum[2]` is \"1\", not of the type that is wanted",
            ),
            (
                with(json!({"properties": {"b": {}}, "required": ["b", "c"]})),
                "`properties.a.required[1]` is \"c\", which is none of the properties",
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
        for (schema, fault) in table {
            assert_eq!(validate(&schema), Err(fault.to_string()), "{schema}");
        }
        // A tool without arguments.
        for schema in [json!({}), json!({"type": "object"}), json!({"properties": {}})] {
            assert_eq!(validate(&schema), Ok(()), "{schema}");
        }
        assert!(validate(&with(deep)).unwrap_err().ends_with("` lies too deep"));
    }

    #[test]
    fn what_people_write_is_valid() {
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
