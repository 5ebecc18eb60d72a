//! What an endpoint does not accept, and what is sent instead.
//!
//! There is no table of providers. When an endpoint refuses a request and names a field that
//! was sent, that field is omitted (or sent under its other name) for the rest of the process.
//! The one field that is added on demand is the tool's name in tool messages. The model, the
//! messages and the tools are never changed.

use serde_json::{Map, Value};

use crate::model::tool_name;

/// How the empty content of a message with tool calls is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EmptyContent {
    /// `null`, as in the OpenAI reference.
    #[default]
    Null,
    /// `""`, for endpoints that require a string.
    Text,
}

/// The parts of a sent request that an endpoint may refuse.
#[derive(Debug)]
pub(super) struct SentFeatures<'s> {
    /// Names of all fields that may be omitted.
    pub optional_fields: Vec<&'s str>,
    /// The user's own fields (`LLM_EXTRA_BODY`), which are among them.
    pub extra_fields: &'s Map<String, Value>,
    /// Whether a message with tool calls and no text was sent.
    pub has_empty_content: bool,
    /// Positions of the tool messages among the messages sent.
    pub tool_message_positions: Vec<usize>,
}

/// What is known about an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    omitted: Vec<String>,
    renamed: Vec<(String, &'static str)>,
    empty_content: EmptyContent,
    has_changed_content: bool,
    sends_tool_name: bool,
    refuses_images: bool,
}

/// Two names of one field, in both directions: some models accept only one of them.
const ALTERNATIVE_NAMES: [(&str, &str); 2] =
    [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")];

/// Shorter names are also common words: they count only in quotes or as `param`.
const DISTINCTIVE_NAME_BYTES: usize = 6;

/// Phrases for a field that is unknown or not supported.
const UNKNOWN_FIELD: [&str; 16] = [
    "unsupported",
    "not supported",
    "not support",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra_forbidden",
    "extra field",
    "additional propert",
    "cannot find field",
    "no such field",
    "not available",
    "deprecated",
    " instead",
];

/// Phrases for a known field with a wrong value.
const WRONG_VALUE: [&str; 12] = [
    "above max",
    "below min",
    "maximum",
    "minimum",
    "too large",
    "too high",
    "too low",
    "too small",
    "between",
    "out of range",
    "invalid schema",
    "must contain",
];

/// Phrases for a `content` of the wrong type.
const WRONG_CONTENT_TYPE: [&str; 9] =
    ["null", "nil", "none", "string", "type", "required", "empty", "missing", "expected"];

/// Phrases for text that a content policy rejects: another type would not help.
const CONTENT_POLICY: [&str; 4] = ["management", "policy", "filter", "safety"];

fn contains_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

impl Dialect {
    /// Whether the field may be sent.
    pub(super) fn accepts(&self, name: &str) -> bool {
        !self.omitted.iter().any(|other| other == name)
    }

    /// The name under which the field is sent, or `None` if it is omitted.
    pub(super) fn sent_name<'n>(&self, name: &'n str) -> Option<&'n str> {
        let renamed = self.renamed.iter().find(|(from, _)| from == name);
        self.accepts(name).then(|| renamed.map_or(name, |(_, to)| *to))
    }

    /// Creates the dialect of a new endpoint: everything is accepted, except perhaps images.
    pub(super) fn new(accepts_images: bool) -> Dialect {
        Dialect { refuses_images: !accepts_images, ..Dialect::default() }
    }

    /// How an empty content is written.
    pub(super) fn empty_content(&self) -> EmptyContent {
        self.empty_content
    }

    /// Whether tool messages carry the tool's name.
    pub(super) fn sends_tool_name(&self) -> bool {
        self.sends_tool_name
    }

    /// Whether the endpoint has refused images, or none may be sent to it.
    pub(super) fn refuses_images(&self) -> bool {
        self.refuses_images
    }

    /// Records that the endpoint refuses images.
    pub(super) fn set_refuses_images(&mut self) {
        self.refuses_images = true;
    }

    /// The dialect changed after a refusal, with the change in words; `None` if the refusal
    /// names nothing that can be changed.
    pub(super) fn learn_from_refusal(
        mut self,
        refusal: &[u8],
        sent: &SentFeatures<'_>,
    ) -> Option<(Dialect, String)> {
        let text = String::from_utf8_lossy(refusal).to_lowercase();
        if !self.sends_tool_name && tool_name::is_requested(&text, &sent.tool_message_positions) {
            self.sends_tool_name = true;
            return Some((self, "tool messages now carry the tool's name".into()));
        }
        let params = named_params(refusal);
        let mention = |name: &str| mention_position(&text, &params, name);
        // A field of the user is omitted only if it is unknown: a wrong value is for the user
        // to correct.
        let is_unknown = contains_any(&text, &UNKNOWN_FIELD)
            || (!params.is_empty() && !contains_any(&text, &WRONG_VALUE));
        let may_change = |name: &&&str| is_unknown || !sent.extra_fields.contains_key(**name);
        // The field that is named first is the cause; lists of allowed names follow it.
        let field = sent
            .optional_fields
            .iter()
            .filter(may_change)
            .filter_map(|name| {
                let written = self.sent_name(name)?;
                Some((mention(written)?, *name))
            })
            .min();
        let is_wrong_type =
            contains_any(&text, &WRONG_CONTENT_TYPE) && !contains_any(&text, &CONTENT_POLICY);
        let content = mention("content")
            .filter(|_| is_wrong_type && sent.has_empty_content && !self.has_changed_content);
        match (field, content) {
            (Some((at, name)), content) if content.is_none_or(|other| at <= other) => {
                let change = self.omit(name, sent);
                Some((self, change))
            }
            (_, Some(_)) => {
                self.has_changed_content = true;
                self.empty_content = EmptyContent::Text;
                Some((self, "an empty `content` is sent as a string".into()))
            }
            _ => None,
        }
    }

    fn omit(&mut self, name: &str, sent: &SentFeatures<'_>) -> String {
        let mut synonyms = ALTERNATIVE_NAMES.iter();
        let synonym =
            synonyms.find(|(from, to)| *from == name && !sent.extra_fields.contains_key(*to));
        let is_renamed = self.renamed.iter().any(|(from, _)| from == name);
        match synonym {
            Some((_, other)) if !is_renamed => {
                self.renamed.push((name.into(), other));
                format!("`{name}` is sent as `{other}`")
            }
            _ => {
                self.omitted.push(name.into());
                format!("`{name}` is left out")
            }
        }
    }
}

