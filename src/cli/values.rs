//! Parsers for the values of options. Their errors name what is valid.

use std::ffi::{OsStr, OsString};

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::text;

/// Returns the choice that has the given name.
pub(super) fn parse_choice<T: Copy>(
    option: &str,
    value: OsString,
    choices: &[(&str, T)],
) -> Result<T> {
    let text = utf8_value(option, value)?;
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(*choice);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    Err(usage(format!(
        "{option} takes one of {}, not `{}`",
        names.join(", "),
        text::one_line(&text, limits::SUMMARY_CHARS)
    )))
}

/// The arguments of a command as text.
pub(super) fn utf8_words(words: Vec<OsString>) -> Result<Vec<String>> {
    let text = |word: OsString| {
        word.into_string()
            .map_err(|word| usage(format!("`{}` is not UTF-8 text", word.to_string_lossy())))
    };
    words.into_iter().map(text).collect()
}

/// Parses a whole number from 1.
pub(super) fn parse_max_steps(option: &str, value: OsString) -> Result<u32> {
    let text = utf8_value(option, value)?;
    match text.parse() {
        Ok(steps) if steps > 0 => Ok(steps),
        _ => Err(usage(format!(
            "{option} takes a whole number from 1 to {}, not `{text}`",
            u32::MAX
        ))),
    }
}

/// Parses seconds, also with a fraction.
#[allow(clippy::cast_precision_loss, reason = "a year in seconds fits exactly")]
pub(super) fn parse_seconds(option: &str, value: OsString) -> Result<f64> {
    let text = utf8_value(option, value)?;
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= limits::MAX_SECONDS as f64 => Ok(seconds),
        _ => Err(usage(format!("{option} takes a number of seconds greater than 0, not `{text}`"))),
    }
}

/// Checks a whole number of seconds here, because an invalid value of an option is wrong usage,
/// not a configuration error.
pub(super) fn check_whole_seconds(option: &str, value: &OsStr) -> Result<()> {
    let number = value.to_str().and_then(|text| text.parse::<u64>().ok());
    if number.is_some_and(|seconds| (1..=limits::MAX_SECONDS).contains(&seconds)) {
        return Ok(());
    }
    let text = value.to_string_lossy();
    Err(usage(format!("{option} takes a whole number of seconds from 1, not `{text}`")))
}

/// Checks that a folder was given: an empty value is usually an unset variable in a script.
pub(super) fn non_empty_folder(option: &str, value: OsString) -> Result<OsString> {
    if value.is_empty() {
        return Err(usage(format!("{option} needs a folder, not an empty value")));
    }
    Ok(value)
}

/// The value of an option as text.
pub(super) fn utf8_value(option: &str, value: OsString) -> Result<String> {
    value.into_string().map_err(|_| usage(format!("the value of {option} is not UTF-8 text")))
}

/// An error for wrong usage.
pub(crate) fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, format!("failed to read the command line: {}", message.into()))
}
