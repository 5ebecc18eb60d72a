//! Reads JSON values of any form with a limit on their number.
//!
//! A value needs thirty times as much memory as the two bytes of `{}`, so a limit
//! on the bytes of the text is not enough. Fields that are not read cost nothing
//! and are not counted; they may be long lists of probabilities.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::limits;

thread_local! {
    /// Number of values read from the current piece of text. All deserializers share
    /// it, and serde gives them no other place for shared state.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// Starts the count for another piece of text.
pub fn reset_count() {
    COUNT.set(0);
}

/// Whether the current piece contained too many values.
pub fn is_exceeded() -> bool {
    COUNT.get() > limits::JSON_VALUES
}

/// Reads JSON text as one piece.
pub fn from_slice(bytes: &[u8]) -> serde_json::Result<Value> {
    reset_count();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = read(&mut deserializer)?;
    deserializer.end().map(|()| value)
}

/// Reads a value that is a part of a piece.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    CountingSeed.deserialize(deserializer)
}

/// Number of values in a value, including itself.
pub fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(fields) => fields.values().map(count_values).sum(),
        _ => 0,
    }
}

#[derive(Clone, Copy)]
struct CountingSeed;

impl<'de> DeserializeSeed<'de> for CountingSeed {
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

impl<'de> Visitor<'de> for CountingSeed {
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
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(CountingSeed)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            fields.insert(key, map.next_value_seed(CountingSeed)?);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_unchanged_unless_it_has_too_many_values() {
        let text = r#"{"a":[1,-2,3.5,"x",null,true,{"b":[]}]}"#;
        let value = from_slice(text.as_bytes()).unwrap();
        assert_eq!((value.to_string().as_str(), count_values(&value)), (text, 10));
        assert!(from_slice(b"{").is_err());
        let many = format!("[{}0]", "[],".repeat(limits::JSON_VALUES));
        let error = from_slice(many.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with("too many values"), "{error}");
        assert!(from_slice(text.as_bytes()).is_ok(), "the count starts again with each piece");
    }
}
