//! Flow collections: maps and lists in brackets, including inline JSON.
//!
//! Indentation does not count here, and they may span lines. As in `PyYAML`, a list may
//! hold a single pair (`[topic: foo]`), and a map's value may be missing (`{a, b: 1}`).

use serde_json::{Map, Value};

use super::{YamlError, YamlReader, insert_field};
use crate::Rule;

impl YamlReader<'_> {
    /// Reads the collection that starts at this bracket.
    pub(super) fn flow_collection(&mut self) -> Result<Value, YamlError> {
        self.enter_level()?;
        let opened = self.position.line;
        let is_list = self.peek() == Some(b'[');
        let close = if is_list { b']' } else { b'}' };
        let mut items = Vec::new();
        let mut fields = Map::new();
        self.advance(1);
        loop {
            self.skip_in_flow(opened)?;
            if self.peek() == Some(close) {
                break;
            }
            self.other_bracket(close)?;
            if is_list {
                items.push(self.flow_item(opened)?);
            } else {
                self.flow_pair(opened, &mut fields)?;
            }
            self.skip_in_flow(opened)?;
            match self.peek() {
                Some(b',') => self.advance(1),
                Some(byte) if byte == close => break,
                _ => {
                    self.other_bracket(close)?;
                    let message = format!("`,` or `{}` was expected here", char::from(close));
                    return Err(self.error(Rule::BadFlow, message));
                }
            }
        }
        self.advance(1);
        self.leave_level();
        Ok(if is_list { Value::Array(items) } else { Value::Object(fields) })
    }

    /// Reports the closing bracket of another collection: this one was never closed.
    fn other_bracket(&self, close: u8) -> Result<(), YamlError> {
        match self.peek() {
            Some(byte @ (b']' | b'}')) if byte != close => {
                let (found, due) = (char::from(byte), char::from(close));
                let message = format!("`{found}` before a bracket is closed by `{due}`");
                Err(self.error(Rule::BadFlow, message))
            }
            _ => Ok(()),
        }
    }

    /// Reads one item of a list; if a colon follows, it is a pair.
    fn flow_item(&mut self, opened: usize) -> Result<Value, YamlError> {
        let start = self.position;
        let node = self.leaf(None)?;
        self.skip_in_flow(opened)?;
        if self.peek() != Some(b':') || start.line != self.position.line {
            return Ok(node.value);
        }
        let key = self.key_text(node, start)?;
        self.enter_level()?;
        let value = self.flow_value(opened)?;
        self.leave_level();
        let mut pair = Map::new();
        insert_field(&mut pair, key, value, &mut self.diagnostics);
        Ok(Value::Object(pair))
    }

    /// Reads one key of a map and, after a colon, its value.
    fn flow_pair(
        &mut self,
        opened: usize,
        fields: &mut Map<String, Value>,
    ) -> Result<(), YamlError> {
        let start = self.position;
        let node = self.leaf(None)?;
        self.skip_in_flow(opened)?;
        let has_value = self.peek() == Some(b':') && start.line == self.position.line;
        let key = self.key_text(node, start)?;
        let value = if has_value { self.flow_value(opened)? } else { Value::Null };
        insert_field(fields, key, value, &mut self.diagnostics);
        Ok(())
    }

    /// Reads the value after this colon.
    fn flow_value(&mut self, opened: usize) -> Result<Value, YamlError> {
        self.advance(1);
        self.skip_in_flow(opened)?;
        match self.peek() {
            Some(b',' | b']' | b'}') => Ok(Value::Null),
            _ => Ok(self.leaf(None)?.value),
        }
    }

    /// Skips white space, line ends and comments between the brackets.
    fn skip_in_flow(&mut self, opened: usize) -> Result<(), YamlError> {
        if self.next_token()? {
            return Ok(());
        }
        let message = "a bracket is never closed".to_owned();
        Err(YamlError { line: opened, rule: Rule::BadFlow, message })
    }
}
