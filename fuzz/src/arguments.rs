//! Arguments of calls: accepted arguments match the schema, which is checked here
//! independently of the program.

use serde_json::{Map, Value};
use skills_runner::internals::tool::parse_arguments;
use skills_runner::internals::tools::{
    BUILTIN_TOOLS, add_skill_names, check_arguments, describe_schema, validate_schema,
};

/// See the module. The second line, if any, is a schema.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    check_tools(&text);
    let Some((arguments, schema)) = text.split_once('\n') else {
        return;
    };
    let (Ok(arguments), Ok(schema)) = (parse_arguments(arguments), serde_json::from_str(schema))
    else {
        return;
    };
    describe_schema(&schema);
    if let Err(fault) = validate_schema(&schema) {
        assert!(!fault.is_empty());
    }
    check_against(&arguments, &schema);
}

fn check_tools(text: &str) {
    let read = parse_arguments(text);
    if let Ok(Value::Object(fields)) = serde_json::from_str(text) {
        assert_eq!(read.as_ref(), Ok(&fields));
    }
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        check_alone(&value);
    }
    let Ok(arguments) = read else {
        return;
    };
    for tool in BUILTIN_TOOLS {
        tool.summary(&arguments);
        for skills in [&[][..], &["a", "b"]] {
            let mut schema = tool.parameters();
            assert_eq!(validate_schema(&schema), Ok(()));
            add_skill_names(&mut schema, skills);
            assert!(!describe_schema(&schema).is_empty());
            if let Some(accepted) = check_against(&arguments, &schema) {
                tool.summary(&accepted);
            }
        }
    }
}

/// Checks the value as each argument, with no other argument.
fn check_alone(value: &Value) {
    for tool in BUILTIN_TOOLS {
        let mut schema = tool.parameters();
        add_skill_names(&mut schema, &["a", "b"]);
        schema["required"].take();
        let properties = schema["properties"].as_object();
        for name in properties.into_iter().flat_map(Map::keys) {
            let arguments = Map::from_iter([(name.clone(), value.clone())]);
            check_against(&arguments, &schema);
        }
    }
}

fn check_against(arguments: &Map<String, Value>, schema: &Value) -> Option<Map<String, Value>> {
    let accepted = match check_arguments(arguments.clone(), schema) {
        Ok(accepted) => accepted,
        Err(fault) => {
            assert!(fault.starts_with('`'), "no argument is named: {fault}");
            return None;
        }
    };
    if let Err(reason) = fits_object(&accepted, schema) {
        panic!("{reason}: {accepted:?} of {arguments:?}");
    }
    assert_eq!(check_arguments(accepted.clone(), schema).as_ref(), Ok(&accepted), "not stable");
    let is_declared = |name: &str| schema["properties"].get(name).is_some();
    for (name, value) in arguments {
        assert!(is_declared(name) || accepted.get(name) == Some(value), "`{name}` was changed");
    }
    for name in accepted.keys() {
        assert!(arguments.contains_key(name), "`{name}` was added");
    }
    Some(accepted)
}

fn fits_object(fields: &Map<String, Value>, schema: &Value) -> Result<(), String> {
    let Some(properties) = schema["properties"].as_object() else {
        return Ok(());
    };
    for (name, property) in properties {
        match fields.get(name) {
            Some(value) => fits(value, property).map_err(|reason| format!("`{name}` {reason}"))?,
            None => {
                let required = schema["required"].as_array();
                if required.is_some_and(|names| names.iter().any(|it| it == name.as_str())) {
                    return Err(format!("`{name}` is missing"));
                }
            }
        }
    }
    Ok(())
}

fn fits(value: &Value, schema: &Value) -> Result<(), String> {
    let is_same = |choice: &Value| {
        choice == value || (choice.is_number() && choice.as_f64() == value.as_f64())
    };
    if schema["enum"].as_array().is_some_and(|choices| !choices.iter().any(is_same)) {
        return Err("is not one of the choices".into());
    }
    let forms = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    if let Some(forms) = forms.filter(|forms| !forms.is_empty())
        && !forms.iter().any(|form| fits(value, form).is_ok())
    {
        return Err("matches no alternative".into());
    }
    match &schema["type"] {
        Value::String(one) => fits_type(value, schema, one),
        Value::Array(several) => {
            let mut names = several.iter().filter_map(Value::as_str).peekable();
            let is_any = names.peek().is_none();
            match is_any || names.any(|name| fits_type(value, schema, name).is_ok()) {
                true => Ok(()),
                false => Err("has none of the types".into()),
            }
        }
        _ => Ok(()),
    }
}

fn fits_type(value: &Value, schema: &Value, wanted: &str) -> Result<(), String> {
    match (wanted, value) {
        ("string", Value::String(_))
        | ("boolean", Value::Bool(_))
        | ("null", Value::Null)
        | ("number", Value::Number(_)) => Ok(()),
        ("integer", Value::Number(number)) if !number.is_f64() => Ok(()),
        ("array", Value::Array(items)) => match &schema["items"] {
            inner @ Value::Object(_) => items.iter().try_for_each(|item| fits(item, inner)),
            _ => Ok(()),
        },
        ("object", Value::Object(fields)) => fits_object(fields, schema),
        ("string" | "boolean" | "number" | "integer" | "array" | "object" | "null", _) => {
            Err(format!("is not of type {wanted}"))
        }
        _ => Ok(()),
    }
}
