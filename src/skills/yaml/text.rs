//! Reader of text in the four styles of YAML: plain, single-quoted, double-quoted, and the
//! indented blocks after `|` and `>`.
//!
//! Lines are folded as in `PyYAML`: a single line end becomes a space; of several, all but one
//! are kept.
//! [`super::scalar`] decides whether plain text is a number.

use super::{YamlError, YamlReader};
use crate::Rule;

/// How a block treats the line ends after its text.
#[derive(Clone, Copy, PartialEq)]
enum Chomp {
    Strip,
    Clip,
    Keep,
}

impl YamlReader<'_> {
    /// Reads plain text. `min_column` as in [`super::block`]; `None` inside brackets.
    pub(super) fn plain_text(&mut self, min_column: Option<usize>) -> Result<String, YamlError> {
        self.check_plain_start(min_column.is_none())?;
        let mut text = String::new();
        let mut line_ends = 0;
        loop {
            let line = self.plain_line(min_column.is_none())?;
            if line.is_empty() {
                break;
            }
            push_fold(&mut text, line_ends);
            text.push_str(line);
            if self.peek() != Some(b'\n') {
                break;
            }
            match self.continue_plain(min_column)? {
                Some(count) => line_ends = count,
                None => break,
            }
        }
        Ok(text)
    }

    /// Reads plain text up to its end on this line.
    fn plain_line(&mut self, in_flow: bool) -> Result<&str, YamlError> {
        let is_ordinary = |byte: &u8| match byte {
            b'\n' | b'\t' | b'#' | b':' => false,
            b'?' => !in_flow,
            _ => !in_flow || !is_bracket_mark(*byte),
        };
        let start = self.position.offset;
        let mut end = start;
        loop {
            let rest = &self.bytes[self.position.offset..];
            let length = rest.iter().take_while(|byte| is_ordinary(byte)).count();
            if let Some(last) = rest[..length].iter().rposition(|byte| *byte != b' ') {
                end = self.position.offset + last + 1;
            }
            self.advance(length);
            match self.peek() {
                Some(b'\t') if self.is_inner_tab() => {
                    self.skip_tab();
                    continue;
                }
                Some(b'\t') => return Err(self.tab_error()),
                Some(b'#') if end < self.position.offset || end == start => break,
                Some(b':') if self.is_blank_at(1) => break,
                Some(b':')
                    if in_flow
                        && matches!(self.peek_at(1), Some(byte) if is_bracket_mark(byte)) =>
                {
                    let message = "no space after a colon in brackets: clients with libyaml refuse all fields";
                    self.warn(Rule::BadFlow, message);
                    break;
                }
                Some(b'#' | b':') => self.advance(1),
                _ => break,
            }
            end = self.position.offset;
        }
        Ok(&self.text[start..end])
    }

    /// Advances to the next line of a plain text and returns the number of line ends
    /// between them; stays at the end of the line if the text ends there.
    fn continue_plain(&mut self, min_column: Option<usize>) -> Result<Option<usize>, YamlError> {
        let end = self.position;
        let mut line_ends = 0;
        while self.peek() == Some(b'\n') {
            self.newline();
            line_ends += 1;
            self.skip_spaces();
        }
        let continues = match self.peek() {
            None | Some(b'#') => false,
            Some(b'\t') => return Err(self.tab_error()),
            Some(_) => {
                !self.is_document_marker()
                    && min_column.is_none_or(|min_column| self.column() >= min_column)
            }
        };
        if !continues {
            self.position = end;
        }
        Ok(continues.then_some(line_ends))
    }

    fn check_plain_start(&self, in_flow: bool) -> Result<(), YamlError> {
        let Some(byte) = self.peek() else {
            return Err(self.error(Rule::BadFlow, "a value was expected here"));
        };
        let c = char::from(byte);
        let (rule, message) = match byte {
            b'-' | b'?' | b':' if !self.is_blank_at(1) && (byte == b'-' || !in_flow) => {
                return Ok(());
            }
            b'\t' => return Err(self.tab_error()),
            b'?' | b':' => (Rule::UnsupportedYaml, format!("`{c}` without a key")),
            b'&' | b'*' | b'!' => {
                (Rule::UnsupportedYaml, "anchors, aliases and tags are not read".to_owned())
            }
            b'%' | b'@' | b'`' | b'|' | b'>' => {
                (Rule::UnquotedValue, format!("`{c}` starts a value without quotes"))
            }
            b'-' | b',' | b'[' | b']' | b'{' | b'}' => {
                (Rule::BadFlow, format!("`{c}` is where a value was expected"))
            }
            _ => return Ok(()),
        };
        Err(self.error(rule, message))
    }

    /// Reads the quoted text that starts at this quote.
    pub(super) fn quoted_text(&mut self) -> Result<String, YamlError> {
        let opened = self.position.line;
        let quote = self.bytes[self.position.offset];
        let is_double = quote == b'"';
        let mut text = String::new();
        self.advance(1);
        loop {
            let rest = &self.bytes[self.position.offset..];
            let is_plain = |&b: &u8| {
                b != quote && !matches!(b, b' ' | b'\t' | b'\n') && !(is_double && b == b'\\')
            };
            let length = rest.iter().take_while(|b| is_plain(b)).count();
            text.push_str(&self.text[self.position.offset..self.position.offset + length]);
            self.advance(length);
            match self.peek() {
                None => {
                    let message = "a quote is never closed".to_owned();
                    return Err(YamlError { line: opened, rule: Rule::UnclosedQuote, message });
                }
                Some(b'\\') => self.escape(&mut text)?,
                Some(b' ' | b'\t' | b'\n') => self.fold_in_quotes(&mut text)?,
                // This is the quote; inside single quotes, two of them mean one.
                Some(_) if !is_double && self.peek_at(1) == Some(quote) => {
                    text.push('\'');
                    self.advance(2);
                }
                Some(_) => {
                    self.advance(1);
                    return Ok(text);
                }
            }
        }
    }

    fn fold_in_quotes(&mut self, text: &mut String) -> Result<(), YamlError> {
        let start = self.position.offset;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.advance(1);
        }
        if self.peek() == Some(b'\n') {
            let line_ends = self.line_ends_in_quotes()?;
            push_fold(text, line_ends);
        } else {
            text.push_str(&self.text[start..self.position.offset]);
        }
        Ok(())
    }

    /// Skips line ends and the white space around them; returns the number of line ends.
    fn line_ends_in_quotes(&mut self) -> Result<usize, YamlError> {
        let mut count = 0;
        while self.peek() == Some(b'\n') {
            self.newline();
            count += 1;
            if self.is_document_marker() {
                return Err(self.error(Rule::UnclosedQuote, "the document ends inside quotes"));
            }
            while matches!(self.peek(), Some(b' ' | b'\t')) {
                self.advance(1);
            }
        }
        Ok(count)
    }

    /// Reads the escape that starts at this backslash.
    fn escape(&mut self, text: &mut String) -> Result<(), YamlError> {
        self.advance(1);
        let c = match self.peek() {
            Some(b'0') => '\0',
            Some(b'a') => '\u{7}',
            Some(b'b') => '\u{8}',
            Some(b't' | b'\t') => '\t',
            Some(b'n') => '\n',
            Some(b'v') => '\u{b}',
            Some(b'f') => '\u{c}',
            Some(b'r') => '\r',
            Some(b'e') => '\u{1b}',
            Some(byte @ (b' ' | b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'N') => '\u{85}',
            Some(b'_') => '\u{a0}',
            Some(b'L') => '\u{2028}',
            Some(b'P') => '\u{2029}',
            Some(b'x') => self.code_point(2)?,
            Some(b'u') => self.code_point(4)?,
            Some(b'U') => self.code_point(8)?,
            Some(b'\n') => {
                // An escaped line end joins the lines; blank lines after it are kept.
                for _ in 1..self.line_ends_in_quotes()? {
                    text.push('\n');
                }
                return Ok(());
            }
            _ => return Err(self.error(Rule::BadEscape, "an unknown escape in double quotes")),
        };
        self.advance(1);
        text.push(c);
        Ok(())
    }

    /// Reads `digits` hexadecimal digits; stays at the last one. A surrogate pair of two
    /// escapes, as in JSON, is one character.
    fn code_point(&mut self, digits: usize) -> Result<char, YamlError> {
        let mut code = self.hexadecimal(digits)?;
        if digits == 4 && (0xd800..0xdc00).contains(&code) {
            let rest = &self.bytes[self.position.offset + 1..];
            if rest.starts_with(b"\\u") {
                self.advance(2);
                let low = self.hexadecimal(4)?;
                if (0xdc00..0xe000).contains(&low) {
                    code = 0x10000 + (code - 0xd800) * 0x400 + (low - 0xdc00);
                }
            }
        }
        char::from_u32(code)
            .ok_or_else(|| self.error(Rule::BadEscape, "an escape that is not a character"))
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<u32, YamlError> {
        let mut code = 0;
        for _ in 0..digits {
            self.advance(1);
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                let message = format!("an escape needs {digits} hexadecimal digits");
                return Err(self.error(Rule::BadEscape, message));
            };
            code = code << 4 | digit;
        }
        Ok(code)
    }

    /// Reads the block that starts at this `|` or `>`.
    pub(super) fn block_text(&mut self, min_column: usize) -> Result<String, YamlError> {
        let is_folded = self.peek() == Some(b'>');
        let (chomp, explicit_indent) = self.block_header()?;
        let min_indent = min_column.max(1);
        let (indent, mut line_ends) = match explicit_indent {
            Some(explicit_indent) => {
                let indent = min_indent + explicit_indent - 1;
                (indent, self.block_line_ends(indent))
            }
            None => self.block_indent(min_indent),
        };
        let mut text = String::new();
        let mut last_line_end = "";
        while self.column() == indent && self.peek().is_some() {
            push_line_ends(&mut text, line_ends);
            let is_unindented = !matches!(self.peek(), Some(b' ' | b'\t'));
            let rest = &self.text[self.position.offset..];
            let line = rest.split('\n').next().unwrap_or(rest);
            text.push_str(line);
            let has_end = line.len() < rest.len();
            self.position.offset += line.len();
            last_line_end = if has_end { "\n" } else { "" };
            if has_end {
                self.newline();
            }
            line_ends = self.block_line_ends(indent);
            if self.column() != indent || self.peek().is_none() {
                break;
            }
            if is_folded && is_unindented && !matches!(self.peek(), Some(b' ' | b'\t')) {
                if line_ends == 0 {
                    text.push(' ');
                }
            } else {
                text.push_str(last_line_end);
            }
        }
        if chomp != Chomp::Strip {
            text.push_str(last_line_end);
        }
        if chomp == Chomp::Keep {
            push_line_ends(&mut text, line_ends);
        }
        Ok(text)
    }

    /// Reads the header: chomping and indentation in either order, and a comment.
    fn block_header(&mut self) -> Result<(Chomp, Option<usize>), YamlError> {
        let (mut chomp, mut explicit_indent) = (None, None);
        self.advance(1);
        loop {
            match self.peek() {
                Some(b'-') if chomp.is_none() => chomp = Some(Chomp::Strip),
                Some(b'+') if chomp.is_none() => chomp = Some(Chomp::Keep),
                Some(digit @ b'1'..=b'9') if explicit_indent.is_none() => {
                    explicit_indent = Some(usize::from(digit - b'0'));
                }
                _ => break,
            }
            self.advance(1);
        }
        if self.peek() != Some(b'#') {
            self.skip_comment();
        }
        match self.peek() {
            None => {}
            Some(b'\n') => self.newline(),
            Some(_) => {
                return Err(
                    self.error(Rule::UnquotedValue, "text after `|` or `>` on the same line")
                );
            }
        }
        Ok((chomp.unwrap_or(Chomp::Clip), explicit_indent))
    }

    /// Advances to the block's first text; returns its indentation and the number of line
    /// ends before it.
    fn block_indent(&mut self, min_indent: usize) -> (usize, usize) {
        let (mut indent, mut line_ends) = (min_indent, 0);
        loop {
            self.skip_spaces();
            indent = indent.max(self.column());
            if self.peek() != Some(b'\n') {
                return (indent, line_ends);
            }
            self.newline();
            line_ends += 1;
        }
    }

    /// Skips blank lines and at most `indent` spaces; returns the number of blank lines.
    fn block_line_ends(&mut self, indent: usize) -> usize {
        let mut line_ends = 0;
        loop {
            while self.column() < indent && self.peek() == Some(b' ') {
                self.advance(1);
            }
            if self.peek() != Some(b'\n') {
                return line_ends;
            }
            self.newline();
            line_ends += 1;
        }
    }
}

fn is_bracket_mark(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']' | b'{' | b'}')
}

/// Adds the folded form of the line ends between two pieces of text.
fn push_fold(text: &mut String, line_ends: usize) {
    match line_ends {
        0 => {}
        1 => text.push(' '),
        _ => push_line_ends(text, line_ends - 1),
    }
}

fn push_line_ends(text: &mut String, count: usize) {
    text.extend(std::iter::repeat_n('\n', count));
}
