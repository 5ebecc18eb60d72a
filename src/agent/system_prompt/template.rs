//! The system prompt file and its placeholders.

use std::path::Path;

use base::error::{Error, ErrorKind, Result};
use base::limits;
use host::cancellation::Cancellation;
use host::files;

const TOOL_DESCRIPTIONS: &str = "{{TOOL_DESCRIPTIONS}}";
pub(super) const SKILLS: &str = "{{SKILLS}}";
pub(super) const KEY_FACTS: &str = "{{KEY_FACTS}}";

/// Replaces a placeholder that has no value.
const NO_VALUE: &str = "(none)";

/// Reads a system prompt file for
/// [`SystemPromptOverride::Template`](super::SystemPromptOverride).
pub fn read_template(path: &Path, cancellation: &Cancellation) -> Result<String> {
    let failure = |cause: &str| {
        let path = path.display();
        let message = format!("failed to read the system prompt `{path}`: {cause}");
        Error::new(ErrorKind::Config, message).with_hint(
            "SYSTEM_PROMPT_PATH names the file; without it, the built-in system prompt is used",
        )
    };
    let bytes = files::read_file_or_pipe(path, limits::SYSTEM_PROMPT_BYTES, cancellation)
        .map_err(|error| files::read_error(&error, failure))?;
    let text = String::from_utf8(bytes).map_err(|_| failure("it is not UTF-8 text"))?;
    let placeholders = [TOOL_DESCRIPTIONS, SKILLS, KEY_FACTS];
    let count: usize = placeholders.iter().map(|name| text.matches(name).count()).sum();
    if count > limits::PLACEHOLDERS {
        let most = limits::PLACEHOLDERS;
        return Err(failure(&format!("it has more than {most} placeholders")));
    }
    // Some editors write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(text.to_string())
}

/// Returns the first unknown placeholder: a word in capitals in double braces.
pub fn unknown_placeholder(template: &str) -> Option<&str> {
    let placeholders = [TOOL_DESCRIPTIONS, SKILLS, KEY_FACTS];
    let is_letter = |c: char| c.is_ascii_uppercase() || c == '_';
    let starts = template.match_indices("{{");
    let mut words = starts.filter_map(|(at, _)| {
        let word = &template[at..at + template[at..].find("}}")? + 2];
        let name = word[2..word.len() - 2].trim();
        let is_placeholder = !name.is_empty() && name.chars().all(is_letter);
        (is_placeholder && !placeholders.contains(&word)).then_some(word)
    });
    words.next()
}

/// Fills in the placeholders. The inserted values are not searched for placeholders: the
/// description of a skill is not a template.
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
                text.push_str(if value.is_empty() { NO_VALUE } else { value });
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
