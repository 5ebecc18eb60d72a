//! The JSON of replies and of stream events.
//!
//! Parsing is tolerant, because endpoints vary: every field may be missing, null, or of another
//! type than specified.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;

use crate::quirks::REASONING_FIELDS;
use base::bounded;
use base::limits;
use base::tool::Usage;

/// One event of a stream, or a whole reply: they differ only in `delta` and `message`.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    pub choices: FirstItems<Choice, { limits::CHOICES }>,
    pub usage: LooseValue,
    pub error: LooseValue,
    pub object: LooseValue,
    pub message: LooseValue,
    pub detail: LooseValue,
    pub code: LooseValue,
    pub r#type: LooseValue,
}

impl Chunk {
    /// An event that contains only text, in the choice with this index.
    pub(super) fn of_text(text: String, index: LooseValue) -> Chunk {
        let delta = Delta { content: LooseValue(Value::String(text)), ..Delta::default() };
        let choice = Choice { index, delta, ..Choice::default() };
        Chunk {
            choices: FirstItems { items: vec![choice], is_truncated: false },
            ..Chunk::default()
        }
    }

    /// The text and the index of the choice, if the event contains nothing else.
    pub(super) fn only_text(&self) -> Option<(&str, &LooseValue)> {
        let choice = self.choices.items.first()?;
        let text = choice.delta.content.0.as_str()?;
        let mut plain = Chunk::of_text(text.into(), choice.index.clone());
        // The kind of an ordinary object does not matter.
        if self.object.text() != "error" {
            plain.object = self.object.clone();
        }
        (*self == plain).then_some((text, &choice.index))
    }
}

#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    pub index: LooseValue,
    #[serde(deserialize_with = "null_is_default")]
    pub delta: Delta,
    pub message: Option<Box<Delta>>,
    pub finish_reason: LooseValue,
    pub usage: LooseValue,
    pub error: LooseValue,
}

/// A piece of the assistant's message, or the whole message.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(super) struct Delta {
    pub content: LooseValue,
    pub refusal: LooseValue,
    pub reasoning_content: LooseValue,
    pub reasoning: LooseValue,
    pub reasoning_text: LooseValue,
    pub reasoning_details: LooseValue,
    pub tool_calls: CallDeltas,
    pub extra_content: LooseValue,
    pub error: LooseValue,
}

impl Delta {
    /// The reasoning and the name of its field: the `known` one, or else the first with text.
    pub(super) fn reasoning(&self, known: Option<&str>) -> Option<(&'static str, Cow<'_, str>)> {
        let texts = [&self.reasoning_content, &self.reasoning, &self.reasoning_text];
        let mut fields = REASONING_FIELDS.into_iter().zip(texts.map(LooseValue::text));
        fields.find(|(field, text)| !text.is_empty() && known.is_none_or(|known| known == *field))
    }
}

/// The pieces of tool calls in one event.
pub(super) type CallDeltas = FirstItems<CallDelta, { limits::CALLS_ANSWERED }>;

#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(super) struct CallDelta {
    pub index: LooseValue,
    pub id: LooseValue,
    #[serde(deserialize_with = "null_is_default")]
    pub function: FunctionDelta,
    pub extra_content: LooseValue,
}

#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(super) struct FunctionDelta {
    pub name: LooseValue,
    pub arguments: LooseValue,
}

/// The first elements of a list, and whether there were more; null counts as empty.
#[derive(Debug, PartialEq)]
pub(super) struct FirstItems<T, const MOST: usize> {
    pub items: Vec<T>,
    pub is_truncated: bool,
}

