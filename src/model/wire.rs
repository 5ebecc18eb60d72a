//! The JSON of replies and of stream events.
//!
//! Parsing is tolerant, because endpoints vary: every field may be missing, null, or of another
//! type than specified.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::bounded;
use crate::limits;
use crate::tool::Usage;

/// One event of a stream, or a whole reply: they differ only in `delta` and `message`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'c> {
    #[serde(borrow)]
    pub choices: FirstItems<Choice<'c>, { limits::CHOICES }>,
    #[serde(borrow)]
    pub usage: LooseValue<'c>,
    #[serde(borrow)]
    pub error: LooseValue<'c>,
    #[serde(borrow)]
    pub object: LooseValue<'c>,
    #[serde(borrow)]
    pub message: LooseValue<'c>,
    #[serde(borrow)]
    pub detail: LooseValue<'c>,
    #[serde(borrow)]
    pub code: LooseValue<'c>,
    #[serde(borrow)]
    pub r#type: LooseValue<'c>,
}

impl Chunk<'_> {
    /// The text of an event that contains nothing else, if it has no escapes.
    pub(super) fn only_text(&self) -> Option<&str> {
        let [choice] = self.choices.items.as_slice() else {
            return None;
        };
        let delta = &choice.delta;
        let LooseValue::Text(Cow::Borrowed(text)) = delta.content else {
            return None;
        };
        let others = [
            &self.usage,
            &self.error,
            &choice.finish_reason,
            &choice.usage,
            &choice.error,
            &delta.refusal,
            &delta.reasoning_content,
            &delta.reasoning,
            &delta.reasoning_text,
            &delta.reasoning_details,
            &delta.extra_content,
        ];
        let is_only_text = others.into_iter().all(LooseValue::is_empty)
            && self.object.text() != "error"
            && choice.message.is_none()
            && delta.tool_calls.items.is_empty();
        is_only_text.then_some(text)
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Choice<'c> {
    #[serde(borrow)]
    pub index: LooseValue<'c>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub delta: Delta<'c>,
    #[serde(borrow)]
    pub message: Option<Box<Delta<'c>>>,
    #[serde(borrow)]
    pub finish_reason: LooseValue<'c>,
    #[serde(borrow)]
    pub usage: LooseValue<'c>,
    #[serde(borrow)]
    pub error: LooseValue<'c>,
}

/// A piece of the assistant's message, or the whole message.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Delta<'c> {
    #[serde(borrow)]
    pub content: LooseValue<'c>,
    #[serde(borrow)]
    pub refusal: LooseValue<'c>,
    #[serde(borrow)]
    pub reasoning_content: LooseValue<'c>,
    #[serde(borrow)]
    pub reasoning: LooseValue<'c>,
    #[serde(borrow)]
    pub reasoning_text: LooseValue<'c>,
    #[serde(borrow)]
    pub reasoning_details: LooseValue<'c>,
    #[serde(borrow)]
    pub tool_calls: FirstItems<CallDelta<'c>, { limits::CALLS_ANSWERED }>,
    #[serde(borrow)]
    pub extra_content: LooseValue<'c>,
}

