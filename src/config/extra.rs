//! Fields and headers that the user adds to every request.

use serde_json::{Map, Value};

use crate::config::ConfigReader;
use base::error::Fault;
use base::secret::Secret;
use base::settings::{self, ValueSource};

/// Fields that the user cannot add, and how they are set instead.
const RESERVED_FIELDS: [(&str, &str); 4] = [
    ("model", "LLM_MODEL_NAME or --model sets it"),
    ("messages", "they are the conversation"),
    ("tools", "they are the program's tools"),
    ("stream", "--no-stream switches it off"),
];

/// Headers that describe the connection or the body; another value would break the request.
const RESERVED_HEADERS: [&str; 12] = [
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
        for (field, why) in RESERVED_FIELDS {
            if fields.contains_key(field) {
                let message = format!("{source} cannot set the field `{field}`: {why}");
                self.report(Fault::without_fix(message));
            }
        }
        fields
    }

    /// The headers, with names in lower case. A problem shows the header's name, never its
    /// value.
    pub(super) fn extra_headers(&mut self) -> Option<(Vec<(String, Secret)>, ValueSource)> {
        let (fields, source) = self.object(settings::LLM_EXTRA_HEADERS)?;
        let mut headers: Vec<(String, Secret)> = Vec::new();
        for (name, value) in fields {
            let lower = name.to_ascii_lowercase();
            let cause = match header_value(&lower, &value) {
                Ok(_) if headers.iter().any(|(other, _)| *other == lower) => "it is given twice",
                Ok(value) => {
                    headers.push((lower, value));
                    continue;
                }
                Err(cause) => cause,
            };
            let name: String = name.escape_debug().collect();
            let message = format!("{source} cannot set the header `{name}`: {cause}");
            self.report(Fault::without_fix(message));
        }
        Some((headers, source))
    }

    /// The setting as a JSON object. A problem names the position of the error without the
    /// text.
    fn object(&mut self, name: &'static str) -> Option<(Map<String, Value>, ValueSource)> {
        let (text, source) = self.trimmed_text(name)?;
        let fault = match serde_json::from_str(&text) {
            Ok(Value::Object(fields)) => return Some((fields, source)),
            Ok(_) => Fault::without_fix(format!(
                "{source} is not a JSON object, such as {{\"name\": \"value\"}}"
            )),
            Err(error) => Fault::new(
                format!("{source} is not valid JSON: {error}"),
                "correct it; in .env, put the whole value in single quotes",
            ),
        };
        self.report(fault);
        None
    }
}

fn header_value(name: &str, value: &Value) -> Result<Secret, &'static str> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("this is not a valid header name");
    }
    if RESERVED_HEADERS.contains(&name) {
        return Err("the program sets it itself");
    }
    if name == "proxy-authorization" {
        return Err("the login of a proxy belongs in the proxy's address");
    }
    let text = match value {
        Value::String(text) => text.trim().to_string(),
        Value::Number(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        _ => return Err("its value is not text"),
    };
    let value = Secret::new(text).ok_or("its value is empty")?;
    if !value.is_sendable() {
        return Err(
            "its value holds a line break or another character that is invalid in a header",
        );
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
            ("x-a", json!(null), Err("not text")),
            ("x-a", json!(["a"]), Err("not text")),
            ("x a", json!("a"), Err("not a valid header name")),
            ("x:a", json!("a"), Err("not a valid header name")),
            ("", json!("a"), Err("not a valid header name")),
            ("\u{fc}", json!("a"), Err("not a valid header name")),
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
