//! The arguments of a call, read into the tool's struct.
//!
//! The struct's types decide what is accepted. Small models write `"5"` for 5, a list as JSON
//! text, and null for an argument that they leave out: a value that can only mean the wanted type
//! is taken as that. Every other problem is reported with the argument's name.

use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde_json::{Map, Value};

use base::bounded;
use base::limits;
use base::text;

/// The arguments of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads the arguments into a struct. A field of type `Option` is an optional argument.
    ///
    /// # Errors
    ///
    /// The first problem, with the name of the argument.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, ArgumentError> {
        T::deserialize(Argument(Value::Object(self.0)))
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(fields: Map<String, Value>) -> Arguments {
        Arguments(fields)
    }
}

/// Problem with an argument of a call, for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// The argument's name, and the place in its value; empty for all arguments together.
    path: String,
    /// The problem, as in `is missing`.
    problem: String,
}

impl ArgumentError {
    /// Creates the error for an argument; the problem continues its name: `must be 1 or more`.
    pub fn new(argument: &str, problem: impl Into<String>) -> ArgumentError {
        ArgumentError { path: argument.to_string(), problem: problem.into() }
    }

    /// Adds the place that contains the wrong value: a name, or an index in brackets.
    fn inside(mut self, place: &str) -> ArgumentError {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{place}{dot}{}", self.path);
        self
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "`{}` {}", text::one_line(&self.path, limits::SUMMARY_CHARS), self.problem)
    }
}

impl std::error::Error for ArgumentError {}

/// The words for what a struct's `Deserialize` refuses.
impl de::Error for ArgumentError {
    fn custom<T: fmt::Display>(problem: T) -> ArgumentError {
        ArgumentError::new("", format!("is wrong: {problem}"))
    }

