//! The values of options: what was typed, or what would have been right.

use std::ffi::{OsStr, OsString};

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::text;

/// What the one of these names that was typed stands for.
pub(super) fn one_of<T: Copy>(option: &str, value: OsString, choices: &[(&str, T)]) -> Result<T> {
    let text = text_value(option, value)?;
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

/// A command's own words.
pub(super) fn texts(words: Vec<OsString>) -> Result<Vec<String>> {
    let text = |word: OsString| {
        word.into_string()
            .map_err(|word| usage(format!("`{}` is not UTF-8 text", word.to_string_lossy())))
    };
    words.into_iter().map(text).collect()
}

/// A whole number from 1.
pub(super) fn max_steps(option: &str, value: OsString) -> Result<u32> {
    let text = text_value(option, value)?;
    match text.parse() {
        Ok(steps) if steps > 0 => Ok(steps),
        _ => Err(usage(format!("{option} takes a whole number from 1, not `{text}`"))),
    }
}

/// Seconds, also a part of one.
#[allow(clippy::cast_precision_loss, reason = "a year in seconds fits exactly")]
pub(super) fn seconds(option: &str, value: OsString) -> Result<f64> {
    let text = text_value(option, value)?;
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= limits::MAX_SECONDS as f64 => Ok(seconds),
        _ => Err(usage(format!("{option} takes seconds, more than 0, not `{text}`"))),
    }
}

/// Checked here, because a wrong value of an option is wrong usage.
pub(super) fn whole_seconds(option: &str, value: &OsStr) -> Result<()> {
    let number = value.to_str().and_then(|text| text.parse::<u64>().ok());
    if number.is_some_and(|seconds| (1..=limits::MAX_SECONDS).contains(&seconds)) {
        return Ok(());
    }
    let text = value.to_string_lossy();
    Err(usage(format!("{option} takes whole seconds, from 1, not `{text}`")))
}

/// A folder: an empty value is a variable of a script that was never set.
pub(super) fn filled(option: &str, value: OsString) -> Result<OsString> {
    if value.is_empty() {
        return Err(usage(format!("{option} takes a folder, not an empty text")));
    }
    Ok(value)
}

/// Text.
pub(super) fn text_value(option: &str, value: OsString) -> Result<String> {
    value.into_string().map_err(|_| usage(format!("the value of {option} is not UTF-8 text")))
}

/// Wrong usage, in the house's form.
pub(crate) fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, format!("failed to read the command line: {}", message.into()))
}