/// Field names in an error's own place for them: `error.param`, and `loc` in the `detail` of
/// `FastAPI`.
fn named_params(refusal: &[u8]) -> Vec<String> {
    let Ok(value) = serde_json::from_slice::<Value>(refusal) else {
        return Vec::new();
    };
    let error = value.get(0).unwrap_or(&value);
    let param = [&error["error"]["param"], &error["param"]];
    let locations = error["detail"].as_array().into_iter().flatten();
    let locations = locations.filter_map(|item| item["loc"].as_array()).flatten();
    param
        .into_iter()
        .chain(locations)
        .filter_map(Value::as_str)
        // `messages.2.content`, `messages[1].tool_calls[0].extra_content`
        .flat_map(|path| path.split(['.', '[', ']']))
        .filter(|part| !part.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Position in the text where the field is named. With `params`, only those count, at position
/// 0.
fn mention_position(text: &str, params: &[String], name: &str) -> Option<usize> {
    if !params.is_empty() {
        return params.iter().any(|param| param == name).then_some(0);
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_quote = |c: char| matches!(c, '\'' | '"' | '`' | '\\' | '“' | '‘');
    text.match_indices(name).map(|(at, _)| at).find(|&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        let is_whole_word = !before.is_some_and(is_word) && !after.is_some_and(is_word);
        let is_quoted = before.is_some_and(is_quote) && after.is_some_and(is_quote);
        let label = text[..at].trim_end_matches([':', ' ']);
        let is_labelled = LABELS.iter().any(|word| label.ends_with(word));
        let is_name =
            is_quoted || is_labelled || name.len() >= DISTINCTIVE_NAME_BYTES || name.contains('_');
        is_whole_word && is_name
    })
}

/// Words before a field's name in a refusal.
const LABELS: [&str; 6] = ["parameter", "field", "argument", "property", "supplied", "key"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_field_that_a_refusal_names() {
        let table = [
            (r#"{"error":{"message":"no","param":"seed"}}"#, "seed", true),
            (r#"{"detail":[{"loc":["body","seed"],"msg":"extra"}]}"#, "seed", true),
            (r#"{"error":{"param":"messages[1].reasoning_content"}}"#, "reasoning_content", true),
            ("Unknown name \\\"seed\\\": Cannot find field", "seed", true),
            ("property 'messages.2.reasoning' is unsupported", "reasoning", true),
            ("the user said something", "user", false),
            ("stream_options is unknown", "stream", false),
            ("temperature is not supported", "temperature", true),
        ];
        for (body, name, found) in table {
            let text = body.to_lowercase();
            let mentioned = mention_position(&text, &named_params(body.as_bytes()), name);
            assert_eq!(mentioned.is_some(), found, "{body}");
        }
    }
}