    fn missing_field(field: &'static str) -> ArgumentError {
        ArgumentError::new(field, "is missing")
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> ArgumentError {
        let names = expected.join("`, `");
        ArgumentError::new(field, format!("is not an argument; the arguments are: `{names}`"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> ArgumentError {
        let variant = text::one_line(variant, limits::SUMMARY_CHARS);
        let choices = expected.join("\", \"");
        ArgumentError::new("", format!("must be one of \"{choices}\", not \"{variant}\""))
    }

    fn invalid_type(found: de::Unexpected<'_>, wanted: &dyn de::Expected) -> ArgumentError {
        let found = text::one_line(&found.to_string(), limits::SUMMARY_CHARS);
        ArgumentError::new("", format!("must be {wanted}, not {found}"))
    }

    fn invalid_value(found: de::Unexpected<'_>, wanted: &dyn de::Expected) -> ArgumentError {
        ArgumentError::invalid_type(found, wanted)
    }
}

/// A value, as an argument of a certain type.
struct Argument(Value);

impl Argument {
    /// Returns the value, converted if it has another type but can only mean the wanted one.
    fn convert(
        self,
        wanted: &str,
        is_wanted: fn(&Value) -> bool,
    ) -> Result<Argument, ArgumentError> {
        if is_wanted(&self.0) {
            return Ok(self);
        }
        let meant = match &self.0 {
            Value::String(text) => [bounded::from_slice(text.trim().as_bytes()).ok(), None],
            Value::Number(number) => {
                [number.as_f64().and_then(whole_number), Some(number.to_string().into())]
            }
            _ => [None, None],
        };
        let mut meant = meant.into_iter().flatten().filter(is_wanted);
        meant.next().map(Argument).ok_or_else(|| {
            ArgumentError::new("", format!("must be {wanted}, not {}", type_name(&self.0)))
        })
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64()
}

/// 5.0 is 5; beyond 2^53 a float is not exact.
#[allow(clippy::cast_possible_truncation, reason = "checked to be whole and below 2^53")]
fn whole_number(float: f64) -> Option<Value> {
    (float.fract() == 0.0 && float.abs() < 9e15).then(|| Value::from(float as i64))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Methods of `Deserializer` that convert the value to the wanted type.
macro_rules! convert_to {
    ($($wanted:literal, $is_wanted:path: $($method:ident)*;)*) => {$($(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
            self.convert($wanted, $is_wanted)?.deserialize_any(visitor)
        }
    )*)*};
}

impl<'de> Deserializer<'de> for Argument {
    type Error = ArgumentError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => visitor.visit_seq(Items(items.into_iter().enumerate())),
            Value::Object(fields) => {
                visitor.visit_map(Fields { fields: fields.into_iter(), next: None })
            }
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
        }
    }

    convert_to! {
        "a boolean", Value::is_boolean: deserialize_bool;
        "an integer", is_integer: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
            deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64;
        "a number", Value::is_number: deserialize_f32 deserialize_f64;
        "a string", Value::is_string: deserialize_char deserialize_str deserialize_string;
        "an array", Value::is_array: deserialize_seq;
        "an object", Value::is_object: deserialize_map;
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        match self.convert("a string", Value::is_string)?.0 {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            other => Argument(other).deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        i128 u128 bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// The fields of an object. Null is a missing field: models write it to leave an argument out.
struct Fields {
    fields: serde_json::map::IntoIter,
    /// The field whose name was read.
    next: Option<(String, Value)>,
}

impl<'de> de::MapAccess<'de> for Fields {
    type Error = ArgumentError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ArgumentError> {
        self.next = self.fields.find(|(_, value)| !value.is_null());
        let name = self.next.as_ref().map(|(name, _)| name.clone());
        name.map(|name| seed.deserialize(StringDeserializer::new(name))).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, ArgumentError> {
        let (name, value) = self.next.take().unwrap_or_default();
        seed.deserialize(Argument(value)).map_err(|error| error.inside(&name))
    }
}

/// The items of an array.
struct Items(std::iter::Enumerate<std::vec::IntoIter<Value>>);

impl<'de> de::SeqAccess<'de> for Items {
    type Error = ArgumentError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, ArgumentError> {
        let item = self.0.next().map(|(index, value)| {
            seed.deserialize(Argument(value)).map_err(|error| error.inside(&format!("[{index}]")))
        });
        item.transpose()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[serde(alias = "path")]
        name: String,
        count: Option<i64>,
        list: Option<Vec<String>>,
        inner: Option<Inner>,
        choice: Option<Choice>,
        ratio: Option<f64>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        deep: bool,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        Fair,
        Loaded,
    }

    fn parse(arguments: &Value) -> Result<Sample, String> {
        let fields = arguments.as_object().unwrap().clone();
        Arguments::from(fields).parse().map_err(|error| error.to_string())
    }

    #[test]
    fn problems_are_reported_with_their_path() {
        let table = [
            (json!({}), "`name` is missing"),
            (json!({"name": null}), "`name` is missing"),
            (json!({"name": ["a"]}), "`name` must be a string, not an array"),
            (json!({"name": "a", "count": "many"}), "`count` must be an integer, not a string"),
            (json!({"name": "a", "count": 1.5}), "`count` must be an integer, not a number"),
            (
                json!({"name": "a", "count": u64::MAX}),
                "`count` must be i64, not integer `18446744073709551615`",
            ),
            (json!({"name": "a", "list": ["x", {}]}), "`list[1]` must be a string, not an object"),
            (json!({"name": "a", "inner": {}}), "`inner.deep` is missing"),
            (
                json!({"name": "a", "inner": {"deep": 3}}),
                "`inner.deep` must be a boolean, not a number",
            ),
            (
                json!({"name": "a", "choice": "odd"}),
                r#"`choice` must be one of "fair", "loaded", not "odd""#,
            ),
            (json!({"name": "a", "choice": []}), "`choice` must be a string, not an array"),
            (json!({"name": "a", "ratio": true}), "`ratio` must be a number, not a boolean"),
            (
                json!({"name": "a", "more": 1}),
                "`more` is not an argument; the arguments are: `name`, `path`, `count`, `list`, `inner`, `choice`, `ratio`",
            ),
        ];
        for (arguments, error) in table {
            assert_eq!(parse(&arguments), Err(error.to_string()), "{arguments}");
        }
    }

    #[test]
    fn values_that_can_only_mean_the_wanted_type_are_converted() {
        let wrapped = json!({
            "path": 7, "count": "5", "list": "[\"x\", 2]", "inner": "{\"deep\": \"true\"}",
            "choice": "fair", "ratio": "1.5",
        });
        let expected = Sample {
            name: "7".into(),
            count: Some(5),
            list: Some(vec!["x".into(), "2".into()]),
            inner: Some(Inner { deep: true }),
            choice: Some(Choice::Fair),
            ratio: Some(1.5),
        };
        assert_eq!(parse(&wrapped), Ok(expected));
        let without = json!({"name": "a", "count": 2.0, "list": null, "choice": null});
        let read = parse(&without).unwrap();
        assert_eq!((read.count, read.list, read.choice), (Some(2), None, None));
    }
}
