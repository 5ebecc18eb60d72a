//! JSON as models write it: raw line breaks in strings and a code fence around the whole are
//! taken, and each other common mistake is named. The JSON of endpoints is read elsewhere.

use std::fmt::Write as _;

use serde_json::error::Category;
use serde_json::{Map, Value};

use crate::bounded;
use crate::limits;
use crate::text::{self, single_fence};

/// Reads the value of a text.
///
/// # Errors
///
/// The mistake, for the model: a part of a sentence.
pub fn read(text: &str) -> Result<Value, String> {
    let strict = |text: &str| bounded::from_slice(text.as_bytes());
    if let Ok(value) = strict(text) {
        return Ok(value);
    }
    let body = single_fence(text).filter(|fence| fence.is_alone).map_or(text, |fence| fence.body);
    let escaped = escape_controls(body);
    strict(&escaped).map_err(|error| describe_mistake(&escaped, &error))
}

/// Reads the first object of a text that begins with one, perhaps in a code fence.
pub fn read_first_object(text: &str) -> Option<Map<String, Value>> {
    let body = single_fence(text).filter(|fence| fence.is_alone).map_or(text, |fence| fence.body);
    let escaped = escape_controls(body);
    bounded::reset_count();
    let mut deserializer = serde_json::Deserializer::from_str(&escaped);
    match bounded::read(&mut deserializer) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// Escapes raw control characters in strings.
fn escape_controls(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let (mut in_string, mut after_backslash) = (false, false);
    for c in text.chars() {
        if in_string && c < ' ' {
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
        in_string ^= c == '"' && !after_backslash;
        after_backslash = in_string && c == '\\' && !after_backslash;
    }
    escaped
}

/// Describes what is wrong at the place where the parser stopped; in its words if it is no common
/// mistake.
fn describe_mistake(text: &str, error: &serde_json::Error) -> String {
    let line_start: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let at = line_start + error.column().saturating_sub(1);
    let rest = text.get(at..).unwrap_or_default();
    let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let is_at_start = text.get(..at).is_some_and(|before| before.trim().is_empty());
    let message = error.to_string();
    if !text.contains('{') {
        return "the arguments must be a JSON object".into();
    }
    if error.classify() == Category::Eof {
        return format!("the JSON is not complete: `{}` is missing at the end", missing_end(text));
    }
    if rest.starts_with('\'') {
        return "the JSON has single quotes: names and strings are in double quotes".into();
    }
    if message.starts_with("trailing comma") {
        return "the JSON has a comma after the last value".into();
    }
    if message.starts_with("trailing characters") || is_at_start {
        return "there is text around the JSON: give the object alone".into();
    }
    if message.starts_with("key must be a string") && !word.is_empty() {
        let word = text::one_line(&word, limits::SUMMARY_CHARS);
        return format!("the name `{word}` in the JSON is not in double quotes");
    }
    match word.as_str() {
        "True" | "False" | "None" => {
            format!("the JSON has `{word}`: write true, false or null")
        }
        _ => message,
    }
}

/// The quotes and brackets that close what the text leaves open.
fn missing_end(text: &str) -> String {
    let mut open = Vec::new();
    let (mut in_string, mut after_backslash) = (false, false);
    for c in text.chars() {
        match c {
            '"' if !after_backslash => in_string = !in_string,
            '{' if !in_string => open.push('}'),
            '[' if !in_string => open.push(']'),
            '}' | ']' if !in_string => drop(open.pop()),
            _ => {}
        }
        after_backslash = in_string && c == '\\' && !after_backslash;
    }
    let quote = in_string.then_some('"');
    quote.into_iter().chain(open.into_iter().rev()).take(limits::SUMMARY_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inexact_json_is_read_or_its_mistake_is_named() {
        let object = json!({"a": "x\ny\t\"z\\", "b": [1]});
        let single = "the JSON has single quotes: names and strings are in double quotes";
        let around = "there is text around the JSON: give the object alone";
        let missing =
            |end: &str| format!("the JSON is not complete: `{end}` is missing at the end");
        let table: &[(&str, Result<Value, String>)] = &[
            ("{\"a\": \"x\ny\t\\\"z\\\\\", \"b\": [1]}", Ok(object.clone())),
            ("```json\n{\"a\": \"x\ny\t\\\"z\\\\\", \"b\": [1]}\n```\n", Ok(object)),
            ("```\n{}\n```", Ok(json!({}))),
            (r#"{"a": 1"#, Err(missing("}"))),
            (r#"{"a": ["x"#, Err(missing("\"]}"))),
            (r#"{"a": ["\""#, Err(missing("\"]}"))),
            (r#"{"a":"#, Err(missing("}"))),
            ("", Err("the arguments must be a JSON object".into())),
            ("{'a': 1}", Err(single.into())),
            ("{\"a\":\n 'b'}", Err(single.into())),
            (r#"{"a": 1,}"#, Err("the JSON has a comma after the last value".into())),
            (r"{a: 1}", Err("the name `a` in the JSON is not in double quotes".into())),
            (r#"{"a": True}"#, Err("the JSON has `True`: write true, false or null".into())),
            (r#"Here it is: {"a": 1}"#, Err(around.into())),
            (r#"{"a": 1} I hope so"#, Err(around.into())),
            ("{\"\u{e9}t\u{e9}", Err(missing("\"}"))),
            ("{\"a\": \u{fffd}\u{fffd}}", Err("expected value at line 1 column 7".into())),
            (r#"{"ä": "é" "b"}"#, Err("expected `,` or `}` at line 1 column 13".into())),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), *expected, "{text:?}");
        }
    }
}
