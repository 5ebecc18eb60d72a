//! An option as the user typed it, and parsers for its value. Their errors name what is valid.

use std::ffi::OsString;
use std::fmt::Display;
use std::str::FromStr;

use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::text;

/// An option and its value, which is empty for an option without one.
#[derive(Debug)]
pub(super) struct TypedOption {
    /// The long name.
    pub name: &'static str,
    /// The value.
    pub value: OsString,
}

impl TypedOption {
    /// The value as text.
    pub(super) fn text(&self) -> Result<String> {
        let text = self.value.to_str().map(String::from);
        text.ok_or_else(|| usage(format!("the value of {} is not UTF-8 text", self.name)))
    }

    /// A value that is not empty or blank: such a one is usually an unset variable in a script.
    pub(super) fn required(&self, what: &str) -> Result<OsString> {
        if self.value.to_str().is_some_and(|text| text.trim().is_empty()) {
            return Err(usage(format!("{} needs {what}, not an empty value", self.name)));
        }
        Ok(self.value.clone())
    }

    /// The choice that has the given name.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T> {
        let text = self.text()?;
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Ok(*choice);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        Err(self.invalid(&format!("one of {}", names.join(", "))))
    }

    /// A whole number from 1.
    pub(super) fn whole_number<T>(&self, most: T) -> Result<T>
    where
        T: FromStr + PartialOrd + Display + Copy + From<u8>,
    {
        let number: Option<T> = self.value.to_str().and_then(|text| text.parse().ok());
        let number = number.filter(|number| (T::from(1)..=most).contains(number));
        number.ok_or_else(|| self.invalid(&format!("a whole number from 1 to {most}")))
    }

    /// Seconds, also with a fraction.
    #[allow(clippy::cast_precision_loss, reason = "a year in seconds fits exactly")]
    pub(super) fn seconds(&self) -> Result<f64> {
        let seconds = self.value.to_str().and_then(|text| text.parse().ok());
        let valid = |seconds: &f64| *seconds > 0.0 && *seconds <= limits::MAX_SECONDS as f64;
        seconds.filter(valid).ok_or_else(|| self.invalid("a number of seconds greater than 0"))
    }

    /// A part of 1, in millionths.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1e6")]
    pub(super) fn part(&self) -> Result<u32> {
        let part: Option<f64> = self.value.to_str().and_then(|text| text.parse().ok());
        let part = part.filter(|part| (0.0..=1.0).contains(part));
        let part = part.ok_or_else(|| self.invalid("a number from 0 to 1"))?;
        Ok((part * 1e6).round() as u32)
    }

    fn invalid(&self, valid: &str) -> Error {
        let shown = text::one_line(&self.value.to_string_lossy(), limits::SUMMARY_CHARS);
        usage(format!("{} takes {valid}, not `{shown}`", self.name))
    }
}

/// An error for wrong usage.
pub(crate) fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, format!("failed to read the command line: {}", message.into()))
}
