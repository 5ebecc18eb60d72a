//! JSON values of any form, as long as they are not too many.
//!
//! A value takes thirty times the two bytes of `{}` in memory: text that is
//! bounded in bytes is not bounded enough. Fields that nobody reads cost
//! nothing and are not counted; they may be long lists of probabilities.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::limits;

thread_local! {
    /// Values that have been read of the piece in hand. A parser made of types
    /// has no other place for what all of them share.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// From here on another piece is read.
pub(crate) fn begin() {
    COUNT.set(0);
}

/// Whether reading the piece in hand ended because there were too many.
pub(crate) fn is_exceeded() -> bool {
    COUNT.get() > limits::JSON_VALUES
}

/// Reads JSON text, a piece of its own.
pub(crate) fn from_slice(bytes: &[u8]) -> serde_json::Result<Value> {
    begin();
    serde_json::from_slice::<Bounded>(bytes).map(|bounded| bounded.0)
}

/// Reads the rest of a list.
pub(crate) fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Value, A::Error> {
    let mut items = Vec::new();
    while let Some(item) = list.next_element_seed(Counted)? {
        items.push(item);
    }
    Ok(Value::Array(items))
}

/// Reads the rest of an object.
pub(crate) fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Value, A::Error> {
    let mut fields = Map::new();
    while let Some(key) = map.next_key::<String>()? {
        fields.insert(key, map.next_value_seed(Counted)?);
    }
    Ok(Value::Object(fields))
}

/// How many values a value is, itself included.
pub(crate) fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

struct Bounded(Value);

impl<'de> Deserialize<'de> for Bounded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bounded, D::Error> {
        Counted.deserialize(deserializer).map(Bounded)
    }
}

#[derive(Clone, Copy)]
struct Counted;

impl<'de> DeserializeSeed<'de> for Counted {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let count = COUNT.get() + 1;
        COUNT.set(count);
        if count > limits::JSON_VALUES {
            return Err(de::Error::custom("too many values"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Value, A::Error> {
        list(seq)
    }
    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Value, A::Error> {
        map(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_it_is_unless_there_are_too_many() {
        let text = r#"{"a":[1,-2,3.5,"x",null,true,{"b":[]}]}"#;
        let value = from_slice(text.as_bytes()).unwrap();
        assert_eq!((value.to_string().as_str(), count(&value)), (text, 10));
        assert!(from_slice(b"{").is_err());
        let many = format!("[{}0]", "[],".repeat(limits::JSON_VALUES));
        let error = from_slice(many.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with("too many values"), "{error}");
        assert!(from_slice(text.as_bytes()).is_ok(), "each piece counts anew");
    }
}
