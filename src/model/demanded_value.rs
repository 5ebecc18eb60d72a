//! Refusals that name a field and the value that it must have: `set reasoning_effort to 'none'`,
//! `temperature must be 1`, `max_tokens: Field required`.

use serde_json::Value;

use crate::limits;
use crate::model::error_text::server_message;
use crate::model::quirks::demands::{
    AFTER_A_NUMBER, BEFORE_A_VALUE, FILL_WORDS, OWN_FIELDS, PLAIN_FIELDS, TOKEN_LIMITS,
    VALUE_PHRASES,
};
use crate::model::quirks::{changes, contains_any};
use crate::secret::Secrets;

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
    let lower = text.to_ascii_lowercase();
    let is_sent = |name: &str| sent.contains(&name);
    let is_field = |name: &str| {
        let is_name = name.contains('_') && !name.ends_with("_error");
        let is_known = param == Some(name) || is_sent(name) || PLAIN_FIELDS.contains(&name);
        (is_name || is_known) && !OWN_FIELDS.iter().any(|own| name.starts_with(own))
    };
    let places = VALUE_PHRASES.iter().flat_map(|(phrase, follows_name)| {
        let places = lower.match_indices(phrase);
        places.map(|(at, _)| (at, at + phrase.len(), *follows_name))
    });
    let mut named = places.filter_map(|(start, end, follows_name)| {
        let (value, is_choice) = read_value(&text[end..])?;
        let before = words(&lower[..start]).rfind(|word| !FILL_WORDS.contains(word));
        let name = match before.filter(|_| follows_name).or(param) {
            Some(name) => name,
            None => words(&lower).find(|name| is_field(name))?,
        };
        let is_meant = is_field(name) && param.is_none_or(|param| param == name);
        (is_meant && !(is_choice && is_sent(name))).then(|| (name.to_string(), value))
    });
    named.next().or_else(|| {
        let is_named = |name: &str| match param {
            Some(param) => param == name,
            None => words(&lower).any(|word| word == name),
        };
        let name = TOKEN_LIMITS.into_iter().find(|name| is_named(name) && !is_sent(name))?;
        let is_required = contains_any(&lower, &changes::MISSING_FIELD);
        is_required.then(|| (name.to_string(), limits::DEMANDED_TOKENS.into()))
    })
}

/// The words that may be names of fields, without those inside a path.
fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    let words = text.split(move |c| !is_part(c)).map(|word| word.trim_matches('.'));
    let words = words.map(|word| {
        let name = ["parameter.", "body."].into_iter().find_map(|start| word.strip_prefix(start));
        name.unwrap_or(word)
    });
    words.filter(|word| !word.is_empty() && !word.contains(['.', '[', ']']))
}

/// The value at the start of the text (a word in quotes, a number, `true` or `false`), and whether
/// another one follows.
fn read_value(text: &str) -> Option<(Value, bool)> {
    let mut text = text.trim_start_matches([' ', ':', '(', '[']);
    while let Some(rest) = BEFORE_A_VALUE.iter().find_map(|word| text.strip_prefix(word)) {
        text = rest.trim_start_matches([' ', ':', '(', '[']);
    }
    let (value, rest) = match text.chars().next()? {
        quote @ ('\'' | '"' | '`') => {
            let (value, rest) = text[1..].split_once(quote)?;
            let is_word = !value.is_empty() && !value.contains(char::is_whitespace);
            (is_word && value.len() <= limits::DEMANDED_BYTES).then(|| (value.into(), rest))?
        }
        _ => {
            let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-'));
            let word = &text[..end.unwrap_or(text.len())];
            let plain = word.trim_end_matches('.').to_ascii_lowercase();
            let value = serde_json::from_str(&plain).ok().filter(|value| *value != Value::Null)?;
            let rest = text[word.len()..].trim_start();
            let is_whole = rest.is_empty()
                || word.ends_with('.')
                || AFTER_A_NUMBER.iter().any(|after| rest.starts_with(after));
            is_whole.then_some((value, rest))?
        }
    };
    let next = rest.trim_start_matches([' ', ',', '|', '/']);
    let next = ["or ", "and "].iter().find_map(|word| next.strip_prefix(word)).unwrap_or(next);
    let is_value = |c: char| matches!(c, '\'' | '"' | '`') || c.is_ascii_digit();
    Some((value, next.len() < rest.len() && next.starts_with(is_value)))
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

    /// Messages, the `param` of the error, the optional fields that were sent, and what is demanded.
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
