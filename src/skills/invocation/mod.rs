//! Invocation of a skill: the placeholders in its document are replaced by the arguments.
//!
//! | placeholder | value |
//! |---|---|
//! | `$ARGUMENTS` | all arguments, as typed |
//! | `$ARGUMENTS[N]` | word N, from 0 |
//! | `$N` | the same, only if the frontmatter has `arguments` or `argument-hint` (otherwise it belongs to shell or awk code) |
//! | `$name` | the word at the index of `name` in the frontmatter's `arguments`; empty if there is none |
//! | those of `folders.rs` | the skill's folder or its plugin's, also without arguments |
//!
//! `\$` before one of them is a plain `$`. The rules are those that Claude Code documents,
//! because skills are tried out there, except for `$N`. No file is opened here.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::frontmatter::{self, Frontmatter};
use crate::words::split_words;
use base::limits;

mod commands;
mod folders;

pub use commands::commands_on_load;
pub use folders::SkillFolders;

const ARGUMENTS: &str = "ARGUMENTS";

/// Returns a document with the placeholders for folders in its body replaced; with arguments, only
/// its body, with all placeholders replaced and the arguments appended if none used them. If the
/// frontmatter has no clear end, all of the document is its body.
pub fn render(
    document: &str,
    folders: &SkillFolders,
    arguments: Option<&str>,
) -> Result<String, String> {
    let frontmatter = frontmatter::parse(document);
    let start = if frontmatter.is_unclosed { 0 } else { frontmatter.body_start };
    let (head, body) = document.split_at_checked(start).unwrap_or((document, ""));
    if arguments.is_some() && body.trim().is_empty() {
        return Err("the document has no text after its frontmatter".into());
    }
    let values = PlaceholderValues {
        folders,
        arguments,
        words: split_words(arguments.unwrap_or_default(), limits::ARGUMENT_WORDS),
        names: declared_names(&frontmatter),
        replaces_numbers: ["arguments", "argument-hint"]
            .iter()
            .any(|key| frontmatter.fields.contains_key(*key)),
    };
    let mut text = BoundedText(String::with_capacity(document.len()));
    if arguments.is_none() {
        text.push(head)?;
    }
    let is_argument_used = values.replace_placeholders(body, &mut text)?;
    let unused = arguments.filter(|words| !is_argument_used && !words.trim().is_empty());
    if let Some(arguments) = unused {
        text.push("\n\nARGUMENTS: ")?;
        text.push(arguments)?;
    }
    Ok(text.0)
}

/// Whether the user may invoke the skill: not with `user-invocable: false`.
pub fn is_for_users(frontmatter: &Frontmatter) -> bool {
    flag(frontmatter, "user-invocable") != Some(false)
}

/// Whether the model may invoke the skill: not with `disable-model-invocation: true`.
pub(super) fn is_for_model(frontmatter: &Frontmatter) -> bool {
    flag(frontmatter, "disable-model-invocation") != Some(true)
}

/// The value of a field that is true or false, also as text.
fn flag(frontmatter: &Frontmatter, name: &str) -> Option<bool> {
    match frontmatter.fields.get(name)? {
        Value::Bool(value) => Some(*value),
        Value::String(text) => text.trim().to_ascii_lowercase().parse().ok(),
        _ => None,
    }
}

/// A text with a size limit.
struct BoundedText(String);

impl BoundedText {
    fn push(&mut self, part: &str) -> Result<(), String> {
        if self.0.len() + part.len() > limits::INVOCATION_BYTES {
            let most = limits::INVOCATION_BYTES >> 20;
            return Err(format!(
                "the document would become larger than {most} MiB with these arguments: give shorter ones"
            ));
        }
        self.0.push_str(part);
        Ok(())
    }
}

/// The values of the placeholders.
struct PlaceholderValues<'v> {
    folders: &'v SkillFolders,
    /// `None`: only placeholders for folders are replaced.
    arguments: Option<&'v str>,
    words: Vec<String>,
    /// Declared names, each with the index of its word.
    names: BTreeMap<String, usize>,
    /// Whether `$N` is a placeholder.
    replaces_numbers: bool,
}

/// A part of the body that is replaced.
struct BodyPart<'p> {
    bytes: usize,
    /// The text that replaces it.
    value: &'p str,
    is_argument: bool,
}

