//! Arguments of built-in tools that differ from the schema and can only mean one thing.

use serde_json::{Map, Value};

use crate::tools::ArgumentError;
use base::limits;
use base::text;
use skills::split_words;

/// Names that models use for the same argument. A tool has at most one argument of a row.
const SYNONYMS: [&[&str]; 11] = [
    &["skill_name", "name", "skill"],
    &["file_path", "path", "file", "filename", "script_path"],
    &["script", "code", "source", "python"],
    &["command", "cmd"],
    &["args", "arguments", "argv"],
    &["content", "contents", "text", "activity"],
    &["old", "old_string", "old_str", "old_text"],
    &["new", "new_string", "new_str", "new_text"],
    &["all", "replace_all"],
    &["stdin", "input"],
    &["date", "day"],
];

/// Returns the arguments with the names of the schema, and a line of `args` as its words.
///
/// # Errors
///
/// An argument that the schema does not have, or that is given by two names.
pub(super) fn correct(
    fields: Map<String, Value>,
    schema: &Value,
) -> Result<Map<String, Value>, ArgumentError> {
    let mut corrected = Map::new();
    let mut given: Vec<(String, String)> = Vec::new();
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
        let Some((known, property)) = find_property(&name, schema) else {
            let names = schema["properties"].as_object().into_iter().flat_map(Map::keys);
            let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let problem = format!("is not an argument; the arguments are: {names}");
            return Err(ArgumentError::new(&name, problem));
        };
        if let Some((_, other)) = given.iter().find(|(argument, _)| argument == known) {
            let problem = format!("and `{other}` mean the same argument: give only `{known}`");
            return Err(ArgumentError::new(&name, problem));
        }
        given.push((known.clone(), name));
        corrected.insert(known.clone(), words(value, known, property));
    }
    Ok(corrected)
}

/// The argument that a name means.
fn find_property<'s>(name: &str, schema: &'s Value) -> Option<(&'s String, &'s Value)> {
    let properties = schema["properties"].as_object()?;
    let is_same = |one: &str| plain(one) == plain(name);
    let synonyms = SYNONYMS.iter().find(|names| names.iter().any(|one| is_same(one)));
    let same = || properties.iter().find(|(known, _)| is_same(known));
    let is_synonym = |known: &str| synonyms.is_some_and(|names| names.contains(&known));
    let synonym = || properties.iter().find(|(known, _)| is_synonym(known));
    properties.get_key_value(name).or_else(same).or_else(synonym)
}

/// `filePath` and `file-path` are `file_path`.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

/// Splits a line of arguments as a shell does, unless it is JSON text, and makes a line of a
/// command in words.
fn words(value: Value, name: &str, property: &Value) -> Value {
    match value {
        Value::String(line)
            if name == "args" && property["type"] == "array" && !line.trim().starts_with('[') =>
        {
            split_words(&line, limits::SCRIPT_ARGUMENTS_BYTES).into()
        }
        Value::Array(words) if name == "command" && words.iter().all(Value::is_string) => {
            let words = words.iter().filter_map(Value::as_str);
            // One word is a line already, as in `["ls -l"]`.
            match words.clone().collect::<Vec<_>>()[..] {
                [line] => line.into(),
                _ => words
                    .map(|word| text::shell_quoted(word.as_ref()))
                    .collect::<Vec<_>>()
                    .join(" ")
                    .into(),
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_lines_of_arguments_are_taken_as_meant() {
        let schema = json!({"properties": {
            "skill_name": {"type": "string"},
            "file_path": {"type": "string"},
            "args": {"type": "array", "items": {"type": "string"}},
            "command": {"type": "string"},
        }});
        let unknown = "`code` is not an argument; the arguments are: `args`, `command`, `file_path`, `skill_name`";
        let both = "`skill_name` and `name` mean the same argument: give only `skill_name`";
        let table = [
            (json!({"name": "a"}), Ok(json!({"skill_name": "a"}))),
            (
                json!({"skillName": "a", "Path": "b"}),
                Ok(json!({"skill_name": "a", "file_path": "b"})),
            ),
            (json!({"skill_name": "a", "name": null, "x": null}), Ok(json!({"skill_name": "a"}))),
            (json!({"skill_name": "a", "name": "b"}), Err(both)),
            (
                json!({"script_path": "b", "args": "x 'y z'"}),
                Ok(json!({"file_path": "b", "args": ["x", "y z"]})),
            ),
            (json!({"arguments": " [1]"}), Ok(json!({"args": " [1]"}))),
            (json!({"cmd": ["ls", "a b"]}), Ok(json!({"command": "ls 'a b'"}))),
            (json!({"command": ["ls -l"]}), Ok(json!({"command": "ls -l"}))),
            (json!({"args": ""}), Ok(json!({"args": []}))),
            (json!({"code": "a"}), Err(unknown)),
        ];
        for (fields, expected) in table {
            let read = correct(fields.as_object().unwrap().clone(), &schema);
            let read = read.map(Value::Object).map_err(|error| error.to_string());
            assert_eq!(read, expected.map_err(str::to_owned), "{fields}");
        }
    }
}
