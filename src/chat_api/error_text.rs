//! Extraction of the message from an error reply: errors are JSON in a dozen forms, HTML pages
//! or plain text.

use std::borrow::Cow;

use serde_json::Value;

use crate::quirks::refusals::MESSAGE_FIELDS;
use base::limits;
use base::secret::{CutEdges, Secrets};
use base::text::one_line;

/// The server's message in one line: from its place in the JSON, else the start of the body.
pub(super) fn server_message(body: &[u8], secrets: &Secrets) -> String {
    let text = String::from_utf8_lossy(body);
    let text = Cow::from(text.trim_start_matches('\u{feff}'));
    let found = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|value| find_message(&value, 0, secrets));
    let looks_like_page = text.trim_start().starts_with('<');
    let text = match found {
        Some(message) => message,
        None if looks_like_page => page_message(&text),
        None => text.into_owned(),
    };
    // The body may be cut anywhere.
    let text = secrets.mask_cut(text.trim_end(), CutEdges::AFTER);
    one_line(&text, limits::QUOTED_BYTES)
}

/// Whether the value contains a message.
pub(super) fn has_message(value: &Value) -> bool {
    find_message(value, 0, &Secrets::default()).is_some()
}

fn find_message(value: &Value, depth: usize, secrets: &Secrets) -> Option<String> {
    // Deeper than any known form; this also limits the recursion.
    if depth > 4 {
        return None;
    }
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Array(items) => items.iter().find_map(|item| find_message(item, depth + 1, secrets)),
        Value::Object(fields) => MESSAGE_FIELDS
            .iter()
            .filter_map(|key| fields.get(*key))
            .find_map(|inner| find_message(inner, depth + 1, secrets))
            .map(|message| match provider_message(fields, secrets) {
                Some(raw) if !message.contains(&raw) => format!("{message}: {raw}"),
                _ => message,
            })
            .map(|message| {
                match fields.get("code").or_else(|| fields.get("type")).and_then(Value::as_str) {
                    Some(code) if !message.contains(code) => format!("{message} ({code})"),
                    _ => message,
                }
            }),
        _ => None,
    }
}

/// The message of the provider behind a gateway (`error.metadata.raw`).
fn provider_message(fields: &serde_json::Map<String, Value>, secrets: &Secrets) -> Option<String> {
    let raw = fields.get("metadata")?.get("raw")?.as_str()?;
    Some(server_message(raw.as_bytes(), secrets)).filter(|words| !words.is_empty())
}

/// The title of an HTML page, or the text of another document with tags.
fn page_message(page: &str) -> String {
    let start = page[..page.floor_char_boundary(limits::QUOTED_BYTES)].to_ascii_lowercase();
    let is_html = ["<!doctype html", "<html", "<head", "<title", "<body"]
        .iter()
        .any(|tag| start.contains(tag));
    if let Some(title) = page_title(page) {
        return title;
    }
    if is_html {
        return "an HTML page".into();
    }
    let mut text = String::new();
    for part in page.split('<') {
        // Each part after the first `<` starts with its tag.
        text.push_str(part.split_once('>').map_or("", |(_, text)| text));
        text.push(' ');
    }
    text
}

fn page_title(page: &str) -> Option<String> {
    let start = page.find("<title>")? + "<title>".len();
    let end = page[start..].find("</title>")? + start;
    Some(format!("an HTML page, “{}”", page[start..end].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_message_in_every_form() {
        let table = [
            (r#"{"error":{"message":"m","code":"c"}}"#, "m (c)"),
            (r#"[{"error":{"message":"m"}}]"#, "m"),
            (r#"{"error":"m"}"#, "m"),
            (r#"{"detail":"m"}"#, "m"),
            (r#"{"detail":[{"loc":["body"],"msg":"m"}]}"#, "m"),
            (r#"{"object":"error","message":"m"}"#, "m"),
            (r#"{"errors":["m"]}"#, "m"),
            (r#"{"errors":[{"code":7003,"message":"m"}],"result":null}"#, "m"),
            (r#"{"message":"m"}"#, "m"),
            (r#"{"object":"error","message":{"detail":[{"msg":"m"}]}}"#, "m"),
            (
                r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":\"m\"}"}}}"#,
                "Provider returned error: m",
            ),
            ("plain\n words ", "plain words"),
            ("<html><head><title> Sign in </title>", "an HTML page, “Sign in”"),
            ("<html>", "an HTML page"),
            (
                "<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code><Message>m</Message></Error>",
                "NoSuchBucket m",
            ),
            ("\u{feff}{\"error\":\"m\"}", "m"),
            ("", ""),
        ];
        for (body, expected) in table {
            let words = server_message(body.as_bytes(), &Secrets::default());
            assert_eq!(words, expected, "{body}");
        }
    }
}
