//! The file of instructions and its placeholders.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::world::cancellation::Cancellation;
use crate::world::files;

const TOOL_DESCRIPTIONS: &str = "{{TOOL_DESCRIPTIONS}}";
pub(super) const SKILLS: &str = "{{SKILLS}}";
pub(super) const KEY_FACTS: &str = "{{KEY_FACTS}}";

/// What stands where there is nothing to fill in.
const NOTHING: &str = "(none)";

/// Reads a file of instructions, for [`SystemPromptOverride::Template`](super::SystemPromptOverride).
pub(crate) fn read(path: &Path, cancellation: &Cancellation) -> Result<String> {
    let failure = |cause: &str| {
        let path = path.display();
        let message = format!("failed to read the instructions `{path}`: {cause}");
        Error::new(ErrorKind::Config, message)
            .with_hint("SYSTEM_PROMPT_PATH names the file; unset, the built-in instructions hold")
    };
    let bytes = files::read_given(path, limits::INSTRUCTIONS_BYTES, cancellation)
        .map_err(|error| files::unread(&error, failure))?;
    let text = String::from_utf8(bytes).map_err(|_| failure("it is not UTF-8 text"))?;
    let known = [TOOL_DESCRIPTIONS, SKILLS, KEY_FACTS];
    let count: usize = known.iter().map(|name| text.matches(name).count()).sum();
    if count > limits::PLACEHOLDERS {
        let most = limits::PLACEHOLDERS;
        return Err(failure(&format!("it has more than {most} placeholders")));
    }
    // As editors on Windows begin a file.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(text.to_string())
}

/// The first of what looks like a placeholder and is none: a word in capitals.
pub(crate) fn unknown(template: &str) -> Option<&str> {
    let known = [TOOL_DESCRIPTIONS, SKILLS, KEY_FACTS];
    let is_letter = |c: char| c.is_ascii_uppercase() || c == '_';
    let starts = template.match_indices("{{");
    let mut words = starts.filter_map(|(at, _)| {
        let word = &template[at..at + template[at..].find("}}")? + 2];
        let name = word[2..word.len() - 2].trim();
        let is_one = !name.is_empty() && name.chars().all(is_letter);
        (is_one && !known.contains(&word)).then_some(word)
    });
    words.next()
}

/// The text with its placeholders filled in. What was filled in is not looked
/// at again: a skill's description is no template.
pub(super) fn fill(template: &str, tools: &str, skills: &str, facts: &str) -> String {
    let values = [(TOOL_DESCRIPTIONS, tools), (SKILLS, skills), (KEY_FACTS, facts)];
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find("{{") {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        match values.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, value)) => {
                let value = value.trim_end();
                text.push_str(if value.is_empty() { NOTHING } else { value });
                rest = &rest[name.len()..];
            }
            None => {
                text.push('{');
                rest = &rest[1..];
            }
        }
    }
    text + rest
}
