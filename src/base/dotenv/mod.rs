//! Parser for `.env` text with python-dotenv's grammar.
//!
//! It turns text into variables and a list of problems, as `load_dotenv()` would
//! read it for a Python program.
//!
//! It must not read files or the process environment, must not treat an empty
//! value as unset (that is the caller's rule), must not search parent folders for
//! `.env`, and must never put a value into a message: values are secrets. The
//! caller limits the size of the text.
//!
//! Each step only moves forward, so the time is linear in the text's length: the
//! search for a missing closing quote happens once, since each later quote of that
//! kind then follows a backslash and opens no value.

use crate::limits;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

#[cfg(test)]
mod tests;

/// Variable that the text defines.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// The name; any text that the grammar allows, not only `[A-Z_]+`.
    pub name: String,
    /// The value after escapes and references; `None` for a name without `=`.
    pub value: Option<String>,
    /// The line, from 1, on which the last statement for the name starts.
    pub line: usize,
    /// Whether the value contains a variable of the environment, directly or through another
    /// variable of the file.
    pub uses_environment: bool,
}

/// Why a statement was skipped, or why the whole file was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotenvProblem {
    /// The line, from 1, on which the statement starts.
    pub line: usize,
    /// The problem, as a constant text, so that it can never contain a value.
    pub message: &'static str,
}

/// Result of parsing a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dotenv {
    /// Each name once, in order of first appearance and with its last value, as in a
    /// Python dictionary.
    pub variables: Vec<Variable>,
    /// The skipped statements, in the order of the text.
    pub problems: Vec<DotenvProblem>,
}

/// Parses the bytes of a `.env` file.
///
/// A file with bytes that are not UTF-8 is refused as a whole, as in Python; so is
/// a file with NUL, which no environment variable can contain.
pub fn parse_bytes(
    bytes: &[u8],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Dotenv, DotenvProblem> {
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let (end, message) = if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        (0, "the file is saved as UTF-16, not as UTF-8")
    } else if let Some(end) = valid.find('\0') {
        (end, "the text contains a NUL byte")
    } else if valid.len() < bytes.len() {
        (valid.len(), "the text is not UTF-8")
    } else {
        return Ok(parse(valid, environment));
    };
    let line = 1 + translate_newlines(&valid[..end]).matches('\n').count();
    Err(DotenvProblem { line, message })
}

