//! Features refused by an endpoint, and what is sent instead.
//!
//! There is no table of providers. When an endpoint refuses a request, the first rule of
//! [`RULES`] that applies changes requests for the rest of the process, each field once. What is
//! added on demand is the tool's name in tool messages, and fields whose value a refusal names. The
//! model and the text of messages are never changed; tools that are refused are described instead.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::ToolCalling;
use crate::demanded_value;
use crate::quirks::refusals::{self, Meaning};
use crate::quirks::{changes, contains_any};
use crate::request_failure::ErrorResponse;
use crate::tool_name;

/// The parts of a sent request that an endpoint may refuse.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about a request")]
pub(super) struct SentFeatures<'s> {
    /// Names of all fields that may be omitted.
    pub optional_fields: Vec<&'s str>,
    /// The user's own fields (`LLM_EXTRA_BODY`), which are among them.
    pub extra_fields: &'s Map<String, Value>,
    /// Whether a message with tool calls and no text was sent.
    pub has_empty_content: bool,
    /// Positions of the tool messages among the messages sent.
    pub tool_message_positions: Vec<usize>,
    /// Whether images were sent.
    pub has_images: bool,
    /// Whether tools were sent in their own field.
    pub has_tools: bool,
    /// Whether the reply was constrained.
    pub has_response_format: bool,
    /// Whether a stream was requested.
    pub is_stream: bool,
}

/// Known demands of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    changes: Vec<DialectChange>,
    /// Whether tools must be sent in their own field.
    needs_native_tools: bool,
}

/// A change of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DialectChange {
    /// This field is omitted.
    Omit(String),
    /// This field is sent under another name.
    Rename(String, &'static str),
    /// This field has this value, which the endpoint demands.
    Set(String, Value),
    /// The empty content of a message with tool calls is `""`: some endpoints require a string.
    /// Otherwise it is `null`, as in the `OpenAI` reference.
    SendEmptyText,
    /// Tool messages carry the tool's name.
    SendToolName,
    /// No images are sent, except those of the current question.
    OmitImages,
    /// Replies are requested as a whole.
    OmitStream,
    /// Tools are described in the system message, and calls and results are text.
    DescribeTools,
    /// Replies are constrained to JSON objects by their schema, unless tools are described.
    ConstrainReplies,
    /// They are constrained to any JSON object.
    OmitSchema,
}

impl fmt::Display for DialectChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DialectChange::Omit(name) => write!(f, "`{name}` is left out"),
            DialectChange::Rename(name, other) => write!(f, "`{name}` is sent as `{other}`"),
            DialectChange::Set(name, value) => write!(f, "`{name}` is sent as {value}"),
            DialectChange::SendEmptyText => f.write_str("an empty `content` is sent as a string"),
            DialectChange::SendToolName => f.write_str("tool messages now carry the tool's name"),
            DialectChange::OmitImages => f.write_str("images are left out"),
            DialectChange::OmitStream => f.write_str("the request is sent without streaming"),
            DialectChange::DescribeTools => {
                f.write_str("the tools are described in the system message")
            }
            DialectChange::ConstrainReplies => f.write_str("replies have a schema"),
            DialectChange::OmitSchema => f.write_str("replies are JSON objects without a schema"),
        }
    }
}

