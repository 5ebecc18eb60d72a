//! Hides secrets in displayed settings.

use std::ffi::OsStr;

use super::{LLM_API_BASE_URL, NO_KEY, OPENAI_BASE_URL, Privacy, Setting};
use crate::address::is_loopback;
use crate::secret::MASK;

/// Displayed in place of an address that looks like a key.
pub(super) const LOOKS_LIKE_KEY: &str = "[secret], which looks like a key";

impl Setting {
    /// The value without secrets.
    pub(super) fn display_value(&self, value: &OsStr) -> String {
        let text = value.to_string_lossy();
        match self.privacy {
            Privacy::Address
                if [LLM_API_BASE_URL, OPENAI_BASE_URL].contains(&self.name)
                    && looks_like_key(&text) =>
            {
                LOOKS_LIKE_KEY.into()
            }
            Privacy::Secret if text.trim() == NO_KEY => NO_KEY.into(),
            Privacy::Open => text.into_owned(),
            Privacy::Address => without_login(&text),
            Privacy::Secret => MASK.into(),
        }
    }
}

/// An address without the text before its last `@` and after its `?`. The address may be
/// invalid, so it hides too much rather than too little.
fn without_login(text: &str) -> String {
    let is_scheme = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric());
    let scheme = text.split_once("://").filter(|(name, _)| is_scheme(name));
    let (scheme, rest) = text.split_at(scheme.map_or(0, |(name, _)| name.len() + 3));
    let rest = match rest.rsplit_once('@') {
        Some((_, host)) => format!("{MASK}@{host}"),
        None => rest.to_string(),
    };
    match rest.split_once('?') {
        Some((before, _)) => format!("{scheme}{before}?{MASK}"),
        None => format!("{scheme}{rest}"),
    }
}

/// Whether the text is a key instead of an address: the two are easily swapped. Except for a
/// lone `localhost`, no valid address looks like this.
pub fn looks_like_key(text: &str) -> bool {
    let is_wrapping = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
    let text = text.trim_matches(is_wrapping);
    let text = text.strip_prefix("Bearer ").unwrap_or(text).trim_start();
    // A JSON web token contains dots.
    ["sk-", "eyJ"].iter().any(|start| text.starts_with(start))
        || !(text.contains(['.', ':', '/']) || is_loopback(text))
}
