//! Reads the calls in a text that is nothing but calls, in the formats of different models.

use serde_json::{Deserializer, Map, Value};

use crate::quirks::call_markers;
use crate::text_calls::literal::Literal;
use base::limits;
use base::tool::{ToolCall, ToolDefinition, parse_arguments};

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
    pub fn to_call(&self, number: usize) -> ToolCall {
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
const ARGUMENT_FIELDS: [&str; 5] = ["arguments", "parameters", "args", "input", "tool_arguments"];

const OTHER_FIELDS: [&str; 6] = ["type", "id", "index", "call_id", "tool_calls", "role"];

/// Words before the name of a tool or its arguments that say what follows.
const KINDS: [&str; 5] = ["function", "assistant", "json", "call", "commentary"];

/// A reading of a text.
pub(super) struct CallReader<'t> {
    rest: &'t str,
    tools: &'t [ToolDefinition],
    calls: Vec<TextCall>,
    /// Whether a marker was found, after which names may stand outside of JSON.
    is_marked: bool,
    /// A name whose arguments follow.
    pending: Option<String>,
    /// Whether a name had no arguments.
    has_bare_name: bool,
}

impl<'t> CallReader<'t> {
    pub(super) fn new(text: &'t str, tools: &'t [ToolDefinition]) -> CallReader<'t> {
        CallReader {
            rest: text,
            tools,
            calls: Vec::new(),
            is_marked: false,
            pending: None,
            has_bare_name: false,
        }
    }

    /// A reading of a text whose calls are known to be some, as if a marker preceded them.
    pub(super) fn marked(text: &'t str, tools: &'t [ToolDefinition]) -> CallReader<'t> {
        CallReader { is_marked: true, ..CallReader::new(text, tools) }
    }

    /// The calls, if the text contains nothing else.
    pub(super) fn read_all(mut self) -> Option<Vec<TextCall>> {
        while !self.rest.trim_start().is_empty() {
            self.read_next()?;
        }
        self.finish_pending()?;
        // Several names without arguments are a list of tools, not calls.
        let is_list = self.calls.len() > 1 && self.has_bare_name;
        (!self.calls.is_empty() && !is_list).then_some(self.calls)
    }

    /// The calls at the start of the text.
    pub(super) fn read_start(mut self) -> Vec<TextCall> {
        while !self.rest.trim_start().is_empty() && self.read_next().is_some() {}
        self.calls
    }

    /// Reads a marker, a name, or the arguments of a call. `None`: it is something else.
    fn read_next(&mut self) -> Option<()> {
        self.rest = self.rest.trim_start();
        if let Some(name) = self.skip_opening_tag() {
            let arguments = self.read_parameters(&name)?;
            self.is_marked = true;
            return self.add(&name, arguments);
        }
        let marker = call_markers::all().filter(|marker| self.rest.starts_with(marker));
        if let Some(marker) = marker.max_by_key(|marker| marker.len()) {
            // A second fence is no part of a call, but DeepSeek's arguments are in one.
            if marker.starts_with("```") && !self.is_marked {
                return None;
            }
            self.rest = &self.rest[marker.len()..];
            self.is_marked = true;
            return Some(());
        }
        let is_cut_off = |marker: &str| marker.starts_with(self.rest);
        if !self.calls.is_empty() && call_markers::all().any(is_cut_off) {
            self.rest = "";
            return Some(());
        }
        let is_started = self.is_marked || !self.calls.is_empty();
        match self.rest.chars().next()? {
            '{' | '[' | '"' if self.pending.is_some() || self.rest.starts_with(['{', '[']) => {
                self.read_value()
            }
            '(' => {
                let name = self.pending.take()?;
                let arguments = self.read_literal(Literal::in_parentheses)?;
                self.add(&name, arguments)
            }
            '<' => {
                let name = self.pending.take()?;
                let arguments = if self.rest.starts_with("<arg_key>") {
                    self.read_pairs(&name)?
                } else {
                    self.read_parameters(&name).filter(|it| !it.is_empty())?
                };
                self.add(&name, arguments)
            }
            ',' | ';' | ']' | '}' if is_started && self.pending.is_none() => {
                self.rest = &self.rest[1..];
                Some(())
            }
            ']' if self.is_marked => {
                self.rest = &self.rest[1..];
                Some(())
            }
            _ => self.read_word(),
        }
    }

    /// Reads the name of a tool, or a key of GLM without the tag before it.
    fn read_word(&mut self) -> Option<()> {
        if let Some(name) = self.pending.take_if(|_| near(self.rest).contains("</arg_key>")) {
            let arguments = self.read_pairs(&name)?;
            return self.add(&name, arguments);
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        if !self.is_marked || end == 0 {
            return None;
        }
        let word = &self.rest[..end];
        self.rest = &self.rest[end..];
        if !KINDS.contains(&word.trim_end_matches(':')) {
            self.finish_pending()?;
            self.pending = Some(word.to_string());
        }
        Some(())
    }

    /// A name without arguments is a call, too.
    fn finish_pending(&mut self) -> Option<()> {
        match self.pending.take() {
            Some(name) => {
                self.has_bare_name = true;
                self.add(&name, Map::new())
            }
            None => Some(()),
        }
    }

    /// Reads the arguments of the pending name, or calls as values.
    fn read_value(&mut self) -> Option<()> {
        let mut values = Deserializer::from_str(self.rest).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            self.rest = &self.rest[values.byte_offset()..];
            return match self.pending.take() {
                Some(name) => self.add(&name, arguments_of(&value)?),
                None => self.add_json(&value),
            };
        }
        // A list of calls as code.
        let is_list = self.rest.starts_with('[') && self.pending.is_none();
        if is_list && self.is_marked && self.rest[1..].trim_start().starts_with(char::is_alphabetic)
        {
            self.rest = &self.rest[1..];
            return Some(());
        }
        let allows_bare_keys = self.is_marked;
        let value = self.read_literal(|literal| literal.value(allows_bare_keys))?;
        match self.pending.take() {
            Some(name) => self.add(&name, arguments_of(&value)?),
            None => self.add_json(&value),
        }
    }

    fn read_literal<T>(&mut self, read: impl FnOnce(&mut Literal<'t>) -> Option<T>) -> Option<T> {
        let mut literal = Literal::new(self.rest);
        let value = read(&mut literal)?;
        self.rest = literal.rest();
        Some(value)
    }

    /// Adds the calls in a JSON value.
    fn add_json(&mut self, value: &Value) -> Option<()> {
        match value {
            Value::Array(items) if !items.is_empty() => {
                items.iter().try_for_each(|item| self.add_json(item))
            }
            Value::Object(fields) => {
                let is_part = |name: &String| {
                    [&NAME_FIELDS[..], &ARGUMENT_FIELDS, &OTHER_FIELDS].concat().contains(&&**name)
                };
                if !fields.keys().all(is_part) {
                    return None;
                }
                if let Some(calls @ Value::Array(_)) = fields.get("tool_calls") {
                    return self.add_json(calls);
                }
                let function = fields.get("function").and_then(Value::as_object);
                let of = |names: &[&str]| {
                    let find = |fields: &'_ Map<String, Value>| {
                        names.iter().find_map(|name| fields.get(*name)).cloned()
                    };
                    function.and_then(find).or_else(|| find(fields))
                };
                let name = of(&NAME_FIELDS)?;
                let arguments = arguments_of(&of(&ARGUMENT_FIELDS)?)?;
                // Lists of tools have the types of `parameters`.
                let is_type =
                    |value: &Value| value.as_str().is_some_and(|it| TYPE_NAMES.contains(&it));
                let is_list = fields.contains_key("parameters")
                    && !arguments.is_empty()
                    && arguments.values().all(is_type);
                self.add(name.as_str()?, arguments).filter(|()| !is_list)
            }
            _ => None,
        }
    }

    /// Skips an opening tag that names a tool: `<function=NAME>`, `<invoke name="NAME">`, `<NAME>`.
    fn skip_opening_tag(&mut self) -> Option<String> {
        let inner = self.rest.strip_prefix('<')?;
        let (word, behind) = split_word(inner);
        let name = if word == "function" && behind.starts_with('=') {
            &behind[1..]
        } else if call_markers::NAMED_TAGS.contains(&word) {
            let (attributes, _) = near(behind).split_once("name=\"")?;
            let name = &behind[attributes.len() + "name=\"".len()..];
            Some(name).filter(|_| attributes.starts_with(' ') && !attributes.contains('>'))?
        } else {
            // Attributes would be lost.
            let has_none = behind.starts_with(['>', '\n', '{']) || behind.starts_with("/>");
            self.tool(word).filter(|_| has_none)?;
            inner
        };
        let (name, behind) = split_word(name);
        let end = near(behind).find(['>', '{']).unwrap_or(near(behind).len());
        self.rest = behind[end..].strip_prefix('>').unwrap_or(&behind[end..]);
        Some(name.to_string())
    }

    /// Reads the parameters of a tool, each in a tag, or all as JSON, with the end of the call.
    fn read_parameters(&mut self, name: &str) -> Option<Map<String, Value>> {
        let mut arguments = Map::new();
        loop {
            self.rest = self.rest.trim_start();
            let Some(tag) = self.rest.strip_prefix('<') else { break };
            let named = tag.strip_prefix("parameter").map(|tag| tag.trim_start_matches([' ', '=']));
            let is_named = named.is_some();
            let tag = named.map_or(tag, |tag| tag.strip_prefix("name=\"").unwrap_or(tag));
            let (key, behind) = split_word(tag);
            if key.is_empty() || !is_named && !self.has_argument(name, key) {
                break;
            }
            let (_, inner) = behind.split_once('>')?;
            let own_end = if is_named { "</parameter>".into() } else { format!("</{key}>") };
            let ends = std::iter::once(&*own_end).chain(call_markers::PARAMETER_ENDS);
            let end = ends.filter_map(|end| inner.find(end)).min()?;
            let value = self.value_of(name, key, &inner[..end]);
            arguments.insert(key.into(), value);
            self.rest = inner[end..].strip_prefix(&*own_end).unwrap_or(&inner[end..]);
        }
        if self.rest.starts_with('{') && arguments.is_empty() {
            let allows_bare_keys = true;
            let value = self.read_literal(|literal| literal.value(allows_bare_keys))?;
            arguments = arguments_of(&value)?;
        }
        self.rest = self.rest.trim_start();
        let end = format!("</{name}>");
        self.rest = self.rest.strip_prefix(&*end).unwrap_or(self.rest);
        Some(arguments)
    }

    /// Reads `<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>` pairs, of which GLM leaves out
    /// tags.
    fn read_pairs(&mut self, name: &str) -> Option<Map<String, Value>> {
        let mut arguments = Map::new();
        while let Some((key, rest)) = self.rest.split_once("</arg_key>") {
            let key = key.trim().trim_start_matches("<arg_key>").trim_start_matches("<tool_call>");
            let rest = rest.trim_start();
            let rest = rest.strip_prefix("<arg_value>").unwrap_or(rest);
            let ends = ["</arg_value>", "<arg_key>", "</tool_call>"];
            let end = ends.iter().filter_map(|end| rest.find(end)).min()?;
            if !self.has_argument(name, key) {
                return None;
            }
            arguments.insert(key.into(), self.value_of(name, key, &rest[..end]));
            self.rest = rest[end..].strip_prefix("</arg_value>").unwrap_or(&rest[end..]);
        }
        Some(arguments)
    }

    fn tool(&self, name: &str) -> Option<&'t ToolDefinition> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    fn has_argument(&self, tool: &str, key: &str) -> bool {
        self.tool(tool).is_some_and(|tool| tool.parameters["properties"].get(key).is_some())
    }

    /// The value of a parameter in tags: text, unless the tool expects another type.
    fn value_of(&self, name: &str, key: &str, text: &str) -> Value {
        let text = text.strip_prefix('\n').unwrap_or(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let kind = self.tool(name).map(|tool| &tool.parameters["properties"][key]["type"]);
        match Literal::new(text.trim()).whole_value() {
            Some(value) if kind.is_some_and(|kind| kind != "string") => value,
            _ => Value::from(text),
        }
    }

    /// Adds a call of an offered tool, whose name may have prefixes or a number.
    fn add(&mut self, name: &str, arguments: Map<String, Value>) -> Option<()> {
        let name = name.trim().trim_start_matches("to=");
        let without_number = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let without_number = without_number.strip_suffix('_').unwrap_or(name);
        let plain = without_number.strip_prefix("functions_").unwrap_or(without_number);
        let mut names = name.split([':', '.']).rev().chain([plain]);
        // gpt-oss writes the kind of the arguments behind the name, sometimes without a marker.
        let find = |name: &str| self.tool(name).or_else(|| self.tool(name.strip_suffix("json")?));
        let tool = names.find_map(find)?;
        if self.calls.len() >= limits::CALLS_RUN {
            return None;
        }
        self.calls.push(TextCall { name: tool.name.clone(), arguments });
        Some(())
    }
}

/// The start of a text, in which the end of a tag is searched.
fn near(text: &str) -> &str {
    &text[..text.floor_char_boundary(limits::TAG_BYTES)]
}

/// Letters, digits and `_` at the start of a text, and what follows.
fn split_word(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
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

/// Whether these are no arguments, but what arguments a tool has: a JSON Schema, or the schemas of
/// properties.
fn is_schema(fields: &Map<String, Value>) -> bool {
    let is_property = |value: &Value| value["type"].is_string() || value["description"].is_string();
    fields.get("properties").is_some_and(Value::is_object)
        || fields.get("type").is_some_and(|kind| kind == "object")
        || !fields.is_empty() && fields.values().all(is_property)
}

const TYPE_NAMES: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
