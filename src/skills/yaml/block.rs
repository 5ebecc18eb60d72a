//! Maps and lists by indentation.
//!
//! A `min_column` is the smallest column at which a line still belongs to the value that is
//! read: one more than the column of the enclosing map or list. Text and flow collections
//! are read by the sibling modules.

use serde_json::{Map, Value};

use super::{YamlError, YamlNode, YamlPosition, YamlReader, insert_field, scalar};
use crate::Rule;
use base::limits;

impl YamlReader<'_> {
    /// Reads the node that starts here. `inline` means that it is on the line of its key,
    /// where no map or list can start.
    pub(super) fn block_node(
        &mut self,
        min_column: usize,
        inline: bool,
    ) -> Result<YamlNode, YamlError> {
        match self.peek() {
            Some(b'-') if self.is_blank_at(1) => {
                if inline {
                    return Err(self.error(Rule::Indentation, "a list starts on its key's line"));
                }
                self.block_list(self.column(), false)
            }
            Some(b'|' | b'>') => {
                let text = self.block_text(min_column)?;
                Ok(YamlNode { value: Value::String(text), source_text: None })
            }
            _ => self.leaf_or_map(min_column, inline),
        }
    }

    fn leaf_or_map(&mut self, min_column: usize, inline: bool) -> Result<YamlNode, YamlError> {
        let (start, column) = (self.position, self.column());
        let node = self.leaf(Some(min_column))?;
        self.skip_spaces();
        if self.peek() == Some(b':') && self.is_blank_at(1) {
            if inline || start.line != self.position.line {
                let message = "a colon and a space inside a value without quotes";
                return Err(self.error(Rule::UnquotedValue, message));
            }
            let key = self.key_text(node, start)?;
            return self.block_map(column, key);
        }
        self.skip_comment();
        match self.peek() {
            None | Some(b'\n') => Ok(node),
            Some(b'\t') => Err(self.tab_error()),
            Some(_) => Err(self.error(Rule::UnquotedValue, "text after the end of a value")),
        }
    }

    /// Reads a map after its first key, at the colon.
    fn block_map(
        &mut self,
        column: usize,
        first_key: (String, usize),
    ) -> Result<YamlNode, YamlError> {
        self.enter_level()?;
        let mut fields = Map::new();
        let mut key = first_key;
        loop {
            self.advance(1);
            let node = self.map_value(column)?;
            if self.depth == 1 {
                match node.source_text {
                    Some(text) => self.source_texts.insert(key.0.clone(), text),
                    None => self.source_texts.remove(&key.0),
                };
            }
            insert_field(&mut fields, key, node.value, &mut self.diagnostics);
            if !self.next_token()? || self.column() < column {
                break;
            }
            if self.column() > column {
                return Err(
                    self.error(Rule::Indentation, "indented deeper than the keys around it")
                );
            }
            key = self.block_key()?;
        }
        self.leave_level();
        Ok(YamlNode { value: Value::Object(fields), source_text: None })
    }

    /// Reads what follows a key's colon, on its line or on the next ones.
    fn map_value(&mut self, column: usize) -> Result<YamlNode, YamlError> {
        self.skip_comment();
        if !matches!(self.peek(), None | Some(b'\n')) {
            return self.block_node(column + 1, true);
        }
        if self.next_token()? {
            if self.column() > column {
                return self.block_node(column + 1, false);
            }
            // A list may start at its key's own column, and so may `|` and `>`.
            match self.peek() {
                _ if self.column() < column => {}
                Some(b'-') if self.is_blank_at(1) => return self.block_list(column, true),
                Some(b'|' | b'>') => return self.block_node(column + 1, false),
                _ => {}
            }
        }
        Ok(YamlNode { value: Value::Null, source_text: None })
    }

    fn block_key(&mut self) -> Result<(String, usize), YamlError> {
        let start = self.position;
        if self.peek() == Some(b'-') && self.is_blank_at(1) {
            return Err(self.error(Rule::Indentation, "a list item among the keys of a map"));
        }
        let node = self.leaf(Some(self.column() + 1))?;
        self.skip_spaces();
        if self.position.line != start.line || self.peek() != Some(b':') || !self.is_blank_at(1) {
            self.position = start;
            return Err(self.error(Rule::NotAField, "a line that is not `key: value`"));
        }
        self.key_text(node, start)
    }

    /// Reads a list that starts at this dash. `under_key` means that it has the column of
    /// its key, so that the next key ends it.
    fn block_list(&mut self, column: usize, under_key: bool) -> Result<YamlNode, YamlError> {
        self.enter_level()?;
        let mut items = Vec::new();
        loop {
            self.advance(1);
            self.skip_comment();
            let on_line = !matches!(self.peek(), None | Some(b'\n'));
            if on_line || (self.next_token()? && self.column() > column) {
                items.push(self.block_node(column + 1, false)?.value);
            } else {
                items.push(Value::Null);
            }
            if !self.next_token()? || self.column() < column {
                break;
            }
            let is_item = self.peek() == Some(b'-') && self.is_blank_at(1);
            if self.column() == column && under_key && !is_item {
                break;
            }
            if self.column() > column || !is_item {
                return Err(self.error(Rule::Indentation, "a list item was expected here"));
            }
        }
        self.leave_level();
        Ok(YamlNode { value: Value::Array(items), source_text: None })
    }

    /// The text and the line of a key that reaches from `start` to here. JSON keys are
    /// text: `1` and `yes` become `"1"` and `"true"`.
    pub(super) fn key_text(
        &self,
        key: YamlNode,
        start: YamlPosition,
    ) -> Result<(String, usize), YamlError> {
        let source = &self.text[start.offset..self.position.offset];
        if source.len() > limits::YAML_KEY_CHARS && source.chars().count() > limits::YAML_KEY_CHARS
        {
            let message = format!("a key longer than {} characters", limits::YAML_KEY_CHARS);
            return Err(self.error(Rule::UnsupportedYaml, message));
        }
        let text = match key.value {
            Value::Array(_) | Value::Object(_) => {
                return Err(self.error(Rule::UnsupportedYaml, "a list or a map as a key"));
            }
            Value::String(text) => text,
            Value::Null => "null".to_owned(),
            other => other.to_string(),
        };
        Ok((text, start.line))
    }

    /// Reads a flow collection, or a quoted or plain text. `min_column` is `None` inside a flow
    /// collection, where indentation does not count.
    pub(super) fn leaf(&mut self, min_column: Option<usize>) -> Result<YamlNode, YamlError> {
        let start = self.position.offset;
        match self.peek() {
            Some(b'[' | b'{') => {
                let value = self.flow_collection()?;
                let source_text =
                    (self.depth <= 1).then(|| self.text[start..self.position.offset].to_owned());
                Ok(YamlNode { value, source_text })
            }
            Some(b'"' | b'\'') => {
                let text = self.quoted_text()?;
                Ok(YamlNode { value: Value::String(text), source_text: None })
            }
            _ => {
                let line = self.position.line;
                let text = self.plain_text(min_column)?;
                if scalar::is_surely_text(&text) {
                    return Ok(YamlNode { value: Value::String(text), source_text: None });
                }
                if scalar::is_special(&text) {
                    let message = "`=` and `<<` without quotes have a meaning of their own".into();
                    return Err(YamlError { line, rule: Rule::UnquotedValue, message });
                }
                let typed = if self.is_core {
                    scalar::core_schema_value(&text)
                } else {
                    scalar::yaml_1_1_value(&text)
                };
                Ok(match typed {
                    None => YamlNode { value: Value::String(text), source_text: None },
                    Some(value) => YamlNode { value, source_text: Some(text) },
                })
            }
        }
    }
}
