//! What an endpoint has turned out not to take, and what it is sent instead.
//!
//! There is no table of providers. When an endpoint refuses a request and
//! names a field that was sent, the field is left out (or sent in its other
//! form) once, and stays so for the rest of the process. The one field that is
//! added on demand is the tool's name in its messages. The model, the messages
//! and the tools are never touched.

use serde_json::{Map, Value};

use crate::model::tool_name;

/// How the content of a message that only calls tools is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EmptyContent {
    /// `null`, as the reference has it.
    #[default]
    Null,
    /// `""`, for those who want a string.
    Text,
}

/// What a request held that an endpoint may refuse.
#[derive(Debug)]
pub(super) struct SentFeatures<'s> {
    /// The names of all fields that may be left out.
    pub optional: Vec<&'s str>,
    /// The user's own among them.
    pub extra: &'s Map<String, Value>,
    /// Whether a message of calls alone was among those sent.
    pub has_empty_content: bool,
    /// Where the tools' messages stand among those sent.
    pub tool_messages: Vec<usize>,
}

/// What is known of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    without: Vec<String>,
    renamed: Vec<(String, &'static str)>,
    empty_content: EmptyContent,
    has_toggled: bool,
    names_tools: bool,
    is_blind: bool,
}

/// Two names for the same thing: reasoning models take only the other one.
const SYNONYMS: [(&str, &str); 2] =
    [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")];

/// Names so short or so common that they count only in quotes or as `param`.
const PLAIN_NAME_BYTES: usize = 6;

/// How endpoints say that they do not know a field, or do not take it.
const UNKNOWN: [&str; 16] = [
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

/// How they say that they know a field, but not this value.
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

/// How they say that a content has the wrong form.
const WRONG_FORM: [&str; 9] =
    ["null", "nil", "none", "string", "type", "required", "empty", "missing", "expected"];

/// How they say that its words are wrong, which no other form will change.
const WRONG_WORDS: [&str; 4] = ["management", "policy", "filter", "safety"];

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

impl Dialect {
    /// Whether the field may be sent.
    pub(super) fn takes(&self, name: &str) -> bool {
        !self.without.iter().any(|other| other == name)
    }

    /// The name under which the field is sent; `None`: it is not.
    pub(super) fn name_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let renamed = self.renamed.iter().find(|(from, _)| from == name);
        self.takes(name).then(|| renamed.map_or(name, |(_, to)| *to))
    }

    /// Nothing is known but whether pictures are to be shown at all.
    pub(super) fn new(shows_pictures: bool) -> Dialect {
        Dialect { is_blind: !shows_pictures, ..Dialect::default() }
    }

    /// How an empty content is written.
    pub(super) fn empty_content(&self) -> EmptyContent {
        self.empty_content
    }

    /// Whether a tool's message carries the tool's name.
    pub(super) fn names_tools(&self) -> bool {
        self.names_tools
    }

    /// Whether the endpoint has refused pictures, or must not be shown any.
    pub(super) fn is_blind(&self) -> bool {
        self.is_blind
    }

    /// From now on it has.
    pub(super) fn turn_blind(&mut self) {
        self.is_blind = true;
    }

    /// What to change after a refusal, and the change in words; `None` if the
    /// refusal names nothing that can be changed.
    pub(super) fn learn(
        mut self,
        refusal: &[u8],
        sent: &SentFeatures<'_>,
    ) -> Option<(Dialect, String)> {
        let text = String::from_utf8_lossy(refusal).to_lowercase();
        if !self.names_tools && tool_name::is_wanted(&text, &sent.tool_messages) {
            self.names_tools = true;
            return Some((self, "the tool's name is sent with its results".into()));
        }
        let params = params(refusal);
        let mention = |name: &str| mention(&text, &params, name);
        // What is the user's goes only where the endpoint does not take it: a
        // wrong value is the user's to mend.
        let is_unknown = has(&text, &UNKNOWN) || (!params.is_empty() && !has(&text, &WRONG_VALUE));
        let is_due = |name: &&&str| is_unknown || !sent.extra.contains_key(**name);
        // What is named first is what is complained of; lists of allowed names come later.
        let field = sent
            .optional
            .iter()
            .filter(is_due)
            .filter_map(|name| {
                let written = self.name_of(name)?;
                Some((mention(written)?, *name))
            })
            .min();
        let is_form = has(&text, &WRONG_FORM) && !has(&text, &WRONG_WORDS);
        let content =
            mention("content").filter(|_| is_form && sent.has_empty_content && !self.has_toggled);
        match (field, content) {
            (Some((at, name)), content) if content.is_none_or(|other| at <= other) => {
                let change = self.leave_out(name, sent);
                Some((self, change))
            }
            (_, Some(_)) => {
                self.has_toggled = true;
                self.empty_content = EmptyContent::Text;
                Some((self, "an empty `content` is sent as text".into()))
            }
            _ => None,
        }
    }

    fn leave_out(&mut self, name: &str, sent: &SentFeatures<'_>) -> String {
        let mut synonyms = SYNONYMS.iter();
        let synonym = synonyms.find(|(from, to)| *from == name && !sent.extra.contains_key(*to));
        let is_renamed = self.renamed.iter().any(|(from, _)| from == name);
        match synonym {
            Some((_, other)) if !is_renamed => {
                self.renamed.push((name.into(), other));
                format!("`{name}` is sent as `{other}`")
            }
            _ => {
                self.without.push(name.into());
                format!("`{name}` is left out")
            }
        }
    }
}

/// The fields that a refusal names where errors have a place for that:
/// `error.param`, and `loc` of `FastAPI`'s `detail`.
fn params(refusal: &[u8]) -> Vec<String> {
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

/// Where the text names the field; 0 where an error says so in its own place.
/// An error that has such a place means nothing else.
fn mention(text: &str, params: &[String], name: &str) -> Option<usize> {
    if !params.is_empty() {
        return params.iter().any(|param| param == name).then_some(0);
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_quote = |c: char| matches!(c, '\'' | '"' | '`' | '\\' | '“' | '‘');
    text.match_indices(name).map(|(at, _)| at).find(|&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        let is_alone = !before.is_some_and(is_word) && !after.is_some_and(is_word);
        let is_quoted = before.is_some_and(is_quote) && after.is_some_and(is_quote);
        let label = text[..at].trim_end_matches([':', ' ']);
        let is_labelled = LABELS.iter().any(|word| label.ends_with(word));
        let is_name =
            is_quoted || is_labelled || name.len() >= PLAIN_NAME_BYTES || name.contains('_');
        is_alone && is_name
    })
}

/// What stands before a field's name in a refusal of it.
const LABELS: [&str; 6] = ["parameter", "field", "argument", "property", "supplied", "key"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_where_a_refusal_names_it() {
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
            let mentioned = mention(&text, &params(body.as_bytes()), name);
            assert_eq!(mentioned.is_some(), found, "{body}");
        }
    }
}