/// The change that a refusal of this request needs, if the rule applies to it.
type RefusalRule = fn(&Dialect, &ErrorResponse, &SentFeatures<'_>) -> Option<DialectChange>;

/// The first rule that applies counts.
const RULES: [RefusalRule; 8] = [
    schema_refused,
    tools_refused,
    images_refused,
    tool_name_required,
    field_refused,
    value_demanded,
    text_expected,
    stream_refused,
];

impl Dialect {
    /// The dialect of a new endpoint: everything is accepted, except what the user rules out.
    pub(super) fn new(accepts_images: bool, tools: ToolCalling) -> Dialect {
        let images = (!accepts_images).then_some(DialectChange::OmitImages);
        let calls = match tools {
            ToolCalling::Prompted => Some(DialectChange::DescribeTools),
            ToolCalling::Schema => Some(DialectChange::ConstrainReplies),
            ToolCalling::Auto | ToolCalling::Native => None,
        };
        Dialect {
            changes: images.into_iter().chain(calls).collect(),
            needs_native_tools: tools == ToolCalling::Native,
        }
    }

    /// Whether requests have this change.
    pub(super) fn has(&self, change: &DialectChange) -> bool {
        self.changes.contains(change)
    }

    /// How the model calls tools, if requests have a change of it.
    pub(super) fn tool_calling(&self) -> Option<ToolCalling> {
        if self.has(&DialectChange::DescribeTools) {
            return Some(ToolCalling::Prompted);
        }
        self.has(&DialectChange::ConstrainReplies).then_some(ToolCalling::Schema)
    }

    /// The same with constrained replies.
    pub(super) fn constrained(&self) -> Dialect {
        let mut changes = self.changes.clone();
        changes.push(DialectChange::ConstrainReplies);
        Dialect { changes, ..*self }
    }

    /// Reverts a change that has not helped.
    pub(super) fn revert(&mut self, change: &DialectChange) {
        self.changes.retain(|other| other != change);
    }

    /// Whether the field may be sent.
    pub(super) fn accepts(&self, name: &str) -> bool {
        !self.changes.iter().any(|change| matches!(change, DialectChange::Omit(it) if it == name))
    }

    /// The fields and values that the endpoint demands; the last one of a name counts.
    pub(super) fn demanded_fields(&self) -> BTreeMap<&String, &Value> {
        let set = self.changes.iter().filter_map(|change| match change {
            DialectChange::Set(name, value) => Some((name, value)),
            _ => None,
        });
        set.filter(|(name, _)| self.accepts(name)).collect()
    }

    /// The name under which the field is sent, or `None` if it is omitted.
    pub(super) fn sent_name<'n>(&self, name: &'n str) -> Option<&'n str> {
        self.accepts(name).then(|| self.other_name(name).unwrap_or(name))
    }

    fn other_name(&self, name: &str) -> Option<&'static str> {
        self.changes.iter().find_map(|change| match change {
            DialectChange::Rename(from, to) if from == name => Some(*to),
            _ => None,
        })
    }

    /// Changes the dialect after a refusal; `None` if nothing that was sent can be changed.
    pub(super) fn learn(
        &mut self,
        refusal: &ErrorResponse,
        sent: &SentFeatures<'_>,
    ) -> Option<DialectChange> {
        let change = RULES.iter().find_map(|rule| rule(self, refusal, sent))?;
        if let DialectChange::Set(name, _) = &change {
            self.revert(&DialectChange::Omit(name.clone()));
        }
        if !self.has(&change) {
            self.changes.push(change.clone());
        }
        Some(change)
    }
}

/// Whether the status is one for a request that is not accepted in its form.
fn is_unaccepted(refusal: &ErrorResponse) -> bool {
    matches!(refusal.status, 400 | 422)
}

/// Some servers constrain replies only to any object, or not at all.
fn schema_refused(
    dialect: &Dialect,
    refusal: &ErrorResponse,
    sent: &SentFeatures<'_>,
) -> Option<DialectChange> {
    let is_refused = sent.has_response_format
        && matches!(refusal.status, 400 | 404 | 422 | 500 | 501)
        && contains_any(&refusal.words, &changes::NO_SCHEMA);
    let is_tried = dialect.has(&DialectChange::OmitSchema);
    let next = if is_tried { DialectChange::DescribeTools } else { DialectChange::OmitSchema };
    is_refused.then_some(next)
}

/// Some models have no tools, and some servers cannot read their model's calls.
fn tools_refused(
    dialect: &Dialect,
    refusal: &ErrorResponse,
    sent: &SentFeatures<'_>,
) -> Option<DialectChange> {
    let meaning = refusals::meaning(refusal.status, &refusal.words);
    let is_refused = matches!(meaning, Meaning::NoTools(_) | Meaning::UnreadCall(_));
    (is_refused && sent.has_tools && !dialect.needs_native_tools)
        .then_some(DialectChange::DescribeTools)
}

fn images_refused(
    _: &Dialect,
    refusal: &ErrorResponse,
    sent: &SentFeatures<'_>,
) -> Option<DialectChange> {
    (sent.has_images && refuses_images(refusal)).then_some(DialectChange::OmitImages)
}

/// A refusal that only says that text was expected may mean the images.
fn text_expected(
    _: &Dialect,
    refusal: &ErrorResponse,
    sent: &SentFeatures<'_>,
) -> Option<DialectChange> {
    (sent.has_images && may_refuse_images(refusal)).then_some(DialectChange::OmitImages)
}

/// Whether a refusal means the images of the request.
fn refuses_images(refusal: &ErrorResponse) -> bool {
    let is_refusal = matches!(refusal.status, 200 | 400 | 404 | 415 | 422 | 500 | 501);
    let text = without_quotes(refusal);
    // A refusal that names the field means the images.
    let is_named = matches!(refusal.status, 400 | 415 | 422) && text.contains("image_url");
    is_refusal && (is_named || contains_any(&text, &changes::NO_IMAGES))
}

