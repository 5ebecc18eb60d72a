//! The values of options: what was typed, or what would have been right.

use std::ffi::{OsStr, OsString};

use crate::cli::args::{OptionRow, usage};
use crate::error::Result;
use crate::limits;
use crate::text;
use crate::world::output::{FORMATS, Format};

/// One of the formats.
pub fn format(row: &OptionRow, value: OsString) -> Result<Format> {
    let text = text_value(row, value)?;
    match FORMATS.iter().find(|(name, _)| *name == text) {
        Some((_, format)) => Ok(*format),
        None => {
            let names = FORMATS.map(|(name, _)| name).join(", ");
            let shown = text::one_line(&text, limits::SUMMARY_CHARS);
            Err(usage(format!(
                "{} takes one of {names}, not `{shown}`",
                row.long
            )))
        }
    }
}

/// A whole number from 1.
pub fn max_steps(row: &OptionRow, value: OsString) -> Result<u32> {
    let text = text_value(row, value)?;
    match text.parse() {
        Ok(steps) if steps > 0 => Ok(steps),
        _ => Err(usage(format!(
            "{} takes a whole number from 1, not `{text}`",
            row.long
        ))),
    }
}

/// Seconds, also a part of one.
#[allow(clippy::cast_precision_loss, reason = "a year in seconds fits exactly")]
pub fn seconds(row: &OptionRow, value: OsString) -> Result<f64> {
    let text = text_value(row, value)?;
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= limits::MAX_SECONDS as f64 => Ok(seconds),
        _ => Err(usage(format!(
            "{} takes seconds, more than 0, not `{text}`",
            row.long
        ))),
    }
}

/// Checked here, because a wrong value of an option is wrong usage.
pub fn whole_seconds(row: &OptionRow, value: &OsStr) -> Result<()> {
    let number = value.to_str().and_then(|text| text.parse::<u64>().ok());
    if number.is_some_and(|seconds| (1..=limits::MAX_SECONDS).contains(&seconds)) {
        return Ok(());
    }
    let text = value.to_string_lossy();
    Err(usage(format!(
        "{} takes whole seconds, from 1, not `{text}`",
        row.long
    )))
}

/// Text.
pub fn text_value(row: &OptionRow, value: OsString) -> Result<String> {
    value
        .into_string()
        .map_err(|_| usage(format!("the value of {} is not UTF-8 text", row.long)))
}