impl<T, const MOST: usize> Default for FirstItems<T, MOST> {
    fn default() -> Self {
        FirstItems { items: Vec::new(), is_truncated: false }
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for FirstItems<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FirstItemsVisitor<T, const MOST: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for FirstItemsVisitor<T, MOST> {
            type Value = FirstItems<T, MOST>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_unit<E: de::Error>(self) -> Result<FirstItems<T, MOST>, E> {
                Ok(FirstItems::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<FirstItems<T, MOST>, A::Error> {
                let mut first = FirstItems::default();
                while first.items.len() < MOST {
                    let Some(item) = list.next_element()? else {
                        return Ok(first);
                    };
                    // Most lists have one element: room for four would waste pages for each
                    // event.
                    first.items.reserve_exact(usize::from(first.items.is_empty()));
                    first.items.push(item);
                }
                while list.next_element::<IgnoredAny>()?.is_some() {
                    first.is_truncated = true;
                }
                Ok(first)
            }
        }
        deserializer.deserialize_any(FirstItemsVisitor(PhantomData))
    }
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A value that may be missing, or of another type than specified.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct LooseValue(#[serde(deserialize_with = "bounded::read")] Value);

impl LooseValue {
    /// The text: a string unchanged, content blocks joined (without reasoning), otherwise
    /// empty.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Value::Array(blocks) => blocks.iter().filter_map(block_text).collect(),
            value => block_text(value).unwrap_or_default().into(),
        }
    }

    /// The JSON text: arguments come as text or as the object itself.
    pub(super) fn json_text(&self) -> Cow<'_, str> {
        match &self.0 {
            Value::Null => "".into(),
            Value::String(text) => text.into(),
            value => value.to_string().into(),
        }
    }

    /// The number, also if it is written as text.
    pub(super) fn number(&self) -> Option<u64> {
        number_of(&self.0)
    }

    /// An identifier: text, or a number as text; empty if there is none.
    pub(super) fn identifier(&self) -> Cow<'_, str> {
        match &self.0 {
            Value::String(_) | Value::Number(_) => self.json_text(),
            _ => "".into(),
        }
    }

    /// Whether it has any content: `""`, `{}`, `[]` or `false` in place of an error have none.
    pub(super) fn is_meaningful(&self) -> bool {
        match &self.0 {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.trim().is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Bool(true) | Value::Number(_) => true,
        }
    }

    /// The value of a field that is sent back, if it is neither text nor null.
    pub(super) fn kept(&self) -> Option<&Value> {
        (!self.0.is_null() && !self.0.is_string()).then_some(&self.0)
    }

    /// Token counts, if this is an object that has them.
    pub(super) fn usage(&self) -> Option<Usage> {
        let count = |key| self.field(key).as_u64();
        let (prompt, completion) = (count("prompt_tokens"), count("completion_tokens"));
        (prompt.is_some() || completion.is_some()).then(|| Usage {
            prompt_tokens: prompt.unwrap_or(0),
            completion_tokens: completion.unwrap_or(0),
        })
    }

    /// A field of an object; null if there is none.
    pub(super) fn field(&self, name: &str) -> &Value {
        &self.0[name]
    }

    /// The number at a path such as `meta.n_ctx_train`, also if it is written as text.
    pub(super) fn number_at(&self, path: &str) -> Option<u64> {
        let value = path.split('.').fold(&self.0, |value, name| &value[name]);
        number_of(value)
    }

    /// The fields of an object.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.as_object().into_iter().flatten()
    }

    /// Converts to a plain JSON value.
    pub(super) fn into_value(self) -> Value {
        self.0
    }
}

fn number_of(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn block_text(block: &Value) -> Option<&str> {
    match block {
        Value::String(text) => Some(text),
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str);
            let is_text = matches!(kind, None | Some("text" | "output_text"));
            fields.get("text").and_then(Value::as_str).filter(|_| is_text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_value_of_any_type_as_text() {
        let table = [
            (r#""a""#, "a", "a"),
            (r#""a\nb""#, "a\nb", "a\nb"),
            ("null", "", ""),
            ("3", "", "3"),
            (r#"{"a":1}"#, "", r#"{"a":1}"#),
            (r#"["a",{"type":"text","text":"b"},{"type":"thinking","text":"c"}]"#, "ab", ""),
        ];
        for (json, text, json_text) in table {
            let loose: LooseValue = serde_json::from_str(json).unwrap();
            assert_eq!(loose.text(), text, "{json}");
            if !json_text.is_empty() {
                assert_eq!(loose.json_text(), json_text, "{json}");
            }
        }
    }
}
