//! Values as models write them in the arguments of a call: JSON, and what resembles it in Python
//! and other languages.

use serde_json::{Map, Value};

use base::limits;

/// Quotes of strings: those of programming languages and of Gemma.
const QUOTES: [&str; 4] = ["\"", "'", "<|\"|>", "<escape>"];

/// A reading of a value.
pub(super) struct Literal<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Literal<'t> {
    pub(super) fn new(text: &'t str) -> Literal<'t> {
        Literal { rest: text, depth: 0 }
    }

    /// The text behind the value.
    pub(super) fn rest(&self) -> &'t str {
        self.rest
    }

    /// The value that the whole text is.
    pub(super) fn whole_value(mut self) -> Option<Value> {
        let value = self.value(true)?;
        self.rest.trim().is_empty().then_some(value)
    }

    /// Reads a value. The names of fields may be without quotes if `allows_bare_keys`. Brackets
    /// that are missing at the end of the text are taken as closed.
    pub(super) fn value(&mut self, allows_bare_keys: bool) -> Option<Value> {
        self.rest = self.rest.trim_start();
        if let Some(quote) = self.quote() {
            return self.string(quote).map(Value::from);
        }
        self.depth += 1;
        if self.depth > limits::LITERAL_DEPTH {
            return None;
        }
        let value = if self.skip("{") {
            Value::Object(self.fields(allows_bare_keys, "}")?)
        } else if self.skip("[") {
            let mut items = Vec::new();
            while !self.ends_with("]") {
                items.push(self.value(allows_bare_keys)?);
                self.skip(",");
            }
            Value::from(items)
        } else {
            self.word()?
        };
        self.depth -= 1;
        Some(value)
    }

    /// Reads arguments in parentheses: `(path="a", limit=3)`, or an object in them.
    pub(super) fn in_parentheses(&mut self) -> Option<Map<String, Value>> {
        self.skip("(");
        if self.rest.trim_start().starts_with('{') {
            let value = self.value(true)?;
            return match value {
                Value::Object(fields) if self.skip(")") => Some(fields),
                _ => None,
            };
        }
        self.fields(true, ")")
    }

    /// Reads `name: value` or `name=value` up to the closing bracket.
    fn fields(&mut self, allows_bare_keys: bool, close: &str) -> Option<Map<String, Value>> {
        let mut fields = Map::new();
        while !self.ends_with(close) {
            let name = match self.quote() {
                Some(quote) => self.string(quote)?,
                None if allows_bare_keys => self.take_word()?.to_string(),
                None => return None,
            };
            if !self.skip(":") && !self.skip("=") {
                return None;
            }
            fields.insert(name, self.value(allows_bare_keys)?);
            self.skip(",");
        }
        Some(fields)
    }

    /// Skips the closing bracket; at the end of the text, or of the tag around it, it may be
    /// missing.
    fn ends_with(&mut self, close: &str) -> bool {
        self.skip(close) || self.rest.is_empty() || self.rest.starts_with("</")
    }

    /// Skips blanks, and this text if it follows.
    fn skip(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        let behind = self.rest.strip_prefix(text);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    /// The quote of the string that starts here.
    fn quote(&self) -> Option<&'static str> {
        QUOTES.into_iter().find(|quote| self.rest.starts_with(quote))
    }

    /// Reads a string. `None`: it has no end, or a wrong escape.
    fn string(&mut self, quote: &str) -> Option<String> {
        let inner = &self.rest[quote.len()..];
        let mut text = String::new();
        let mut chars = inner.char_indices();
        while let Some((at, c)) = chars.next() {
            if inner[at..].starts_with(quote) {
                self.rest = &inner[at + quote.len()..];
                return Some(text);
            }
            if c != '\\' || quote.len() > 1 {
                text.push(c);
                continue;
            }
            let (at, escaped) = chars.next()?;
            text.push(match escaped {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let code = u32::from_str_radix(inner.get(at + 1..at + 5)?, 16).ok()?;
                    chars.nth(3);
                    char::from_u32(code)?
                }
                '"' | '\'' | '\\' | '/' => escaped,
                // A regular expression, for example: what is meant is not certain.
                _ => return None,
            });
        }
        None
    }

    fn take_word(&mut self) -> Option<&'t str> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(word).filter(|word| !word.is_empty())
    }

    /// Reads a number, or one of the words for true, false and nothing.
    fn word(&mut self) -> Option<Value> {
        match self.take_word()? {
            "true" | "True" => Some(true.into()),
            "false" | "False" => Some(false.into()),
            "null" | "None" => Some(Value::Null),
            number => serde_json::from_str::<serde_json::Number>(number).ok().map(Value::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_other_languages_are_read() {
        let table = [
            (r#"{"a": [1, -2.5, true, null]}"#, Some(json!({"a": [1, -2.5, true, null]}))),
            (r"{'a': True, 'b': None,}", Some(json!({"a": true, "b": null}))),
            (r#"{a: <|"|>x "y"<|"|>, b: 3}"#, Some(json!({"a": "x \"y\"", "b": 3}))),
            (r#"{"a": {"b": ["x""#, Some(json!({"a": {"b": ["x"]}}))),
            (r#""\u0041\n\"""#, Some(json!("A\n\""))),
            (r#"{"a": "x"#, None),
            (r#"{"a" "x"}"#, None),
            (r"{a: x}", None),
            (r#""\u12""#, None),
            (r#""rm my\ file""#, None),
            ("1 2", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(Literal::new(text).whole_value(), expected, "{text}");
        }
        let deep = "[".repeat(limits::LITERAL_DEPTH + 1);
        assert_eq!(Literal::new(&deep).whole_value(), None);
    }
}
