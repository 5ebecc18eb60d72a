//! Maps and lists in brackets, inline JSON among them.
//!
//! Indentation does not count here and they may span lines. As in `PyYAML` a
//! list may hold a single pair (`[topic: foo]`), and a map's value may be left
//! out (`{a, b: 1}`).

use serde_json::{Map, Value};

use super::{YamlError, YamlReader, insert};

impl YamlReader<'_> {
    /// Reads the collection whose opening bracket stands here.
    pub(super) fn flow_collection(&mut self) -> Result<Value, YamlError> {
        self.enter()?;
        let opened = self.mark.line;
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
                    return Err(self.fault("bad-flow", message));
                }
            }
        }
        self.advance(1);
        self.leave();
        Ok(if is_list { Value::Array(items) } else { Value::Object(fields) })
    }

    /// The bracket of another collection closes this one only if this one was
    /// never closed.
    fn other_bracket(&self, close: u8) -> Result<(), YamlError> {
        match self.peek() {
            Some(byte @ (b']' | b'}')) if byte != close => {
                let (found, due) = (char::from(byte), char::from(close));
                let message = format!("`{found}` before a bracket is closed by `{due}`");
                Err(self.fault("unclosed-bracket", message))
            }
            _ => Ok(()),
        }
    }

    /// Reads one item of a list; with a colon behind it, it is a pair.
    fn flow_item(&mut self, opened: usize) -> Result<Value, YamlError> {
        let start = self.mark;
        let node = self.leaf(None)?;
        self.skip_in_flow(opened)?;
        if self.peek() != Some(b':') || start.line != self.mark.line {
            return Ok(node.value);
        }
        let key = self.key_text(node, start)?;
        self.enter()?;
        let value = self.flow_value(opened)?;
        self.leave();
        let mut pair = Map::new();
        insert(&mut pair, key, value, &mut self.findings);
        Ok(Value::Object(pair))
    }

    /// Reads one key of a map and, behind a colon, its value.
    fn flow_pair(
        &mut self,
        opened: usize,
        fields: &mut Map<String, Value>,
    ) -> Result<(), YamlError> {
        let start = self.mark;
        let node = self.leaf(None)?;
        self.skip_in_flow(opened)?;
        let has_value = self.peek() == Some(b':') && start.line == self.mark.line;
        let key = self.key_text(node, start)?;
        let value = if has_value { self.flow_value(opened)? } else { Value::Null };
        insert(fields, key, value, &mut self.findings);
        Ok(())
    }

    /// Reads what follows the colon that stands here.
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
        let message = "a bracket that is never closed".to_owned();
        Err(YamlError { line: opened, rule: "unclosed-bracket", message })
    }
}
