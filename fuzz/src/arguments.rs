//! Arguments of calls: a problem names the argument, and a value of the right type is accepted.

use agent::tools::BUILTIN_TOOLS;
use base::tool::parse_arguments;
use serde_json::{Map, Value};

/// See the module.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = parse_arguments(&text);
    if let Ok(Value::Object(fields)) = serde_json::from_str(&text) {
        assert_eq!(read.as_ref(), Ok(&fields));
    }
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        check_alone(&value);
    }
    if let Ok(arguments) = read {
        for tool in BUILTIN_TOOLS.iter().map(|row| row.tool) {
            if let Err(error) = tool.prepare(arguments.clone().into()) {
                assert!(error.to_string().starts_with('`'), "no argument is named: {error}");
            }
        }
    }
}

/// Checks the value as each argument, with all other arguments.
fn check_alone(value: &Value) {
    for tool in BUILTIN_TOOLS.iter().map(|row| row.tool) {
        let schema = tool.parameters();
        let properties = schema["properties"].as_object();
        let properties = properties.into_iter().flatten();
        let good: Map<String, Value> =
            properties.map(|(name, kind)| (name.clone(), sample(kind))).collect();
        assert!(tool.prepare(good.clone().into()).is_ok());
        for name in good.keys() {
            let mut arguments = good.clone();
            arguments.insert(name.clone(), value.clone());
            if let Err(error) = tool.prepare(arguments.into()) {
                assert!(error.to_string().starts_with(&format!("`{name}")), "{error}");
            }
        }
    }
}

/// A value that fits a property of a schema.
fn sample(property: &Value) -> Value {
    match property["type"].as_str() {
        _ if property["enum"].is_array() => property["enum"][0].clone(),
        Some("integer") => 7.into(),
        Some("boolean") => true.into(),
        Some("array") => Value::Array(Vec::new()),
        _ => "x".into(),
    }
}
