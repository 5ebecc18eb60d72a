//! Maps and lists by indentation.
//!
//! A `floor` is the smallest column at which a line still belongs to the value
//! being read: one more than the column of the map or list around it. Leaves
//! (text, flow collections) are read by the sibling modules.

use serde_json::{Map, Value};

use super::{YamlError, YamlNode, YamlPosition, YamlReader, insert, scalar};
use crate::limits;

impl YamlReader<'_> {
    /// Reads the node whose first character stands here. `inline` says that a
    /// key stands on the same line, so that no map or list can begin.
    pub(super) fn block_node(&mut self, floor: usize, inline: bool) -> Result<YamlNode, YamlError> {
        match self.peek() {
            Some(b'-') if self.is_blank_at(1) => {
                if inline {
                    return Err(self.fault("indentation", "a list begins on its key's line"));
                }
                self.block_list(self.column(), false)
            }
            Some(b'|' | b'>') => {
                let text = self.block_text(floor)?;
                Ok(YamlNode { value: Value::String(text), written: None })
            }
            _ => self.leaf_or_map(floor, inline),
        }
    }

    fn leaf_or_map(&mut self, floor: usize, inline: bool) -> Result<YamlNode, YamlError> {
        let (start, column) = (self.mark, self.column());
        let node = self.leaf(Some(floor))?;
        self.skip_spaces();
        if self.peek() == Some(b':') && self.is_blank_at(1) {
            if inline || start.line != self.mark.line {
                let message = "a colon and a space inside a value without quotes";
                return Err(self.fault("unquoted-colon", message));
            }
            let key = self.key_text(node, start)?;
            return self.block_map(column, key);
        }
        self.skip_comment();
        match self.peek() {
            None | Some(b'\n') => Ok(node),
            Some(b'\t') => Err(self.tab()),
            Some(_) => Err(self.fault("text-after-value", "text after the end of a value")),
        }
    }

    /// Reads a map whose first key has been read; its colon stands here.
    fn block_map(
        &mut self,
        column: usize,
        first_key: (String, usize),
    ) -> Result<YamlNode, YamlError> {
        self.enter()?;
        let mut fields = Map::new();
        let mut key = first_key;
        loop {
            self.advance(1);
            let node = self.map_value(column)?;
            if self.depth == 1 {
                match node.written {
                    Some(written) => self.written.insert(key.0.clone(), written),
                    None => self.written.remove(&key.0),
                };
            }
            insert(&mut fields, key, node.value, &mut self.findings);
            if !self.next_token()? || self.column() < column {
                break;
            }
            if self.column() > column {
                return Err(self.fault("indentation", "indented deeper than the keys around it"));
            }
            key = self.block_key()?;
        }
        self.leave();
        Ok(YamlNode { value: Value::Object(fields), written: None })
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
            // A list may stand at its key's own column, and so may `|` and `>`.
            match self.peek() {
                _ if self.column() < column => {}
                Some(b'-') if self.is_blank_at(1) => return self.block_list(column, true),
                Some(b'|' | b'>') => return self.block_node(column + 1, false),
                _ => {}
            }
        }
        Ok(YamlNode { value: Value::Null, written: None })
    }

    fn block_key(&mut self) -> Result<(String, usize), YamlError> {
        let start = self.mark;
        if self.peek() == Some(b'-') && self.is_blank_at(1) {
            return Err(self.fault("indentation", "a list item among the keys of a map"));
        }
        let node = self.leaf(Some(self.column() + 1))?;
        self.skip_spaces();
        if self.mark.line != start.line || self.peek() != Some(b':') || !self.is_blank_at(1) {
            self.mark = start;
            return Err(self.fault("not-a-field", "a line that is no `key: value`"));
        }
        self.key_text(node, start)
    }

    /// Reads a list whose first dash stands here. `under_key` says that it has
    /// the column of its key, so that the next key ends it.
    fn block_list(&mut self, column: usize, under_key: bool) -> Result<YamlNode, YamlError> {
        self.enter()?;
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
                return Err(self.fault("indentation", "a list item was expected here"));
            }
        }
        self.leave();
        Ok(YamlNode { value: Value::Array(items), written: None })
    }

    /// The text of a key that began at `start` and ends here, with its line.
    /// JSON keys are text: `1` and `yes` become `"1"` and `"true"`.
    pub(super) fn key_text(
        &self,
        key: YamlNode,
        start: YamlPosition,
    ) -> Result<(String, usize), YamlError> {
        let source = &self.text[start.at..self.mark.at];
        if source.len() > limits::YAML_KEY_CHARS && source.chars().count() > limits::YAML_KEY_CHARS
        {
            let message = format!("a key longer than {} characters", limits::YAML_KEY_CHARS);
            return Err(self.fault("long-key", message));
        }
        let text = match key.value {
            Value::Array(_) | Value::Object(_) => {
                return Err(self.fault("complex-key", "a list or a map as a key"));
            }
            Value::String(text) => text,
            Value::Null => "null".to_owned(),
            other => other.to_string(),
        };
        Ok((text, start.line))
    }

    /// Reads a flow collection, a quoted or a plain text. No `floor` means
    /// inside a flow collection, where indentation does not count.
    pub(super) fn leaf(&mut self, floor: Option<usize>) -> Result<YamlNode, YamlError> {
        let start = self.mark.at;
        match self.peek() {
            Some(b'[' | b'{') => {
                let value = self.flow_collection()?;
                let written = (self.depth <= 1).then(|| self.text[start..self.mark.at].to_owned());
                Ok(YamlNode { value, written })
            }
            Some(b'"' | b'\'') => {
                let text = self.quoted_text()?;
                Ok(YamlNode { value: Value::String(text), written: None })
            }
            _ => {
                let line = self.mark.line;
                let text = self.plain_text(floor)?;
                if scalar::is_surely_text(&text) {
                    return Ok(YamlNode { value: Value::String(text), written: None });
                }
                if let Some(message) = scalar::objection(&text) {
                    return Err(YamlError {
                        line,
                        rule: "ambiguous-value",
                        message: message.into(),
                    });
                }
                let typed = if self.is_core { scalar::core(&text) } else { scalar::typed(&text) };
                Ok(match typed {
                    None => YamlNode { value: Value::String(text), written: None },
                    Some(value) => YamlNode { value, written: Some(text) },
                })
            }
        }
    }
}