/// Parses the text of a `.env` file.
///
/// For `${NAME}`, `environment` takes precedence over earlier variables of the
/// file, since `load_dotenv()` does not change variables that are already set. A
/// skipped statement does not change its name's value.
pub fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Dotenv {
    let text = translate_newlines(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut reader = DotenvReader { rest: &text, line: 1 };
    let mut scope = Scope {
        variables: Vec::new(),
        positions: HashMap::new(),
        environment,
        expansion_left_bytes: limits::ENV_EXPANSION_BYTES,
    };
    let mut problems = Vec::new();
    loop {
        reader.advance_while(is_space);
        if reader.rest.is_empty() {
            break;
        }
        let line = reader.line;
        let outcome = reader.read_statement().and_then(|found| match found {
            Some((name, value)) => scope.define(name, value, line),
            None => Ok(()),
        });
        if let Err(message) = outcome {
            // Skips the rest of the line, if any.
            reader.advance_while(|c| c != '\n');
            problems.push(DotenvProblem { line, message });
        }
    }
    Dotenv { variables: scope.variables, problems }
}

/// The text without the statements that define one of these names; all others stay as they are,
/// with their comments, quotes and references.
pub fn without_names(text: &str, names: &[&str]) -> String {
    let text = translate_newlines(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut reader = DotenvReader { rest: &text, line: 1 };
    let mut kept = String::new();
    while !reader.rest.is_empty() {
        let statement = reader.rest;
        reader.advance_while(is_space);
        let is_named = match reader.read_statement() {
            Ok(found) => found.is_some_and(|(name, _)| names.contains(&name)),
            Err(_) => {
                reader.advance_while(|c| c != '\n');
                false
            }
        };
        let length = statement.len() - reader.rest.len();
        if !is_named {
            kept += &statement[..length];
        }
    }
    kept
}

/// Values are secrets: debug output shows only whether there is one.
impl fmt::Debug for Variable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Variable")
            .field("name", &self.name)
            .field("value", &self.value.as_ref().map(|_| "***"))
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for DotenvProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for DotenvProblem {}

/// Reason for skipping a statement.
type SkipReason = &'static str;

/// A name and its value, before references are resolved.
type Binding<'a> = (&'a str, Option<String>);

/// Reader with the rest of the text, in which LF is the only line end.
struct DotenvReader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> DotenvReader<'a> {
    fn advance(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count();
        self.rest = rest;
        taken
    }

    fn advance_while(&mut self, predicate: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.find(|c| !predicate(c)).unwrap_or(self.rest.len());
        self.advance(length)
    }

    /// Reads one statement; a comment is `None`. After a failure the reader is at the
    /// position where the grammar stopped, and the caller skips the rest of that line:
    /// the last line of a closed quoted value, else its first.
    fn read_statement(&mut self) -> Result<Option<Binding<'a>>, SkipReason> {
        self.skip_export();
        if self.rest.starts_with('#') {
            self.skip_comment();
            return Ok(None);
        }
        let name = self.read_name()?;
        self.advance_while(is_blank);
        let (value, problem) = if self.rest.starts_with('=') {
            (Some(self.read_value()?), "text after the closing quote")
        } else {
            (None, "no `=` after the name")
        };
        self.skip_comment();
        self.advance_while(is_blank);
        if self.rest.is_empty() || self.rest.starts_with('\n') {
            Ok(Some((name, value)))
        } else {
            Err(problem)
        }
    }

    /// Skips `export ` before a name; alone or before `=`, `export` is a name.
    fn skip_export(&mut self) {
        let after = self.rest.strip_prefix("export").unwrap_or_default();
        if after.starts_with(is_blank) {
            self.advance("export".len());
            self.advance_while(is_blank);
        }
    }

    fn skip_comment(&mut self) {
        if self.rest.trim_start_matches(is_blank).starts_with('#') {
            self.advance_while(|c| c != '\n');
        }
    }

    fn read_name(&mut self) -> Result<&'a str, SkipReason> {
        if let Some(inside) = self.rest.strip_prefix('\'') {
            return match inside.find('\'') {
                None => Err("no closing quote after the name"),
                Some(0) => Err("an empty name"),
                // The name may contain a line feed, which `advance` must count.
                Some(length) => Ok(self.advance(length + 2).trim_matches('\'')),
            };
        }
        match self.advance_while(|c| c != '=' && c != '#' && !is_space(c)) {
            "" => Err("the name is missing"),
            name => Ok(name),
        }
    }

    /// Reads from the `=` to the end of the value.
    fn read_value(&mut self) -> Result<String, SkipReason> {
        self.advance(1);
        let blanks = self.advance_while(is_blank);
        match self.rest.chars().next() {
            Some(quote @ ('\'' | '"')) => self.read_quoted(quote),
            // After a blank, `#` starts a comment: the value is empty.
            Some('#') if !blanks.is_empty() => Ok(String::new()),
            _ => Ok(cut_comment(self.advance_while(|c| c != '\n')).to_owned()),
        }
    }

    fn read_quoted(&mut self, quote: char) -> Result<String, SkipReason> {
        let mut escaped = false;
        let inside = &self.rest[1..];
        let end = inside.find(|c| {
            let closes = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        match end {
            Some(length) => {
                self.advance(length + 2);
                Ok(decode_escapes(&inside[..length], quote))
            }
            None if quote == '"' => Err("no closing double quote"),
            None => Err("no closing single quote"),
        }
    }
}

/// The variables so far, and how many bytes references may still expand to.
struct Scope<'a> {
    variables: Vec<Variable>,
    positions: HashMap<String, usize>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    expansion_left_bytes: usize,
}