/// Whether a refusal means the images of the request, or at least that text was expected.
pub(super) fn may_refuse_images(refusal: &ErrorResponse) -> bool {
    let is_refusal = matches!(refusal.status, 200 | 400 | 404 | 415 | 422 | 500 | 501);
    let expects_text = contains_any(&without_quotes(refusal), &changes::TEXT_EXPECTED);
    refuses_images(refusal) || is_refusal && expects_text
}

fn without_quotes(refusal: &ErrorResponse) -> String {
    refusal.words.replace(['\'', '"', '`', '\\'], "")
}

fn tool_name_required(
    dialect: &Dialect,
    refusal: &ErrorResponse,
    sent: &SentFeatures<'_>,
) -> Option<DialectChange> {
    let is_required = !dialect.has(&DialectChange::SendToolName)
        && is_unaccepted(refusal)
        && tool_name::is_required(&refusal.words, &sent.tool_message_positions);
    is_required.then_some(DialectChange::SendToolName)
}

fn field_refused(
    dialect: &Dialect,
    refusal: &ErrorResponse,
    sent: &SentFeatures<'_>,
) -> Option<DialectChange> {
    if !is_unaccepted(refusal) {
        return None;
    }
    let text = &refusal.words;
    let params = named_params(&refusal.body);
    let mention = |name: &str| mention_position(text, &params, name);
    // A field of the user, or one that the endpoint demanded, is omitted only if it is unknown: a
    // wrong value is for the user to correct.
    let is_unknown = contains_any(text, &changes::UNKNOWN_FIELD)
        || (!params.is_empty() && !contains_any(text, &changes::WRONG_VALUE));
    let demanded = dialect.demanded_fields();
    let is_chosen = |name: &&&str| {
        sent.extra_fields.contains_key(**name) || demanded.contains_key(&name.to_string())
    };
    let may_change = |name: &&&str| is_unknown || !is_chosen(name);
    // The field that is named first is the cause; lists of allowed names follow it.
    let fields = sent.optional_fields.iter().filter(may_change);
    let field = fields.filter_map(|name| Some((mention(dialect.sent_name(name)?)?, *name))).min();
    let may_be_content = sent.has_empty_content
        && !dialect.has(&DialectChange::SendEmptyText)
        && contains_any(text, &changes::WRONG_CONTENT_TYPE)
        && !contains_any(text, &changes::CONTENT_POLICY);
    let content = mention("content").filter(|_| may_be_content);
    match (field, content) {
        (Some((at, name)), content) if content.is_none_or(|other| at <= other) => {
            Some(change_of(name, dialect, sent))
        }
        (_, Some(_)) => Some(DialectChange::SendEmptyText),
        _ => None,
    }
}

/// Renames a field that has another name, once; otherwise omits it.
fn change_of(name: &str, dialect: &Dialect, sent: &SentFeatures<'_>) -> DialectChange {
    let mut others = changes::ALTERNATIVE_NAMES.iter();
    match others.find(|(from, to)| *from == name && !sent.extra_fields.contains_key(*to)) {
        Some((_, other)) if dialect.other_name(name).is_none() => {
            DialectChange::Rename(name.into(), other)
        }
        _ => DialectChange::Omit(name.into()),
    }
}

/// A field of the user that can be left out is left out first.
fn value_demanded(
    dialect: &Dialect,
    refusal: &ErrorResponse,
    sent: &SentFeatures<'_>,
) -> Option<DialectChange> {
    let (name, value) = is_unaccepted(refusal).then(|| {
        demanded_value::find(&refusal.body, &named_params(&refusal.body), &sent.optional_fields)
    })??;
    let is_sent = dialect.accepts(&name) && sent.extra_fields.get(&name) == Some(&value);
    let change = DialectChange::Set(name, value);
    (!is_sent && !dialect.has(&change)).then_some(change)
}

/// Some responses may mean that the server does not stream; others are reported unchanged.
fn stream_refused(
    _: &Dialect,
    refusal: &ErrorResponse,
    sent: &SentFeatures<'_>,
) -> Option<DialectChange> {
    let may_be_stream = match refusal.status {
        200 => refusal.body.is_empty(),
        204 | 205 | 405 => true,
        404 => !contains_any(&refusal.words, &["model", "tool"]),
        400 | 422 | 501 => contains_any(&refusal.words, &changes::NO_STREAM),
        _ => false,
    };
    (sent.is_stream && may_be_stream).then_some(DialectChange::OmitStream)
}

/// Shorter names are also common words: they count only in quotes or as `param`.
const DISTINCTIVE_NAME_BYTES: usize = 6;

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
        let is_labelled = changes::FIELD_LABELS.iter().any(|word| label.ends_with(word));
        let is_name =
            is_quoted || is_labelled || name.len() >= DISTINCTIVE_NAME_BYTES || name.contains('_');
        is_whole_word && is_name
    })
}

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
