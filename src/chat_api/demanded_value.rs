//! Refusals that name a field and the value that it must have: `set reasoning_effort to 'none'`,
//! `temperature must be 1`, `max_tokens: Field required`.

use regex_lite::Regex;
use serde_json::Value;

use crate::error_text::server_message;
use crate::quirks::changes::{self, DEMANDS, NAME, OWN_FIELDS, PLAIN_FIELDS, TOKEN_LIMITS, VALUE};
use crate::quirks::contains_any;
use base::limits;
use base::secret::Secrets;

/// The field and the value that a refusal demands. `params` are the names in the error's own place
/// for them. Where it names several values, a field that was sent is not changed to one of them.
pub(super) fn find(refusal: &[u8], params: &[String], sent: &[&str]) -> Option<(String, Value)> {
    let mut params = params.iter().filter(|name| *name != "body" && !name.ends_with("_error"));
    let param = match (params.next(), params.next()) {
        (param, None) => param.map(String::as_str),
        // A path to a part of a message.
        _ => return None,
    };
    let text = server_message(refusal, &Secrets::default());
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
    let words = text.split(|c| !is_part(c)).map(|word| word.trim_matches('.'));
    let words = words.map(|word| word.trim_start_matches("body."));
    let is_field = |name: &&str| {
        let is_name = name.contains('_') && !name.ends_with("_error");
        let is_known = param == Some(name) || sent.contains(name) || PLAIN_FIELDS.contains(name);
        let is_own = OWN_FIELDS.iter().any(|own| name.starts_with(own));
        (is_name || is_known) && !is_own && !name.contains(['.', '['])
    };
    let demand = |found: regex_lite::Captures<'_>| {
        let name = match found.name("name").map(|name| &text[name.range()]) {
            Some(name) => Some(name).filter(is_field).or(param),
            None => param.or_else(|| words.clone().find(is_field)),
        };
        let name = name.filter(is_field).filter(|name| param.is_none_or(|it| it == *name))?;
        let value = match (found.name("word"), found.name("plain")) {
            (Some(word), _) => word.as_str().into(),
            (None, plain) => serde_json::from_str(&plain?.as_str().to_ascii_lowercase()).ok()?,
        };
        let is_choice = found.name("more").is_some() && sent.contains(&name);
        (!is_choice).then(|| (name.to_string(), value))
    };
    let named = DEMANDS.iter().find_map(|demanded| {
        let pattern = format!("(?i){}", demanded.replace("NAME", NAME).replace("VALUE", VALUE));
        Regex::new(&pattern).ok()?.captures_iter(&text).find_map(demand)
    });
    named.or_else(|| {
        let is_named =
            |name: &&str| param.map_or(words.clone().any(|it| it == *name), |it| it == *name);
        let name = TOKEN_LIMITS.into_iter().filter(|name| !sent.contains(name)).find(is_named)?;
        contains_any(&text.to_ascii_lowercase(), &changes::MISSING_FIELD)
            .then(|| (name.to_string(), limits::DEMANDED_TOKENS.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn demanded(message: &str, param: Option<&str>, fields: &[&'static str]) -> Option<Value> {
        let body = json!({"error": {"message": message, "param": param}}).to_string();
        let params: Vec<String> =
            param.iter().flat_map(|it| it.split('.')).map(str::to_string).collect();
        find(body.as_bytes(), &params, fields).map(|(name, value)| json!({name: value}))
    }

    /// Messages, the `param` of the error, the optional fields that were sent, and what is
    /// demanded.
    type Demand = (&'static str, Option<&'static str>, &'static [&'static str], &'static str);

    const DEMANDS: &[Demand] = &[
        (
            "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            Some("reasoning_effort"),
            &[],
            r#"{"reasoning_effort":"none"}"#,
        ),
        ("set `reasoning_effort` to \"None\"", None, &[], r#"{"reasoning_effort":"None"}"#),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
            Some("temperature"),
            &["temperature"],
            r#"{"temperature":1}"#,
        ),
        (
            "invalid temperature: only 0.6 is allowed for this model",
            None,
            &[],
            r#"{"temperature":0.6}"#,
        ),
        ("top_p must be 0.95.", None, &[], r#"{"top_p":0.95}"#),
        (
            "`temperature` may only be set to 1 when thinking is enabled.",
            None,
            &[],
            r#"{"temperature":1}"#,
        ),
        ("The temperature parameter must be 1", None, &[], r#"{"temperature":1}"#),
        (
            "parameter.enable_thinking must be set to false for non-streaming calls",
            None,
            &[],
            r#"{"enable_thinking":false}"#,
        ),
        (
            "Unsupported value: 'reasoning_effort' does not support 'x'. Supported values are: 'low', 'high'.",
            None,
            &[],
            r#"{"reasoning_effort":"low"}"#,
        ),
        ("seed must be 1", None, &["seed"], r#"{"seed":1}"#),
        ("top_p must be equal to 1 (got 2)", None, &[], r#"{"top_p":1}"#),
        ("top_p must be exactly 1.0", None, &[], r#"{"top_p":1.0}"#),
        ("Input should be 'low' or 'high'", Some("verbosity"), &[], r#"{"verbosity":"low"}"#),
        ("thinking must be one of `off`, `on`", None, &[], r#"{"thinking":"off"}"#),
        ("verbosity: allowed values are ['x']", None, &[], r#"{"verbosity":"x"}"#),
        (
            "Invalid verbosity, valid values are: 'y'",
            Some("verbosity"),
            &[],
            r#"{"verbosity":"y"}"#,
        ),
        ("max_tokens: Field required", None, &[], r#"{"max_tokens":4096}"#),
        (
            "body.max_tokens: Field required",
            Some("validation_error"),
            &[],
            r#"{"max_tokens":4096}"#,
        ),
        ("'max_tokens' is a required property", None, &[], r#"{"max_tokens":4096}"#),
        ("missing field `max_tokens` at line 1", None, &[], r#"{"max_tokens":4096}"#),
        (
            "Missing required parameter: 'max_completion_tokens'.",
            Some("max_completion_tokens"),
            &[],
            r#"{"max_completion_tokens":4096}"#,
        ),
    ];

    #[test]
    fn takes_the_value_that_a_refusal_names() {
        for (message, param, fields, expected) in DEMANDS {
            let demanded = demanded(message, *param, fields).map(|fields| fields.to_string());
            assert_eq!(demanded.as_deref(), Some(*expected), "{message}");
        }
    }

    #[test]
    fn guesses_no_value() {
        for (message, param, fields) in [
            ("temperature must be between 0 and 2", Some("temperature"), &["temperature"][..]),
            ("temperature must be 0 or greater", None, &["temperature"]),
            ("max_tokens must be 1-4096", None, &["max_tokens"]),
            ("max_tokens must be a number", None, &["max_tokens"]),
            ("max_tokens must be less than or equal to 4096", None, &[]),
            // The user's value is one of several: another one is not chosen for the user.
            ("Supported values are: 'low', 'high'.", Some("verbosity"), &["verbosity"]),
            ("the model must be 'other'", None, &[]),
            ("tool_choice must be 'auto'", None, &[]),
            ("'messages.1.tool_calls.0.type' must be 'function'", None, &[]),
            ("the role must be 'user'", Some("messages.1.role"), &[]),
            ("your account must be 18", None, &[]),
            ("limited to 5 for this account, see max_tokens", None, &[]),
            ("max_tokens is required", None, &["max_tokens"]),
            ("content: Field required", Some("content"), &[]),
        ] {
            assert_eq!(demanded(message, param, fields), None, "{message}");
        }
    }
}