impl Scope<'_> {
    fn define(&mut self, name: &str, value: Option<String>, line: usize) -> Result<(), SkipReason> {
        let (value, uses_environment) = match value {
            Some(value) => {
                let (value, uses_environment) = self.expand(&value)?;
                (Some(value), uses_environment)
            }
            None => (None, false),
        };
        let variable = Variable { name: name.to_owned(), value, line, uses_environment };
        if let Some(&position) = self.positions.get(name) {
            self.variables[position] = variable;
        } else {
            self.positions.insert(name.to_owned(), self.variables.len());
            self.variables.push(variable);
        }
        Ok(())
    }

    /// Replaces the references once: their values are not expanded again. Returns also whether
    /// the text now contains a variable of the environment.
    fn expand(&mut self, mut rest: &str) -> Result<(String, bool), SkipReason> {
        let mut expanded = String::with_capacity(rest.len());
        let mut uses_environment = false;
        while let Some(reference) = find_reference(rest) {
            expanded.push_str(&rest[..reference.start]);
            rest = &rest[reference.end..];
            let before = expanded.len();
            // At the limit nothing is looked up any more, so that many refused lines
            // cost no more than one.
            let origin = match self.expansion_left_bytes {
                0 => None,
                _ => self.append_value(reference.name, &mut expanded),
            };
            let grown = expanded.len() - before;
            self.expansion_left_bytes = self.expansion_left_bytes.saturating_sub(grown);
            if self.expansion_left_bytes == 0 {
                return Err("the references in this file expand to too much text");
            }
            match origin {
                Some(is_environment) => uses_environment |= is_environment,
                None => expanded.push_str(reference.default),
            }
        }
        expanded.push_str(rest);
        Ok((expanded, uses_environment))
    }

    /// Appends the value of a name and returns whether it is from the environment; `None` if
    /// the name is unknown. A name without `=` is known and empty, so its default is not used.
    fn append_value(&self, name: &str, text: &mut String) -> Option<bool> {
        if let Some(value) = (self.environment)(name) {
            text.push_str(&value);
            return Some(true);
        }
        let variable = &self.variables[*self.positions.get(name)?];
        text.push_str(variable.value.as_deref().unwrap_or(""));
        Some(variable.uses_environment)
    }
}

/// `${name}` or `${name:-default}` and its position.
struct Reference<'a> {
    start: usize,
    end: usize,
    name: &'a str,
    default: &'a str,
}

/// Finds the first reference. Names end at `}` or `:`, defaults at `}`, without nesting.
fn find_reference(text: &str) -> Option<Reference<'_>> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("${")?;
        let name = start + 2;
        let stop = name + text[name..].find(['}', ':'])?;
        let default = if text[stop..].starts_with('}') {
            stop
        } else if text[stop..].starts_with(":-") {
            stop + 2
        } else {
            // Each `${` before this colon ends at it, too, so none of them is a
            // reference: checking each would take quadratic time.
            from = stop;
            continue;
        };
        let close = default + text[default..].find('}')?;
        return Some(Reference {
            start,
            end: close + 1,
            name: &text[name..stop],
            default: &text[default..close],
        });
    }
}

/// Removes an inline comment, which needs white space before its `#`.
fn cut_comment(value: &str) -> &str {
    let comment = value.match_indices('#').find(|&(at, _)| value[..at].ends_with(is_space));
    let end = comment.map_or(value.len(), |(at, _)| at);
    value[..end].trim_end_matches(is_space)
}

/// Replaces the escapes that this kind of quote supports; other backslashes stay.
fn decode_escapes(mut rest: &str, quote: char) -> String {
    let mut decoded = String::with_capacity(rest.len());
    while let Some(backslash) = rest.find('\\') {
        let letter = rest[backslash + 1..].chars().next();
        let character = letter.and_then(|letter| decode_escape(letter, quote));
        decoded.push_str(&rest[..backslash]);
        decoded.push(character.unwrap_or('\\'));
        // All letters of escapes are one byte long.
        rest = &rest[backslash + 1 + usize::from(character.is_some())..];
    }
    decoded.push_str(rest);
    decoded
}

fn decode_escape(letter: char, quote: char) -> Option<char> {
    match letter {
        '\\' | '\'' => Some(letter),
        _ if quote == '\'' => None,
        '"' => Some('"'),
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        _ => None,
    }
}

/// Replaces CRLF and a single CR by LF, inside quotes, too: Python opens the file in
/// text mode.
fn translate_newlines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// White space of Python's `\s` and `rstrip`: Unicode's property and the four
/// separators of ASCII.
fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// White space within a line. Only LF ends a line; form feed and U+2028 do not.
fn is_blank(character: char) -> bool {
    character != '\n' && is_space(character)
}
