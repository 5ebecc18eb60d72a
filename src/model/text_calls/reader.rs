//! Reads the calls in a text that is nothing but calls, in the formats of different models.

use serde_json::{Deserializer, Map, Value};

use crate::inexact_json;
use crate::limits;
use crate::model::quirks::call_markers;
use crate::tool::{ToolCall, ToolDefinition, parse_arguments};

/// A call that a model wrote as text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextCall {
    /// The name of an offered tool.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
}

impl TextCall {
    /// The call as others are, with an id made of this number.
    pub(crate) fn to_call(&self, number: usize) -> ToolCall {
        ToolCall {
            // Nine letters and digits, as some endpoints want them.
            id: format!("text{number:05}"),
            name: self.name.clone(),
            arguments: Value::Object(self.arguments.clone()).to_string(),
            ..ToolCall::default()
        }
    }
}

/// The names of the fields that have the name of the tool and the arguments.
const NAME_FIELDS: [&str; 4] = ["name", "tool", "tool_name", "function"];
const ARGUMENT_FIELDS: [&str; 4] = ["arguments", "parameters", "args", "input"];

/// Opening tag with the tool's name, its end, tag of a parameter with its name, its end, and the
/// closing tags.
const TAGS: [[&str; 6]; 2] = [
    ["<function=", ">", "<parameter=", ">", "</parameter>", "</function>"],
    ["<invoke name=\"", "\">", "<parameter name=\"", "\">", "</parameter>", "</invoke>"],
];

/// A reading of a text.
pub(super) struct CallReader<'t> {
    rest: &'t str,
    tools: &'t [ToolDefinition],
    calls: Vec<TextCall>,
    /// Whether a marker was found, after which names may stand outside of JSON.
    is_marked: bool,
    /// A name whose arguments follow.
    pending: Option<String>,
}

