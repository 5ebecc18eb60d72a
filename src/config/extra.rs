//! What the user adds to every request: fields of its body, headers.

use serde_json::{Map, Value};

use crate::config::ConfigReader;
use crate::secret::Secret;
use crate::settings::{self, ValueSource};

/// Fields that are not added, and how they are set instead.
const OWN_FIELDS: [(&str, &str); 4] = [
    ("model", "LLM_MODEL_NAME or --model sets it"),
    ("messages", "they are the conversation"),
    ("tools", "they are what the skills offer"),
    ("stream", "--no-stream switches it off"),
];

/// Headers that describe the connection or the body: another value breaks them.
const OWN_HEADERS: [&str; 12] = [
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl ConfigReader<'_> {
    pub(super) fn extra_body(&mut self) -> Map<String, Value> {
        let Some((fields, source)) = self.object(settings::LLM_EXTRA_BODY) else {
            return Map::new();
        };
        for (field, why) in OWN_FIELDS {
            if fields.contains_key(field) {
                let problem = format!("{source} cannot set the field `{field}`: {why}");
                self.problems.push(problem);
            }
        }
        fields
    }

    /// The headers, names in lower case. What is wrong with one is a problem
    /// that shows its name and never its value.
    pub(super) fn extra_headers(&mut self) -> Option<(Vec<(String, Secret)>, ValueSource)> {
        let (fields, source) = self.object(settings::LLM_EXTRA_HEADERS)?;
        let mut headers: Vec<(String, Secret)> = Vec::new();
        for (name, value) in fields {
            let lower = name.to_ascii_lowercase();
            let fault = match header_value(&lower, &value) {
                Ok(_) if headers.iter().any(|(other, _)| *other == lower) => "it is given twice",
                Ok(value) => {
                    headers.push((lower, value));
                    continue;
                }
                Err(fault) => fault,
            };
            let name: String = name.escape_debug().collect();
            let problem = format!("{source} cannot set the header `{name}`: {fault}");
            self.problems.push(problem);
        }
        Some((headers, source))
    }

    /// The setting as a JSON object; what is wrong with it is told by its
    /// place, without its text.
    fn object(&mut self, name: &'static str) -> Option<(Map<String, Value>, ValueSource)> {
        let (text, source) = self.text(name)?;
        let fault = match serde_json::from_str(&text) {
            Ok(Value::Object(fields)) => return Some((fields, source)),
            Ok(_) => "is no JSON object, such as {\"name\": \"value\"}".to_string(),
            Err(error) => {
                format!("is no JSON: {error} (in .env, put the whole between single quotes)")
            }
        };
        self.problems.push(format!("{source} {fault}"));
        None
    }
}

fn header_value(name: &str, value: &Value) -> Result<Secret, &'static str> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("this is no name of a header");
    }
    if OWN_HEADERS.contains(&name) {
        return Err("the program sets it itself");
    }
    if name == "proxy-authorization" {
        return Err("a proxy's login stands in its address");
    }
    let text = match value {
        Value::String(text) => text.trim().to_string(),
        Value::Number(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        _ => return Err("its value is no text"),
    };
    let value = Secret::new(text).ok_or("its value is empty")?;
    if !value.is_sendable() {
        return Err("its value holds a line break or another character that no header carries");
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn headers_are_checked_before_they_are_sent() {
        let table = [
            ("x-a", json!("v w"), Ok("v w")),
            ("x-a", json!(" v\n"), Ok("v")),
            ("x-a", json!(12.5), Ok("12.5")),
            ("x-a", json!(true), Ok("true")),
            ("authorization", json!("Bearer x"), Ok("Bearer x")),
            ("x-a", json!("a\r\nHost: b"), Err("line break")),
            ("x-a", json!("a\tb"), Err("line break")),
            ("x-a", json!("\u{e9}"), Err("line break")),
            ("x-a", json!("  "), Err("empty")),
            ("x-a", json!(null), Err("no text")),
            ("x-a", json!(["a"]), Err("no text")),
            ("x a", json!("a"), Err("no name")),
            ("x:a", json!("a"), Err("no name")),
            ("", json!("a"), Err("no name")),
            ("\u{fc}", json!("a"), Err("no name")),
            ("host", json!("a"), Err("itself")),
            ("content-length", json!(1), Err("itself")),
            ("transfer-encoding", json!("a"), Err("itself")),
            ("content-type", json!("a"), Err("itself")),
            ("connection", json!("a"), Err("itself")),
            ("proxy-authorization", json!("a"), Err("login")),
        ];
        for (name, value, expected) in table {
            match (header_value(name, &value), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.reveal(), expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{name}: {found}"),
                (found, expected) => panic!("{name} {value}: {found:?}, not {expected:?}"),
            }
        }
    }
}
