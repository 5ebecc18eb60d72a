//! JSON Schemas of tools' arguments: what a model and the message about wrong arguments show.
//! Arguments are not checked against a schema: see `arguments`.

use serde_json::{Value, json};

use crate::limits;
use crate::skills::Catalogue;
use crate::text;

/// The name of the argument that names a skill.
pub(super) const SKILL_NAME: &str = "skill_name";

/// Returns the schema with the fields that endpoints require, or why it is not the schema of an
/// object.
pub(super) fn of_arguments(mut schema: Value) -> Result<Value, &'static str> {
    let fields = schema.as_object_mut().ok_or("it is not an object")?;
    if fields.entry("type").or_insert("object".into()) != "object" {
        return Err("`type` is not \"object\"");
    }
    let properties = fields.entry("properties").or_insert(json!({})).as_object();
    if !properties.ok_or("`properties` is not an object")?.values().all(Value::is_object) {
        return Err("one of its `properties` is not an object");
    }
    Ok(schema)
}

/// Adds these names as an `enum` to the argument that names a skill. A call with another name is
/// not refused.
pub(super) fn add_skill_names(schema: &mut Value, skills: &[&str]) {
    if !skills.is_empty() {
        schema["properties"][SKILL_NAME]["enum"] = json!(skills);
    }
}

/// Returns the names to offer as an `enum`: those of all skills, if they are few. Some servers allow
/// a model only these values, so there are none if the user alone may invoke one of the skills.
pub(super) fn names_to_offer(catalogue: &Catalogue) -> Vec<&str> {
    let names: Vec<&str> = catalogue.usable().map(|skill| skill.name.as_str()).collect();
    let bytes: usize = names.iter().map(|name| name.len() + r#""","#.len()).sum();
    let is_complete = catalogue.usable().all(|skill| skill.is_for_model);
    if is_complete && bytes <= limits::ENUM_BYTES { names } else { Vec::new() }
}

/// An argument, as a schema describes it.
pub(super) struct SchemaArgument<'s> {
    pub name: &'s str,
    /// Its type, and whether it is optional: `string, optional`.
    pub kind: String,
    pub description: Option<&'s str>,
}

/// Returns the arguments of a schema.
pub(super) fn arguments(schema: &Value) -> impl Iterator<Item = SchemaArgument<'_>> {
    let required = schema["required"].as_array();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(move |(name, property)| {
        let kind = match &property["type"] {
            Value::String(one) => one.clone(),
            Value::Array(several) => {
                several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
            }
            _ => "any value".into(),
        };
        let kind = text::one_line(&kind, limits::SUMMARY_CHARS);
        let is_required = required.is_some_and(|names| names.iter().any(|it| it == name.as_str()));
        SchemaArgument {
            name,
            kind: if is_required { kind } else { format!("{kind}, optional") },
            description: property["description"].as_str(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_that_of_an_object() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [json!({}), json!({"type": "object"}), json!({"properties": {}})] {
            assert_eq!(of_arguments(schema), Ok(empty.clone()));
        }
        for (schema, error) in [
            (json!([]), "it is not an object"),
            (json!({"type": "string"}), "`type` is not \"object\""),
            (json!({"properties": []}), "`properties` is not an object"),
            (json!({"properties": {"a": "string"}}), "one of its `properties` is not an object"),
        ] {
            assert_eq!(of_arguments(schema), Err(error));
        }
    }
}