impl<'p> BodyPart<'p> {
    fn new(bytes: usize, value: &'p str) -> BodyPart<'p> {
        BodyPart { bytes, value, is_argument: false }
    }

    fn argument(bytes: usize, value: &'p str) -> BodyPart<'p> {
        BodyPart { is_argument: true, ..BodyPart::new(bytes, value) }
    }
}

impl PlaceholderValues<'_> {
    /// Writes the body with its placeholders replaced, in one pass: values are not
    /// expanded again. Returns whether any argument was used.
    fn replace_placeholders(&self, body: &str, text: &mut BoundedText) -> Result<bool, String> {
        let mut is_argument_used = false;
        let mut rest = body;
        // The character before `rest`.
        let mut before = None;
        while let Some(at) = rest.find(folders::START) {
            let (plain, here) = rest.split_at(at);
            text.push(plain)?;
            before = plain.chars().next_back().or(before);
            let piece = match here.as_bytes()[0] {
                b'\\' => Some(self.parse_backslashes(here)),
                _ => self.parse_folder(here, before).or_else(|| self.parse_dollar(here)),
            };
            let piece = piece.unwrap_or(BodyPart::new(1, &here[..1]));
            text.push(piece.value)?;
            is_argument_used |= piece.is_argument;
            before = here[..piece.bytes].chars().next_back();
            rest = &here[piece.bytes..];
        }
        text.push(rest)?;
        Ok(is_argument_used)
    }

    /// One backslash escapes a placeholder, and also the `$` of a number that is not a
    /// placeholder, as in `\$1.00`. Several backslashes escape nothing.
    fn parse_backslashes<'p>(&self, here: &'p str) -> BodyPart<'p> {
        let behind = here.trim_start_matches('\\');
        let count = here.len() - behind.len();
        let is_price = || behind.starts_with('$') && count_digits(&behind[1..]) > 0;
        let is_folder = || behind.starts_with('$') && self.parse_folder(behind, None).is_some();
        if count == 1 && (is_folder() || is_price() || self.parse_dollar(behind).is_some()) {
            // Without arguments, the document stays as it is.
            return BodyPart::new(2, if self.arguments.is_some() { "$" } else { &here[..2] });
        }
        BodyPart::new(count, &here[..count])
    }

    /// The placeholder for a folder that starts here.
    fn parse_folder(&self, here: &str, before: Option<char>) -> Option<BodyPart<'_>> {
        let (bytes, folder) = self.folders.at(here, before)?;
        Some(BodyPart::new(bytes, folder))
    }

    /// The placeholder for arguments that starts with this `$`, if it is one.
    fn parse_dollar<'p>(&'p self, here: &'p str) -> Option<BodyPart<'p>> {
        let arguments = self.arguments?;
        let behind = here.strip_prefix('$')?;
        if let Some(rest) = behind.strip_prefix(ARGUMENTS) {
            let start = 1 + ARGUMENTS.len();
            if let Some(index) = bracketed_number(rest) {
                return Some(self.numbered_word(here, index, start + index.len() + 2));
            }
            // `$ARGUMENTSX` is another name; `$ARGUMENTS_test.go` is a usual file name, and
            // letters of other scripts need no space before them.
            return (!starts_with_alphanumeric(rest)).then(|| BodyPart::argument(start, arguments));
        }
        let digits = count_digits(behind);
        if digits > 0 {
            // `$1st` and `$150k` are not placeholders.
            let is_ours = self.replaces_numbers && !starts_with_alphanumeric(&behind[digits..]);
            return is_ours.then(|| self.numbered_word(here, &behind[..digits], 1 + digits));
        }
        let (length, index) = self.longest_declared_name(behind)?;
        let word = self.words.get(index).map_or("", String::as_str);
        Some(BodyPart::argument(1 + length, word))
    }

    /// The word with this number. If there is none, the whole placeholder stays:
    /// `$ARGUMENTS[9]` is not read as `$ARGUMENTS`.
    fn numbered_word<'p>(&'p self, here: &'p str, index: &str, bytes: usize) -> BodyPart<'p> {
        let index: Option<usize> = index.parse().ok();
        match index.and_then(|index| self.words.get(index)) {
            Some(word) => BodyPart::argument(bytes, word),
            None => BodyPart::new(bytes, &here[..bytes]),
        }
    }

    /// The length of the longest declared name at the start of the text that ends at a
    /// word boundary, and the index of its word.
    fn longest_declared_name(&self, text: &str) -> Option<(usize, usize)> {
        if self.names.is_empty() {
            return None;
        }
        let most = text.len().min(limits::ARGUMENT_NAME_BYTES);
        let length = text.as_bytes()[..most].iter().take_while(|byte| is_name_byte(**byte)).count();
        let ends_at = |end: &usize| {
            let next = text.as_bytes().get(*end);
            !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'['))
        };
        let mut ends = (1..=length).rev().filter(ends_at);
        ends.find_map(|end| Some((end, *self.names.get(&text[..end])?)))
    }
}

/// The names in the frontmatter's `arguments` (a list, or words), with their indexes.
/// Items that are not valid after a `$` are left out, but counted.
fn declared_names(frontmatter: &Frontmatter) -> BTreeMap<String, usize> {
    let list: Vec<&str> = match frontmatter.fields.get("arguments") {
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| match item {
                // Some describe each argument: `- name: issue`.
                Value::Object(fields) => fields.get("name").and_then(Value::as_str),
                other => other.as_str(),
            })
            .map(|name| name.unwrap_or_default().trim())
            .collect(),
        Some(Value::String(text)) => text
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|word| !word.is_empty())
            .collect(),
        _ => Vec::new(),
    };
    let is_name = |name: &str| {
        name.len() <= limits::ARGUMENT_NAME_BYTES
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(is_name_byte)
            && name != ARGUMENTS
    };
    let mut names = BTreeMap::new();
    for (index, name) in list.into_iter().enumerate() {
        if is_name(name) {
            names.entry(name.to_string()).or_insert(index);
        }
    }
    names
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn count_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The number in `[N]`.
fn bracketed_number(text: &str) -> Option<&str> {
    let text = text.strip_prefix('[')?;
    let (index, behind) = text.split_at(count_digits(text));
    (!index.is_empty() && behind.starts_with(']')).then_some(index)
}

/// Whether a name would continue here.
fn starts_with_alphanumeric(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests;