impl<'t> CallReader<'t> {
    pub(super) fn new(text: &'t str, tools: &'t [ToolDefinition]) -> CallReader<'t> {
        CallReader { rest: text, tools, calls: Vec::new(), is_marked: false, pending: None }
    }

    /// The calls, if the text contains nothing else.
    pub(super) fn read_all(mut self) -> Option<Vec<TextCall>> {
        while !self.rest.trim_start().is_empty() {
            self.read_next()?;
        }
        self.finish_pending()?;
        (!self.calls.is_empty()).then_some(self.calls)
    }

    /// The calls at the start of the text.
    pub(super) fn read_start(mut self) -> Vec<TextCall> {
        while !self.rest.trim_start().is_empty() && self.read_next().is_some() {}
        self.calls
    }

    /// Reads a marker, a name, or the arguments of a call. `None`: it is something else.
    fn read_next(&mut self) -> Option<()> {
        self.rest = self.rest.trim_start();
        if let Some(tags) = TAGS.iter().find(|tags| self.rest.starts_with(tags[0])) {
            return self.read_tagged(tags);
        }
        let marker = call_markers::all().filter(|marker| self.rest.starts_with(marker));
        if let Some(marker) = marker.max_by_key(|marker| marker.len()) {
            self.rest = &self.rest[marker.len()..];
            self.is_marked = true;
            return Some(());
        }
        if self.rest.starts_with(['{', '[']) {
            let value = self.read_json()?;
            return match (self.pending.take(), value) {
                (Some(name), Value::Object(arguments)) => self.add(&name, arguments),
                (Some(_), _) => None,
                (None, value) => self.add_json(&value),
            };
        }
        if self.rest.starts_with("<arg_key>") {
            let name = self.pending.take()?;
            let arguments = self.read_pairs()?;
            return self.add(&name, arguments);
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        if !self.is_marked || end == 0 {
            return None;
        }
        // A word before a separator is the kind of the call.
        self.finish_pending_unless_kind()?;
        self.pending = Some(self.rest[..end].to_string());
        self.rest = &self.rest[end..];
        Some(())
    }

    fn finish_pending_unless_kind(&mut self) -> Option<()> {
        self.pending.take_if(|word| matches!(&**word, "function" | "assistant" | "json"));
        self.finish_pending()
    }

    /// A name without arguments is a call, too.
    fn finish_pending(&mut self) -> Option<()> {
        match self.pending.take() {
            Some(name) => self.add(&name, Map::new()),
            None => Some(()),
        }
    }

    /// Reads a JSON value, also with raw line breaks in its strings.
    fn read_json(&mut self) -> Option<Value> {
        let mut values = Deserializer::from_str(self.rest).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            self.rest = &self.rest[values.byte_offset()..];
            return Some(value);
        }
        let ends = call_markers::ENDS.iter().filter_map(|end| self.rest.find(end));
        let (text, rest) = self.rest.split_at(ends.min().unwrap_or(self.rest.len()));
        let value = inexact_json::read(text).ok()?;
        self.rest = rest;
        Some(value)
    }

    /// Adds the calls in a JSON value.
    fn add_json(&mut self, value: &Value) -> Option<()> {
        match value {
            Value::Array(items) if !items.is_empty() => {
                items.iter().try_for_each(|item| self.add_json(item))
            }
            Value::Object(fields) => {
                if let Some(calls @ Value::Array(_)) = fields.get("tool_calls") {
                    return self.add_json(calls);
                }
                if let Some(function @ Value::Object(_)) = fields.get("function") {
                    return self.add_json(function);
                }
                let name = NAME_FIELDS.iter().find_map(|name| fields.get(*name)?.as_str())?;
                let arguments = ARGUMENT_FIELDS.iter().find_map(|name| fields.get(*name))?;
                self.add(name, arguments_of(arguments)?)
            }
            _ => None,
        }
    }

    /// Reads a call in tags: its parameters in tags, or JSON.
    fn read_tagged(&mut self, tags: &[&str; 6]) -> Option<()> {
        let [open, open_end, parameter, parameter_end, close_parameter, close] = *tags;
        let (name, mut rest) = self.rest[open.len()..].split_once(open_end)?;
        let mut arguments = Map::new();
        loop {
            rest = rest.trim_start();
            if let Some(inner) = rest.strip_prefix(parameter) {
                let (key, inner) = inner.split_once(parameter_end)?;
                let (value, behind) = inner.split_once(close_parameter)?;
                arguments.insert(key.trim().into(), self.value_of(name, key.trim(), value));
                rest = behind;
            } else if rest.starts_with('{') {
                self.rest = rest;
                arguments = match self.read_json()? {
                    Value::Object(fields) => fields,
                    _ => return None,
                };
                rest = self.rest;
            } else {
                break;
            }
        }
        self.rest = rest.strip_prefix(close).or_else(|| rest.is_empty().then_some(rest))?;
        self.is_marked = true;
        self.add(name.trim(), arguments)
    }

    /// Reads `<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>` pairs.
    fn read_pairs(&mut self) -> Option<Map<String, Value>> {
        let mut arguments = Map::new();
        while let Some(rest) = self.rest.trim_start().strip_prefix("<arg_key>") {
            let (key, rest) = rest.split_once("</arg_key>")?;
            let (value, rest) =
                rest.trim_start().strip_prefix("<arg_value>")?.split_once("</arg_value>")?;
            arguments.insert(key.trim().into(), Value::from(value));
            self.rest = rest;
        }
        Some(arguments)
    }

    /// The value of a parameter in tags: text, unless the tool expects another type.
    fn value_of(&self, name: &str, key: &str, text: &str) -> Value {
        let text = text.strip_prefix('\n').unwrap_or(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let tool = self.tools.iter().find(|tool| tool.name == name);
        let kind = tool.map(|tool| &tool.parameters["properties"][key]["type"]);
        match serde_json::from_str(text.trim()) {
            Ok(value) if kind.is_some_and(|kind| kind != "string") => value,
            _ => Value::from(text),
        }
    }

    /// Adds a call of an offered tool, whose name may have a prefix or a number.
    fn add(&mut self, name: &str, arguments: Map<String, Value>) -> Option<()> {
        let name = name.trim().trim_start_matches("to=").trim_start_matches("functions.");
        let name = name.split(':').next().unwrap_or_default();
        let tool = self.tools.iter().find(|tool| tool.name == name)?;
        if self.calls.len() >= limits::CALLS_RUN {
            return None;
        }
        self.calls.push(TextCall { name: tool.name.clone(), arguments });
        Some(())
    }
}

/// The arguments of a call in JSON. `None`: it is a JSON Schema, or not an object.
fn arguments_of(value: &Value) -> Option<Map<String, Value>> {
    let fields = match value {
        Value::Object(fields) => fields.clone(),
        Value::String(text) => parse_arguments(text).ok()?,
        _ => return None,
    };
    (!is_schema(&fields)).then_some(fields)
}

/// Whether these are no arguments, but what arguments a tool has: a JSON Schema, the schemas of
/// properties, or the names of types.
fn is_schema(fields: &Map<String, Value>) -> bool {
    let is_property = |value: &Value| match value {
        Value::Object(schema) => schema.get("type").is_some_and(Value::is_string),
        Value::String(text) => TYPE_NAMES.contains(&&**text),
        _ => false,
    };
    fields.get("properties").is_some_and(Value::is_object)
        || !fields.is_empty() && fields.values().all(is_property)
}

const TYPE_NAMES: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