impl Delta<'_> {
    /// Whether it contains reasoning, under any of its names.
    pub(super) fn has_reasoning(&self) -> bool {
        [&self.reasoning_content, &self.reasoning, &self.reasoning_text]
            .iter()
            .any(|reasoning| !reasoning.text().is_empty())
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct CallDelta<'c> {
    #[serde(borrow)]
    pub index: LooseValue<'c>,
    #[serde(borrow)]
    pub id: LooseValue<'c>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub function: FunctionDelta<'c>,
    #[serde(borrow)]
    pub extra_content: LooseValue<'c>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct FunctionDelta<'c> {
    #[serde(borrow)]
    pub name: LooseValue<'c>,
    #[serde(borrow)]
    pub arguments: LooseValue<'c>,
}

/// The first elements of a list, and whether there were more; null counts as empty.
#[derive(Debug)]
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

/// A value that should be a string and may be of any type.
#[derive(Debug, Default)]
pub(super) enum LooseValue<'c> {
    #[default]
    Null,
    Text(Cow<'c, str>),
    Other(Value),
}

impl LooseValue<'_> {
    /// The text: a string unchanged, content blocks joined (without reasoning), otherwise
    /// empty.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            LooseValue::Text(text) => Cow::Borrowed(text),
            LooseValue::Other(Value::Array(blocks)) => {
                Cow::Owned(blocks.iter().filter_map(block_text).collect::<String>())
            }
            LooseValue::Other(block @ Value::Object(_)) => {
                Cow::Owned(block_text(block).unwrap_or_default().to_string())
            }
            LooseValue::Null | LooseValue::Other(_) => Cow::Borrowed(""),
        }
    }

    /// The JSON text: arguments come as text or as the object itself.
    pub(super) fn json_text(&self) -> Cow<'_, str> {
        match self {
            LooseValue::Null => Cow::Borrowed(""),
            LooseValue::Text(text) => Cow::Borrowed(text),
            LooseValue::Other(value) => Cow::Owned(value.to_string()),
        }
    }

    /// The number, also if it is written as text.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            LooseValue::Other(value) => value.as_u64(),
            LooseValue::Text(text) => text.parse().ok(),
            LooseValue::Null => None,
        }
    }

    /// An identifier: text, or a number as text; empty if there is none.
    pub(super) fn identifier(&self) -> Cow<'_, str> {
        match self {
            LooseValue::Other(Value::Number(number)) => Cow::Owned(number.to_string()),
            LooseValue::Text(text) => Cow::Borrowed(text),
            LooseValue::Null | LooseValue::Other(_) => Cow::Borrowed(""),
        }
    }

    /// Whether it has any content: `""`, `{}`, `[]` or `false` in place of an error have none.
    pub(super) fn is_meaningful(&self) -> bool {
        match self {
            LooseValue::Null | LooseValue::Other(Value::Bool(false)) => false,
            LooseValue::Text(text) => !text.trim().is_empty(),
            LooseValue::Other(Value::Object(fields)) => !fields.is_empty(),
            LooseValue::Other(Value::Array(items)) => !items.is_empty(),
            LooseValue::Other(_) => true,
        }
    }

    /// Whether the value is missing, null or `""`.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            LooseValue::Null => true,
            LooseValue::Text(text) => text.is_empty(),
            LooseValue::Other(_) => false,
        }
    }

    /// Token counts, if this is an object that has them.
    pub(super) fn usage(&self) -> Option<Usage> {
        let LooseValue::Other(value) = self else {
            return None;
        };
        let count = |key| value.get(key).and_then(Value::as_u64);
        let (prompt, completion) = (count("prompt_tokens"), count("completion_tokens"));
        (prompt.is_some() || completion.is_some()).then(|| Usage {
            prompt_tokens: prompt.unwrap_or(0),
            completion_tokens: completion.unwrap_or(0),
        })
    }

    /// Converts to a plain JSON value.
    pub(super) fn into_value(self) -> Value {
        match self {
            LooseValue::Null => Value::Null,
            LooseValue::Text(text) => Value::String(text.into_owned()),
            LooseValue::Other(value) => value,
        }
    }
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

impl<'de: 'c, 'c> Deserialize<'de> for LooseValue<'c> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LooseVisitor;
        impl<'de> Visitor<'de> for LooseVisitor {
            type Value = LooseValue<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_borrowed_str<E: de::Error>(
                self,
                text: &'de str,
            ) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Text(Cow::Owned(text.to_string())))
            }
            fn visit_unit<E: de::Error>(self) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Null)
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Other(value.into()))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Other(value.into()))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Other(value.into()))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Other(value.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<LooseValue<'de>, A::Error> {
                bounded::read_list(list).map(LooseValue::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LooseValue<'de>, A::Error> {
                bounded::read_map(map).map(LooseValue::Other)
            }
        }
        deserializer.deserialize_any(LooseVisitor)
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
            let loose: LooseValue<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(loose.text(), text, "{json}");
            if !json_text.is_empty() {
                assert_eq!(loose.json_text(), json_text, "{json}");
            }
        }
    }
}
